"""Random predictions and plans: each front end states the same verdict, from the same numbers."""

from __future__ import annotations

import json
import math
import re
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import tcpcast
from answer_properties import text_violations
from tcpcast.options.path_scenario import ask_path, make_path_scenario
from tcpcast.plan import solve
from tcpcast.process.errors import TcpcastError
from tcpcast.report.html import html_page
from tcpcast.report.json import encode
from tcpcast.report.markdown import markdown_page
from tcpcast.report.plan import plan_document, plan_parts, plan_verdict
from tcpcast.report.text import plain_text
from tcpcast.scenario import load
from verdict_numbers import wrong_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.plan.result import Plan
    from tcpcast.scenario import Scenario

MAX_WALL = {"run.max_wall": "2s"}
STACKS = ("linux-cubic", "linux-reno", "linux-bbr", "rfc-newreno", "pftk-reno")
SIZES = ("10KB", "100KB", "1MB", "20MB", "1GB")
SEEDS = [
    range(8),
    *(pytest.param(range(n, n + 50), marks=pytest.mark.long) for n in (0, 50, 100, 150)),
]
"""Short, and as a long test 200 questions."""


def random_path(draw: Random) -> dict[str, Any]:
    """Return random options of `predict`, in their usual ranges."""
    rate = f"{10 ** draw.uniform(0, 3.5):.3g}mbit"
    path = {"rtt": f"{10 ** draw.uniform(0, 2.3):.3g}ms", "stack": draw.choice(STACKS)}
    path |= {"rate": rate, "buffer": f"{10 ** draw.uniform(-1, 1):.2g}bdp"}
    path |= {"loss": f"{10 ** draw.uniform(-3, 1):.2g}%"} if draw.random() < 0.6 else {}
    path |= {"flows": str(draw.randint(2, 20))} if draw.random() < 0.3 else {}
    return path | ({"size": draw.choice(SIZES)} if draw.random() < 0.4 else {})


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_predictions_have_one_verdict(seeds: range) -> None:
    found = []
    for seed in seeds:
        path = random_path(Random(f"path {seed}"))
        try:
            question = ask_path(path, changes=MAX_WALL)
        except TcpcastError:  # one packet takes longer than the RTT, for example
            continue
        answers = tcpcast.run(question.scenario, question.engines)
        answers += question.refused
        found += [(seed, path, text) for text in text_violations(question.scenario, answers)]
    assert found == []


def random_plan(draw: Random) -> tuple[str, Scenario, dict[str, Any]]:
    """Return a random plan: question, scenario and target."""
    question = draw.choice(("buffer", "users", "rate", "streams", "max-loss"))
    if question in {"streams", "max-loss"}:
        path = random_path(draw) | {"loss": f"{10 ** draw.uniform(-2, 0):.2g}%"}
        scenario = make_path_scenario(path)
        if question == "streams":
            return question, scenario, {"utilisation": draw.uniform(0.3, 0.97)}
        share = draw.uniform(0.05, 0.5)
        return question, scenario, {"goodput_bps": share * scenario.network.bottleneck.rate_bps}
    scenario = load("web-10mbit").with_changes({"traffic.sources": draw.randint(20, 100)})
    stack = draw.choice(("engset-newreno", "linux-cubic"))
    scenario = scenario.with_changes({"tcp.stack": stack, "run.duration": "60s"})
    if question == "buffer":
        return question, scenario, {"loss": draw.uniform(0.002, 0.05)}
    return question, scenario, {"rate_bps": draw.uniform(100e3, 500e3)}


def plan_violations(plan: Plan, scenario: Scenario) -> Iterator[str]:
    """Check the verdict of a plan in all forms, and that its numbers are those of the document."""
    verdict, findings = plan_verdict(plan), plan.findings
    if wrong := wrong_numbers(verdict, findings):
        yield f"the verdict has other numbers than its findings: {', '.join(wrong)}"
    document = json.loads(encode(plan.to_json()))
    given = [document["value"], document["low"], document["high"], *document["bracket"].values()]
    for each in findings:
        numbers = (each.value.value, each.value.low, each.value.high)
        yield from (
            f"the document lacks {number}"
            for number in numbers
            if number is not None and math.isfinite(number) and number not in given
        )
    page = plan_document(plan, scenario, "tcpcast plan", "plan")
    shown = {
        "text": plain_text(plan_parts(plan, scenario)),
        "HTML": re.sub(r"&[a-z#\d]+;|<[^>]*>", "", html_page(page, "")),
        "Markdown": markdown_page(page, ""),
    }
    for form, text in shown.items():
        if re.sub(r"\W+", "", verdict) not in re.sub(r"\W+", "", text):
            yield f"{form} lacks the verdict"
    if plan.value is not None:
        yield from contradicting_runs(plan)


def contradicting_runs(plan: Plan) -> Iterator[str]:
    """Yield the run at the answer if it misses the target."""
    table = plan.tables["values"]
    at_answer = table[plan.column] == plan.value
    is_minimum = plan.metric.endswith("bps") or plan.metric == "utilisation"
    for metric in table[plan.metric][at_answer]:
        is_met = metric >= plan.target if is_minimum else metric <= plan.target
        if not is_met and not math.isclose(metric, plan.target, rel_tol=1e-6):
            yield f"{plan.metric} is {metric} at the answer {plan.value}"


@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_plans_have_one_verdict(seeds: range) -> None:
    found = []
    for seed in seeds:
        try:
            question, scenario, target = random_plan(Random(f"plan {seed}"))
            is_engset = scenario.populations[0].tcp.stack == "engset-newreno"
            engine = "engset" if is_engset and seed % 2 else "packet"
            plan = solve(question, scenario.with_changes(MAX_WALL), engine=engine, **target)
        except TcpcastError:  # an RTT below one packet's time, or no value reaches the target
            continue
        shown = plan_violations(plan, plan.scenario or scenario)
        found += [(seed, question, target, text) for text in shown]
    assert found == []
