"""Engine ``engset``: inputs of TCP-Engset from a scenario, and its results as an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.engines.formula.engset_steps import classes_steps, engset_steps
from tcpcast.models.engset import (
    EngsetClass,
    Path,
    engset_classes,
    shared_rate_bps,
    spurious_timeouts,
    time_above,
)
from tcpcast.models.engset import engset as solve_engset
from tcpcast.process.errors import DomainError, NotApplicable, Suggestion
from tcpcast.quantity.units import digits
from tcpcast.scenario.distributions import ExponentialPareto, Lognormal, Pareto, TwoExponentials
from tcpcast.scenario.empirical import Empirical
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats, Table
    from tcpcast.models.engset import ClassesResult, EngsetResult, IsolatedConnection
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.traffic import SizeDistribution

MAX_TRUSTED_LOSS = 0.01
"""Largest loss that TCP-Engset can predict, according to its authors."""

MAX_TRUSTED_SIZE_RATIO = 3.0
"""Largest ratio of the mean file sizes of two classes for which rates are trusted."""

MAX_COMPLETE_STATES = 10_000
"""Maximum number of sources with a complete table of states. With more sources, improbable states
at both ends are omitted."""

MAX_QUEUE_ROWS = 2_000
"""Maximum rows of the table of P(Q > x); longer queues have a row per 2, 3, ... packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngsetInputs(EngsetClass):
    """A class of sources, and the buffer of its link; None for an unlimited buffer."""

    buffer_pkts: float | None

    def solve(self) -> EngsetResult:
        """Return the model's result.

        Raises
        ------
        DomainError
            As :func:`tcpcast.models.engset.engset`.
        """
        return solve_engset(**{each.name: getattr(self, each.name) for each in fields(self)})


def engset(scenario: Scenario) -> Answer:
    """Predict by the TCP-Engset model, revisited.

    Metrics: ``connection_rate_bps`` h, ``on_time_s`` ON and ``utilisation`` U (eq. 10),
    ``offered_load`` a0 (eq. 5), ``queue_mean_pkts`` Q (eq. 11), ``loss_ratio`` P(Q > B) (eq. 12,
    absent for an unlimited buffer), ``rtt_mean_s`` RTT0 + Q Delta (Table 11: only the delay at the
    bottleneck, not at a connection's own links) and ``mean_size_pkts``, the mean of the size
    distribution before rounding; rate and ON time of several classes are over all files. Tables
    ``states`` (active, probability; for one class also shared_rate_bps), ``queue`` (queue_pkts,
    time_above) and, for several classes (:func:`tcpcast.models.engset.engset_classes`),
    ``by_class``. The provenance contains the intermediate values (ON0, h0, s, h1, h2, ...).

    Raises
    ------
    NotApplicable
        The model does not cover the scenario; the message contains the reason.
    """
    inputs = class_inputs(scenario)
    sizes_alike = True
    if len(inputs) == 1:
        one = inputs[0].solve()
        result: EngsetResult | ClassesResult = one
        rate_bps, on_time_s, rtt_s = one.rate_bps, one.on_time_s, one.rtt_s
        mean_size_pkts, warnings = one.mean_size_pkts, engset_warnings(scenario, one)
        active = np.arange(one.sources + 1)
        if one.sources > MAX_COMPLETE_STATES:
            active = np.flatnonzero(one.probability >= 1e-30)
        shared = np.full(active.size, np.nan)
        shared[active > 0] = shared_rate_bps(
            active=active[active > 0],
            peak_bps=one.isolated.rate_bps,
            link_bps=one.path.bottleneck_bps,
        )
        tables: dict[str, Table] = {
            "states": {
                "active": active,
                "probability": one.probability[active],
                "shared_rate_bps": shared,
            }
        }
        end = one.buffer_pkts
        queue = _queue_table_positions(max(one.buffer_for_loss(1e-9), 1.0) if end is None else end)
        time_above_queue = one.time_above(queue)
        steps = engset_steps(inputs[0], one)
        isolated, sharing = one.isolated, one.sharing
        # Symbols by their names in the paper, None if undefined.
        symbols: dict[str, Any] = {
            "beta": one.path.beta,
            "beta_slowest": one.path.slowest_beta,
            "m": isolated.rounds,
            "n": isolated.tail_pkts,
            "m_queue": isolated.queue_rounds,
            "saturated": isolated.flights.saturated,
            "on0_s": isolated.on_time_s,
            "h0_bps": isolated.rate_bps,
            "s": isolated.servers,
            "mean_active": sharing.mean_active,
            "h1_bps": sharing.rate1_bps,
            "h2_bps": sharing.rate2_bps,
            "on1_s": sharing.on_time1_s,
            "on2_s": sharing.on_time2_s,
            "u1": sharing.utilisation1,
            "u2": sharing.utilisation2,
        }
    else:
        try:
            all_classes = engset_classes(inputs, buffer_pkts=inputs[0].buffer_pkts)
        except DomainError as error:
            raise NotApplicable(f"TCP-Engset does not cover these classes: {error}") from error
        result = all_classes
        steps = classes_steps(all_classes, [group.name for group in scenario.populations])
        sizes = np.array([each.mean_size_pkts for each in all_classes.classes])
        sizes_alike = bool(sizes.max() <= MAX_TRUSTED_SIZE_RATIO * sizes.min())
        warnings = _warn_about_classes(scenario, all_classes, sizes)
        per_s = all_classes.transfers_per_s / all_classes.transfers_per_s.sum()
        bits = np.array([each.file_bits for each in all_classes.classes])
        rate_bps = float(per_s @ bits) / float(per_s @ (bits / all_classes.rate_bps))
        on_time_s, rtt_s = float(per_s @ all_classes.on_time_s), float(per_s @ all_classes.rtt_s)
        mean_size_pkts = float(per_s @ sizes)
        probability = all_classes.active_probability
        tables = {
            "by_class": {
                "name": np.array([group.name for group in scenario.populations]),
                "sources": np.array([each.sources for each in all_classes.classes]),
                "connection_rate_bps": all_classes.rate_bps,
                "on_time_s": all_classes.on_time_s,
                "mean_size_pkts": sizes,
                "rtt_mean_s": all_classes.rtt_s,
            },
            "states": {"active": np.arange(probability.size), "probability": probability},
        }
        load, mean = all_classes.closed_loop_load, all_classes.queue_mean_pkts
        # Without a buffer limit, the table ends at the queue that is exceeded for 1e-9 of the time.
        end = all_classes.buffer_pkts or max(mean / load * np.log(max(load, 1e-9) / 1e-9), 1.0)
        queue = _queue_table_positions(end)
        time_above_queue = time_above(queue_pkts=queue, queue_mean_pkts=mean, load=load)
        symbols = {
            "m": [one.rounds for one in all_classes.isolated],
            "m_queue": [one.queue_rounds for one in all_classes.isolated],
            "on0_s": [one.on_time_s for one in all_classes.isolated],
            "h0_bps": [one.rate_bps for one in all_classes.isolated],
            "u2": load,
        }
    tables["queue"] = {"queue_pkts": queue, "time_above": time_above_queue}
    trusted_queue = sizes_alike and not mean_queue_exceeds_buffer(result)
    metrics = {
        "connection_rate_bps": Metric(rate_bps, trusted=sizes_alike),
        "on_time_s": Metric(on_time_s, trusted=sizes_alike),
        "offered_load": Metric(result.offered_load),
        "utilisation": Metric(result.utilisation),
        "queue_mean_pkts": Metric(result.queue_mean_pkts, trusted=trusted_queue),
        "rtt_mean_s": Metric(rtt_s, trusted=trusted_queue),
        "mean_size_pkts": Metric(mean_size_pkts),
    }
    if result.loss_ratio is not None:
        trusted = trusted_queue and result.loss_ratio <= MAX_TRUSTED_LOSS
        metrics["loss_ratio"] = Metric(result.loss_ratio, trusted=trusted)
    return Answer(
        engine="engset",
        metrics=metrics,
        tables=tables,
        notes=texts_to_notes(warnings),
        steps=steps,
        provenance={"intermediates": symbols},
    )


def engset_inputs(scenario: Scenario) -> EngsetInputs:
    """Return the inputs of TCP-Engset for a scenario with one class.

    Raises
    ------
    NotApplicable
        Several classes, or as :func:`class_inputs`.
    """
    if len(scenario.populations) > 1:
        raise NotApplicable(
            "TCP-Engset can be solved for a target only with one class of sources, but the "
            f"scenario has {len(scenario.populations)} classes"
        )
    return class_inputs(scenario)[0]


def class_inputs(scenario: Scenario) -> list[EngsetInputs]:
    """Return the inputs of TCP-Engset for each class of a scenario.

    Raises
    ------
    NotApplicable
        Traffic that is not on/off, a bottleneck without a rate, random loss, delayed ACKs, a buffer
        on a connection's own link that can overflow, a slow start that ends before the receiver
        window.
    """
    groups = scenario.populations
    for group in groups:
        if not isinstance(group.traffic, OnOff):
            owner = (
                f"the traffic of class {group.name}"
                if len(groups) > 1
                else ("the traffic of the scenario")
            )
            raise NotApplicable(
                f"TCP-Engset requires on/off traffic; {owner} is {group.traffic.kind}"
            )
    check_network_and_tcp("TCP-Engset", scenario)
    try:
        return [_inputs_of_class(scenario, group) for group in scenario.populations]
    except DomainError as error:
        raise NotApplicable(f"TCP-Engset does not cover this path: {error}") from error


def check_network_and_tcp(model: str, scenario: Scenario) -> None:
    """Check that a model without random loss and with one queue covers a scenario.

    Raises
    ------
    NotApplicable
        It does not; the message begins with ``model``, and suggests all necessary changes.
    """
    groups = scenario.populations
    obstacles = [each for group in groups for each in _find_obstacles(scenario, group)]
    if obstacles:
        reason, _ = obstacles[0]
        together = {key: value for _, changes in obstacles for key, value in changes.items()}
        can_change = all(changes for _, changes in obstacles)
        raise NotApplicable(f"{model} {reason}", *([Suggestion(together)] if can_change else []))


def path_of_class(scenario: Scenario, group: Population) -> Path:
    """Return the model's path of a class."""
    return Path(
        rtt0_s=group.rtt_s,
        packet_bytes=group.packet_bytes,
        bottleneck_bps=scenario.bottleneck.rate_bps,
        # All other links of a source limit it like its ingress link.
        ingress_bps=min(
            (on.link.rate_bps for on in group.route[:-1] if not on.shared), default=math.inf
        ),
        egress_bps=group.egress.rate_bps,
    )


def _inputs_of_class(scenario: Scenario, group: Population) -> EngsetInputs:
    tcp, traffic = group.tcp, group.traffic
    assert isinstance(traffic, OnOff)
    buffer = scenario.buffer_pkts
    return EngsetInputs(
        path=path_of_class(scenario, group),
        sources=group.count,
        mean_off_s=traffic.off.mean_value(),
        mean_size_pkts=traffic.size.mean_value(),
        receiver_window_pkts=float(tcp.receiver_window),
        initial_window_pkts=tcp.initial_window,
        buffer_pkts=None if math.isinf(buffer) else buffer,
    )


def engset_warnings(scenario: Scenario, result: EngsetResult) -> list[str]:
    """Return warnings about limits of the model (sections 4.2, 5.2, 5.4 and 6)."""
    warnings = []
    if not result.can_overload_link:
        warnings.append(
            f"{result.sources} sources cannot fill the link, which carries "
            f"{digits(result.isolated.servers)} sources at their peak rate. The values are those "
            "of an isolated connection, without queueing and loss"
        )
    warnings += loss_and_queue_warnings(result)
    return warnings + long_tail_and_own_link_warnings(
        scenario.populations[0], result.path, result.isolated
    )


def loss_and_queue_warnings(result: EngsetResult | ClassesResult) -> list[str]:
    """Return warnings about a loss or a mean queue outside the domain of the model."""
    warnings = []
    if result.loss_ratio is not None and result.loss_ratio > MAX_TRUSTED_LOSS:
        warnings.append(
            f"the predicted loss, {result.loss_ratio:.2%}, is above 1 %. According to its "
            "authors, the model then greatly overestimates the loss. The model also omits "
            "retransmissions"
        )
    if mean_queue_exceeds_buffer(result):
        warnings.append(
            f"the model's mean queue, {digits(result.queue_mean_pkts)} packets, is above the "
            f"buffer of {digits(result.buffer_pkts or 0.0, 6)} packets, because the model "
            "assumes an unlimited buffer"
        )
    return warnings


def long_tail_and_own_link_warnings(
    group: Population, path: Path, isolated: IsolatedConnection
) -> list[str]:
    """Return warnings about long-tailed sizes and queues at a connection's own links."""
    assert isinstance(group.traffic, OnOff)
    # Warn if sizes have a long tail and slow start extends beyond the mean size (section 5.2).
    warnings, size = [], group.traffic.size
    last = 2 * group.tcp.receiver_window - group.tcp.initial_window
    if last > size.mean_value() and has_long_tail(size):
        reach = "never ends" if math.isinf(last) else f"lasts up to packet {digits(last, 6)}"
        warnings.append(
            f"file sizes have a long tail ({size.distribution}), and slow start {reach}: files "
            f"above the mean size of {digits(size.mean_value())} packets are still in slow start, "
            "but the model uses only the mean size. According to its authors, the model then "
            "overestimates the rate by up to 15 to 20 % and underestimates the queue"
        )
    # Warn if connections queue at their own slowest link (sections 4.2 and 4.4).
    if isolated.flights.saturated and path.slowest_delta_s > path.delta_s:
        warnings.append(
            "a single average file saturates the access link of its source; queue_mean_pkts and "
            "rtt_mean_s do not include the queue at this link"
        )
    window = min(group.tcp.receiver_window, 1000.0)
    sizes, _ = spurious_timeouts(
        path=path,
        largest_pkts=int(4 * window + group.tcp.initial_window),
        receiver_window_pkts=float(group.tcp.receiver_window),
        initial_window_pkts=group.tcp.initial_window,
        min_rto_s=group.tcp.min_rto_s,
        initial_rto_s=group.tcp.initial_rto_s,
    )
    if sizes.size:
        warnings.append(
            f"files of {sizes[0]} to {sizes[-1]} packets build so long a queue on their own access "
            "link that the RTT exceeds the RTO. If ACKs do not restart the timer, as in the "
            "authors' TCP, spurious timeouts follow. The model omits these timeouts"
        )
    return warnings


_Obstacle = tuple[str, dict[str, Any]]


def _find_obstacles(scenario: Scenario, group: Population) -> Iterator[_Obstacle]:
    """Yield unsupported network and TCP features: the end of a message, and possible changes."""
    tcp, network = group.tcp, scenario.network
    if math.isinf(scenario.bottleneck.rate_bps):
        rate = {"network.bottleneck.rate": "10mbit"}
        yield "requires a bottleneck with a rate, but the scenario's bottleneck is unlimited", rate
    if scenario.bottleneck.is_policer:
        yield "models a queue, but the scenario's bottleneck is a policer", {}
    if scenario.cross:
        reason = "models a link without cross traffic, but the scenario has cross traffic"
        yield reason, {"cross": None}
    if scenario.bottleneck.queue != "droptail":
        kind = scenario.bottleneck.queue.kind
        name = {"red": "RED", "fq": "fair queueing"}.get(kind, kind)
        droptail = {"network.bottleneck.queue": "droptail"}
        yield f"models a drop-tail queue, but the scenario's bottleneck uses {name}", droptail
    for on in group.route:
        if on.link.loss is not None:
            reason = f"omits random loss, but the scenario has random loss on the {on.name} link"
            yield reason, {f"{on.key}.loss": None}
        room = network.buffer_pkts(on.link)
        if not on.measured and room < tcp.receiver_window:
            yield (
                f"omits drops on the {on.name} link, but in the scenario the buffer of this link "
                f"holds {digits(room, 6)} packets, less than a window of "
                f"{digits(tcp.receiver_window, 6)} packets",
                {f"{on.key}.buffer": None},
            )
    if isinstance(group.traffic, OnOff) and group.traffic.connection == "persistent":
        reason = (
            "opens a connection per file, but the scenario's connections stay open during OFF times"
        )
        yield reason, {"traffic.connection": None}
    if tcp.has_loss_feedback:
        yield (
            f"models senders that detect losses, but the scenario's {tcp.stack} has instantaneous "
            "loss feedback",
            {"tcp.stack": "engset-newreno"},
        )
    if tcp.delayed_acks:
        reason = "models one ACK per packet, but the scenario delays ACKs"
        yield reason, {"tcp.delayed_acks": False}
    if tcp.initial_ssthresh < tcp.receiver_window:
        yield (
            f"models slow start up to the receiver window ({digits(tcp.receiver_window, 6)} "
            "packets), but in the scenario slow start ends at "
            f"{digits(tcp.initial_ssthresh, 6)} packets",
            {"tcp.initial_ssthresh": None},
        )


def mean_queue_exceeds_buffer(result: EngsetResult | ClassesResult) -> bool:
    """Return True if the mean queue is above the buffer, which the model does not limit."""
    return result.buffer_pkts is not None and result.queue_mean_pkts > result.buffer_pkts


def has_long_tail(size: SizeDistribution) -> bool:
    """Return True if sizes vary more than exponential ones: few files have most of the packets."""
    if isinstance(size, Lognormal):
        return size.sd > size.mean - size.minimum
    if isinstance(size, Empirical):
        values, weights = np.asarray(size.values), np.asarray(size.weights)
        mean = np.average(values, weights=weights)
        return bool(np.average((values - mean) ** 2, weights=weights) > mean**2)
    return isinstance(size, ExponentialPareto | TwoExponentials | Pareto)


def _queue_table_positions(end: float) -> NDArray[np.int64]:
    """Return the queues of a table of P(Q > x) from 0 to at least ``end`` packets."""
    step = max(1, math.ceil(end / MAX_QUEUE_ROWS))
    return np.arange(0, math.ceil(end) + step, step)


def _warn_about_classes(scenario: Scenario, result: ClassesResult, sizes: Floats) -> list[str]:
    warnings = []
    if not result.can_overload_link:
        warnings.append(
            "all classes together cannot fill the link. The values are those of isolated "
            "connections, without queueing and loss"
        )
    if sizes.max() > MAX_TRUSTED_SIZE_RATIO * sizes.min():
        warnings.append(
            f"the mean file sizes of the classes range from {digits(sizes.min())} to "
            f"{digits(sizes.max())} packets. The model underestimates the queue that large files "
            "cause, and overestimates the rate of the class with small files. It was compared "
            "with simulations only for mean sizes that differ by at most a factor of "
            f"{MAX_TRUSTED_SIZE_RATIO:g}"
        )
    warnings += loss_and_queue_warnings(result)
    for group, each, one in zip(scenario.populations, result.classes, result.isolated, strict=True):
        texts = long_tail_and_own_link_warnings(group, each.path, one)
        warnings += [f"class {group.name}: {text}" for text in texts]
    return warnings
