"""One path for people: a sentence, a table with a row a model, and why; a table for ranges."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Metric, severity
from tcpcast.engines.formula.sizing import sizing_texts, streams_text, time_text
from tcpcast.engines.stacks import omitted_models, omitted_models_text
from tcpcast.errors import Names
from tcpcast.report.document import BLANK, Column, Paragraph, Table
from tcpcast.report.prediction import (
    ANSWER_COLUMNS,
    LEADING_TIMES,
    SIMULATION,
    headline,
    is_trusted,
    leading,
    limit,
    link_limit_pps,
    loss_ratio,
    mean_rate_bps,
    packets_text,
    rates,
    times,
    transfer_headline,
    transfer_time,
    window_limit_pps,
)
from tcpcast.report.prediction_advice import advice, buffer_advice
from tcpcast.report.quantity import (
    ABSENT,
    UNTRUSTED,
    Scale,
    amount,
    interval_text,
    scale_of_unit,
    value_text,
)
from tcpcast.report.summary import MOST_WARNINGS, buffer_text, with_scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcpcast.answer import Answer, Note
    from tcpcast.report.document import Part
    from tcpcast.report.prediction import Prediction
    from tcpcast.scenario import Scenario

SHOWN = (*ANSWER_COLUMNS, "total_time_s")
"""The metrics of an answer that are shown."""

LOSS = "network.bottleneck.loss"
_LIMITED_BY = {"bottleneck": "link"}
_KEYS = {
    LOSS: "--loss",
    "network.bottleneck.rate": "--rate",
    "network.bottleneck.buffer": "--buffer",
    "network.rtt": "--rtt",
    "tcp.receiver_window": "--rwnd",
    "tcp.stack": "--stack",
    "tcp.delayed_acks": "--delayed-acks",
    "tcp.min_rto": "--min-rto",
    "tcp.initial_window": "--iw",
    "traffic.flows": "--flows",
    "traffic.size": "--size",
}
"""How a key of the scenario is asked for on the command line, where ``--explain`` names it."""


class _Options(Names):
    """Form of a suggestion on the command line of ``predict``."""

    def engine(self, name: str) -> str:
        """Return the option of the simulation; formulas are requested in any case."""
        return "add --packet" if name == SIMULATION else super().engine(name)

    def assignment(self, key: str, value: Any) -> str:
        """Return the option of a key, or the key in a scenario."""
        return f"{_KEYS[key]} {value}" if key in _KEYS else super().assignment(key, value)


def prediction_parts(prediction: Prediction, *, explain: bool = False) -> list[Part]:
    """Return the answers at one point as parts of a report.

    Parameters
    ----------
    prediction
        The answers.
    explain
        Whether each model's quantities follow, from its inputs on, with their equations.
    """
    parts: list[Part] = [Paragraph(path_text(prediction), "aside"), BLANK]
    words = [transfer_headline(prediction), headline(prediction)]
    if prediction.timed_by_goodput:  # the time refers to the goodput
        words.reverse()
    parts += [Paragraph(text, "heading") for text in words if text]
    transfer = prediction.transfer
    if transfer is not None and times(transfer):
        parts += [BLANK, _transfer_table(prediction, _times_leading_first(prediction))]
    steady = _leading_first(prediction)
    if steady:
        parts += [BLANK, _rate_table(steady, prediction.scenario)]
    remarks = _remarks(prediction, every=explain)
    parts += [BLANK, *remarks] if remarks else []
    if explain:
        answers = [*_times_leading_first(prediction), *steady]
        parts += [part for answer in answers for part in _explanation(answer)]
    return parts


def range_parts(predictions: Sequence[Prediction]) -> list[Part]:
    """Return the answers at all points of the ranges.

    A row a point: what varies, what limits, and the goodput by each model. On a narrow terminal the
    models go on below, the points repeated.
    """
    first = predictions[0]
    varied = " and ".join("RTT" if name == "rtt" else name for name in first.point)
    path = f"{path_text(first, without=first.point)}; {varied} as below"
    fixed = _point_columns(predictions)
    table = Table([*fixed, *_model_columns(predictions)], repeated=len(fixed))
    remarks = _range_remarks(predictions)
    return [Paragraph(path, "aside"), BLANK, table, *([BLANK, *remarks] if remarks else [])]


def path_text(prediction: Prediction, without: Iterable[str] = ()) -> str:
    """Return the path in a line, with the values that are assumed."""
    scenario = prediction.scenario
    network, tcp = scenario.network, scenario.tcp
    window = tcp.receiver_window
    parts = {
        "rtt": f"RTT {amount(scenario.rtt_s, 's')}",
        "loss": f"loss {100 * loss_ratio(scenario):.4g} %",
        "rate": f"link {amount(network.bottleneck.rate_bps, 'bit/s')}",
        "buffer": buffer_text(scenario) + (" (assumed)" if prediction.is_buffer_assumed else ""),
        "rwnd": "window unlimited" if math.isinf(window) else f"window {packets_text(window)}",
        "mss": f"MSS {scenario.payload_bytes} B",
        "flows": f"{scenario.senders:,} flow{'' if scenario.senders == 1 else 's'}",
        "stack": tcp.stack + (", delayed acks" if tcp.delayed_acks and not tcp.is_modern else ""),
    }
    if math.isinf(network.bottleneck.rate_bps):
        del parts["buffer"]
    return ", ".join(text for name, text in parts.items() if name not in set(without))


def _leading_first(prediction: Prediction) -> list[Answer]:
    """Return the answers with a rate: the simulation, the leading formula, the others."""
    return _in_order(rates(prediction.steady), (SIMULATION, leading(prediction.scenario)))


def _times_leading_first(prediction: Prediction) -> list[Answer]:
    return _in_order(times(prediction.transfer or []), LEADING_TIMES)


def _in_order(answers: Sequence[Answer], first: Sequence[str]) -> list[Answer]:
    """Return what is trusted before the rest, of each those named first, then as they come."""
    places = {name: at for at, name in enumerate(first)}
    return sorted(answers, key=lambda a: (not is_trusted(a), places.get(a.engine, len(first))))


def _rate_table(answers: Sequence[Answer], scenario: Scenario) -> Table:
    goodput = [answer["goodput_bps"] for answer in answers]
    unit = scale_of_unit("bit/s", _middle(goodput))
    absent = Metric(math.nan)
    windows = [answer.metrics.get("w_at_loss_mean_pkts", absent).value for answer in answers]
    return Table(
        [
            Column("model", [answer.engine for answer in answers], right=False),
            Column("send rate\n(pkt/s)", [_figure(a.metrics["send_rate_pps"]) for a in answers]),
            Column(
                f"goodput\n({unit.unit})",
                [
                    _digits(rate / unit.factor) + _mark(answer)
                    for rate, answer in zip(goodput, answers, strict=True)
                ],
            ),
            Column("limited by", [_limit(limit(a, scenario)) for a in answers], right=False),
            Column("window\n(pkt)", [_digits(window) for window in windows]),
        ]
    )


def _transfer_table(prediction: Prediction, answers: Sequence[Answer]) -> Table:
    seconds = scale_of_unit("s", max(transfer_time(a).value for a in answers))
    mean = [mean_rate_bps(answer, prediction) for answer in answers]
    unit = scale_of_unit("bit/s", max(mean))
    figures = [_figure(transfer_time(a), seconds.factor) for a in answers]
    return Table(
        [
            Column("model", [answer.engine for answer in answers], right=False),
            Column(f"time\n({seconds.unit})", figures),
            Column(f"on average\n({unit.unit})", [_digits(rate / unit.factor) for rate in mean]),
        ]
    )


def _mark(answer: Answer) -> str:
    return "" if is_trusted(answer) else UNTRUSTED


def _limit(found: str) -> str:
    return _LIMITED_BY.get(found, found) or ABSENT


def _figure(metric: Metric, factor: float = 1.0) -> str:
    """Return a figure, with its interval where it was simulated."""
    mark = "" if metric.trusted else UNTRUSTED
    if metric.low is None:
        return _digits(metric.value / factor) + mark
    scale = Scale(factor, "")
    return f"{value_text(metric, scale)}{mark} {interval_text(metric, scale)}"


def _digits(value: float) -> str:
    """Return a figure with three digits, more where they stand before the point."""
    if not math.isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}" if decimals < 8 else f"{value:.2e}"


def _remarks(prediction: Prediction, *, every: bool) -> list[Paragraph]:
    """Return what belongs beneath: limits, which model to trust, and those that do not apply."""
    texts = [
        _limit_text(prediction.scenario),
        *advice(prediction),
        buffer_advice(prediction),
        *_sizing(prediction),
    ]
    lines = [Paragraph(text, mark="   ") for text in texts if text]
    return (
        lines
        + _outside(prediction)
        + _warnings(prediction, every=every)
        + _left_out(prediction)
        + _refusals(prediction)
    )


def _sizing(prediction: Prediction) -> list[str]:
    """Return what filling the link takes of its ends, and how long an amount takes."""
    sizing = prediction.sizing
    if sizing is None:
        return []
    texts = sizing_texts(sizing)
    if loss_ratio(prediction.scenario) > 0:
        texts.append(streams_text(sizing))
    if prediction.lead_time is None and not prediction.timed_by_goodput:
        texts.append(
            time_text(prediction.scenario, prediction.amount_bytes, prediction.goodput_bps)
        )
    return texts


def _outside(prediction: Prediction) -> list[Paragraph]:
    """Return why values have a dagger, the formulas of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for answer in prediction.answers:
        for note in answer.notes:
            if note.kind == "outside":
                by_reason.setdefault(by_option(note), []).append(answer.engine)
    return [
        Paragraph(f"{', '.join(engines)}: {reason}", "warning", f" {UNTRUSTED} ")
        for reason, engines in by_reason.items()
    ]


def _warnings(prediction: Prediction, *, every: bool = False) -> list[Paragraph]:
    """Return the worst few warnings about the values shown, or all; each has all its engines."""
    engines: dict[Note, list[str]] = {}
    for answer, note in with_scenario(prediction.answers, prediction.scenario):
        about = note.about(SHOWN)
        if about is not None and about.kind != "outside":  # those are next to the dagger
            engines.setdefault(about, []).extend([] if answer is None else [answer.engine])
    ordered = sorted(engines, key=severity)
    lines = []
    for note in ordered if every else ordered[:MOST_WARNINGS]:
        named = ", ".join(dict.fromkeys(engines[note]))
        shown = f"{named}: {by_option(note)}" if named else by_option(note)
        lines.append(Paragraph(shown, "warning", " ! "))
    if len(ordered) > len(lines):
        more = len(ordered) - len(lines)
        text = f"{more} more warning{'' if more == 1 else 's'} with --explain"
        lines.append(Paragraph(text, "aside", "   "))
    return lines


def _range_remarks(predictions: Sequence[Prediction]) -> list[Paragraph]:
    """Return each warning and each refusal once, however many points it is about."""
    found = {line.text: line for line in _left_out(predictions[0])}
    for prediction in predictions:
        for line in _refusals(prediction):
            found.setdefault(line.text, line)
        for answer in prediction.answers:
            if answer.incomplete_reason is not None:
                text = f"{answer.engine}: {by_option(answer.incomplete_reason)}"
                found.setdefault(text, Paragraph(text, "warning", " ! "))
    if not all(is_trusted(answer) for p in predictions for answer in p.answers):
        text = "outside the formula's domain: predict the point alone for the reason"
        found[UNTRUSTED] = Paragraph(text, "warning", f" {UNTRUSTED} ")
    buffers = [text for text in map(buffer_advice, predictions) if text]
    return [*(Paragraph(text, mark="   ") for text in buffers[:1]), *found.values()]


def _left_out(prediction: Prediction) -> list[Paragraph]:
    """Return the line of the formulas that are left out for the stack, none if there are none."""
    text = omitted_models_text(*_scenarios(prediction))
    return [Paragraph(by_option(text), "aside", " - ")] if text else []


def _scenarios(prediction: Prediction) -> list[Scenario]:
    return [each.scenario for each in (prediction.steady, prediction.transfer) if each]


def _refusals(prediction: Prediction) -> list[Paragraph]:
    """Return the models that answer nothing here, and why; one line for those of one reason."""
    by_reason: dict[str, list[str]] = {}
    lossless = loss_ratio(prediction.scenario) == 0
    others = {why for each in _scenarios(prediction) for why in omitted_models(each)}
    for answer in prediction.answers:
        if answer.applies or answer.reason in others:
            continue
        needs_loss = any(each.changes.keys() == {LOSS} for each in answer.suggestions)
        no_loss = "models of loss: there is no random loss"  # each has its own words for it
        reason = no_loss if lossless and needs_loss else refusal_by_option(answer)
        by_reason.setdefault(reason, []).append(answer.engine)
    said = [
        f"{', '.join(engines)}: does not apply: {reason}" for reason, engines in by_reason.items()
    ]
    return [Paragraph(text, "aside", " - ") for text in dict.fromkeys(said)]


def _limit_text(scenario: Scenario) -> str:
    """Return what the window and the link allow, "" where neither limits."""
    payload_bits = 8 * scenario.payload_bytes
    given = {"the window": window_limit_pps(scenario), "the link": link_limit_pps(scenario)}
    there = [
        f"{name} {amount(float(f'{pps * payload_bits:.3g}'), 'bit/s')}"
        for name, pps in given.items()
        if math.isfinite(pps)
    ]
    flows = "" if scenario.senders == 1 else f", all {scenario.senders:,} flows"
    return f"Without loss{flows}: {', '.join(there)} at most." if there else ""


def _explanation(answer: Answer) -> list[Paragraph]:
    """Return a model's quantities in the order of computation, each with its equation."""
    steps = answer.steps
    if not steps:
        return []
    source = answer.provenance.get("formula", "")
    rows = [
        (
            entry["symbol"],
            _missing(entry) if entry["value"] is None else f"{entry['value']:.6g}",
            "" if entry["unit"] == "1" else entry["unit"],
        )
        for entry in steps
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [BLANK, Paragraph(f"{answer.engine}: {source}", "heading")]
    for (symbol, value, unit), entry in zip(rows, steps, strict=True):
        cells = (symbol.ljust(widths[0]), value.rjust(widths[1]), unit.ljust(widths[2]))
        lines.append(Paragraph(by_option(entry["source"]), mark=f"  {'  '.join(cells)}  "))
    return lines


def _missing(entry: Mapping[str, str]) -> str:
    """Return what stands for a quantity without a value: a window may be endless."""
    return "unlimited" if entry["unit"] == "packet" else ABSENT


def refusal_by_option(answer: Answer) -> str:
    """Return the reason of a refusal, with options instead of the scenario's keys."""
    return by_option(answer.refusal(_Options()))


def by_option(message: Note | str) -> str:
    """Return a text with options in place of the scenario's keys."""
    text = str(message)
    for key, option in _KEYS.items():
        text = text.replace(key, option)
    return re.sub(r'(--[a-z-]+) = "([^"]*)"(?: or "([^"]*)")?', _option_text, text)


def _option_text(found: re.Match[str]) -> str:
    """Return an option with its value, or with either of two."""
    option, value, other = found.groups()
    return f"{option} {value}" + (f" or {option} {other}" if other else "")


def _point_columns(predictions: Sequence[Prediction]) -> list[Column]:
    varied = [Column(name, [p.point[name] for p in predictions]) for name in predictions[0].point]
    leads = [prediction.lead_time for prediction in predictions]
    limits = [
        _limit(prediction.regime if lead is None else limit(lead, prediction.scenario))
        for prediction, lead in zip(predictions, leads, strict=True)
    ]
    return [*varied, Column("limited by", limits, right=False)]


def _model_columns(predictions: Sequence[Prediction]) -> list[Column]:
    """Return the times where a size was asked about, with the leading rate; else every rate."""
    if predictions[0].size_pkts is None:
        return _rate_columns(predictions)
    engines = _engines(_times_leading_first(p) for p in predictions)
    columns = [_time_column(predictions, name) for name in engines]
    if any(prediction.timed_by_goodput for prediction in predictions):
        columns.append(_goodput_time_column(predictions))
    return [*columns, *_mean_columns(predictions)]


def _rate_columns(predictions: Sequence[Prediction]) -> list[Column]:
    every = [a["goodput_bps"] for p in predictions for a in rates(p.steady)]
    leading = [p.goodput_bps for p in predictions]
    unit = scale_of_unit("bit/s", _middle(leading) or _middle(every))
    found = []
    for name in _engines(map(_leading_first, predictions)):
        cells = [_rate_cell(prediction, name, unit.factor) for prediction in predictions]
        found.append(Column(_heading(name, unit), cells))
    if not found:  # window and link alone
        cells = [_digits(p.goodput_bps / unit.factor) for p in predictions]
        found.append(Column(f"at most\n({unit.unit})", cells))
    return found


def _rate_cell(prediction: Prediction, engine: str, factor: float) -> str:
    given = [a for a in rates(prediction.steady) if a.engine == engine]
    return _digits(given[0]["goodput_bps"] / factor) + _mark(given[0]) if given else ABSENT


def _time_column(predictions: Sequence[Prediction], engine: str) -> Column:
    found, marks = [], []
    for prediction in predictions:
        given = [a for a in times(prediction.transfer or []) if a.engine == engine]
        found.append(transfer_time(given[0]).value if given else math.nan)
        marks.append(_mark(given[0]) if given else "")
    unit = scale_of_unit("s", _middle(found))
    cells = [_digits(s / unit.factor) + mark for s, mark in zip(found, marks, strict=True)]
    return Column(_heading(engine, unit), cells)


def _goodput_time_column(predictions: Sequence[Prediction]) -> Column:
    """Return the times that follow from the goodput, where no model of a transfer is trusted."""
    found = [p.time_by_goodput_s for p in predictions]
    unit = scale_of_unit("s", _middle(found))
    return Column(f"by\ngoodput\n({unit.unit})", [_digits(s / unit.factor) for s in found])


def _mean_columns(predictions: Sequence[Prediction]) -> list[Column]:
    """Return the mean rate of the transfer beside that of one flow in the long run."""
    mean = []
    for prediction in predictions:
        lead = prediction.lead_time
        flow_bits = 8 * prediction.amount_bytes / prediction.scenario.senders
        by_goodput = flow_bits / prediction.time_by_goodput_s
        mean.append(by_goodput if lead is None else mean_rate_bps(lead, prediction))
    steady = [p.goodput_bps / p.scenario.senders for p in predictions]
    unit = scale_of_unit("bit/s", _middle([*mean, *steady]))
    return [
        Column(f"{words}\n({unit.unit})", [_digits(rate / unit.factor) for rate in values])
        for words, values in (("on\naverage", mean), ("in the\nlong run", steady))
    ]


def _engines(answers: Iterable[Sequence[Answer]]) -> list[str]:
    """Return the names of all that answer anywhere, in the order in which they come."""
    return list(dict.fromkeys(answer.engine for given in answers for answer in given))


def _heading(engine: str, unit: Scale) -> str:
    first, hyphen, rest = engine.partition("-")
    return f"{first}{hyphen}\n{rest}\n({unit.unit})" if rest else f"{engine}\n({unit.unit})"


def _middle(values: Sequence[float]) -> float:
    """Return the median of the figures there are, by which a column's unit is chosen."""
    there = sorted(value for value in values if math.isfinite(value))
    return there[len(there) // 2] if there else 0.0
