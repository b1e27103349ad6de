"""The report of ``tcpcast predict``: headline, table and remarks, or one table for ranges."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Metric, warning_severity
from tcpcast.compare import packets_text
from tcpcast.engines.formula.path_requirements import (
    flows_to_fill_text,
    lossy_buffer_text,
    path_requirement_texts,
    time_for_amount_text,
)
from tcpcast.engines.stack_support import find_omitted_formulas, omitted_formulas_text
from tcpcast.errors import SuggestionSyntax
from tcpcast.limit_names import limit_name
from tcpcast.path_option_definitions import OPTIONS_BY_KEY
from tcpcast.readable_units import count_text
from tcpcast.report.document import BLANK_LINE, Column, Paragraph, Table
from tcpcast.report.prediction import (
    ANSWER_COLUMNS,
    SIMULATION,
    TIME_ENGINES,
    answers_with_rate,
    answers_with_time,
    is_trusted,
    leading_formula,
    link_limit_pps,
    mean_rate_bps,
    specified_loss_ratio,
    time_and_rate_headlines,
    transfer_time,
    window_limit_pps,
)
from tcpcast.report.prediction_advice import buffer_advice, model_advice
from tcpcast.report.quantity import (
    ABSENT_MARK,
    UNTRUSTED_MARK,
    Scale,
    amount_text,
    interval_text,
    scale_for_unit,
    three_digit_text,
    value_text,
)
from tcpcast.report.summary import MAX_WARNINGS, buffer_text, caveats_of_scenario_and_answers
from tcpcast.verdict import limit_of_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcpcast.answer import Answer, Note
    from tcpcast.report.document import Part
    from tcpcast.report.prediction import Prediction
    from tcpcast.scenario import Scenario

DISPLAYED_METRICS = (*ANSWER_COLUMNS, "total_time_s")
"""Metrics of an answer that the report shows."""

_LOSS_KEY = "network.bottleneck.loss"


class _OptionSyntax(SuggestionSyntax):
    """Suggestions as command-line options of ``predict``."""

    def engine(self, name: str) -> str:
        """Return the option that enables an engine; formulas are always enabled."""
        return "add --packet" if name == SIMULATION else super().engine(name)

    def assignment(self, key: str, value: Any) -> str:
        """Return the option for a key, or the scenario key if there is no option."""
        return (
            f"{OPTIONS_BY_KEY[key]} {value}"
            if key in OPTIONS_BY_KEY
            else super().assignment(key, value)
        )


def prediction_parts(prediction: Prediction, *, explain: bool = False) -> list[Part]:
    """Return the prediction for one set of inputs as parts of a report.

    Parameters
    ----------
    prediction
        The answers.
    explain
        Append all quantities of each model with their equations, starting with the inputs.
    """
    parts: list[Part] = [Paragraph(path_text(prediction), "aside"), BLANK_LINE]
    parts += [
        Paragraph(text, "heading") for text in time_and_rate_headlines(prediction, _OptionSyntax())
    ]
    transfer = prediction.transfer
    if transfer is not None and answers_with_time(transfer):
        parts += [BLANK_LINE, _transfer_table(prediction, _order_time_answers(prediction))]
    steady = _order_rate_answers(prediction)
    if steady:
        parts += [BLANK_LINE, _rate_table(steady, prediction.scenario)]
    remarks = _remark_parts(prediction, show_all=explain)
    parts += [BLANK_LINE, *remarks] if remarks else []
    if explain:
        answers = [*_order_time_answers(prediction), *steady]
        parts += [part for answer in answers for part in _explanation_parts(answer)]
    return parts


def range_parts(predictions: Sequence[Prediction]) -> list[Part]:
    """Return the predictions for all combinations of the ranges as one table.

    Each row shows one combination: the varied values, the limit, and the goodput by each model. On
    a narrow terminal, the remaining models follow below, after a repetition of the varied values.
    """
    first = predictions[0]
    varied = " and ".join("RTT" if name == "rtt" else name for name in first.varied_options)
    path = f"{path_text(first, without=first.varied_options)}; {varied} as below"
    fixed = _point_columns(predictions)
    table = Table([*fixed, *_model_columns(predictions)], repeated_columns=len(fixed))
    remarks = _remarks_on_whole_range(predictions)
    return [
        Paragraph(path, "aside"),
        BLANK_LINE,
        table,
        *([BLANK_LINE, *remarks] if remarks else []),
    ]


def path_text(prediction: Prediction, without: Iterable[str] = ()) -> str:
    """Return the path as one line that marks assumed values and omits the parts in ``without``."""
    scenario = prediction.scenario
    network, tcp = scenario.network, scenario.tcp
    window = tcp.receiver_window
    parts = {
        "rtt": f"RTT {amount_text(scenario.rtt_s, 's')}",
        "loss": f"loss {100 * specified_loss_ratio(scenario):.4g} %",
        "rate": f"link {amount_text(network.bottleneck.rate_bps, 'bit/s')}",
        "buffer": buffer_text(scenario) + (" (assumed)" if prediction.is_buffer_assumed else ""),
        "rwnd": "window unlimited" if math.isinf(window) else f"window {packets_text(window)}",
        "mss": f"MSS {scenario.payload_bytes} B",
        "flows": count_text(scenario.senders, "flow"),
        "stack": tcp.stack + (", delayed acks" if tcp.delayed_acks and not tcp.is_modern else ""),
    }
    if math.isinf(network.bottleneck.rate_bps):
        del parts["buffer"]
    return ", ".join(text for name, text in parts.items() if name not in set(without))


def _order_rate_answers(prediction: Prediction) -> list[Answer]:
    """Return the answers with a rate: simulation, leading formula, then the other formulas."""
    first = (SIMULATION, leading_formula(prediction.scenario))
    return _sort_trusted_first(answers_with_rate(prediction.steady), first)


def _order_time_answers(prediction: Prediction) -> list[Answer]:
    return _sort_trusted_first(answers_with_time(prediction.transfer or []), TIME_ENGINES)


def _sort_trusted_first(answers: Sequence[Answer], first: Sequence[str]) -> list[Answer]:
    """Return answers sorted: trusted before untrusted, then the engines in ``first``."""
    ranks = {name: rank for rank, name in enumerate(first)}
    return sorted(answers, key=lambda a: (not is_trusted(a), ranks.get(a.engine, len(first))))


def _rate_table(answers: Sequence[Answer], scenario: Scenario) -> Table:
    goodput = [answer["goodput_bps"] for answer in answers]
    unit = scale_for_unit("bit/s", _median(goodput))
    absent = Metric(math.nan)
    windows = [answer.metrics.get("w_at_loss_mean_pkts", absent).value for answer in answers]
    limits = [limit_name(limit_of_answer(answer, scenario)) or ABSENT_MARK for answer in answers]
    return Table(
        [
            Column("model", [answer.engine for answer in answers], right=False),
            Column(
                "send rate\n(pkt/s)", [_metric_cell(a.metrics["send_rate_pps"]) for a in answers]
            ),
            _scaled_column("goodput", goodput, unit, answers),
            Column("limited by", limits, right=False),
            Column("window\n(pkt)", [_rounded_text(window) for window in windows]),
        ]
    )


def _transfer_table(prediction: Prediction, answers: Sequence[Answer]) -> Table:
    seconds = scale_for_unit("s", max(transfer_time(a).value for a in answers))
    mean = [mean_rate_bps(answer, prediction) for answer in answers]
    unit = scale_for_unit("bit/s", max(mean))
    cells = [_metric_cell(transfer_time(a), seconds.factor) for a in answers]
    return Table(
        [
            Column("model", [answer.engine for answer in answers], right=False),
            Column(f"time\n({seconds.unit})", cells),
            _scaled_column("mean rate", mean, unit),
        ]
    )


def _trust_mark(answer: Answer) -> str:
    return "" if is_trusted(answer) else UNTRUSTED_MARK


def _metric_cell(metric: Metric, factor: float = 1.0) -> str:
    """Return a value with its interval, if it has one."""
    mark = "" if metric.trusted else UNTRUSTED_MARK
    if metric.low is None:
        return _rounded_text(metric.value / factor) + mark
    scale = Scale(factor, "")
    return f"{value_text(metric, scale)}{mark} {interval_text(metric, scale)}"


def _rounded_text(value: float) -> str:
    """Return a number with three significant digits, or rounded to an integer if it has more."""
    if not math.isfinite(value):
        return ABSENT_MARK
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}" if decimals < 8 else f"{value:.2e}"


def _remark_parts(prediction: Prediction, *, show_all: bool) -> list[Paragraph]:
    """Return the remarks below the tables: limits, advice, warnings, and inapplicable models."""
    texts = [
        _window_and_link_limits_text(prediction.scenario),
        *model_advice(prediction),
        buffer_advice(prediction),
        *_path_requirement_advice(prediction),
    ]
    lines = [Paragraph(text, mark="   ") for text in texts if text]
    return (
        lines
        + _dagger_reasons(prediction)
        + _warning_parts(prediction, show_all=show_all)
        + _omitted_models(prediction)
        + _refusal_parts(prediction)
    )


def _path_requirement_advice(prediction: Prediction) -> list[str]:
    """Return advice: windows and numbers of flows that fill the link, and the transfer time."""
    sizing = prediction.sizing
    if sizing is None:
        return []
    texts = path_requirement_texts(sizing)
    lossy = lossy_buffer_text(sizing, prediction.scenario, prediction.goodput_bps)
    if lossy is not None:
        texts[1] = lossy
    if specified_loss_ratio(prediction.scenario) > 0:
        texts.append(flows_to_fill_text(sizing))
    if prediction.leading_time_answer is None and not prediction.has_time_from_goodput:
        texts.append(
            time_for_amount_text(
                prediction.scenario, prediction.amount_bytes, prediction.goodput_bps
            )
        )
    return texts


def _dagger_reasons(prediction: Prediction) -> list[Paragraph]:
    """Return the reasons for daggers; formulas with the same reason share a line."""
    reasons = (
        (with_option_names(note), answer.engine)
        for answer in prediction.answers
        for note in answer.notes
        if note.kind == "outside"
    )
    return [
        Paragraph(f"{', '.join(engines)}: {reason}", "warning", f" {UNTRUSTED_MARK} ")
        for reason, engines in _engines_by_text(reasons).items()
    ]


def _engines_by_text(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the engines of each text from pairs of text and engine."""
    engines: dict[str, list[str]] = {}
    for text, engine in pairs:
        engines.setdefault(text, []).append(engine)
    return engines


def _warning_parts(prediction: Prediction, *, show_all: bool = False) -> list[Paragraph]:
    """Return the most severe or all warnings about shown values; each names all its engines."""
    engines: dict[Note, list[str]] = {}
    for answer, note in caveats_of_scenario_and_answers(prediction.answers, prediction.scenario):
        about = note.limited_to(DISPLAYED_METRICS)
        if about is not None and about.kind != "outside":  # shown by `_dagger_reasons`
            engines.setdefault(about, []).extend([] if answer is None else [answer.engine])
    ordered = sorted(engines, key=warning_severity)
    lines = []
    for note in ordered if show_all else ordered[:MAX_WARNINGS]:
        named = ", ".join(dict.fromkeys(engines[note]))
        shown = f"{named}: {with_option_names(note)}" if named else with_option_names(note)
        lines.append(Paragraph(shown, "warning", " ! "))
    if len(ordered) > len(lines):
        more = len(ordered) - len(lines)
        text = f"{count_text(more, 'more warning')} with --explain"
        lines.append(Paragraph(text, "aside", "   "))
    return lines


def _remarks_on_whole_range(predictions: Sequence[Prediction]) -> list[Paragraph]:
    """Return the distinct warnings and refusals of all predictions."""
    lines = {line.text: line for line in _omitted_models(predictions[0])}
    for prediction in predictions:
        for line in _refusal_parts(prediction):
            lines.setdefault(line.text, line)
        for answer in prediction.answers:
            if answer.incomplete_reason is not None:
                text = f"{answer.engine}: {with_option_names(answer.incomplete_reason)}"
                lines.setdefault(text, Paragraph(text, "warning", " ! "))
    if not all(is_trusted(answer) for p in predictions for answer in p.answers):
        text = "outside the formula's domain; run predict with single values to see the reason"
        lines[UNTRUSTED_MARK] = Paragraph(text, "warning", f" {UNTRUSTED_MARK} ")
    buffers = [text for text in map(buffer_advice, predictions) if text]
    return [*(Paragraph(text, mark="   ") for text in buffers[:1]), *lines.values()]


def _omitted_models(prediction: Prediction) -> list[Paragraph]:
    """Return a line that names the formulas that do not support the stack, if any."""
    text = omitted_formulas_text(*_scenarios_of(prediction))
    return [Paragraph(with_option_names(text), "aside", " - ")] if text else []


def _scenarios_of(prediction: Prediction) -> list[Scenario]:
    return [each.scenario for each in (prediction.steady, prediction.transfer) if each]


def _refusal_parts(prediction: Prediction) -> list[Paragraph]:
    """Return inapplicable models with reasons; models with the same reason share a line."""
    reasons = []
    lossless = specified_loss_ratio(prediction.scenario) == 0
    others = {why for each in _scenarios_of(prediction) for why in find_omitted_formulas(each)}
    for answer in prediction.answers:
        if answer.applies or answer.reason in others:
            continue
        needs_loss = any(each.changes.keys() == {_LOSS_KEY} for each in answer.suggestions)
        no_loss = "there is no random loss"  # one text for all models
        reason = no_loss if lossless and needs_loss else refusal_with_option_names(answer)
        reasons.append((reason, answer.engine))
    lines = [
        f"{', '.join(engines)} {'does' if len(engines) == 1 else 'do'} not apply: {reason}"
        for reason, engines in _engines_by_text(reasons).items()
    ]
    return [Paragraph(text, "aside", " - ") for text in lines]


def _window_and_link_limits_text(scenario: Scenario) -> str:
    """Return the limits by window and link, or "" if neither limits."""
    payload_bits = 8 * scenario.payload_bytes
    by_name = {"window": window_limit_pps(scenario), "link": link_limit_pps(scenario)}
    limits = [
        f"{name} {three_digit_text(pps * payload_bits, 'bit/s')}"
        for name, pps in by_name.items()
        if math.isfinite(pps)
    ]
    flows = "" if scenario.senders == 1 else f", total of {scenario.senders:,} flows"
    return f"Upper limits without loss{flows}: {', '.join(limits)}." if limits else ""


def _explanation_parts(answer: Answer) -> list[Paragraph]:
    """Return the quantities of a model in order of computation, each with its equation."""
    steps = answer.steps
    if not steps:
        return []
    source = answer.provenance.get("formula", "")
    rows = [
        (
            entry["symbol"],
            _missing_value_text(entry) if entry["value"] is None else f"{entry['value']:.6g}",
            "" if entry["unit"] == "1" else entry["unit"],
        )
        for entry in steps
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [BLANK_LINE, Paragraph(f"{answer.engine}: {source}", "heading")]
    for (symbol, value, unit), entry in zip(rows, steps, strict=True):
        cells = (symbol.ljust(widths[0]), value.rjust(widths[1]), unit.ljust(widths[2]))
        lines.append(Paragraph(with_option_names(entry["source"]), mark=f"  {'  '.join(cells)}  "))
    return lines


def _missing_value_text(entry: Mapping[str, str]) -> str:
    """Return the text of a quantity without a value: for a window, that it is unlimited."""
    return "unlimited" if entry["unit"] == "packet" else ABSENT_MARK


def refusal_with_option_names(answer: Answer) -> str:
    """Return the reason of a refusal, with scenario keys replaced by options."""
    return with_option_names(answer.refusal(_OptionSyntax()))


def with_option_names(message: Note | str) -> str:
    """Return a text with scenario keys replaced by options."""
    text = str(message)
    for key, option in OPTIONS_BY_KEY.items():
        text = text.replace(key, option)
    return re.sub(r'(--[a-z-]+) = "([^"]*)"(?: or "([^"]*)")?', _option_text, text)


def _option_text(match: re.Match[str]) -> str:
    """Return an option with its value, or with two alternative values."""
    option, value, other = match.groups()
    return f"{option} {value}" + (f" or {option} {other}" if other else "")


def _point_columns(predictions: Sequence[Prediction]) -> list[Column]:
    varied = [
        Column(name, [p.varied_options[name] for p in predictions])
        for name in predictions[0].varied_options
    ]
    leads = [(p, p.leading_time_answer) for p in predictions]
    limits = [p.regime if lead is None else limit_of_answer(lead, p.scenario) for p, lead in leads]
    limits = [limit_name(limit) or ABSENT_MARK for limit in limits]
    return [*varied, Column("limited by", limits, right=False)]


def _model_columns(predictions: Sequence[Prediction]) -> list[Column]:
    """Return columns: times and mean rates if a transfer size is given, otherwise model rates."""
    if predictions[0].size_pkts is None:
        return _rate_columns(predictions)
    engines = _engines_of_rows(_order_time_answers(p) for p in predictions)
    columns = [_time_column(predictions, name) for name in engines]
    if any(prediction.has_time_from_goodput for prediction in predictions):
        columns.append(_goodput_time_column(predictions))
    return [*columns, *_mean_and_long_term_rate_columns(predictions)]


def _rate_columns(predictions: Sequence[Prediction]) -> list[Column]:
    every = [a["goodput_bps"] for p in predictions for a in answers_with_rate(p.steady)]
    leading = [p.goodput_bps for p in predictions]
    unit = scale_for_unit("bit/s", _median(leading) or _median(every))
    columns = []
    for name in _engines_of_rows(map(_order_rate_answers, predictions)):
        given = [_answer_of_engine(answers_with_rate(p.steady), name) for p in predictions]
        rates = [math.nan if answer is None else answer["goodput_bps"] for answer in given]
        columns.append(_scaled_column(_column_heading(name), rates, unit, given))
    # Without a model, only window and link limit the rate.
    return columns or [_scaled_column("at most", leading, unit)]


def _answer_of_engine(answers: Sequence[Answer], engine: str) -> Answer | None:
    return next((answer for answer in answers if answer.engine == engine), None)


def _scaled_column(
    heading: str,
    values: Sequence[float],
    unit: Scale,
    answers: Sequence[Answer | None] | None = None,
) -> Column:
    """Return values in a unit, with a dagger for each untrusted answer."""
    marks = [_trust_mark(a) if a else "" for a in answers or [None] * len(values)]
    cells = [_rounded_text(v / unit.factor) + mark for v, mark in zip(values, marks, strict=True)]
    return Column(f"{heading}\n({unit.unit})", cells)


def _time_column(predictions: Sequence[Prediction], engine: str) -> Column:
    given = [_answer_of_engine(answers_with_time(p.transfer or []), engine) for p in predictions]
    seconds = [math.nan if answer is None else transfer_time(answer).value for answer in given]
    unit = scale_for_unit("s", _median(seconds))
    return _scaled_column(_column_heading(engine), seconds, unit, given)


def _goodput_time_column(predictions: Sequence[Prediction]) -> Column:
    """Return transfer times derived from the goodput, if no transfer model is trusted."""
    seconds = [p.time_by_goodput_s for p in predictions]
    return _scaled_column("by\ngoodput", seconds, scale_for_unit("s", _median(seconds)))


def _mean_and_long_term_rate_columns(predictions: Sequence[Prediction]) -> list[Column]:
    """Return the mean rate of the transfer and the long-term rate of one flow."""
    mean = []
    for prediction in predictions:
        lead = prediction.leading_time_answer
        flow_bits = 8 * prediction.amount_bytes / prediction.scenario.senders
        by_goodput = flow_bits / prediction.time_by_goodput_s
        mean.append(by_goodput if lead is None else mean_rate_bps(lead, prediction))
    steady = [p.goodput_bps / p.scenario.senders for p in predictions]
    unit = scale_for_unit("bit/s", _median([*mean, *steady]))
    headings = {"mean\nrate": mean, "long-term\nrate": steady}
    return [_scaled_column(heading, values, unit) for heading, values in headings.items()]


def _engines_of_rows(answers: Iterable[Sequence[Answer]]) -> list[str]:
    """Return the names of all engines in at least one prediction, in order of appearance."""
    return list(dict.fromkeys(answer.engine for given in answers for answer in given))


def _column_heading(engine: str) -> str:
    first, hyphen, rest = engine.partition("-")
    return f"{first}{hyphen}\n{rest}" if rest else engine


def _median(values: Sequence[float]) -> float:
    """Return the median of the finite values; it determines the unit of a column."""
    finite = sorted(value for value in values if math.isfinite(value))
    return finite[len(finite) // 2] if finite else 0.0
