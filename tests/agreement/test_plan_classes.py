"""Plans without a formula: several classes, high targets, shares of files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tcpcast.answer import Answer, Metric, Note
from tcpcast.cli import main
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.plan import (
    Plan,
    plan_quality,
    plan_rate,
    plan_rate_quality,
    plan_users,
    verification,
)
from tcpcast.plan.varied_classes import select_varied_classes
from tcpcast.plan.verification import merge_run_warnings
from tcpcast.report.plan import plan_parts
from tcpcast.report.text import plain_text as as_text
from tcpcast.scenario import Scenario, load

if TYPE_CHECKING:
    from collections.abc import Callable

    Capture = pytest.CaptureFixture[str]
    Distribution = Callable[[Scenario], dict[str, float]]


def simulator(monkeypatch: pytest.MonkeyPatch, distribution: Distribution) -> list[Scenario]:
    """Replace the simulator by a function that gives the rate of each class."""
    scenarios: list[Scenario] = []

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del engines, options
        scenarios.append(scenario)
        rates = distribution(scenario)
        values = np.array(list(rates.values()))
        table: dict[str, Any] = {"name": np.array(list(rates)), "connection_rate_bps": values}
        table |= {
            "connection_rate_bps_low": values * 0.99,
            "connection_rate_bps_high": values * 1.01,
        }
        mean = float(values.mean())
        metrics = {"connection_rate_bps": Metric(mean, mean * 0.99, mean * 1.01)}
        tables = {"by_class": table} if len(rates) > 1 else {}
        share = {"share": np.array([0.9]), "goodput_bps": values[:1]}
        tables["file_goodput"] = share | {"low": values[:1] * 0.99, "high": values[:1] * 1.01}
        if len(rates) > 1:
            tables["file_goodput_by_class"] = {
                "name": np.array(list(rates)),
                "share": np.full(len(rates), 0.9),
                "goodput_bps": values,
                "low": values * 0.99,
                "high": values * 1.01,
            }
        return [Answer("packet", metrics=metrics, tables=tables)]

    monkeypatch.setattr(verification, "answer", run)
    return scenarios


def by_number(scenario: Scenario) -> dict[str, float]:
    """Near users share 30 Mbit/s with all; far users get two thirds of the near users' rate."""
    return {"near": 30e6 / scenario.senders, "far": 20e6 / scenario.senders}


def counts(scenario: Scenario) -> dict[str, int]:
    return {population.name: population.count for population in scenario.populations}


def test_all_classes_grow_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = simulator(monkeypatch, by_number)
    plan = plan_users(load("two-classes"), rate_bps=100e3)
    assert plan.simulated == pytest.approx(200, rel=0.02)
    assert plan.is_simulation_reported_first
    assert all(abs(counts(s)["near"] - 0.6 * s.senders) <= 1 for s in scenarios)
    total = round(plan.simulated or 0)
    near = round(0.6 * total)
    assert plan.recommendation == f"{total} sources are {near} of near, {total - near} of far."
    text = as_text(plan_parts(plan, load("two-classes")), 100)
    assert "All on/off classes grow in proportion (near 60, far 40)" in text
    assert "by the model" not in text
    body = plan.to_json()
    assert body["value"] is None
    assert body["leading"]["by"] == "simulation"
    assert not body["undecided"]


def test_slowest_class_counts_if_one_class_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = simulator(monkeypatch, by_number)
    plan = plan_users(load("two-classes"), rate_bps=100e3, grows="near")
    assert plan.simulated == pytest.approx(160, rel=0.02)
    assert {counts(s)["far"] for s in scenarios} == {40}
    assert plan.question == (
        "largest number of sources of class near with a mean rate of 100 kbit/s in each class"
    )
    assert (
        "Only class near grows; class far keeps 40 senders. The target applies to the class with "
        "the lowest mean rate." in plan.notes
    )


def test_split_adds_up_and_keeps_all_classes() -> None:
    growth = select_varied_classes(load("two-classes"), None, "plan users")
    for total in range(2, 300):
        split = growth.split(total)
        assert sum(split.values()) == total
        assert min(split.values()) >= 1


def test_classes_that_cannot_grow_are_rejected(capsys: Capture) -> None:
    with pytest.raises(DomainError, match=r'no class "middle".* write "near" or "far"'):
        plan_users(load("two-classes"), rate_bps=1e5, grows="middle")
    with pytest.raises(DomainError, match="no classes; omit the option"):
        plan_users(load("web-10mbit"), rate_bps=1e5, grows="near")
    with pytest.raises(NotApplicable, match='needs traffic of kind "on-off"'):
        plan_users(load("lossy-path"), rate_bps=1e5)
    arguments = ["plan", "users", "two-classes", "--share", "95%", "--above", "1mbit"]
    assert main([*arguments, "--class", "middle"]) == 2
    assert 'write "near" or "far"' in capsys.readouterr().err


@pytest.mark.parametrize(("grows", "sources", "far"), [(None, 200, 80), ("near", 160, 40)])
def test_classes_grow_until_the_slowest_files_miss_the_target(
    grows: str | None, sources: int, far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios = simulator(monkeypatch, by_number)
    plan = plan_quality(load("two-classes"), share=0.9, above_bps=100e3, grows=grows)
    assert plan.value == pytest.approx(sources, rel=0.03)
    assert plan.scenario is not None
    assert counts(plan.scenario)["far"] == pytest.approx(far, rel=0.05)
    assert any(
        note.endswith("The target applies to the class with the lowest goodput.")
        for note in plan.notes
    )
    assert "share_above" not in plan.tables["curve"]  # the table of all files has no classes
    assert min(s.senders for s in scenarios) == (2 if grows is None else 41)
    slowest = "90 % of the files of the slowest class reach"
    assert any(slowest in note for note in plan.notes)
    assert plan.quantity == "the goodput that 90 % of files of the slowest class reach"
    only = rf"even with one source of (each class|near), {slowest} only"
    with pytest.raises(DomainError, match=only):
        plan_quality(load("two-classes"), share=0.9, above_bps=20e6, grows=grows)


def test_rate_is_planned_for_slowest_files_of_several_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def distribution(scenario: Scenario) -> dict[str, float]:
        near = 5e6 / (1 + 50e6 / scenario.network.bottleneck.rate_bps)
        return {"near": near, "far": near / 2}

    simulator(monkeypatch, distribution)
    plan = plan_rate_quality(load("two-classes"), share=0.9, above_bps=0.5e6)
    assert plan.simulated == pytest.approx(12.5e6, rel=0.02)
    assert "The target applies to the class with the lowest goodput." in plan.notes
    both = load("two-classes")
    for of_class, name in ((None, "the slowest class"), ("near", "class near")):
        with pytest.raises(DomainError, match=f"90 % of the files of {name} reach only"):
            plan_rate_quality(both, share=0.9, above_bps=9e6, of_class=of_class)
        with pytest.raises(DomainError, match=f"an unlimited bottleneck gives {name} "):
            plan_rate(both, rate_bps=9e6, of_class=of_class)


def test_rate_is_planned_for_one_of_several_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(scenario: Scenario) -> dict[str, float]:
        near = 5e6 / (1 + 50e6 / scenario.network.bottleneck.rate_bps)
        return {"near": near, "far": near / 2}

    simulator(monkeypatch, distribution)
    both = load("two-classes")
    files = plan_rate_quality(both, share=0.9, above_bps=0.5e6, of_class="near")
    mean, slowest = (plan_rate(both, rate_bps=0.5e6, of_class=name) for name in ("near", None))
    assert files.simulated == mean.simulated == pytest.approx(50e6 / 9, rel=0.02)
    assert slowest.simulated == pytest.approx(12.5e6, rel=0.02)
    assert "The target applies to the goodput of class near." in files.notes
    assert "The target applies to the mean rate of class near." in mean.notes
    with pytest.raises(DomainError, match=r'no class "middle" .* write "near" or "far"'):
        plan_rate(both, rate_bps=0.5e6, of_class="middle")


def test_rate_above_the_formula_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: targets above engset-newreno's 13.7 Mbit/s were rejected; linux-cubic reaches
    them."""

    def distribution(scenario: Scenario) -> dict[str, float]:
        return {"": 15e6 / (1 + 20e6 / scenario.network.bottleneck.rate_bps)}

    simulator(monkeypatch, distribution)
    plan = plan_rate(load("office-50mbit"), rate_bps=14e6)
    assert plan.simulated == pytest.approx(280e6, rel=0.1)
    assert any("engset-newreno" in note and "at most 13.7 Mbit/s" in note for note in plan.notes)
    with pytest.raises(DomainError, match=r"16 Mbit/s cannot be reached: .* 15 Mbit/s"):
        plan_rate(load("office-50mbit"), rate_bps=16e6)


def test_rate_without_interval_rejects_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: two sources with too few files, by chance below the target, caused a refusal."""

    def distribution(scenario: Scenario) -> dict[str, float]:
        few = 0.01 if scenario.senders == 2 else 1.0
        return {name: few * rate for name, rate in by_number(scenario).items()}

    simulator(monkeypatch, distribution)
    simulated: Callable[..., list[Answer]] = vars(verification)["answer"]

    def run(scenario: Scenario, engines: list[str], options: Any) -> list[Answer]:
        answers = simulated(scenario, engines, options)
        if scenario.senders == 2:
            answers[0].tables["by_class"]["connection_rate_bps_high"][:] = math.nan
        return answers

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_users(load("two-classes"), rate_bps=400e3)
    assert plan.simulated == pytest.approx(50, rel=0.05)
    only = "cannot be reached: the slowest class of the smallest population gets only"
    with pytest.raises(DomainError, match=only):
        plan_users(load("two-classes"), rate_bps=20e6)


def test_refusals_name_the_command(capsys: Capture) -> None:
    quality = ["--share", "95%", "--above", "1mbit"]
    assert main(["plan", "rate", "lossy-path", *quality]) == 2
    assert 'plan rate needs traffic of kind "on-off"' in capsys.readouterr().err


def test_rate_is_planned_for_a_share_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(scenario: Scenario) -> dict[str, float]:
        return {"": 5e6 / (1 + 50e6 / scenario.network.bottleneck.rate_bps)}

    simulator(monkeypatch, distribution)
    office = load("office-50mbit")
    plan = plan_rate_quality(office, share=0.9, above_bps=1e6)
    assert plan.simulated == pytest.approx(12.5e6, rel=0.02)
    text = as_text(plan_parts(plan, office), 100)
    assert "The bottleneck rate with 90 % of files above 1 Mbit/s is" in text
    assert "the goodput that 90 % of files reach" in text
    with pytest.raises(DomainError, match=r"goodput of 9 Mbit/s cannot be reached"):
        plan_rate_quality(office, share=0.9, above_bps=9e6)


def test_warnings_of_runs_are_counted_by_kind() -> None:
    def short(seconds: int) -> Answer:
        note = Note(f"{seconds} s are needed", ("loss_ratio",), kind="check")
        other = Note("too short", ("jain_index",), kind="check")
        return Answer("packet", notes=[note, other])

    result = merge_run_warnings([short(70), short(80), Answer("packet")], ("loss_ratio",))
    assert list(map(str, result)) == ["in 2 of 3 runs: 70 s are needed"]
    assert isinstance(result[0], Note)
    assert result[0].kind == "check"


def test_three_worst_warnings_are_shown() -> None:
    kinds: Any = ("remark", "withheld", "check", "run")
    warnings: list[Note | str] = [Note(kind, kind=kind) for kind in kinds]
    warnings.append("the simulation is undecided: noise")
    plan = Plan("a question", 10, "sources", warnings=warnings)
    lines = as_text(plan_parts(plan, load("web-10mbit")), 100).splitlines()
    shown = [line for line in lines if line.startswith(" ! ")]
    assert [line[3:] for line in shown] == ["the simulation is undecided: noise", "run", "check"]
    assert lines[-1].strip() == "2 more warnings with --json"
    assert math.isfinite(plan.value)
