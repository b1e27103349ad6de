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


def test_a_filled_window_is_the_cause_only_without_losses() -> None:
    """With losses, 0.8 to 1.1 windows per RTT at a tap away from the sender prove nothing."""
    away = [row for row in ROWS if row["is_tap_away"] == "1" and row["cause"] == "application"]
    filled = {"window_fill_ratio": "0.95", "limited_by": "unknown"}
    for losses, is_receiver in (("0", True), ("9", False)):
        changed = [row | filled | {"loss_indications": losses} for row in away]
        causes = causes_by_rules(evidence(changed))
        assert ((causes == "receiver") == is_receiver).all()
    assert away
