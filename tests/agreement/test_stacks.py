"""The table of engines and stacks against the behaviour of the engines."""

from typing import Any

import pytest
from tcpcast.engines import REGISTRY, answer
from tcpcast.engines.registry import (
    PATH_FAMILY,
    TRANSFERS_FAMILY,
    Formula,
    presets_covered_by_reno_model,
)
from tcpcast.engines.stack_support import (
    SupportLevel,
    find_omitted_formulas,
    get_stack_support,
    omitted_formulas_text,
)
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
ARRIVALS = {
    "network": {"rtt": "60ms", "bottleneck": LINK},
    "traffic": {
        "kind": "transfers",
        "size": "10pkt",
        "arrivals": {"distribution": "poisson", "rate": "20/s"},
    },
    "run": {"duration": "5s"},
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


def make_scenario(engine: str, stack: str) -> Scenario:
    """Return a scenario with the type of traffic that an engine supports."""
    family = REGISTRY[engine].family
    tables: dict[str, Any] = (
        ARRIVALS
        if engine == "erlang"
        else BULK
        if family == PATH_FAMILY
        else FILES
        if family == TRANSFERS_FAMILY
        else ON_OFF
    )
    return Scenario.from_dict({**tables, "tcp": {"stack": stack}})


# The kernel engine runs in real time; tests/emulation checks its refusals.
ENGINES = [name for name in REGISTRY if name not in {"packet", "trace", "kernel"}]


@pytest.mark.parametrize("stack", STACKS)
def test_table_agrees_with_each_engine_and_stack(stack: str) -> None:
    refused = {
        name: get_stack_support(name, stack).level is SupportLevel.REFUSED for name in ENGINES
    }
    result = {
        name: answer(make_scenario(name, stack), [name])[0].not_applicable is not None
        for name in ENGINES
    }
    assert result == refused


@pytest.mark.parametrize("stack", STACKS)
def test_every_verdict_except_applies_has_an_explanation(stack: str) -> None:
    for name in REGISTRY:
        result = get_stack_support(name, stack)
        assert bool(result.text) == (result.level is not SupportLevel.APPLIES)


@pytest.mark.parametrize("stack", ["linux-cubic", "rfc-newreno"])
def test_run_omits_formulas_that_the_stack_rejects(stack: str) -> None:
    for tables, family in ((BULK, PATH_FAMILY), (FILES, TRANSFERS_FAMILY)):
        scenario = Scenario.from_dict({**tables, "tcp": {"stack": stack}})
        names = [name for given in find_omitted_formulas(scenario).values() for name in given]
        assert names == [
            name
            for name, entry in REGISTRY.items()
            if isinstance(entry, Formula)
            and entry.family == family
            and get_stack_support(name, stack).level is SupportLevel.REFUSED
        ]


def test_suggested_stack_is_of_the_family_of_the_formula() -> None:
    engset, local_loop = find_omitted_formulas(make_scenario("engset", "linux-cubic"))
    assert engset.endswith('; use tcp.stack = "engset-newreno"')
    assert local_loop.endswith('; use tcp.stack = "max-plus-reno"')
    (reason,) = find_omitted_formulas(make_scenario("pftk", "linux-cubic"))
    assert reason.endswith('; use the cubic-response engine, or use tcp.stack = "linux-reno"')


def test_one_message_names_all_omitted_formulas() -> None:
    assert omitted_formulas_text(
        make_scenario("pftk", "linux-cubic"), make_scenario("short", "linux-cubic")
    ) == (
        "these formulas are omitted, because they model the window of Reno, not of "
        "linux-cubic: mathis, td-only, pftk-approx, "
        'pftk, parallel, parallel-cumulative (use tcp.stack = "linux-reno" or '
        'tcp.stack = "pftk-reno"); cardwell, erlang (use tcp.stack = "linux-reno")'
    )
    assert omitted_formulas_text(make_scenario("engset", "linux-cubic")) == (
        "these formulas are omitted, because they model the window of Reno, not of "
        "linux-cubic: engset, engset-sizes (use tcp.stack = "
        '"engset-newreno"); restart-sqrt, fair-share, overload-bound (use tcp.stack = '
        '"max-plus-reno")'
    )
    message = omitted_formulas_text(make_scenario("engset", "linux-cubic"), requested=["engset"])
    assert message.endswith(
        'cubic: engset-sizes (use tcp.stack = "engset-newreno"); restart-sqrt, fair-share, '
        'overload-bound (use tcp.stack = "max-plus-reno")'
    )
    assert not omitted_formulas_text(make_scenario("pftk", "linux-reno"))


@pytest.mark.parametrize("stack", ["engset-newreno", "linux-cubic"])
def test_formula_without_the_queue_is_not_attributed_to_the_stack(stack: str) -> None:
    rate = {"bucket": "10mbit", "burst": "15KB", "policer": True}
    scenario = make_scenario("engset", stack).with_changes(
        {"network.bottleneck": {"rate": rate}, "tcp.stack": stack}
    )
    (reason,) = find_omitted_formulas(scenario)
    assert "network.bottleneck.rate is a policer" in reason
    assert not omitted_formulas_text(scenario)


@pytest.mark.parametrize("engine", ["pftk", "engset", "restart-sqrt", "cardwell"])
def test_model_answers_with_the_suggested_stack(engine: str) -> None:
    entry = REGISTRY[engine]
    assert isinstance(entry, Formula)
    for stack in presets_covered_by_reno_model(entry):
        assert get_stack_support(engine, stack).level is not SupportLevel.REFUSED
