"""Formulas of Prague and of coupled shares against packet simulation."""

from typing import Any

import pytest
import tcpcast
from tcpcast.models import l4s
from tcpcast.scenario import Scenario

_PACKET_BITS = 12_000


def _flows(
    pairs: list[tuple[str, float]],
    first: dict[str, Any] | None = None,
    others: dict[str, Any] | None = None,
    flows: int = 1,
    **line: Any,
) -> list[dict[str, float]]:
    """Return the values on the link of one flow of each stack, with these base RTTs in ms.

    ``first`` and ``others`` have further keys of their TCP, ``line`` those of the link.
    """
    tables: dict[str, Any] = {
        "link": {"line": {"rate": "40mbit", "buffer": "1000pkt", "queue": "dualpi2"} | line},
        "class": [
            {
                "name": stack,
                "flows": flows,
                "route": ["line"],
                "delay": f"{rtt / 2:g}ms",
                "tcp": {"stack": stack} | ((others if index else first) or {}),
            }
            for index, (stack, rtt) in enumerate(pairs)
        ],
        "traffic": {"kind": "bulk"},
        "run": {"duration": "100s", "warmup": "20s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    table = answer.tables["by_link_class"]
    return [{key: column[row] for key, column in table.items()} for row in range(len(pairs))]


@pytest.mark.parametrize("prague_ms", [5, 100])
@pytest.mark.parametrize("classic_ms", [5, 20])
@pytest.mark.parametrize("stack", ["linux-reno", "linux-cubic"])
def test_share_and_rate_beside_a_classic_flow(
    stack: str, prague_ms: float, classic_ms: float
) -> None:
    prague, classic = _flows([("prague", prague_ms), (stack, classic_ms)])
    # The rate follows from the marks alone.
    rtt_s = prague_ms / 1e3 + prague["queue_delay_mean_s"]
    rate = l4s.prague_rate_pps(rtt_s=rtt_s, mark_ratio=prague["ecn_mark_ratio"])
    rate_error, share_error = (0.2, 0.1) if prague_ms < 25 else (0.35, 0.15)
    assert prague["rate_bps"] / _PACKET_BITS == pytest.approx(float(rate), rel=rate_error)
    # The share follows from the coupling and the delay of the classic queue.
    share = l4s.coupled_share(
        scalable_rtt_s=rtt_s, classic_rtt_s=classic_ms / 1e3 + classic["queue_delay_mean_s"]
    )
    simulated = prague["rate_bps"] / (prague["rate_bps"] + classic["rate_bps"])
    assert simulated == pytest.approx(float(share), abs=share_error)


@pytest.mark.parametrize("rtt_ms", [10, 25, 100])
def test_marks_at_a_step_are_within_the_bounds(rtt_ms: float) -> None:
    (prague,) = _flows([("prague-2020", rtt_ms)])
    window = prague["rate_bps"] / _PACKET_BITS * (rtt_ms / 1e3 + prague["queue_delay_mean_s"])
    low, high = l4s.prague_step_mark_ratio_bounds(window_pkts=window)
    assert low < prague["ecn_mark_ratio"] < high


def test_fallback_shares_a_queue_with_classic_ecn() -> None:
    """Measured at 100 Mbit/s: Prague gets 88 of 100 without the fallback, and 45 with it."""
    pairs, classic = [("prague", 10.0), ("linux-cubic", 10.0)], {"ecn": True}
    shares = []
    for fallback in (False, True):
        queue = {"kind": "codel", "rules": "linux"}
        prague, cubic = _flows(pairs, {"ecn_fallback": fallback}, classic, queue=queue)
        shares.append(prague["rate_bps"] / (prague["rate_bps"] + cubic["rate_bps"]))
    assert shares[0] > 0.8
    assert 0.35 < shares[1] < 0.6


def test_fractional_windows_keep_a_shorter_queue() -> None:
    """40 flows at 40 Mbit/s and 2 ms have a sixth of a packet each per round trip."""
    delays = []
    for stack in ("prague", "prague-2024"):
        flows = _flows([(stack, 2.0)], flows=40)
        delays.append(flows[0]["queue_delay_mean_s"])
    assert delays[1] < delays[0] / 2
