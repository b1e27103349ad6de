"""Questions of the page about one path: a single flow, parallel flows, and a transfer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.compare import compare_all
from tcpcast.engines import answer
from tcpcast.path_option_definitions import PATH_OPTIONS as ROWS
from tcpcast.path_scenario import ask_path, list_formulas
from tcpcast.report.path_advice import path_advice
from tcpcast.sweeps.axes import QUANTITY_KINDS
from tcpcast.web.copied_texts import program_of_tables, shell_command
from tcpcast.web.questions.fields import Field, integer_parser, stack_field, write_integer
from tcpcast.web.questions.question_form import (
    DisplayedAnswer,
    Facts,
    Question,
    verdict_on_displayed_answers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario
    from tcpcast.web.questions.fields import Values

_KINDS = {"rtt": "time", "loss": "ratio", "rate": "rate", "size": "bytes"}


def _path_field(name: str) -> Field:
    """Return the field for an option of ``tcpcast predict``."""
    row = ROWS[name]
    page = row.form_field
    assert page is not None
    field = Field(
        name=name.replace("_", "-"),
        label=page.label,
        hint=page.hint,
        default=page.default,
        keys=(row.flag, *row.keys),
        is_rarely_needed=not page.low,
    )
    if not page.low:
        return field
    if name in _KINDS:
        kind = QUANTITY_KINDS[_KINDS[name]]
        read, write = kind.read, kind.write
    else:
        read, write = integer_parser(1, 10**5), write_integer
    return replace(
        field,
        low=page.low,
        high=page.high,
        starts_at_zero=page.starts_at_zero,
        read=read,
        write=write,
        integer_only=name in {"size", "flows"},
    )


RTT, LOSS, RATE, FLOWS, SIZE = map(_path_field, ("rtt", "loss", "rate", "flows", "size"))
_COMMON_FIELDS = (
    stack_field(),
    *(_path_field(name) for name, row in ROWS.items() if row.form_field and not row.form_field.low),
)


def _path_scenario(values: Values) -> Scenario:
    return ask_path({name.replace("-", "_"): text for name, text in values.items()}).scenario


def _path_tables(values: Values) -> Mapping[str, Any]:
    return _path_scenario(values).source_tables()[0]


def _path_formulas(values: Values, omitted_formulas: Collection[str]) -> list[DisplayedAnswer]:
    scenario = _path_scenario(values)
    names = [name for name in list_formulas(scenario) if name not in omitted_formulas]
    return [DisplayedAnswer(a.engine, a, scenario) for a in answer(scenario, names)]


def _path_facts(values: Values, given: list[DisplayedAnswer], simulated: Answer | None) -> Facts:
    """Return the verdict, and the advice as in ``tcpcast predict``."""
    scenario = _path_scenario(values)
    every = [each.answer for each in given] + ([simulated] if simulated else [])
    verdict = verdict_on_displayed_answers(scenario, given, simulated)
    unknown = "No formula is reliable for this path; simulate it."
    return Facts(
        verdict, [*([] if verdict else [unknown]), *path_advice(compare_all(every), scenario)]
    )


def _predict_command(values: Values, simulated: bool) -> str:
    given = [word for name, text in values.items() for word in (f"--{name}", text)]
    return shell_command(["tcpcast", "predict", *given, *(["--packet"] if simulated else [])])


def _python_program(values: Values, simulated: bool) -> str:
    names = [*list_formulas(_path_scenario(values)), *(["packet"] if simulated else [])]
    return program_of_tables(_path_tables(values), names)


_SHARED_FUNCTIONS: dict[str, Any] = {
    "tables": _path_tables,
    "formulas": _path_formulas,
    "facts": _path_facts,
    "command": _predict_command,
    "program": _python_program,
}

PATH = Question(
    name="path",
    title="One path",
    hint="Which goodput does one flow get, and what limits it?",
    fields=(RTT, LOSS, RATE, *_COMMON_FIELDS),
    metric="goodput_bps",
    curve_fields=("loss", "rtt", "rate"),
    **_SHARED_FUNCTIONS,
)

PARALLEL = Question(
    name="flows",
    title="Parallel flows",
    hint="Which total goodput do several flows get?",
    fields=(FLOWS, RTT, LOSS, RATE, *_COMMON_FIELDS),
    metric="goodput_bps",
    curve_fields=("flows", "loss", "rtt"),
    **_SHARED_FUNCTIONS,
)

TRANSFER = Question(
    name="transfer",
    title="Short transfer or page load",
    hint="How long does the transfer take, from the first data packet to the last acknowledgement?",
    fields=(SIZE, RTT, LOSS, RATE, *_COMMON_FIELDS),
    metric="completion_time_s",
    curve_fields=("size", "loss", "rtt"),
    slow_formulas=("short",),
    **_SHARED_FUNCTIONS,
)
