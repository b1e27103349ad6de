"""TCP-Engset for scenarios with modern TCP: the most similar scenario that it models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note
from tcpcast.engines.formula.engset import engset_inputs, engset_warnings
from tcpcast.errors import NotApplicable
from tcpcast.plan.formula_trust import formula_untrusted_reason
from tcpcast.scenario.quantities import write_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.engines.formula.engset import EngsetInputs
    from tcpcast.models.engset import EngsetResult
    from tcpcast.plan.inverse_question import InverseQuestion
    from tcpcast.plan.result import Plan
    from tcpcast.scenario import Scenario

CLASSIC_PRESET = "engset-newreno"

MODEL_ERROR_TEXT = "up to 40 % below the mean rate in a simulation of linux-cubic"
"""Error of the model's mean rate against simulations of linux-cubic, from tests/agreement/
test_plan_modern.py."""


def make_classic_scenario(scenario: Scenario) -> tuple[Scenario, str]:
    """Return a similar scenario that TCP-Engset models, and the reason not to trust its answer.

    Parameters
    ----------
    scenario
        The scenario of the plan.

    Returns
    -------
    tuple of Scenario and str
        The scenario with the paper's preset instead of modern TCP, the same initial and receiver
        windows, a drop-tail queue and no random loss at the bottleneck. For classic stacks, the
        unchanged scenario and "".
    """
    if len(scenario.populations) > 1 or not scenario.populations[0].tcp.is_modern:
        return scenario, ""
    people = scenario.populations[0]
    tcp: dict[str, Any] = {
        "stack": CLASSIC_PRESET,
        "initial_window": people.tcp.initial_window,
        "receiver_window": write_window(people.tcp.receiver_window),
    }
    changes: dict[str, Any] = {"tcp": tcp}
    if scenario.classes:
        changes[f"class.{people.name}.tcp"] = tcp
    instead, others = _changes_to_supported_bottleneck(scenario)
    why = (
        f"the formula does not cover {people.tcp.stack}. For the similar stack "
        f"{CLASSIC_PRESET}{others}, its mean rate is "
        f"{MODEL_ERROR_TEXT}{' at a drop-tail queue' if others else ''}, so the "
        "answer is simulated"
    )
    return scenario.with_changes(changes | instead), why


@dataclass(frozen=True, slots=True)
class EngsetModel:
    """TCP-Engset as a function of a plan's value; ``inputs`` is None for unsupported scenarios.

    ``simulation_reason`` is the reason why the simulation answers, or "" if the model does.
    ``vary`` returns the inputs at a value.
    """

    scenario: Scenario
    inputs: EngsetInputs | None
    simulation_reason: str
    vary: Callable[[EngsetInputs, float], EngsetInputs]

    def solve_at(self, value: float) -> EngsetResult:
        """Return the model's result at a value; requires ``inputs``."""
        assert self.inputs is not None
        return self.vary(self.inputs, value).solve()

    def metric_curve(self, name: str) -> Callable[[float], float | None]:
        """Return a function of the value: an attribute of the result; None if there is no model."""
        return lambda value: None if self.inputs is None else getattr(self.solve_at(value), name)

    @property
    def notes(self) -> list[str]:
        """Return a note with the reason if the model cannot answer."""
        return [] if self.inputs is not None else [f"By simulation only: {self.simulation_reason}."]

    def warnings_as_notes(self, warnings: Iterable[str]) -> list[Note]:
        """Return warnings of the model as notes, of kind "remark" if the simulation answers."""
        return [
            Note(text, kind="remark" if self.simulation_reason else "model") for text in warnings
        ]

    def set_answer(
        self,
        plan: Plan,
        question: InverseQuestion,
        scenario: Scenario,
        value: float,
        untrusted: str = "",
    ) -> None:
        """Add the model's answer to a plan, with warnings and the reason not to trust it."""
        plan.value = value
        plan.warnings += self.warnings_as_notes(
            engset_warnings(self.scenario, self.solve_at(value))
        )
        plan.untrusted = (
            self.simulation_reason
            or untrusted
            or formula_untrusted_reason("engset", scenario, question.changes(value))
        )


def make_engset_model(
    scenario: Scenario, vary: Callable[[EngsetInputs, float], EngsetInputs]
) -> EngsetModel:
    """Return TCP-Engset for a scenario, or for the most similar scenario that it models."""
    modelled, simulation_reason = make_classic_scenario(scenario)
    try:
        return EngsetModel(modelled, engset_inputs(modelled), simulation_reason, vary)
    except NotApplicable as error:
        return EngsetModel(modelled, None, str(error), vary)


def _changes_to_supported_bottleneck(scenario: Scenario) -> tuple[dict[str, Any], str]:
    """Return changes that remove unsupported properties of the bottleneck, and a description."""
    bottleneck, changes, text = scenario.network.bottleneck, {}, ""
    if bottleneck.queue != "droptail" and not bottleneck.is_policer:
        changes["network.bottleneck.queue"] = "droptail"
        text += f" with drop-tail instead of {bottleneck.queue.kind}"
    if bottleneck.loss is not None:
        changes["network.bottleneck.loss"] = "0%"
        text += " without random loss"
    return changes, text
