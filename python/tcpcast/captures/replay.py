"""A scenario that asks for what a capture shows, so that other engines can answer it.

Each value has a word on where it came from. What a capture cannot tell is chosen so that it changes
least, and said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.beside import LEAST_VARIATION_S, pftk_pps, usable
from tcpcast.captures.flows import named
from tcpcast.captures.models import lost_ratio
from tcpcast.captures.pace import growth_pkts, link_bps
from tcpcast.captures.replay_text import Entry, document, nested
from tcpcast.captures.selection import tables
from tcpcast.errors import CaptureError
from tcpcast.models.pftk import unlimited_window_pkts
from tcpcast.scenario import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.captures import Capture, Table

    Column = np.ndarray[Any, Any]

HEADER_BYTES = 40
"""IP and TCP headers of a scenario's data packet."""
ACK_BYTES = 40

SHORT_PKTS = 1000
"""A transfer of at most so many packets, seen from its handshake to its end, is replayed as one."""
TRANSFERS = 1000

FULL_SHARE = 0.95
"""Of the rate of the link: beyond it the queue is taken to have lost what was lost."""
NEVER_FULL = 10
"""A link that nobody saw is so many times as fast as what was reached."""

STEADY = 0.8
"""Mean flight by the largest, from which on a window is taken to hold it: 0.9 where one does, 0.2
to 0.4 where losses cut it."""
UNEXPLAINED = 2.0
"""A rate that models say could be so many times as high was held down by something not seen."""

GROWTH = 0.75
"""Packets that a window grows by in a round: 1 if by what is acknowledged, 1/b if by acks."""

DELAYED = 1.5
"""Packets per ack from here on are delayed acks: recoveries alone make 1.2 to 1.4."""

SIMULATED_S = 1000.0
MOST_PACKETS = 2e6
MOST_REPLICATIONS = 32
"""Short captures are replayed several times, for narrow intervals, but for no more packets."""

CUBIC_REDUCTION = (0.6, 0.8)
"""What a loss leaves of the window with CUBIC, 0.7; 0.5 with Reno, more with what is no classic."""

BURSTS = 1.5
"""Loss by that which makes as many loss indications singly: from here on it came in bursts."""
FEW_INDICATIONS = 20
"""Fewer tell nothing of how losses come."""
OUTAGE = 4
"""Timeouts in a row from which on the path is taken to have been away."""

FAR = 1.25
"""Figures that are so far apart, the larger by the smaller, are not alike."""
NOTICED = 0.2
"""Share of the time from which on it is said what held flows back."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A scenario made of a capture.

    Attributes
    ----------
    tables
        The scenario, as ``Scenario.from_dict`` takes it.
    text
        The same as TOML, a word on each line's origin.
    warnings
        Where it is known to differ from what was captured.
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
        The flows have no round-trip time, or last no time: nothing to ask for.
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
    remarks = [f"Mind: {warning}." for warning in warnings]
    return Replay(nested(entries), document([*heading, *remarks], entries), warnings)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of the flows; NaN where the capture does not tell."""

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
        """The window announced, or at which the flights stay; NaN if neither is to be seen."""
        announced = self.mean("w_max_pkts")
        most, usual = self.mean("flight_max_bytes"), self.mean("flight_mean_bytes")
        if announced >= 1 or not usual >= STEADY * most:
            return announced
        return max(1.0, round(most / self.payload))

    @property
    def explained(self) -> bool:
        """Whether losses or the window explain the rate, so that there need be no full link."""
        lossy = _predicted_pps(self, 1.0)
        held = self.window_pkts / self.rtt_s
        known = [rate for rate in (lossy, held) if math.isfinite(rate)]
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
        """The random loss to ask for: that which the queue does not explain."""
        if self.full:
            return 0.0
        return self.lost_singly if self.bursts else lost_of_all(self.table)

    @property
    def bursts(self) -> bool:
        """Whether packets were lost many at a time."""
        told = (self.table["td"] + self.table["to"]).sum() >= FEW_INDICATIONS and not self.full
        return bool(told and lost_of_all(self.table) > BURSTS * self.lost_singly)

    @property
    def lost_singly(self) -> float:
        """The loss that makes as many loss indications as were seen, if packets are lost singly.

        An indication is for all that is lost of a window of E[W]: 1 + E[W] times the loss.
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
    if not seen.rtt_s > 0 or not seen.seconds > 0:
        raise CaptureError(
            f"{kept.file}: no round-trip time, or no more than a moment of data: "
            "there is no scenario of it; name a connection that carries more"
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
    rtt, why = seen.rtt_min_s, "least RTT measured"
    rate, whence = seen.link_bps, "acks came at this rate while the path was full"
    guessed = math.isnan(rate) and seen.explained
    if guessed:
        rtt, why = seen.rtt_s, "mean RTT measured: no full link was seen, so no queue is simulated"
        rate = NEVER_FULL * seen.rate_bps
        whence = f"{NEVER_FULL} times what was reached: the capture does not show the link"
        if _grows_by_acks(seen) and seen.mean("rtt_p50_s") > 0:
            rtt, why = seen.mean("rtt_p50_s"), "median RTT measured: acks that wait are in the mean"
    elif math.isnan(rate):
        rate, whence = seen.rate_bps, "what was reached: neither loss nor window explains it"
    fitting = 2 * 8 * (seen.packet + ACK_BYTES) / rate
    if rtt < fitting and guessed:
        rate, whence = (
            rate * fitting / rtt,
            "a packet and its ack take half of the RTT: no less fits",
        )
    elif rtt < fitting:
        rtt, why = fitting, "twice what a packet and its ack take at this rate: no less fits"
    yield Entry("network", "rtt", _time(rtt), why)
    headers = f"{seen.payload} B of payload, the most in a packet, and {HEADER_BYTES} B of headers"
    yield Entry("network", "packet", f"{seen.packet}B", headers)
    at = "network.bottleneck"
    yield Entry(at, "rate", units.format_rate(_rounded(rate)), whence)
    yield _buffer(seen, at)
    lost = "sent again and not needlessly, of all packets sent"
    if seen.bursts:
        lost = "packets were lost in bursts: lost singly, these make as many loss indications"
    if seen.full:
        lost = "the link was full: what was lost, the queue is taken to have dropped"
    yield Entry(at, "loss", units.format_ratio(_rounded(seen.lost)), lost)


def _buffer(seen: _Seen, at: str) -> Entry:
    """Return the buffer that the RTT tells of, or one BDP: never less if it never was full."""
    if math.isnan(seen.link_bps) and seen.explained:
        return Entry(at, "buffer", "1bdp", "not to be seen; hardly ever used at this rate")
    if seen.short and not lost_of_all(seen.table):
        return Entry(at, "buffer", "unlimited", "nothing was lost: it held all there was")
    link = seen.link_bps if seen.link_bps > 0 else seen.rate_bps
    queued = math.ceil(round((seen.rtt_high_s - seen.rtt_min_s) * link / (8 * seen.packet), 3)) + 1
    if not seen.full and queued < seen.rtt_min_s * link / (8 * seen.packet):
        return Entry(at, "buffer", "1bdp", f"{queued} packets were used, never all: room for more")
    why = "99th percentile of the RTT less the least, times the rate"
    return Entry(at, "buffer", f"{queued}pkt", why)


def _traffic(seen: _Seen) -> Iterator[Entry]:
    if seen.short:
        yield Entry("traffic", "kind", "transfers", "one short transfer, begun and closed")
        data = math.ceil(float(seen.table["unique_bytes"].sum()) / seen.payload)
        yield Entry("traffic", "size", f"{max(data, 1)}pkt", "the data, without what was repeated")
        yield Entry("traffic", "count", TRANSFERS, "for narrow intervals")
        return
    captured = seen.table["src"].size
    why = "captured" if captured == seen.flows else f"at a time on average, of {captured} captured"
    yield Entry("traffic", "kind", "bulk", "as if there was always more to send")
    yield Entry("traffic", "flows", seen.flows, why)


def _tcp(seen: _Seen) -> Iterator[Entry]:
    yield Entry("tcp", "stack", "rfc-newreno", _stack(seen))
    window = seen.mean("initial_window_pkts")
    if window >= 1:
        yield Entry("tcp", "initial_window", round(window), "packets before the first ack")
    yield _window(seen)
    delayed, why = _delayed(seen)
    yield Entry("tcp", "delayed_acks", delayed, why)
    timer = _first_timeout(seen)
    known = timer > 0
    timer = timer if known else seen.rtt_s + LEAST_VARIATION_S
    why = "T0 measured: mean first timeout" if known else "no timeout seen: RTT + 200 ms, as Linux"
    yield Entry("tcp", "min_rto", _time(min(timer, 64.0)), why)


def _window(seen: _Seen) -> Entry:
    most = seen.window_pkts
    if not most >= 1:
        why = "the capture does not say how large it was"
        return Entry("tcp", "receiver_window", "unlimited", why)
    why = "the largest window announced, in packets"
    if not seen.mean("w_max_pkts") >= 1:
        why = "not announced; so much was in flight nearly all the time"
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
        yield Entry("run", "duration", _time(seen.seconds), "as long as the capture has data")
        yield Entry("run", "warmup", "0s", "the capture has its slow start, too")
        many = min(SIMULATED_S / seen.seconds, MOST_PACKETS / seen.sent, MOST_REPLICATIONS)
        if many >= 2:
            yield Entry("run", "replications", int(many), "it is short: for narrow intervals")
    yield Entry("run", "seed", 1)


def _stack(seen: _Seen) -> str:
    sack = bool(seen.table["sack"].any())
    return "the nearest that can be simulated" + (": there was SACK" if sack else "")


def _warnings(seen: _Seen) -> list[str]:
    found = [*_of_the_stack(seen), *_held_back(seen)]
    least = seen.table["rtt_min_s"]
    if least.size > 1 and np.nanmax(least) > FAR * np.nanmin(least):
        found.append("the flows' round-trip times differ, and the scenario has one for all")
    return found


def _of_the_stack(seen: _Seen) -> Iterator[str]:
    """Say where the senders were no NewReno of old."""
    left = seen.mean("window_reduction") if "window_reduction" in seen.table else math.nan
    low, high = CUBIC_REDUCTION
    if low <= left:
        who = "as with CUBIC" if left <= high else "as with BBR, or another TCP that paces"
        yield f"a loss left {left:.2f} of the window, {who}; the scenario's NewReno halves it"
    acknowledged = seen.mean("packets_per_ack")
    by_acks, by_bytes = (_predicted_pps(seen, b) for b in (acknowledged, 1.0))
    reached = seen.sent / seen.seconds / seen.flows
    if by_bytes > FAR * by_acks and abs(by_bytes - reached) < abs(by_acks - reached):
        yield (
            f"an ack is for {acknowledged:.3g} packets, but with b = 1 PFTK comes nearer "
            f"({by_bytes:.3g} packets/s a flow, not {by_acks:.3g}): the window seems to grow by "
            "what is acknowledged"
        )


def _held_back(seen: _Seen) -> Iterator[str]:
    """Say what the scenario has not and the flows waited for."""
    held = {"share_application": "the application", "share_send_buffer": "the sender's buffer"}
    for name, what in held.items():
        share = seen.mean(name) if name in seen.table else math.nan
        if share > NOTICED:
            yield f"{what} held the flows back for {share:.0%} of the time; this is not replayed"
    share = seen.mean("share_timeout") if "share_timeout" in seen.table else 0.0
    deepest = int(seen.table["max_backoff"].max())
    if share > NOTICED and deepest >= OUTAGE:
        yield (
            f"the flows waited for timers for {share:.0%} of the time, up to {deepest} in a row: "
            "the path was away, which is not replayed"
        )
    share = seen.mean("share_receiver_window") if "share_receiver_window" in seen.table else 0.0
    if share > NOTICED and (seen.table["zero_windows"] > 0).any():
        yield (
            f"the receiver's window, which closed at times, held the flows back for {share:.0%} of "
            "the time; the scenario has its largest all the time"
        )


def _time(seconds: float) -> str:
    return units.format_duration(_rounded(seconds))


def _rounded(value: float, digits: int = 4) -> float:
    """Return a number of few digits: what is measured has no more."""
    return float(f"{value:.{digits}g}")
