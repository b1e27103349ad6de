"""Maximum users for a quality: the search, its interval, and a comparison with a sweep."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer, Metric, Note, Status, texts_to_notes
from tcpcast.errors import DomainError, NotApplicable, UnknownEngine
from tcpcast.plan import plan_quality, verification
from tcpcast.plan.population_search import MIN_FILES, VERIFICATION_REPLICATIONS
from tcpcast.plan.questions import SEARCH_REPLICATIONS
from tcpcast.report.plan import plan_parts
from tcpcast.report.text import plain_text as as_text
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.engines import RunOptions

    Distribution = Callable[[float], float]


def loop(changes: dict[str, Any] | None = None) -> Scenario:
    """A 5 Mbit/s link that 125 users fill: 417 packets/s, 10 per file, 3 s of OFF time."""
    scenario = Scenario.from_dict(
        {
            "name": "small-loop",
            "network": {
                "rtt": "50ms",
                "ingress": {"rate": "10mbit"},
                "bottleneck": {"rate": "5mbit", "buffer": "200pkt", "queue": "fq"},
                "egress": {"rate": "10mbit"},
            },
            "traffic": {
                "kind": "on-off",
                "sources": 7,
                "off": {"distribution": "exponential", "mean": "3s"},
                "size": {"distribution": "exponential", "mean": "10pkt"},
                "connection": "persistent",
                "start": "equilibrium",
            },
            "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
            "run": {"duration": "120s", "warmup": "20s"},
        }
    )
    return scenario.with_changes(changes or {})


# ---------------------------------------------------------------- search with a function as engine


def table_of(scenario: Scenario, distribution: Distribution, noise: float) -> Answer:
    shares = scenario.probes.goodput_shares
    # The share s of files exceeds a goodput of distribution(N) / s.
    goodput = np.array([distribution(scenario.senders) / share for share in shares])
    grid = np.geomspace(1e3, 1e8, 2001)
    return Answer(
        engine="packet",
        metrics={
            "connection_rate_bps": Metric(distribution(scenario.senders)),
            "loss_ratio": Metric(0.01),
        },
        tables={
            "file_goodput": {
                "share": np.array(shares),
                "goodput_bps": goodput,
                "low": goodput * (1 - noise),
                "high": goodput * (1 + noise),
            },
            "file_goodput_tail": {
                "goodput_bps": grid,
                "by_file": np.minimum(1.0, distribution(scenario.senders) / grid),
            },
        },
        notes=[
            *texts_to_notes(["the run is too short for the intervals of file_goodput"]),
            Note("jain is short", ("jain_index",), kind="check"),
        ],
    )


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Scenario]]:
    """Replace the simulator by a function of the goodput and record the simulated scenarios."""

    def install(distribution: Distribution, noise: float = 0.02) -> list[Scenario]:
        scenarios: list[Scenario] = []

        def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
            del options
            assert engines == ["packet"]
            scenarios.append(scenario)
            return [table_of(scenario, distribution, noise)]

        monkeypatch.setattr(verification, "answer", run)
        return scenarios

    return install


DISTRIBUTIONS: dict[str, Distribution] = {
    "hyperbola": lambda n: 30e6 / n,
    "threshold": lambda n: 1e6 if n <= 130 else 1e6 * math.exp(-(n - 130) / 10),
    "cliff": lambda n: 1e6 if n <= 211 else 1e3,
    "slow": lambda n: 1e6 * n**-0.3,
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("above", [9e5, 3e5, 5e4])
def test_search_finds_the_maximum_population(
    name: str, above: float, simulator: Callable[..., list[Scenario]]
) -> None:
    scenarios = simulator(DISTRIBUTIONS[name], noise=1e-6)
    plan = plan_quality(loop(), share=0.5, above_bps=above)
    distribution = DISTRIBUTIONS[name]
    # Accurate to 1 %, with at most one run per doubling plus a handful.
    result = int(plan.value)
    assert distribution(max(1, math.floor(0.985 * result) - 1)) / 0.5 >= above
    assert distribution(math.ceil(1.015 * result) + 1) / 0.5 < above
    assert plan.low is not None
    assert plan.high is not None
    assert plan.low <= plan.value <= plan.high
    assert len(scenarios) < 45
    assert len({s.senders for s in scenarios}) == len(scenarios)


def test_search_works_without_intervals(simulator: Callable[..., list[Scenario]]) -> None:
    scenarios = simulator(DISTRIBUTIONS["hyperbola"], noise=math.nan)
    plan = plan_quality(loop(), share=0.95, above_bps=2e5)
    assert plan.undecided
    sources = [s.senders for s in scenarios]
    assert plan.low is not None
    assert plan.high is not None
    assert min(sources) <= plan.low < 157 < plan.high <= max(sources)


def test_curve_contains_all_runs(simulator: Callable[..., list[Scenario]]) -> None:
    scenarios = simulator(DISTRIBUTIONS["hyperbola"])
    plan = plan_quality(loop(), share=0.9, above_bps=2e5)
    curve = plan.tables["curve"]
    sources = curve["sources"]
    assert np.all(np.diff(sources) > 0)
    assert sources[0] <= 0.26 * plan.value
    assert sources[-1] >= 1.9 * plan.value
    assert set(sources.tolist()) == {s.senders for s in scenarios}
    assert curve["load"] == pytest.approx(sources / 125)
    assert curve["g_95_bps"] == pytest.approx(30e6 / sources / 0.95)
    assert curve["g_50_bps"] == pytest.approx(30e6 / sources / 0.5)
    assert curve["mean_bps"] == pytest.approx(30e6 / sources)
    assert np.isnan(curve["rtt_mean_s"]).all()
    expected = np.minimum(1, 30e6 / sources / 2e5)
    assert curve["share_above"] == pytest.approx(expected, rel=1e-3)
    assert [note.why for note in plan.warnings if isinstance(note, Note)] == [
        "the run is too short for the intervals of file_goodput"
    ]
    assert plan.engine == "packet"
    assert plan.scenario is not None
    assert plan.scenario.senders == plan.value
    body = json.loads(json.dumps(plan.to_json(), allow_nan=False))
    assert (body["low"], body["high"], body["engine"]) == (plan.low, plan.high, "packet")
    assert body["tables"]["curve"]["columns"]["rtt_mean_s"][0] is None


def test_runs_are_extended_for_few_users_only(
    simulator: Callable[..., list[Scenario]],
) -> None:
    scenarios = simulator(lambda n: 1e6 / n)
    plan_quality(loop(), share=0.95, above_bps=2.1e5)
    assert len({s.run.seed for s in scenarios}) == len(scenarios)
    for scenario in scenarios:
        assert scenario.run.duration_s is not None
        files = scenario.senders * (scenario.run.duration_s - 20) / 3 * scenario.run.replications
        assert files >= MIN_FILES
        assert scenario.run.duration_s == 120 or files < 1.3 * MIN_FILES
    counted = loop({"run": {"transfers": 5000, "warmup": "20s"}})
    scenarios = simulator(DISTRIBUTIONS["hyperbola"])
    plan_quality(counted, share=0.95, above_bps=2e5)
    assert {s.run.transfers for s in scenarios} == {5000}


def test_users_of_a_class_are_searched(simulator: Callable[..., list[Scenario]]) -> None:
    scenarios = simulator(DISTRIBUTIONS["hyperbola"])
    one = loop({"class": [{"name": "all", "sources": 9}]})
    plan = plan_quality(one, share=0.5, above_bps=3e5)
    assert plan.value == pytest.approx(200, abs=2)
    assert {s.populations[0].name for s in scenarios} == {"all"}


def test_check_has_its_own_replications(
    simulator: Callable[..., list[Scenario]],
) -> None:
    scenarios = simulator(DISTRIBUTIONS["hyperbola"])
    plan = plan_quality(loop(), share=0.5, above_bps=3e5, verify=True)
    assert plan.simulated == 200
    checked = [s for s in scenarios if s.run.replications == VERIFICATION_REPLICATIONS]
    assert checked[0].senders == plan.value
    table = plan.tables["simulated"]
    assert table["goodput_bps"] == pytest.approx(60e6 / table["sources"])
    assert table["low"] == pytest.approx(table["goodput_bps"] * 0.98)


def test_targets_out_of_reach_are_rejected(simulator: Callable[..., list[Scenario]]) -> None:
    simulator(lambda n: 1e5 / n**0.01)
    with pytest.raises(
        DomainError, match=r"with a single source, .* reach only 105\.3 kbit/s.*Only 50 %"
    ):
        plan_quality(loop(), share=0.95, above_bps=2e5)
    simulator(lambda _: 1e6)
    with pytest.raises(DomainError, match=r"even with 300,000 sources.*--engine mean-field"):
        plan_quality(loop(), share=0.95, above_bps=2e5)


def test_search_simulates_a_single_source_first(
    simulator: Callable[..., list[Scenario]],
) -> None:
    """No larger population is simulated if a single source misses the target."""
    scenarios = simulator(lambda n: 1e5 / n)
    with pytest.raises(DomainError, match="even with a single source"):
        plan_quality(loop(), share=0.95, above_bps=2e5)
    assert [s.senders for s in scenarios] == [1]


def test_flat_curve_is_undecided(simulator: Callable[..., list[Scenario]]) -> None:
    simulator(lambda n: 4e5 if n == 1 else 2e5 * (n / 125) ** -0.02 * 0.95, 0.03)
    scenario = loop()
    plan = plan_quality(scenario, share=0.95, above_bps=2e5)
    assert plan.undecided
    assert plan.low is not None
    assert plan.high is not None
    assert plan.low < 125 < plan.high
    assert plan.scenario is None
    (message,) = (w for w in map(str, plan.warnings) if "undecided" in w)
    assert "traffic.sources is only known to be between" in message
    assert "--set run.duration=" in message
    assert "undecided, between" in as_text(plan_parts(plan, scenario), 100)
    assert plan.to_json()["value"] is None


def test_search_simulates_its_answer(simulator: Callable[..., list[Scenario]]) -> None:
    for distribution in DISTRIBUTIONS.values():
        scenarios = simulator(distribution)
        plan = plan_quality(loop(), share=0.95, above_bps=2e5)
        assert plan.value in {s.senders for s in scenarios}
        assert plan.value in plan.tables["curve"]["sources"]


def test_invalid_questions_are_rejected(simulator: Callable[..., list[Scenario]]) -> None:
    simulator(DISTRIBUTIONS["hyperbola"])
    with pytest.raises(DomainError, match="share"):
        plan_quality(loop(), share=1, above_bps=1e5)
    with pytest.raises(DomainError, match="the goodput must be above 0"):
        plan_quality(loop(), share=0.9, above_bps=0)
    with pytest.raises(UnknownEngine, match="not 'engset'; write packet, fixed-point or"):
        plan_quality(loop(), share=0.9, above_bps=1e5, engine="engset")
    with pytest.raises(NotApplicable, match="on-off"):
        plan_quality(tcpcast.load("lossy-path"), share=0.9, above_bps=1e5)
    unlimited = loop({"network.bottleneck": {"rate": "unlimited"}})
    with pytest.raises(NotApplicable, match=r"network\.bottleneck\.rate"):
        plan_quality(unlimited, share=0.9, above_bps=1e5)


def test_engine_outside_its_domain_is_rejected() -> None:
    early = loop({"network.bottleneck.queue": "red"})
    with pytest.raises(NotApplicable, match="mean-field does not apply: RED updates"):
        plan_quality(early, share=0.9, above_bps=1e5, engine="mean-field")


def test_engine_without_goodput_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del scenario, engines, options
        return [Answer(engine="packet", status=Status.PARTIAL, reason="it did not converge")]

    monkeypatch.setattr(verification, "answer", run)
    with pytest.raises(NotApplicable, match=r"traffic\.sources = 125: it did not converge"):
        plan_quality(loop(), share=0.9, above_bps=1e5)


def test_withheld_answers_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of reference flows that fail the tests are rejected, at 125 sources or in the
    search."""
    sources_refused: list[int] = []

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del engines, options
        result = table_of(scenario, DISTRIBUTIONS["hyperbola"], 0.02)
        if scenario.senders in sources_refused or (not sources_refused and scenario.senders < 100):
            result.metrics = {}
            result.mark_incomplete("no fixed point was reached")
        return [result]

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_quality(loop(), share=0.95, above_bps=2e5, engine="fixed-point")
    assert plan.tables["curve"]["sources"].min() >= 100
    assert not plan.incomplete
    sources_refused.append(125)
    with pytest.raises(NotApplicable, match=r"traffic\.sources = 125: no fixed point was reached"):
        plan_quality(loop(), share=0.95, above_bps=2e5, engine="fixed-point")


def test_interruption_before_an_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del scenario, engines, options
        return [Answer(engine="packet", status=Status.INTERRUPTED)]

    monkeypatch.setattr(verification, "answer", run)
    with pytest.raises(KeyboardInterrupt):
        plan_quality(loop(), share=0.9, above_bps=1e5)


@pytest.mark.parametrize("after", [1, 2, 3, 5, 8, 13, 14, 15, 16, 29])
def test_interruption_later_keeps_the_bounds(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution, scenarios = DISTRIBUTIONS["hyperbola"], []

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del engines, options
        scenarios.append(scenario.senders)
        result = table_of(scenario, distribution, 0.001)
        if len(scenarios) > after:
            result.status = Status.INTERRUPTED
        return [result]

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_quality(loop(), share=0.95, above_bps=2e5)
    assert (1 if after == 1 else 125) <= plan.value <= 159
    assert plan.interrupted == (len(scenarios) > after)
    sources = plan.tables["curve"]["sources"].tolist()
    assert sources == sorted(set(scenarios[:after]))
    if plan.interrupted:
        assert "interrupted" in str(plan.warnings[0])
    assert plan.at_least == ("search" in str(plan.warnings[0]))
    if plan.at_least:
        passing = [n for n in sources if distribution(n) / 0.95 >= 2e5]
        failing = [n for n in sources if distribution(n) / 0.95 < 2e5]
        assert (plan.value, plan.low, plan.high) == (
            max(passing),
            max(passing),
            min(failing, default=None),
        )
        assert plan.to_json()["bracket"] == {"low": plan.low, "high": plan.high}
    else:
        assert plan.to_json()["bracket"] is None
    assert json.loads(json.dumps(plan.to_json()))["interrupted"] == plan.interrupted


def test_incomplete_runs_have_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del engines, options
        result = table_of(scenario, DISTRIBUTIONS["hyperbola"], 0.02)
        result.mark_incomplete("run.max_wall was reached before the end of the run")
        return [result]

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_quality(loop(), share=0.95, above_bps=2e5)
    assert plan.incomplete
    sources = [f"{n:,}" for n in plan.tables["curve"]["sources"].tolist()]
    assert str(plan.warnings[-1]).startswith(
        f"no complete answer with {', '.join(sources[:-1])} and {sources[-1]} sources; with "
    )
    assert str(plan.warnings[-1]).endswith(": run.max_wall was reached before the end of the run")


class SimulatedClock:
    """Replaces the simulator; each run takes one second of a simulated clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.sources: list[int] = []
        monkeypatch.setattr(verification, "answer", self.run)
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def run(self, scenario: Scenario, engines: list[str], options: RunOptions) -> list[Answer]:
        del engines
        end = options.compute_deadline(scenario)
        self.sources.append(scenario.senders)
        result = table_of(scenario, DISTRIBUTIONS["hyperbola"], 0.001)
        if end is not None and end < self.now + 1:
            result.mark_incomplete("run.max_wall was reached before the end of the run")
            result.tables = {}
        self.now = self.now + 1 if end is None else min(self.now + 1, end)
        return [result]


@pytest.mark.parametrize("limit", [1, 2, 3.5, 5, 9, 12, 14.5, 40])
def test_max_wall_covers_all_simulations_of_a_plan(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimulatedClock(monkeypatch)
    plan_quality(loop(), share=0.95, above_bps=2e5, verify=True)
    assert 14.5 < clock.now < 40
    clock = SimulatedClock(monkeypatch)
    scenario = loop({"run.max_wall": f"{limit}s"})
    plan = plan_quality(scenario, share=0.95, above_bps=2e5, verify=True)
    assert clock.now <= limit
    # Truncated runs are not in the table, and no run starts after the limit.
    assert len(clock.sources) <= math.ceil(limit)
    sources = plan.tables["curve"]["sources"].tolist()
    assert set(sources) <= set(clock.sources[: math.floor(limit)])
    assert plan.incomplete == (limit < 40)
    assert not plan.interrupted
    if limit == 40:
        assert plan.simulated == pytest.approx(plan.value, rel=0.01)
    else:
        (message,) = (text for text in map(str, plan.warnings) if "max_wall" in text)
        assert message.startswith("run.max_wall was reached before the ")
        assert plan.simulated is None
    assert plan.at_least == ("the search" in str(plan.warnings[0]))
    if plan.at_least:
        assert (plan.value, plan.low) == (max(n for n in sources if n <= 157),) * 2
        assert f" source{'s' * (limit > 1)} or more" in as_text(plan_parts(plan, scenario))


def test_max_wall_before_the_first_result_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimulatedClock(monkeypatch)
    with pytest.raises(NotApplicable, match="the total time of all simulations of a plan"):
        plan_quality(loop({"run.max_wall": "0.5s"}), share=0.95, above_bps=2e5)
    assert clock.sources == [1]


def test_check_of_many_packets_has_fewer_replications_or_none(
    simulator: Callable[..., list[Scenario]],
) -> None:
    """500 Mbit/s of 1500 B for 120 s, three times, are 15 million packets per replication."""
    scenarios = simulator(lambda n: 6e9 / n)
    fast = loop({"network.bottleneck.rate": "500mbit"})
    plan = plan_quality(fast, share=0.5, above_bps=4e5, verify=True)
    assert {s.run.replications for s in scenarios[-3:]} == {VERIFICATION_REPLICATIONS}
    assert plan.notes[-1].endswith(
        f"Each population is simulated {VERIFICATION_REPLICATIONS} times."
    )
    longer = fast.with_changes({"run.duration": "600s"})
    plan = plan_quality(longer, share=0.5, above_bps=4e5, verify=True)
    assert plan.simulated is not None
    assert {s.run.replications for s in scenarios[-3:]} == {6}
    longer = fast.with_changes({"run.duration": "1200s"})
    before = len(scenarios)
    plan = plan_quality(longer, share=0.5, above_bps=4e5, verify=True)
    assert plan.simulated is None
    assert {s.run.replications for s in scenarios[before:]} == {1, SEARCH_REPLICATIONS}
    assert "not checked by simulation: the check would take 600 million packets" in str(
        plan.warnings[-1]
    )
    assert "run.duration" in str(plan.warnings[-1])
    counted = loop({"run": {"transfers": 5_000_000, "warmup": "20s"}})
    plan = plan_quality(counted, share=0.5, above_bps=4e7, verify=True)
    assert "the check would take 600 million packets" in str(plan.warnings[-1])


def test_check_of_too_many_sources_is_not_started(
    simulator: Callable[..., list[Scenario]], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator(DISTRIBUTIONS["hyperbola"])
    monkeypatch.setattr("tcpcast.plan.quality.MAX_EXACT_SOURCES", 160)
    plan = plan_quality(loop(), share=0.95, above_bps=2e5, verify=True)
    assert plan.simulated is None
    assert "not checked by simulation: a check simulates at most 160 sources" in str(
        plan.warnings[-1]
    )


# ---------------------------------------------------------------- comparison with the packet engine


def test_sweep_with_another_seed_gives_the_same_population() -> None:
    share, above = 0.9, 2e5
    plan = plan_quality(loop(), share=share, above_bps=above)
    result = {}
    for times in np.linspace(0.88, 1.12, 4):
        sources = round(times * plan.value)
        changes = {
            "traffic.sources": sources,
            "probes.goodput_shares": [share],
            "run.seed": 77,
            "run.replications": 4,
        }
        (answer,) = tcpcast.run(loop(changes), ["packet"])
        result[sources] = float(answer.tables["file_goodput"]["goodput_bps"][0])
    goodputs = np.array(list(result.values()))
    assert goodputs[0] > above > goodputs[-1]
    expected = np.interp(np.log(above), np.log(goodputs[::-1]), list(result)[::-1])
    assert plan.low is not None
    assert plan.high is not None
    assert plan.low - 0.02 * expected <= expected <= plan.high + 0.02 * expected
    assert plan.value == pytest.approx(expected, rel=0.03)


def test_check_agrees_with_the_search() -> None:
    plan = plan_quality(loop(), share=0.8, above_bps=3e5, verify=True)
    assert plan.simulated == pytest.approx(plan.value, rel=0.03)
    curve = plan.tables["curve"]
    near = np.abs(curve["sources"] / plan.value - 1) < 0.04
    assert curve["share_above"][near].mean() == pytest.approx(0.8, abs=0.03)
    assert np.all(curve["g_95_bps"] <= curve["g_50_bps"])
