"""Scenario of each test case: the path, the application, and what changes in which phase.

Many cases change something in a phase of BBR. Their scenario first runs without the change; the
phase of that run gives the time of the change in a second run with the same seed, whose events are
the same until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.bbr3.states import States

PACKET_BYTES, PAYLOAD_BYTES = 1500, 1448
ACK_BYTES = 52
NEVER_S = 1e6
QUIET_S = 1.5
"""Time without PROBE_RTT after the start of the phases in which something changes."""

Tables = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Path:
    """A path: its rate in bit/s and its base round-trip time in seconds."""

    rate_bps: float
    rtt_s: float

    @property
    def name(self) -> str:
        """The path as a cell of a label."""
        return f"{1e-6 * self.rate_bps:g} Mbit/s and {1e3 * self.rtt_s:g} ms"

    @property
    def bdp_packets(self) -> float:
        """Bandwidth-delay product in packets."""
        return self.rate_bps * self.rtt_s / (8 * PACKET_BYTES)

    @property
    def payload_bps(self) -> float:
        """Rate of the payload."""
        return self.rate_bps * PAYLOAD_BYTES / PACKET_BYTES


@dataclass(frozen=True)
class Case:
    """A test case.

    Parameters
    ----------
    number
        Number in the order of the draft.
    duration_s
        Length of the run.
    buffer_bdp
        Buffer of the bottleneck in bandwidth-delay products.
    app_share
        Rate of the application, as a share of that of the path, from the time of the change on;
        None if it always has data.
    limited_from_start
        Whether the application is limited from the start.
    change
        Returns the tables with the change, for the states of the run without it.
    paths
        Paths of the case, if its statements need other ones.
    base
        Changes the tables of all runs.
    note
        What the draft leaves open, or how the scenario differs from it.
    """

    number: int
    duration_s: float
    buffer_bdp: float = 4.0
    app_share: float | None = None
    limited_from_start: bool = False
    change: Callable[[Tables, Path, States], float] | None = None
    paths: tuple[Path, ...] = ()
    base: Callable[[Tables, Path], None] | None = None
    note: str = ""
    chunk_s: float = field(default=0.0)
    """Time between two chunks of the application; 0 for an eighth of the round-trip time."""

    def tables(self, path: Path) -> Tables:
        """Return the scenario without the change."""
        half = f"{500 * path.rtt_s:.6g}ms"
        buffer = max(4, round(self.buffer_bdp * path.bdp_packets))
        tables: Tables = {
            "network": {"packet": f"{PACKET_BYTES}B", "ack": f"{ACK_BYTES}B"},
            "link": {
                "bottleneck": {"rate": f"{path.rate_bps:.0f}bit", "buffer": f"{buffer}pkt"},
                "forward": {"delay": half},
                "return": {"delay": half},
            },
            "class": [
                {
                    "name": "flow",
                    "flows": 1,
                    "route": ["bottleneck", "forward"],
                    "back": ["return"],
                    "delay": "0s",
                    # The draft's controlled path: no noise of hosts.
                    "tcp": {"stack": "bbr3", "host_noise": "0s"},
                }
            ],
            "traffic": {"kind": "bulk"},
            "run": {"duration": f"{self.duration_s:g}s", "warmup": "0s", "replications": 1},
            "probes": {"flows": [0], "link": "bottleneck"},
        }
        if self.app_share is not None:
            gap_s = self.chunk_s or path.rtt_s / 8
            size = max(1, round(self.app_share * path.payload_bps * gap_s / 8))
            after_s = 0.0 if self.limited_from_start else NEVER_S
            writes = {"size": f"{size}B", "gap": f"{gap_s:.9f}s", "after": f"{after_s:g}s"}
            tables["traffic"] = {"kind": "bulk", "writes": writes}
            # What is not sent when the application becomes slow is sent at the rate of before.
            unsent = max(16e3, path.bdp_packets * PACKET_BYTES / 4)
            tables["class"][0]["tcp"] |= {"notsent_lowat": f"{unsent:.0f}B", "nodelay": True}
        if self.base is not None:
            self.base(tables, path)
        return tables

    def packets(self, path: Path) -> float:
        """Return the approximate number of packets of all runs."""
        runs = 1 if self.change is None else 2
        return runs * self.duration_s * path.rate_bps / (8 * PACKET_BYTES)


def _at(tables: Tables, link: str, *changes: tuple[float, Tables]) -> None:
    """Add changes of a link at times."""
    at = tables["link"][link].setdefault("at", {})
    for time_s, change in changes:
        at[f"{time_s:.9f}s"] = change


def _limit_app(tables: Tables, time_s: float) -> None:
    tables["traffic"]["writes"]["after"] = f"{time_s:.9f}s"


def _rate(path: Path, share: float) -> Tables:
    return {"rate": f"{share * path.rate_bps:.0f}bit"}


def _lose(tables: Tables, start_s: float, end_s: float, loss: str) -> None:
    _at(tables, "forward", (start_s, {"loss": loss}), (end_s, {"loss": "0%"}))


def _lose_in_startup(tables: Tables, path: Path) -> None:
    _lose(tables, 7 * path.rtt_s, 11 * path.rtt_s, "15%")


def _rate_from(phase: str, share: float) -> Callable[[Tables, Path, States], float]:
    """Return the change of the rate, to a share of the path's, at the start of a phase."""

    def change(tables: Tables, path: Path, states: States) -> float:
        quiet_s = 3.2 if phase == "probe_down" else 0.0
        time_s = states.phase(phase, quiet_s=quiet_s).start_s
        _at(tables, "bottleneck", (time_s, _rate(path, share)))
        return time_s

    return change


def _limit_and_lose_in_up(tables: Tables, path: Path, states: States) -> float:
    time_s = states.phase("probe_up", quiet_s=QUIET_S).start_s
    _limit_app(tables, time_s)
    # Packets of the limited application are acknowledged after a round trip.
    loss_s = time_s + 2 * path.rtt_s
    _lose(tables, loss_s, loss_s + path.rtt_s, "20%")
    return loss_s


def _limit_in(phase: str) -> Callable[[Tables, Path, States], float]:
    def change(tables: Tables, _: Path, states: States) -> float:
        time_s = states.phase(phase, quiet_s=QUIET_S).start_s
        _limit_app(tables, time_s)
        return time_s

    return change


def _pause(tables: Tables, path: Path, states: States) -> float:
    time_s = states.phase("probe_cruise").start_s
    size = round(path.payload_bps * 10 * path.rtt_s / 8)
    tables["traffic"]["writes"] |= {"size": f"{size}B", "gap": "6s", "after": f"{time_s:.9f}s"}
    return time_s


def _aggregate_acks(tables: Tables, path: Path) -> None:
    # Acks keep their order, so one that waits holds all later ones: a burst follows each wait.
    hold_ms = 400 * path.rtt_s
    tables["link"]["return"]["jitter"] = {
        "distribution": "empirical",
        "values": ["0s", f"{hold_ms:.6g}ms"],
        "weights": [1 - 2e-2, 2e-2],
    }


def _police(tables: Tables, path: Path) -> None:
    burst = round(path.bdp_packets * PACKET_BYTES)
    rate = {"bucket": f"{path.rate_bps:.0f}bit", "burst": f"{burst}B", "policer": True}
    tables["link"]["bottleneck"] = {"rate": rate}


def _reorder_in_up(tables: Tables, path: Path, states: States) -> float:
    time_s = states.phase("probe_up", quiet_s=QUIET_S).start_s + path.rtt_s / 2
    held_s = 0.1 * path.rtt_s
    late, usual = (f"{1e3 * each:.6g}ms" for each in (0.8 * path.rtt_s, 0.5 * path.rtt_s))
    _at(tables, "forward", (time_s, {"delay": late}), (time_s + held_s, {"delay": usual}))
    return time_s


def _stall_in_up(tables: Tables, path: Path, states: States) -> float:
    time_s = states.phase("probe_up", quiet_s=QUIET_S).start_s + path.rtt_s / 2
    stall_s = 0.5 + 4 * path.rtt_s
    _at(
        tables,
        "bottleneck",
        (time_s, {"rate": f"{8 * PACKET_BYTES / stall_s:.0f}bit"}),
        (time_s + stall_s, _rate(path, 1)),
    )
    return time_s


def _lose_in_up(tables: Tables, path: Path, states: States) -> float:
    time_s = states.phase("probe_up", quiet_s=QUIET_S).start_s
    _lose(tables, time_s, time_s + path.rtt_s, "10%")
    return time_s


PATHS = (Path(40e6, 0.05), Path(100e6, 0.02), Path(100e6, 0.1))
"""Paths of most cases; the quick reproduction has the first of each case."""

_SHORT = (Path(100e6, 0.02), Path(200e6, 0.01))
_SLOW = (Path(10e6, 0.04), Path(5e6, 0.1))
_FAST = (Path(100e6, 0.04), Path(50e6, 0.1))
_SUB_PACKET = (Path(1e6, 0.002), Path(256e3, 0.01))

CASES: tuple[Case, ...] = (
    Case(1, 3),
    Case(
        2,
        4,
        app_share=0.5,
        limited_from_start=True,
        base=lambda tables, path: _lose(tables, 2.0, 2.0 + 4 * path.rtt_s, "30%"),
        note="The application sends at half the rate of the path. From 2 s on, 30 % of the packets "
        "are lost for four round trips. In one of these round trips, six ranges are lost. In "
        "some runs, so little is then in flight that DRAIN ends with the same acknowledgement.",
    ),
    Case(3, 3),
    Case(
        4,
        4,
        change=_rate_from("drain", 0.4),
        note="If the rate of the path drops by only 10 %, DRAIN, which sends at half the "
        "bandwidth, empties the queue within two rounds, and step 3 of the draft does not "
        "hold. Here, the rate drops by 60 %.",
    ),
    Case(5, 24),
    Case(
        6,
        24,
        app_share=0.5,
        change=_limit_and_lose_in_up,
        note="From the start of PROBE_UP on, the application sends at half the rate of the path. "
        "Two round trips later, 20 % of the packets are lost for one round trip.",
    ),
    Case(
        7,
        24,
        app_share=0.5,
        change=_limit_in("probe_up"),
        note="The application behaves as in case 6, and no packets are lost. After 5 s without a "
        "lower RTT, PROBE_RTT interrupts PROBE_UP, as it interrupts any phase. If the "
        "application behaves like this from the start of the run, BBR stays in STARTUP: see "
        "case 20.",
    ),
    Case(8, 24),
    Case(
        9,
        24,
        paths=_SHORT,
        change=_rate_from("probe_down", 0.8),
        note="If the rate drops by 10 %, PROBE_DOWN at 0.9 of the bandwidth minus the margin of 1 "
        "% still empties the queue slowly. Here, the rate drops by 20 %.",
    ),
    Case(10, 13),
    Case(
        11,
        16,
        app_share=1.0,
        change=_pause,
        note="The application pauses for 6 s, and then writes data for ten round trips.",
    ),
    Case(
        12,
        4,
        base=_aggregate_acks,
        note="2 % of the acks wait for 0.4 round trips, and all later acks wait behind them, so "
        "acks arrive in bursts.",
    ),
    Case(13, 5, base=_aggregate_acks, note="Acks arrive in bursts, as in case 12."),
    Case(
        14,
        40,
        paths=_SUB_PACKET,
        buffer_bdp=100.0,
        note="The round-trip time includes the transmission of a packet. At 64 kbit/s, a round "
        "lasts for seconds, so BBR spends a third of the time in PROBE_RTT.",
    ),
    Case(
        15,
        12,
        paths=_SLOW,
        base=_lose_in_startup,
        change=_rate_from("probe_cruise", 10),
        note="Losses in STARTUP set the long-term bound. In PROBE_CRUISE, the rate of the path "
        "then rises to ten times its value. Steps are whole packets: 2, 4, 8 and 17, for "
        "example. While the sending rate still grows with the bandwidth, it is below the "
        "bound, so the bound does not grow.",
    ),
    Case(
        16,
        20,
        paths=_FAST,
        buffer_bdp=0.5,
        change=_rate_from("probe_cruise", 0.1),
        note="In PROBE_CRUISE, the rate of the path drops to a tenth.",
    ),
    Case(
        17,
        30,
        base=_police,
        note="The bucket holds one bandwidth-delay product (BDP). A bucket of 5 or 20 BDP fills "
        "between probes, and 4 or 5 % of the packets are lost.",
    ),
    Case(
        18,
        24,
        change=_reorder_in_up,
        note="In PROBE_UP, the packets of a tenth of a round trip arrive 0.3 round trips late, "
        "behind later packets.",
    ),
    Case(
        19,
        24,
        change=_stall_in_up,
        note="In PROBE_UP, the bottleneck stalls for longer than the RTO. The stall also delays "
        "all acks; packets keep their order.",
    ),
    Case(
        20,
        9,
        app_share=0.5,
        limited_from_start=True,
        note="The application sends at half the rate of the path.",
    ),
    Case(
        21,
        24,
        base=_lose_in_startup,
        change=_lose_in_up,
        note="Losses in STARTUP set the long-term bound. In the first round trip of PROBE_UP, 10 % "
        "of the packets are lost.",
    ),
    Case(
        22,
        24,
        app_share=0.05,
        change=_limit_in("probe_refill"),
        note="From the start of PROBE_REFILL on, the application sends at a twentieth of the rate; "
        "with a complete pause, no round trip would end.",
    ),
)
