"""What the paper says of its figures, asked of the simulated points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.papers.parallel.figures import (
    DROP_TAIL,
    RANDOM_30,
    RANDOM_100,
    SPREAD,
    described,
    points,
)
from tcpcast.papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_1_MISFED,
    ALGORITHM_2,
    PFTK,
    PFTK_MISFED,
    Prediction,
    errors,
    mean_absolute_error,
)
from tcpcast.papers.parallel.published import HIGHEST_LOSS, MOST_FLOWS
from tcpcast.papers.reproduction import Row, Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.papers.parallel.runs import Measured, Runs

HIGH_LOSS, LOW_LOSS = 0.05, 0.002
"""What is called high, from here on, and low, up to here."""
SEVERAL = 10
"""From so many flows on the two measures of loss differ much."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper: one model nearer than another over some points.

    Attributes
    ----------
    place, over
        Where it says so, and of which points.
    setting
        As in a figure.
    among
        Which of its points it is about.
    nearer, than
        The two models.
    """

    place: str
    over: str
    setting: str
    among: Callable[[Measured], bool]
    nearer: Prediction
    than: Prediction


@dataclass(frozen=True, slots=True)
class Tendency:
    """A sentence of the paper: a model overestimates, or underestimates, over some points.

    Attributes
    ----------
    place, over, setting, among
        As in :class:`Claim`.
    model
        The model.
    too_much
        Whether it is said to overestimate.
    """

    place: str
    over: str
    setting: str
    among: Callable[[Measured], bool]
    model: Prediction
    too_much: bool


def _high(seen: Measured) -> bool:
    return seen.point.loss >= HIGH_LOSS


def _highest(seen: Measured) -> bool:
    return seen.point.loss >= HIGHEST_LOSS


def _any(seen: Measured) -> bool:
    return seen.p > 0


def _several(seen: Measured) -> bool:
    return seen.point.flows >= SEVERAL


def _alone(seen: Measured) -> bool:
    return seen.point.flows == 1


def _most(seen: Measured) -> bool:
    return seen.point.flows == MOST_FLOWS


def _low(seen: Measured) -> bool:
    return seen.point.loss <= LOW_LOSS


def _few_events(seen: Measured) -> bool:
    return 0 < seen.p <= LOW_LOSS


CLAIMS = (
    Claim("Figure 16", "5 % loss and more", RANDOM_30, _high, ALGORITHM_1, PFTK),
    Claim("Figure 16", "10 % loss", RANDOM_30, _highest, ALGORITHM_1, PFTK),
    Claim("Figure 16", "10 % loss, 100 ms", RANDOM_100, _highest, ALGORITHM_1, PFTK),
    Claim("Figure 17", "all points", RANDOM_30, _any, ALGORITHM_2, PFTK_MISFED),
    Claim("Figure 17", "10 flows and more", RANDOM_30, _several, ALGORITHM_2, PFTK_MISFED),
    Claim("Figure 8", "10 flows and more", RANDOM_30, _several, ALGORITHM_1, ALGORITHM_1_MISFED),
    Claim("Section VII", "one flow", RANDOM_30, _alone, ALGORITHM_1, PFTK),
)

TENDENCIES = (
    Tendency("Section III-B", "100 flows, drop-tail", DROP_TAIL, _most, ALGORITHM_1, True),
    Tendency("Section III-B", "100 flows, round trips spread", SPREAD, _most, ALGORITHM_1, True),
    Tendency("Section V-A", "at most 0.2 %, 30 ms", RANDOM_30, _low, ALGORITHM_2, False),
    Tendency("Section V-A", "at most 0.2 %, 100 ms", RANDOM_100, _low, ALGORITHM_2, False),
    Tendency("Section V-B", "at most 0.2 %, drop-tail", DROP_TAIL, _few_events, ALGORITHM_2, False),
    Tendency("Section V-B", "at most 0.2 %, spread", SPREAD, _few_events, ALGORITHM_2, False),
)

SAID = (
    "Figure 16: n times PFTK has an error that grows with loss, algorithm 1 gives a good estimate "
    "even at 10 %.",
    "Figure 17: fed with the loss of the cumulative flow, algorithm 2 gives significantly better "
    "results than n times PFTK.",
    "Figure 8: algorithm 1 cannot be fed with the loss of the cumulative flow.",
    "Section VII: for one flow the new model is nearer than PFTK (said of measurements).",
    "Section III-B: at a drop-tail queue algorithm 1 slightly overestimates 100 flows. Sections "
    "V, V-B: algorithm 2 slightly underestimates where loss is low.",
)
"""The paper's sentences, shortened."""


def section(runs: Runs) -> Section:
    """Return the claims, each with what speaks for it and against."""
    found = Section(
        "Sections III, V and VII. What the paper says of it", ("where", "over", "error of")
    )
    for claim in CLAIMS:
        found.rows += _compared(claim, [s for s in _seen(runs, claim.setting) if claim.among(s)])
    for tendency in TENDENCIES:
        seen = [each for each in _seen(runs, tendency.setting) if tendency.among(each)]
        found.rows.append(_signed(tendency, seen))
    for setting in (RANDOM_30, RANDOM_100):
        found.rows += [_fitted(each) for each in _seen(runs, setting) if _highest(each)]
    found.remarks = [
        *SAID,
        "The paper has no numbers with these sentences. The first rows are mean absolute errors of "
        "two models on the same points; then errors with their sign, above 0 where the model says "
        "too much; then the T, fitted, with which algorithm 1 would be right at the highest loss. "
        "Its timeouts cost too much where T is several RTTs, as with a least timeout of 200 ms on "
        "the shorter path, and about as much as they should where T is hardly more than one.",
    ]
    return found


def _compared(claim: Claim, seen: list[Measured]) -> list[Row]:
    near, far = (mean_absolute_error(model, seen) for model in (claim.nearer, claim.than))
    better = np.abs(errors(claim.nearer, seen)) < np.abs(errors(claim.than, seen))
    verdict = "holds" if near < far else "does not hold"
    notes = (f"{verdict}; nearer in {int(better.sum())} of {len(seen)} points", "")
    return [
        Row((claim.place, claim.over, _named(model)), "%", None, 100 * error, note=note)
        for model, error, note in zip((claim.nearer, claim.than), (near, far), notes, strict=True)
    ]


def _signed(tendency: Tendency, seen: list[Measured]) -> Row:
    found = 100 * errors(tendency.model, seen)
    found = found[np.isfinite(found)]
    as_said = (found > 0) == tendency.too_much
    mean = float(found.mean())
    said = "too much" if tendency.too_much else "too little"
    verdict = "holds" if (mean > 0) == tendency.too_much else "does not hold"
    note = f"{verdict}; {said} in {int(as_said.sum())} of {found.size} points"
    return Row((tendency.place, tendency.over, _named(tendency.model)), "%", None, mean, note=note)


def _fitted(seen: Measured) -> Row:
    t0_s = fitted_t0_s(seen)
    note = f"measured {1e3 * seen.t0_s:.0f} ms = {seen.t0_s / seen.rtt_s:.1f} RTT; fitted"
    if np.isfinite(t0_s):
        note += f" {t0_s / seen.rtt_s:.1f} RTT"
    label = (
        "Figure 16",
        f"{described(seen)}, {1e3 * seen.point.delay_s:g} ms",
        "T with which algorithm 1 is right, fitted",
    )
    return Row(label, "ms", None, 1e3 * t0_s, note=note)


def fitted_t0_s(seen: Measured) -> float:
    """Return the T with which algorithm 1 gives the simulated rate, nan if no T does.

    From a thousandth of an RTT to a thousand RTTs; the rate falls with T.
    """

    def too_much(t0_s: float) -> bool:
        return ALGORITHM_1.rate_pps(replace(seen, t0_s=t0_s)) > seen.send_rate_pps

    low, high = 1e-3 * seen.rtt_s, 1e3 * seen.rtt_s
    if not too_much(low) or too_much(high):
        return float("nan")
    while high / low > 1 + 1e-9:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if too_much(middle) else (low, middle)
    return low


def _named(model: Prediction) -> str:
    return f"{model.model}, fed with {model.measure}"


def _seen(runs: Runs, setting: str) -> list[Measured]:
    return [runs[point] for point in points(setting, runs.effort)]
