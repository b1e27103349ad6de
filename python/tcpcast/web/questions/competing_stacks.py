"""A question of the page: which of two TCP stacks gets the larger share of a bottleneck."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.compare import make_metric_with_interval
from tcpcast.engines import answer
from tcpcast.errors import UnitError
from tcpcast.path_scenario import list_formulas
from tcpcast.report.quantity import three_digit_text
from tcpcast.scenario import Scenario
from tcpcast.scenario.link import read_buffer
from tcpcast.scenario.queue import QUEUE_NAMES
from tcpcast.web.copied_texts import commands_for_scenario_file, program_of_tables
from tcpcast.web.questions.fields import Field, integer_parser, stack_field, write_integer
from tcpcast.web.questions.path import LOSS, RATE, RTT
from tcpcast.web.questions.question_form import (
    DisplayedAnswer,
    Facts,
    Question,
    verdict_on_displayed_answers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tcpcast.answer import Answer, Metric
    from tcpcast.web.questions.fields import Values

CLASS_NAMES = ("A", "B")
DURATION_S, MAX_WALL = 80.0, "30s"
MAX_UNSCALED_BUFFER_BDP = 2.0
"""Buffer in BDP above which the simulated duration is proportional to the buffer, because shares
converge slowly."""

MAX_FLOWS = 100


def _read_bdp(text: str) -> float:
    if not text.strip().endswith("bdp"):
        raise UnitError(f"{units.quote(text)} is not a buffer in BDP; write, for example, 1bdp")
    return read_buffer(text).amount


def _write_bdp(number: float) -> str:
    return f"{number:.3g}bdp"


def _flows_field(group: str) -> Field:
    return Field(
        name=f"flows-{group.lower()}",
        label=f"Flows of {group}",
        default="1",
        read=integer_parser(1, MAX_FLOWS),
        write=write_integer,
        low="1",
        high=str(MAX_FLOWS),
        integer_only=True,
        keys=(f"class.{group}.flows",),
    )


def _rtt_field(group: str) -> Field:
    return replace(
        RTT,
        name=f"rtt-{group.lower()}",
        label=f"Round-trip time of {group}",
        keys=(f"class.{group}.rtt",),
    )


def _loss_field() -> Field:
    return replace(LOSS, default="0%", keys=("network.bottleneck.loss",))


BUFFER = Field(
    name="buffer",
    label="Buffer",
    hint="In bandwidth-delay products with A's round-trip time, for example 1bdp.",
    default="1bdp",
    read=_read_bdp,
    write=_write_bdp,
    low="0.1bdp",
    high="16bdp",
    keys=("network.bottleneck.buffer",),
)
_RATE = replace(
    RATE,
    hint="For example 20mbit.",
    default="20mbit",
    high="200mbit",
    keys=("network.bottleneck.rate",),
)
_QUEUE = Field(
    name="queue",
    label="Queue",
    hint="Queueing discipline at the bottleneck.",
    default=QUEUE_NAMES[0],
    choices=tuple((name, "") for name in QUEUE_NAMES),
    keys=("network.bottleneck.queue",),
)
_STACKS = {
    "a": stack_field("stack-a", "TCP stack of A"),
    "b": stack_field("stack-b", "TCP stack of B", "linux-bbr"),
}


def _bottleneck_table(values: Values) -> dict[str, Any]:
    return {
        "rate": values["rate"],
        "buffer": values["buffer"],
        "queue": values["queue"],
        "loss": values["loss"],
    }


def _class_table(values: Values, group: str) -> dict[str, Any]:
    return {
        "name": group,
        "flows": int(values[f"flows-{group.lower()}"]),
        "rtt": values[f"rtt-{group.lower()}"],
        "tcp": {"stack": values[f"stack-{group.lower()}"]},
    }


def _run_duration(values: Values) -> str:
    deeper = max(1.0, _read_bdp(values["buffer"]) / MAX_UNSCALED_BUFFER_BDP)
    return units.format_duration(round(DURATION_S * deeper))


def _competition_tables(values: Values) -> Mapping[str, Any]:
    return {
        "name": "who-wins",
        "network": {"rtt": values["rtt-a"], "bottleneck": _bottleneck_table(values)},
        "traffic": {"kind": "bulk"},
        "run": {"duration": _run_duration(values), "replications": 4, "max_wall": MAX_WALL},
        "class": [_class_table(values, group) for group in CLASS_NAMES],
    }


def _isolated_scenario(values: Values, group: str) -> Scenario:
    """Return a scenario with only one group on the link, because formulas support one stack."""
    network = {"rtt": values[f"rtt-{group.lower()}"], "bottleneck": _bottleneck_table(values)}
    return Scenario.from_dict(
        {
            "name": f"{group}-alone",
            "network": network,
            "traffic": {"kind": "bulk", "flows": int(values[f"flows-{group.lower()}"])},
            "tcp": {"stack": values[f"stack-{group.lower()}"]},
            "run": {"duration": _run_duration(values)},
        }
    )


def _formulas_of_each_group(
    values: Values, omitted_formulas: Collection[str]
) -> list[DisplayedAnswer]:
    """Return the answers of formulas for each group without the other group."""
    Scenario.from_dict(_competition_tables(values))
    found = []
    for at, group in enumerate(CLASS_NAMES):
        scenario = _isolated_scenario(values, group)
        names = [name for name in list_formulas(scenario) if name not in omitted_formulas]
        given = [a for a in answer(scenario, names) if a.applies]
        alone = f"{group} alone"
        found += [
            DisplayedAnswer(f"{a.engine}, {alone}", _per_flow_answer(a, scenario), scenario, at)
            for a in given
        ]
    return found


def _per_flow_answer(found: Answer, scenario: Scenario) -> Answer:
    """Return an answer with the goodput per flow."""
    metric = found.metrics.get("goodput_bps")
    if metric is None:
        return found
    share = replace(metric, value=metric.value / scenario.senders)
    return replace(found, metrics={"goodput_bps": share})


def _equal_share_bps(values: Values) -> float:
    """Return the goodput per flow with equal shares."""
    flows = sum(int(values[f"flows-{group.lower()}"]) for group in CLASS_NAMES)
    scenario = _isolated_scenario(values, "A")
    return scenario.network.bottleneck.rate_bps * _payload_share(scenario) / flows


def _payload_share(scenario: Scenario) -> float:
    return scenario.payload_bytes / scenario.network.packet_bytes


def _competition_facts(values: Values, _: list[DisplayedAnswer], simulated: Answer | None) -> Facts:
    each = three_digit_text(_equal_share_bps(values), "bit/s")
    first = verdict_on_displayed_answers(
        Scenario.from_dict(_competition_tables(values)), [], simulated
    )
    missing = [] if first else ["No formula predicts how two TCPs share a queue; press Simulate."]
    return Facts(first, [*missing, f"Equal shares are {each} per flow."])


def _simulated_goodputs(values: Values, given: Answer) -> dict[str, Metric]:
    """Return the goodput per flow of each group."""
    table = given.tables.get("by_class")
    if table is None or "goodput_bps" not in table:
        return {}
    found = {}
    for at, group in enumerate(CLASS_NAMES):
        flows = float(table["sources"][at])
        value, low, high = (
            float(table[name][at]) / flows
            for name in ("goodput_bps", "goodput_bps_low", "goodput_bps_high")
        )
        name = f"{group} ({values[f'stack-{group.lower()}']})"
        doubt = (
            str(table["goodput_bps_interval_warning"][at])
            if "goodput_bps_interval_warning" in table
            else None
        )
        found[name] = make_metric_with_interval(value, low, high, doubt or None)
    return found


WINNER = Question(
    name="winner",
    title="Two TCPs on one bottleneck",
    hint="Two groups of flows with different TCPs share a queue. Which goodput does each flow get?",
    fields=(
        _RATE,
        BUFFER,
        _QUEUE,
        _STACKS["a"],
        _flows_field("A"),
        _rtt_field("A"),
        _STACKS["b"],
        _flows_field("B"),
        _rtt_field("B"),
        _loss_field(),
    ),
    metric="goodput_bps",
    curve_fields=("buffer", "rate"),
    tables=_competition_tables,
    formulas=_formulas_of_each_group,
    facts=_competition_facts,
    command=lambda values, _: commands_for_scenario_file(_competition_tables(values), ["packet"]),
    program=lambda values, _: program_of_tables(_competition_tables(values), ["packet"]),
    metrics_by_class=_simulated_goodputs,
    references=lambda values: {"equal shares": _equal_share_bps(values)},
)
