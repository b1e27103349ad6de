"""Errors of the models at the simulated points about which the paper makes a statement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric

from tcpcast_papers.parallel.figures import point_text
from tcpcast_papers.parallel.loss_events import INDICATIONS_COLUMN, measured_two_ways
from tcpcast_papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_1_CUMULATIVE_LOSS,
    ALGORITHM_2,
    ALGORITHM_2_FLOWS_HIT,
    PFTK,
    PFTK_CUMULATIVE_LOSS,
    Prediction,
    mean_absolute_error,
    relative_rate_errors,
)
from tcpcast_papers.parallel.published import model_errors
from tcpcast_papers.parallel.settings import points_of_setup
from tcpcast_papers.section_definition import Quantity, SectionDefinition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcpcast_papers.parallel.loss_events import MeasuredTwoWays
    from tcpcast_papers.parallel.points import Point
    from tcpcast_papers.parallel.runs import Measured, Runs
    from tcpcast_papers.printed import Line

MODELS = {
    f"{model.model}, fed with {model.measure}": model
    for model in (
        ALGORITHM_1,
        ALGORITHM_1_CUMULATIVE_LOSS,
        ALGORITHM_2,
        ALGORITHM_2_FLOWS_HIT,
        PFTK,
        PFTK_CUMULATIVE_LOSS,
    )
}

LIMITED_SETTINGS: dict[str, Callable[[Point], float]] = {
    "loss": lambda point: point.loss,
    "rate": lambda point: point.rate_mbit,
}
"""Settings that the columns ``lowest`` and ``highest`` of a claim can limit. The third quantity
with such limits, p, is a result."""

LOSS_RATIOS: dict[str, Callable[[Measured], float]] = {
    "p_r / p": lambda seen: seen.p_r / seen.p,
    "p / p_e": lambda seen: seen.p / seen.p_e,
}
"""Ratios of loss measures: lost packets per loss event of a flow, and loss events of single flows
per loss event of all flows combined."""

FITTED_TIMEOUT = "fitted timeout"
"""The claim about the timeout for which algorithm 1 is correct, with one row per point."""


@dataclass(frozen=True, slots=True)
class ClaimedModel:
    """A model in a claim, and the points to which the claim applies."""

    line: Line
    name: str
    points: tuple[Point, ...]
    runs: Runs

    @property
    def pairs(self) -> list[MeasuredTwoWays]:
        """Measurements, without those whose p is outside the limits of the claim."""
        pairs = measured_two_ways(self.runs, self.points)
        if self.line["among"] in LIMITED_SETTINGS:
            return pairs
        return [
            pair
            for pair in pairs
            if _is_within(pair.by_indications.p, self.line, "lowest", "highest")
        ]

    @property
    def seen(self) -> list[Measured]:
        """Measurements with loss events counted from lost packets."""
        return [pair.by_losses for pair in self.pairs]

    @property
    def by_indications(self) -> list[Measured]:
        """Measurements with loss indications."""
        return [pair.by_indications for pair in self.pairs]

    @property
    def model(self) -> Prediction:
        """The model."""
        return MODELS[self.name]

    @property
    def label(self) -> tuple[str, ...]:
        """The cells of the row."""
        place = self.line["place"]
        if self.name in LOSS_RATIOS:
            return place, self.line["over"], f"ratio {self.name}"
        if self.line["claim"] != FITTED_TIMEOUT:
            return place, self.line["over"], self.name
        (point,) = self.points
        over = f"{point_text(point)}, {1e3 * point.delay_s:g} ms"
        return place, over, "fitted T for which algorithm 1 is correct"


def _iter_claimed_models(runs: Runs) -> Iterator[ClaimedModel]:
    for line in model_errors():
        limited = LIMITED_SETTINGS.get(line["among"])
        points = tuple(
            point
            for point in points_of_setup(line["setting"], runs.sample_sizes)
            if _is_within(point.flows, line, "fewest", "most")
            and (limited is None or _is_within(limited(point), line, "lowest", "highest"))
        )
        groups = [(point,) for point in points] if line["claim"] == FITTED_TIMEOUT else [points]
        for group in groups:
            for name in filter(None, (line["model"], line["other"])):
                yield ClaimedModel(line, name, group, runs)


def _is_within(value: float, line: Line, low: str, high: str) -> bool:
    return line.value(low) <= value <= line.value(high)


def _nearer_note(case: ClaimedModel) -> str:
    if case.name == case.line["other"] or not case.line["other"]:
        return ""
    other = MODELS[case.line["other"]]
    better = np.abs(relative_rate_errors(case.model, case.seen)) < np.abs(
        relative_rate_errors(other, case.seen)
    )
    return f"nearer in {int(better.sum())} of {len(case.seen)} points"


def _finite_errors_percent(model: Prediction, seen: list[Measured]) -> np.ndarray:
    result = 100 * relative_rate_errors(model, seen)
    return result[np.isfinite(result)]


def _sign_note(case: ClaimedModel) -> str:
    result, claim = _finite_errors_percent(case.model, case.seen), case.line["claim"]
    sign = 1 if claim == "overestimates" else -1
    return f"{claim} in {int((sign * result > 0).sum())} of {result.size} points"


def _fitted_timeout_note(case: ClaimedModel) -> str:
    (seen,) = case.seen
    t0_s = fitted_t0_s(seen)
    fitted = f" {t0_s / seen.rtt_s:.1f} RTT" if np.isfinite(t0_s) else ""
    return f"measured {1e3 * seen.t0_s:.0f} ms = {seen.t0_s / seen.rtt_s:.1f} RTT; fitted{fitted}"


def fitted_t0_s(seen: Measured) -> float:
    """Return the T for which algorithm 1 gives the simulated rate, or nan.

    The search covers a thousandth of an RTT to a thousand RTTs; the rate falls with T.
    """

    def overestimates(t0_s: float) -> bool:
        return ALGORITHM_1.rate_pps(replace(seen, t0_s=t0_s)) > seen.send_rate_pps

    low, high = 1e-3 * seen.rtt_s, 1e3 * seen.rtt_s
    if not overestimates(low) or overestimates(high):
        return float("nan")
    while high / low > 1 + 1e-9:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if overestimates(middle) else (low, middle)
    return low


def _quantity_of_claims(
    forms: tuple[str, ...],
    computed: Callable[[ClaimedModel, list[Measured]], float],
    note: Callable[[ClaimedModel], str],
    unit: str = "%",
) -> Quantity[Runs, ClaimedModel]:
    return Quantity(
        (),
        lambda _, case: Metric(float(computed(case, case.seen))),
        condition=lambda case: case.line["claim"] in forms,
        note=lambda _, case: note(case),
        unit=unit,
        others=lambda _, case: (float(computed(case, case.by_indications)),),
    )


SECTION: SectionDefinition[Runs, ClaimedModel] = SectionDefinition(
    "Model errors. Points of the statements in Sections III, V and VII",
    ("where", "over", "error of"),
    "%",
    lambda case: case.label,
    _iter_claimed_models,
    (
        _quantity_of_claims(
            ("nearer", "error"),
            lambda case, seen: 100 * mean_absolute_error(case.model, seen),
            _nearer_note,
        ),
        _quantity_of_claims(
            ("overestimates", "underestimates"),
            lambda case, seen: _finite_errors_percent(case.model, seen).mean(),
            _sign_note,
        ),
        _quantity_of_claims(
            ("ratio",),
            lambda case, seen: float(np.mean([LOSS_RATIOS[case.name](each) for each in seen])),
            lambda _: "",
            "ratio",
        ),
        _quantity_of_claims(
            (FITTED_TIMEOUT,),
            lambda _, seen: 1e3 * fitted_t0_s(seen[0]),
            _fitted_timeout_note,
            "ms",
        ),
    ),
    notes=lambda _: [
        "The claims of the paper are tested on these rows. If the note contains a number of nearer "
        "points, the row is a mean absolute error of one of two models for the same points. If the "
        "note contains a number of overestimates or underestimates, the row is a mean error with "
        "sign. The ratio p_r / p is the number of lost packets per loss event of a flow. The rows "
        "with jitter have an exponential delay behind the shared link, which breaks the "
        "synchronisation of 10 and of 100 flows. In the rows fed with p_e and p, algorithm 2 uses "
        "the number of flows that lose packets in an event as j. The last rows are the values of T "
        "for which algorithm 1 is correct at the highest loss. The cost of timeouts in the model "
        "is too high if T is several RTTs, as with a minimum timeout of 200 ms on the shorter "
        "path, and about right if T is close to one RTT.",
    ],
    others=(INDICATIONS_COLUMN,),
)
