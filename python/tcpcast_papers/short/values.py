"""Values of the recursion and of packets that were computed independently of this program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.models.short import conditional_latency_s

from tcpcast_papers.reproduction import Tolerance
from tcpcast_papers.section_definition import (
    Quantity,
    SectionDefinition,
    metric_from_half_width,
    read_column,
)
from tcpcast_papers.short.methods import MAX_LOSSES
from tcpcast_papers.short.published import published_latencies
from tcpcast_papers.short.runs import BACKOFF_UNTIL_ACK, DEFAULT_RULES, FRACTIONAL_WINDOWS, Job
from tcpcast_papers.short.settings import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.printed import Line
    from tcpcast_papers.short.runs import Rules, Runs

PACKET_TOLERANCE = Tolerance(relative=0.01)
"""Tolerance for packets: 1 %."""

RECURSION_TOLERANCE = Tolerance(absolute=5.5e-4)
"""Tolerance for the recursion: half of the last digit, plus the error of quadrature."""


def _latency_job(runs: Runs, line: Line, rules: Rules) -> Job:
    size = int(line["size_pkts"])
    return Job(BY_NAME[line["setting"]], (size,), runs.sample_sizes.value_transfers, rules=rules)


def _simulated_latency(rules: Rules) -> Callable[[Runs, Line], Metric]:
    def computed(runs: Runs, line: Line) -> Metric:
        result = runs.latency_curves(_latency_job(runs, line, rules)).given[
            int(line["losses"]), :, 0
        ]
        return metric_from_half_width(*result.tolist())

    return computed


def _recursion_latency(line: Line, *, as_printed: bool) -> Metric:
    transfer = replace(BY_NAME[line["setting"]].transfer, as_printed=as_printed)
    result = conditional_latency_s(transfer, int(line["size_pkts"]), max_losses=MAX_LOSSES)
    return Metric(float(result[int(line["losses"])]))


SECTION: SectionDefinition[Runs, Line] = SectionDefinition(
    "Independent values",
    ("setting", "size", "losses", "by"),
    "s",
    lambda line: (
        BY_NAME[line["setting"]].description,
        f"{line['size_pkts']} packets",
        line["losses"],
    ),
    lambda _: published_latencies(),
    (
        Quantity(
            ("recursion, d = 1",),
            lambda _, line: _recursion_latency(line, as_printed=False),
            read_column("model_s"),
            RECURSION_TOLERANCE,
        ),
        Quantity(("recursion, d = 0",), lambda _, line: _recursion_latency(line, as_printed=True)),
        Quantity(
            ("packets",),
            _simulated_latency(DEFAULT_RULES),
            read_column("exact_s"),
            PACKET_TOLERANCE,
            causes=(
                (
                    "the doubling of a timeout ends at any ack of new data",
                    _simulated_latency(BACKOFF_UNTIL_ACK),
                ),
                ("that, and fractional windows", _simulated_latency(FRACTIONAL_WINDOWS)),
            ),
        ),
        *(
            Quantity(
                (words,),
                _simulated_latency(rules),
                read_column("exact_s"),
                # Only with two or more losses do the rules of TCP change the value.
                condition=lambda line: int(line["losses"]) > 1,
            )
            for rules, words in (
                (BACKOFF_UNTIL_ACK, "packets, doubling ends at any ack"),
                (FRACTIONAL_WINDOWS, "packets, fractional windows"),
            )
        ),
    ),
    notes=lambda _: [
        "Published values were computed independently of tcpcast. The values of the recursion "
        "follow the text of the paper (d = 1). The values of packets are means over all ways to "
        "lose k transmissions of a NewReno sender on a path of infinite rate; a value agrees "
        "within 1 %.",
        "With two or more losses the latency depends on rules that the RFCs leave partly open. By "
        "default, a timeout stays doubled until there is a new RTT sample (RFC 6298, section 5), "
        "which retransmissions do not give. If any ack of new data resets the timeout, as with "
        "timestamps, the values of up to 8 packets are reproduced. In files of 30 packets the "
        "window can grow. Their published values are between the values for windows in whole "
        "packets and the values for fractional windows (RFC 5681, equations 3 and 4), which grow "
        "slightly more slowly. With the default rules, the agreement for 30 packets is accidental: "
        "the effects of both rules cancel.",
    ],
    request=lambda runs: [
        runs.request(_latency_job(runs, line, rules))
        for line in published_latencies()
        for rules in (DEFAULT_RULES, BACKOFF_UNTIL_ACK, FRACTIONAL_WINDOWS)
    ],
)
