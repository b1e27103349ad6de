"""Whether the model behind a plan is trusted at its answer: what ``run`` marks there counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines import answer
from tcpcast.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tcpcast.scenario import Scenario


def untrusted_reason(engine: str, scenario: Scenario, changes: Mapping[str, Any]) -> str:
    """Return why an engine is not to be trusted at a plan's answer, "" where it is.

    Parameters
    ----------
    engine
        The formula that answered.
    scenario, changes
        The question, and what puts the answer into it.
    """
    try:
        there = scenario.with_changes(changes)
    except ScenarioError:  # larger than any scenario may ask for
        return ""
    (found,) = answer(there, [engine])
    marked = [name for name, metric in found.metrics.items() if not metric.trusted]
    if not marked:
        return ""
    return (
        f"outside the stated range of {engine}: with this answer its {', '.join(marked)} "
        f"{'are' if len(marked) > 1 else 'is'} not trusted"
    )
