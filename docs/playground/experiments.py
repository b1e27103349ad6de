"""The experiments of the playground: a scenario, and the keys that sliders change.

Python converts the scenario of every combination of slider positions to the configuration of the
simulator, so that the page needs neither units nor scenarios. The data contain one configuration
per experiment, and for each combination the values that differ from it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import tcpcast
from tcpcast.engines.packet.time_series import make_configuration_over_time
from tcpcast.scenario import Scenario

TRACE_POINTS = 8000
"""Maximum number of window points, which the page thins further."""
NANO = 1_000_000_000

Changes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Slider:
    """Positions of a slider: texts, and the keys of the scenario that each one changes."""

    label: str
    positions: dict[str, Changes]
    start: str
    is_choice: bool = False

    @classmethod
    def of_key(cls, label: str, key: str, texts: str, start: str) -> Slider:
        """Return a slider over values of one key, separated by spaces."""
        return cls(label, {text: {key: text} for text in texts.split()}, start)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario with sliders; ``formulas`` by stack are computed for each combination."""

    name: str
    title: str
    question: str
    scenario: dict[str, Any]
    sliders: tuple[Slider, ...]
    formulas: dict[str, list[str]] = field(default_factory=dict)

    def combinations(self) -> list[Scenario]:
        """Return the scenarios; the position of the last slider varies fastest."""
        base = Scenario.from_dict({"name": self.name, **self.scenario})
        positions = (slider.positions.values() for slider in self.sliders)
        return [
            base.with_changes({key: value for part in parts for key, value in part.items()})
            for parts in itertools.product(*positions)
        ]


STACKS = {
    "CUBIC": {"tcp.stack": "linux-cubic"},
    "Reno": {"tcp.stack": "linux-reno"},
}


def _of_rtt(texts: str, rounds: int, warmup_rounds: int) -> dict[str, Changes]:
    """Return RTTs with a run of so many round trips."""
    return {
        text: {
            "network.rtt": text,
            "run.duration": f"{rounds * int(text.removesuffix('ms'))}ms",
            "run.warmup": f"{warmup_rounds * int(text.removesuffix('ms'))}ms",
        }
        for text in texts.split()
    }


EXPERIMENTS = (
    Experiment(
        "slow-start",
        "Slow start",
        "How fast does a new connection fill the link? Linux with CUBIC, a buffer of one BDP.",
        {
            "network": {"rtt": "50ms", "bottleneck": {"rate": "20mbit", "buffer": "1bdp"}},
            "traffic": {"kind": "bulk", "flows": 1, "start": [0.0]},
            "run": {"duration": "1s", "warmup": "0s"},
        },
        (
            Slider.of_key(
                "Link rate",
                "network.bottleneck.rate",
                "5mbit 10mbit 20mbit 50mbit 100mbit",
                "20mbit",
            ),
            Slider("RTT", _of_rtt("10ms 20ms 50ms 100ms 200ms", 30, 0), "50ms"),
            Slider(
                "Initial window, packets",
                {str(n): {"tcp.initial_window": n} for n in (1, 2, 4, 10, 20, 40)},
                "10",
            ),
        ),
    ),
    Experiment(
        "saw-tooth",
        "Saw-tooth",
        "How does random loss limit a flow, and what do the formulas predict?",
        {
            "network": {"rtt": "50ms", "bottleneck": {"loss": "0.1%"}},
            "traffic": {"kind": "bulk", "flows": 1},
            "run": {"duration": "250s", "warmup": "5s"},
        },
        (
            Slider(
                "Sender",
                {
                    "Reno": {"tcp.stack": "rfc-newreno", "tcp.receiver_window": "unlimited"},
                    "CUBIC": {"tcp.stack": "linux-cubic"},
                },
                "Reno",
                is_choice=True,
            ),
            Slider("RTT", _of_rtt("20ms 50ms 100ms 200ms", 3000, 100), "50ms"),
            Slider.of_key(
                "Loss",
                "network.bottleneck.loss",
                "0.01% 0.02% 0.05% 0.1% 0.2% 0.5% 1% 2% 5% 10%",
                "0.1%",
            ),
        ),
        formulas={"rfc-newreno": ["mathis", "pftk"], "linux-cubic": ["cubic-response"]},
    ),
    Experiment(
        "buffer-sizing",
        "Buffer sizing",
        "How large a buffer keeps 20 Mbit/s busy at an RTT of 50 ms, and what does it cost?",
        {
            "network": {"rtt": "50ms", "bottleneck": {"rate": "20mbit", "buffer": "1bdp"}},
            "traffic": {"kind": "bulk", "flows": 1},
            "run": {"duration": "90s", "warmup": "30s"},
        },
        (
            Slider("Sender", STACKS, "Reno", is_choice=True),
            Slider("Flows", {str(n): {"traffic.flows": n} for n in (1, 2, 4, 8, 16)}, "1"),
            Slider.of_key(
                "Buffer",
                "network.bottleneck.buffer",
                "0.05bdp 0.1bdp 0.25bdp 0.5bdp 0.75bdp 1bdp 1.5bdp 2bdp 4bdp",
                "0.25bdp",
            ),
        ),
    ),
    Experiment(
        "cubic-and-bbr",
        "CUBIC against BBR",
        "One CUBIC flow and one BBR flow share 40 Mbit/s: which one gets more?",
        {
            "network": {"rtt": "40ms", "bottleneck": {"rate": "40mbit", "buffer": "1bdp"}},
            "traffic": {"kind": "bulk"},
            "class": [
                {"name": "CUBIC", "flows": 1, "tcp": {"stack": "linux-cubic"}},
                {"name": "BBR", "flows": 1, "tcp": {"stack": "linux-bbr"}},
            ],
            "run": {"duration": "60s", "warmup": "10s"},
        },
        (
            Slider.of_key(
                "Buffer", "network.bottleneck.buffer", "0.25bdp 0.5bdp 1bdp 2bdp 4bdp 8bdp", "1bdp"
            ),
            Slider.of_key("RTT", "network.rtt", "10ms 20ms 40ms 80ms 160ms", "40ms"),
            Slider.of_key("Random loss", "network.bottleneck.loss", "0% 0.01% 0.1% 1%", "0%"),
        ),
    ),
)


def request(scenario: Scenario) -> dict[str, Any]:
    """Return the request for the WebAssembly module: configuration, and end of the run."""
    config = make_configuration_over_time(scenario, scenario.run.warmup_s or 0.0)
    config["probes"]["trace_points"] = TRACE_POINTS
    return {"config": config, "until_ns": round((scenario.run.duration_s or 0.0) * NANO)}


def data() -> list[dict[str, Any]]:
    """Return all experiments as plain data for the page."""
    return [_plain(experiment) for experiment in EXPERIMENTS]


CALCULATOR_STACKS = ("linux-cubic", "linux-reno", "linux-bbr", "bbr3", "dctcp", "rfc-sack")


def path(stack: str, changes: Changes | None = None) -> Scenario:
    """Return the scenario whose values the fields of the calculator replace."""
    tables = {
        "name": "calculator",
        "network": {"rtt": "50ms", "bottleneck": {"rate": "100mbit", "buffer": "1bdp"}},
        "traffic": {"kind": "bulk", "flows": 1, "start": [0.0]},
        "tcp": {"stack": stack},
        "run": {"duration": "20s", "warmup": "5s"},
    }
    return Scenario.from_dict(tables).with_changes(changes or {})


def templates() -> dict[str, dict[str, Any]]:
    """Return a request for each stack of the calculator, which draws no windows."""
    found = {stack: request(path(stack)) for stack in CALCULATOR_STACKS}
    for template in found.values():
        template["config"]["probes"]["traced"] = []
    return found


def _plain(experiment: Experiment) -> dict[str, Any]:
    scenarios = experiment.combinations()
    requests = [request(scenario) for scenario in scenarios]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "sliders": [
            {
                "label": slider.label,
                "positions": list(slider.positions),
                "start": list(slider.positions).index(slider.start),
                "choice": slider.is_choice,
            }
            for slider in experiment.sliders
        ],
        "request": requests[0],
        "differences": [list(differences(requests[0], other)) for other in requests],
        "facts": [_facts(experiment, scenario) for scenario in scenarios],
    }


def _facts(experiment: Experiment, scenario: Scenario) -> dict[str, Any]:
    engines = experiment.formulas.get(scenario.populations[0].tcp.stack)
    answers = tcpcast.run(scenario, engines) if engines else []
    rates = {answer.engine: answer.metrics.get("send_rate_pps") for answer in answers}
    return {
        "rtt_s": scenario.network.rtt_s,
        "payload_bytes": scenario.populations[0].payload_bytes,
        "classes": [group.name for group in scenario.populations],
        "formulas": {
            engine: {"rate_pps": rate.value, "trusted": rate.trusted}
            for engine, rate in rates.items()
            if rate is not None
        },
    }


def differences(base: Any, other: Any, path: tuple[str | int, ...] = ()) -> Any:
    """Yield the path and value of each part of ``other`` that differs from ``base``."""
    if isinstance(base, dict) and isinstance(other, dict) and base.keys() == other.keys():
        for key in base:
            yield from differences(base[key], other[key], (*path, key))
    elif isinstance(base, list) and isinstance(other, list) and len(base) == len(other):
        for index, (one, another) in enumerate(zip(base, other, strict=True)):
            yield from differences(one, another, (*path, index))
    elif base != other:
        yield [list(path), other]
