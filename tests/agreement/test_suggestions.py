"""Suggestions of refusals: after a suggested change, the engine accepts the scenario."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from tcpcast.engines import REGISTRY, RunOptions, answer
from tcpcast.engines.formula.engset import engset_inputs
from tcpcast.engines.packet import check_packet_sizes
from tcpcast.engines.registry import Formula
from tcpcast.process.errors import NotApplicable, ScenarioError, Suggestion, TcpcastError
from tcpcast.scenario import Scenario, get_packaged_names, load
from tcpcast.scenario.tcp import STACKS

MAX_STEPS = 3
"""Maximum number of suggestions that a request with several obstacles needs."""
SHORT: dict[str, Any] = {"run.duration": "20s", "run.warmup": "1s", "run.max_wall": "1s"}
PATH: dict[str, Any] = {"rtt": "50ms", "bottleneck": {"rate": "2mbit", "buffer": "20pkt"}}
DISTRIBUTION = {"distribution": "exponential", "mean": "1s"}
TRAFFIC: dict[str, dict[str, Any]] = {
    "bulk": {"kind": "bulk", "flows": 2},
    "on-off": {
        "kind": "on-off",
        "sources": 10,
        "off": DISTRIBUTION,
        "size": {"distribution": "exponential", "mean": "12pkt"},
    },
    "transfers": {"kind": "transfers", "size": ["1pkt", "8pkt"], "count": 20},
    "arrivals": {
        "kind": "transfers",
        "size": {"distribution": "exponential", "mean": "12pkt"},
        "arrivals": {"distribution": "poisson", "rate": "5/s"},
    },
}
NETWORKS: dict[str, dict[str, Any]] = {
    "codel": {"network.bottleneck.queue": "codel"},
    "red": {"network.bottleneck.queue": "red"},
    "fq": {"network.bottleneck.queue": "fq"},
    "fq_codel": {"network.bottleneck.queue": "fq_codel"},
    "lossy": {"network.bottleneck.loss": "1%"},
    "hardly lossy": {"network.bottleneck.loss": 1e-15},
    "ends lose": {"network.ingress.loss": "1%", "network.ingress.rate": "100mbit"},
    "own buffers": {"network.egress": {"rate": "1mbit", "buffer": "10pkt"}},
    "jitter": {"network.jitter": {"distribution": "exponential", "mean": "1ms"}},
    "return": {"network.return": {"rate": "1mbit"}},
    "lost acks": {"network.ack_loss": "1%"},
    "policer": {"network.bottleneck.rate": {"bucket": "2mbit", "burst": "15KB", "policer": True}},
    "no rate": {"network.bottleneck": {"loss": "1%"}},
    "window": {"tcp.receiver_window": 2},
    "long packets": {"network.packet": "9000B"},
    "probes": {"probes.flows": [1]},
    "precision": {"run.precision": "20%"},
}


def variants() -> Iterator[tuple[str, Scenario]]:
    """Yield packaged scenarios, and traffic by stack, network and classes."""
    for name in get_packaged_names():
        yield name, load(name)
    for kind, traffic in TRAFFIC.items():
        base = {"network": PATH, "traffic": traffic, "run": {"seed": 1}}
        if kind != "transfers":
            base["run"]["duration"] = "2s"
        plain = Scenario.from_dict(base)
        for stack in STACKS:
            yield f"{kind} {stack}", plain.with_changes({"tcp.stack": stack})
        for stack in ("linux-cubic", "engset-newreno", "max-plus-reno"):
            for name, changes in NETWORKS.items():
                try:
                    scenario = plain.with_changes({"tcp.stack": stack, **changes})
                except TcpcastError:
                    continue  # no such scenario
                yield f"{kind} {stack} {name}", scenario
        for own in ({"stack": "linux-bbr"}, {"stack": "rfc-reno"}, {"timestamps": False}):
            counts = {"bulk": {"flows": 1}, "on-off": {"sources": 5}}.get(kind)
            if counts is not None:
                classes = [{"name": "a", **counts}, {"name": "b", "tcp": own, **counts}]
                common = {k: v for k, v in traffic.items() if k not in counts}
                tables = {**base, "traffic": common, "class": classes}
                yield f"{kind} classes {own}", Scenario.from_dict(tables)


def refusal_of(name: str, scenario: Scenario, feed: str = "") -> NotApplicable | None:
    """Return the refusal of an engine; engines that simulate or measure only check the scenario."""
    try:
        if name in {"kernel", "mean-field", "fixed-point"}:
            importlib.import_module(REGISTRY[name].module).raise_if_unsupported(scenario)
        elif name == "packet":
            check_packet_sizes(scenario)
    except NotApplicable as refusal:
        return refusal
    if not isinstance(REGISTRY[name], Formula):
        return None
    if feed and scenario.isolated_transfers is None:
        scenario = scenario.with_changes(SHORT)
    answers = answer(scenario, [name], RunOptions(), feed=feed or "scenario")
    (result,) = (each for each in answers if each.engine == name)
    return None if result.applies else NotApplicable(result.reason, *result.suggestions)


def follow(name: str, scenario: Scenario, suggestion: Suggestion) -> tuple[Any, ...]:
    """Return engine, scenario and feed of a suggested request."""
    return suggestion.engine or name, scenario.with_changes(suggestion.changes), suggestion.feed


@pytest.fixture(scope="module")
def refusals() -> dict[tuple[str, str], tuple[Scenario, NotApplicable | None]]:
    """Return the refusals by title and engine; None if the engine accepts the scenario."""
    return {
        (title, name): (scenario, refusal_of(name, scenario))
        for title, scenario in variants()
        for name in REGISTRY
    }


def test_each_suggestion_removes_the_only_obstacle(
    refusals: dict[tuple[str, str], tuple[Scenario, NotApplicable | None]],
) -> None:
    """An engine that accepts a scenario without the last change of its title."""
    checked, errors = 0, []
    for (title, name), (scenario, refusal) in refusals.items():
        plain = title.split(" ")[:2]
        if refusal is None or refusals.get((" ".join(plain), name), (None, refusal))[1]:
            continue
        for suggestion in refusal.suggestions:
            checked += 1
            if (further := refusal_of(*follow(name, scenario, suggestion))) is not None:
                errors.append(f"{title}, {name}: {suggestion}: {further}")
    assert not errors, "\n".join(errors)
    assert checked > 50


def test_suggestions_lead_to_an_answer(
    refusals: dict[tuple[str, str], tuple[Scenario, NotApplicable | None]],
) -> None:
    """With several obstacles, each suggestion removes one, and the next refusal names the next."""
    checked = 0
    for (title, name), (scenario, refusal) in refusals.items():
        request, reasons, next_refusal = (name, scenario, ""), [""], refusal
        while next_refusal is not None:
            assert next_refusal.reason not in reasons, (title, name, reasons)
            reasons.append(next_refusal.reason)
            # A formula for other traffic has no suggestion.
            first = next(iter(next_refusal.suggestions), Suggestion(engine="packet"))
            try:
                request = follow(*request[:2], first)
            except ScenarioError:
                break  # its message states which other key the change contradicts
            next_refusal = refusal_of(*request)
        checked += refusal is not None
        assert len(reasons) <= 1 + MAX_STEPS, (title, name, reasons)
    assert checked > 1000


def test_plan_is_accepted_with_the_suggestion_of_its_model() -> None:
    checked = 0
    for _, scenario in variants():
        try:
            engset_inputs(scenario)
        except NotApplicable as error:
            for suggestion in error.suggestions:
                engset_inputs(scenario.with_changes(suggestion.changes))
                checked += 1
    assert checked > 20
