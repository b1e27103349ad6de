"""Properties of the TCP-Engset model that hold for every path and population."""

import math
import timeit
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.models.engset import (
    EngsetResult,
    Path,
    buffer_for_loss,
    engset,
    flights,
    state_log_probabilities,
    time_above,
)

windows = st.one_of(st.integers(1, 300).map(float), st.just(math.inf))


@st.composite
def paths(draw: st.DrawFn) -> Path:
    """Return a path with a BDP of one to a few hundred packets at the slowest link."""
    bottleneck = draw(st.floats(1e5, 1e9))
    ingress = bottleneck * draw(st.sampled_from([0.5, 1.0, 10.0, math.inf]))
    egress = bottleneck * draw(st.sampled_from([0.2, 1.0, 100.0, math.inf]))
    packet = draw(st.sampled_from([576, 1500, 9000]))
    least = sum(8 * packet / rate for rate in (ingress, bottleneck, egress))
    return Path(
        rtt0_s=least * draw(st.floats(1.0, 400.0)),
        packet_bytes=packet,
        bottleneck_bps=bottleneck,
        ingress_bps=ingress,
        egress_bps=egress,
    )


@given(size=st.floats(1, 5000), window=windows, beta=st.floats(1, 500), initial=st.integers(1, 20))
def test_flights_sum_to_the_file(size: float, window: float, beta: float, initial: int) -> None:
    group = flights(
        size_pkts=size, receiver_window_pkts=window, slowest_beta=beta, initial_window_pkts=initial
    )
    sizes = group.sizes()
    assert math.fsum(sizes) == pytest.approx(size, rel=1e-12)
    assert len(sizes) == group.rounds
    assert all(0 < flight <= min(window, beta * (1 + 1e-9)) for flight in sizes[:-1])
    assert sizes[-1] > 0
    if not group.saturated:
        assert sizes[-1] <= min(window, beta * (1 + 1e-9))


@given(
    sources=st.integers(1, 40),
    ratio=st.fractions(Fraction(1, 50), Fraction(50)),
    servers=st.fractions(Fraction(1), Fraction(45)),
)
def test_log_probabilities_equal_exact_fractions(
    sources: int, ratio: Fraction, servers: Fraction
) -> None:
    weights = [Fraction(1)]
    for j in range(1, sources + 1):
        weights.append(weights[-1] * (sources - j + 1) * ratio / min(Fraction(j), servers))
    total = sum(weights)
    exact = [float(w / total) for w in weights]
    logs = state_log_probabilities(
        sources=sources, mean_off_s=1.0, isolated_on_time_s=float(ratio), servers=float(servers)
    )
    assert np.exp(logs) == pytest.approx(exact, rel=1e-10)


@given(
    sources=st.integers(1, 200_000), path=paths(), size=st.floats(1, 1000), off=st.floats(0.01, 100)
)
@settings(deadline=None, max_examples=25)
def test_probabilities_sum_to_one(sources: int, path: Path, size: float, off: float) -> None:
    result = run_engset(path, sources, size, off, 44.0)
    assert result.probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert result.log_probability.max() <= 1e-12
    assert np.all(np.isfinite(result.log_probability))
    # Balance across every cut: lambda_j P_j = mu_(j+1) P_(j+1).
    states, isolated = np.arange(sources + 1), result.isolated
    births_per_s = (sources - states) / off
    deaths_per_s = np.minimum(states, isolated.servers) / isolated.on_time_s
    up = np.log(births_per_s[:-1]) + result.log_probability[:-1]
    down = np.log(deaths_per_s[1:]) + result.log_probability[1:]
    np.testing.assert_allclose(up, down, rtol=1e-9, atol=1e-6)


def run_engset(path: Path, sources: int, size: float, off: float, window: float) -> EngsetResult:
    return engset(
        path=path,
        sources=sources,
        mean_off_s=off,
        mean_size_pkts=size,
        receiver_window_pkts=window,
        buffer_pkts=100,
    )


@given(
    path=paths(),
    sources=st.integers(1, 3000),
    size=st.floats(1, 1000),
    off=st.floats(0.01, 100),
    window=windows,
)
@settings(deadline=None)
def test_results_are_within_physical_bounds(
    path: Path, sources: int, size: float, off: float, window: float
) -> None:
    result = run_engset(path, sources, size, off, window)
    peak, link, slack = result.isolated.rate_bps, path.bottleneck_bps, 1 + 1e-9
    assert min(peak, link / sources) / slack <= result.rate_bps <= peak * slack
    assert result.isolated.on_time_s / slack <= result.on_time_s
    assert 0 < result.utilisation <= slack
    assert result.sharing.utilisation1 <= slack
    assert 0 < result.sharing.closed_loop_load <= slack
    assert result.utilisation <= result.offered_load * slack
    assert result.queue_mean_pkts >= 0
    assert result.loss_ratio is not None
    assert 0 <= result.loss_ratio <= result.sharing.closed_loop_load
    assert result.rtt_s >= path.rtt0_s
    # Conservation: J/ON1 transfers end per second, (N - J)/OFF start.
    begin = (sources - result.sharing.mean_active) / off
    assert begin * size * path.packet_bits == pytest.approx(result.sharing.throughput_bps, rel=1e-7)


@given(path=paths(), sources=st.integers(1, 400), size=st.floats(1, 500), off=st.floats(0.05, 20))
@settings(deadline=None)
def test_rate_falls_with_each_additional_source(
    path: Path, sources: int, size: float, off: float
) -> None:
    here, more = (
        run_engset(path, sources, size, off, 44.0),
        run_engset(path, sources + 1, size, off, 44.0),
    )
    assert more.rate_bps <= here.rate_bps * (1 + 1e-9)
    assert more.on_time_s >= here.on_time_s * (1 - 1e-9)
    assert more.utilisation >= here.utilisation * (1 - 1e-9)


@given(path=paths(), size=st.floats(1, 1000), off=st.floats(0.01, 100), window=windows)
@settings(deadline=None)
def test_single_source_has_the_isolated_rate(
    path: Path, size: float, off: float, window: float
) -> None:
    result = run_engset(path, 1, size, off, window)
    on0 = result.isolated.on_time_s
    assert result.probability == pytest.approx([off / (off + on0), on0 / (off + on0)])
    assert result.rate_bps == pytest.approx(result.isolated.rate_bps)
    assert result.on_time_s == pytest.approx(on0)
    assert result.utilisation == pytest.approx(result.offered_load)


@pytest.mark.parametrize("sources", [200, 2000, 20000])
def test_overload_shares_the_link_equally(sources: int) -> None:
    """Far above capacity both methods agree and the link is full (note (b) of section 4.1)."""
    path = Path(rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=10e6)
    result = run_engset(path, sources, 12.0, 1.0, 44.0)
    assert result.utilisation == pytest.approx(1.0, abs=1e-6)
    assert result.sharing.rate2_bps == pytest.approx(result.sharing.rate1_bps, rel=1e-4)
    thinking = result.sharing.throughput_bps / (12 * path.packet_bits)
    assert result.rate_bps == pytest.approx(10e6 / (sources - thinking), rel=1e-4)


def test_rate_does_not_depend_on_scale() -> None:
    """At a fixed overload the rate does not depend on the scale (law of large numbers)."""
    rates = []
    for scale in (1_000, 1_000_000):
        path = Path(rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=70e3 * scale, egress_bps=2e6)
        rates.append(run_engset(path, scale, 12.0, 1.0, 44.0).rate_bps)
    assert rates[1] == pytest.approx(rates[0], rel=1e-3)


@given(
    x=st.floats(0, 1e4),
    mean=st.floats(1e-3, 1e4),
    load=st.floats(0.011, 1),
    loss=st.floats(1e-9, 0.01),
)
def test_buffer_and_loss_are_inverse(x: float, mean: float, load: float, loss: float) -> None:
    buffer = buffer_for_loss(loss_ratio=loss, queue_mean_pkts=mean, load=load)
    assert float(time_above(queue_pkts=buffer, queue_mean_pkts=mean, load=load)) == pytest.approx(
        loss
    )
    # The distribution of eq. 12 has the given mean.
    grid = np.linspace(0, 60 * mean / load, 200_001)
    above = time_above(queue_pkts=grid, queue_mean_pkts=mean, load=load)
    assert np.trapezoid(above, grid) == pytest.approx(mean, rel=1e-3)
    assert float(time_above(queue_pkts=x, queue_mean_pkts=mean, load=load)) <= load


@pytest.mark.long  # alone, because other tests take processor time
@pytest.mark.parametrize(("sources", "limit_s"), [(134, 0.2e-3), (1_000_000, 0.5)])
def test_engset_is_fast_for_many_sources(sources: int, limit_s: float) -> None:
    """Use the best of several runs, to reduce the effect of other load."""
    path = Path(rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=75e3 * sources, egress_bps=2e6)
    times = timeit.repeat(lambda: run_engset(path, sources, 12.0, 1.0, 44.0), number=1, repeat=7)
    assert min(times) < limit_s
