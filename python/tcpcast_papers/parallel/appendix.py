"""Values in the text, and the algorithms of the appendix compared with the equations."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.models.parallel import cumulative_throughput, parallel_throughput

from tcpcast_papers.parallel.points import Point
from tcpcast_papers.parallel.published import printed_values
from tcpcast_papers.reproduction import PRINTED_DIGITS, Tolerance
from tcpcast_papers.section_definition import Quantity, SectionDefinition, read_column

if TYPE_CHECKING:
    from tcpcast_papers.parallel.runs import Runs
    from tcpcast_papers.printed import Line

ROUNDED_TO_TENS = Tolerance(absolute=5.0)
"""Tolerance of RTTs that the text gives as "around" 60 and 200 ms, in ms: half a unit of the
tens."""

DELAY_S = 0.03


def _printed_value(line: Line) -> float:
    value = line.value("value")
    if line["unit"] == "ms":
        return 1e3 * Point(1, delay_s=value, loss=0.01).rtt_s
    return 100 / Point(1, rate_mbit=int(value)).capacity_pps / DELAY_S


def _quantity_in_unit(unit: str, tolerance: Tolerance) -> Quantity[Runs, Line]:
    return Quantity(
        (),
        lambda _, line: Metric(_printed_value(line)),
        read_column("printed"),
        tolerance,
        condition=lambda line: line["unit"] == unit,
        unit=unit,
    )


PRINTED_VALUE_SECTION: SectionDefinition[Runs, Line] = SectionDefinition(
    "Text. Values in the text",
    ("place", "quantity"),
    "ms",
    lambda line: (line["place"], line["quantity"]),
    lambda _: printed_values(),
    (_quantity_in_unit("ms", ROUNDED_TO_TENS), _quantity_in_unit("%", PRINTED_DIGITS)),
    notes=lambda _: [
        "All other results of the paper are plots without values. The paper calls the percentages "
        "an increase of the RTT, but they are the ratios of a transmission time to the delay of "
        "the shared link."
    ],
)

Case = tuple[str, int, float]
"""Algorithm, n, and p or p_e."""

RTT_S, T0_S, PACKETS_PER_ACK = 0.06, 0.24, 2
LOST_PER_EVENT = 5
CASES: tuple[Case, ...] = tuple(product(("1", "2"), (1, 10, 100), (0.001, 0.01, 0.05)))


def _rate_pps(case: Case, *, equations: bool) -> float:
    algorithm, flows, loss = case
    given = {"flows": flows, "rtt_s": RTT_S, "t0_s": T0_S, "packets_per_ack": PACKETS_PER_ACK}
    result = (
        parallel_throughput(**given, loss_event_ratio=loss, equations=equations)
        if algorithm == "1"
        else cumulative_throughput(
            **given,
            loss_event_ratio_cumulative=loss,
            loss_ratio=LOST_PER_EVENT * loss,
            equations=equations,
        )
    )
    return float(result.rate_pps)


def _difference_percent(case: Case) -> float:
    return 100 * (_rate_pps(case, equations=False) / _rate_pps(case, equations=True) - 1)


ALGORITHM_SECTION: SectionDefinition[Runs, Case] = SectionDefinition(
    "Appendix. The algorithms compared with the equations",
    ("algorithm", "n", "p or p_e"),
    "%",
    lambda case: (case[0], str(case[1]), f"{100 * case[2]:g} %"),
    lambda _: CASES,
    (
        Quantity(
            (),
            lambda _, case: Metric(_difference_percent(case)),
            note=lambda _, case: f"{_rate_pps(case, equations=False):.1f} packets/s",
        ),
    ),
    notes=lambda _: [
        "The difference is (algorithm - equation) / equation, where the equation is (28) for "
        f"algorithm 1 and (48) for algorithm 2; b = {PACKETS_PER_ACK}, RTT = {1e3 * RTT_S:g} ms, T "
        f"= {1e3 * T0_S:g} ms, p_r = {LOST_PER_EVENT} p_e. The algorithms replace f(p) by 1 + 32 "
        "p^2. The number of flows that time out in an event is at most 1 in algorithm 2, and at "
        "most n in (47). Q is (27) in the algorithms; in the equations, Q is 1 for windows below "
        "three packets, as in (26)."
    ],
)
