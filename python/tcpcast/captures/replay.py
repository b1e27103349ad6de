"""A scenario with the values that a capture shows, so that other engines can answer it.

A comment says where each value comes from. A value that a capture cannot show is chosen so that it
changes the answer least; its comment says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.captures.capture_stats import CaptureStats, lost_of_all, seen_in
from tcpcast.captures.flows import named
from tcpcast.captures.replay_tcp import FAR, grows_by_acks, tcp_entries, tcp_warnings
from tcpcast.captures.replay_text import Entry, document, nested, rounded, written_time
from tcpcast.captures.words import percent
from tcpcast.errors import CaptureError, ScenarioError
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.captures import Capture

ACK_BYTES = 40

TRANSFERS = 1000

NEVER_FULL = 10
"""Rate of an unknown link over the rate reached."""

SIMULATED_S = 1000.0
MOST_PACKETS = 2e6
MOST_REPLICATIONS = 32
"""Short captures are replayed several times for narrow intervals, up to this many packets."""

MEDIAN_PRECISION = 1.016
"""A median RTT that is larger by less may be the same."""

OUTAGE = 4
"""Consecutive timeouts from which on the path is taken to have been interrupted."""

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
    seen = seen_in(kept)
    entries = [
        Entry("", "name", name),
        *_network(seen),
        *_traffic(seen),
        *tcp_entries(seen),
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


def _network(seen: CaptureStats) -> Iterator[Entry]:
    rtt, why = seen.rtt_min_s, "minimum RTT measured"
    rate, whence = seen.link_bps, "acks came at this rate while the path was full"
    guessed = math.isnan(rate) and seen.explained
    if guessed:
        rtt, why = _usual_rtt(seen)
        rate = NEVER_FULL * seen.rate_bps
        whence = f"{NEVER_FULL} times the rate reached: the capture does not show the link"
        if seen.sender.paced and not seen.windowed:
            rate = seen.rate_bps
            whence = "the rate reached: BBR would fill more, and the capture does not show the link"
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
    yield Entry("network", "rtt", written_time(rtt), why)
    headers = f"{seen.payload} B of payload, the largest captured, and {seen.headers} B of headers"
    yield Entry("network", "packet", f"{seen.packet}B", headers)
    at = "network.bottleneck"
    yield Entry(at, "rate", units.format_rate(rounded(rate)), whence)
    yield _buffer(seen, at)
    lost = "retransmissions that were needed, over all packets sent"
    if seen.correlated:
        lost = "losses are correlated: this independent loss makes as many loss indications"
    if seen.behind_queue and seen.lone:
        lost = "BBR keeps its rate: all losses are taken to be random"
    elif seen.elsewhere >= 0 and seen.lost:
        lost = f"{percent(seen.elsewhere)} of the losses came while the link's queue was not full"
    elif seen.full or seen.elsewhere >= 0:
        lost = "they came while the link was full: all losses are taken to be queue drops"
    yield Entry(at, "loss", units.format_ratio(rounded(seen.lost)), lost)


def _usual_rtt(seen: CaptureStats) -> tuple[float, str]:
    """Return the RTT of a path whose queue nobody saw, and where it comes from."""
    usual = seen.mean("rtt_karn_p50_s")
    if not (seen.sender.todays or grows_by_acks(seen)) or not usual > 0:
        return seen.rtt_s, "mean RTT measured: no full link was seen, so no queue is simulated"
    if usual <= MEDIAN_PRECISION * seen.rtt_min_s:
        return (
            seen.rtt_min_s,
            "minimum RTT measured; the median of acks that did not wait is it, too",
        )
    return usual, "median RTT of packets whose acks did not wait"


def _buffer(seen: CaptureStats, at: str) -> Entry:
    """Return the buffer that the RTT shows, or one BDP: never less if it never was full."""
    if seen.short and not lost_of_all(seen.table):
        return Entry(at, "buffer", "unlimited", "nothing was lost: all packets fitted")
    if math.isnan(seen.link_bps) and seen.explained:
        return Entry(at, "buffer", "1bdp", "the capture does not show it; hardly used at this rate")
    if seen.behind_queue:
        return Entry(at, "buffer", "1bdp", "a capture of the receiver does not show the queue")
    link = seen.link_bps if seen.link_bps > 0 else seen.rate_bps
    queued = round((seen.rtt_high_s - seen.rtt_min_s) * link / (8 * seen.packet)) + 1
    if not seen.overflows and queued < seen.rtt_min_s * link / (8 * seen.packet):
        return Entry(
            at, "buffer", "1bdp", f"at most {queued} packets were queued, and it never was full"
        )
    why = "99th percentile of the RTT less the minimum, times the rate"
    return Entry(at, "buffer", f"{queued}pkt", why)


def _traffic(seen: CaptureStats) -> Iterator[Entry]:
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


def _run(seen: CaptureStats) -> Iterator[Entry]:
    if not seen.short:
        yield Entry(
            "run", "duration", written_time(seen.seconds), "the time in which the capture has data"
        )
        yield Entry("run", "warmup", "0s", "the capture includes slow start")
        many = min(SIMULATED_S / seen.seconds, MOST_PACKETS / seen.sent, MOST_REPLICATIONS)
        if many >= 2:
            yield Entry(
                "run", "replications", int(many), "the capture is short: for narrow intervals"
            )
    yield Entry("run", "seed", 1)


def _warnings(seen: CaptureStats) -> list[str]:
    found = [*tcp_warnings(seen), *_other_limits(seen)]
    least = seen.table["rtt_min_s"]
    if least.size > 1 and np.nanmax(least) > FAR * np.nanmin(least):
        found.append("the flows' round-trip times differ; the scenario has one RTT for all")
    return found


def _other_limits(seen: CaptureStats) -> Iterator[str]:
    """Name the limits of the flows that the scenario leaves out."""
    if seen.transfers:
        yield (
            f"{seen.transfers} of {seen.table['src'].size} connections were shorter than half of "
            "the capture: files one after the other, which the scenario has as flows without end; "
            'write traffic of kind "on-off" or "transfers"'
        )
    left_out = {"share_application": "the application", "share_send_buffer": "the send buffer"}
    for name, what in left_out.items():
        share = seen.mean(name)
        if share > NOTICED:
            held = f"the flows were limited by {what} {percent(share)} of the time"
            yield f"{held}; this is not replayed"
    share = seen.mean("share_timeout")
    deepest = int(seen.table["max_backoff"].max())
    if share > NOTICED and deepest >= OUTAGE:
        yield (
            f"the flows were in RTO {percent(share)} of the time, with up to {deepest} consecutive "
            "timeouts: the path was interrupted, which is not replayed"
        )
    share = seen.mean("share_receiver_window")
    if share > NOTICED and (seen.table["zero_windows"] > 0).any():
        yield (
            f"the flows were limited by the receiver window {percent(share)} of the time, and it "
            "closed at "
            "times; the scenario has its largest value all the time"
        )
