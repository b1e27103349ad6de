"""What TCP-Engset is asked of a scenario with today's TCP: the nearest that it models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note
from tcpcast.scenario.quantities import write_window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.scenario import Scenario

PRESET = "engset-newreno"

ERROR = "up to 40 % below that of linux-cubic"
"""How far the model's mean rate was from simulations of linux-cubic: tests/agreement/
test_plan_todays.py."""


def nearest(scenario: Scenario) -> tuple[Scenario, str]:
    """Return the scenario that TCP-Engset answers, and why its answer is not to be trusted.

    Parameters
    ----------
    scenario
        The question.

    Returns
    -------
    tuple of Scenario and str
        With the paper's preset in place of today's TCP, from the same initial window up to the same
        receiver window, a drop-tail queue in place of any other and no random loss at the
        bottleneck; the scenario itself and "" where its stack is a classic one.
    """
    if len(scenario.populations) > 1 or not scenario.populations[0].tcp.is_todays:
        return scenario, ""
    people = scenario.populations[0]
    tcp: dict[str, Any] = {
        "stack": PRESET,
        "initial_window": people.tcp.initial_window,
        "receiver_window": write_window(people.tcp.receiver_window),
    }
    changes: dict[str, Any] = {"tcp": tcp}
    if scenario.classes:
        changes[f"class.{people.name}.tcp"] = tcp
    instead, others = _simpler(scenario)
    why = (
        f"it is of {PRESET}{others}, the nearest that TCP-Engset models to {people.tcp.stack}: the "
        f"mean rate is {ERROR}{' at a drop-tail queue' if others else ''}, so the simulation "
        "answers"
    )
    return scenario.with_changes(changes | instead), why


def by_simulation_alone(why: str) -> str:
    """Return the note of an answer without the model."""
    return f"By simulation alone: {why}."


def model_notes(warnings: Iterable[str], *, leads: bool) -> list[Note]:
    """Return warnings of the model; remarks if the simulation leads and they affect little."""
    return [Note(text, kind="model" if leads else "remark") for text in warnings]


def _simpler(scenario: Scenario) -> tuple[dict[str, Any], str]:
    """Return what a bottleneck has that the model has not, as changes and in words."""
    bottleneck, changes, words = scenario.network.bottleneck, {}, ""
    if bottleneck.queue != "droptail" and not bottleneck.polices:
        changes["network.bottleneck.queue"] = "droptail"
        words += f" behind drop-tail in place of {bottleneck.queue.kind}"
    if bottleneck.loss is not None:
        changes["network.bottleneck.loss"] = "0%"
        words += " without random loss"
    return changes, words
