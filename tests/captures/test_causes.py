"""Rules of causes, on the evidence of captures of a Linux kernel with a known cause.

``evidence.csv`` is written by ``evidence.py``.
"""

import csv
from pathlib import Path

from evidence import evidence
from tcpcast.captures.cause_rules import causes_by_rules

ROWS = list(csv.DictReader((Path(__file__).parent / "evidence.csv").open(encoding="utf-8")))


def test_measured_evidence_gives_the_true_cause() -> None:
    causes = causes_by_rules(evidence(ROWS)).tolist()
    wrong = [
        (row["capture"], row["cause"], verdict)
        for row, verdict in zip(ROWS, causes, strict=True)
        if row["cause"] != verdict
    ]
    assert not wrong
    assert len(ROWS) > 100
