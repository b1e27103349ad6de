"""Table 7 and section 10: mean-value formulas with the paper's and with simulated inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from tcpcast.models.local_loop import overload_goodput_pps, restarting_goodput_pps

from tcpcast_papers.fixed_point.measures import measure_quantity, value_or_none
from tcpcast_papers.fixed_point.published import (
    CONGESTED,
    IDLE_RESTART_RATIO,
    LINK_PPS,
    MEAN_SIZE_PKTS,
    MEAN_THINK_S,
    PACKET_KBIT,
    POPULATIONS,
    PRINTED_RTT_S,
    TABLE_OF_CASE,
    published_table,
)
from tcpcast_papers.fixed_point.tables import loop_answers
from tcpcast_papers.reproduction import Cause, Row, Section, Tolerance

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import Runs
    from tcpcast_papers.printed import Line

TOLERANCE = Tolerance(relative=0.03, printed_digits=True)
PAPER_INPUTS, EVERY_FLOW = "the paper's tables", "every flow"


def printed_inputs(case: int, sources: int) -> tuple[float, float, float]:
    """Return a column of Table 3, 4 or 5: loss and timeouts as shares, RTT in seconds."""
    lines = published_table(TABLE_OF_CASE[case])
    loss, timeouts, rtt = (
        lines.line_with(quantity=quantity).value(str(sources))
        for quantity in ("loss", "timeouts", "rtt")
    )
    return loss / 100, timeouts / 100, rtt


def equation_1_kbit(loss: float, timeouts: float, rtt_s: float) -> float:
    """Return the goodput of equation (1) in kbit/s."""
    rate = restarting_goodput_pps(
        rtt_s=rtt_s, loss_ratio=loss, timeout_ratio=timeouts, idle_restart_ratio=IDLE_RESTART_RATIO
    )
    return PACKET_KBIT * float(rate)


def _equation_1_section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        published_table(7).title, ("case", "N", "fed with"), others=("every flow",)
    )
    for line, sources in product(published_table(7), POPULATIONS):
        for inputs in (PAPER_INPUTS, EVERY_FLOW):
            label = (line["case"], str(sources), inputs)
            section.rows += runs.row(label, _equation_1_row, runs, line, label)
    runs.check_all_rows()
    errors: dict[str, list[tuple[float, str]]] = {PAPER_INPUTS: [], EVERY_FLOW: []}
    for row in section.rows:
        case, users, inputs = row.label
        printed = published_table(TABLE_OF_CASE[int(case)]).line_with(quantity="goodput")
        (simulated,) = row.others
        goodput = simulated if inputs == EVERY_FLOW else printed.value(users)
        if row.own is not None and goodput:
            errors[inputs].append((row.own / goodput - 1, f"case {case}, N = {users}"))
    section.remarks = [
        "g = (MSS/RTT) sqrt(3 / (2 max(p_loss + p_to, p_idle))), p_idle = 1.65 % of the packets. "
        "With inputs from Tables 3 to 5 this equation gives the paper's Table 7. Rows for *every "
        "flow* use inputs from simulations of every flow; the last column is the goodput in these "
        "simulations.",
        _error_range_remark(errors),
    ]
    return section


def _equation_1_row(runs: Runs, line: Line, label: tuple[str, str, str]) -> Row:
    case, sources = int(line["case"]), int(label[1])
    exact = loop_answers(runs, case, sources).exact
    goodput = value_or_none(measure_quantity("goodput", exact, sources))
    row = Row(label, "kbit/s", line.printed(label[1]), None, others=(goodput,))
    if label[2] == EVERY_FLOW:
        return replace(row, own=_equation_1_of_simulation_kbit(runs, case, sources))
    loss, timeouts, rtt = printed_inputs(case, sources)
    cause = None
    if (unrounded_rtt := PRINTED_RTT_S[case].get(sources)) is not None:
        rate = equation_1_kbit(loss, timeouts, unrounded_rtt)
        cause = Cause("an RTT with more digits than are printed", rate)
    own = equation_1_kbit(loss, timeouts, rtt)
    return replace(row, own=own, tolerance=TOLERANCE, explained_by=cause)


def _error_range_remark(errors: dict[str, list[tuple[float, str]]]) -> str:
    ranges = []
    for inputs, found in errors.items():
        low, high = (f"{100 * error:+.0f} % ({place})" for error, place in (min(found), max(found)))
        ranges.append(f"{low} to {high} of the goodput with inputs from {inputs}")
    return (
        f"Relative error: {'; '.join(ranges)}. A file of 50 packets is too short for the "
        "square-root formula. At the threshold, users restart their windows after idle times, but "
        "have no losses. In overload, the fair sharing of the buffer determines the rate, not the "
        "loss."
    )


def _equation_1_of_simulation_kbit(runs: Runs, case: int, sources: int) -> float | None:
    exact = loop_answers(runs, case, sources).exact
    inputs = [
        value_or_none(measure_quantity(name, exact, sources))
        for name in ("loss", "timeouts", "rtt")
    ]
    if inputs[0] is None or inputs[2] is None:
        return None
    return equation_1_kbit(inputs[0] / 100, (inputs[1] or 0.0) / 100, inputs[2])


def overload_goodput_kbit(sources: int, loss: float) -> float:
    """Return the goodput of equation (3) in kbit/s."""
    rate = overload_goodput_pps(
        sources=sources,
        link_pps=LINK_PPS,
        mean_off_s=MEAN_THINK_S,
        mean_size_pkts=MEAN_SIZE_PKTS,
        loss_ratio=loss,
    )
    return PACKET_KBIT * float(rate)


def _equation_3_section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "Equation (3)", ("N", "loss of"), others=("the paper's goodput", "every flow")
    )
    for sources, words in product(CONGESTED, ("none", PAPER_INPUTS, EVERY_FLOW)):
        label = (str(sources), words)
        section.rows += runs.row(label, _equation_3_row, runs, label)
    section.remarks = [
        "B / (N B / (C (1 - p)) - I) is the goodput of an active user if N users with files of B "
        "packets and think times I together fill a link of C packets/s, and the loss is p. The "
        "paper calls this goodput an upper bound in all cases, but it is an upper bound only "
        "without loss. With loss, it is below the goodput in simulations of every flow, and below "
        "the goodput in the paper's tables: a packet that is dropped at the full buffer has not "
        "used the link, so the link still delivers C packets/s.",
    ]
    return section


def _equation_3_row(runs: Runs, label: tuple[str, str]) -> Row | None:
    sources = int(label[0])
    exact = loop_answers(runs, 1, sources).exact
    own_loss, goodput = (
        value_or_none(measure_quantity(name, exact, sources)) for name in ("loss", "goodput")
    )
    losses = {"none": 0.0, PAPER_INPUTS: printed_inputs(1, sources)[0]}
    losses |= {} if own_loss is None else {EVERY_FLOW: own_loss / 100}
    if label[1] not in losses:
        return None
    result = overload_goodput_kbit(sources, losses[label[1]])
    printed = published_table(3).line_with(quantity="goodput").value(label[0])
    shown = result if math.isfinite(result) else None
    return Row(label, "kbit/s", None, shown, others=(printed, goodput))


SECTIONS = (_equation_1_section, _equation_3_section)
