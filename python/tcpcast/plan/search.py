"""Where a simulated metric meets a target: bracketed, narrowed down, and simulated itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.errors import NotApplicable
from tcpcast.plan.crossing import Point, falls_below

if TYPE_CHECKING:
    from tcpcast.answer import Metric
    from tcpcast.plan.verification import Simulations

TIGHT = 0.01
"""How narrow the search makes the bracket of the answer, as a share of it."""

UNDECIDED = 0.3
"""An interval of the answer that is wider than this, as a share of the answer, decides nothing."""

NEAR = 1.05
FAR = 4.0
"""By which factor the search for a bracket goes on, at the least and at the most."""

TRIES = 12
"""Steps of the search for a bracket, and of the one within it, at the most."""

INNER = (0.2, 0.8)
"""Where in the bracket the search looks next, at the least and at the most."""

AT_ITSELF = 1e-3
"""What was simulated as near as this, as a share, was simulated at the answer itself."""

SETTLED = 3
"""How often the answer may move when it is simulated itself."""

SPARSE = 1.25
"""Simulated values about an end of the interval are no further apart than by this factor."""

OUTWARD = (1.1, 1.5, 3.0)
"""By which factors the search goes on where the end of the answer's interval was not found."""

FAINT = 1e-3
"""A metric of 0 counts as this share of the target, since its logarithm is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a metric is to reach, and which of the values that reach it is looked for.

    Attributes
    ----------
    target
        Of the metric, above 0.
    rises
        Whether the metric rises with the value that is varied; else it falls.
    smallest
        Whether the smallest value that suffices is looked for; else the largest.
    whole
        Whether only whole values are asked for.
    least, most
        The ends of what may be asked for; of values that are not whole, ``most`` itself is not.
    power
        About how steeply the value depends on the metric: of which power of it.
    """

    target: float
    rises: bool = False
    smallest: bool = False
    whole: bool = True
    least: float = 1.0
    most: float = math.inf
    power: float = 1.0

    def is_before(self, metric: float) -> bool:
        """Say whether the crossing lies above the value at which the metric is this much."""
        if self.rises:
            return metric < self.target
        return metric > self.target if self.smallest else metric >= self.target

    def step(self, value: float, factor: float, *, up: bool) -> float:
        """Return a value that is larger or smaller by a factor, inside of what may be asked for."""
        if not self.whole:
            other = value * factor if up else value / factor
            return max(min(other, (value + self.most) / 2), self.least)
        other = max(round(value * factor), value + 1) if up else min(value // factor, value - 1)
        return int(max(min(other, self.most), self.least))

    def between(self, low: float, high: float, at: tuple[float, float]) -> float:
        """Return where in a bracket to look next, by the metric at its ends."""
        logs = [math.log(max(metric / self.target, FAINT)) for metric in at]
        share = logs[0] / (logs[0] - logs[1]) if logs[0] != logs[1] else 0.5
        share = min(max(share, INNER[0]), INNER[1])
        if not self.whole:
            return float(low * (high / low) ** share)
        return min(max(round(low + share * (high - low)), int(low) + 1), int(high) - 1)

    def rounded(self, value: float) -> float:
        """Return the value of the kind that is looked for next to one."""
        if not self.whole:
            return value
        return math.ceil(value - 1e-9) if self.smallest else math.floor(value + 1e-9)

    def point(self, value: float, metric: Metric) -> Point:
        """Return a point of a curve that falls, whichever way the metric goes."""
        faint = FAINT * self.target
        value_low_high = (metric.value, metric.low, metric.high)
        middle, low, high = (None if m is None else max(m, faint) for m in value_low_high)
        assert middle is not None
        if not self.rises:
            return Point(value, middle, low, high)
        turned = [None if m is None else self.target**2 / m for m in (high, low)]
        return Point(value, self.target**2 / middle, *turned)


@dataclass(frozen=True, slots=True)
class Found:
    """Where the metric meets its target.

    ``low`` and ``high`` are the answer's 95 % interval, None where the runs have none;
    ``is_open`` says that the curve meets the target beyond all that was simulated as well, as far
    as the intervals tell.
    """

    value: float
    low: float | None = None
    high: float | None = None
    is_open: bool = False
    whole: bool = True

    @property
    def undecided(self) -> bool:
        """Whether the interval is too wide for the value to mean anything."""
        if self.low is None or self.high is None:
            return False
        least = 2.0 if self.whole else 0.0
        return self.is_open or self.high - self.low > max(least, UNDECIDED * self.value)


def solve(runs: Simulations, goal: Goal, start: float) -> Found | None:
    """Return where the simulated metric meets the target, simulated there.

    Parameters
    ----------
    runs
        The simulations over the value.
    goal
        What is looked for.
    start
        Where to begin.

    Returns
    -------
    Found or None
        None where no bracket was found in :data:`TRIES` steps, or the ends of what may be asked
        for came first.

    Raises
    ------
    Stopped, NotApplicable
        As :meth:`Simulations.measure`.
    """
    ends = _bracket(runs, goal, start)
    if ends is None:
        return None
    narrow(runs, goal, *ends)
    return settle(runs, goal)


def _bracket(runs: Simulations, goal: Goal, start: float) -> tuple[float, float] | None:
    """Go outwards from the start, by larger and larger steps, until the target was passed."""
    at, here = start, runs.measure(start)
    up = goal.is_before(here)
    ratio = max(here / goal.target, goal.target / here) if here > 0 else math.inf
    factor = min(max(min(ratio, FAR) ** goal.power, NEAR), FAR)
    for _ in range(TRIES):
        other = goal.step(at, factor, up=up)
        if other == at:
            return None
        if goal.is_before(runs.measure(other)) != up:
            return (at, other) if up else (other, at)
        at, factor = other, min(factor**2, FAR)
    return None


def narrow(runs: Simulations, goal: Goal, low: float, high: float) -> None:
    """Simulate inside a bracket until it is tight, or noise at both ends hides the target."""
    for _ in range(TRIES):
        wide = max(1.0 if goal.whole else 0.0, TIGHT * low)
        if high - low <= wide or _is_noise(runs, goal, low, high):
            return
        middle = goal.between(low, high, (runs.measure(low), runs.measure(high)))
        if goal.is_before(runs.measure(middle)):
            low = middle
        else:
            high = middle


def settle(runs: Simulations, goal: Goal) -> Found:
    """Return the answer by all that was simulated, simulated itself, with its interval."""
    if all(point.low is None for point in points(runs, goal)):
        value = _at_itself(runs, goal)
        return Found(value, whole=goal.whole)
    # The ends of the interval are as far out as the noise; what is there is simulated too.
    low, high = _interval(runs, goal)
    if high - low > TIGHT * low:
        for end in (low, high):
            attempt(runs, max(goal.least, goal.rounded(end)))
    for factor in OUTWARD:
        if not _widened(runs, goal, factor):
            break
    for _ in range(TRIES):
        if not _filled(runs, goal):
            break
    value = _at_itself(runs, goal)
    left, right = _interval(runs, goal)
    if goal.whole:
        left, right = math.floor(left + 1e-9), math.ceil(right - 1e-9)
    is_open = any(_open_ends(runs, goal))
    return Found(value, min(left, value), max(right, value), is_open, goal.whole)


def attempt(runs: Simulations, value: float) -> None:
    """Simulate a value for the curve; what cannot be told of it is left out."""
    try:
        runs.measure(value)
    except NotApplicable:
        return


def points(runs: Simulations, goal: Goal) -> list[Point]:
    """Return what was simulated as points of a curve that falls."""
    found = {n: runs.figure(answer) for n, answer in sorted(runs.answers.items())}
    return [goal.point(n, metric) for n, metric in found.items() if metric is not None]


def _at_itself(runs: Simulations, goal: Goal) -> float:
    """Return where the fit meets the target; what is simulated there may move it once more."""
    value = 0.0
    for _ in range(SETTLED):
        value = goal.rounded(falls_below(points(runs, goal), goal.target))
        value = max(goal.least, min(value, goal.most))
        near = min(runs.answers, key=lambda known: abs(known - value))
        if abs(near - value) <= (0.0 if goal.whole else AT_ITSELF * value):
            return near
        runs.measure(value)
    return value


def _interval(runs: Simulations, goal: Goal) -> tuple[float, float]:
    known = points(runs, goal)
    ends = [[point.at(end) for point in known] for end in ("low", "high")]
    first, last = (falls_below(each, goal.target) for each in ends)
    return first, last


def _open_ends(runs: Simulations, goal: Goal) -> tuple[bool, bool]:
    """Say whether the interval ends, below and above, only because nothing beyond was simulated."""
    known = points(runs, goal)
    first, last = known[0], known[-1]
    low, high = _interval(runs, goal)
    below = low <= first.sources > goal.least and first.at("low").value < goal.target
    above = high >= last.sources < goal.most and last.at("high").value >= goal.target
    return below, above


def _widened(runs: Simulations, goal: Goal, factor: float) -> bool:
    """Simulate further out, by a factor, where the interval is open; say whether it was."""
    known = points(runs, goal)
    ends = zip(_open_ends(runs, goal), (known[0], known[-1]), (False, True), strict=True)
    outside = [goal.step(point.sources, factor, up=up) for is_open, point, up in ends if is_open]
    for value in outside:
        attempt(runs, value)
    return bool(outside)


def _filled(runs: Simulations, goal: Goal) -> bool:
    """Simulate between the points about an end of the interval that are far apart; say whether."""
    known = points(runs, goal)
    between = set()
    for end in _interval(runs, goal):
        below = max((p.sources for p in known if p.sources <= end), default=end)
        above = min((p.sources for p in known if p.sources >= end), default=end)
        middle = goal.rounded(math.sqrt(below * above))
        if above > SPARSE * below and below < middle < above and middle not in runs.answers:
            between.add(middle)
    for value in sorted(between):
        attempt(runs, value)
    return bool(between)


def _is_noise(runs: Simulations, goal: Goal, *values: float) -> bool:
    """Whether the intervals at all these values hold the target."""
    found = [runs.figure(runs.answers[value]) for value in values]
    return all(
        metric is not None
        and metric.low is not None
        and metric.high is not None
        and metric.low <= goal.target <= metric.high
        for metric in found
    )
