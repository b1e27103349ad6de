"""Many HTTP sources on one fair queue, as in section 7 of INRIA report 4154.

The values come from an independent simulator of every flow with the same rules: 16 replications
each, without intervals. Its files have 50 packets on average, so the sizes are rounded to the
nearest packet here.
"""

from functools import cache
from typing import Any

import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.engines.packet.equilibrium import initial_class_states
from tcpcast.scenario import Scenario
from tcpcast_papers.fixed_point.settings import Length, LocalLoop


def local_loop(sources: int, **changes: Any) -> Scenario:
    """The local loop: 30 ms and two hops to the shared router, 10 ms onwards, 60 ms back."""
    tables = LocalLoop(sources).scenario(Length(120.0, 100.0, 1), {}).resolved()
    # The other stacks do not support it.
    del tables["tcp"]["rules"]
    for name, change in changes.items():
        tables[name] = {**tables[name], **change}
    return Scenario.from_dict(tables)


def simulate(scenario: Scenario) -> Answer:
    (answer,) = tcpcast.run(scenario, ["packet"])
    return answer


@cache
def simulate_local_loop(sources: int) -> Answer:
    """The local loop with the usual rules."""
    return simulate(local_loop(sources))


def within(value: float, share: float) -> Any:
    return pytest.approx(value, rel=share)


def test_overload_is_shared_and_the_buffer_is_full() -> None:
    answer = simulate_local_loop(7500)
    assert answer["loss_ratio"] == within(0.0463, 0.05)
    assert answer["rtt_mean_s"] == within(1.29, 0.01)
    assert answer["connection_rate_bps"] == within(39.9e3, 0.02)
    timeouts = answer["timeouts"] / (answer["send_rate_pps"] * 120)
    assert 0.001 < timeouts < 0.0025  # 0.00154
    # Little's law: round trips consist of the wait in the queue and the base RTT.
    waited_s = answer["queue_mean_pkts"] / answer["goodput_pps"]
    assert answer["rtt_mean_s"] == within(waited_s + 0.1026, 0.01)
    assert answer["utilisation"] == within(1.0, 1e-3)


def count_completed(start: str) -> float:
    """Files completed in the first four seconds by sources that do not compete."""
    scenario = local_loop(
        20_000,
        network={"bottleneck": {"rate": "1gbit"}},
        traffic={
            "sources": 20_000,
            "kind": "on-off",
            "off": {"distribution": "lognormal", "mean": "30s", "sd": "30s"},
            "size": {"distribution": "constant", "value": "2pkt"},
            "start": start,
        },
        run={"duration": "4s", "warmup": "0s"},
    )
    return simulate(scenario)["transfers"]


def test_equilibrium_start_gives_a_constant_completion_rate() -> None:
    on_s = 2 * 0.1015
    expected = 20_000 * 4 / (30 + on_s)
    assert count_completed("equilibrium") == within(expected, 0.06)
    assert count_completed("silent") < 0.2 * expected


def test_active_sources_agree() -> None:
    def count_active(sources: int) -> float:
        ((share, within_s),) = [
            start for start in initial_class_states(local_loop(sources)) if start
        ]
        assert within_s == pytest.approx(0.1025, abs=1e-3)
        return share

    # 5000 sources are OFF for 30 s per file of 50 packets: a load of 8333 packets per second.
    assert count_active(10_000) == within(0.5, 0.01)
    assert count_active(7500) == within(1 / 3, 0.01)
    assert count_active(2500) == count_active(100)
    assert 0.01 < count_active(2500) < 0.03
    silent = local_loop(100, traffic={**local_loop(100).resolved()["traffic"], "start": "silent"})
    assert initial_class_states(silent) == [None]


def test_sizes_can_be_truncated_to_whole_packets() -> None:
    down = local_loop(300, traffic={"size_rounding": "down"})
    assert simulate(local_loop(300))["mean_size_pkts"] == within(50.0, 0.03)
    (truncated,) = [simulate(down)["mean_size_pkts"]]
    assert truncated == within(simulate(local_loop(300))["mean_size_pkts"] - 0.5, 0.003)


def test_endless_immediate_retransmission_is_reported() -> None:
    crowded = local_loop(100, run={"duration": "20s", "warmup": "5s"})
    link = {"network.bottleneck.rate": "100kbit", "network.bottleneck.buffer": "20pkt"}
    answer = simulate(crowded.with_changes(link))
    assert any("retransmits immediately" in warning for warning in answer.warnings)
    queued = simulate(local_loop(100, tcp={"stack": "rfc-newreno"}).with_changes(link))
    assert not any("retransmits immediately" in warning for warning in queued.warnings)
