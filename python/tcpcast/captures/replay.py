"""A scenario with the values that a capture shows, so that other engines can answer it.

A comment says where each value comes from. A value that a capture cannot show is chosen so that it
changes the answer least; its comment says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.captures.beside import LEAST_VARIATION_S, pftk_pps, usable
from tcpcast.captures.flows import named
from tcpcast.captures.models import lost_ratio
from tcpcast.captures.pace import growth_pkts, link_bps
from tcpcast.captures.replay_text import Entry, document, nested
from tcpcast.captures.selection import tables
from tcpcast.errors import CaptureError, ScenarioError
from tcpcast.models.pftk import unlimited_window_pkts
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.captures import Capture, Table

    Column = np.ndarray[Any, Any]

HEADER_BYTES = 40
"""IP and TCP headers of a scenario's data packet."""
ACK_BYTES = 40

SHORT_PKTS = 1000
"""A transfer of at most this many packets, captured from handshake to end, is replayed as one."""
TRANSFERS = 1000

FULL_SHARE = 0.95
"""Share of the link's rate above which all losses are taken to be queue drops."""
NEVER_FULL = 10
"""Rate of an unknown link over the rate reached."""

STEADY = 0.8
"""Mean flight over the largest, above which a window is taken to be the limit: 0.9 where one is,
0.2 to 0.4 where losses cut it."""
UNEXPLAINED = 2.0
"""Modelled rate over the measured one above which the capture does not show the limit."""

GROWTH = 0.75
"""Growth of a window in a round, packets: 1 if by packets acknowledged, 1/b if by acks."""

DELAYED = 1.5
"""Packets per ack from here on are delayed acks: recoveries alone make 1.2 to 1.4."""

SIMULATED_S = 1000.0
MOST_PACKETS = 2e6
MOST_REPLICATIONS = 32
"""Short captures are replayed several times for narrow intervals, up to this many packets."""

CUBIC_REDUCTION = (0.6, 0.8)
"""What a loss leaves of the window with CUBIC, 0.7; 0.5 with Reno, more with what is no classic."""

CORRELATED = 1.5
"""Loss ratio over that of independent losses with as many indications, above which losses
correlate."""
FEW_INDICATIONS = 20
"""Fewer do not show whether losses are correlated."""
OUTAGE = 4
"""Consecutive timeouts from which on the path is taken to have been interrupted."""

FAR = 1.25
"""Ratio of the larger to the smaller value above which two values differ."""
NOTICED = 0.2
"""Least share of the time of a limit that a warning names."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A scenario made of a capture.

    Attributes
    ----------
    tables
        The scenario, as ``Scenario.from_dict`` takes it.
    text
        The same as TOML, with a comment on the origin of each value.
    warnings
        Known differences from the captured traffic.
    """

    tables: dict[str, Any]
    text: str
    warnings: list[str]


def replay(kept: Capture, name: str = "replay") -> Replay:
    """Return a scenario of all flows of a capture together.

    Parameters
    ----------
    kept
        A capture with these flows alone, as :func:`tcpcast.captures.selection.of_directions` makes.
    name
        What to call the scenario.

    Raises
    ------
    CaptureError
        The flows have no round-trip time or no duration.
    """
    seen = _seen(kept)
    entries = [
        Entry("", "name", name),
        *_network(seen),
        *_traffic(seen),
        *_tcp(seen),
        *_run(seen),
    ]
    whose = named(kept, np.arange(kept.connections["src"].size))
    heading = [
        f"{whose} of {kept.file}",
        "Written by tcpcast trace --scenario. Each line says where its value comes from.",
    ]
    warnings = _warnings(seen)
    remarks = [f"Warning: {warning}." for warning in warnings]
    tables = nested(entries)
    try:
        Scenario.from_dict(tables)
    except ScenarioError as fault:  # a packet an hour, say, is no rate that can be simulated
        raise CaptureError(f"{kept.file}: no scenario can be written: {fault}") from fault
    return Replay(tables, document([*heading, *remarks], entries), warnings)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Measured values of the flows; NaN where the capture does not show one."""

    table: Table
    flows: int
    seconds: float
    sent: float
    rate_bps: float
    rtt_s: float
    rtt_min_s: float
    rtt_high_s: float
    link_bps: float
    """Of IP bytes."""
    payload: int
    growth_pkts: float

    @property
    def window_pkts(self) -> float:
        """The window announced, or the constant flight size; NaN if the capture shows neither."""
        announced = self.mean("w_max_pkts")
        most, usual = self.mean("flight_max_bytes"), self.mean("flight_mean_bytes")
        if announced >= 1 or not usual >= STEADY * most:
            return announced
        return max(1.0, round(most / self.payload))

    @property
    def explained(self) -> bool:
        """Whether losses or the window explain the rate without a full link."""
        lossy = _predicted_pps(self, 1.0)
        by_window = self.window_pkts / self.rtt_s
        known = [rate for rate in (lossy, by_window) if math.isfinite(rate)]
        reached = self.sent / self.seconds / self.flows
        return bool(known) and min(known) <= UNEXPLAINED * reached

    @property
    def short(self) -> bool:
        """Whether this is one short transfer, from its handshake to its end."""
        whole = self.table["syn_captured"] & (self.table["end"] == "closed")
        return bool(whole.size == 1 and whole[0] and self.sent <= SHORT_PKTS)

    @property
    def packet(self) -> int:
        return self.payload + HEADER_BYTES

    @property
    def full(self) -> bool:
        """Whether the link was."""
        if math.isnan(self.link_bps):
            return not self.explained
        return bool(self.rate_bps >= FULL_SHARE * self.link_bps)

    @property
    def lost(self) -> float:
        """The random loss of the scenario: the loss that the queue does not explain."""
        if self.full:
            return 0.0
        return self.lost_independently if self.correlated else lost_of_all(self.table)

    @property
    def correlated(self) -> bool:
        """Whether losses are correlated: many packets are lost at a time."""
        told = (self.table["td"] + self.table["to"]).sum() >= FEW_INDICATIONS and not self.full
        return bool(told and lost_of_all(self.table) > CORRELATED * self.lost_independently)

    @property
    def lost_independently(self) -> float:
        """The independent loss per packet that makes as many loss indications as were seen.

        One indication covers all losses of a window of E[W] packets: 1 + E[W] times the loss.
        """
        seen = float((self.table["td"] + self.table["to"]).sum()) / self.sent
        if not 0 < seen < 1:
            return math.inf
        window = float(unlimited_window_pkts(loss_indication_ratio=seen, packets_per_ack=1.0))
        most = self.window_pkts
        return seen / max(1 - seen * (min(window, most) if most >= 1 else window), 0.5)

    def mean(self, name: str) -> float:
        """Return the mean of a column over the flows, by packets."""
        values, weights = self.table[name], self.table["data_packets"]
        known = np.isfinite(values) & (weights > 0)
        return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def _seen(kept: Capture) -> _Seen:
    table = kept.connections
    together = {name: column[0] for name, column in kept.groups(by="all").items()}
    away = np.isin(table["tap_side"], ("middle", "receiver"))
    table = dict(table)
    for name in ("rtt_min_s", "rtt_p50_s", "rtt_p99_s"):
        table[name] = table[name] + np.where(away, table["tap_to_sender_s"], 0.0)
    payload = int(np.clip(table["segment_bytes"].max(), 1, 65535 - HEADER_BYTES))
    wire = (payload + HEADER_BYTES) / payload
    seen = _Seen(
        table=table,
        flows=max(1, round(float(together["parallel_flows"]))),
        seconds=float(together["active_s"]),
        sent=float(together["packets_sent"]),
        rate_bps=float(together["throughput_bps"]) * wire,
        rtt_s=float(together["rtt_mean_s"]),
        rtt_min_s=math.nan,
        rtt_high_s=math.nan,
        link_bps=link_bps(kept) * wire,
        payload=payload,
        growth_pkts=growth_pkts(tables(kept).get("rounds"), table["segment_bytes"]),
    )
    if not seen.rtt_s > 0 or not seen.seconds > 0 or not seen.rate_bps > 0:
        raise CaptureError(
            f"{kept.file}: no round-trip time, or all data within one moment or one packet: "
            "no scenario can be written; name a connection that carries more data"
        )
    least, high = seen.mean("rtt_min_s"), seen.mean("rtt_p99_s")
    least = least if least > 0 else seen.rtt_s
    return replace(seen, rtt_min_s=least, rtt_high_s=float(np.fmax(high, least)))


def lost_of_all(table: Table) -> float:
    """Estimate packets lost per packet sent of all flows together, from one tap."""
    lost = lost_ratio(table)
    known = np.isfinite(lost)
    if not known.any():
        return 0.0
    return float(np.average(lost[known], weights=np.fmax(table["data_packets"][known], 1)))


def _network(seen: _Seen) -> Iterator[Entry]:
    rtt, why = seen.rtt_min_s, "minimum RTT measured"
    rate, whence = seen.link_bps, "acks came at this rate while the path was full"
    guessed = math.isnan(rate) and seen.explained
    if guessed:
        rtt, why = seen.rtt_s, "mean RTT measured: no full link was seen, so no queue is simulated"
        rate = NEVER_FULL * seen.rate_bps
        whence = f"{NEVER_FULL} times the rate reached: the capture does not show the link"
        if _grows_by_acks(seen) and seen.mean("rtt_p50_s") > 0:
            rtt, why = seen.mean("rtt_p50_s"), "median RTT measured: the mean includes delayed acks"
    elif math.isnan(rate):
        rate, whence = seen.rate_bps, "the rate reached: neither loss nor window explains it"
    fitting = 2 * 8 * (seen.packet + ACK_BYTES) / rate
    if rtt < fitting and guessed:
        rate, whence = (
            rate * fitting / rtt,
            "a packet and its ack take half of the RTT: the lowest rate that fits",
        )
    elif rtt < fitting:
        rtt, why = (
            fitting,
            "twice the time of a packet and its ack at this rate: the least that fits",
        )
    yield Entry("network", "rtt", _time(rtt), why)
    headers = f"{seen.payload} B of payload, the largest captured, and {HEADER_BYTES} B of headers"
    yield Entry("network", "packet", f"{seen.packet}B", headers)
    at = "network.bottleneck"
    yield Entry(at, "rate", units.format_rate(_rounded(rate)), whence)
    yield _buffer(seen, at)
    lost = "retransmissions that were needed, over all packets sent"
    if seen.correlated:
        lost = "losses are correlated: this independent loss makes as many loss indications"
    if seen.full:
        lost = "the link was full: all losses are taken to be queue drops"
    yield Entry(at, "loss", units.format_ratio(_rounded(seen.lost)), lost)


def _buffer(seen: _Seen, at: str) -> Entry:
    """Return the buffer that the RTT shows, or one BDP: never less if it never was full."""
    if math.isnan(seen.link_bps) and seen.explained:
        return Entry(at, "buffer", "1bdp", "the capture does not show it; hardly used at this rate")
    if seen.short and not lost_of_all(seen.table):
        return Entry(at, "buffer", "unlimited", "nothing was lost: all packets fitted")
    link = seen.link_bps if seen.link_bps > 0 else seen.rate_bps
    queued = math.ceil(round((seen.rtt_high_s - seen.rtt_min_s) * link / (8 * seen.packet), 3)) + 1
    if not seen.full and queued < seen.rtt_min_s * link / (8 * seen.packet):
        return Entry(
            at, "buffer", "1bdp", f"at most {queued} packets were queued, and it never was full"
        )
    why = "99th percentile of the RTT less the minimum, times the rate"
    return Entry(at, "buffer", f"{queued}pkt", why)


def _traffic(seen: _Seen) -> Iterator[Entry]:
    if seen.short:
        yield Entry("traffic", "kind", "transfers", "one short transfer, opened and closed")
        data = math.ceil(float(seen.table["unique_bytes"].sum()) / seen.payload)
        yield Entry("traffic", "size", f"{max(data, 1)}pkt", "the data, without retransmissions")
        yield Entry("traffic", "count", TRANSFERS, "for narrow intervals")
        return
    captured = seen.table["src"].size
    why = (
        "as captured"
        if captured == seen.flows
        else f"the mean number active at once, of {captured} captured"
    )
    yield Entry("traffic", "kind", "bulk", "assumes that data were always available")
    yield Entry("traffic", "flows", seen.flows, why)


def _tcp(seen: _Seen) -> Iterator[Entry]:
    yield Entry("tcp", "stack", "rfc-newreno", _stack(seen))
    window = seen.mean("initial_window_pkts")
    if window >= 1:
        yield Entry("tcp", "initial_window", round(window), "packets sent before the first ack")
    yield _window(seen)
    delayed, why = _delayed(seen)
    yield Entry("tcp", "delayed_acks", delayed, why)
    timer = _first_timeout(seen)
    known = timer > 0
    timer = timer if known else seen.rtt_s + LEAST_VARIATION_S
    why = (
        "T0 measured: mean first timeout" if known else "no timeout seen: RTT + 200 ms, as in Linux"
    )
    yield Entry("tcp", "min_rto", _time(min(timer, 64.0)), why)


def _window(seen: _Seen) -> Entry:
    most = seen.window_pkts
    if not most >= 1:
        why = "the capture does not show it"
        return Entry("tcp", "receiver_window", "unlimited", why)
    why = "the largest window announced, in packets"
    if not seen.mean("w_max_pkts") >= 1:
        why = "not announced; this much was in flight nearly all the time"
    return Entry("tcp", "receiver_window", int(most), why)


def _first_timeout(seen: _Seen) -> float:
    values, weights = seen.table["t0_s"], seen.table["to"]
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def _delayed(seen: _Seen) -> tuple[bool, str]:
    acknowledged = seen.mean("packets_per_ack")
    if not acknowledged >= DELAYED:
        return False, f"{acknowledged:.3g} packets per ack"
    if _grows_by_acks(seen):
        return True, f"{acknowledged:.3g} packets per ack"
    return False, f"{acknowledged:.3g} packets per ack, but windows grow by bytes (RFC 5681)"


def _grows_by_acks(seen: _Seen) -> bool:
    """Say whether windows grow by acks, and not by what they acknowledge.

    Senders with today's options count what is acknowledged; CUBIC grows by half a packet a round,
    too, where it follows Reno.
    """
    today = (seen.table["sack"] | seen.table["timestamps"]).all()
    return bool(seen.growth_pkts < GROWTH and not today)


def _predicted_pps(seen: _Seen, packets_per_ack: float) -> float:
    """Return PFTK's rate of one of the flows for some b; NaN without loss."""
    timer, window = _first_timeout(seen), seen.window_pkts
    given: Table = {
        "rtt_s": np.array([seen.rtt_s]),
        "t0_s": np.array([timer if timer > 0 else seen.rtt_s + LEAST_VARIATION_S]),
        "packets_per_ack": np.array([packets_per_ack]),
        "receiver_window_pkts": np.array([window if window >= 1 else math.inf]),
    }
    loss = np.array([float((seen.table["td"] + seen.table["to"]).sum()) / seen.sent])
    if not usable(loss, given).all() or not packets_per_ack > 0:
        return math.nan
    return float(pftk_pps(loss, given)[0])


def _run(seen: _Seen) -> Iterator[Entry]:
    if not seen.short:
        yield Entry(
            "run", "duration", _time(seen.seconds), "the time in which the capture has data"
        )
        yield Entry("run", "warmup", "0s", "the capture includes slow start")
        many = min(SIMULATED_S / seen.seconds, MOST_PACKETS / seen.sent, MOST_REPLICATIONS)
        if many >= 2:
            yield Entry(
                "run", "replications", int(many), "the capture is short: for narrow intervals"
            )
    yield Entry("run", "seed", 1)


def _stack(seen: _Seen) -> str:
    sack = bool(seen.table["sack"].any())
    return "the nearest stack that can be simulated" + (": the sender used SACK" if sack else "")


def _warnings(seen: _Seen) -> list[str]:
    found = [*_of_the_stack(seen), *_other_limits(seen)]
    least = seen.table["rtt_min_s"]
    if least.size > 1 and np.nanmax(least) > FAR * np.nanmin(least):
        found.append("the flows' round-trip times differ; the scenario has one RTT for all")
    return found


def _of_the_stack(seen: _Seen) -> Iterator[str]:
    """Say where the senders differ from NewReno."""
    left = seen.mean("window_reduction") if "window_reduction" in seen.table else math.nan
    low, high = CUBIC_REDUCTION
    if low <= left:
        who = "CUBIC" if left <= high else "BBR or another TCP that paces"
        yield (
            f"a loss reduces the window to {left:.2f} of its size, as with {who}; the scenario's "
            "NewReno halves it"
        )
    acknowledged = seen.mean("packets_per_ack")
    by_acks, by_bytes = (_predicted_pps(seen, b) for b in (acknowledged, 1.0))
    reached = seen.sent / seen.seconds / seen.flows
    if by_bytes > FAR * by_acks and abs(by_bytes - reached) < abs(by_acks - reached):
        yield (
            f"an ack covers {acknowledged:.3g} packets, but PFTK agrees better with b = 1 "
            f"({by_bytes:.3g} packets/s per flow, not {by_acks:.3g}): the window seems to grow by "
            "packets acknowledged"
        )


def _other_limits(seen: _Seen) -> Iterator[str]:
    """Name the limits of the flows that the scenario leaves out."""
    left_out = {"share_application": "the application", "share_send_buffer": "the send buffer"}
    for name, what in left_out.items():
        share = seen.mean(name) if name in seen.table else math.nan
        if share > NOTICED:
            yield f"the flows were limited by {what} {share:.0%} of the time; this is not replayed"
    share = seen.mean("share_timeout") if "share_timeout" in seen.table else 0.0
    deepest = int(seen.table["max_backoff"].max())
    if share > NOTICED and deepest >= OUTAGE:
        yield (
            f"the flows were in RTO {share:.0%} of the time, with up to {deepest} consecutive "
            "timeouts: the path was interrupted, which is not replayed"
        )
    share = seen.mean("share_receiver_window") if "share_receiver_window" in seen.table else 0.0
    if share > NOTICED and (seen.table["zero_windows"] > 0).any():
        yield (
            f"the flows were limited by the receiver window {share:.0%} of the time, and it "
            "closed at "
            "times; the scenario has its largest value all the time"
        )


def _time(seconds: float) -> str:
    return units.format_duration(_rounded(seconds))


def _rounded(value: float, digits: int = 4) -> float:
    """Return a number with few digits, as many as the measurement has."""
    return float(f"{value:.{digits}g}")
