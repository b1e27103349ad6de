"""Fair shares and convergence times: from constructed series, and in runs with known answers."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import _native
from tcpcast.engines.packet.sharing import estimate_convergence_time
from tcpcast.scenario import Scenario

START_S, LENGTH_S, SLOT_S = 20.0, 60.0, 0.5


def scenario(queue: str, *classes: dict[str, Any], **run: Any) -> Scenario:
    bottleneck = {"rate": "20mbit", "buffer": "1bdp", "queue": queue}
    return Scenario.from_dict(
        {
            "network": {"rtt": "40ms", "bottleneck": bottleneck},
            "traffic": {"kind": "bulk"},
            "class": list(classes),
            "run": {"duration": f"{LENGTH_S:g}s", "warmup": "0s", "seed": 1} | run,
        }
    )


FIRST = {"name": "first", "flows": 1}
LATE = {"name": "late", "flows": 1, "start": f"{START_S:g}s"}
TWO = scenario("droptail", FIRST, LATE)


def series(converged_after_s: float, share: float) -> Any:
    """Sums of a run of two flows: the late one gets a tenth, and from a time on a share."""
    ends_s = np.arange(0.0, LENGTH_S + SLOT_S, SLOT_S)
    begins_s = ends_s[:-1]
    late = np.where(begins_s >= START_S, 0.1, 0.0)
    late[begins_s >= START_S + converged_after_s] = share
    names = _native.TIME_SERIES_CELLS
    rows = np.zeros((len(ends_s), 2 + 2 * len(names)))
    rows[:, 0] = ends_s * 1e9
    for index, part in enumerate((1.0 - late, late)):
        delivered = np.concatenate([[0.0], np.cumsum(1000.0 * part)])
        rows[:, 2 + index * len(names) + names.index("delivered")] = delivered
    return rows


@pytest.mark.parametrize("after_s", [0.0, 7.0, 30.0])
def test_the_time_ends_where_the_late_flow_gets_four_tenths(after_s: float) -> None:
    estimate = estimate_convergence_time(TWO, [series(after_s, 0.4 + 1e-9)])
    assert estimate is not None
    assert estimate.value == pytest.approx(after_s)


def test_a_larger_share_makes_up_for_slots_before_it() -> None:
    """The average over 4 s reaches 40 % if at least 6 of its 8 slots have 50 %."""
    estimate = estimate_convergence_time(TWO, [series(10.0, 0.5)])
    assert estimate is not None
    assert estimate.value == pytest.approx(9.0)


def test_a_run_without_convergence_gives_a_lower_bound() -> None:
    estimate = estimate_convergence_time(TWO, [series(8.0, 0.5), series(8.0, 0.39)])
    assert estimate is not None
    assert np.isnan(estimate.value)
    assert estimate.at_least == pytest.approx((7.0 + LENGTH_S - START_S) / 2)
    assert "1 of 2 runs did not converge" in (estimate.interval_warning or "")


def test_only_a_class_that_starts_last_converges() -> None:
    assert estimate_convergence_time(scenario("droptail", FIRST), [series(0.0, 0.5)]) is None
    early = scenario("droptail", FIRST, {**LATE, "start": "0s"})
    assert estimate_convergence_time(early, [series(0.0, 0.5)]) is None
    again = {**LATE, "name": "again"}
    (answer,) = tcpcast.run(scenario("droptail", FIRST, LATE, again, duration="30s"), ["packet"])
    assert "convergence_time_s" not in answer.metrics


def test_flows_in_queues_of_their_own_converge_sooner_than_in_one_queue() -> None:
    (apart,), (together,) = (
        tcpcast.run(scenario(queue, FIRST, LATE, replications=4), ["packet"])
        for queue in ("fq_codel", "droptail")
    )
    assert apart["convergence_time_s"] < 0.5
    assert together["convergence_time_s"] > 2.0
    assert together.metrics["convergence_time_s"].low is not None
    assert "flows_over_time" not in together.tables, "only plots ask for tables over time"


def test_fair_shares_are_the_goodputs_over_their_mean() -> None:
    many = {"name": "many", "flows": 3, "tcp": {"stack": "linux-bbr"}}
    (answer,) = tcpcast.run(scenario("droptail", FIRST, many, warmup="10s"), ["packet"])
    table = answer.tables["by_class"]
    each = table["goodput_bps"] / [1, 3]
    assert table["fair_share"] == pytest.approx(4 * each / table["goodput_bps"].sum())
    assert answer["fair_share"] == pytest.approx(table["fair_share"].min())
    assert 0 < answer["fair_share"] < 1


def test_the_share_of_a_late_class_covers_its_active_time() -> None:
    late = {**LATE, "start": "40s"}
    (answer,) = tcpcast.run(scenario("fq_codel", FIRST, late), ["packet"])
    first, second = answer.tables["by_class"]["fair_share"]
    # The first flow has the whole link for 40 of 60 s, the second half of it for 20 s.
    assert first / second == pytest.approx((40 + 10) / 60 / (10 / 20), rel=0.02)


def test_other_traffic_has_no_share() -> None:
    ping = {"name": "ping", "flows": 1, "traffic": {"kind": "ping", "interval": "20ms"}}
    (answer,) = tcpcast.run(scenario("droptail", FIRST, ping, duration="10s"), ["packet"])
    assert "fair_share" not in answer.metrics
