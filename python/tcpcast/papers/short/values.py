"""Values of the recursion and of packets that were computed apart from this program."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tcpcast.models.short import conditional_latency_s
from tcpcast.papers.reproduction import Cause, Row, Section, Tolerance
from tcpcast.papers.short.published import values
from tcpcast.papers.short.runs import BACKOFF, DEFAULT, FRACTIONS, Job
from tcpcast.papers.short.settings import DRAWN
from tcpcast.papers.short.variants import MOST_LOSSES

if TYPE_CHECKING:
    from tcpcast.papers.published import Line
    from tcpcast.papers.reproduction import Printed
    from tcpcast.papers.short.runs import Latency, Runs
    from tcpcast.papers.short.settings import Setting

WITHIN = Tolerance(relative=0.01)
"""Packets: 1 %."""

DIGITS = Tolerance(absolute=5.5e-4)
"""The recursion: half of the last digit, and what quadrature leaves (3.4075 is told as 3.408)."""

REASONS = {
    BACKOFF: "what ends the doubling of a timeout: any ack of new data",
    FRACTIONS: "that, and windows that keep fractions of packets",
}
"""Rules of TCP that RFCs leave open, and that account for a difference."""

RULES = (DEFAULT, BACKOFF, FRACTIONS)

OTHERWISE = {
    BACKOFF: "packets, doubling ends at any ack",
    FRACTIONS: "packets, and windows keep fractions",
}
"""What other rules are called in a row; without two losses they make no difference to speak of."""


def wanted(runs: Runs) -> None:
    """Ask for the sizes that have values, under each set of rules."""
    for setting, lines in _by_setting():
        for rules in RULES:
            for size in dict.fromkeys(line.whole("size_pkts") for line in lines):
                runs.want(_job(runs, setting, size or 0, rules))


def _by_setting() -> list[tuple[Setting, list[Line]]]:
    named = {setting.name: setting for setting in DRAWN}
    groups = groupby(values(), key=lambda line: line["setting"])
    return [(named[name], list(lines)) for name, lines in groups]


def _job(runs: Runs, setting: Setting, size_pkts: int, rules: tuple[tuple[str, str], ...]) -> Job:
    return Job(setting, (size_pkts,), runs.effort.valued, rules=rules)


def sections(runs: Runs) -> list[Section]:
    """Return the recursion's values and those of packets."""
    section = Section("Values computed apart", ("setting", "size", "losses", "by"))
    for setting, lines in _by_setting():
        for line in lines:
            section.rows += _rows(setting, line, runs)
    section.remarks = [
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
    ]
    return [section]


def _rows(setting: Setting, line: Line, runs: Runs) -> list[Row]:
    size, losses = line.whole("size_pkts") or 0, line.whole("losses") or 0
    label = (setting.words, f"{size} packets", str(losses))
    both: list[float] = [
        float(conditional_latency_s(each, size, most_losses=MOST_LOSSES)[losses])
        for each in (setting.as_printed, setting.transfer)
    ]
    printed, exact = line.printed("model_s"), line.printed("exact_s")
    rows = [
        Row((*label, "recursion, d = 1"), "s", printed, both[1], tolerance=DIGITS),
        Row((*label, "recursion, d = 0"), "s", None, both[0]),
    ]
    found = {rules: runs.latency(_job(runs, setting, size, rules)) for rules in RULES}
    own, half = _mean(found[DEFAULT], losses)
    cause = _cause(found, losses, exact)
    rows.append(
        Row(
            (*label, "packets"),
            "s",
            exact,
            own,
            low=own - half,
            high=own + half,
            tolerance=WITHIN,
            settle=True,
            explained_by=cause,
        )
    )
    for rules, words in OTHERWISE.items():
        other, half = _mean(found[rules], losses)
        if losses > 1:
            rows.append(
                Row((*label, words), "s", exact, other, low=other - half, high=other + half)
            )
    return rows


def _mean(found: Latency, losses: int) -> tuple[float, float]:
    return float(found.mean_s[losses, 0]), float(found.half_s[losses, 0])


def _cause(
    found: dict[tuple[tuple[str, str], ...], Latency], losses: int, exact: Printed | None
) -> Cause | None:
    """Return the first set of rules that takes our figure to the value or past it."""
    if exact is None:
        return None
    own, _ = _mean(found[DEFAULT], losses)
    for rules, reason in REASONS.items():
        cause = Cause(reason, _mean(found[rules], losses)[0])
        if cause.spans(own, WITHIN.reach(exact)):
            return cause
    return None
