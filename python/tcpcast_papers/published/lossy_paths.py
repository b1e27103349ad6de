"""The set of lossy paths: one transfer of 10 s at full rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.scenario.modern_stacks import rules_of

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published.cells import Cell, CellSet, Lines, Value
from tcpcast_papers.published.links import ACK_BYTES, FRAME_BYTES, link, packets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer

_STACKS = {
    "CUBIC": ("linux-cubic", "5.15"),
    "BBRv1": ("linux-bbr", "5.15"),
    "BBRv3": ("bbr3", "6.4"),
}
"""Stack and version of Linux by control."""
_RATE_MBIT = 10.0
_BODY_BYTES = 12_500_000
_TRANSFERS = 20
_TC_PACKET_BYTES = 1000
"""Mean packet that examples of ``tc red`` give as ``avpkt``."""


def _goodput_over_rate(answer: Answer) -> float:
    """Return the goodput of a file of the mean duration, in % of the link's rate."""
    seconds = answer.metrics["on_time_s"].value
    return 100 * 8 * _BODY_BYTES / seconds / (_RATE_MBIT * 1e6)


def _adaptive_red(limit: float) -> dict[str, Any]:
    """Return ``red limit LIMIT avpkt 1000 adaptive``, with the values that ``tc`` computes.

    The weight is the largest power of 1/2 at which an average from 0 stays below the lower
    threshold during a burst of (2 min + max) / 3 bytes (``tc_red_eval_ewma``).
    """
    maximum = limit / 4
    minimum = maximum / 3
    burst = (2 * minimum + maximum) // (3 * _TC_PACKET_BYTES)
    rest = burst + 1 - minimum / _TC_PACKET_BYTES
    weight = 0.5
    while rest > (1 - (1 - weight) ** burst) / weight:
        weight /= 2
    return {
        "kind": "red",
        "rules": "linux",
        "adaptive": True,
        "min_threshold": f"{minimum / FRAME_BYTES:.3f}pkt",
        "max_threshold": f"{maximum / FRAME_BYTES:.3f}pkt",
        "max_probability": "2%",  # the default of tc
        "weight": weight,
        "gentle": False,
    }


def _cells(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        if line["control"] not in _STACKS:
            continue
        stack, version = _STACKS[line["control"]]
        delay, loss = float(line["one_way_ms"]), line["loss_percent"]
        limit = max(4 * _RATE_MBIT * 1e6 * 2 * delay / 1000 / 8, 48_000)
        tables = {
            "network": {"packet": "1500B", "ack": f"{ACK_BYTES}B"},
            "link": {
                "bottleneck": link(
                    _RATE_MBIT, limit, bursts=True, queue=_adaptive_red(limit), loss=f"{loss}%"
                ),
                "acks": {"loss": f"{loss}%"},
            },
            "class": [
                {
                    "name": "client",
                    "sources": 1,
                    "route": ["bottleneck"],
                    "back": ["acks"],
                    "delay": f"{delay:g}ms",
                    "tcp": {
                        "stack": stack,
                        "kernel": rules_of(version),
                        "handshake": "none",
                        "socket_buffers": "linux-5.15",
                        "tso": "auto",
                    },
                }
            ],
            "traffic": {
                "kind": "on-off",
                "size": {"distribution": "constant", "value": f"{_BODY_BYTES}B"},
                "off": {"distribution": "constant", "value": "1s"},
            },
            "run": {"warmup": "0s", "transfers": _TRANSFERS},
        }
        yield Cell(
            (line["control"], line["one_way_ms"], line["loss_percent"]),
            line["control"],
            tables,
            (
                Value(
                    "goodput / rate",
                    "%",
                    100 * float(line["goodput_over_rate"]),
                    AllowedDifference(0.1),
                    _goodput_over_rate,
                    runs=1,  # 20 transfers, as a simulated run has
                ),
            ),
            packets(_RATE_MBIT, 10) * _TRANSFERS,
        )


LOSSY_PATHS = CellSet(
    "Lossy paths",
    "Goodput of one GET as a share of 10 Mbit/s, ATC 2025",
    ("control", "one-way delay (ms)", "loss (%)"),
    "lossy_paths_atc2025.csv",
    _cells,
    (
        "Yuan, Rossman, Winstein, Internet Connection Splitting, ATC 2025: body of 12.5 MB over "
        "the time from the request to its end, median of 20. Linux 5.15 and 6.4 of google/bbr; "
        "netem delays and drops in both directions, above an adaptive RED. Offloads were on, so "
        "netem dropped bursts as one packet.",
    ),
)
