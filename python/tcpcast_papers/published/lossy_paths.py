"""The set of lossy paths: one transfer of 10 s at full rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published.cells import Cell, CellSet, Lines, Value
from tcpcast_papers.published.links import ACK_BYTES, link, packets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer

_STACKS = {"CUBIC": "linux-cubic", "BBRv1": "linux-bbr", "BBRv3": "bbr3"}
_RATE_MBIT = 10.0
_BODY_BYTES = 12_500_000
_TRANSFERS = 20


def _goodput_over_rate(answer: Answer) -> float:
    """Return the goodput of a file of the mean duration, in % of the link's rate."""
    seconds = answer.metrics["on_time_s"].value
    return 100 * 8 * _BODY_BYTES / seconds / (_RATE_MBIT * 1e6)


def _cells(lines: Lines) -> Iterator[Cell]:
    for line in lines:
        if line["control"] not in _STACKS:
            continue
        delay, loss = float(line["one_way_ms"]), line["loss_percent"]
        limit = max(4 * _RATE_MBIT * 1e6 * 2 * delay / 1000 / 8, 48_000)
        maximum = limit / 4 / 1514
        red = {
            "kind": "red",
            "min_threshold": f"{maximum / 3:.3f}pkt",
            "max_threshold": f"{maximum:.3f}pkt",
            "max_probability": "2%",  # the default of tc
            "gentle": False,
        }
        tables = {
            "network": {"packet": "1500B", "ack": f"{ACK_BYTES}B"},
            "link": {
                "bottleneck": link(_RATE_MBIT, limit, bursts=True, queue=red, loss=f"{loss}%"),
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
                        "stack": _STACKS[line["control"]],
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
