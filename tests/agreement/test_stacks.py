"""The table of engines and stacks compared with the behaviour of the engines."""

from __future__ import annotations

from typing import Any

import pytest
from tcpcast.engines import REGISTRY, answer
from tcpcast.engines.registry import PATH, TRANSFERS, Formula, supported_presets
from tcpcast.engines.stacks import Verdict, fit, omitted_models, omitted_models_text
from tcpcast.scenario import Scenario
from tcpcast.scenario.tcp import STACKS

LINK = {"rate": "20mbit", "buffer": "100pkt"}
LOSSY = {"rtt": "60ms", "bottleneck": {**LINK, "loss": "1%"}}
BULK = {"network": LOSSY, "traffic": {"kind": "bulk", "flows": 2}, "run": {"duration": "5s"}}
FILES = {
    "network": LOSSY,
    "traffic": {"kind": "transfers", "size": ["10pkt"], "count": 20},
    "run": {},
}
ON_OFF = {
    "network": {"rtt": "60ms", "bottleneck": {**LINK, "rate": "2mbit"}},
    "traffic": {
        "kind": "on-off",
        "sources": 20,
        "off": {"distribution": "exponential", "mean": "1s"},
        "size": {"distribution": "exponential", "mean": "12pkt"},
    },
    "run": {"duration": "5s", "warmup": "1s"},
}


def question(engine: str, stack: str) -> Scenario:
    """Return a scenario of the traffic that an engine takes."""
    family = REGISTRY[engine].family
    tables: dict[str, Any] = BULK if family == PATH else FILES if family == TRANSFERS else ON_OFF
    return Scenario.from_dict({**tables, "tcp": {"stack": stack}})


# The kernel answers in real time; what it refuses is in tests/emulation.
ASKED = [name for name in REGISTRY if name not in {"packet", "trace", "kernel"}]


@pytest.mark.parametrize("stack", STACKS)
def test_fit_predicts_refusals(stack: str) -> None:
    told = {name: fit(name, stack).verdict is Verdict.REFUSED for name in ASKED}
    found = {
        name: answer(question(name, stack), [name])[0].not_applicable is not None for name in ASKED
    }
    assert found == told


@pytest.mark.parametrize("stack", STACKS)
def test_every_verdict_except_applies_has_text(stack: str) -> None:
    for name in REGISTRY:
        found = fit(name, stack)
        assert bool(found.text) == (found.verdict is not Verdict.APPLIES)


@pytest.mark.parametrize("stack", ["linux-cubic", "rfc-newreno"])
def test_run_omits_formulas_that_refuse_the_stack(stack: str) -> None:
    for tables, family in ((BULK, PATH), (FILES, TRANSFERS)):
        scenario = Scenario.from_dict({**tables, "tcp": {"stack": stack}})
        names = [name for given in omitted_models(scenario).values() for name in given]
        assert names == [
            name
            for name, entry in REGISTRY.items()
            if isinstance(entry, Formula)
            and entry.family == family
            and fit(name, stack).verdict is Verdict.REFUSED
        ]


def test_suggested_stack_matches_family() -> None:
    engset, loops = omitted_models(question("engset", "linux-cubic"), suggestions=True)
    assert engset.endswith('; write tcp.stack = "engset-newreno"')
    assert loops.endswith('; write tcp.stack = "max-plus-reno"')
    (reason,) = omitted_models(question("pftk", "linux-cubic"), suggestions=True)
    assert reason.endswith('; use engine cubic-response, or write tcp.stack = "linux-reno"')


def test_one_sentence_lists_omitted_models() -> None:
    assert omitted_models_text(
        question("pftk", "linux-cubic"), question("short", "linux-cubic")
    ) == (
        "left out as models of Reno's window, not linux-cubic's: mathis, td-only, pftk-approx, "
        'pftk, parallel, parallel-cumulative (use tcp.stack = "linux-reno" or "pftk-reno"); '
        'cardwell (use tcp.stack = "linux-reno")'
    )
    assert omitted_models_text(question("engset", "linux-cubic")) == (
        "left out as models of Reno's window, not linux-cubic's: engset (use tcp.stack = "
        '"engset-newreno"); restart-sqrt, fair-share, overload-bound (use tcp.stack = '
        '"max-plus-reno")'
    )
    asked = omitted_models_text(question("engset", "linux-cubic"), asked=["engset"])
    assert asked.endswith(
        'cubic\'s: restart-sqrt, fair-share, overload-bound (use tcp.stack = "max-plus-reno")'
    )
    assert not omitted_models_text(question("pftk", "linux-reno"))


@pytest.mark.parametrize("stack", ["engset-newreno", "linux-cubic"])
def test_formula_without_queue_is_not_omitted_for_stack(stack: str) -> None:
    rate = {"bucket": "10mbit", "burst": "15KB", "policer": True}
    scenario = question("engset", stack).with_changes(
        {"network.bottleneck": {"rate": rate}, "tcp.stack": stack}
    )
    (reason,) = omitted_models(scenario)
    assert "network.bottleneck.rate is a policer" in reason
    assert not omitted_models_text(scenario)


@pytest.mark.parametrize("engine", ["pftk", "engset", "restart-sqrt", "cardwell"])
def test_model_answers_for_suggested_stack(engine: str) -> None:
    entry = REGISTRY[engine]
    assert isinstance(entry, Formula)
    for stack in supported_presets(entry):
        assert fit(engine, stack).verdict is not Verdict.REFUSED
