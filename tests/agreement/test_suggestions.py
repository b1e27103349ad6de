"""Suggestions of error messages: after a suggested change, the engine accepts the scenario."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from tcpcast import engines
from tcpcast.engines import REGISTRY, RunOptions, answer, check_engine_accepts
from tcpcast.engines.formula.engset import engset_inputs
from tcpcast.errors import NotApplicable, Suggestion, TcpcastError
from tcpcast.scenario import Scenario, get_packaged_names, load
from tcpcast.scenario.tcp import STACKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer

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


@pytest.fixture(scope="module")
def refusals() -> list[tuple[str, str, Scenario, Answer]]:
    """Return each refusal without running engines that accept the scenario."""
    found = []
    for title, scenario in variants():
        for name, entry in REGISTRY.items():
            try:
                engines.check_engine_accepts(name, scenario)
            except NotApplicable:
                (result,) = answer(scenario, [name])
                assert not result.applies, (title, name)
                found.append((title, name, scenario, result))
            except TcpcastError:
                assert entry.family != "formula"
    return found


def accepts(name: str, scenario: Scenario, suggestion: Suggestion) -> str | None:
    """Apply a suggestion; return the refusal, or None if there is an answer."""
    changed, engine = scenario.with_changes(suggestion.changes), suggestion.engine or name
    if engine == "kernel" or (engine, suggestion.feed) == ("packet", ""):
        engines.check_engine_accepts(engine, changed)  # skip slow runs
        return None
    shorter = {k: v for k, v in SHORT.items() if changed.isolated_transfers is None}
    if engine in {"mean-field", "fixed-point"} or suggestion.feed:
        changed = changed.with_changes(shorter)
    answers = answer(changed, [engine], RunOptions(), feed=suggestion.feed or "scenario")
    return next(a.not_applicable for a in answers if a.engine == engine)


def test_every_suggestion_of_every_refusal_is_accepted(
    refusals: list[tuple[str, str, Scenario, Answer]],
) -> None:
    assert len(refusals) > 1000
    checked: dict[Any, None] = {}
    errors = []
    for title, name, scenario, refusal in refusals:
        for suggestion in refusal.suggestions:
            engine = suggestion.engine or name
            key = (scenario, engine, suggestion.feed, json.dumps(suggestion.changes))
            if key in checked:
                continue
            checked[key] = None
            if (repeated := accepts(name, scenario, suggestion)) is not None:
                errors.append(f"{title}, {name}: {suggestion}: {repeated}")
    assert not errors, "\n".join(errors)


def test_every_refusal_of_a_request_has_a_suggestion(
    refusals: list[tuple[str, str, Scenario, Answer]],
) -> None:
    without_suggestion = [
        f"{title}, {name}: {refusal}"
        for title, name, _, refusal in refusals
        if not refusal.suggestions
    ]
    assert not without_suggestion


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


def test_engset_check_does_not_solve_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tcpcast.engines.formula.engset")
    monkeypatch.setattr(module, "solve_engset", None)
    check_engine_accepts("engset", load("web-10mbit"))
    with pytest.raises(NotApplicable):
        check_engine_accepts("engset", load("office-50mbit"))
