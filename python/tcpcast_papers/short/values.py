"""Values of the recursion and of packets that were computed apart from this program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.models.short import conditional_latency_s

from tcpcast_papers.reproduction import Tolerance
from tcpcast_papers.sheet import Quantity, Sheet, column, estimate
from tcpcast_papers.short.methods import MOST_LOSSES
from tcpcast_papers.short.published import values
from tcpcast_papers.short.runs import BACKOFF, DEFAULT, FRACTIONS, Job
from tcpcast_papers.short.settings import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.published import Line
    from tcpcast_papers.short.runs import Rules, Runs

WITHIN = Tolerance(relative=0.01)
"""Packets: 1 %."""

DIGITS = Tolerance(absolute=5.5e-4)
"""The recursion: half of the last digit, and what quadrature leaves (3.4075 is told as 3.408)."""


def _job(runs: Runs, line: Line, rules: Rules) -> Job:
    size = int(line["size_pkts"])
    return Job(BY_NAME[line["setting"]], (size,), runs.sample_sizes.valued, rules=rules)


def _simulated(rules: Rules) -> Callable[[Runs, Line], Metric]:
    def computed(runs: Runs, line: Line) -> Metric:
        result = runs.latency(_job(runs, line, rules)).given[int(line["losses"]), :, 0]
        return estimate(*result.tolist())

    return computed


def _recursion(line: Line, *, as_printed: bool) -> Metric:
    transfer = replace(BY_NAME[line["setting"]].transfer, as_printed=as_printed)
    result = conditional_latency_s(transfer, int(line["size_pkts"]), most_losses=MOST_LOSSES)
    return Metric(float(result[int(line["losses"])]))


def _has_two_losses(line: Line) -> bool:
    """Without two losses, the other rules make hardly any difference."""
    return int(line["losses"]) > 1


SHEET: Sheet[Runs, Line] = Sheet(
    "Independent values",
    ("setting", "size", "losses", "by"),
    "s",
    lambda line: (
        BY_NAME[line["setting"]].words,
        f"{line['size_pkts']} packets",
        line["losses"],
    ),
    lambda _: values(),
    (
        Quantity(
            ("recursion, d = 1",),
            lambda _, line: _recursion(line, as_printed=False),
            column("model_s"),
            DIGITS,
        ),
        Quantity(("recursion, d = 0",), lambda _, line: _recursion(line, as_printed=True)),
        Quantity(
            ("packets",),
            _simulated(DEFAULT),
            column("exact_s"),
            WITHIN,
            causes=(
                ("what ends the doubling of a timeout: any ack of new data", _simulated(BACKOFF)),
                ("that, and windows that keep fractions of packets", _simulated(FRACTIONS)),
            ),
        ),
        *(
            Quantity((words,), _simulated(rules), column("exact_s"), condition=_has_two_losses)
            for rules, words in (
                (BACKOFF, "packets, doubling ends at any ack"),
                (FRACTIONS, "packets, and windows keep fractions"),
            )
        ),
    ),
    notes=lambda _: [
        "Published here are values that were computed apart from this program: the recursion as "
        "its text means it (d = 1), to the digits told, and packets, the mean over all ways to "
        "lose k transmissions of a NewReno sender on a path of infinite rate; they agree within "
        "1 %.",
        "From two losses on it matters how the sender goes on, which RFCs leave open in part. By "
        "default a timeout, once doubled, stays so until there is a new round-trip sample (RFC "
        "6298, section 5), which retransmissions do not give; where any ack of new data ends "
        "it, as with timestamps, the values of up to 8 packets come out. Files of 30 packets have "
        "time for the window to grow, and there the values lie between windows in whole packets "
        "and windows that keep fractions (RFC 5681, equations 3 and 4), which grow a little more "
        "slowly. That 30 packets agree by default too is chance: the one rule adds what the other "
        "takes away.",
    ],
    request=lambda runs: [
        runs.request(_job(runs, line, rules))
        for line in values()
        for rules in (DEFAULT, BACKOFF, FRACTIONS)
    ],
)
