"""What the formulas say of one path: the answers, what window and link allow, in short words."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.report.json import document
from tcpcast.report.quantity import amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.answer import Answer
    from tcpcast.report.answers import Answers
    from tcpcast.scenario import Scenario

WINDOW, BOTTLENECK, TIMEOUTS = "window", "bottleneck", "timeouts"
WITHOUT_TIMEOUTS = ("mathis", "td-only")
PARALLEL = ("parallel", "parallel-cumulative")
LEADING = "pftk"
"""The model whose figure the headline takes: it alone has loss, timeouts and window."""

POINT_COLUMNS = ("rtt_s", "loss_ratio", "rate_bps", "window_pkts", "flows", "size_pkts")
ANSWER_COLUMNS = (
    "send_rate_pps",
    "goodput_bps",
    "w_at_loss_mean_pkts",
    "timeout_share",
    "completion_time_s",
)
"""Columns of the CSV: inputs, and figures, all flows together."""

APART = 0.2
"""How far models must be from each other before the reader is told which to trust."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answers at one point of what was asked.

    ``point`` has the values of the options that were given ranges, ``steady`` the answers of flows
    that never end, ``transfer`` those of one transfer, None where no size was asked about.
    """

    steady: Answers
    transfer: Answers | None = None
    point: Mapping[str, str] = field(default_factory=dict)

    @property
    def answers(self) -> list[Answer]:
        """All answers; a model that applies to neither question is named once."""
        transfer = [] if self.transfer is None else list(self.transfer)
        given = {a.engine for a in transfer if a.not_applicable is None}
        kept = [a for a in self.steady if a.not_applicable is None or a.engine not in given]
        return kept + [a for a in transfer if a.not_applicable is None]

    @property
    def lead(self) -> Answer | None:
        """The answer that the headline takes its figure from; None where that model is silent."""
        return next((a for a in rates(self.steady) if a.engine == LEADING), None)

    @property
    def regime(self) -> str:
        """What limits the rate, by the leading model; without any, by window and link alone."""
        if self.lead is not None:
            return regime(self.lead)
        window, link = window_limit_pps(self.scenario), link_limit_pps(self.scenario)
        return WINDOW if window < link else BOTTLENECK

    @property
    def transfer_pkts(self) -> float:
        """The packets of the transfer, as the models count them; nan without one."""
        tables = [answer.tables.get("by_size") for answer in self.transfer or []]
        return next((float(t["size_pkts"][0]) for t in tables if t is not None), math.nan)

    @property
    def scenario(self) -> Scenario:
        """The path, with flows that never end."""
        return self.steady.scenario

    @property
    def goodput_bps(self) -> float:
        """Payload delivered by all flows together, by the leading model or what limits instead."""
        if self.lead is not None:
            return goodput_bps(self.lead, self.scenario)
        most = min(window_limit_pps(self.scenario), link_limit_pps(self.scenario))
        return most * 8 * self.scenario.network.payload_bytes


def rates(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers that give a rate."""
    return [a for a in answers if "send_rate_pps" in a.metrics]


def times(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers that give the time of a transfer."""
    return [a for a in answers if "completion_time_s" in a.metrics]


def regime(answer: Answer) -> str:
    """Return what holds the rate down by an answer, "" where it does not say."""
    return str(answer.provenance.get("regime", ""))


def goodput_bps(answer: Answer, scenario: Scenario) -> float:
    """Return the payload delivered in bit/s, all flows.

    Where a model has no goodput of its own: what it sends less the share lost on the way, which
    arrives once if nothing is sent again in vain.
    """
    if "goodput_bps" in answer.metrics:
        return answer["goodput_bps"]
    payload_bits = 8 * scenario.network.payload_bytes
    if "goodput_pps" in answer.metrics:
        return answer["goodput_pps"] * payload_bits
    return answer["send_rate_pps"] * (1 - loss_ratio(scenario)) * payload_bits


def loss_ratio(scenario: Scenario) -> float:
    """Return the loss that was asked for."""
    loss = scenario.network.bottleneck.loss
    return 0.0 if loss is None else loss.mean_ratio()


def window_limit_pps(scenario: Scenario) -> float:
    """Return what the receiver windows allow, W_max/RTT times the flows; inf without any."""
    return scenario.senders * scenario.populations[0].tcp.receiver_window / scenario.rtt_s


def link_limit_pps(scenario: Scenario) -> float:
    """Return what the link carries in packets/s; inf without a rate."""
    return scenario.network.bottleneck.rate_bps / (8 * scenario.network.packet_bytes)


def headline(prediction: Prediction) -> str:
    """Return the answer in a sentence: how much, what limits it, what does not."""
    flows = prediction.scenario.senders
    each = amount(_short(prediction.goodput_bps / flows), "bit/s")
    together = amount(_short(prediction.goodput_bps), "bit/s")
    shares = each if flows == 1 else f"{each} a flow, {together} together"
    limit, others = _limits(prediction)
    spared = f", not {' or '.join(others)}" if others else ""
    return f"About {shares}; {limit}{spared}."


def transfer_headline(prediction: Prediction) -> str:
    """Return what a transfer takes in a sentence, "" where no model says it."""
    answers = times(prediction.transfer or [])
    if prediction.transfer is None or not answers:
        return ""
    seconds = answers[0]["completion_time_s"]
    mean = amount(_short(mean_rate_bps(answers[0], prediction)), "bit/s")
    alone = amount(_short(prediction.goodput_bps / prediction.scenario.senders), "bit/s")
    took = amount(_short(seconds), "s")
    return (
        f"A transfer of this size takes about {took}: {mean} on average, {alone} in the long run."
    )


def mean_rate_bps(answer: Answer, prediction: Prediction) -> float:
    """Return a transfer's size over the time that an answer gives, in bit/s of payload."""
    bits = 8 * prediction.scenario.network.payload_bytes * prediction.transfer_pkts
    return bits / answer["completion_time_s"]


def advice(prediction: Prediction) -> list[str]:
    """Return which model to trust where they differ, and why."""
    lead = prediction.lead
    if lead is None:
        return []
    given = {answer.engine: answer["send_rate_pps"] for answer in rates(prediction.steady)}
    return [
        text
        for text in (_too_high(given, lead), _too_low(given, lead), _simulated(given, lead))
        if text
    ]


def _too_high(given: Mapping[str, float], lead: Answer) -> str:
    """Say where models without timeouts promise too much."""
    high = [n for n in WITHOUT_TIMEOUTS if given.get(n, 0.0) > (1 + APART) * given[lead.engine]]
    if not high or regime(lead) in {WINDOW, BOTTLENECK}:
        return ""
    leave = "leave" if len(high) > 1 else "leaves"
    share = _step(lead, "in timeouts")
    return f"{' and '.join(high)} {leave} timeouts out, {share:.0%} of the time here: trust pftk."


def _too_low(given: Mapping[str, float], lead: Answer) -> str:
    """Say where the model of parallel flows expects more timeouts than there are."""
    low = [n for n in PARALLEL if given.get(n, math.inf) < (1 - 2 * APART) * given[lead.engine]]
    if not low:
        return ""
    expect = "expect" if len(low) > 1 else "expects"
    timer = _step(lead, "T0") / _step(lead, "RTT")
    return (
        f"{' and '.join(low)} {expect} many more timeouts than a simulation has where loss is high "
        f"and T0 long ({timer:.3g} RTT here): trust pftk."
    )


def _simulated(given: Mapping[str, float], lead: Answer) -> str:
    """Say how far the formula is from the simulation, and why."""
    if "packet" not in given:
        return ""
    apart = given[lead.engine] / given["packet"] - 1
    why = "pftk loses the rest of a round with its first loss, packet each packet by itself"
    return f"pftk is {apart:+.0%} from the simulation: {why}."


def _step(answer: Answer, symbol: str) -> float:
    """Return a quantity of a model, nan where it has none of that name."""
    steps = answer.provenance.get("steps", [])
    return next((float(s["value"]) for s in steps if s["symbol"] == symbol), math.nan)


def _limits(prediction: Prediction) -> tuple[str, list[str]]:
    """Return what limits the rate as a clause, and what else might have."""
    scenario = prediction.scenario
    what = prediction.regime
    given = {
        "the loss": loss_ratio(scenario) > 0,
        "the window": math.isfinite(window_limit_pps(scenario)),
        "the link": math.isfinite(link_limit_pps(scenario)),
    }
    if what == WINDOW:
        packets = packets_text(scenario.populations[0].tcp.receiver_window)
        clause = f"the receiver window limits it ({packets} in each round trip)"
        limiting = "the window"
    elif what == BOTTLENECK:
        limiting, clause = "the link", "the link limits it"
    else:
        why = "mostly in timeouts" if what == TIMEOUTS else what
        limiting, clause = (
            "the loss",
            f"the loss limits it ({why})" if why else "the loss limits it",
        )
    return clause, [name for name, there in given.items() if there and name != limiting]


def packets_text(number: float) -> str:
    """Return how many packets, as a sentence has it."""
    return f"{number:,.0f} packet{'' if number == 1 else 's'}"


def _short(value: float) -> float:
    """Round to the three digits that a formula's figure bears at most."""
    return float(f"{value:.3g}")


def prediction_json(prediction: Prediction) -> dict[str, Any]:
    """Return ``{"scenario": ..., "answers": [...]}`` as ``run --json`` has it, and what follows.

    ``limited_by`` is the leading model's regime, ``limits`` what window and link allow in
    packets/s, all flows (None where there is none), ``transfer`` the scenario that the answers with
    ``completion_time_s`` are about.
    """
    scenario = prediction.scenario
    limits = {"window_pps": window_limit_pps(scenario), "link_pps": link_limit_pps(scenario)}
    found = {
        **document(prediction.answers, scenario),
        "limited_by": prediction.regime,
        "limits": {name: v if math.isfinite(v) else None for name, v in limits.items()},
    }
    if prediction.transfer is not None:
        found["transfer"] = prediction.transfer.scenario.resolved()
    return found


def csv_text(predictions: Sequence[Prediction]) -> str:
    """Return a row a point and model: inputs in SI units, engine, regime and figures.

    ``goodput_bps`` is payload, all flows; ``regime`` is empty where a model has none. A model
    that does not apply at a point has no row there.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*POINT_COLUMNS, "engine", "regime", *ANSWER_COLUMNS])
    for prediction in predictions:
        for answers in (prediction.steady, prediction.transfer):
            for answer in answers or []:
                if answer.not_applicable is None:
                    inputs = _inputs(prediction, answers is prediction.transfer)
                    figures = _figures(answer, prediction.scenario)
                    writer.writerow([*inputs, answer.engine, regime(answer), *figures])
    return out.getvalue()


def _inputs(prediction: Prediction, of_transfer: bool) -> list[str]:
    scenario = prediction.scenario
    given = (
        scenario.rtt_s,
        loss_ratio(scenario),
        scenario.network.bottleneck.rate_bps,
        scenario.populations[0].tcp.receiver_window,
        1 if of_transfer else scenario.senders,
        prediction.transfer_pkts if of_transfer else math.nan,
    )
    return [_plain(value) for value in given]


def _figures(answer: Answer, scenario: Scenario) -> list[str]:
    """Return the figures of :data:`ANSWER_COLUMNS`, empty where a model has none."""
    found = {name: metric.value for name, metric in answer.metrics.items()}
    if "send_rate_pps" in found:
        found["goodput_bps"] = goodput_bps(answer, scenario)
    return [_plain(found[name]) if name in found else "" for name in ANSWER_COLUMNS]


def _plain(value: float) -> str:
    """Return a number as any program reads it, nothing for one that is endless or absent."""
    if not math.isfinite(value):
        return ""
    return repr(int(value)) if value == int(value) else repr(float(value))
