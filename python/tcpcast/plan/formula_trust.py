"""Reasons not to trust the model of a plan at its answer, as reported by ``run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines import answer
from tcpcast.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tcpcast.scenario import Scenario


def formula_untrusted_reason(engine: str, scenario: Scenario, changes: Mapping[str, Any]) -> str:
    """Return the reason not to trust an engine at a plan's answer, or "".

    Parameters
    ----------
    engine
        The formula that answered.
    scenario, changes
        The scenario, and the changes that set the answer.
    """
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
