"""Little's law: the upper limit of round-trip times, and a check of every simulated flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import MAX_RTT_S, measure_quantity, queueing_rtt_s
from tcpcast_papers.fixed_point.published import (
    BUFFER_PKTS,
    CONGESTED,
    IDLE_RTT_S,
    LINK_PPS,
    POPULATIONS,
    printed_cell,
)
from tcpcast_papers.fixed_point.runs import fixed_point_answers
from tcpcast_papers.fixed_point.tables import loop_answers, loop_job
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Metric

    from tcpcast_papers.fixed_point.runs import Runs


def _section(runs: Runs, _: Path) -> Section:
    result = runs.section("Little's law and the paper's round trips", ("RTT", "N"))
    for sources in CONGESTED:
        printed = printed_cell(3, "rtt", str(sources))
        result.rows.append(Row(("upper limit", str(sources)), "s", printed, MAX_RTT_S))
        for scheme in runs.sample_sizes.schemes:
            label = (f"scheme {scheme}", str(sources))
            result.rows += runs.row(label, _scheme_row, runs, label, scheme)
    for sources in POPULATIONS:
        measured, by_law = ("measured", str(sources)), ("by Little's law", str(sources))
        result.rows += runs.metric(measured, "s", _measured_rtt, runs, sources)
        result.rows += runs.value(by_law, "s", _rtt_by_littles_law, runs, sources)
    result.remarks = [
        f"The shared router serves {LINK_PPS:.0f} packets/s, and at most {BUFFER_PKTS} packets can "
        "wait. By Little's law, the mean wait of delivered packets is at most "
        f"{BUFFER_PKTS}/{LINK_PPS:.0f} = {BUFFER_PKTS / LINK_PPS:.3f} s. With the {IDLE_RTT_S:.4f} "
        f"s of the idle path the mean RTT is at most {MAX_RTT_S:.3f} s with any TCP. The paper "
        "prints 1.77 and 2.21 s. They are possible only under the reading that the first packet of "
        "each flow occupies no buffer (see the section on the head of the line).",
        "The paper prints RTTs of its reference flows. RTTs that tcpcast computes with the paper's "
        "schemes also exceed the maximum: a reference flow keeps more packets in the router than "
        "each of the flows that it represents. The tests of section 5.4 detect this difference.",
        "In the rows *by Little's law*, the RTT is the mean number of packets in the shared router "
        "divided by its delivery rate, plus the RTT of the idle path. Measured RTTs also include "
        "the wait at the source's link, which receives a whole window in a burst: 1.2 ms per "
        "packet. In overload the measured RTTs are slightly shorter, because packets that are "
        "dropped from the longest queue or retransmitted after a timeout have also waited, but "
        "give no RTT sample.",
    ]
    return result


def _measured_rtt(runs: Runs, sources: int) -> Metric | None:
    return measure_quantity("rtt", loop_answers(runs, 1, sources).exact, sources)


def _rtt_by_littles_law(runs: Runs, sources: int) -> float | None:
    return queueing_rtt_s(loop_answers(runs, 1, sources).exact)


def _scheme_row(runs: Runs, label: tuple[str, str], scheme: str) -> Row | None:
    sources = int(label[1])
    job = loop_job(1, sources, runs.sample_sizes)
    (answer,) = fixed_point_answers(runs, job, [scheme]).values()
    rtt = measure_quantity("rtt", answer, sources)
    if rtt is None:
        return None
    note = "withheld by its own tests" * (answer.incomplete_reason is not None)
    return Row.from_metric(label, "s", printed_cell(3, "rtt", label[1]), rtt, note=note)


SECTIONS = (_section,)
