"""Plans: which scenarios the solver runs, and its answers for formulas and simulations."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer, Metric, Note, Status
from tcpcast.engines import RunOptions, answer
from tcpcast.plan import probes, solve
from tcpcast.plan.questions import QUESTIONS
from tcpcast.plan.solver import merge_run_warnings
from tcpcast.plan.varied import split_in_proportion
from tcpcast.process.errors import DomainError, NotApplicable, UnknownEngine
from tcpcast.report.verdict import verdict_text
from tcpcast.scenario import Scenario, load

Measure = Callable[[Scenario], dict[str, Any]]
Install = Callable[..., list[Scenario]]

CAPPED = Path(__file__).with_name("connection_cap.toml")


def web(**changes: Any) -> Scenario:
    """134 web users share a 10 Mbit/s link."""
    return load("web-10mbit", changes={key.replace("__", "."): v for key, v in changes.items()})


def arriving(rate: str = "8/s", **changes: Any) -> Scenario:
    """Downloads of 100 KB arrive at a link of 10 Mbit/s."""
    arrivals = {"distribution": "poisson", "rate": rate}
    tables = {
        "network": {"rtt": "30ms", "bottleneck": {"rate": "10mbit", "buffer": "100pkt"}},
        "traffic": {"kind": "transfers", "size": "100KB", "arrivals": arrivals},
        "run": {"duration": "100s", "warmup": "10s"},
    }
    return Scenario.from_dict(tables).with_changes(changes)


def bulk(**changes: Any) -> Scenario:
    """A CUBIC flow over 100 Mbit/s with random loss."""
    tables = {
        "network": {"rtt": "80ms", "bottleneck": {"rate": "100mbit", "loss": "0.5%"}},
        "traffic": {"kind": "bulk", "flows": 1},
        "run": {"duration": "60s"},
    }
    return Scenario.from_dict(tables).with_changes(changes)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Replace the simulator by a function of the scenario, and record the scenarios."""

    def install(measure: Measure, rtol: float = 0.02, notes: list[Note] | None = None) -> Any:
        scenarios: list[Scenario] = []

        def run(scenario: Scenario, engines: list[str], options: RunOptions) -> list[Answer]:
            assert engines == ["packet"]
            assert isinstance(options, RunOptions)
            scenarios.append(scenario)
            measured = measure(scenario)
            known = {k: v for k, v in measured.items() if not isinstance(v, (dict, Metric))}
            metrics = {k: Metric(v, v * (1 - rtol), v * (1 + rtol)) for k, v in known.items()}
            metrics |= {k: v for k, v in measured.items() if isinstance(v, Metric)}
            tables = {k: v for k, v in measured.items() if isinstance(v, dict)}
            found = Answer("packet", metrics=metrics, tables=tables, kind="simulation")
            found.notes = list(notes or [])
            return [found]

        monkeypatch.setattr(probes, "answer", run)
        return scenarios

    return install


# ---------------------------------------------------------------- formulas


def test_formula_meets_the_target_only_on_one_side_of_its_answer() -> None:
    cases: list[tuple[str, Scenario, dict[str, Any], str, str]] = [
        ("buffer", web(traffic__sources=80), {"loss": 0.009}, "engset", "loss_ratio"),
        ("users", web(), {"rate_bps": 300e3}, "engset", "connection_rate_bps"),
        ("rate", web(), {"rate_bps": 400e3}, "engset", "connection_rate_bps"),
        ("max-loss", load("one-path"), {"goodput_bps": 5e6}, "pftk", "goodput_bps"),
        ("max-loss", bulk(), {"goodput_bps": 5e6}, "cubic-response", "goodput_bps"),
        ("streams", bulk(), {"utilisation": 0.95}, "cubic-response", "utilisation"),
    ]
    for question, scenario, target, engine, metric in cases:
        plan = solve(question, scenario, engine=engine, **target)
        low, high = plan.bracket
        assert low is not None
        assert high is not None
        assert plan.value == (high if QUESTIONS[question].smallest else low)
        assert high - low <= (1 if QUESTIONS[question].integer else 2e-9 * high)
        first, last = (
            metrics[0] - plan.target
            for metrics in (
                plan.tables["values"][metric][plan.tables["values"][plan.column] == end]
                for end in (low, high)
            )
        )
        assert first * last <= 0
        assert (plan.low, plan.high, plan.engine) == (None, None, engine)
        assert plan.scenario is not None
        if metric != "utilisation":
            (found,) = answer(plan.scenario, [engine])
            assert found[metric] == pytest.approx(plan.target, rel=0.02)


def test_planned_rate_shortens_the_rtt_if_delays_are_given() -> None:
    network = {
        "ingress": {"rate": "100mbit"},
        "bottleneck": {"rate": "1mbit", "delay": "20ms", "buffer": "2bdp"},
        "egress": {"rate": "2mbit"},
    }
    tables = web().resolved()
    scenario = Scenario.from_dict(
        {
            "network": network,
            "traffic": tables["traffic"],
            "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
            "run": {"transfers": 100},
        }
    )
    plan = solve("rate", scenario, engine="engset", rate_bps=300e3)
    changed = scenario.with_changes({"network.bottleneck.rate": f"{plan.value}bit"})
    assert changed.rtt_s < scenario.rtt_s
    (found,) = answer(changed, ["engset"])
    assert found["connection_rate_bps"] == pytest.approx(300e3, rel=1e-6)


def test_formula_outside_its_domain_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario, *_: object) -> list[Answer]:
        loss = Metric(math.exp(-scenario.buffer_pkts / 50), trusted=False)
        return [Answer("engset", metrics={"loss_ratio": loss})]

    monkeypatch.setattr(probes, "answer", run)
    plan = solve("buffer", web(), engine="engset")
    assert (plan.value, plan.exit_code, plan.bracket) == (None, 1, (230, 231))
    text = verdict_text(plan.findings)
    assert text.startswith("The formula engset gives no answer: ")
    assert "use the packet engine" in text
    assert not plan.to_json()["trusted"]


# ---------------------------------------------------------------- search by simulation


def test_buffer_is_searched_by_simulation(simulated: Install) -> None:
    """A loss of exp(-B/50): 1 % needs 231 packets."""
    notes = [Note(f"{name} is small", (name,), kind="model") for name in ("loss_ratio", "jain")]
    notes.append(Note("short", ("loss_ratio",), kind="check"))  # concerns one run, not the answer
    scenarios = simulated(lambda s: {"loss_ratio": math.exp(-s.buffer_pkts / 50)}, notes=notes)
    plan = solve("buffer", web())
    assert plan.value in {231, 232}
    assert plan.low is not None
    assert plan.high is not None
    assert plan.low <= 231 <= plan.high <= 1.1 * plan.low
    table = plan.tables["values"]
    assert table["loss_ratio"] == pytest.approx(np.exp(-table["buffer_pkts"] / 50))
    assert table["low"] == pytest.approx(table["loss_ratio"] * 0.98)
    assert len(plan.runs) == len(table["low"]) <= 14
    assert len({s.run.seed for s in scenarios}) == len(scenarios)
    assert list(map(str, plan.warnings)) == ["loss_ratio is small"]
    assert plan.scenario is not None
    assert plan.scenario.buffer_pkts == plan.value
    body = json.loads(json.dumps(plan.to_json(), allow_nan=False))
    assert (body["value"], body["low"], body["high"]) == (plan.value, plan.low, plan.high)
    assert body["bracket"]["low"] < body["value"] + 2


def test_runs_become_longer_near_the_answer(simulated: Install) -> None:
    """Short runs of 8 files are too noisy here: each stage is 4 times as long."""

    def measure(scenario: Scenario) -> dict[str, Any]:
        length = scenario.run.transfers or 0
        noise = 1 + 0.3 * math.sin(scenario.run.seed) * max(200_000 / length - 1, 0.0) ** 0.5
        value = 42e6 / scenario.senders * noise
        return {"connection_rate_bps": Metric(value, value * 0.7, value * 1.3)}

    scenarios = simulated(measure)
    solve("users", web(), rate_bps=700e3)
    lengths = [s.run.transfers or 0 for s in scenarios]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 1
    assert lengths[0] * 12 == pytest.approx(1e6, rel=0.01)


def test_result_depends_only_on_scenario_and_seed() -> None:
    short = web(run__transfers=2000, run__replications=2)
    plans = [
        solve(
            "users",
            short.with_changes({"run.seed": seed}),
            rate_bps=400e3,
            options=RunOptions(threads=threads),
        )
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    ]
    first, same, other = (
        [plan.value, plan.low, *plan.tables["values"]["connection_rate_bps"]] for plan in plans
    )
    assert first == same
    assert first != other


def test_all_classes_grow_in_proportion(simulated: Install) -> None:
    """Near users share 30 Mbit/s with all; far users get two thirds of the near users' rate."""

    def measure(scenario: Scenario) -> dict[str, Any]:
        rates = np.array([30e6, 20e6]) / scenario.senders
        columns = {"name": np.array(["near", "far"]), "connection_rate_bps": rates}
        ends = {f"connection_rate_bps_{k}": rates * f for k, f in (("low", 0.99), ("high", 1.01))}
        return {"connection_rate_bps": float(rates.mean()), "by_class": columns | ends}

    scenarios = simulated(measure)
    both = load("two-classes")
    plan = solve("users", both, rate_bps=100e3)
    assert plan.value == pytest.approx(200, rel=0.02)
    assert all(abs(s.populations[0].count - 0.6 * s.senders) <= 1 for s in scenarios)
    assert plan.value is not None
    near = round(0.6 * plan.value)
    assert plan.recommendation == (
        f"{plan.value} sources are {near} of near, {plan.value - near} of far."
    )
    assert plan.question.endswith("in each class")
    scenarios.clear()
    plan = solve("users", both, rate_bps=100e3, class_name="near")
    assert plan.value == pytest.approx(160, rel=0.02)
    assert {s.populations[1].count for s in scenarios} == {40}
    assert "Only class near grows; unchanged: far." in plan.notes
    fast = solve("rate", both, rate_bps=25e4, class_name="near").tables["values"]
    assert fast["connection_rate_bps"][0] == pytest.approx(3e5)


def test_all_classes_of_a_site_grow(simulated: Install) -> None:
    """Regression: the note said that only a class with the name of the site grows."""
    scenarios = simulated(lambda scenario: {"connection_rate_bps": 30e6 / scenario.senders})
    traffic = {
        "kind": "on-off",
        "size": {"distribution": "constant", "value": "5MB"},
        "off": {"distribution": "exponential", "mean": "20s"},
    }
    shared = {"site": "home", "sources": 2, "traffic": traffic, "route": ["core"], "rtt": "20ms"}
    both = Scenario.from_dict(
        {
            "link": {"core": {"rate": "200mbit", "buffer": "1000pkt"}},
            "site": {"home": {"count": 20}},
            "class": [{"name": "film", **shared}, {"name": "web", **shared}],
            "run": {"duration": "60s"},
        }
    )
    plan = solve("users", both, rate_bps=100e3)
    assert plan.value == pytest.approx(75, rel=0.02)  # members with four sources each
    assert "All classes of site home grow (film, web)." in plan.notes
    assert all(s.populations[0].count == 2 * s.sites["home"].count for s in scenarios)


def test_split_adds_up_and_keeps_all_classes() -> None:
    for total in range(3, 200):
        split = split_in_proportion({"a": 60, "b": 40, "c": 1}, total, integer=True)
        assert sum(split.values()) == total
        assert min(split.values()) >= 1
    assert split_in_proportion({"a": 3.0, "b": 1.0}, 2.0, integer=False) == {"a": 1.5, "b": 0.5}


def test_share_of_files_is_read_from_the_slowest_class(simulated: Install) -> None:
    def measure(scenario: Scenario) -> dict[str, Any]:
        (share,) = scenario.probes.goodput_shares
        rate = np.array([30e6, 20e6]) / scenario.senders / share
        table = {"name": np.array(["near", "far"]), "share": np.array([share, share])}
        table |= {"goodput_bps": rate, "low": 0.99 * rate, "high": 1.01 * rate}
        return {"connection_rate_bps": 1.0, "file_goodput_by_class": table}

    simulated(measure)
    plan = solve("users", load("two-classes"), share=0.8, above_bps=1e5)
    assert plan.value == pytest.approx(250, rel=0.02)
    assert "80 % of files above 100 kbit/s" in plan.question
    assert plan.quantity == "goodput that 80 % of the files reach"


def test_runs_of_few_users_have_enough_files(simulated: Install) -> None:
    scenarios = simulated(lambda s: {"connection_rate_bps": 20e6 / s.senders})
    solve("users", load("office-50mbit"), rate_bps=5e6)
    for scenario in scenarios:
        files = scenario.senders * ((scenario.run.duration_s or 0) - 20) / 3
        assert files >= 2000


def test_time_per_file_of_each_kind_of_traffic(simulated: Install) -> None:
    isolated = arriving().with_changes(
        {"traffic": {"kind": "transfers", "size": "1MB", "count": 20}, "run": {"seed": 1}}
    )
    for scenario, metric in (
        (web(), "on_time_s"),
        (arriving(**{"tcp.handshake": "none"}), "completion_time_s"),
        (isolated, "total_time_s"),
        (arriving(**{"tcp.handshake": "tls13"}), "total_time_s"),
    ):
        simulated(lambda s, metric=metric: {metric: 5e6 / s.network.bottleneck.rate_bps})
        plan = solve("rate", scenario, time_s=0.5)
        assert plan.metric == metric
        assert plan.value == pytest.approx(10e6, rel=0.02)
    simulated(lambda s: {"on_time_s": 0.01 * s.senders})
    assert solve("users", web(), time_s=0.5).value == pytest.approx(50, abs=2)
    with pytest.raises(NotApplicable, match="requires files"):
        solve("max-loss", bulk(), time_s=1.0)
    with pytest.raises(
        NotApplicable, match="the time per file is the only possible target; use --time"
    ):
        solve("rate", isolated, rate_bps=1e6)


def test_overloaded_runs_miss_the_target() -> None:
    """12.3 arrivals/s fill the link: runs with more have no mean time, or one that grows."""
    plan = solve("users", arriving(), time_s=0.5)
    assert plan.value is not None
    assert 9 < plan.value < 12
    assert plan.unit == "transfers/s"
    assert plan.scenario is not None
    assert plan.scenario.arriving_load == pytest.approx(0.084 * plan.value, rel=1e-6)
    plan = solve("rate", arriving(), time_s=0.5)
    assert plan.value == pytest.approx(8.3e6, rel=0.1)
    assert math.inf in plan.tables["values"]["total_time_s"]
    with pytest.raises(DomainError, match="the link is overloaded"):
        solve("buffer", arriving("15/s"), loss=0.01)


def test_unfinished_transfers_miss_the_target(simulated: Install) -> None:
    def measure(scenario: Scenario) -> dict[str, Any]:
        if scenario.senders > 100:
            return {"on_time_s": Metric(math.nan, at_least=9.0)}
        return {"on_time_s": 0.01 * scenario.senders}

    simulated(measure)
    assert solve("users", web(), time_s=0.5).value == pytest.approx(50, abs=2)


def test_full_link_without_finished_files_misses_the_target(simulated: Install) -> None:
    """Regression: such a probe ended the plan although smaller populations have an answer."""

    def measure(scenario: Scenario) -> dict[str, Any]:
        rate = math.nan if scenario.senders > 500 else 20e6 / scenario.senders
        return {"connection_rate_bps": rate, "utilisation": 1.0}

    simulated(measure)
    assert solve("users", web(), rate_bps=1e5).value == pytest.approx(200, abs=4)
    simulated(lambda s: measure(s) | {"utilisation": 0.5})
    with pytest.raises(NotApplicable, match="gives no connection_rate_bps"):
        solve("users", web(), rate_bps=1e4)


def test_run_shorter_than_a_second_keeps_its_warm_up(simulated: Install) -> None:
    """Regression: both were rounded up to 1 s, which is no valid scenario."""
    scenarios = simulated(lambda s: {"loss_ratio": math.exp(-s.buffer_pkts / 50)})
    short = bulk(
        **{
            "run.duration": "300ms",
            "run.warmup": "100ms",
            "network.rtt": "2ms",
            "network.bottleneck.loss": "0%",
        }
    )
    solve("buffer", short, loss=0.01)
    assert scenarios[0].run.duration_s == 0.3
    assert scenarios[0].run.warmup_s == 0.1


def test_burst_of_a_policer_is_planned(simulated: Install) -> None:
    def measure(scenario: Scenario) -> dict[str, Any]:
        burst = scenario.network.bottleneck.rate_rule.burst  # type: ignore[union-attr]
        return {"utilisation": 1 - 10_000 / burst}

    simulated(measure, rtol=1e-4)
    plan = solve("buffer", load("policed-line"), utilisation=0.9)
    assert (plan.unit, plan.column) == ("byte", "burst_bytes")
    assert plan.value == pytest.approx(100_000, rel=0.02)
    text = verdict_text(plan.findings)
    assert text == "The smallest burst for a utilisation of 90 % is 100.0 kB (99.9 to 100.1)."


# ---------------------------------------------------------------- limits of the search


def test_smallest_value_may_be_enough_already(simulated: Install) -> None:
    simulated(lambda _: {"utilisation": 0.99}, rtol=0.001)
    plan = solve("streams", bulk())
    assert (plan.value, plan.at_limit, plan.exit_code) == (1, True, 0)
    assert plan.bracket == (None, 1)
    assert verdict_text(plan.findings).endswith(
        "is 1 flow; the search ends at this value, which meets the target."
    )
    simulated(lambda _: {"loss_ratio": 1e-5})
    plan = solve("buffer", web())
    assert (plan.value, plan.exit_code) == (1, 0)


def test_slowest_link_transmits_a_packet_within_the_round_trip(simulated: Install) -> None:
    simulated(lambda _: {"connection_rate_bps": 1e6})
    plan = solve("rate", web(traffic__sources=1), rate_bps=1e3)
    assert plan.at_limit
    assert plan.value is not None
    with pytest.raises(ValueError, match="transmission"):
        web(traffic__sources=1, network__bottleneck__rate=f"{0.99 * plan.value:.0f}bit")


def test_largest_population_may_meet_the_target(simulated: Install) -> None:
    simulated(lambda _: {"connection_rate_bps": 1e6})
    plan = solve("users", web(), rate_bps=1e5)
    assert (plan.value, plan.at_limit, plan.exit_code) == (300_000, True, 0)
    assert plan.bracket == (300_000, None)


def test_unreachable_targets_are_rejected(simulated: Install) -> None:
    scenarios = simulated(lambda s: {"connection_rate_bps": 8e5 / s.senders})
    with pytest.raises(DomainError, match=r"1 Mbit/s cannot be reached: with one source, .* 800"):
        solve("users", web(), rate_bps=1e6)
    assert [s.senders for s in scenarios] == [1]
    with pytest.raises(DomainError, match="with an unlimited bottleneck"):
        solve("rate", web(), rate_bps=1e6)
    simulated(lambda _: {"utilisation": 0.5})
    with pytest.raises(DomainError, match="4,096, the result is 50 %"):
        solve("streams", bulk())
    with pytest.raises(DomainError, match=r"a link of 100 Mbit/s carries at most 96\.5"):
        solve("max-loss", bulk(), goodput_bps=97e6)
    with pytest.raises(DomainError, match="which no buffer reduces"):
        solve("buffer", web(network__bottleneck__loss="1%"))


def test_rate_without_interval_rejects_no_target(simulated: Install) -> None:
    """Regression: one source with too few files, by chance below the target, caused a refusal."""

    def measure(scenario: Scenario) -> dict[str, Any]:
        if scenario.senders == 1:
            return {"connection_rate_bps": Metric(1e4)}
        return {"connection_rate_bps": 20e6 / scenario.senders}

    simulated(measure)
    assert solve("users", web(), rate_bps=4e5).value == pytest.approx(50, rel=0.05)


def test_flat_curve_is_undecided(simulated: Install) -> None:
    def measure(scenario: Scenario) -> dict[str, Any]:
        noise = 1 + 0.05 * math.sin(scenario.run.seed)
        easy = 4.0 if scenario.senders == 1 else 1.0
        return {"connection_rate_bps": easy * 2e5 * (scenario.senders / 125) ** -0.02 * noise}

    simulated(measure, rtol=0.08)
    plan = solve("users", web(), rate_bps=2e5)
    assert (plan.value, plan.undecided, plan.exit_code) == (None, True, 1)
    assert plan.low is not None
    assert plan.high is not None
    assert plan.low < 125 < plan.high
    text = verdict_text(plan.findings)
    assert "lies between" in text
    assert "too short for a narrower range" in text
    assert any("run.transfers = " in warning for warning in map(str, plan.warnings))


@pytest.mark.parametrize("after", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("by_exception", [False, True])
def test_stopped_search_states_its_range(
    after: int, by_exception: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios: list[int] = []

    def run(scenario: Scenario, *_: object) -> list[Answer]:
        if len(scenarios) == after:
            if by_exception:
                raise KeyboardInterrupt
            return [Answer("packet", status=Status.INTERRUPTED)]
        scenarios.append(scenario.senders)
        rate = Metric(30e6 / scenario.senders, 29.9e6 / scenario.senders, 30.1e6 / scenario.senders)
        return [Answer("packet", metrics={"connection_rate_bps": rate}, kind="simulation")]

    monkeypatch.setattr(probes, "answer", run)
    plan = solve("users", web(), rate_bps=157e3)
    assert (plan.value, plan.interrupted, plan.exit_code) == (None, True, 130)
    assert plan.tables["values"]["sources"].tolist() == sorted(scenarios)
    passing = [n for n in scenarios if 30e6 / n >= 157e3]
    failing = [n for n in scenarios if 30e6 / n < 157e3]
    assert plan.bracket == (max(passing, default=None), min(failing, default=None))
    assert plan.to_json()["bracket"] == {"low": plan.bracket[0], "high": plan.bracket[1]}
    text = verdict_text(plan.findings)
    known = {0: "is unknown", 1: "is at least 1 ", 2: "is at least 134", 3: "at least 191"}
    assert known.get(after, "lies between") in text
    assert text.endswith("; interrupted.")


def test_search_ends_at_max_wall() -> None:
    plan = solve("users", load("office-50mbit", changes={"run.max_wall": "1ms"}), rate_bps=5e6)
    assert (plan.value, plan.incomplete, plan.exit_code) == (None, True, 1)
    assert "run.max_wall was reached before the search finished" in map(str, plan.warnings)


def test_rare_losses_make_runs_longer(simulated: Install) -> None:
    def measure(scenario: Scenario) -> dict[str, Any]:
        loss = scenario.network.bottleneck.loss
        p = 1e-9 if loss is None else loss.mean_ratio()
        return {"goodput_bps": min(5e6 * (p / 1.2e-3) ** -0.7, 1e9)}

    scenarios = simulated(measure)
    unlimited = bulk(**{"network.bottleneck": {"loss": "1%"}, "tcp.stack": "rfc-newreno"})
    plan = solve("max-loss", unlimited, goodput_bps=5e6)
    assert plan.value == pytest.approx(1.2e-3, rel=0.01)
    assert plan.recommendation.startswith("This is one packet in 8")
    for scenario in scenarios:
        loss = scenario.network.bottleneck.loss
        assert loss is not None
        warm_up, duration = scenario.run.warmup_s or 0, scenario.run.duration_s or 0
        rate = math.sqrt(1.5 / loss.mean_ratio()) / 0.08
        if rate * duration < 0.9e7:
            assert warm_up * rate * loss.mean_ratio() >= 4.9
            assert (duration - warm_up) * rate * loss.mean_ratio() >= 90


def test_too_large_simulations_are_refused() -> None:
    with pytest.raises(NotApplicable, match="million packets; use a lower rate, or a formula"):
        solve("streams", bulk(**{"network.bottleneck": {"rate": "1000gbit"}}))


# ---------------------------------------------------------------- with the packet engine


def test_connections_with_a_cap_fill_the_link() -> None:
    """Regression: "a total window of 25 packets fills the link, so one flow suffices"."""
    plan = solve("streams", load(CAPPED))
    assert (plan.value, plan.low, plan.high) == (5, 5, 5)
    assert plan.bracket == (4, 5)
    assert plan.tables["values"]["utilisation"][:4] == pytest.approx([0.2, 0.4, 0.6, 0.8], abs=0.01)
    assert solve("streams", load(CAPPED), utilisation=0.5).value == 3


def test_two_classes_of_flows_fill_the_link() -> None:
    near = {"name": "near", "flows": 2, "rtt": "20ms"}
    two = bulk(**{"traffic": {"kind": "bulk"}, "class": [{"name": "far", "flows": 1}, near]})
    two = two.with_changes({"network.bottleneck.rate": "20mbit"})
    both, far = (solve("streams", two, class_name=name).value for name in (None, "far"))
    assert both is not None
    assert far is not None
    assert both in {far + 1, far + 2, far + 3}
    more = [two.with_changes({"class.far.flows": n}) for n in (int(far) - 1, int(far) + 1)]
    low, high = (tcpcast.run(each, "packet")[0]["utilisation"] for each in more)
    assert low < 0.95 < high


def test_answer_meets_its_target_in_another_simulation() -> None:
    """An independent run with the answer inserted, longer than the runs of the search."""
    slow = bulk(**{"network.bottleneck.rate": "20mbit"})
    cases: list[tuple[str, Scenario, dict[str, Any], float]] = [
        ("users", web(run__transfers=20_000), {"rate_bps": 3e5}, 0.1),
        ("buffer", web(traffic__sources=80, run__transfers=20_000), {"loss": 0.01}, 0.2),
        ("max-loss", slow, {"goodput_bps": 5e6}, 0.1),
    ]
    for question, scenario, target, rel in cases:
        plan = solve(question, scenario, **target)
        assert plan.scenario is not None
        (found,) = answer(plan.scenario.with_changes({"run.seed": 5}), ["packet"])
        assert found[plan.metric] == pytest.approx(plan.target, rel=rel), question


# ---------------------------------------------------------------- questions and errors


@pytest.mark.parametrize(
    ("question", "scenario", "arguments", "error", "words"),
    [
        ("buffers", "web-10mbit", {}, DomainError, "use buffer, users, rate"),
        ("users", "web-10mbit", {}, DomainError, "missing target"),
        ("users", "web-10mbit", {"share": 0.9}, DomainError, "share and above_bps"),
        ("users", "web-10mbit", {"loss": 0.9}, DomainError, "is not a target of plan users"),
        ("users", "web-10mbit", {"rate_bps": 0}, DomainError, "above 0"),
        ("users", "web-10mbit", {"rate_bps": math.nan}, DomainError, "above 0"),
        ("buffer", "web-10mbit", {"loss": 1.5}, DomainError, "below 100 %"),
        ("users", "lossy-path", {"rate_bps": 1e5}, NotApplicable, 'kind "on-off"'),
        ("streams", "web-10mbit", {}, NotApplicable, 'kind "bulk"'),
        ("streams", "one-path", {}, NotApplicable, "a link with a rate"),
        ("users", "two-classes", {"rate_bps": 1e5, "class_name": "x"}, DomainError, '"near"'),
        ("rate", "two-classes", {"rate_bps": 1e5, "class_name": "x"}, DomainError, '"near"'),
        (
            "users",
            "web-10mbit",
            {"rate_bps": 1e5, "class_name": "x"},
            DomainError,
            "requires .*class",
        ),
        ("users", "web-10mbit", {"rate_bps": 1e5, "engine": "x"}, UnknownEngine, "no engine"),
        ("users", "web-10mbit", {"rate_bps": 1e5, "engine": "pftk"}, NotApplicable, "bulk"),
    ],
)
def test_invalid_questions_are_rejected(
    question: str, scenario: str, arguments: dict[str, Any], error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        solve(question, load(scenario), **arguments)


def test_former_functions_name_the_solver() -> None:
    with pytest.raises(ImportError, match=r"use tcpcast\.plan\.solve\('max-loss'"):
        from tcpcast.plan import plan_max_loss  # noqa: F401, PLC0415


def test_warnings_of_runs_are_counted_by_kind() -> None:
    def short(seconds: int) -> Answer:
        note = Note(f"{seconds} s are needed", ("loss_ratio",), kind="check")
        other = Note("too short", ("jain_index",), kind="check")
        return Answer("packet", notes=[note, other])

    result = merge_run_warnings([short(70), short(80), Answer("packet")], ("loss_ratio",))
    assert list(map(str, result)) == ["in 2 of 3 runs: 70 s are needed"]
    assert result[0].kind == "check"
