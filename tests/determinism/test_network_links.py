"""A network of links gives the same bytes on any number of threads."""

from typing import Any

import numpy as np
from tcpcast import _native
from tcpcast.engines.packet.config_types import Config

SECOND = 1_000_000_000
ALWAYS = {"start": {"times": [0.0]}, "stop": None}
MODERN: Config = {
    "stack": "linux-cubic",
    "mss": 1448,
    "initial_window": 10,
    "receiver_window": None,
    "delayed_acks": True,
    "ack_timeout_ns": SECOND // 5,
    "min_rto_ns": SECOND // 5,
    "initial_rto_ns": SECOND,
    "max_rto_ns": 120 * SECOND,
    "rto_granularity_ns": 0,
    "duplicate_threshold": 3,
    "limited_transmit": True,
    "idle_restart": True,
    "timestamps": True,
    "pacing": "internal",
    "handshake": "tls13",
    "fast_open": False,
    "ecn": "off",
    "socket_buffers": "unlimited",
    "nodelay": False,
    "kernel": "6.18",
    "virtual_flows": 1,
    "ecn_fallback": False,
}


def link(rate_bps: int, **changed: Any) -> Config:
    return {
        "rate": {"constant": rate_bps},
        "policer": None,
        "delay_ns": 1_000_000,
        "limit_pkts": 100,
        "limit_bytes": None,
        "queue": "drop-tail",
        "loss": None,
        "jitter": None,
        "each": "all",
        "changes": [],
        **changed,
    }


def constant(value: float) -> Config:
    return {"distribution": "constant", "value": value}


def of_class(traffic: Config, **changed: Any) -> Config:
    return {
        "site": 0,
        "flows": 2,
        "routes": [[0, 1], [2, 1]],
        "back": [[3]],
        "delay_ns": 9_000_000,
        "back_delay_ns": 9_000_000,
        "packet_bytes": 1500,
        "ack_bytes": 52,
        "tso": False,
        "gro": True,
        "sends": "server",
        "traffic": traffic,
        "tcp": {"modern": MODERN},
        "host_noise_ns": 100_000,
        "host": None,
        "dscp": 0,
        **changed,
    }


LOSS = {"model": {"bernoulli": 0.01}, "at": "behind"}
HOME = {"each": {"site": 0}}
PING = {"ping": {"bytes": 84, "interval": constant(0.1), **ALWAYS}}
REQUESTS = {
    "request": constant(500.0),
    "answer": constant(100_000.0),
    "server_time": constant(0.01),
    "pause": constant(0.1),
    "fan_in": 2,
}
NETWORK: Config = {
    "seed": 1,
    "links": [
        link(50_000_000, loss=LOSS),
        link(20_000_000, **HOME),
        link(30_000_000, changes=[{"at_ns": 3 * SECOND, "change": {"rate": None}}]),
        link(2_000_000, **HOME),
    ],
    "sites": [{"count": 3}],
    "classes": [
        of_class({"files": {"bulk": ALWAYS}}),
        of_class({"files": {"bulk": ALWAYS}}, sends="client", flows=1),
        of_class({"requests": {**REQUESTS, **ALWAYS}}),
        of_class(PING, tcp=None, flows=1),
    ],
    "cross": [],
    "round_loss": None,
    "headline": 0,
    "warmup_ns": SECOND,
    "probes": {
        "size_bounds": [10, 100],
        "traced": [],
        "trace_points": None,
        "course": True,
        "captures": [],
        "goodput_packets": 0,
        "goodput_least": 0,
        "report_at_ns": [],
    },
}


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    results: list[list[np.ndarray[Any, Any]]] = []
    for threads in (1, 3):
        run = _native.Simulation(NETWORK, 3)
        for until in (5, 8) if threads == 3 else (8,):
            ended = run.advance(transfers=None, until_ns=until * SECOND, threads=threads)
            assert ended == "done"
        times = [column for run in run.class_times() for column in run[1:]]
        results.append([*run.counters(), *times, *run.time_series()])
        assert run.link_classes() == [(at, of) for at in range(4) for of in range(4)]
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)
    delivered = len(_native.LINK_CELLS) + _native.CLASS_CELLS.index("delivered")
    assert len({int(rows[-1, delivered]) for rows in results[0][:3]}) == 3
