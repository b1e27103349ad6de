"""Today's stacks beside a real kernel over an emulated link: rows of our own measurements.

Linux 6.18, November 2026: user-space link between network namespaces, MTU 1500, timestamps, a
queue of B waiting packets, the one in service not counted. Means and standard errors of the runs.
The link added 0.07 ms each way, and sent acks at 1 Gbit/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import tcpcast
from scipy.stats import t as student
from tcpcast.scenario import Scenario

LINK_S = 0.00014
PACKET_BITS, ACK_BITS = 12_000, 416


@dataclass(frozen=True)
class Measured:
    """A mean over runs and its standard error."""

    mean: float
    error: float
    runs: int = 3

    @property
    def half_width(self) -> float:
        """Half the 95 % confidence interval."""
        return self.error * float(student.ppf(0.975, self.runs - 1))


def path(rate_mbit: float, rtt_ms: float, waiting: int, loss: float = 0.0) -> dict[str, Any]:
    """Describe a path whose propagation takes ``rtt_ms``."""
    taken = (PACKET_BITS + ACK_BITS) / (rate_mbit * 1e6)
    return {
        "rtt": f"{rtt_ms + 1e3 * (LINK_S + taken):.6f}ms",
        "ack": "52B",
        "bottleneck": {
            "rate": f"{rate_mbit}mbit",
            "buffer": f"{waiting + 1}pkt",
            "loss": f"{100 * loss:g}%",
        },
    }


def run(seconds: tuple[float, float], replications: int = 3) -> dict[str, Any]:
    warmup, measured = seconds
    return {
        "warmup": f"{warmup}s",
        "duration": f"{warmup + measured}s",
        "replications": replications,
    }


def half_width(answer: tcpcast.Answer, metric: str) -> float:
    found = answer.metrics[metric]
    if found.low is None or found.high is None:
        return 0.0
    return (found.high - found.low) / 2


def answered(tables: dict[str, Any]) -> tcpcast.Answer:
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    return answer


DROPTAIL = {
    # Rate in Mbit/s, round-trip time in ms, B; goodput in bit/s, loss ratio, queueing delay in ms.
    ("linux-cubic", 20, 60, 50): (
        Measured(19_306_411, 14),
        Measured(0.000161, 0.0),
        Measured(20.793, 0.031),
    ),
    ("linux-cubic", 20, 60, 100): (
        Measured(19_305_584, 391),
        Measured(0.000205, 0.000003),
        Measured(43.204, 0.007),
    ),
    ("linux-cubic", 20, 60, 400): (
        Measured(19_305_518, 370),
        Measured(0.000512, 0.0),
        Measured(198.415, 0.045),
    ),
    ("linux-cubic", 100, 40, 333): (
        Measured(96_530_134, 2887, 4),
        Measured(0.0000355, 0.000002, 4),
        Measured(28.384, 0.005, 4),
    ),
    ("linux-reno", 20, 60, 25): (
        Measured(17_037_873, 21_054),
        Measured(0.000292, 0.000005),
        Measured(4.036, 0.007),
    ),
    ("linux-reno", 20, 60, 200): (
        Measured(19_305_613, 388),
        Measured(0.0000587, 0.000003),
        Measured(80.704, 0.220),
    ),
    ("linux-bbr", 20, 60, 12): (
        Measured(18_452_004, 11_190),
        Measured(0.023167, 0.000134),
        Measured(1.441, 0.038),
    ),
    ("linux-bbr", 20, 60, 100): (
        Measured(18_762_952, 1102),
        Measured(0.000784, 0.000261),
        Measured(12.074, 1.388),
    ),
}


@pytest.mark.parametrize("cell", DROPTAIL, ids=lambda cell: "-".join(map(str, cell)))
def test_one_flow_over_a_drop_tail_queue(cell: tuple[str, int, int, int]) -> None:
    stack, rate, rtt, waiting = cell
    goodput, loss, delay_ms = DROPTAIL[cell]
    answer = answered(
        {
            "network": path(rate, rtt, waiting),
            "traffic": {
                "kind": "bulk",
                "flows": 1,
                "start": {"law": "uniform", "low": "0s", "high": "2s"},
            },
            "tcp": {"stack": stack},
            "run": run((10, 60) if rate == 100 else (15, 75)),
        }
    )
    apart = 0.03 * goodput.mean + goodput.half_width + half_width(answer, "goodput_bps")
    assert answer["goodput_bps"] == pytest.approx(goodput.mean, abs=apart)
    apart = 0.1 * loss.mean + 1e-4 + loss.half_width + half_width(answer, "loss_ratio")
    assert answer["loss_ratio"] == pytest.approx(loss.mean, abs=apart)
    # The packet in service waits no more.
    rate_pps = answer["goodput_pps"]
    waits_ms = 1e3 * answer["queue_mean_pkts"] / rate_pps - PACKET_BITS / (rate * 1e3)
    own = 1e3 * half_width(answer, "queue_mean_pkts") / rate_pps
    apart = 0.1 * delay_ms.mean + 0.2 + delay_ms.half_width + own
    assert waits_ms == pytest.approx(delay_ms.mean, abs=apart)


SHARES = {
    # Stacks and round-trip times in ms of two flows at 20 Mbit/s, B; share of the first one.
    ("linux-cubic", 60, "linux-bbr", 60, 100): Measured(0.107, 0.0034),
    ("linux-cubic", 60, "linux-reno", 60, 200): Measured(0.674, 0.0076),
    ("linux-cubic", 20, "linux-cubic", 80, 25): Measured(0.802, 0.0063),
    ("linux-cubic", 20, "linux-cubic", 80, 50): Measured(0.767, 0.0226),
    ("linux-reno", 20, "linux-reno", 80, 25): Measured(0.875, 0.0045),
    ("linux-reno", 60, "linux-bbr", 60, 50): Measured(0.097, 0.0024),
    ("linux-bbr", 20, "linux-bbr", 80, 100): Measured(0.215, 0.0064),
}


@pytest.mark.parametrize("cell", SHARES, ids=lambda cell: "-".join(map(str, cell)))
def test_two_flows_share_a_drop_tail_queue(cell: tuple[str, int, str, int, int]) -> None:
    one, one_rtt, other, other_rtt, waiting = cell
    share = SHARES[cell]
    network = path(20, min(one_rtt, other_rtt), waiting)
    answer = answered(
        {
            "network": network,
            "traffic": {"kind": "bulk", "start": {"law": "uniform", "low": "0s", "high": "2s"}},
            "class": [
                {"name": "one", "flows": 1, "tcp": {"stack": one}}
                | {"rtt": path(20, one_rtt, waiting)["rtt"]},
                {"name": "other", "flows": 1, "tcp": {"stack": other}}
                | {"rtt": path(20, other_rtt, waiting)["rtt"]},
            ],
            "run": run((20, 80), replications=6),
        }
    )
    rates = answer.tables["by_class"]["goodput_pps"]
    ours = rates[0] / sum(rates)
    assert ours == pytest.approx(share.mean, abs=0.05 + share.half_width)


AQM = {
    # Queue, ECN, stacks of the flows at 20 Mbit/s and 60 ms, limit 1000: goodput in bit/s, packets
    # dropped or marked, packets sent, queueing delay in ms, share of the first where they differ.
    ("codel", False, ("linux-cubic",)): (
        *(Measured(18_092_800, 55_026), Measured(22.0, 0.577), 117_161, Measured(2.1700, 0.1211)),
        None,
    ),
    ("codel", False, ("linux-cubic", "linux-bbr")): (
        *(Measured(18_867_400, 22_781), Measured(1718.3, 28.9), 123_916, Measured(11.056, 0.142)),
        Measured(0.0826, 0.0046),
    ),
    ("codel", True, ("linux-cubic",) * 4): (
        *(Measured(19_215_671, 11_651), Measured(232.0, 1.0), 124_415, Measured(4.9832, 0.0070)),
        None,
    ),
    ("codel", True, ("linux-reno",)): (
        *(Measured(15_737_293, 10_880), Measured(20.0, 0.0), 101_912, Measured(1.4696, 0.0142)),
        None,
    ),
    ("fq_codel", False, ("linux-cubic",)): (
        *(Measured(18_077_463, 25_878), Measured(22.0, 0.0), 117_073, Measured(2.1682, 0.0486)),
        None,
    ),
    ("fq_codel", False, ("linux-cubic",) * 4): (
        *(Measured(19_019_775, 14_727), Measured(227.33, 0.667), 123_391, Measured(3.205, 0.0306)),
        None,
    ),
    ("fq_codel", True, ("linux-cubic",) * 4): (
        *(Measured(18_991_271, 9870), Measured(227.33, 0.882), 122_970, Measured(3.3682, 0.0426)),
        None,
    ),
    ("fq_codel", True, ("linux-cubic", "linux-bbr")): (
        *(Measured(19_037_843, 1500), Measured(39_073, 1860), 123_235, Measured(36.915, 1.111)),
        Measured(0.4751, 0.0006),
    ),
}


@pytest.mark.parametrize("cell", AQM, ids=lambda cell: f"{cell[0]}-{cell[1]}-{'-'.join(cell[2])}")
def test_flows_over_active_queue_management(cell: tuple[str, bool, tuple[str, ...]]) -> None:
    queue, ecn, stacks = cell
    goodput, signals, sent, delay_ms, share = AQM[cell]
    network = path(20, 60, 1000)
    network["bottleneck"]["queue"] = queue
    answer = answered(
        {
            "network": network,
            "traffic": {"kind": "bulk", "start": {"law": "uniform", "low": "0s", "high": "2s"}},
            "class": [
                {"name": f"f{at}", "flows": 1, "tcp": {"stack": stack, "ecn": ecn}}
                for at, stack in enumerate(stacks)
            ],
            "run": run((15, 75), replications=6),
        }
    )
    apart = 0.03 * goodput.mean + goodput.half_width + half_width(answer, "goodput_bps")
    assert answer["goodput_bps"] == pytest.approx(goodput.mean, abs=apart)
    metric = "ecn_mark_ratio" if ecn else "loss_ratio"
    # One episode a run where there are few.
    apart = max(0.1 * signals.mean, 1.0) + signals.half_width
    apart = apart / sent + 1e-4 + half_width(answer, metric)
    assert answer[metric] == pytest.approx(signals.mean / sent, abs=apart)
    if ecn:
        assert answer["loss_ratio"] == 0
    apart = 0.1 * delay_ms.mean + 0.2 + delay_ms.half_width
    apart += 1e3 * half_width(answer, "queue_delay_mean_s")
    assert 1e3 * answer["queue_delay_mean_s"] == pytest.approx(delay_ms.mean, abs=apart)
    rates = answer.tables["by_class"]["goodput_pps"]
    if share is not None:
        apart = 0.05 + share.half_width
        assert rates[0] / sum(rates) == pytest.approx(share.mean, abs=apart)


LOSSES = {
    # Rate in Mbit/s, round-trip time in ms, B, loss; goodput in bit/s, fast recoveries.
    ("linux-bbr", 50, 120, 1000, 0.01): (Measured(45_750_756, 60_948), 289.3),
    ("linux-bbr", 50, 30, 250, 0.05): (Measured(43_234_196, 50_680), 1039.0),
    ("linux-cubic", 1000, 20, 10_000, 0.02): (Measured(3_877_728, 126_208), 404.7),
    ("linux-cubic", 1000, 150, 10_000, 0.05): (Measured(349_483, 7425), 78.0),
    ("linux-reno", 1000, 20, 10_000, 0.005): (Measured(9_474_663, 125_883), 278.0),
    ("linux-reno", 1000, 20, 10_000, 0.02): (Measured(4_534_010, 68_217), 472.3),
    ("linux-reno", 1000, 150, 10_000, 0.05): (Measured(381_372, 20_922), 80.0),
}


@pytest.mark.parametrize("cell", LOSSES, ids=lambda cell: "-".join(map(str, cell)))
def test_one_flow_under_random_loss(cell: tuple[str, int, int, int, float]) -> None:
    stack, rate, rtt, waiting, loss = cell
    goodput, recoveries = LOSSES[cell]
    answer = answered(
        {
            "network": path(rate, rtt, waiting, loss),
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": stack},
            "run": run((15, 70), replications=12),
        }
    )
    apart = 0.05 * goodput.mean + goodput.half_width + half_width(answer, "goodput_bps")
    assert answer["goodput_bps"] == pytest.approx(goodput.mean, abs=apart)
    # Counts of three runs vary as Poisson's.
    apart = 0.1 * recoveries + 2 * (recoveries / 3) ** 0.5 + half_width(answer, "td_indications")
    assert answer["td_indications"] == pytest.approx(recoveries, abs=apart)


TRANSFERS = {
    # Packets, loss; seconds from the first packet sent to the last one received.
    (20, 0.0): Measured(0.096985, 0.000011, 600),
    (70, 0.0): Measured(0.175751, 0.000007, 600),
    (140, 0.0): Measured(0.254552, 0.000013, 600),
    (5, 0.01): Measured(0.038541, 0.000768, 600),
    (20, 0.01): Measured(0.111408, 0.001814, 600),
    (70, 0.01): Measured(0.232822, 0.003878, 600),
    (70, 0.03): Measured(0.339561, 0.007306, 600),
    (140, 0.03): Measured(0.664435, 0.017099, 600),
}


@pytest.mark.parametrize("cell", TRANSFERS, ids=lambda cell: "-".join(map(str, cell)))
def test_short_transfers(cell: tuple[int, float]) -> None:
    size, loss = cell
    measured = TRANSFERS[cell]
    answer = answered(
        {
            "network": path(20, 60, 100, loss),
            "traffic": {"kind": "transfers", "size": [f"{size}pkt"], "count": 3000},
            "tcp": {"stack": "linux-cubic"},
            "run": {"seed": 1},
        }
    )
    tolerance = 0.005 if loss == 0 else 0.02
    apart = tolerance * measured.mean + 0.001 + measured.half_width
    apart += half_width(answer, "delivery_time_s")
    assert answer["delivery_time_s"] == pytest.approx(measured.mean, abs=apart)
