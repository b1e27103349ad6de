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


def test_timeouts_that_last_longest_are_the_cause_although_segments_are_short() -> None:
    """The capture shows timeouts directly. No evidence for an application replaces them."""
    written = [
        row for row in ROWS if row["is_tap_at_sender"] == "1" and row["cause"] == "application"
    ]
    changed = [
        row
        | {f"share_{name}": "0.1" for name in ("application", "slow_start", "loss_recovery")}
        | {"share_send_buffer": "0", "share_congestion_window": "0", "share_bottleneck": "0"}
        | {"share_timeout": "0.7", "limited_by": "timeout"}
        for row in written
    ]
    assert set(causes_by_rules(evidence(changed)).tolist()) == {"timeout"}


def test_constant_flight_on_a_free_path_is_a_full_send_buffer() -> None:
    """Values of a BBR sender with SO_SNDBUF = 64 KiB on a path of 50 Mbit/s and 100 ms."""
    (row,) = (row for row in ROWS if row["capture"] == "sndbuf-bbr-snd")
    bbr = row | {
        "share_send_buffer": "0",
        "share_congestion_window": "0.93",
        "share_bottleneck": "0",
        "limited_by": "congestion_window",
        "short_segments_per_rtt": "0.07",
        "pacing_variation": "0.26",
        "median_queue_ratio": "0",
        "mean_flight_pkts": "51",
    }
    growing = bbr | {"rate_growth": "1.27"}
    queued = bbr | {"rate_growth": "1.0", "median_queue_ratio": "0.12"}
    lossy = bbr | {"rate_growth": "1.0", "loss_indications": "3", "has_retransmissions": "1"}
    rows = [bbr | {"rate_growth": "1.09"}, growing, queued, lossy]
    first, *others = causes_by_rules(evidence(rows)).tolist()
    assert first == "send_buffer"
    assert "send_buffer" not in others
