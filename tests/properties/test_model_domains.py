"""Every model rejects arguments outside its domain, and names them."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tcpcast.models import bbr, cardwell, cubic, engset, local_loop, mathis, parallel, pftk, short
from tcpcast.process.errors import DomainError

NAN, INF = math.nan, math.inf
TIMES: dict[str, Any] = {"rtt_s": 0.1, "t0_s": 0.4}
PFTK = TIMES | {"loss_indication_ratio": 0.01}
EVENTS = TIMES | {"flows": 2, "loss_event_ratio": 0.01}
CUMULATIVE = TIMES | {"flows": 2, "loss_event_ratio_cumulative": 0.01, "loss_ratio": 0.1}
USERS = {"sources": 10, "link_pps": 1000.0, "mean_off_s": 1, "mean_size_pkts": 9, "loss_ratio": 0.0}
LINK = {"bottleneck_pps": 10_000.0, "rtt_s": 0.1}
PATH = engset.Path(rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=10e6)
ENGSET = {"sources": 10, "mean_off_s": 1, "mean_size_pkts": 12, "receiver_window_pkts": 44}
RATIO, COUNT, TIME, WINDOW = (-0.1, 0, 1, 1.2, NAN), (0, -1, INF, NAN), (0, -1, INF, NAN), (0, NAN)
BAD_PFTK = {
    "rtt_s": TIME,
    "t0_s": TIME,
    "loss_indication_ratio": (*RATIO, [0.01, 0.0]),
    "packets_per_ack": (0.5, INF),
    "receiver_window_pkts": WINDOW,
}
BAD_USERS = {"sources": (0,), "link_pps": (INF,), "mean_off_s": (-1,), "mean_size_pkts": (NAN,)}
BAD_CHAIN = {"packets_per_ack": (0, 1.5, INF), "receiver_window_pkts": WINDOW}
BAD_TEXTS = {"losses": ("random",), "after_timeout": ("two",), "recovery": ("sack",)}
Bad = dict[str, tuple[Any, ...]]
TRANSFER = short.ShortTransfer(rtt_s=0.1, initial_ssthresh_pkts=30, receiver_window_pkts=30)
CHAIN = pftk.window_chain(loss_probability=0.01)


def transfer(**changes: Any) -> short.ShortTransfer:
    return replace(TRANSFER, **changes)


def expected(**changes: Any) -> object:
    return short.expected_latency_s(TRANSFER, **changes)


def users(**changes: Any) -> Any:
    return engset.engset(path=PATH, **changes)


DOMAINS: list[tuple[Callable[..., object], dict[str, Any], Bad]] = [
    (bbr.bbr_bound, LINK, {"bottleneck_pps": (0,), "rtt_s": (INF,), "loss_ratio": (-0.1, 1, NAN)}),
    (bbr.bbr_bound, LINK, {"buffer_pkts": (0,), "flows": (0, INF)}),
    (
        cardwell.cardwell_latency,
        TIMES | {"size_pkts": 10, "loss_ratio": 0.01},
        {
            "size_pkts": (0.5, INF, NAN),
            "rtt_s": (0,),
            "t0_s": (-1,),
            "loss_ratio": (0, 1),
            "initial_window_pkts": (0, INF),
            "packets_per_ack": (0.5,),
            "syn_timeout_s": (0,),
            "receiver_window_pkts": (0,),
            "delayed_ack_s": (-1,),
            "reverse_loss_ratio": (0.5,),
        },
    ),
    (pftk.throughput, PFTK, BAD_PFTK),
    (pftk.approximate_rate_pps, PFTK, BAD_PFTK),
    (pftk.tcp_friendly_rate_pps, {"rtt_s": 0.1}, {"loss_event_ratio": (0, 1, NAN)}),
    (pftk.timeout_probability, {"window_pkts": 5}, {"loss_indication_ratio": (0, 1, NAN)}),
    (pftk.timeout_probability, {"loss_indication_ratio": 0.1}, {"window_pkts": (INF,)}),
    (pftk.window_chain, {"loss_probability": 0.01}, BAD_CHAIN | BAD_TEXTS),
    (pftk.window_chain, {}, {"loss_probability": (*RATIO, 1e-12)}),
    (CHAIN.rate_pps, TIMES, {"rtt_s": TIME, "t0_s": TIME}),
    (CHAIN.goodput_pps, TIMES, {"rtt_s": TIME, "t0_s": TIME}),
    (mathis.mathis_rate_pps, {"rtt_s": 0.1}, {"loss_indication_ratio": (0, 1, NAN)}),
    (cubic.cubic_response, {"rtt_s": 0.1}, {"loss_ratio": (0, 1, NAN)}),
    (cubic.cubic_response, {"rtt_s": 0.1, "loss_ratio": 0.01}, {"decrease": (1,)}),
    (parallel.parallel_throughput, EVENTS, {"flows": (0, 0.5, [1, 2.5], INF, NAN), "t0_s": (0,)}),
    (parallel.parallel_throughput, EVENTS, {"loss_event_ratio": RATIO, "packets_per_ack": (0.5,)}),
    (parallel.cumulative_throughput, CUMULATIVE, {"loss_event_ratio_cumulative": (0,)}),
    (parallel.cumulative_throughput, CUMULATIVE, {"loss_ratio": (1.2,)}),
    (parallel.limited_rate_pps, EVENTS, {"bottleneck_rate_pps": (0,)}),
    (
        parallel.flows_to_fill,
        {name: value for name, value in EVENTS.items() if name != "flows"},
        {"bottleneck_rate_pps": (1e30,)},
    ),
    (local_loop.restarting_goodput_pps, {"loss_ratio": 0.1}, {"rtt_s": (0,)}),
    (local_loop.restarting_goodput_pps, {"rtt_s": 0.1}, {"loss_ratio": (1.0,)}),
    (local_loop.restarting_goodput_pps, {"rtt_s": 0.1}, {"timeout_ratio": (-0.1,)}),
    (local_loop.restarting_goodput_pps, {"rtt_s": 0.1}, {"idle_restart_ratio": (NAN,)}),
    (local_loop.fair_send_rate_pps, USERS, BAD_USERS | {"loss_ratio": (1,)}),
    (local_loop.overload_goodput_pps, USERS, BAD_USERS | {"loss_ratio": (1,)}),
    (
        transfer,
        {},
        {
            "rtt_s": (0, NAN),
            "initial_window_pkts": (0, INF),
            "initial_ssthresh_pkts": (0.5,),
            "receiver_window_pkts": (0,),
            "acked_packets": (0, 1.5),
            "min_rto_s": (-1,),
            "duplicate_threshold": (0,),
            "limited_transmit": (0, 4),
            "delayed_ack_timer_s": TIME,
            "syn_timeout_s": TIME,
        },
    ),
    (expected, {"loss": 0.1}, {"size_pkts": (0, [3, NAN], 1e6)}),
    (expected, {"size_pkts": 3}, {"loss": (0, 1, 1.2)}),
    (short.first_negligible_loss_count, {"loss": 0.1}, {"size_pkts": (INF,)}),
    (
        short.conditional_latency_s,
        {"transfer": TRANSFER, "size_pkts": 3},
        {"max_losses": (-1, 5001)},
    ),
    (short.lossless_latency_s, {"transfer": TRANSFER}, {"size_pkts": (0.5,)}),
    (short.loss_probability, {"size_pkts": 3, "loss": 0.1}, {"losses": (-1,)}),
    (short.loss_probability, {"losses": 1, "size_pkts": 3, "loss": 0.1}, {"distribution": ("x",)}),
    (users, ENGSET, {"sources": (0,), "mean_off_s": (0, INF), "mean_size_pkts": (0.5,)}),
    (
        users,
        ENGSET,
        {"receiver_window_pkts": (0,), "initial_window_pkts": (0,), "buffer_pkts": (0,)},
    ),
    (users(**ENGSET).buffer_for_loss, {}, {"loss_ratio": (0,)}),
    (users(**ENGSET).time_above, {}, {"queue_pkts": (-1,)}),
    (engset.Path, {"rtt0_s": 1, "packet_bytes": 1500}, {"bottleneck_bps": (INF,)}),
    (engset.Path, {"packet_bytes": 1500, "bottleneck_bps": 1e4}, {"rtt0_s": (0.1,)}),
    (engset.Path, {"rtt0_s": 1, "packet_bytes": 1500, "bottleneck_bps": 1e6}, {"egress_bps": (0,)}),
    (engset.time_above, {"queue_pkts": 1, "queue_mean_pkts": 1}, {"load": (1.5,)}),
    (engset.shared_rate_bps, {"peak_bps": 1, "link_bps": 1}, {"active": (0,)}),
    (engset.window_saturation, {"receiver_window_pkts": 4}, {"beta": (0.5,)}),
]
"""Each model with valid arguments, and values outside the domain."""


@pytest.mark.parametrize(
    ("model", "valid", "name", "value"),
    [
        (model, valid, name, value)
        for model, valid, bad in DOMAINS
        for name, values in bad.items()
        for value in values
    ],
)
def test_argument_outside_the_domain_is_named(
    model: Callable[..., object], valid: dict[str, Any], name: str, value: object
) -> None:
    with pytest.raises(DomainError, match=name.replace("mean_size", "size")):
        model(**valid | {name: value})


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (local_loop.restarting_goodput_pps, {"rtt_s": 0.1}, "all 0"),
        (local_loop.restarting_goodput_pps, {"rtt_s": 0.1, "loss_ratio": [0.1, 0.0]}, "all 0"),
        (short.timeout_packets, {"transfer": transfer(initial_window_pkts=1.5)}, "whole number"),
        (engset.round_trip_s, {"propagation_s": 0, "rates_bps": (0,), "packet_bytes": 9}, "rates"),
        (pftk.closed_form_error, {"loss_probability": [0.01, 0]}, "loss_indication_ratio"),
        (pftk.closed_form_error, {"rtt_s": [0]}, "rtt_s"),
        (pftk.tolerated_loss_ratio, {"rate_pps": 10, "rtt_s": 0.1, "t0_s": 0.05}, "t0_s"),
        *(
            (model, TIMES | {"rate_pps": 101, "receiver_window_pkts": 10}, "without loss")
            for model in (pftk.tolerated_loss_ratio, pftk.tolerated_loss_ratio_approximate)
        ),
    ],
)
def test_impossible_combination_is_rejected(
    model: Callable[..., object], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(DomainError, match=message):
        model(**arguments)
