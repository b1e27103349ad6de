"""What TCP-Engset is asked of a scenario with today's TCP: the nearest that it models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note
from tcpcast.engines.formula.engset import engset_inputs, engset_warnings
from tcpcast.errors import NotApplicable
from tcpcast.plan.trust import untrusted_reason
from tcpcast.scenario.quantities import write_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.engines.formula.engset import EngsetInputs
    from tcpcast.models.engset import EngsetResult
    from tcpcast.plan.question import Question
    from tcpcast.plan.result import Plan
    from tcpcast.scenario import Scenario

PRESET = "engset-newreno"

ERROR = "up to 40 % below that of linux-cubic"
"""How far the model's mean rate was from simulations of linux-cubic: tests/agreement/
test_plan_modern.py."""


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
    if len(scenario.populations) > 1 or not scenario.populations[0].tcp.is_modern:
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


@dataclass(frozen=True, slots=True)
class Model:
    """TCP-Engset over the values of a plan; without ``inputs`` it does not cover the scenario.

    ``nearby`` is the reason why the simulation answers, "" if the model does. ``vary`` returns the
    inputs at a value.
    """

    scenario: Scenario
    inputs: EngsetInputs | None
    nearby: str
    vary: Callable[[EngsetInputs, float], EngsetInputs]

    def at(self, value: float) -> EngsetResult:
        """Return the model's result at a value; the model covers the scenario."""
        assert self.inputs is not None
        return self.vary(self.inputs, value).solve()

    def curve(
        self, read: Callable[[EngsetResult], float | None]
    ) -> Callable[[float], float | None] | None:
        """Return a figure of the result as a function of the value, None if there is no model."""
        return None if self.inputs is None else lambda value: read(self.at(value))

    @property
    def notes(self) -> list[str]:
        """Return the reason for an answer without the model."""
        return [] if self.inputs is not None else [f"By simulation alone: {self.nearby}."]

    def remarks(self, warnings: Iterable[str]) -> list[Note]:
        """Return warnings of the model; remarks if the simulation leads and they affect little."""
        return [Note(text, kind="remark" if self.nearby else "model") for text in warnings]

    def answer(
        self, plan: Plan, asked: Question, scenario: Scenario, value: float, doubt: str = ""
    ) -> None:
        """Put the model's answer into a plan, with its warnings and the reason for a doubt."""
        plan.value = value
        plan.warnings += self.remarks(engset_warnings(self.scenario, self.at(value)))
        plan.untrusted = (
            self.nearby or doubt or untrusted_reason("engset", scenario, asked.changes(value))
        )


def nearest_model(scenario: Scenario, vary: Callable[[EngsetInputs, float], EngsetInputs]) -> Model:
    """Return TCP-Engset for a scenario, or for the nearest one that it models."""
    modelled, nearby = nearest(scenario)
    try:
        return Model(modelled, engset_inputs(modelled), nearby, vary)
    except NotApplicable as fault:
        return Model(modelled, None, str(fault), vary)


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
