"""Captures of many small runs, read back: stacks, queues, losses, acknowledgements, timers."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

SECONDS = 15
STACKS = ("rfc-reno", "rfc-newreno", "rfc-newreno-patient")
QUEUES: dict[str, dict[str, Any]] = {
    "5 packets": {"buffer": "5pkt"},
    "20 packets": {"buffer": "20pkt"},
    "60 packets": {"buffer": "60pkt"},
    "red": {
        "buffer": "60pkt",
        "queue": {"kind": "red", "min_threshold": "5pkt", "max_threshold": "15pkt"},
    },
}
LOSSES: dict[str, Any] = {
    "none": "0%",
    "2%": "2%",
    "8%": "8%",
    "bursts": {"model": "gilbert-elliott", "to_bad": "0.5%", "to_good": "20%"},
    "rounds": {"model": "rest-of-round", "rate": "1%"},
}
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "delayed acks": {"delayed_acks": True},
    "limited transmit": {"limited_transmit": True},
    "limited transmit on the second": {
        "limited_transmit": True,
        "rules": {"limited_transmit_on": "second"},
        "delayed_acks": True,
    },
    "bytes": {"rules": {"window_unit": "bytes"}},
    "timer by acks": {"rules": {"timer_restart": "ack", "backoff_until": "ack"}},
}
SAME = {
    "data_packets": "sent",
    "retransmissions": "retransmitted",
    "td": "fast_retransmits",
    "to": "timeout_sequences",
    "timeouts": "timeouts",
}
DEPTHS = range(2, 7)


def compare_counts(stack: str, queue: str, loss: str, rule: str, folder: Path) -> dict[str, Any]:
    """Return the capture's results and the engine's counters by name."""
    file = folder / "sender.pcap"
    question = Scenario.from_dict(
        {
            "network": {
                "rtt": "60ms",
                "bottleneck": {"rate": "4mbit", "loss": LOSSES[loss], **QUEUES[queue]},
            },
            "traffic": {"kind": "bulk", "flows": 3},
            "tcp": {"stack": stack, "receiver_window": 30, **RULES[rule]},
            "run": {"duration": f"{SECONDS}s", "warmup": "0s"},
            "probes": {"pcap": [{"link": "sender", "file": str(file)}]},
        }
    )
    run = _native.Simulation(make_configuration(question, 0.0), 1)
    run.begin_capture(0, file)
    assert run.advance(transfers=None, until_ns=SECONDS * 10**9, threads=1) == "done"
    assert not run.end_capture(0)
    cells = run.counters()[0][-1].tolist()[len(_native.LINK_CELLS) :]
    counted = dict(zip(_native.CLASS_CELLS, cells, strict=False))
    table = tcpcast.trace(file).connections

    def read(column: str) -> int:
        return int(table[column].sum())

    both = {name: (read(name), counted[engine]) for name, engine in SAME.items()}
    for depth in DEPTHS:
        reached = sum(read(f"to_depth_{deeper}") for deeper in range(depth, DEPTHS.stop))
        both[f"depth {depth}"] = (reached, counted[f"sequences_of_{depth}"])
    return both | {"unexplained": (read("unexplained"), 0)}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("loss", LOSSES)
def test_all_counts_equal_engine_counters(stack: str, loss: str, tmp_path: Path) -> None:
    different, losses = {}, 0
    for queue, rule in product(QUEUES, RULES):
        both = compare_counts(stack, queue, loss, rule, tmp_path)
        losses += both["td"][1] + both["to"][1]
        differing = {name: pair for name, pair in both.items() if pair[0] != pair[1]}
        if differing:
            different[queue, rule] = differing
    assert losses > 50
    assert not different
