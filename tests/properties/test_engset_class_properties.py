"""TCP-Engset with several classes: one class in two parts, and Markov chains solved directly."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.models.engset import EngsetClass, Path, class_log_probabilities, engset, engset_classes
from tcpcast.process.errors import DomainError

LINK_BPS = 10e6
State = tuple[int, ...]


def path(rtt0_s: float, egress_bps: float = 2e6) -> Path:
    return Path(
        rtt0_s=rtt0_s,
        packet_bytes=1500,
        bottleneck_bps=LINK_BPS,
        ingress_bps=100e6,
        egress_bps=egress_bps,
    )


def users(sources: int, off_s: float = 1.0, size: float = 12, rtt0_s: float = 0.05) -> EngsetClass:
    return EngsetClass(
        path=path(rtt0_s),
        sources=sources,
        mean_off_s=off_s,
        mean_size_pkts=size,
        receiver_window_pkts=44,
    )


@given(
    parts=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    off_s=st.floats(0.05, 20),
    size=st.floats(2, 400),
    rtt0_s=st.floats(0.02, 0.5),
    buffer=st.none() | st.floats(1, 500),
)
@settings(deadline=None)
def test_equal_classes_equal_one_class(
    parts: list[int], off_s: float, size: float, rtt0_s: float, buffer: float | None
) -> None:
    one = engset(
        path=path(rtt0_s),
        sources=sum(parts),
        mean_off_s=off_s,
        mean_size_pkts=size,
        receiver_window_pkts=44,
        buffer_pkts=buffer,
    )
    classes = [users(part, off_s, size, rtt0_s) for part in parts]
    several = engset_classes(classes, buffer_pkts=buffer)
    assert several.can_overload_link == one.can_overload_link
    assert several.active_probability == pytest.approx(one.probability, rel=1e-8, abs=1e-300)
    for name in ("rate_bps", "on_time_s"):
        assert getattr(several, name) == pytest.approx(
            np.full(len(parts), getattr(one, name)), rel=1e-9
        )
    for name in ("utilisation", "offered_load"):
        assert getattr(several, name) == pytest.approx(getattr(one, name), rel=1e-9)
    assert several.queue_mean_pkts == pytest.approx(one.queue_mean_pkts, rel=1e-6, abs=1e-6)
    if buffer is None:
        assert several.loss_ratio is None
    else:
        assert several.loss_ratio == pytest.approx(one.loss_ratio, rel=1e-5, abs=1e-12)


def stationary(classes: list[EngsetClass], rates: Callable[[State], list[float]]) -> np.ndarray:
    """Solve the balance equations of the chain; ``rates`` has the rate of each class in bit/s."""
    shape = tuple(each.sources + 1 for each in classes)
    states = list(itertools.product(*map(range, shape)))
    number = {state: index for index, state in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    for state in states:
        for k, each in enumerate(classes):
            up = tuple(j + (i == k) for i, j in enumerate(state))
            if up in number:
                generator[number[state], number[up]] = (each.sources - state[k]) / each.mean_off_s
            down = tuple(j - (i == k) for i, j in enumerate(state))
            if down in number:
                generator[number[state], number[down]] = rates(state)[k] / each.file_bits
    generator -= np.diag(generator.sum(axis=1))
    equations = np.vstack([generator.T, np.ones(len(states))])
    right = np.append(np.zeros(len(states)), 1.0)
    solution: np.ndarray = np.linalg.lstsq(equations, right, rcond=None)[0]
    return solution.reshape(shape)


def equal_shares(state: State, peaks: list[float]) -> list[float]:
    """Return the rate of each class if every connection gets an equal share, up to its peak."""
    share, left, rest = [0.0] * len(state), LINK_BPS, sum(state)
    for k in sorted(range(len(state)), key=peaks.__getitem__):
        each = min(peaks[k], left / rest) if rest else 0.0
        share[k] = state[k] * each
        left -= share[k]
        rest -= state[k]
    return share


def balanced_fairness(peaks: list[float]) -> Callable[[State], list[float]]:
    """Return the rates of balanced fairness, from its balance function."""

    def without(state: State, k: int) -> State:
        return tuple(j - (i == k) for i, j in enumerate(state))

    def balance(state: State) -> float:
        if min(state) < 0:
            return 0.0
        if sum(j * h for j, h in zip(state, peaks, strict=True)) <= LINK_BPS:
            free = zip(state, peaks, strict=True)
            return math.prod(1 / (math.factorial(j) * h**j) for j, h in free)
        return sum(balance(without(state, k)) for k in range(len(state))) / LINK_BPS

    return lambda state: [balance(without(state, k)) / balance(state) for k in range(len(state))]


SMALL = [
    [users(5, 0.4, 30), users(4, 2.0, 30)],
    [users(4, 0.1, 36), users(3, 0.2, 12, 0.02)],
    [users(3, 0.1, 40), users(2, 0.2, 80, 0.2), users(3, 0.3, 12, 0.02)],
]


@pytest.mark.parametrize("classes", SMALL)
def test_states_solve_chain_of_balanced_fairness(classes: list[EngsetClass]) -> None:
    peaks = [each.isolated_connection().rate_bps for each in classes]
    found = np.exp(class_log_probabilities(classes, peaks))
    expected = stationary(classes, balanced_fairness(peaks))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_equal_peak_rates_solve_chain_of_equal_shares() -> None:
    classes = SMALL[0]
    peaks = [each.isolated_connection().rate_bps for each in classes]
    found = np.exp(class_log_probabilities(classes, peaks))
    expected = stationary(classes, lambda state: equal_shares(state, peaks))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("classes", SMALL[1:])
def test_states_are_close_to_chain_of_equal_shares(classes: list[EngsetClass]) -> None:
    peaks = [each.isolated_connection().rate_bps for each in classes]
    found = np.exp(class_log_probabilities(classes, peaks))
    expected = stationary(classes, lambda state: equal_shares(state, peaks))
    assert np.abs(found - expected).sum() / 2 < 0.02


def test_classes_reject_links_that_differ_and_too_many_states() -> None:
    other = Path(rtt0_s=0.05, packet_bytes=1500, bottleneck_bps=20e6)
    with pytest.raises(DomainError, match="bottleneck_bps must be equal"):
        engset_classes(
            [
                users(2),
                EngsetClass(
                    path=other, sources=1, mean_off_s=1, mean_size_pkts=12, receiver_window_pkts=44
                ),
            ]
        )
    with pytest.raises(DomainError, match="must be at most 2,000,000, not 4,004,001"):
        engset_classes([users(2000), users(2000)])
    with pytest.raises(DomainError, match="at least one class"):
        engset_classes([])
