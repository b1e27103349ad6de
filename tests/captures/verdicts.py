"""Compare the verdict of ``trace`` with the true cause of each capture in a folder.

``python tests/captures/verdicts.py FOLDER`` reads ``truth.csv`` of the folder and its
captures ``SCENARIO-TAP.pcap.gz``. It prints one line per capture and the right verdicts per tap.
"""

import csv
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tcpcast.captures import Capture, trace
from tcpcast.captures.subject import capture_subject

TAPS = ("snd", "mid", "any", "rcv")

CAUSES = {
    "application": "application",
    "application_pacing": "application pacing",
    "receiver": "receiver",
    "send_buffer": "send buffer",
    "short_transfer": "short transfers",
    "reordering": "reordering",
    "policer": "policer",
    "link": "link",
    "loss": "loss",
    "timeout": "loss",
    "congestion_window": "congestion window",
    "unknown": "unknown",
}
"""Each ``cause`` of ``trace`` as ``truth.csv`` names it."""


SERVICE_CAUSES = {
    "network": "network",
    "server": "server",
    "client": "client",
    "retransmission": "retransmission",
    "held": "nagle",
    "window": "window",
    "interrupted": "interruption",
    "no_response": "no response",
}
"""Each ``cause`` of a service as ``truth.csv`` names it."""
FAILED = "failed"
"""The verdict on a capture of failed connections."""


class Verdict(NamedTuple):
    """The cause that ``trace`` names for one capture, and the true one."""

    scenario: str
    tap: str
    truth: str
    found: str
    sentence: str

    @property
    def right(self) -> bool:
        """True if the verdict names the true cause."""
        return self.found == self.truth


def heaviest(capture: Capture) -> int:
    """Return the row of the direction with the most bytes."""
    return int(np.argmax(capture.connections["bytes"]))


def verdicts(folder: Path) -> list[Verdict]:
    """Return the verdict of the direction with the most bytes for each capture of the folder."""
    result = []
    with (folder / "truth.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for tap in TAPS:
            path = folder / f"{row['scenario']}-{tap}.pcap.gz"
            if path.exists():
                capture = trace(path)
                if "limited_by_at_rcv" in row:
                    truth = row["limited_by_at_rcv"] if tap == "rcv" else row["limited_by"]
                    result.append(verdict_on_service(row["scenario"], tap, truth, capture))
                    continue
                row_index = heaviest(capture)
                cause = CAUSES[str(capture.connections["cause"][row_index])]
                sentence = str(capture.advice()[row_index])
                result.append(Verdict(row["scenario"], tap, row["limited_by"], cause, sentence))
    return result


def verdict_on_service(scenario: str, tap: str, truth: str, capture: Capture) -> Verdict:
    """Return the verdict on the service with the most requests."""
    causes = capture.services["cause"].tolist()
    found = SERVICE_CAUSES.get(causes[0], "unknown") if causes else "unknown"
    if capture_subject(capture).kind == "failures":
        found = FAILED
    # Failed connections are also requests without a response.
    alternatives = truth.split("|")
    name = found if found in alternatives else alternatives[0]
    return Verdict(scenario, tap, name, found, capture.verdict())


def main(folder: str) -> None:
    """Print each verdict and the number of right ones per tap."""
    all_verdicts = verdicts(Path(folder))
    for verdict in all_verdicts:
        mark = "right" if verdict.right else "WRONG"
        print(f"{mark} {verdict.scenario}-{verdict.tap}: {verdict.truth} -> {verdict.sentence}")
    right = Counter(verdict.tap for verdict in all_verdicts if verdict.right)
    total = Counter(verdict.tap for verdict in all_verdicts)
    unknown = Counter(verdict.tap for verdict in all_verdicts if verdict.found == "unknown")
    for tap in TAPS:
        if total[tap]:
            print(f"\n{tap}: {right[tap]} of {total[tap]} right, {unknown[tap]} unknown")
            print_confusion([verdict for verdict in all_verdicts if verdict.tap == tap])


def print_confusion(all_verdicts: list[Verdict]) -> None:
    """Print the number of captures by true cause (row) and verdict (column)."""
    counts = Counter((verdict.truth, verdict.found) for verdict in all_verdicts)
    names = [
        name
        for name in dict.fromkeys([*CAUSES.values(), *SERVICE_CAUSES.values(), FAILED])
        if any(name in pair for pair in counts)
    ]
    print(f"{'':18}", *(f"{name[:8]:>8}" for name in names))
    for truth in names:
        cells = (counts[truth, verdict] or "" for verdict in names)
        print(f"{truth:18}", *(f"{cell:>8}" for cell in cells))


if __name__ == "__main__":
    main(sys.argv[1])
