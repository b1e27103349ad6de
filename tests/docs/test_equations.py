"""The equations of ``docs/reference/models.md``, repeated here, agree with the code."""

from math import exp, factorial, inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from tcpcast.models import (
    bbr,
    cardwell,
    cubic,
    engset,
    erlang,
    l4s,
    local_loop,
    mathis,
    parallel,
    pftk,
    short,
)

RTT, T0 = 0.08, 0.4
LOSSES = [0.0003, 0.004, 0.03, 0.12]
ACKED = [1, 2]
WINDOWS = [8.0, 40.0, inf]


def unlimited(p: float, b: float) -> float:
    first = (2 + b) / (3 * b)
    return first + sqrt(8 * (1 - p) / (3 * b * p) + first * first)


def timeout(w: float, p: float) -> float:
    if w <= 3:
        return 1.0
    survival = 1 - p
    share: float = (
        (1 - survival**3) * (1 + survival**3 * (1 - survival ** (w - 3))) / (1 - survival**w)
    )
    return min(1.0, share)


def backoff(p: float) -> float:
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6


def rounds(p: float, b: float, max_window: float) -> float:
    window = unlimited(p, b)
    return (
        b / 2 * window
        if window < max_window
        else b / 8 * max_window + (1 - p) / (p * max_window) + 1
    )


@pytest.mark.parametrize("max_window", WINDOWS)
@pytest.mark.parametrize("b", ACKED)
@pytest.mark.parametrize("p", LOSSES)
def test_mathis_and_pftk_match_documented_equations(p: float, b: int, max_window: float) -> None:
    root = min(max_window / RTT, sqrt(3 / (2 * b * p)) / RTT)
    path: dict[str, Any] = {"rtt_s": RTT, "loss_indication_ratio": p, "packets_per_ack": b}
    limited = {**path, "receiver_window_pkts": max_window}
    assert mathis.mathis_rate_pps(**limited) == pytest.approx(root)
    free = unlimited(p, b)
    td = ((1 - p) / p + free) / (RTT * (b / 2 * free + 1))
    assert pftk.td_only_rate_pps(**path) == pytest.approx(td)
    window = min(free, max_window)
    q = timeout(window, p)
    waiting = q * T0 * backoff(p) / (1 - p)
    full = ((1 - p) / p + window + q / (1 - p)) / (RTT * (rounds(p, b, max_window) + 1) + waiting)
    assert pftk.throughput(t0_s=T0, **limited).rate_pps == pytest.approx(full)
    timer = T0 * min(1, 3 * sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    short_form = min(max_window / RTT, 1 / (RTT * sqrt(2 * b * p / 3) + timer))
    assert pftk.approximate_rate_pps(t0_s=T0, **limited) == pytest.approx(short_form)


@pytest.mark.parametrize("max_window", WINDOWS)
@pytest.mark.parametrize("p", LOSSES)
def test_cubic_and_bbr_match_documented_equations(p: float, max_window: float) -> None:
    grown = (0.4 * (3 + 0.7) / (4 * (1 - 0.7))) ** 0.25 * (RTT / p) ** 0.75
    rate = min(max(grown, sqrt(3 / (2 * p))), max_window) / RTT
    response = cubic.cubic_response(rtt_s=RTT, loss_ratio=p, receiver_window_pkts=max_window)
    assert response.rate_pps == pytest.approx(rate)
    link, flows, buffer = 1000.0, 3, 300.0
    path: dict[str, Any] = {
        "bottleneck_pps": link, "rtt_s": RTT, "loss_ratio": p, "flows": flows,
    }  # fmt: skip
    assert bbr.bbr_bound(**path).rate_pps == pytest.approx(link * (1 - p) / flows)
    share = 1 - max(0, 0.5 - link * RTT / (2 * buffer) - 4 * flows / buffer)
    competing = bbr.bbr_bound(**path, buffer_pkts=buffer, with_loss_based_flows=True)
    assert competing.rate_pps == pytest.approx(link * (1 - p) * share / flows)


@pytest.mark.parametrize("rtt", [0.005, 0.08])
@pytest.mark.parametrize("p", LOSSES)
def test_prague_and_coupled_share_match_documented_equations(p: float, rtt: float) -> None:
    rate = (1 + sqrt(3)) / (p * max(rtt, 0.025))
    assert l4s.prague_rate_pps(rtt_s=rtt, mark_ratio=p) == pytest.approx(rate)
    low, high = l4s.prague_step_mark_ratio_bounds(window_pkts=2 / p)
    assert low == pytest.approx(p)
    assert high == pytest.approx(sqrt(p))
    k, scalable, classic = 1.5, 3, 2
    of_prague = scalable * (1 + sqrt(3)) / (k * max(rtt, 0.025))
    of_others = classic * sqrt(3 / 2) / RTT
    share = l4s.coupled_share(
        scalable_rtt_s=rtt,
        classic_rtt_s=RTT,
        coupling=k,
        scalable_flows=scalable,
        classic_flows=classic,
    )
    assert share == pytest.approx(of_prague / (of_prague + of_others))


@pytest.mark.parametrize("n", [1, 4, 30])
@pytest.mark.parametrize("b", ACKED)
@pytest.mark.parametrize("p", LOSSES[:3])
def test_parallel_flows_match_documented_equations(p: float, b: int, n: int) -> None:
    def between(j: float) -> float:
        u = p * b * j
        root = sqrt(u * (24 * n**2 + u * (n - 2 * j) ** 2))
        return (u * (2 * j - n) + root) / (6 * n**2 * p)

    def rate(x: float, q: float) -> float:
        sequence = T0 * (1 + 32 * p**2) / (1 - p)
        waiting = min(n, q * sequence / (x * RTT))
        return (1 - waiting / n) / (p * x * RTT) + waiting / (sequence * (1 - p))

    x = between(1)
    q_base = 1 - 1 / max(1.0, 2 * n * x / b)
    q = min(1, (1 - q_base**3) * (1 + q_base**3 - q_base ** (2 * n * x / b)))
    path: dict[str, Any] = {"flows": n, "rtt_s": RTT, "t0_s": T0, "packets_per_ack": b}
    own = parallel.parallel_throughput(loss_event_ratio=p, **path)
    assert own.rate_pps == pytest.approx(rate(x, q))
    lost = 2.5 * p
    j = min(n, lost / p)
    window = n * between(j) / (2 * b) * (1 + 3 * n / j)
    cumulative = parallel.cumulative_throughput(
        loss_event_ratio_cumulative=p, loss_ratio=lost, **path
    )
    q = min(1, lost / p * n / window)
    assert cumulative.rate_pps == pytest.approx(rate(between(j), q))


@pytest.mark.parametrize("max_window", [6.0, inf])
@pytest.mark.parametrize("b", ACKED)
@pytest.mark.parametrize("p", LOSSES)
def test_cardwell_matches_documented_equations(p: float, b: int, max_window: float) -> None:
    d, first, gamma = 60, 2, 1 + 1 / b
    lossy = 1 - (1 - p) ** d
    begun = min(d, lossy * (1 - p) / p + 1)
    grown = (begun + b * first) / (b + 1)
    start = log(1 + begun / (b * first), gamma)
    if grown > max_window:
        start = (
            log(max_window / first, gamma)
            + 1
            + (begun - b * (gamma * max_window - first)) / max_window
        )
    q = timeout(min(grown, max_window), p)
    lost = lossy * (q * T0 * backoff(p) / (1 - p) + (1 - q) * RTT)
    window = min(unlimited(p, b), max_window)
    q = timeout(window, p)
    cycle = RTT * (rounds(p, b, max_window) + 1) + q * T0 * backoff(p) / (1 - p)
    rest = (d - begun) * cycle / ((1 - p) / p + window / 2 + q)
    wait = 0.1 if first < b else 0.0
    result = cardwell.cardwell_latency(
        size_pkts=d, rtt_s=RTT, t0_s=T0, loss_ratio=p, initial_window_pkts=first,
        packets_per_ack=b, receiver_window_pkts=max_window, connection=False,
    )  # fmt: skip
    assert result.latency_s == pytest.approx(RTT * start + lost + rest + wait)


def test_handshake_latency_matches_documented_equation() -> None:
    latency = cardwell.connection_latency_s(
        rtt_s=RTT, forward_loss_ratio=0.1, reverse_loss_ratio=0.2, syn_timeout_s=1.0
    )
    assert latency == pytest.approx(RTT + 0.1 / (1 - 0.2) + 0.2 / (1 - 0.4))


@pytest.mark.parametrize("b", ACKED)
def test_short_transfers_match_documented_equations(b: int) -> None:
    w0, threshold, max_window, n = 2.0, 6.0, 9.0, 120.0
    transfer = short.ShortTransfer(
        rtt_s=RTT, initial_window_pkts=w0, initial_ssthresh_pkts=threshold,
        receiver_window_pkts=max_window, acked_packets=b,
    )  # fmt: skip
    full = b * (threshold - w0 + (max_window**2 - threshold**2) / 2)
    rounds_of_n = (
        log(threshold / w0, 1 + 1 / b) + b * (max_window - threshold) + (n - full) / max_window
    )
    assert short.lossless_latency_s(transfer, n) == pytest.approx(RTT * rounds_of_n)
    p, k = 0.05, np.arange(6)
    theta = p * n
    result = short.loss_probability(k, size_pkts=n, loss=p)
    for losses, probability in zip(k.tolist(), result, strict=True):
        mass = theta * (theta + losses * p) ** (losses - 1) * exp(-theta - losses * p)
        assert probability == pytest.approx(mass / factorial(losses))


def test_users_match_documented_equations() -> None:
    distribution = local_loop.restarting_goodput_pps(
        rtt_s=RTT, loss_ratio=0.01, timeout_ratio=0.005, idle_restart_ratio=0.02
    )
    assert distribution == pytest.approx(sqrt(3 / (2 * 0.02)) / RTT)
    n, link, think, size, p = 400, 800.0, 5.0, 20.0, 0.02
    users = {"sources": n, "link_pps": link, "mean_off_s": think, "mean_size_pkts": size}
    sent = size / (1 - p)
    fair = local_loop.fair_send_rate_pps(**users, loss_ratio=p)
    assert fair == pytest.approx(sent / (n * sent / link - think))
    bound = local_loop.overload_goodput_pps(**users, loss_ratio=p)
    assert bound == pytest.approx(size / (n * size / (link * (1 - p)) - think))


def test_engset_matches_documented_equations() -> None:
    path = engset.Path(
        rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=10e6, ingress_bps=100e6, egress_bps=2e6
    )
    n, off, files, loss = 134, 1.0, 12.0, 0.01
    result = engset.engset(
        path=path, sources=n, mean_off_s=off, mean_size_pkts=files, receiver_window_pkts=44
    )
    bits, isolated_path, link = 8 * files * 1500, result.isolated, 10e6
    first = isolated_path.rounds * 0.05 + isolated_path.tail_pkts * path.slowest_delta_s
    assert isolated_path.on_time_s == pytest.approx(first)
    rate = bits / first
    servers = link / rate
    j = np.arange(n + 1)
    born, died = (n - j) / off, np.minimum(j, servers) / first
    states = np.cumprod(np.concatenate([[1.0], born[:-1] / died[1:]]))
    states /= states.sum()
    short_of = j > servers
    below_capacity = states @ np.minimum(j * rate, link) / (states @ j)
    at_capacity = link * states[short_of].sum() / (states[short_of] @ j[short_of])
    assert result.rate_bps == pytest.approx((below_capacity + at_capacity) / 2)
    on = (bits / below_capacity + bits / at_capacity) / 2
    queue = (on - first) / (isolated_path.queue_rounds * path.delta_s)
    assert result.queue_mean_pkts == pytest.approx(queue)
    load = n * bits / ((off + bits / at_capacity) * link)
    assert result.time_above(50) == pytest.approx(load * exp(-50 * load / queue))
    assert result.buffer_for_loss(loss) == pytest.approx(queue / load * log(load / loss))


@pytest.mark.parametrize("servers", [1, 3, 8])
@pytest.mark.parametrize("load", [0.2, 0.7, 0.95])
def test_erlang_matches_documented_equation(load: float, servers: int) -> None:
    a, shared = load * servers, load / (1 - load)
    b = a**servers / factorial(servers) / sum(a**k / factorial(k) for k in range(servers + 1))
    active = a * (1 - b) + b * (servers * shared + shared / (1 - load))
    slowdown = active / (a * (1 + b * shared))
    assert erlang.erlang_slowdown(load=load, servers=servers) == pytest.approx(slowdown)
