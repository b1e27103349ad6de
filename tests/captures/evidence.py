"""Print the evidence of captures with a known cause as CSV, the data of ``test_causes.py``.

``python tests/captures/evidence.py FOLDER... > tests/captures/evidence.csv``, for folders as
``verdicts.py`` reads them. It leaves out captures whose verdict is wrong.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from tcpcast.captures import cause_rules, trace
from tcpcast.captures.cause_rules import Evidence
from verdicts import heaviest, verdicts

FLAGS = ("is_tap_at_sender", "is_tap_away", "has_retransmissions", "is_bbr", "is_lossless_from_syn")
WORDS = ("limited_by",)
LIMITS = (
    *("application", "receiver_window", "send_buffer", "slow_start", "congestion_window"),
    *("loss_recovery", "timeout", "bottleneck", "unknown"),
)


def as_plain_values(evidence_rows: Evidence, index: int) -> dict[str, Any]:
    """Return the evidence of a row as plain values with three digits."""
    row: dict[str, Any] = {}
    for field in fields(Evidence):
        if field.name == "shares":
            row |= {f"share_{name}": f"{evidence_rows.shares[name][index]:.3g}" for name in LIMITS}
        elif field.name in WORDS:
            row[field.name] = str(evidence_rows.limited_by[index])
        else:
            row[field.name] = f"{float(getattr(evidence_rows, field.name)[index]):.3g}"
    return row


def evidence(rows: list[dict[str, str]]) -> Evidence:
    """Return the evidence in rows of the table."""

    def column(name: str) -> np.ndarray[Any, Any]:
        if name in WORDS:
            return np.array([row[name] for row in rows])
        # Evidence of rules that are newer than the captures is unknown.
        values = np.array([float(row.get(name, "nan")) for row in rows])
        return values > 0 if name in FLAGS else values

    columns: dict[str, Any] = {
        field.name: column(field.name) for field in fields(Evidence) if field.name != "shares"
    }
    return Evidence(shares={name: column(f"share_{name}") for name in LIMITS}, **columns)


def measured(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row per capture of a folder whose verdict is right."""
    for case in verdicts(folder):
        if not case.right:
            continue
        name = f"{case.scenario}-{case.tap}"
        with patch.object(
            cause_rules, "causes_by_rules", wraps=cause_rules.causes_by_rules
        ) as decided:
            capture = trace(folder / f"{name}.pcap.gz")
        (evidence_rows,) = decided.call_args.args
        index = heaviest(capture)
        cause = str(capture.connections["cause"][index])
        yield {"capture": name, "cause": cause} | as_plain_values(evidence_rows, index)


def main(folders: list[str]) -> None:
    """Print the table."""
    rows = [row for folder in folders for row in measured(Path(folder))]
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
