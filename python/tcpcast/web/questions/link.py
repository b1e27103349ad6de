"""Questions of the page about users who share a link: goodput per user, and required buffer."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.engines import answer
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.registry import USERS_FAMILY as OF_USERS
from tcpcast.errors import NotApplicable
from tcpcast.plan import solve
from tcpcast.report.plan import plan_verdict
from tcpcast.report.quantity import interval_text, scale_for_metric, three_digit_text, value_text
from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import apply_changes
from tcpcast.scenario.loading import parse_toml, read_packaged_text
from tcpcast.web.copied_texts import (
    program_of_buffer_plan,
    program_of_packaged,
    set_arguments,
    shell_command,
)
from tcpcast.web.questions.fields import Field, integer_parser, stack_field, write_integer
from tcpcast.web.questions.path import LOSS, RATE, RTT
from tcpcast.web.questions.question_form import (
    DisplayedAnswer,
    Facts,
    Question,
    verdict_on_displayed_answers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tcpcast.answer import Answer
    from tcpcast.plan import Plan
    from tcpcast.web.questions.fields import Values

PACKAGED_SCENARIO = "web-10mbit"
"""The packaged scenario on which both questions are based."""

MAX_USERS = 20_000
TRANSFERS_PER_POINT = 20_000
"""Number of transfers per simulated point."""

MAX_WALL = "20s"
LEADING_FORMULA = "engset"
"""Formula for the verdict on users, and model of the plan for a buffer."""

_ENGINES = [name for name, entry in FORMULAS.items() if entry.family == OF_USERS]


def _read_packets(text: str) -> float:
    return units.parse_packets(text, payload_bytes=1460)


def _read_buffer(text: str) -> float:
    return units.parse_packets(text)


def _write_packets(number: float) -> str:
    return f"{number:.0f}pkt"


SOURCES = Field(
    name="sources",
    label="Users",
    hint="Each user receives files, with think times in between.",
    default="80",
    read=integer_parser(1, MAX_USERS),
    write=write_integer,
    low="1",
    high="1000",
    integer_only=True,
    keys=("traffic.sources",),
)
MEAN_SIZE = Field(
    name="size",
    label="Mean file size",
    hint="For example 12pkt or 100KB; sizes are exponentially distributed, with at least 3 "
    "packets.",
    default="12pkt",
    read=_read_packets,
    write=_write_packets,
    low="4pkt",
    high="1000pkt",
    integer_only=True,
    keys=("traffic.size.mean", "traffic.size"),
)
THINK_TIME = Field(
    name="off",
    label="Mean think time",
    hint="Time between two files of a user, exponentially distributed.",
    default="1s",
    read=units.parse_duration,
    write=units.format_duration,
    low="100ms",
    high="100s",
    keys=("traffic.off.mean", "traffic.off"),
)
BUFFER = Field(
    name="buffer",
    label="Buffer",
    hint="For example 150pkt, including the packet in transmission.",
    default="150pkt",
    read=_read_buffer,
    write=_write_packets,
    low="2pkt",
    high="5000pkt",
    integer_only=True,
    keys=("network.bottleneck.buffer",),
)
MAX_LOSS = replace(
    LOSS,
    label="Maximum loss",
    hint="Maximum loss in the queue, for example 1%.",
    default="1%",
    low="0.01%",
    high="10%",
    starts_at_zero=False,
    keys=("--loss", "loss"),
)
_RATE = replace(
    RATE,
    hint="For example 10mbit.",
    default="10mbit",
    high="1gbit",
    keys=("network.bottleneck.rate",),
)
_ACCESS = replace(
    _RATE,
    name="access",
    label="Access rate per user",
    hint="For example 2mbit.",
    default="2mbit",
    low="256kbit",
    keys=("network.egress.rate",),
)
_STACK = stack_field(default="rfc-newreno")
"""The models of users support only Reno's congestion control."""

_SCENARIO_KEYS = {
    "rate": "network.bottleneck.rate",
    "buffer": "network.bottleneck.buffer",
    "rtt": "network.rtt",
    "access": "network.egress.rate",
    "sources": "traffic.sources",
    "size": "traffic.size.mean",
    "off": "traffic.off.mean",
    "stack": "tcp.stack",
}
_COMMON_FIELDS = (SOURCES, _RATE, RTT, MEAN_SIZE, THINK_TIME, _ACCESS, _STACK)


def _shared_link_changes(values: Values) -> dict[str, Any]:
    """Return the changes to the packaged scenario, by dotted key."""
    changes: dict[str, Any] = {
        _SCENARIO_KEYS[name]: values[name] for name in _SCENARIO_KEYS if name in values
    }
    changes["traffic.sources"] = int(values["sources"])
    return changes | {"run.transfers": TRANSFERS_PER_POINT, "run.max_wall": MAX_WALL}


def _shared_link_tables(values: Values) -> Mapping[str, Any]:
    return apply_changes(
        parse_toml(read_packaged_text(PACKAGED_SCENARIO), PACKAGED_SCENARIO),
        _shared_link_changes(values),
    )


def _shared_link_formulas(
    values: Values, omitted_formulas: Collection[str], engines: Sequence[str] = _ENGINES
) -> list[DisplayedAnswer]:
    scenario = Scenario.from_dict(_shared_link_tables(values))
    names = [name for name in engines if name not in omitted_formulas]
    return [DisplayedAnswer(a.engine, a, scenario) for a in answer(scenario, names)]


def _shared_link_facts(
    values: Values, given: list[DisplayedAnswer], simulated: Answer | None
) -> Facts:
    first = verdict_on_displayed_answers(
        Scenario.from_dict(_shared_link_tables(values)), given, simulated, LEADING_FORMULA
    )
    if not first:
        return Facts("", ["No formula supports this stack; press Simulate."])
    quoted = (each.answer for each in given if each.name == LEADING_FORMULA and each.answer.metrics)
    loads = [f"The open-loop load is {100 * a['offered_load']:.3g} %." for a in quoted]
    return Facts(first, loads)


def _engines_of_run(simulated: bool) -> list[str]:
    return [*_ENGINES, *(["packet"] if simulated else [])]


def _shared_link_command(values: Values, simulated: bool) -> str:
    engines = ",".join(_engines_of_run(simulated))
    return shell_command(
        [
            "tcpcast",
            "run",
            PACKAGED_SCENARIO,
            *set_arguments(_shared_link_changes(values)),
            "--engine",
            engines,
        ]
    )


def _shared_link_program(values: Values, simulated: bool) -> str:
    return program_of_packaged(
        PACKAGED_SCENARIO, _shared_link_changes(values), _engines_of_run(simulated)
    )


USERS = Question(
    name="users",
    title="Users on a link",
    hint="Which goodput does each user get, and how many users can share the link?",
    fields=(*_COMMON_FIELDS, BUFFER),
    metric="connection_rate_bps",
    curve_fields=("sources", "rate", "rtt"),
    tables=_shared_link_tables,
    formulas=_shared_link_formulas,
    facts=_shared_link_facts,
    command=_shared_link_command,
    program=_shared_link_program,
)


def _plan_changes(values: Values) -> dict[str, Any]:
    """Return the changes to the scenario of a plan, without the buffer, which the plan computes."""
    left = {"network.bottleneck.buffer", "run.transfers", "run.max_wall"}
    return {key: value for key, value in _shared_link_changes(values).items() if key not in left}


def _run_plan(values: Values) -> Plan:
    return _cached_plan(tuple(sorted(values.items())))


@functools.lru_cache(maxsize=64)  # all points of a curve need the same plan
def _cached_plan(given: tuple[tuple[str, str], ...]) -> Plan:
    values = {name: text for name, text in given if name != "buffer"}
    tables = apply_changes(
        parse_toml(read_packaged_text(PACKAGED_SCENARIO), PACKAGED_SCENARIO), _plan_changes(values)
    )
    scenario, loss = Scenario.from_dict(tables), MAX_LOSS.number(values["loss"])
    try:
        plan = solve("buffer", scenario, loss=loss, engine=LEADING_FORMULA)
    except NotApplicable:
        plan = None
    return solve("buffer", scenario, loss=loss) if plan is None or plan.value is None else plan


def _value_on_axis(values: Values, axis: str = "buffer") -> str:
    """Return the current value on the axis of a curve; for ``buffer``, the planned buffer."""
    return values.get(axis) or f"{_run_plan(values).value or 1:.0f}pkt"


def _tables_with_planned_buffer(values: Values) -> Mapping[str, Any]:
    return _shared_link_tables({**values, "buffer": _value_on_axis(values)})


def _formula_answers_at_planned_buffer(
    values: Values, omitted_formulas: Collection[str]
) -> list[DisplayedAnswer]:
    return _shared_link_formulas(
        {**values, "buffer": _value_on_axis(values)}, omitted_formulas, [LEADING_FORMULA]
    )


def _buffer_plan_facts(values: Values, _: list[DisplayedAnswer], simulated: Answer | None) -> Facts:
    plan = _run_plan(values)
    rules = plan.tables["rules"]
    rows = [
        [str(rule), f"{packets:,.0f} packets", three_digit_text(delay, "s")]
        for rule, packets, delay in zip(
            rules["rule"], rules["buffer_pkts"], rules["delay_s"], strict=True
        )
    ]
    sentences = [*_simulated_loss_sentence(simulated), plan.recommendation]
    table = ("Buffer by other rules", ["Rule", "Buffer", "Maximum queueing delay"], rows)
    return Facts(plan_verdict(plan), sentences, plan.warnings, table)


def _simulated_loss_sentence(simulated: Answer | None) -> list[str]:
    loss = None if simulated is None else simulated.metrics.get("loss_ratio")
    if loss is None:
        return []
    scale = scale_for_metric("loss_ratio", loss.value)
    interval = interval_text(loss, scale)
    text = f"{value_text(loss, scale)} %" + (f" ({interval})" if interval else "")
    return [f"With this buffer, the simulated loss is {text}."]


def _buffer_plan_command(values: Values, simulated: bool) -> str:
    by_formula = not simulated and _run_plan(values).engine == LEADING_FORMULA
    checked = ["--engine", LEADING_FORMULA] if by_formula else []
    changes = set_arguments(_plan_changes(values))
    words = ["tcpcast", "plan", "buffer", PACKAGED_SCENARIO, "--loss", values["loss"], *changes]
    return shell_command([*words, *checked])


def _buffer_plan_program(values: Values, simulated: bool) -> str:
    loss = MAX_LOSS.number(values["loss"])
    simulated = simulated or _run_plan(values).engine != LEADING_FORMULA
    return program_of_buffer_plan(PACKAGED_SCENARIO, _plan_changes(values), loss, simulated)


BUFFERS = Question(
    name="buffer",
    title="Buffer",
    hint="Which buffer keeps the loss of a shared link below a target?",
    fields=(MAX_LOSS, *_COMMON_FIELDS),
    computed_fields=(BUFFER,),
    metric="loss_ratio",
    curve_fields=("buffer",),
    tables=_tables_with_planned_buffer,
    formulas=_formula_answers_at_planned_buffer,
    facts=_buffer_plan_facts,
    command=_buffer_plan_command,
    program=_buffer_plan_program,
    references=lambda values: {"maximum loss": MAX_LOSS.number(values["loss"])},
    value_on_axis=_value_on_axis,
)
