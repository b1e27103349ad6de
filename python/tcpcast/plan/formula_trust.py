"""Reasons not to trust the model of a plan at its answer, as reported by ``run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines import answer
from tcpcast.errors import ScenarioError
from tcpcast.plan.planned_path import MAX_VALIDATED_LOSS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tcpcast.scenario import Scenario


def formula_untrusted_reason(
    engine: str, scenario: Scenario, changes: Mapping[str, Any], *, loss_ratio: float = 0.0
) -> str:
    """Return the reason not to trust an engine at a plan's answer, or "".

    Parameters
    ----------
    engine
        The formula that answered.
    scenario, changes
        The scenario, and the changes that set the answer.
    loss_ratio
        Loss in a model of loss.
    """
    if loss_ratio > MAX_VALIDATED_LOSS:
        return "the models are validated only up to a loss of 10 %"
    try:
        there = scenario.with_changes(changes)
    except ScenarioError as error:
        return f"a scenario with this answer is not valid: {error}"
    (found,) = answer(there, [engine])
    marked = [name for name, metric in found.metrics.items() if not metric.trusted]
    if not marked:
        return ""
    return (
        f"the answer is outside the stated range of {engine}, so {', '.join(marked)} "
        f"{'are' if len(marked) > 1 else 'is'} not trusted"
    )
