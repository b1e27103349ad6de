"""Values of the algorithms of the appendix, compared to the printed digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.models.parallel import cumulative_throughput, parallel_throughput

from tcpcast_papers.parallel.published import (
    VALUES_LOST_PER_EVENT,
    VALUES_PACKETS_PER_ACK,
    VALUES_RTT_S,
    VALUES_T0_S,
    values,
)
from tcpcast_papers.reproduction import PRINTED_DIGITS
from tcpcast_papers.sheet import Quantity, Sheet, column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast_papers.parallel.runs import Runs
    from tcpcast_papers.published import Line


def _rate_pps(line: Line, *, equations: bool = False) -> float:
    loss = line.value("loss")
    if line["algorithm"] == "1":
        result = parallel_throughput(
            flows=int(line["flows"]),
            rtt_s=VALUES_RTT_S,
            t0_s=VALUES_T0_S,
            loss_event_ratio=loss,
            packets_per_ack=VALUES_PACKETS_PER_ACK,
            equations=equations,
        )
    else:
        result = cumulative_throughput(
            flows=int(line["flows"]),
            rtt_s=VALUES_RTT_S,
            t0_s=VALUES_T0_S,
            loss_event_ratio_cumulative=loss,
            loss_ratio=VALUES_LOST_PER_EVENT * loss,
            packets_per_ack=VALUES_PACKETS_PER_ACK,
            equations=equations,
        )
    return float(result.rate_pps)


def _notes() -> Iterator[str]:
    yield (
        f"b = {VALUES_PACKETS_PER_ACK}, RTT = {1e3 * VALUES_RTT_S:g} ms, T = "
        f"{1e3 * VALUES_T0_S:g} ms; algorithm 2 with p_r = {VALUES_LOST_PER_EVENT} p_e. The "
        "paper prints no values. These were calculated by hand from its appendix before the models "
        "were written."
    )
    for line in values():
        published = line.printed("rate_pps")
        if published and not PRINTED_DIGITS.admits(_rate_pps(line), published):
            yield (
                f"Algorithm {line['algorithm']} as printed gives {_rate_pps(line):.4f} for n = "
                f"{line['flows']} at {100 * line.value('loss'):g} %, where {published.text} was "
                f"calculated by hand; with the complete f(p) it gives "
                f"{_rate_pps(line, equations=True):.4f}. The hand calculation probably has a wrong "
                "digit; both values are unchanged."
            )


SHEET: Sheet[Runs, Line] = Sheet(
    "Appendix. Values of algorithms 1 and 2",
    ("algorithm", "n", "p or p_e"),
    "packets/s",
    lambda line: (line["algorithm"], line["flows"], f"{100 * line.value('loss'):g} %"),
    lambda _: values(),
    (
        Quantity(
            (),
            lambda _, line: Metric(_rate_pps(line)),
            column("rate_pps"),
            PRINTED_DIGITS,
            note=lambda _, line: f"own {_rate_pps(line):.4f}",
        ),
    ),
    notes=lambda _: list(_notes()),
)
