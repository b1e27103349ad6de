"""Converts a capture to a scenario that engines can simulate.

The scenario has a comment on the origin of each value. If a capture does not reveal a value, the
scenario has the value with the least effect on results, and the comment states this.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.capture_stats import (
    MIN_DELAYED_ACK_PACKETS,
    CaptureStats,
    estimated_loss_ratio,
    make_capture_stats,
    pps_predicted_from_losses,
)
from tcpcast.captures.cause_rules import INITIAL_WINDOW, MIN_OUTAGE_TIMEOUTS
from tcpcast.captures.congestion_control import UNKNOWN
from tcpcast.captures.direction_selection import describe_directions
from tcpcast.captures.limit_remedies import MAX_PLAUSIBLE_MIN_RTO_S
from tcpcast.captures.predicted_gain import lossless_round_trips
from tcpcast.captures.quantity_text import format_percent
from tcpcast.captures.sender_stack import first_timeout_s, min_rto_s
from tcpcast.captures.subject import bytes_by_limit
from tcpcast.captures.table import select_rows
from tcpcast.captures.verdict import largest_row_limited_by
from tcpcast.models.pftk import LINUX_MIN_RTO_MINUS_RTT_S
from tcpcast.process.errors import CaptureError, ScenarioError
from tcpcast.quantity import units
from tcpcast.scenario import Scenario
from tcpcast.scenario.toml import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables

    Column = np.ndarray[Any, Any]


MAX_LINE_LENGTH = 100
MIN_COMMENT_COLUMN = 30
"""Minimum column at which comments begin."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a scenario; ``table`` is a dotted name, ``""`` for the top level."""

    table: str
    key: str
    value: Any
    comment: str = ""


def entries_as_tables(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return entries as nested dicts, like ``tomllib``."""
    tables: dict[str, Any] = {}
    for entry in entries:
        nested = tables
        for part in entry.table.split(".") if entry.table else ():
            nested = nested.setdefault(part, {})
        nested[entry.key] = entry.value
    return tables


def toml_document(heading: Sequence[str], entries: Sequence[Entry]) -> str:
    """Return a TOML document with a heading comment and a comment per entry."""
    lines = [line for text in heading for line in _comment_lines(text)]
    table = ""
    for entry in entries:
        if entry.table != table:
            table = entry.table
            lines += ["", f"[{table}]"]
        lines += _entry_lines(entry)
    return "\n".join(lines) + "\n"


def _comment_lines(text: str) -> list[str]:
    return textwrap.wrap(
        text, MAX_LINE_LENGTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _entry_lines(entry: Entry) -> list[str]:
    assignment = f"{entry.key} = {write_value(entry.value)}"
    if not entry.comment:
        return [assignment]
    one_line = f"{assignment:<{MIN_COMMENT_COLUMN}} # {entry.comment}"
    return (
        [one_line]
        if len(one_line) <= MAX_LINE_LENGTH
        else [*_comment_lines(entry.comment), assignment]
    )


def time_in_scenario_syntax(seconds: float) -> str:
    """Return a rounded time in scenario syntax."""
    return units.format_duration(round_to_digits(seconds))


def round_to_digits(value: float) -> float:
    """Return a number rounded to the precision of a measurement."""
    return float(f"{value:.4g}")


ACK_BYTES = 40

TRANSFER_COUNT = 1000

UNKNOWN_LINK_RATE_RATIO = 10
"""Ratio of the assumed rate of an unknown link to the measured rate."""

MAX_SIMULATED_S = 1000.0
MAX_PACKETS = 2e6
MAX_REPLICATIONS = 32
"""Limits of the number of replications; short captures need many for narrow intervals."""

MAX_EQUAL_RTT_RATIO = 1.016
"""Ratio of median to minimum RTT up to which both RTTs are considered equal."""

MIN_WARNING_SHARE = 0.2
"""Minimum share of the time for a limit to be named in a warning."""


@dataclass(frozen=True, slots=True)
class ReplayScenario:
    """A scenario derived from a capture.

    Attributes
    ----------
    tables
        The scenario as a dict for ``Scenario.from_dict``.
    text
        The scenario as TOML, with a comment on the origin of each value.
    warnings
        Known differences from the captured traffic.
    """

    tables: dict[str, Any]
    text: str
    warnings: list[str]


def make_replay_scenario(capture: CaptureTables, name: str = "replay") -> ReplayScenario:
    """Return a scenario that represents all flows of a capture.

    Parameters
    ----------
    capture
        A capture restricted to these flows by
        :func:`tcpcast.captures.capture_tables.restrict_to_directions`.
    name
        Name of the scenario.

    Raises
    ------
    CaptureError
        The flows have no round-trip time or no duration, their main limit is none that a scenario
        can describe, or the file is a log of another program.
    """
    if capture.program:
        raise CaptureError(
            f"a log of {capture.program}; a scenario requires a capture", file=capture.file
        )
    if missing := _limit_without_scenario(capture.connections):
        raise CaptureError(f"{capture.file}: no scenario can be derived: {missing}")
    stats = make_capture_stats(capture)
    if stats.is_application_limited and _writes_per_file_and_off_s(stats)[1] <= 0:
        raise CaptureError(
            f"{capture.file}: no scenario can be derived: the capture is too short to show how "
            "often the application had no data"
        )
    entries = [
        Entry("", "name", name),
        *_network_entries(stats),
        *_traffic_entries(stats),
        *tcp_entries(stats),
        *_run_entries(stats),
    ]
    whose = describe_directions(capture, np.arange(capture.connections["src"].size))
    heading = [
        f"{whose} of {capture.file}",
        "Written by tcpcast trace --scenario. Comments state the origin of each value.",
    ]
    warnings = [*tcp_warnings(stats), *_omitted_limit_warnings(stats)]
    least = stats.table["rtt_min_s"]
    least = least[np.isfinite(least)]
    if least.size > 1 and least.max() > MIN_DIFFERENCE_RATIO * least.min():
        warnings.append("the round-trip times of the flows differ, but the scenario uses one RTT")
    remarks = [f"Warning: {warning}." for warning in warnings]
    tables = entries_as_tables(entries)
    try:
        Scenario.from_dict(tables)
    except ScenarioError as error:  # for example, because a rate of one packet per hour is too low
        raise CaptureError(f"{capture.file}: no scenario can be derived: {error}") from error
    return ReplayScenario(tables, toml_document([*heading, *remarks], entries), warnings)


def _limit_without_scenario(table: Table) -> str:
    """Return why no scenario describes the main limit of the flows, or ""."""
    limit = str(bytes_by_limit(table)["limit"][0])
    row = select_rows(table, [largest_row_limited_by(table, limit)])

    def share(name: str) -> str:
        return format_percent(float(row[name][0]))

    match limit:
        case "no_response":
            silent = format_percent(float(row["receiver_silence_s"][0] / row["duration_s"][0]))
            return (
                f"the receiver did not respond for the last {silent} of the time, but in a "
                "scenario, the path and the receiver always respond"
            )
        case "timeout" if _has_outage(row)[0]:
            return (
                f"the path was silent, and the sender waited for the RTO {share('share_timeout')} "
                "of the time, but in a scenario, the path always responds"
            )
    return ""


def _has_outage(table: Table) -> Column:
    """Return a mask of rows with timeouts by an outage of the path instead of single losses."""
    first_s = np.nan_to_num(table["t0_s"] - table["rtt_mean_s"])
    return np.asarray(
        (table["max_backoff"] >= MIN_OUTAGE_TIMEOUTS) | (first_s > MAX_PLAUSIBLE_MIN_RTO_S)
    )


def _rtt_and_rate(stats: CaptureStats) -> tuple[tuple[float, str], tuple[float, str]]:
    """Return the RTT in seconds and the link rate in bit/s, each with its origin."""
    rtt, why = stats.rtt_min_s, "minimum RTT measured"
    guessed = math.isnan(stats.link_bps) and stats.is_rate_explained_without_link
    if guessed:
        rtt, why = _rtt_and_its_origin(stats)
    rate, whence = _link_rate_and_its_origin(stats)
    fitting = 2 * 8 * (stats.packet_bytes + ACK_BYTES) / rate
    if rtt < fitting and guessed:
        rate, whence = (
            rate * fitting / rtt,
            "at this rate, transmitting a packet and its ack takes half of the RTT",
        )
    elif rtt < fitting:
        rtt, why = (
            fitting,
            "twice the transmission time of a packet and its ack at this rate",
        )
    return (rtt, why), (rate, whence)


def _network_entries(stats: CaptureStats) -> Iterator[Entry]:
    (rtt, why), (rate, whence) = _rtt_and_rate(stats)
    yield Entry("network", "rtt", time_in_scenario_syntax(rtt), why)
    which = "mean, in full packets" if stats.is_application_limited else "largest captured"
    sizes = f"{stats.payload_bytes} B of payload ({which})"
    headers = f"{sizes} and {stats.header_bytes} B of headers"
    yield Entry("network", "packet", f"{stats.packet_bytes}B", headers)
    at = "network.bottleneck"
    yield Entry(at, "rate", units.format_rate(round_to_digits(rate)), whence)
    yield _buffer_entry(stats, at)
    lost = "necessary retransmissions per packet sent"
    if stats.has_correlated_losses:
        lost = (
            "independent loss that causes as many loss indications as the captured, "
            "correlated losses"
        )
    if stats.is_tap_behind_queue and stats.is_single_paced_flow:
        lost = "all losses are assumed to be random, because BBR keeps its rate despite losses"
    elif stats.non_queue_loss_share >= 0 and stats.random_loss_ratio:
        share = format_percent(stats.non_queue_loss_share)
        lost = f"{share} of the losses occurred while the queue was not full"
    elif stats.is_link_full or stats.non_queue_loss_share >= 0:
        lost = "all losses are assumed to be queue drops, because the link was full"
    yield Entry(at, "loss", units.format_ratio(round_to_digits(stats.random_loss_ratio)), lost)


def _link_rate_and_its_origin(stats: CaptureStats) -> tuple[float, str]:
    """Return the link rate in bit/s, and the origin of the value."""
    if stats.is_link_rate_from_cause:
        return stats.link_bps, "measured rate, because the link limits it"
    if stats.link_bps > 0:
        return stats.link_bps, "rate of acks while the path was full"
    if not stats.is_rate_explained_without_link:
        return stats.rate_bps, "measured rate, which neither loss nor the window explains"
    if stats.sender.is_rate_based and not stats.is_rate_explained_by_window:
        return (
            stats.rate_bps,
            "measured rate, because the link rate is unknown and BBR would fill a faster link",
        )
    return (
        UNKNOWN_LINK_RATE_RATIO * stats.rate_bps,
        f"{UNKNOWN_LINK_RATE_RATIO} times the measured rate, because the link rate is unknown",
    )


def _rtt_and_its_origin(stats: CaptureStats) -> tuple[float, str]:
    """Return the RTT for a path with an unknown queue, and the origin of the value."""
    usual = stats.packet_weighted_mean("rtt_karn_p50_s")
    if not (stats.sender.is_modern or does_window_grow_by_acks(stats)) or not usual > 0:
        return stats.rtt_s, "mean RTT measured; the link was not full, so no queue is simulated"
    if usual <= MAX_EQUAL_RTT_RATIO * stats.rtt_min_s:
        return (
            stats.rtt_min_s,
            "minimum RTT measured; equal to the median RTT of acks that were not delayed",
        )
    return usual, "median RTT of acks that were not delayed"


def _buffer_entry(stats: CaptureStats, at: str) -> Entry:
    """Return the buffer from queueing delays; at least 1 BDP if the buffer was never full."""
    if stats.is_short_transfer and not estimated_loss_ratio(stats.table):
        return Entry(at, "buffer", "unlimited", "no packet was lost")
    if math.isnan(stats.link_bps) and stats.is_rate_explained_without_link:
        return Entry(at, "buffer", "1bdp", "unknown; the queue is nearly empty at this rate")
    full = stats.full_queue_rtt_s - stats.rtt_min_s
    why = "99th percentile of the RTT minus minimum RTT, times the rate"
    if stats.is_tap_behind_queue:
        full = stats.full_queue_before_tap_s
        why = "full queue, estimated from the mean queueing delay that timestamps show"
    if math.isnan(full):
        return Entry(at, "buffer", "1bdp", "unknown, because the capture is from behind the queue")
    link = stats.link_bps if stats.link_bps > 0 else stats.rate_bps
    queued = round(full * link / (8 * stats.packet_bytes)) + 1
    if not stats.has_queue_overflow and queued < stats.rtt_min_s * link / (8 * stats.packet_bytes):
        most = "on average" if stats.is_tap_behind_queue else "at most"
        return Entry(at, "buffer", "1bdp", f"never full; {most} {queued} packets were queued")
    return Entry(at, "buffer", f"{queued}pkt", why)


def _traffic_entries(stats: CaptureStats) -> Iterator[Entry]:
    if stats.is_application_limited:
        yield from _application_entries(stats)
        return
    if stats.is_short_transfer:
        yield Entry("traffic", "kind", "transfers", "one short transfer, captured completely")
        data = math.ceil(float(stats.table["unique_bytes"].sum()) / stats.payload_bytes)
        yield Entry("traffic", "size", f"{max(data, 1)}pkt", "data without retransmissions")
        yield Entry("traffic", "count", TRANSFER_COUNT, "many transfers, for narrow 95 % intervals")
        return
    captured = stats.table["src"].size
    why = (
        "as captured"
        if captured == stats.flows
        else f"mean number of simultaneous flows; {captured} flows were captured"
    )
    yield Entry("traffic", "kind", "bulk", "assumes that data were always available")
    yield Entry("traffic", "flows", stats.flows, why)
    if stats.has_slow_reader:
        read_bps = round_to_digits(8 * stats.mean_flow_pps * stats.payload_bytes)
        yield Entry(
            "traffic",
            "reads",
            units.format_rate(read_bps),
            "measured goodput of a flow, because the receiving application limits it",
        )


def _writes_per_file_and_off_s(stats: CaptureStats) -> tuple[int, float]:
    """Return the number of writes per file of an on/off source, and its OFF time in seconds.

    The OFF time of a source begins with the last ack. Writes that follow so soon that this ack
    comes later than half of a cycle are combined. An OFF time of 0 or less means that no number of
    writes fits. Linux halves the window for each RTO without data.
    """
    (rtt_s, _), (rate_bps, _) = _rtt_and_rate(stats)
    cycle_s = float(np.nansum(stats.table["duration_s"])) / stats.write_count
    initial = stats.packet_weighted_mean("initial_window_pkts")
    initial = round(initial) if initial >= 1 else INITIAL_WINDOW

    def off_s(writes: int) -> float:
        size = _packets_in_writes(stats, writes)
        halvings = (writes * cycle_s - rtt_s) / (rtt_s + LINUX_MIN_RTO_MINUS_RTT_S)
        kept = size >> max(0, min(int(halvings), size.bit_length()))
        rounds = lossless_round_trips(size, max(initial, kept), np.inf)
        sent_s = 8 * size * stats.packet_bytes / rate_bps
        return writes * cycle_s - max(rounds * rtt_s, rtt_s + sent_s)

    every = range(1, stats.write_count + 1)
    fitting = (writes for writes in every if off_s(writes) >= writes * cycle_s / 2)
    count = next(fitting, stats.write_count)
    return count, off_s(count)


def _packets_in_writes(stats: CaptureStats, writes: int) -> int:
    return max(1, round(writes * stats.write_bytes / stats.payload_bytes))


def _application_entries(stats: CaptureStats) -> Iterator[Entry]:
    """Yield sources that send as much per cycle of writing and silence as the captured flows."""
    count, off_s = _writes_per_file_and_off_s(stats)
    of = "mean" if count == 1 else f"{count} times the mean"
    yield Entry("traffic", "kind", "on-off", "the application had no data most of the time")
    yield Entry("traffic", "sources", stats.flows, "mean number of simultaneous flows")
    yield Entry("traffic", "connection", "persistent", "one connection for all writes")
    yield Entry("traffic.size", "distribution", "constant")
    yield Entry(
        "traffic.size",
        "value",
        f"{_packets_in_writes(stats, count)}pkt",
        f"{of} amount of data that a flow sent before it ran out of data "
        f"({stats.write_count:,} times)",
    )
    yield Entry("traffic.off", "distribution", "constant")
    yield Entry(
        "traffic.off",
        "value",
        time_in_scenario_syntax(off_s),
        f"{of} time per write, minus the time until the last ack",
    )


def _run_entries(stats: CaptureStats) -> Iterator[Entry]:
    if stats.is_application_limited:
        why = "many writes, for narrow 95 % intervals"
        yield Entry("run", "transfers", TRANSFER_COUNT, why)
        yield Entry("run", "warmup", "0s", "the capture includes slow start")
    elif not stats.is_short_transfer:
        yield Entry(
            "run",
            "duration",
            time_in_scenario_syntax(stats.duration_s),
            "time with data in the capture",
        )
        yield Entry("run", "warmup", "0s", "the capture includes slow start")
        many = min(
            MAX_SIMULATED_S / stats.duration_s, MAX_PACKETS / stats.packets_sent, MAX_REPLICATIONS
        )
        if many >= 2:
            yield Entry(
                "run",
                "replications",
                int(many),
                "a single run of this duration gives wide intervals",
            )
    yield Entry("run", "seed", 1)


def _omitted_limit_warnings(stats: CaptureStats) -> Iterator[str]:
    """Yield warnings about limits of the captured flows that the scenario does not include."""
    if stats.sequential_transfer_count:
        yield (
            f"{stats.sequential_transfer_count} of {stats.table['src'].size} connections were "
            "shorter than "
            "half of the capture, but the flows of the scenario never end; for sequential "
            'transfers, use traffic of kind "on-off" or "transfers"'
        )
    left_out = {"share_application": "the application", "share_send_buffer": "the send buffer"}
    left_out.pop(
        "share_application" if stats.is_application_limited else f"share_{stats.limit}", ""
    )
    for name, what in left_out.items():
        share = stats.packet_weighted_mean(name)
        if share > MIN_WARNING_SHARE:
            yield (
                f"the flows were limited by {what} {format_percent(share)} of the time; the "
                "scenario "
                "does not include this limit"
            )
    share = stats.packet_weighted_mean("share_timeout")
    deepest = int(stats.table["max_backoff"].max())
    if share > MIN_WARNING_SHARE and deepest >= MIN_OUTAGE_TIMEOUTS:
        yield (
            f"the flows waited for the RTO {format_percent(share)} of the time, with up to "
            f"{deepest} consecutive timeouts; the scenario does not include this outage"
        )
    share = stats.packet_weighted_mean("share_receiver_window")
    closed = (stats.table["zero_windows"] > 0).any()
    if share > MIN_WARNING_SHARE and closed and not stats.has_slow_reader:
        yield (
            f"the flows were limited by the receiver window {format_percent(share)} of the time, "
            "and "
            "this window closed temporarily; the scenario always uses the largest window"
        )


MAX_ACK_GROWTH_PKTS = 0.75
"""Growth in packets per round below which windows are assumed to grow by ACKs (1/b per round);
above it, by acknowledged packets (1 per round)."""

MIN_AMPLE_WINDOW_RATIO = 2.0
"""Minimum ratio of the largest announced window to the largest flight for a window without
effect."""

CUBIC_REDUCTION_RANGE = (0.6, 0.8)
"""Range of the factor by which a loss reduces CUBIC's window: 0.7 (Reno: 0.5, BBR: larger)."""

MIN_DIFFERENCE_RATIO = 1.25
"""Ratio of the larger to the smaller value above which two values are considered different."""


def tcp_entries(stats: CaptureStats) -> Iterator[Entry]:
    """Yield the values of the table ``tcp``.

    Modern stacks have the delayed ACKs and timers of Linux; classic stacks have the measured
    delayed ACKs and timers.
    """
    yield Entry("tcp", "stack", stats.sender.stack, stats.sender.evidence)
    if stats.sender.is_modern and not stats.sender.timestamps:
        yield Entry("tcp", "timestamps", value=False, comment="none captured")
    window = stats.packet_weighted_mean("initial_window_pkts")
    if window >= 1:
        yield Entry("tcp", "initial_window", round(window), "packets sent before the first ack")
    is_ample = bool(
        stats.limit != "send_buffer"
        and not stats.has_slow_reader
        and stats.packet_weighted_mean("w_max_pkts") * stats.payload_bytes
        >= MIN_AMPLE_WINDOW_RATIO * stats.packet_weighted_mean("flight_max_bytes")
    )
    if not (stats.sender.is_modern and is_ample):
        yield _window_entry(stats)
    yield from _modern_timer_entries(stats) if stats.sender.is_modern else _classic_entries(stats)


def _window_entry(stats: CaptureStats) -> Entry:
    most = stats.window_pkts
    if not most >= 1:
        why = "unknown"
        return Entry("tcp", "receiver_window", "unlimited", why)
    why = "largest advertised window in packets"
    if stats.limit == "send_buffer":
        why = "largest number of packets in flight; the send buffer acts like a receiver window"
    elif not stats.packet_weighted_mean("w_max_pkts") >= 1:
        why = (
            "the advertised window is unknown; this is the amount of data in flight, which is "
            "nearly constant"
        )
    return Entry("tcp", "receiver_window", int(most), why)


def _modern_timer_entries(stats: CaptureStats) -> Iterator[Entry]:
    least = min_rto_s(stats.table)
    if least > 0:
        why = "mean first timeout minus mean RTT; usually 200 ms"
        yield Entry("tcp", "min_rto", time_in_scenario_syntax(least), why)


def _classic_entries(stats: CaptureStats) -> Iterator[Entry]:
    delayed, why = _delayed_acks_and_reason(stats)
    yield Entry("tcp", "delayed_acks", delayed, why)
    timer = first_timeout_s(stats.table)
    why = "measured T0, the mean first timeout"
    if not timer > 0:
        timer = stats.rtt_s + LINUX_MIN_RTO_MINUS_RTT_S
        why = "RTT + 200 ms, as in Linux, because there was no timeout"
    yield Entry("tcp", "min_rto", time_in_scenario_syntax(min(timer, 64.0)), why)


def _delayed_acks_and_reason(stats: CaptureStats) -> tuple[bool, str]:
    acknowledged = stats.packet_weighted_mean("packets_per_ack")
    if not acknowledged >= MIN_DELAYED_ACK_PACKETS:
        return False, f"{acknowledged:.3g} packets per ack"
    if does_window_grow_by_acks(stats):
        return True, f"{acknowledged:.3g} packets per ack"
    return False, f"{acknowledged:.3g} packets per ack, but the window grows per acked packet"


def does_window_grow_by_acks(stats: CaptureStats) -> bool:
    """Return True if windows grow by acks instead of acknowledged packets.

    Modern senders count acknowledged packets; their growth is not a criterion, because CUBIC grows
    by only half a packet per round in its Reno-friendly region.
    """
    return bool(
        stats.window_growth_per_round_pkts < MAX_ACK_GROWTH_PKTS and not stats.sender.is_modern
    )


def tcp_warnings(stats: CaptureStats) -> Iterator[str]:
    """Yield warnings about differences between the senders and the stack of the scenario."""
    if stats.sender.is_modern:
        yield from _modern_warnings(stats)
        return
    left = stats.packet_weighted_mean("window_reduction")
    low, high = CUBIC_REDUCTION_RANGE
    if low <= left:
        control = "CUBIC" if left <= high else "BBR or another TCP with pacing"
        yield (
            f"a loss reduces the window to {left:.2f} of its size, as with {control}; the "
            "NewReno stack of the scenario halves the window"
        )
    acknowledged = stats.packet_weighted_mean("packets_per_ack")
    by_acks, by_bytes = (pps_predicted_from_losses(stats, b) for b in (acknowledged, 1.0))
    reached = stats.mean_flow_pps
    if by_bytes > MIN_DIFFERENCE_RATIO * by_acks and abs(by_bytes - reached) < abs(
        by_acks - reached
    ):
        yield (
            "the window seems to grow per acked packet, not per ack. An ack covers "
            f"{acknowledged:.3g} packets, but the measured {reached:.3g} packets/s per flow are "
            f"closer to PFTK with b = 1 ({by_bytes:.3g} packets/s) than to PFTK with "
            f"b = {acknowledged:.3g} ({by_acks:.3g} packets/s)"
        )


def _modern_warnings(stats: CaptureStats) -> Iterator[str]:
    """Yield warnings about different congestion controls and about ECN marks."""
    names, counts = np.unique(stats.table["looks_like"], return_counts=True)
    found = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    found.pop(UNKNOWN, None)
    if len(found) > 1:
        which = ", ".join(f"{count} like {name}" for name, count in found.items())
        yield (
            f"the flows use different congestion controls ({which}); in the scenario, all flows "
            f"use {stats.sender.stack}"
        )
    marked = int(stats.table["window_reductions"].sum())
    if marked:
        yield (
            f"{marked} window reductions were caused by ECN marks, but the queue in the scenario "
            "drops packets instead of marking them"
        )
