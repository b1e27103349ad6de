"""Find the value at which a metric meets a target: bracket, bisect, fit.

Every value is simulated with another seed (:class:`.probes.Probes`). If all runs at and near the
low end of a tight bracket miss the target, and all runs at and near its high end meet it (or vice
versa), the bracket is the answer. Otherwise the standard error is larger than the bracket: a curve
is fitted to runs near the target, and their scatter gives the interval. A formula is bisected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.plan.monotone_fit import (
    MIN_LINE_POINTS,
    MeasuredPoint,
    TargetCrossing,
    fit_target_crossing,
    stated_log_error,
)
from tcpcast.process.errors import NotApplicable

if TYPE_CHECKING:
    from tcpcast.plan.probes import Probes

MAX_BRACKET_WIDTH = 0.01
"""Width of the final bracket as a share of the answer."""

MAX_INTERVAL_WIDTH = 0.3
"""Relative width of the answer's interval above which the answer is undecided."""

MIN_STEP_FACTOR = 1.05
MAX_STEP_FACTOR = 4.0
"""Minimum and maximum step factor of the search for a bracket."""

MAX_STEPS = 12
"""Maximum number of steps of the search within a bracket, and of the fit."""

EXACT_TOLERANCE, MAX_EXACT_STEPS = 1e-9, 100
"""Relative width of the final bracket of a formula, and maximum number of steps."""

FIRST_POSITION, LAST_POSITION = 0.2, 0.8
"""Limits of the next relative position in the bracket."""

MAX_DISTANCE_FROM_RUN = 0.1
"""A run is close enough to the answer if their distance is at most this share of the answer's
interval."""

CONFIRMING_RUNS = 3
"""Number of runs on either side of a tight bracket that must agree with its ends."""

SUFFICIENT_RUNS = 10
"""Number of runs near the target for a fit; fewer if the answer's interval is narrow."""

NARROW_INTERVAL_WIDTH, MIN_RUNS = 0.03, 6
"""Relative width of a narrow interval, and the minimum number of runs for it."""

RUN_POSITIONS = (-1.0, 1.0, -0.5, 0.5, -0.75, 0.75, -0.25, 0.25, 0.0)
"""Positions of the runs relative to the target, in units of the radius."""

MAX_FIT_DISTANCE = 1.5
"""Maximum distance of fitted runs from the target, in radii."""

MAX_SLOPE_UNCERTAINTY, RADIUS_FACTOR = 0.2, 2.0
"""``slope_uncertainty`` above which the radius grows by the factor ``RADIUS_FACTOR``."""

MIN_RADIUS, MAX_RADIUS = 0.03, math.log(2)
"""Minimum and maximum radius, of the logarithm of the value."""

MIN_INTEGER_RADIUS = 4
"""Minimum radius in whole values."""

OUTWARD_FACTORS = (1.1, 1.5, 3.0)
"""Factors by which further runs are beyond an end of the answer's interval, until the interval of a
run lies entirely on its side of the target."""

ZERO_REPLACEMENT = 1e-3
"""Share of the target that replaces a metric of 0, which has no logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGoal:
    """Target of a metric, and the kind of value that is searched.

    Attributes
    ----------
    metric, target
        Name of the metric, and its target, above 0.
    rises
        Whether the metric rises with the value; otherwise it falls.
    smallest
        Whether to find the smallest value that meets the target; otherwise the largest.
    integer
        Whether values are whole numbers.
    minimum, maximum
        Minimum and maximum value.
    power
        Approximate exponent of the metric in the value.
    limit
        Upper limit of a rising metric, such as a utilisation. The search then uses the distance
        from the limit, which falls by a power of the value.
    """

    metric: str
    target: float
    rises: bool = False
    smallest: bool = False
    integer: bool = True
    minimum: float = 1.0
    maximum: float = math.inf
    power: float = 1.0
    limit: float = math.inf

    @property
    def is_minimum(self) -> bool:
        """Whether the target is a minimum of the metric; otherwise it is a maximum."""
        return self.rises == self.smallest

    @property
    def worst_metric(self) -> float:
        """Metric that misses the target by far: that of an overloaded run."""
        return 0.0 if self.is_minimum else math.inf

    def is_met(self, metric: float) -> bool:
        """Return True if a metric meets the target."""
        return metric >= self.target if self.is_minimum else metric <= self.target

    def lies_before_crossing(self, metric: float) -> bool:
        """Return True if the crossing is above the value with this metric."""
        return self.is_met(metric) != self.smallest

    def step(self, value: float, factor: float, *, up: bool) -> float:
        """Return a value that is larger or smaller by a factor, within the limits."""
        other = value * factor if up else value / factor
        if self.integer:
            other = max(round(other), value + 1) if up else min(math.floor(other), value - 1)
        return max(min(other, self.maximum), self.minimum)

    def interpolate(self, low: float, high: float, at: tuple[float, float]) -> float:
        """Return the next value in a bracket, interpolated from the metric at its ends."""
        logs = [math.log(self.on_falling_scale(metric) / self.target) for metric in at]
        share = logs[0] / (logs[0] - logs[1]) if logs[0] != logs[1] else 0.5
        return self.between(low, high, min(max(share, FIRST_POSITION), LAST_POSITION))

    def between(self, low: float, high: float, share: float) -> float:
        """Return a value at a relative position in a bracket."""
        if not self.integer:
            return float(low * (high / low) ** share)
        return min(max(round(low + share * (high - low)), int(low) + 1), int(high) - 1)

    def clamp(self, value: float) -> float:
        """Return the value, limited to the permitted range."""
        return max(self.minimum, min(value, self.maximum))

    def permitted_value(self, value: float) -> float:
        """Return the value within the limits, rounded so that it meets the target if required."""
        if self.integer:
            value = math.ceil(value - 1e-9) if self.smallest else math.floor(value + 1e-9)
        return self.clamp(value)

    def falling_curve_point(self, value: float, metric: Metric) -> MeasuredPoint:
        """Return a point of a falling curve, also for a rising metric."""
        ends = (metric.high, metric.low) if self.rises else (metric.low, metric.high)
        low, high = (None if end is None else self.on_falling_scale(end) for end in ends)
        return MeasuredPoint(value, self.on_falling_scale(metric.value), low, high)

    def metric_from_falling_curve(self, middle: float, low: float, high: float) -> Metric:
        """Convert values of a falling curve, relative to the target, to the metric."""
        if self.limit < math.inf:
            aim = self.limit - self.target
            middle, low, high = (self.limit - aim * each for each in (middle, high, low))
            return Metric(middle, low, high)
        if self.rises:
            middle, low, high = 1 / middle, 1 / high, 1 / low
        return Metric(self.target * middle, self.target * low, self.target * high)

    def miss_factor(self, metric: float) -> float:
        """Return the factor by which a metric misses the target, at least 1."""
        ratio = self.on_falling_scale(metric) / self.target
        return max(ratio, 1 / ratio)

    def on_falling_scale(self, metric: float) -> float:
        """Return the metric, converted so that it falls with the value; the target is unchanged."""
        if self.limit < math.inf:
            ratio = (self.limit - metric) / (self.limit - self.target)
        elif self.rises:
            ratio = self.target / metric if metric > 0 else math.inf
        else:
            ratio = metric / self.target
        return self.target * min(max(ratio, ZERO_REPLACEMENT), 1 / ZERO_REPLACEMENT)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The value at which the metric meets its target.

    With other seeds, the answer lies between ``low`` and ``high`` with 95 % probability; None if
    the runs have no interval. ``is_open`` is True if one of these ends is not confirmed by a run
    beyond it, whose metric is on the expected side of the target. ``metric`` is the metric at the
    answer, from a run at this value or from a curve through ``fit_runs`` runs. The scatter of the
    runs about the curve is ``excess_scatter`` times as wide as the runs' own intervals. If
    ``at_limit`` is True, the value is the limit of the search; it meets the target if ``is_met``.
    """

    value: float
    low: float | None = None
    high: float | None = None
    is_open: bool = False
    integer: bool = True
    metric: Metric | None = None
    fit_runs: int = 0
    excess_scatter: float = 0.0
    at_limit: bool = False
    is_met: bool = True

    @property
    def undecided(self) -> bool:
        """Whether there is no interval, or it is too wide."""
        if self.at_limit or self.low is None or self.high is None:
            return not self.at_limit
        return self.is_open or self.high - self.low > self.max_width

    @property
    def max_width(self) -> float:
        """Largest width of the interval of a decided answer."""
        return max(2.0 if self.integer else 0.0, MAX_INTERVAL_WIDTH * self.value)


def search_from_start(runs: Probes, start: float) -> SearchResult:
    """Return the value at which the metric meets the target, beginning at a first value.

    Raises
    ------
    SimulationStopped, NotApplicable
        As :meth:`.Probes.measure`.
    """
    goal = runs.goal
    low, high = _bracket_target(runs, start)
    if low is None or high is None:
        value = low if high is None else high
        assert value is not None
        # All values are on one side of the crossing.
        is_met = goal.smallest if low is None else not goal.smallest
        return SearchResult(value, metric=runs.metrics[value], at_limit=True, is_met=is_met)
    return _search_in_bracket(runs, low, high)


def _bracket_target(runs: Probes, start: float) -> tuple[float | None, float | None]:
    """Move from the start in growing steps until the target is passed, or a limit is reached."""
    goal = runs.goal
    at, here = start, runs.measure(start)
    up = goal.lies_before_crossing(here)
    factor = min(goal.miss_factor(here), MAX_STEP_FACTOR) ** goal.power
    factor = min(max(factor, MIN_STEP_FACTOR), MAX_STEP_FACTOR)
    while (other := goal.step(at, factor, up=up)) != at:
        if goal.lies_before_crossing(runs.measure(other)) != up:
            return (at, other) if up else (other, at)
        at, factor = other, min(factor**2, MAX_STEP_FACTOR)
    return (at, None) if up else (None, at)


def _search_in_bracket(runs: Probes, low: float, high: float) -> SearchResult:
    """Return the value at which the metric meets the target in a bracket."""
    goal = runs.goal
    low, high = _narrow_bracket(runs, low, high)
    value = high if goal.smallest else low
    at_value = SearchResult(value, value, value, integer=goal.integer, metric=runs.metrics[value])
    if runs.is_exact:
        return at_value
    if _is_bracket_confirmed(runs, low, high):
        if goal.integer and high - low == 1:
            return at_value
        wide = _max_bracket_width(runs, low)
        ends = _neighbouring_value(goal, low, -wide), _neighbouring_value(goal, high, wide)
        return replace(at_value, low=ends[0], high=ends[1])
    window = _search_by_fit(runs, low, high)
    _simulate_near_answer(window)
    _enclose_interval(window)
    return _make_search_result(window)


def _make_search_result(window: _FitWindow) -> SearchResult:
    """Return the answer with its interval, limited to the range of runs with intervals."""
    goal = window.runs.goal
    known, near = probed_points(window.runs), window.nearest_runs()
    fitted = fit_target_crossing(near, goal.target)
    value = window.answer(fitted)
    left, right = (0.0, math.inf) if fitted is None else (fitted.low, fitted.high)
    below, above = _are_ends_enclosed(known, goal, left, right)
    left = max(left, known[0].value) if below else known[0].value
    right = min(right, known[-1].value) if above else known[-1].value
    if goal.integer:
        left, right = math.floor(left + 1e-9), math.ceil(right - 1e-9)
    value, is_allowed = _uncontradicted_value(window.runs, value, right if goal.smallest else left)
    is_open = not (below and above and is_allowed)
    result = SearchResult(value, min(left, value), max(right, value), is_open, goal.integer)
    if fitted is None:
        return result
    metric = goal.metric_from_falling_curve(*fitted.curve.band_at(value))
    return replace(result, metric=metric, fit_runs=len(near), excess_scatter=fitted.excess_scatter)


def _uncontradicted_value(runs: Probes, value: float, end: float) -> tuple[float, bool]:
    """Return the first value from the crossing to an end that its own run, if any, allows.

    A curve through all runs may meet the target at a value whose own run misses it. False if the
    runs allow no value.
    """
    goal = runs.goal
    while (own := runs.metrics.get(value)) is not None and not goal.is_met(own.value):
        step = max(1.0 if goal.integer else 0.0, MAX_BRACKET_WIDTH * value)
        further = goal.permitted_value(value + step if goal.smallest else value - step)
        if further == value or (further > end if goal.smallest else further < end):
            return value, False
        value = further
        simulate_if_possible(runs, value)
    return value, True


def _narrow_bracket(runs: Probes, low: float, high: float) -> tuple[float, float]:
    """Simulate in a bracket until it is tight, or the interval at an end contains the target.

    An overloaded run has no place on a curve, so the bracket also shrinks while it has such an end.
    """
    goal = runs.goal
    for _ in range(MAX_EXACT_STEPS if runs.is_exact else MAX_STEPS):
        is_overloaded = goal.worst_metric in {runs.metrics[low].value, runs.metrics[high].value}
        if high - low <= _max_bracket_width(runs, low) or not (
            runs.is_exact or is_overloaded or _are_ends_decisive(runs, low, high)
        ):
            break
        at = runs.measure(low), runs.measure(high)
        middle = goal.between(low, high, 0.5) if runs.is_exact else goal.interpolate(low, high, at)
        if goal.lies_before_crossing(runs.measure(middle)):
            low = middle
        else:
            high = middle
    return low, high


def _max_bracket_width(runs: Probes, low: float) -> float:
    share = EXACT_TOLERANCE if runs.is_exact else MAX_BRACKET_WIDTH
    return max(1.0 if runs.goal.integer else 0.0, share * low)


def _are_ends_decisive(runs: Probes, low: float, high: float) -> bool:
    """Return True if the metrics at both ends lie certainly on their side of the target."""
    first, last = (runs.goal.falling_curve_point(end, runs.metrics[end]) for end in (low, high))
    return first.is_certainly_above(runs.goal.target) and last.is_certainly_below(runs.goal.target)


def _is_bracket_confirmed(runs: Probes, low: float, high: float) -> bool:
    """Return True if a bracket is tight and the runs next to it, with other seeds, agree.

    Runs without an interval confirm nothing: their scatter about a curve gives the interval.
    """
    goal, wide = runs.goal, _max_bracket_width(runs, low)
    if high - low > wide or not _are_ends_decisive(runs, low, high):
        return False
    first, last = low, high
    for _ in range(CONFIRMING_RUNS):
        first, last = _neighbouring_value(goal, first, -wide), _neighbouring_value(goal, last, wide)
        simulate_if_possible(runs, first)
        simulate_if_possible(runs, last)
        near = [point for point in probed_points(runs) if first <= point.value <= last]
        for point in near:
            above = point.is_certainly_above(goal.target)
            decisive = above or point.is_certainly_below(goal.target)
            if point.low is None or not decisive or above != (point.value <= low):
                return False
    return True


def _neighbouring_value(goal: SearchGoal, value: float, step: float) -> float:
    """Return a value at a distance from another, within the limits."""
    if goal.integer:
        return goal.clamp(value + round(step))
    return goal.step(value, 1 + MAX_BRACKET_WIDTH, up=step > 0)


@dataclass(slots=True)
class _FitWindow:
    """Range of values around ``centre`` for a fit; ``radius`` applies to the value's logarithm."""

    runs: Probes
    centre: float
    radius: float

    def runs_in_window(self) -> list[MeasuredPoint]:
        """Return the runs in the window."""
        reach = MAX_FIT_DISTANCE * self.radius
        known = _fitted_points(self.runs)
        return [p for p in known if abs(math.log(p.value / self.centre)) <= reach]

    def nearest_runs(self) -> list[MeasuredPoint]:
        """Return the runs in the window, or the nearest ones if these are too few for a fit."""
        near = self.runs_in_window()
        if len(near) >= MIN_LINE_POINTS:
            return near
        known = _fitted_points(self.runs)
        return sorted(known, key=lambda p: abs(math.log(p.value / self.centre)))[:MIN_LINE_POINTS]

    def crossing(self) -> TargetCrossing | None:
        """Return the crossing of the target and a line fitted to the nearest runs."""
        return fit_target_crossing(self.nearest_runs(), self.runs.goal.target)

    def answer(self, found: TargetCrossing | None) -> float:
        """Return the permitted value nearest to a crossing, or to the centre if there is none."""
        return self.runs.goal.permitted_value(self.centre if found is None else found.value)

    def move(self) -> TargetCrossing | None:
        """Move towards the crossing by at most the radius, and adapt the radius."""
        found = self.crossing()
        if found is not None:
            times = min(
                max(found.value / self.centre, math.exp(-self.radius)), math.exp(self.radius)
            )
            self.centre *= times
        if len(self.runs_in_window()) >= MIN_RUNS:
            uncertainty = 1.0 if found is None else found.slope_uncertainty
            if uncertainty > MAX_SLOPE_UNCERTAINTY:
                self.radius *= RADIUS_FACTOR
            elif uncertainty < MAX_SLOPE_UNCERTAINTY / RADIUS_FACTOR**4:
                self.radius /= RADIUS_FACTOR
            self.radius = min(max(self.radius, MIN_RADIUS), MAX_RADIUS)
        # The metric must differ by more than its error; otherwise a random slope ends the search.
        noise = min(stated_log_error(self.nearest_runs()), MAX_RADIUS)
        self.radius = max(self.radius, noise)
        if self.runs.goal.integer:
            self.radius = max(self.radius, math.log1p(MIN_INTEGER_RADIUS / self.centre))
        return self.crossing()

    def unsimulated_value(self) -> float | None:
        """Return a value in the window that was not yet simulated, or None."""
        start = len(self.runs_in_window()) % len(RUN_POSITIONS)
        for share in (*RUN_POSITIONS[start:], *RUN_POSITIONS[:start]):
            value = self.runs.goal.permitted_value(self.centre * math.exp(share * self.radius))
            if value not in self.runs.metrics:
                return value
        if not self.runs.goal.integer:
            return None
        ends = (
            self.runs.goal.clamp(self.centre * math.exp(end)) for end in (-self.radius, self.radius)
        )
        low, high = map(round, ends)
        return next((n for n in range(low, high + 1) if n not in self.runs.metrics), None)


def _search_by_fit(runs: Probes, low: float, high: float) -> _FitWindow:
    """Simulate near the target until the interval is narrow or the number of runs sufficient."""
    radius = max(MIN_RADIUS, math.log(high / low) / 2)
    window = _FitWindow(runs, math.sqrt(low * high), radius)
    for _ in range(MAX_STEPS):
        found, count = window.move(), len(window.runs_in_window())
        is_narrow = (
            found is not None and found.high - found.low <= NARROW_INTERVAL_WIDTH * found.value
        )
        if count >= SUFFICIENT_RUNS or (count >= MIN_RUNS and is_narrow):
            break
        value = window.unsimulated_value()
        if value is None:
            break
        simulate_if_possible(runs, value)
    return window


def simulate_if_possible(runs: Probes, value: float) -> None:
    """Simulate a value for the curve; ignore a missing result."""
    try:
        runs.measure(value)
    except NotApplicable:
        return


def probed_points(runs: Probes) -> list[MeasuredPoint]:
    """Return the simulated values as points of a falling curve, by ascending value."""
    return [
        runs.goal.falling_curve_point(value, runs.metrics[value]) for value in sorted(runs.metrics)
    ]


def _fitted_points(runs: Probes) -> list[MeasuredPoint]:
    """Return the points of a fit: all except for overloaded runs, which have no metric."""
    worst = runs.goal.worst_metric
    return [each for each in probed_points(runs) if runs.metrics[each.value].value != worst]


def find_bracket(runs: Probes) -> tuple[float | None, float | None]:
    """Return the two neighbouring probes between which the target lies; None without a probe.

    All probes up to the first value lie before the crossing, and all from the second one behind it.
    """
    values = sorted(runs.metrics)
    before = [runs.goal.lies_before_crossing(runs.metrics[value].value) for value in values]
    count = next((n for n, each in enumerate(before) if not each), len(values))
    last = next((n for n, each in enumerate(reversed(before)) if each), len(values))
    low = values[count - 1] if count else None
    high = values[len(values) - last] if last else None
    return low, high


def _simulate_near_answer(window: _FitWindow) -> None:
    """Simulate the answer itself if no run is close to it."""
    found = window.crossing()
    value = window.answer(found)
    close = 0.0 if found is None else MAX_DISTANCE_FROM_RUN * min(found.high - found.low, value)
    if all(abs(known - value) > close for known in window.runs.metrics):
        simulate_if_possible(window.runs, value)


def _are_ends_enclosed(
    known: list[MeasuredPoint], goal: SearchGoal, left: float, right: float
) -> tuple[bool, bool]:
    """Return, per end, whether a run beyond it is on the expected side of the target."""
    target, sure = goal.target, [(p, p.low is not None and p.high is not None) for p in known]
    below = any(
        p.metric > target if has_interval else p.is_certainly_above(target)
        for p, has_interval in sure
        if p.value <= left
    )
    above = any(
        p.metric < target if has_interval else p.is_certainly_below(target)
        for p, has_interval in sure
        if p.value >= right
    )
    return below or 0 < left <= goal.minimum, above or math.inf > right >= goal.maximum


def _enclose_interval(window: _FitWindow) -> None:
    """Simulate further out until runs confirm both ends of the interval."""
    runs, goal = window.runs, window.runs.goal
    for factor in OUTWARD_FACTORS:
        known, fitted = probed_points(runs), window.crossing()
        if fitted is None or not fitted.high < math.inf:
            return
        closed = _are_ends_enclosed(known, goal, fitted.low, fitted.high)
        ends = zip(closed, (fitted.low, fitted.high), (False, True), strict=True)
        for is_closed, end, up in ends:
            if not is_closed:
                simulate_if_possible(runs, goal.step(goal.permitted_value(end), factor, up=up))
