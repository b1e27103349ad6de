"""Engines whose inputs include the distribution of file sizes: ``engset-sizes`` and ``erlang``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.engines.formula.engset import (
    check_network_and_tcp,
    engset_inputs,
    has_long_tail,
    path_of_class,
)
from tcpcast.engines.formula.engset_steps import link_steps, path_steps, source_steps
from tcpcast.engines.formula.input_types import make_step
from tcpcast.models.domain import LOSS_RATIO, WINDOW_BDPS
from tcpcast.models.engset import engset_file_sizes, mean_idle_on_time_s
from tcpcast.models.erlang import erlang_slowdown
from tcpcast.process.errors import NotApplicable
from tcpcast.quantity.units import digits
from tcpcast.scenario.distributions import Distribution
from tcpcast.scenario.traffic import OnOff, Transfers

if TYPE_CHECKING:
    from tcpcast.array_types import Floats
    from tcpcast.scenario import Scenario

MAX_TRUSTED_LOAD = 0.9
"""Largest load for which ``erlang`` was compared with simulations."""

_MAX_PACKETS = 4000
_MIN_SHARE = 1e-5
_WINDOWS = 4
"""Packets whose shares are used: at most the first number, up to a share below the second, but at
least this number of receiver windows, so that slow start ends before."""


def engset_sizes(scenario: Scenario) -> Answer:
    """Predict by TCP-Engset with the distribution of file sizes.

    Metrics as of the ``engset`` engine; ``loss_ratio`` is absent for an unlimited buffer.

    Raises
    ------
    NotApplicable
        Several classes, or as :func:`.engset.class_inputs`.
    """
    inputs = engset_inputs(scenario)
    group = scenario.populations[0]
    assert isinstance(group.traffic, OnOff)
    shares = _share_at_least(group.traffic.size, inputs.receiver_window_pkts)
    mean = max(inputs.mean_size_pkts, float(shares.sum()))
    result = engset_file_sizes(
        path=inputs.path,
        sources=inputs.sources,
        mean_off_s=inputs.mean_off_s,
        share_at_least=shares,
        mean_size_pkts=mean,
        receiver_window_pkts=inputs.receiver_window_pkts,
        initial_window_pkts=inputs.initial_window_pkts,
        buffer_pkts=inputs.buffer_pkts,
        min_rto_s=group.tcp.min_rto_s,
    )
    bits = mean * inputs.path.packet_bits
    cycle_s = inputs.mean_off_s + result.idle_on_time_s
    metrics = {
        "connection_rate_bps": Metric(result.rate_bps),
        "on_time_s": Metric(result.on_time_s),
        "offered_load": Metric(inputs.sources * bits / (cycle_s * inputs.path.bottleneck_bps)),
        "utilisation": Metric(result.utilisation),
        "queue_mean_pkts": Metric(result.queue_mean_pkts),
        "rtt_mean_s": Metric(inputs.path.rtt0_s + result.queue_mean_pkts * inputs.path.delta_s),
        "mean_size_pkts": Metric(mean),
    }
    if inputs.buffer_pkts is not None:
        metrics["loss_ratio"] = Metric(result.loss_ratio)
    active = np.arange(inputs.sources + 1)
    return Answer(
        engine="engset-sizes",
        metrics=metrics,
        tables={"states": {"active": active, "probability": result.probability}},
        domain={
            LOSS_RATIO: result.loss_ratio,
            WINDOW_BDPS: inputs.receiver_window_pkts / inputs.path.beta,
        },
        steps=[
            *link_steps(inputs.path, inputs.buffer_pkts),
            *source_steps(inputs),
            make_step("ON0", result.idle_on_time_s, "s", "E[ON0], mean over the sizes"),
            make_step("m", result.queue_rounds, "1", "increase of ON0 per second of RTT"),
            make_step("W", result.mean_window_pkts, "packet", "mean window of a packet"),
            make_step("U", result.utilisation, "1", "sum over j of P_j x (1 - l)"),
            make_step("Q", result.queue_mean_pkts, "packet", "sum over j of P_j Q(x)"),
            make_step("L", result.loss_ratio, "1", "lost packets/packets that arrive at the link"),
            make_step(
                "ON",
                result.on_time_s,
                "s",
                "sum of P_j j/sum of P_j j/T, T = ON0 + m Q Delta + F l/(1 - l) c",
            ),
            make_step("h", result.rate_bps, "bit/s", "8 F P/ON"),
        ],
        provenance={
            "intermediates": {
                "on0_s": result.idle_on_time_s,
                "m_queue": result.queue_rounds,
                "window_pkts": result.mean_window_pkts,
            }
        },
    )


def erlang(scenario: Scenario) -> Answer:
    """Predict by processor sharing with Poisson arrivals and a rate limit per flow.

    Metrics: ``completion_time_s``, ``connection_rate_bps`` (mean size divided by it),
    ``offered_load`` and ``mean_size_pkts``.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not arrivals of transfers, or a path as for
        :func:`.engset.class_inputs`.
    """
    group, model = scenario.populations[0], "TCP-Erlang"
    traffic = group.traffic
    if len(scenario.populations) > 1 or not isinstance(traffic, Transfers) or traffic.isolated:
        raise NotApplicable(f"{model} requires one class of transfers with traffic.arrivals")
    check_network_and_tcp(model, scenario)
    assert traffic.arrivals is not None
    path, window = path_of_class(scenario, group), float(group.tcp.receiver_window)
    shares = _share_at_least(traffic.size, window)
    mean = max(traffic.mean_size_pkts, float(shares.sum()))
    idle_s = mean_idle_on_time_s(
        path=path,
        share_at_least=shares,
        mean_size_pkts=mean,
        receiver_window_pkts=window,
        initial_window_pkts=group.tcp.initial_window,
    )
    bits = mean * path.packet_bits
    load = traffic.arrivals.rate * bits / path.bottleneck_bps
    servers = path.bottleneck_bps * idle_s / bits
    warnings, time_s = [], math.inf
    if load < 1:
        time_s = idle_s * float(erlang_slowdown(load=load, servers=servers))
    if isinstance(traffic.size, Distribution) and has_long_tail(traffic.size):
        warnings.append(
            f"sizes have a long tail ({traffic.size.distribution}): small transfers wait behind "
            "the windows of large ones, so the transfers do not share the link equally"
        )
    if load > MAX_TRUSTED_LOAD:
        warnings.append(
            f"the load of {digits(100 * load)} % is above {100 * MAX_TRUSTED_LOAD:g} %; at "
            "higher loads, the model was not compared with simulations"
        )
    trusted = not warnings
    return Answer(
        engine="erlang",
        metrics={
            "completion_time_s": Metric(time_s, trusted=trusted),
            "connection_rate_bps": Metric(bits / time_s, trusted=trusted),
            "offered_load": Metric(load),
            "mean_size_pkts": Metric(mean),
        },
        notes=texts_to_notes(warnings),
        steps=[
            *link_steps(path, None),
            *path_steps(path, window),
            make_step("lambda", traffic.arrivals.rate, "1/s", "traffic.arrivals"),
            make_step("F", mean, "packet", "mean of traffic.size"),
            make_step("ON0", idle_s, "s", "mean time of a transfer on the idle path"),
            make_step("s", servers, "1", "C ON0/(8 F P)"),
            make_step("rho", load, "1", "lambda 8 F P/C"),
            make_step("slowdown", time_s / idle_s, "1", "Erlang's delay system with s servers"),
            make_step("ON", time_s, "s", "ON0 slowdown"),
            make_step("h", bits / time_s, "bit/s", "8 F P/ON"),
        ],
        provenance={"intermediates": {"on0_s": idle_s, "s": servers}},
    )


def _share_at_least(size: object, window_pkts: float) -> Floats:
    """Return P(size >= k) for k = 1, 2, ... packets, of sizes rounded to packets."""
    if isinstance(size, Distribution):
        least = min(_WINDOWS * window_pkts, float(_MAX_PACKETS))
        shares = [1.0]
        while len(shares) < _MAX_PACKETS and (shares[-1] > _MIN_SHARE or len(shares) < least):
            shares.append(size.share_above(len(shares) + 0.5))
        return np.array(shares)
    sizes = np.atleast_1d(np.asarray(size, dtype=np.float64))
    return np.array([np.mean(sizes >= k) for k in range(1, int(sizes.max()) + 1)])
