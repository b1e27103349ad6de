"""The prediction for one path: the answers of models and simulation, limits, and headlines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.compare import compare_all, packets_text
from tcpcast.engines.formula.path_requirements import (
    DEFAULT_AMOUNT_BYTES,
    time_for_amount_s,
    time_for_amount_text,
)
from tcpcast.engines.registry import FORMULA_BY_CONTROL
from tcpcast.errors import SuggestionSyntax
from tcpcast.limit_names import limit_name_with_article
from tcpcast.report import csv
from tcpcast.report.json import answers_document
from tcpcast.report.quantity import three_digit_text
from tcpcast.verdict import limit_of_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.engines.formula.path_requirements import PathRequirements
    from tcpcast.report.answers import Answers
    from tcpcast.scenario import Scenario

WINDOW, BOTTLENECK, TIMEOUTS = "window", "bottleneck", "timeouts"
TRIPLE_DUPLICATES, SHALLOW_BUFFER = "triple duplicates", "shallow buffer"
SIMULATION = "packet"
LEADING_FORMULA = "pftk"
"""Formula of the headline for stacks with Reno's congestion control; the only one that includes
loss, timeouts and the receiver window."""

UPPER_BOUND_FORMULA = "bbr-bound"
"""The formula that returns an upper bound."""

TIME_ENGINES = (SIMULATION, "short", "cardwell")
"""Engines for the transfer time in the headline; the first trusted answer is used."""

BUFFER_METRICS = ("goodput_bps", "completion_time_s")
"""Metrics that the comparison with other buffer sizes shows."""

INPUT_COLUMNS = ("rtt_s", "loss_ratio", "rate_bps", "window_pkts", "flows", "size_pkts")
ANSWER_COLUMNS = (
    "send_rate_pps",
    "goodput_bps",
    "w_at_loss_mean_pkts",
    "timeout_share",
    "completion_time_s",
)
"""Columns of the CSV output after the inputs; rates are totals over all flows."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answers for one set of inputs.

    Attributes
    ----------
    steady
        Answers for flows that never end; empty if only the transfer size limits the flows.
    transfer
        Answers for one transfer; None if no size is given.
    varied_options
        Values of the options that were given as ranges, by option.
    formula_with_simulated_inputs
        The leading formula with inputs measured in the simulation of ``steady``; None without a
        simulation.
    sizing
        Windows and numbers of flows that fill the link; None if the link has no rate.
    size_pkts
        Size of the transfer in packets; None if no size is given.
    is_transfer_too_long
        True if a simulation of the transfer was requested, but the transfer has too many packets.
    is_buffer_assumed
        True if the link has a buffer that no option sets.
    other_buffers
        Simulations with other buffers, by buffer, if the buffer is assumed and they were quick.
    """

    steady: Answers
    transfer: Answers | None = None
    varied_options: Mapping[str, str] = field(default_factory=dict)
    formula_with_simulated_inputs: Answer | None = None
    sizing: PathRequirements | None = None
    size_pkts: float | None = None
    is_transfer_too_long: bool = False
    is_buffer_assumed: bool = False
    other_buffers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def answers(self) -> list[Answer]:
        """All answers; a model that refuses both steady state and transfer appears once."""
        transfer = [] if self.transfer is None else list(self.transfer)
        given = {a.engine for a in transfer if a.applies}
        kept = [a for a in self.steady if a.applies or a.engine not in given]
        named = {a.engine for a in kept}
        return kept + [a for a in transfer if a.applies or a.engine not in named]

    @property
    def is_interrupted(self) -> bool:
        """True if the user stopped a simulation."""
        return any(a.interrupted for a in (*self.answers, *self.other_buffers.values()))

    @property
    def has_simulated_transfer(self) -> bool:
        """True if a transfer was simulated."""
        return any(answer.engine == SIMULATION for answer in answers_with_time(self.transfer or []))

    @property
    def leading_answer(self) -> Answer | None:
        """The answer whose rate the headline shows: simulation, or else the leading formula.

        None if neither is trusted.
        """
        given = {a.engine: a for a in answers_with_rate(self.steady) if is_trusted(a)}
        return given.get(SIMULATION) or given.get(leading_formula(self.scenario))

    @property
    def leading_time_answer(self) -> Answer | None:
        """The answer whose transfer time the headline shows; None if no answer is trusted."""
        given = {a.engine: a for a in answers_with_time(self.transfer or []) if is_trusted(a)}
        return next((given[name] for name in TIME_ENGINES if name in given), None)

    @property
    def has_time_from_goodput(self) -> bool:
        """True if the transfer time is derived from slow start and the long-term goodput."""
        has_no_time = self.size_pkts is not None and self.leading_time_answer is None
        is_modern = bool(self.steady) and self.scenario.tcp.is_modern
        return has_no_time and is_modern and math.isfinite(self.goodput_bps)

    @property
    def time_by_goodput_s(self) -> float:
        """Transfer time derived from the goodput in seconds; or NaN (``has_time_from_goodput``)."""
        if not self.has_time_from_goodput:
            return math.nan
        return time_for_amount_s(self.scenario, self.amount_bytes, self.goodput_bps)

    @property
    def untrusted(self) -> bool:
        """True if loss matters, but neither the simulation nor the leading formula is trusted."""
        if self.leading_answer is not None:
            return False
        named = {a.engine for a in answers_with_rate(self.steady)}
        without_formula = (
            not leading_formula(self.scenario) and specified_loss_ratio(self.scenario) > 0
        )
        return without_formula or leading_formula(self.scenario) in named

    @property
    def regime(self) -> str:
        """The limit of the rate in the leading answer, or else the lower of window and link limit.

        "" if no answer is trusted.
        """
        if not self.steady:
            return (
                ""
                if self.leading_time_answer is None
                else limit_of_answer(self.leading_time_answer, self.scenario)
            )
        if self.leading_answer is not None:
            return limit_of_answer(self.leading_answer, self.scenario)
        if self.untrusted:
            return ""
        window, link = window_limit_pps(self.scenario), link_limit_pps(self.scenario)
        return WINDOW if window < link else BOTTLENECK

    @property
    def transfer_pkts(self) -> float:
        """Size of the transfer in packets as counted by the models; NaN if there is none."""
        tables = [answer.tables.get("by_size") for answer in self.transfer or []]
        return next((float(t["size_pkts"][0]) for t in tables if t is not None), math.nan)

    @property
    def amount_bytes(self) -> float:
        """Payload in bytes for which a time is reported: the transfer size, or 1 GB by default."""
        if self.size_pkts is None:
            return DEFAULT_AMOUNT_BYTES
        return float(math.ceil(self.size_pkts) * self.scenario.payload_bytes)

    @property
    def scenario(self) -> Scenario:
        """The scenario of the steady state: the path with flows that never end."""
        return self.steady.scenario

    @property
    def goodput_bps(self) -> float:
        """Total goodput of all flows in the leading answer, or else the limit by window and link.

        NaN if no answer is trusted.
        """
        if self.leading_answer is not None:
            return self.leading_answer["goodput_bps"]
        if self.untrusted or not self.steady:
            return math.nan
        max_pps = min(window_limit_pps(self.scenario), link_limit_pps(self.scenario))
        return max_pps * 8 * self.scenario.payload_bytes


def leading_formula(scenario: Scenario) -> str:
    """Return the formula for the stack's congestion control, or "" if there is none."""
    formulas = {"reno": LEADING_FORMULA, "tfrc": "pftk-approx"} | FORMULA_BY_CONTROL
    return formulas.get(scenario.tcp.control, "")


def answers_with_rate(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers with a send rate."""
    return [a for a in answers if "send_rate_pps" in a.metrics]


def answers_with_time(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers with a completion time."""
    return [a for a in answers if "completion_time_s" in a.metrics]


def transfer_time(answer: Answer) -> Metric:
    """Return the completion time of a transfer."""
    return answer.metrics["completion_time_s"]


def is_trusted(answer: Answer) -> bool:
    """Return True if an answer's rate and time are trusted, for comparisons and the headline."""
    metrics = [answer.metrics.get(name) for name in ("send_rate_pps", "completion_time_s")]
    return all(metric.trusted for metric in metrics if metric is not None)


def specified_loss_ratio(scenario: Scenario) -> float:
    """Return the specified mean loss ratio of the bottleneck."""
    loss = scenario.network.bottleneck.loss
    return 0.0 if loss is None else loss.mean_ratio()


def window_limit_pps(scenario: Scenario) -> float:
    """Return the number of flows times W_max/RTT in packets/s; inf without a window limit."""
    return scenario.senders * scenario.populations[0].tcp.receiver_window / scenario.rtt_s


def link_limit_pps(scenario: Scenario) -> float:
    """Return the link rate in packets/s; inf if unlimited."""
    return scenario.network.bottleneck.rate_bps / (8 * scenario.network.packet_bytes)


def time_and_rate_headlines(prediction: Prediction, syntax: SuggestionSyntax) -> list[str]:
    """Return :func:`transfer_headline` and :func:`rate_headline`, main result first."""
    texts = [f(prediction, syntax) for f in (transfer_headline, rate_headline)]
    if prediction.has_time_from_goodput:  # the transfer time is computed from the goodput
        texts.reverse()
    return list(filter(None, texts))


def rate_headline(prediction: Prediction, syntax: SuggestionSyntax) -> str:
    """Return a sentence with the goodput, the limit that applies, and the limits that do not.

    ``syntax`` is the syntax of the front end for suggestions.
    """
    if not prediction.steady:
        return ""
    if prediction.untrusted:
        return no_trusted_answer_sentence(prediction, syntax)
    flows = prediction.scenario.senders
    each = three_digit_text(prediction.goodput_bps / flows, "bit/s")
    total = three_digit_text(prediction.goodput_bps, "bit/s")
    rate = each if flows == 1 else f"{each} per flow, {total} in total"
    if prediction.leading_answer is not None and prediction.leading_answer.engine == SIMULATION:
        rate += " by simulation"
    is_bound = (
        prediction.leading_answer is not None
        and prediction.leading_answer.engine == UPPER_BOUND_FORMULA
    )
    return f"{'At most' if is_bound else 'About'} {rate}; {limits_text(prediction)}."


def limits_text(prediction: Prediction) -> str:
    """Return a clause with the limit that applies, and the limits that do not."""
    clause, others = _limit_clause_and_others(prediction)
    return clause + (f", not {' or '.join(others)}" if others else "")


def no_trusted_answer_sentence(prediction: Prediction, syntax: SuggestionSyntax) -> str:
    """Return the sentence for a prediction without a trusted answer."""
    if any(answer.engine == SIMULATION for answer in prediction.steady):
        return "No trusted rate: neither the simulation nor a formula is reliable for this path."
    return f"No formula is reliable for this path; {syntax.engine(SIMULATION)}."


def transfer_headline(prediction: Prediction, syntax: SuggestionSyntax) -> str:
    """Return a sentence with the transfer time, or "" if no model returns one."""
    lead = prediction.leading_time_answer
    if lead is None:
        if prediction.has_time_from_goodput:
            return _goodput_time_sentence(prediction)
        if not answers_with_time(prediction.transfer or []):
            return ""
        reason = "No formula for the transfer time is reliable for this path"
        return f"{reason}; {syntax.engine(SIMULATION)}."
    time = three_digit_text(transfer_time(lead).value, "s")
    by = " by simulation" if lead.engine == SIMULATION else ""
    from_syn = handshake_time_text(prediction)
    time += by + (f" ({from_syn})" if from_syn else "")
    single = "single transfer" if prediction.scenario.senders > 1 else "transfer"
    return f"A {single} of this size takes about {time}: {transfer_rates_text(prediction)}."


def transfer_rates_text(prediction: Prediction) -> str:
    """Return a clause with the mean rate of the transfer and the long-term rate, or ""."""
    if prediction.leading_time_answer is None:
        return ""
    mean = three_digit_text(mean_rate_bps(prediction.leading_time_answer, prediction), "bit/s")
    steady = prediction.goodput_bps / prediction.scenario.senders
    later = (
        f", and {three_digit_text(steady, 'bit/s')} in the long run"
        if math.isfinite(steady)
        else ""
    )
    return f"{mean} on average{later}"


def _goodput_time_sentence(prediction: Prediction) -> str:
    """Return a sentence with the time derived from the goodput, and why it is not simulated."""
    text = time_for_amount_text(
        prediction.scenario, prediction.amount_bytes, prediction.goodput_bps
    )
    reason = " The transfer has too many packets to simulate it completely."
    return text + reason if text and prediction.is_transfer_too_long else text


def handshake_time_text(prediction: Prediction) -> str:
    """Return the time including handshake, or "" if the rounded time does not change."""
    lead = prediction.leading_time_answer
    if lead is None or "total_time_s" not in lead.metrics:
        return ""
    time, total = (
        three_digit_text(lead[name], "s") for name in ("completion_time_s", "total_time_s")
    )
    return "" if time == total else f"{total} from the SYN"


def mean_rate_bps(answer: Answer, prediction: Prediction) -> float:
    """Return transfer size divided by transfer time in bit/s of payload."""
    bits = 8 * prediction.scenario.payload_bytes * prediction.transfer_pkts
    return bits / transfer_time(answer).value


def _limit_clause_and_others(prediction: Prediction) -> tuple[str, list[str]]:
    """Return a clause that names the limit, and the names of the other possible limits."""
    scenario = prediction.scenario
    regime = prediction.regime
    possible = {
        "loss": specified_loss_ratio(scenario) > 0,
        "the receiver window": math.isfinite(window_limit_pps(scenario)),
        "the link": math.isfinite(link_limit_pps(scenario)),
    }
    limits = {BOTTLENECK: "the link", SHALLOW_BUFFER: "the link", WINDOW: "the receiver window"}
    limiting = limits.get(regime, "loss")
    clause = f"limited by {limit_name_with_article(regime or 'loss')}"
    if regime == WINDOW:
        packets = packets_text(scenario.populations[0].tcp.receiver_window)
        clause += f" ({packets} per round trip)"
    return clause, [name for name, exists in possible.items() if exists and name != limiting]


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """Return the JSON of ``run --json`` with additional keys.

    ``verdict`` is the main sentence. ``limited_by`` is the regime of the leading answer (None if no
    answer is trusted). ``limits`` holds the limits of all flows by window and link in packets/s
    (None if unlimited). ``transfer`` is the scenario for the answers that contain
    ``completion_time_s``.
    """
    scenario = prediction.scenario
    limits = {"window_pps": window_limit_pps(scenario), "link_pps": link_limit_pps(scenario)}
    result = {
        **answers_document(compare_all(prediction.answers), scenario),
        "verdict": next(iter(time_and_rate_headlines(prediction, SuggestionSyntax())), None),
        "limited_by": prediction.regime or None,
        "limits": {name: v if math.isfinite(v) else None for name, v in limits.items()},
    }
    if math.isfinite(scenario.buffer_pkts):
        result["buffer"] = _buffer_json(prediction)
    if (sizing := prediction.sizing) is not None:
        result["sizing"] = sizing.to_json() | _transfer_time_json(prediction)
    if prediction.transfer is not None:
        result["transfer"] = prediction.transfer.scenario.resolved()
    return result


def _buffer_json(prediction: Prediction) -> dict[str, Any]:
    """Return the buffer and the values simulated with other buffers."""
    other = [
        {
            "buffer": buffer,
            "metrics": {
                n: answer.to_json()["metrics"][n] for n in BUFFER_METRICS if n in answer.metrics
            },
        }
        for buffer, answer in prediction.other_buffers.items()
    ]
    assumed = prediction.is_buffer_assumed
    packets = int(prediction.scenario.buffer_pkts)
    return {"packets": packets, "is_assumed": assumed} | ({"other": other} if other else {})


def _transfer_time_json(prediction: Prediction) -> dict[str, float | None]:
    """Return a payload size and its transfer time at the goodput of the leading answer."""
    seconds = time_for_amount_s(
        prediction.scenario, prediction.amount_bytes, prediction.goodput_bps
    )
    time = seconds if math.isfinite(seconds) else None
    return {"amount_bytes": prediction.amount_bytes, "amount_s": time}


def csv_text(predictions: Sequence[Prediction]) -> str:
    """Return CSV with one row per set of inputs and model: inputs, engine, regime and metrics.

    Inputs are in SI units; ``goodput_bps`` is the total payload rate. ``regime`` is empty for
    models without regimes, ``trusted`` false outside a domain. An inapplicable model has no row.
    """
    head = [*INPUT_COLUMNS, "engine", "regime", *ANSWER_COLUMNS, "trusted", "buffer_pkts"]
    return csv.encode_csv(head, _csv_rows(predictions))


def _csv_rows(predictions: Sequence[Prediction]) -> Iterator[list[Any]]:
    for prediction in predictions:
        for answers in (prediction.steady, prediction.transfer):
            for answer in answers or []:
                if answers is not None and answer.applies:
                    inputs = _input_columns(prediction, answers is prediction.transfer)
                    regime = limit_of_answer(answer, answers.scenario)
                    trusted, buffer = (
                        is_trusted(answer),
                        _plain_number(answers.scenario.buffer_pkts),
                    )
                    yield [*inputs, answer.engine, regime, *_metric_cells(answer), trusted, buffer]


def _input_columns(prediction: Prediction, of_transfer: bool) -> list[str]:
    scenario = prediction.scenario
    values = (
        scenario.rtt_s,
        specified_loss_ratio(scenario),
        scenario.network.bottleneck.rate_bps,
        scenario.populations[0].tcp.receiver_window,
        1 if of_transfer else scenario.senders,
        prediction.transfer_pkts if of_transfer else math.nan,
    )
    return [_plain_number(value) for value in values]


def _metric_cells(answer: Answer) -> list[str]:
    """Return the cells of :data:`ANSWER_COLUMNS`, empty for missing metrics."""
    values = {name: metric.value for name, metric in answer.metrics.items()}
    return [_plain_number(values[name]) if name in values else "" for name in ANSWER_COLUMNS]


def _plain_number(value: float) -> str:
    """Return a number in machine-readable form, or "" if it is infinite or NaN."""
    if not math.isfinite(value):
        return ""
    return repr(int(value)) if value == int(value) else repr(float(value))
