"""What the formulas say of one path: the answers, what window and link allow, in short words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.engines.formula.sizing import AMOUNT_BYTES, amount_s, time_text
from tcpcast.engines.registry import CONTROLS
from tcpcast.report import csv
from tcpcast.report.json import document
from tcpcast.report.quantity import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.engines.formula.sizing import PathSizing
    from tcpcast.report.answers import Answers
    from tcpcast.scenario import Scenario

WINDOW, BOTTLENECK, TIMEOUTS = "window", "bottleneck", "timeouts"
TRIPLE_DUPLICATES = "triple duplicates"
SIMULATION = "packet"
LEADING = "pftk"
"""The formula that the headline takes of a stack with Reno's window: it alone has loss, timeouts
and window."""

BOUND = "bbr-bound"
"""The formula that says what is reached at most."""

LEADING_TIMES = (SIMULATION, "short", "cardwell")
"""Whose time of a transfer the headline takes: the first that is trusted."""

SHALLOW_BUFFER = "shallow buffer"
_REGIMES = {
    TIMEOUTS: "mostly in timeouts",
    "cubic": "CUBIC's own region",
    "Reno-friendly": "CUBIC's Reno-friendly region",
}
"""Regimes of loss, as a sentence has them."""

FULL = 0.95
"""A simulated flow has all that a link or a window lets through from so much of it on."""

BUFFER_METRICS = ("goodput_bps", "completion_time_s")
"""Metrics that are also simulated with other buffers."""

POINT_COLUMNS = ("rtt_s", "loss_ratio", "rate_bps", "window_pkts", "flows", "size_pkts")
ANSWER_COLUMNS = (
    "send_rate_pps",
    "goodput_bps",
    "w_at_loss_mean_pkts",
    "timeout_share",
    "completion_time_s",
)
"""Columns of the CSV: inputs, and figures, all flows together."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answers at one point of what was asked.

    ``point`` has the values of the options that were given ranges, ``steady`` the answers of flows
    that never end (none where only the size limits them), ``transfer`` those of one transfer, None
    where no size was asked about. ``fed`` is the leading formula fed with the values of the
    simulation among ``steady``, None without one; ``sizing`` what filling the link takes of its
    ends, None where the link has no rate. ``size_pkts`` are the packets of the transfer that was
    asked about, None without one; it is ``too_long`` where it was to be simulated and has too many.
    ``is_buffer_assumed`` is True if the link has a buffer that no option sets; ``other_buffers``
    then holds simulations with other buffers, by buffer, if they were quick.
    """

    steady: Answers
    transfer: Answers | None = None
    point: Mapping[str, str] = field(default_factory=dict)
    fed: Answer | None = None
    sizing: PathSizing | None = None
    size_pkts: float | None = None
    too_long: bool = False
    is_buffer_assumed: bool = False
    other_buffers: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def answers(self) -> list[Answer]:
        """All answers; a model that applies to neither question is named once."""
        transfer = [] if self.transfer is None else list(self.transfer)
        given = {a.engine for a in transfer if a.applies}
        kept = [a for a in self.steady if a.applies or a.engine not in given]
        named = {a.engine for a in kept}
        return kept + [a for a in transfer if a.applies or a.engine not in named]

    @property
    def interrupted(self) -> bool:
        """True if the user stopped a simulation."""
        return any(a.interrupted for a in (*self.answers, *self.other_buffers.values()))

    @property
    def simulated_transfer(self) -> bool:
        """True if a transfer was simulated."""
        return any(answer.engine == SIMULATION for answer in times(self.transfer or []))

    @property
    def lead(self) -> Answer | None:
        """The answer that the headline takes its rate from; None where none is trusted.

        A simulation that ran leads, then the leading model.
        """
        given = {a.engine: a for a in rates(self.steady) if is_trusted(a)}
        return given.get(SIMULATION) or given.get(leading(self.scenario))

    @property
    def lead_time(self) -> Answer | None:
        """The answer that the headline takes a transfer's time from; None where none is trusted."""
        given = {a.engine: a for a in times(self.transfer or []) if is_trusted(a)}
        return next((given[name] for name in LEADING_TIMES if name in given), None)

    @property
    def timed_by_goodput(self) -> bool:
        """Whether a transfer's time is that of its start-up and the goodput in the long run."""
        asked = self.size_pkts is not None and self.lead_time is None
        todays = bool(self.steady) and self.scenario.tcp.is_modern
        return asked and todays and math.isfinite(self.goodput_bps)

    @property
    def time_by_goodput_s(self) -> float:
        """That time, nan where another is told."""
        if not self.timed_by_goodput:
            return math.nan
        return amount_s(self.scenario, self.amount_bytes, self.goodput_bps)

    @property
    def untrusted(self) -> bool:
        """Whether there are rates of loss, and none of those that may lead is trusted."""
        if self.lead is not None:
            return False
        named = {a.engine for a in rates(self.steady)}
        without_formula = not leading(self.scenario) and loss_ratio(self.scenario) > 0
        return without_formula or leading(self.scenario) in named

    @property
    def regime(self) -> str:
        """What limits the rate, by the answer that leads; without any, by window and link alone.

        "" where no answer is trusted.
        """
        if not self.steady:
            return "" if self.lead_time is None else limit(self.lead_time, self.scenario)
        if self.lead is not None:
            return limit(self.lead, self.scenario)
        if self.untrusted:
            return ""
        window, link = window_limit_pps(self.scenario), link_limit_pps(self.scenario)
        return WINDOW if window < link else BOTTLENECK

    @property
    def transfer_pkts(self) -> float:
        """The packets of the transfer, as the models count them; nan without one."""
        tables = [answer.tables.get("by_size") for answer in self.transfer or []]
        return next((float(t["size_pkts"][0]) for t in tables if t is not None), math.nan)

    @property
    def amount_bytes(self) -> float:
        """The amount whose time is told: the size asked about, else 1 GB."""
        if self.size_pkts is None:
            return AMOUNT_BYTES
        return float(math.ceil(self.size_pkts) * self.scenario.payload_bytes)

    @property
    def scenario(self) -> Scenario:
        """The path, with flows that never end."""
        return self.steady.scenario

    @property
    def goodput_bps(self) -> float:
        """Payload delivered by all flows together, by the answer that leads or what limits instead.

        NaN where no answer is trusted.
        """
        if self.lead is not None:
            return self.lead["goodput_bps"]
        if self.untrusted or not self.steady:
            return math.nan
        most = min(window_limit_pps(self.scenario), link_limit_pps(self.scenario))
        return most * 8 * self.scenario.payload_bytes


def leading(scenario: Scenario) -> str:
    """Return the formula that leads: that of the stack's congestion control, "" without one."""
    control = scenario.tcp.control
    return LEADING if control == "reno" else CONTROLS.get(control, "")


def rates(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers that give a rate."""
    return [a for a in answers if "send_rate_pps" in a.metrics]


def times(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers that give the time of a transfer."""
    return [a for a in answers if "completion_time_s" in a.metrics]


def transfer_time(answer: Answer) -> Metric:
    """Return the time of a transfer, of an answer that gives one."""
    return answer.metrics["completion_time_s"]


def is_trusted(answer: Answer) -> bool:
    """Say whether an answer's rate or time may be compared and stand in the headline."""
    asked = [answer.metrics.get(name) for name in ("send_rate_pps", "completion_time_s")]
    return all(metric.trusted for metric in asked if metric is not None)


def limit(answer: Answer, scenario: Scenario) -> str:
    """Return what holds the rate down by an answer, "" where it does not say.

    A formula says it; of a simulation it is what has hardly anything left.
    """
    if answer.engine != SIMULATION or "send_rate_pps" not in answer.metrics:
        return answer.regime or ""
    found = {name: metric.value for name, metric in answer.metrics.items()}
    if found.get("utilisation", 0.0) >= FULL:
        return BOTTLENECK
    rtt = max(found.get("rtt_mean_s", 0.0), scenario.rtt_s)
    if found["send_rate_pps"] * rtt >= FULL * scenario.senders * scenario.tcp.receiver_window:
        return WINDOW
    if loss_ratio(scenario) == 0 and found.get("queue_loss_ratio", 0.0) > 0:
        return SHALLOW_BUFFER
    return TIMEOUTS if _timed_out_share(answer, scenario) > 0.5 else TRIPLE_DUPLICATES


def _timed_out_share(answer: Answer, scenario: Scenario) -> float:
    """Return the share of its time that a simulated flow waits for its timer."""
    kinds = answer.tables.get("timeouts_by_kind")
    if kinds is None or not answer.measured_s > 0:
        return 0.0
    return float(kinds["time_s"].sum() / (scenario.senders * answer.measured_s))


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
    if not prediction.steady:
        return ""
    if prediction.untrusted:
        return _no_rate(prediction)
    flows = prediction.scenario.senders
    each = amount(_short(prediction.goodput_bps / flows), "bit/s")
    together = amount(_short(prediction.goodput_bps), "bit/s")
    shares = each if flows == 1 else f"{each} per flow, {together} together"
    if prediction.lead is not None and prediction.lead.engine == SIMULATION:
        shares += " by simulation"
    clause, others = _limits(prediction)
    spared = f", not {' or '.join(others)}" if others else ""
    bound = prediction.lead is not None and prediction.lead.engine == BOUND
    return f"{'At most' if bound else 'About'} {shares}; {clause}{spared}."


def _no_rate(prediction: Prediction) -> str:
    """Say that no answer is trusted, and what would be."""
    if any(answer.engine == SIMULATION for answer in prediction.steady):
        return "No trusted rate: neither the simulation nor a formula has one here."
    return "No formula is trusted here: simulate the path with --packet."


def transfer_headline(prediction: Prediction) -> str:
    """Return what a transfer takes in a sentence, "" where no model says it."""
    lead = prediction.lead_time
    if lead is None:
        if prediction.timed_by_goodput:
            return _time_by_goodput(prediction)
        if not times(prediction.transfer or []):
            return ""
        return "No time of a transfer is trusted here: simulate it with --packet."
    mean = amount(_short(mean_rate_bps(lead, prediction)), "bit/s")
    took = amount(_short(transfer_time(lead).value), "s")
    by = " by simulation" if lead.engine == SIMULATION else ""
    alone = prediction.goodput_bps / prediction.scenario.senders
    later = f", {amount(_short(alone), 'bit/s')} in the long run" if math.isfinite(alone) else ""
    took += by + _connected(lead)
    one = "A transfer of this size" + (" alone" if prediction.scenario.senders > 1 else "")
    return f"{one} takes about {took}: {mean} on average{later}."


def _time_by_goodput(prediction: Prediction) -> str:
    """Return how long the transfer takes at the goodput, and why no simulation says it."""
    text = time_text(prediction.scenario, prediction.amount_bytes, prediction.goodput_bps)
    why = " It has too many packets to be simulated from end to end."
    return text + why if text and prediction.too_long else text


def _connected(lead: Answer) -> str:
    """Return what a transfer takes from its SYN on, "" without a handshake that shows."""
    total = lead.metrics.get("total_time_s")
    if total is None or _short(total.value) == _short(transfer_time(lead).value):
        return ""
    return f", {amount(_short(total.value), 's')} from the SYN on"


def mean_rate_bps(answer: Answer, prediction: Prediction) -> float:
    """Return a transfer's size over the time that an answer gives, in bit/s of payload."""
    bits = 8 * prediction.scenario.payload_bytes * prediction.transfer_pkts
    return bits / transfer_time(answer).value


def _limits(prediction: Prediction) -> tuple[str, list[str]]:
    """Return what limits the rate as a clause, and what else might have."""
    scenario = prediction.scenario
    what = prediction.regime
    given = {
        "loss": loss_ratio(scenario) > 0,
        "the window": math.isfinite(window_limit_pps(scenario)),
        "the link": math.isfinite(link_limit_pps(scenario)),
    }
    if what == WINDOW:
        packets = packets_text(scenario.populations[0].tcp.receiver_window)
        clause = f"limited by the receiver window ({packets} in each round trip)"
        limiting = "the window"
    elif what in {BOTTLENECK, SHALLOW_BUFFER}:
        limiting, clause = "the link", "limited by the link"
        if what == SHALLOW_BUFFER:
            clause += ", which has a shallow buffer"
    else:
        why = _REGIMES.get(what, what)
        limiting, clause = (
            "loss",
            f"limited by loss ({why})" if why else "limited by loss",
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

    ``limited_by`` is the regime of the answer that leads (None where none is trusted), ``limits``
    what window and link allow in packets/s, all flows (None where there is none), ``transfer`` the
    scenario that the answers with ``completion_time_s`` are about.
    """
    scenario = prediction.scenario
    limits = {"window_pps": window_limit_pps(scenario), "link_pps": link_limit_pps(scenario)}
    found = {
        **document(prediction.answers, scenario),
        "limited_by": prediction.regime or None,
        "limits": {name: v if math.isfinite(v) else None for name, v in limits.items()},
    }
    if math.isfinite(scenario.buffer_pkts):
        found["buffer"] = _buffer_json(prediction)
    if (sizing := prediction.sizing) is not None:
        found["sizing"] = sizing.to_json() | _time_of(prediction)
    if prediction.transfer is not None:
        found["transfer"] = prediction.transfer.scenario.resolved()
    return found


def _buffer_json(prediction: Prediction) -> dict[str, Any]:
    """Return the buffer, and the simulated values with other buffers."""
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


def _time_of(prediction: Prediction) -> dict[str, float | None]:
    """Return an amount of payload, and how long it takes at the leading goodput."""
    seconds = amount_s(prediction.scenario, prediction.amount_bytes, prediction.goodput_bps)
    time = seconds if math.isfinite(seconds) else None
    return {"amount_bytes": prediction.amount_bytes, "amount_s": time}


def csv_text(predictions: Sequence[Prediction]) -> str:
    """Return a row a point and model: inputs in SI units, engine, regime and figures.

    ``goodput_bps`` is payload, all flows; ``regime`` is empty where a model has none; ``trusted``
    is false outside a formula's domain. A model that does not apply at a point has no row there.
    """
    head = [*POINT_COLUMNS, "engine", "regime", *ANSWER_COLUMNS, "trusted", "buffer_pkts"]
    return csv.encode(head, _csv_rows(predictions))


def _csv_rows(predictions: Sequence[Prediction]) -> Iterator[list[Any]]:
    for prediction in predictions:
        for answers in (prediction.steady, prediction.transfer):
            for answer in answers or []:
                if answers is not None and answer.applies:
                    inputs = _inputs(prediction, answers is prediction.transfer)
                    what = limit(answer, answers.scenario)
                    trusted, buffer = is_trusted(answer), _plain(answers.scenario.buffer_pkts)
                    yield [*inputs, answer.engine, what, *_values(answer), trusted, buffer]


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


def _values(answer: Answer) -> list[str]:
    """Return the values of :data:`ANSWER_COLUMNS`, empty where a model has none."""
    found = {name: metric.value for name, metric in answer.metrics.items()}
    return [_plain(found[name]) if name in found else "" for name in ANSWER_COLUMNS]


def _plain(value: float) -> str:
    """Return a number as any program reads it, nothing for one that is endless or absent."""
    if not math.isfinite(value):
        return ""
    return repr(int(value)) if value == int(value) else repr(float(value))
