"""PFTK's window as a Markov chain, compared with a random walk and with a sum over periods."""

import math
from dataclasses import astuple, dataclass
from itertools import product

import numpy as np
import pytest
import tcpcast
from numpy.typing import NDArray
from tcpcast.answer import Answer
from tcpcast.models.pftk import (
    AfterTimeout,
    FastRecovery,
    LaterLosses,
    WindowChain,
    closed_form_error,
    window_chain,
)
from tcpcast.models.pftk import chain as chain_module
from tcpcast.process.errors import DomainError
from tcpcast.scenario import Scenario

T0_S = 1.0
RTTS_S = (0.02, 0.05, 0.2)
FLOWS = 2000
PERIODS = 80
"""Approximate number of periods per flow."""
OWN_ERROR = 0.003
"""Flows are added until every rate has this relative standard error."""

SEQUENCE = np.cumsum([0, *(min(2**i, 64) for i in range(200))])
"""Length of a sequence of k timeouts in T0, by k."""


@dataclass(frozen=True)
class Case:
    """Arguments of the chain."""

    p: float
    b: int
    window_max: float
    losses: LaterLosses | float
    after: AfterTimeout
    recovery: FastRecovery = "none"


@dataclass
class Walked:
    """Sums per flow."""

    rounds: NDArray[np.float64]
    waits: NDArray[np.float64]
    sent: NDArray[np.float64]
    delivered: NDArray[np.float64]
    periods: NDArray[np.float64]
    timeouts: NDArray[np.float64]
    windows: NDArray[np.float64]

    def seconds(self, rtt_s: float) -> NDArray[np.float64]:
        return self.rounds * rtt_s + self.waits * T0_S


def ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean over mean, and its standard error over independent flows."""
    value = float(above.sum() / below.sum())
    return value, float(np.sqrt(np.sum((above - value * below) ** 2)) / below.sum())


def sum_of_windows(below: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0 + 1 + ... + (below - 1)."""
    return below * (below - 1) // 2


def draw_first_losses(
    rng: np.random.Generator, p: float, window: NDArray[np.int64], again: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Draw the number of the first lost packet of each flow, within its window if ``again``."""
    first = rng.geometric(p, len(window))
    inside = -np.expm1(window * math.log1p(-p)) * rng.random(len(window))
    first[again] = np.ceil(np.log1p(-inside[again]) / math.log1p(-p))
    return first


def delivered_after_loss(
    rng: np.random.Generator, case: Case, at: NDArray[np.int64], before: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw the delivered packets after the first lost one.

    The last round has the packets released by the acks of those ``before`` it.
    """
    if case.losses == "rest-of-round":
        return np.minimum(rng.geometric(case.p, len(at)) - 1, before)
    kept = 1 - (case.p if case.losses == "independent" else float(case.losses))
    return rng.binomial(at - 1 - before, kept) + rng.binomial(before, kept)


def recover(
    rng: np.random.Generator, p: float, at: NDArray[np.int64], through: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Simulate recoveries of ``at - through`` packets.

    Returns the rounds, the delivered packets, and whether a new packet or a retransmission is lost.
    """
    lost = at - through
    repaired = np.minimum(rng.geometric(p, len(at)) - 1, lost)
    failed = repaired < lost
    new = sum_of_windows(at // 2) - sum_of_windows(np.maximum(through - at + at // 2, 0))
    new[failed | (lost == 0)] = 0
    arrived = np.minimum(rng.geometric(p, len(at)) - 1, new)
    return repaired, repaired + arrived, arrived < new, failed


def walk(case: Case, *, steps: int, seed: int) -> Walked:
    """Simulate many flows round by round; a round with a loss is followed by the last round."""
    p, b, window_max = case.p, case.b, case.window_max
    rng = np.random.default_rng(seed)
    window = np.ones(FLOWS, dtype=np.int64)
    stayed = np.zeros(FLOWS, dtype=np.int64)
    threshold = np.ones(FLOWS, dtype=np.int64)  # slow start is below it
    again = np.zeros(FLOWS, dtype=np.bool_)  # a new packet of the recovery was lost
    sums = np.zeros((7, FLOWS))
    for step in range(-(steps // 4), steps):
        if step == 0:
            sums[:] = 0.0
        rounds, waits, sent, delivered, periods, timeouts, windows = sums
        first = draw_first_losses(rng, p, window, again)
        hit = np.flatnonzero(first <= window)
        at, before = window[hit], first[hit] - 1
        rounds += ~again
        # The recovery has counted the first lost packet, and those before it.
        sent += np.where(again, window - first, window)
        delivered += np.where(again, 0, np.minimum(first - 1, window))

        slow = window < threshold
        stayed += ~slow
        grown = np.where(
            slow, np.minimum(window + -(-window // b), threshold), window + (stayed == b)
        )
        end = np.where(slow | again, window, grown)[hit]
        end = np.minimum(end, window_max).astype(np.int64)
        stayed[stayed == b] = 0
        window = np.minimum(grown, window_max).astype(np.int64)

        through = delivered_after_loss(rng, case, at, before)
        rounds[hit] += 1
        sent[hit] += before
        delivered[hit] += through
        periods[hit] += 1
        windows[hit] += end
        halved = np.maximum(end // 2, 1)
        window[hit], stayed[hit], threshold[hit] = halved, 0, 1

        late = through < 3
        again[:] = False
        if case.recovery == "newreno":
            repaired, more, again[hit], failed = recover(rng, p, at, np.where(late, at, through))
            rounds[hit] += repaired
            sent[hit] += more + again[hit] + failed
            delivered[hit] += more
            late |= failed
        out = hit[late]
        repeated = rng.geometric(1 - p, len(out))
        timeouts[out] += 1
        sent[out] += repeated
        delivered[out] += 1
        waits[out] += SEQUENCE[repeated]
        if case.after != "half":
            window[out] = 1
        if case.after == "slow-start":
            threshold[out] = np.minimum(np.maximum(end[late] // 2, 2), window_max)
    return Walked(*sums)


def rates(walked: Walked) -> dict[str, tuple[float, float]]:
    return {
        f"{name} at {rtt} s": ratio(packets, walked.seconds(rtt))
        for name, packets in (("rate", walked.sent), ("goodput", walked.delivered))
        for rtt in RTTS_S
    }


def long_walk(case: Case, *, steps: int, own_error: float) -> Walked:
    sums: list[NDArray[np.float64]] = []
    for seed in range(20):
        more = astuple(walk(case, steps=steps, seed=seed))
        sums = [np.concatenate(both) for both in zip(sums, more, strict=True)] if sums else [*more]
        walked = Walked(*sums)
        if all(error < own_error * value for value, error in rates(walked).values()):
            return walked
    raise AssertionError("the walk is too short")


def assert_agrees(what: str, exact: float, walked: tuple[float, float]) -> None:
    """Check that values agree within 1 % and within 5 standard errors."""
    value, error = walked
    assert exact == pytest.approx(value, rel=0.01), what
    assert abs(exact - value) < 5 * error + 1e-12, f"{what}: {exact} and {value} +- {error}"


def assert_chain_is_walk(case: Case, *, own_error: float = OWN_ERROR) -> None:
    exact = window_chain(
        loss_probability=case.p,
        packets_per_ack=case.b,
        receiver_window_pkts=case.window_max,
        losses=case.losses,
        after_timeout=case.after,
        recovery=case.recovery,
    )
    steps = math.ceil(PERIODS * exact.rounds)
    walked = long_walk(case, steps=steps, own_error=own_error)
    for (what, simulated), (name, rtt) in zip(
        rates(walked).items(), product(("rate_pps", "goodput_pps"), RTTS_S), strict=True
    ):
        assert_agrees(what, float(getattr(exact, name)(rtt_s=rtt, t0_s=T0_S)), simulated)
    assert_agrees("E[W]", exact.mean_window_pkts, ratio(walked.windows, walked.periods))
    rounds = exact.rounds + 1 + exact.recovery_rounds
    assert_agrees("rounds", rounds, ratio(walked.rounds, walked.periods))
    share, error = ratio(walked.timeouts, walked.periods)
    # Rare with independent losses; their effect on the rate is checked above.
    assert abs(exact.timeout_probability - share) < 5 * error + 1e-5


SHORT = [
    Case(0.0005, 2, 32, "rest-of-round", "one"),
    Case(0.005, 1, math.inf, "rest-of-round", "one"),
    Case(0.02, 2, 12, "rest-of-round", "one"),
    Case(0.1, 1, math.inf, "rest-of-round", "one"),
    Case(0.1, 2, 8, "rest-of-round", "one"),
    Case(0.02, 2, math.inf, "independent", "one"),
    Case(0.1, 1, 12, "independent", "one"),
    Case(0.05, 2, math.inf, "rest-of-round", "slow-start"),
    Case(0.05, 1, 12, "independent", "half"),
    Case(0.02, 2, math.inf, 0.5, "one"),
    Case(0.05, 1, 12, 0.15, "one"),
    Case(0.05, 2, 32, 0.0, "one"),
    Case(0.005, 1, math.inf, "rest-of-round", "one", "newreno"),
    Case(0.05, 2, math.inf, "rest-of-round", "slow-start", "newreno"),
    Case(0.05, 1, 12, "independent", "half", "newreno"),
    Case(0.02, 2, 32, 0.3, "one", "newreno"),
]


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_chain_equals_random_walk(case: Case) -> None:
    assert_chain_is_walk(case)


def simulate_newreno(model: str, p: float) -> Answer:
    tcp = {"stack": "rfc-newreno", "receiver_window": "unlimited"}
    scenario = {
        "network": {
            "rtt": "100ms",
            "bottleneck": {"rate": "unlimited", "loss": {"model": model, "rate": p}},
        },
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": tcp | {"min_rto": "1s", "initial_rto": "1s", "max_rto": "64s"},
        "run": {"duration": "10000s", "warmup": "100s", "seed": 1},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(scenario), ["packet"], threads=1)
    return answer


@pytest.mark.parametrize(
    ("model", "losses"), [("rest-of-round", "rest-of-round"), ("bernoulli", "independent")]
)
def test_recovery_brings_the_chain_nearer_to_newreno(model: str, losses: LaterLosses) -> None:
    """The simulation's T0 is an input, as in section 3 of the paper."""
    errors: dict[FastRecovery, list[float]] = {"none": [], "newreno": []}
    for p in (0.003, 0.01, 0.03):
        newreno = simulate_newreno(model, p)
        for recovery, each in errors.items():
            chain = window_chain(
                loss_probability=p, packets_per_ack=1, losses=losses, recovery=recovery
            )
            rate = float(chain.rate_pps(rtt_s=0.1, t0_s=newreno["t0_s"]))
            each.append(abs(rate / newreno["send_rate_pps"] - 1))
    assert max(errors["newreno"]) < 0.09
    assert np.mean(errors["newreno"]) < np.mean(errors["none"])


def test_burstier_loss_lowers_the_rate() -> None:
    rates = [
        float(window_chain(loss_probability=0.02, losses=losses).rate_pps(rtt_s=0.1, t0_s=1))
        for losses in (0.0, "independent", 0.15, 0.5, 1.0)
    ]
    assert rates == sorted(rates, reverse=True)
    independent, equal = (
        window_chain(loss_probability=0.02, losses=losses).timeout_probability
        for losses in ("independent", 0.02)
    )
    assert independent == equal


@pytest.mark.parametrize("losses", [-0.1, 1.1, math.nan])
def test_later_loss_is_a_probability(losses: float) -> None:
    with pytest.raises(DomainError, match="from 0 to 1"):
        window_chain(loss_probability=0.02, losses=losses)


def packets_in_rounds(chain: WindowChain, p: float) -> float:
    """Return E[Y] as the packets of X rounds plus the k packets of the last, k from A(w, k)."""
    kept = 0.0
    for w, share in zip(chain.window_pkts.tolist(), chain.loss_distribution, strict=True):
        k = np.arange(w)
        kept += share * float(k @ ((1 - p) ** k * p)) / (1 - (1 - p) ** w)
    return chain.rounds * float(chain.round_distribution @ chain.window_pkts) + kept


@pytest.mark.parametrize("after", ["one", "slow-start", "half"])
@pytest.mark.parametrize(
    ("p", "b", "window_max"), [(0.002, 1, 30), (0.01, 2, math.inf), (0.3, 2, 5)]
)
def test_packets_per_period_equal_sum_over_rounds(
    p: float, b: int, window_max: float, after: AfterTimeout
) -> None:
    chain = window_chain(
        loss_probability=p, packets_per_ack=b, receiver_window_pkts=window_max, after_timeout=after
    )
    assert packets_in_rounds(chain, p) == pytest.approx(chain.sent_pkts, rel=1e-10)


@pytest.mark.parametrize("b", [1, 2])
def test_rate_constant_at_rare_losses_is_exact(b: int) -> None:
    """W^2 = W'^2/4 + 2 alpha/b with exponential alpha has E[W] in closed form.

    W^2 b p/2 is a sum of exponentials of means 4^-i, whose density is a sum of exponentials. For
    b = 1 the rate is 1.31/(RTT sqrt(p)); the closed form uses means and gives sqrt(3/2).
    """
    means = 0.25 ** np.arange(25)
    weight = [np.prod(m / (m - means[means != m])) for m in means]
    root = math.gamma(1.5) * float(np.sum(weight * np.sqrt(means)))
    constant = 2 / (b * root * math.sqrt(2 / b))
    if b == 1:
        assert round(constant, 2) == 1.31
    for p, close in ((1e-5, 3e-3), (1e-7, 3e-4)):
        chain = window_chain(loss_probability=p, packets_per_ack=b, losses="independent")
        scaled = float(chain.rate_pps(rtt_s=1, t0_s=1)) * math.sqrt(p)
        assert scaled == pytest.approx(constant, rel=close)


def test_window_truncation_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    for p, b in ((0.0005, 1), (0.01, 2), (0.5, 1)):
        near = window_chain(loss_probability=p, packets_per_ack=b)
        with monkeypatch.context() as patch:
            patch.setattr(chain_module, "MAX_TRUNCATED_PROBABILITY", 1e-18)
            far = window_chain(loss_probability=p, packets_per_ack=b)
        assert far.window_pkts[-1] > near.window_pkts[-1]
        for name in ("rounds", "sent_pkts", "timeout_probability", "mean_window_pkts"):
            assert getattr(near, name) == pytest.approx(getattr(far, name), rel=1e-10)


def test_window_of_one_equals_hand_computed_rate() -> None:
    """alpha rounds of one packet, an empty one, a timeout."""
    p, rtt, t0 = 0.1, 0.1, 0.5
    chain = window_chain(loss_probability=p, receiver_window_pkts=1)
    f = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    seconds = rtt * (1 / p + 1) + t0 * f / (1 - p)
    assert chain.rate_pps(rtt_s=rtt, t0_s=t0) == pytest.approx((1 / p + 1 / (1 - p)) / seconds)
    assert chain.goodput_pps(rtt_s=rtt, t0_s=t0) == pytest.approx(((1 - p) / p + 1) / seconds)


def test_closed_form_error_is_product_of_its_two_parts() -> None:
    grid = closed_form_error()
    assert grid.error.shape == (8, 4, 2, 3)
    assert 1 + grid.error == pytest.approx((1 + grid.means_error) * (1 + grid.restart_error))
    # A window of 1 after a timeout reduces the rate; the concave root raises it if timeouts are
    # rare.
    assert np.all(grid.restart_error > 0)
    assert np.all(grid.means_error[0, :, :, 2] < 0)
    assert np.all(grid.means_error[-1] > 0)


def test_closed_form_underestimates_at_rare_losses() -> None:
    """sqrt(3/2) instead of 1.31: 6.5 % less, whatever b."""
    rare = closed_form_error(
        loss_probability=[1e-7], rtt_s=[0.1], receiver_window_pkts=[math.inf], losses="independent"
    )
    assert rare.means_error == pytest.approx(-0.065, abs=0.001)
