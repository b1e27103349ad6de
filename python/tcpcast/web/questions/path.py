"""Questions of the page about one path: a single flow, parallel flows, and a transfer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.engines import answer
from tcpcast.path.options import (
    RANGE_OPTIONS,
    PathOptions,
    has_no_rate_limit,
    make_bulk_scenario,
    make_bulk_tables,
    make_option_quantities,
    make_transfer_scenario,
    make_transfer_tables,
    read_transfer_size_pkts,
)
from tcpcast.path.prediction import select_path_formulas
from tcpcast.path_option_definitions import PATH_OPTIONS as ROWS
from tcpcast.report.answers import Answers
from tcpcast.report.prediction import (
    SIMULATION,
    Prediction,
    handshake_time_text,
    limits_text,
    no_trusted_answer_sentence,
    rate_headline,
    transfer_headline,
    transfer_rates_text,
)
from tcpcast.report.quantity import three_digit_text
from tcpcast.web.copied_texts import program_of_tables, shell_command
from tcpcast.web.questions.fields import Field, stack_field
from tcpcast.web.questions.page_suggestions import PageSuggestionSyntax
from tcpcast.web.questions.question_form import (
    DisplayedAnswer,
    Facts,
    Question,
    remove_omitted_keys,
    verdict_on_displayed_answers,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario
    from tcpcast.web.questions.fields import Values

_OPTION_QUANTITIES = make_option_quantities(PathOptions(rtt="1ms", size="1KB"))


def _path_field(name: str) -> Field:
    """Return the field for an option of ``tcpcast predict``."""
    row, quantity = ROWS[name], _OPTION_QUANTITIES.get(name)
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
    if quantity is None or not page.low:
        return field
    return replace(
        field,
        low=page.low,
        high=page.high,
        starts_at_zero=page.starts_at_zero,
        read=quantity.read,
        write=quantity.write,
        integer_only=quantity.whole,
    )


RTT, LOSS, RATE, FLOWS, SIZE = map(_path_field, ("rtt", "loss", "rate", "flows", "size"))
_COMMON_FIELDS = (
    stack_field(),
    *(_path_field(name) for name, row in ROWS.items() if row.form_field and not row.form_field.low),
)


def _path_options(values: Values) -> tuple[PathOptions, dict[str, str]]:
    """Return the path as options of ``tcpcast predict``, and its values."""
    given: dict[str, Any] = {name.replace("-", "_"): text for name, text in values.items()}
    options = PathOptions(**given)
    return options, {name: values[name] for name in RANGE_OPTIONS if name in values}


def _path_scenario(values: Values) -> Scenario:
    make = make_transfer_scenario if "size" in values else make_bulk_scenario
    return make(*_path_options(values))


def _path_tables(values: Values) -> Mapping[str, Any]:
    _path_scenario(values)  # raises errors that name the options
    make = make_transfer_tables if "size" in values else make_bulk_tables
    return make(*_path_options(values))


def _traffic_kind(values: Values) -> str:
    return "transfers" if "size" in values else "bulk"


def _path_formulas(values: Values, omitted_formulas: Collection[str]) -> list[DisplayedAnswer]:
    scenario = _path_scenario(values)
    names = [
        name for name in select_path_formulas(_traffic_kind(values)) if name not in omitted_formulas
    ]
    return [DisplayedAnswer(a.engine, a, scenario) for a in answer(scenario, names)]


def _path_facts(values: Values, given: list[DisplayedAnswer], simulated: Answer | None) -> Facts:
    """Return the verdict, and the limits as in ``tcpcast predict``."""
    options, point = _path_options(values)
    scenario = _path_scenario(values)
    every = [each.answer for each in given] + ([simulated] if simulated else [])
    answers = Answers(every, scenario)
    size = read_transfer_size_pkts(options, point)
    if size is None:
        prediction = Prediction(answers)
    elif has_no_rate_limit(options, point):
        prediction = Prediction(Answers([], answers.scenario), answers, size_pkts=size)
    else:
        bulk = make_bulk_scenario(options, point)
        steady = Answers(answer(bulk, select_path_formulas("bulk")), bulk)
        prediction = Prediction(steady, answers, size_pkts=size)
    names = PageSuggestionSyntax({})
    if size is None:
        if prediction.untrusted:
            return Facts("", [no_trusted_answer_sentence(prediction, names)])
        first = verdict_on_displayed_answers(scenario, given, simulated)
        return Facts(
            first, [_limits_sentence(prediction)] if first else [rate_headline(prediction, names)]
        )
    if prediction.has_time_from_goodput:  # the transfer time is derived from the goodput
        return Facts("", [rate_headline(prediction, names), transfer_headline(prediction, names)])
    if prediction.leading_time_answer is None:
        text = transfer_headline(prediction, names)
        return Facts("", [text or f"No formula supports this stack; {names.engine(SIMULATION)}."])
    first = verdict_on_displayed_answers(scenario, given, simulated)
    return Facts(first, [_transfer_sentence(prediction)])


def _limits_sentence(prediction: Prediction) -> str:
    flows = prediction.scenario.senders
    each = three_digit_text(prediction.goodput_bps / flows, "bit/s")
    limits = limits_text(prediction)
    text = f"{each} per flow; {limits}" if flows > 1 else limits
    return f"{text[0].upper()}{text[1:]}."


def _transfer_sentence(prediction: Prediction) -> str:
    parts = [transfer_rates_text(prediction), handshake_time_text(prediction)]
    return "; ".join(filter(None, parts)) + "."


def _predict_command(values: Values, simulated: bool) -> str:
    given = [word for name, text in values.items() for word in (f"--{name}", text)]
    return shell_command(["tcpcast", "predict", *given, *(["--packet"] if simulated else [])])


def _python_program(values: Values, simulated: bool) -> str:
    names = [*select_path_formulas(_traffic_kind(values)), *(["packet"] if simulated else [])]
    return program_of_tables(remove_omitted_keys(_path_tables(values)), names)


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
