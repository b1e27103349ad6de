"""With other seeds, the answer of a plan lies in its interval, also with short runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tcpcast.plan import (
    plan_buffer,
    plan_max_loss,
    plan_quality,
    plan_rate,
    plan_streams,
    plan_users,
)
from tcpcast.scenario import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

SEEDS = range(1, 21)
SHORT = {"run.duration": "60s"}

QUESTIONS: dict[str, tuple[str, dict[str, Any], Callable[[Scenario], Plan]]] = {
    "buffer": ("office-50mbit", SHORT, lambda s: plan_buffer(s, loss=0.01)),
    "users": ("office-50mbit", SHORT, lambda s: plan_users(s, rate_bps=3e6)),
    "rate": ("office-50mbit", SHORT, lambda s: plan_rate(s, rate_bps=3e6)),
    "share": ("office-50mbit", SHORT, lambda s: plan_quality(s, share=0.95, above_bps=1e6)),
    "bend": (
        "web-10mbit",
        {"traffic.sources": 98},
        lambda s: plan_buffer(s, loss=0.01, verify=True),
    ),
    "loss": ("lossy-path", {}, lambda s: plan_max_loss(s, goodput_bps=5e6, verify=True)),
    "streams": ("lossy-path", {}, lambda s: plan_streams(s, verify=True)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", QUESTIONS)
def test_interval_contains_the_answers_of_other_seeds(name: str) -> None:
    file, changes, plan = QUESTIONS[name]
    plans = [plan(load(file).with_changes({**changes, "run.seed": seed})) for seed in SEEDS]
    result = [_answer(plan) for plan in plans]
    decided = [answer for answer in result if answer is not None]
    assert len(decided) >= 8
    values, lows, highs = np.array(decided, dtype=float).T
    is_covered = (lows[:, None] <= values) & (values <= highs[:, None])
    others = ~np.eye(len(values), dtype=bool)
    assert is_covered[others].mean() > 0.92


def _answer(plan: Plan) -> tuple[float, float | None, float | None] | None:
    """Return the answer by simulation and its interval, or None if it is undecided."""
    if plan.simulated is not None:
        return plan.simulated, plan.simulated_low, plan.simulated_high
    if plan.engine and not plan.undecided:
        return plan.value, plan.low, plan.high
    return None
