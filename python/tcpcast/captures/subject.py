"""The subject of the verdict on a capture: failures, a service, or transfers.

Text, JSON, HTML and Markdown use the same :class:`Subject`, and the sections of a report follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tcpcast.answer.limit_names import LIMIT_NAMES
from tcpcast.captures.advice import cause_or_limit_keys
from tcpcast.captures.cause_rules import UNKNOWN
from tcpcast.captures.failed_connections import count_failures_with_loss, old_connection_delay_s
from tcpcast.captures.groups import active_times_and_flow_counts, group_mask, host_address
from tcpcast.captures.services import MIN_REQUESTS_FOR_SLOWEST
from tcpcast.captures.table import select_rows, start_times_ns

if TYPE_CHECKING:
    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables

    Column = np.ndarray[Any, Any]

Kind = Literal[
    "none", "failures", "old_connection", "service", "transfer", "parallel", "transfers", "group"
]

TRANSFER_KINDS = ("transfer", "parallel", "transfers", "group")
"""Kinds of subjects that are judged by what limits their rate."""
MIN_MAIN_SHARE = 0.5
"""Minimum share of the bytes for transfers to be the subject, and for one transfer to be the
subject instead of all. Minimum share of the connections for failures to be the subject."""
MAX_SINGLE_FLOW_SHARE = 0.8
"""Maximum share of one flow in the bytes of parallel flows; above it, the others are negligible."""
MIN_BYTE_SHARE = 0.01
"""Minimum share of the bytes of a connection for its RST, and of a service for its latency, to be
worth mentioning next to a transfer."""
MAX_FLIGHT_TIME_NS = 1_000_000_000
"""Maximum time in which data sent before a RST still arrive: the initial RTO (RFC 6298)."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What the verdict on a capture is about.

    Parameters
    ----------
    kind
        ``failures`` of connections, the delay by an ``old_connection``, one ``service``, one
        ``transfer``, ``parallel`` flows between two hosts, all ``transfers`` of the capture, a
        ``group`` of ``--group-by``, or ``none``.
    limit
        The limit of most bytes: a key of :data:`tcpcast.answer.limit_names.LIMIT_NAMES`; for a
        service, its ``cause``; "" for other kinds.
    source, destination
        End points of a transfer, hosts of parallel flows and groups; otherwise "".
    server
        Address and port of a service; otherwise "".
    row
        Row of the service or group; -1 for other kinds.
    flows, bytes, throughput_bps
        Number of directions, their bytes, and their rate while at least one was active in bit/s
        (NaN if unknown); 0, 0 and NaN unless the subject is judged by its rate.
    failures
        Number of failed connections that matter next to the subject.
    directions
        Rows of ``connections`` that the verdict is about, the largest first.
    """

    kind: Kind
    limit: str = ""
    source: str = ""
    destination: str = ""
    server: str = ""
    row: int = -1
    flows: int = 0
    bytes: int = 0
    throughput_bps: float = float("nan")
    failures: int = 0
    directions: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the subject as in ``tcpcast trace --json``."""
        bps = self.throughput_bps
        return {
            "kind": self.kind,
            "limit": self.limit,
            "src": self.source,
            "dst": self.destination,
            "server": self.server,
            "flows": self.flows,
            "bytes": self.bytes,
            "throughput_bps": bps if np.isfinite(bps) else None,
            "failures": self.failures,
        }


def capture_subject(capture: CaptureTables, groups: Table | None = None) -> Subject:
    """Return the subject of the verdict.

    Failures are the subject if at least half of the connections failed, except for a RST that
    matters less than a transfer. The delay by old connections between the same ports is the subject
    if it exceeds the time of all requests and transfers. Otherwise, transfers are the subject if
    they carry at least half of the bytes: the largest one with the flows parallel to it or, without
    a main transfer, all.
    Otherwise, the subject is the service whose clients waited longest in total.

    Parameters
    ----------
    capture
        The results of one capture.
    groups
        Groups of flows of this capture; the subject is then the group with the most bytes.
    """
    table = capture.connections
    rows, is_transfer = _transfer_rows(capture)
    sizes = table["bytes"][rows]
    failures = count_failures_with_loss(relevant_failure_counts(capture))
    if failures > 0 and (
        failures >= MIN_MAIN_SHARE * capture.connection_count or not table["src"].size
    ):
        return Subject("failures", failures=failures)
    delay_s = old_connection_delay_s(capture.failed)
    if delay_s > 0 and delay_s > _other_time_s(capture, rows if is_transfer else rows[:0]):
        return Subject("old_connection", failures=failures)
    if not table["src"].size:
        return Subject("none", failures=failures)
    if groups is not None:
        return _group_subject(table, groups, failures)
    if not is_transfer:
        return _service_subject(capture, failures)
    order = rows[np.argsort(-sizes, kind="stable")]
    is_known = cause_or_limit_keys(table)[order] != UNKNOWN
    similar = table["bytes"][order] >= MIN_MAIN_SHARE * table["bytes"][order[0]]
    if not is_known[0] and (is_known & similar).any():  # for example, the other way of --bidir
        first = int(np.argmax(is_known & similar))
        order = np.concatenate([order[first : first + 1], np.delete(order, first)])
    main = _parallel_rows(table, order)
    kind: Kind = "parallel"
    # The data of the opposite direction, as with iperf3 --bidir, are no reason to name both.
    way = [host_address(str(table[end][order[0]])) for end in ("dst", "src")]
    others = ~group_mask({end: table[end][order] for end in ("src", "dst")}, *way)
    if table["bytes"][main].sum() < MIN_MAIN_SHARE * table["bytes"][order[others]].sum():
        main, kind = order, "transfers"
    if main.size == 1:
        kind = "transfer"
    return _subject_of_rows(kind, table, main, failures)


def _transfer_rows(capture: CaptureTables) -> tuple[Column, bool]:
    """Return the rows of transfers, and True if they are the subject instead of a service."""
    table = capture.connections
    rows = np.flatnonzero(table["service"] < 0)
    is_most = table["bytes"][rows].sum() >= MIN_MAIN_SHARE * table["bytes"].sum()
    return rows, bool((rows.size and is_most) or not capture.services["server"].size)


def relevant_failures(capture: CaptureTables) -> Table:
    """Return the rows of ``failed`` without minor resets."""
    return select_rows(capture.failed, ~_minor_resets(capture))


def relevant_failure_counts(capture: CaptureTables) -> dict[str, int]:
    """Return the counts of a capture, in which minor resets are resets without loss."""
    harmless = capture.rest.get("reset_without_loss", 0) + int(_minor_resets(capture).sum())
    return capture.rest | {"reset_without_loss": harmless}


def _subject_of_rows(kind: Kind, table: Table, rows: Column, failures: int) -> Subject:
    part = select_rows(table, rows)
    active = active_times_and_flow_counts(part, np.zeros(rows.size, dtype=np.int64), 1)["active_s"]
    ends = [str(part[end][0]) for end in ("src", "dst")]
    source, destination = ends if kind == "transfer" else [host_address(end) for end in ends]
    if kind == "transfers":
        source = destination = ""
    sent = int(part["bytes"].sum())
    bps = (
        part["throughput_bps"][0]
        if rows.size == 1
        else 8 * sent / active[0]
        if active[0]
        else np.nan
    )
    return Subject(
        kind,
        limit=str(bytes_by_limit(part)["limit"][0]),
        source=source,
        destination=destination,
        flows=int(rows.size),
        bytes=sent,
        throughput_bps=float(bps),
        failures=failures,
        directions=tuple(rows.tolist()),
    )


def _group_subject(table: Table, groups: Table, failures: int) -> Subject:
    row = int(np.argmax(groups["bytes"]))
    source, destination = str(groups["src"][row]), str(groups["dst"][row])
    rows = np.flatnonzero(group_mask(table, source, destination))
    rows = rows[np.argsort(-table["bytes"][rows], kind="stable")]
    return Subject(
        "group",
        limit=str(bytes_by_limit(select_rows(table, rows))["limit"][0]),
        source=source,
        destination=destination,
        row=row,
        flows=int(groups["flows"][row]),
        bytes=int(groups["bytes"][row]),
        throughput_bps=float(groups["throughput_bps"][row]),
        failures=failures,
        directions=tuple(rows.tolist()),
    )


def _waited_s(services: Table) -> Column:
    """Return the total time in seconds that the clients of each service waited."""
    waited = np.nan_to_num(services["mean_s"]) * services["measured"]
    return np.asarray(waited + services.get("late_wait_total_s", 0.0))


def _other_time_s(capture: CaptureTables, transfers: Column) -> float:
    """Return the total time in seconds of the requests and of some transfers."""
    lasted = np.nan_to_num(capture.connections["duration_s"][transfers])
    return float(_waited_s(capture.services).sum() + lasted.sum())


def _service_subject(capture: CaptureTables, failures: int) -> Subject:
    services, table = capture.services, capture.connections
    row = int(np.argmax(_waited_s(services)))
    return Subject(
        "service",
        limit=str(services["cause"][row]),
        server=str(services["server"][row]),
        row=row,
        failures=failures,
        directions=tuple(np.flatnonzero(table["service"] == row).tolist()),
    )


def _parallel_rows(table: Table, order: Column) -> Column:
    """Return the largest transfer and the transfers between the same hosts at the same time.

    ``order`` holds the rows of the transfers, the largest first.
    """
    first = int(order[0])
    source, destination = (host_address(str(table[end][first])) for end in ("src", "dst"))
    begin, end = _active_times(table)
    together = order[(begin[order] <= end[first]) & (end[order] >= begin[first])]
    ends = {name: table[name][together] for name in ("src", "dst")}
    rows: Column = together[group_mask(ends, source, destination)]
    alone = table["bytes"][first] >= MAX_SINGLE_FLOW_SHARE * table["bytes"][rows].sum()
    return rows[:1] if alone else rows


def _active_times(table: Table) -> tuple[Column, Column]:
    """Return the first and the last time of data of each direction, in nanoseconds."""
    begin = start_times_ns(table)
    lasted = np.nan_to_num(table["duration_s"] * 1e9).astype(np.int64)
    return begin, begin + np.minimum(lasted, np.iinfo(np.int64).max - begin)


def _minor_resets(capture: CaptureTables) -> Column:
    """Return a mask of failed connections whose RST matters less than the transfers.

    This is a RST on a connection with few bytes, or a RST with which an application ends a
    transfer: a small connection between the same hosts begins before the RST, continues after it,
    and is not reset, like the control connection of iperf3. Without transfers, no RST is minor.
    """
    failed, table = capture.failed, capture.connections
    reset = (failed["failure"] == "reset") & ~failed["harmless"]
    transfers, are_subject = _transfer_rows(capture)
    if not reset.any() or not (transfers.size and are_subject):
        return np.zeros(reset.size, dtype=bool)
    numbers, rows, connection = np.unique(
        table["connection"], return_index=True, return_inverse=True
    )
    sizes = np.bincount(connection, weights=table["bytes"], minlength=numbers.size)
    starts, ends = _active_times(table)
    # Data in flight arrive for up to one RTT after the RST, with the queue of the path.
    flying = np.minimum(MAX_FLIGHT_TIME_NS, ends - starts)
    begin = np.full(numbers.size, np.iinfo(np.int64).max)
    end, reset_time = np.zeros(numbers.size, np.int64), np.zeros(numbers.size, np.int64)
    np.minimum.at(begin, connection, starts)
    np.maximum.at(end, connection, ends)
    np.maximum.at(reset_time, connection, ends - flying)
    is_small = sizes < MIN_BYTE_SHARE * sizes.sum()
    hosts = [
        frozenset((host_address(source), host_address(destination)))
        for source, destination in zip(
            table["src"][rows].tolist(), table["dst"][rows].tolist(), strict=True
        )
    ]
    controls: dict[frozenset[str], list[int]] = {}
    is_reset = np.isin(numbers, failed["connection"][failed["failure"] == "reset"])
    for at in np.flatnonzero(is_small & ~is_reset)[
        np.argsort(begin[is_small & ~is_reset], kind="stable")
    ].tolist():
        controls.setdefault(hosts[at], []).append(at)
    latest = {pair: np.maximum.accumulate(end[found]) for pair, found in controls.items()}
    minor = np.zeros(reset.size, dtype=bool)
    for row in np.flatnonzero(reset).tolist():
        at = int(np.searchsorted(numbers, failed["connection"][row]))
        if at == numbers.size or numbers[at] != failed["connection"][row] or is_small[at]:
            minor[row] = True
            continue
        found = controls.get(hosts[at], [])
        before = int(np.searchsorted(begin[found], reset_time[at], "right"))
        minor[row] = before > 0 and latest[hosts[at]][before - 1] > reset_time[at]
    return minor


def minor_services(capture: CaptureTables, subject: Subject) -> Column:
    """Return a mask of services that need no advice, because a transfer is the subject.

    These carry few bytes, and few requests, like the control connection of iperf3, or only the
    other direction of transfers, like the replies of SFTP.
    """
    services, table = capture.services, capture.connections
    if subject.kind not in TRANSFER_KINDS:
        return np.zeros(services["server"].size, dtype=bool)
    served = table["service"] >= 0
    sizes = np.bincount(
        table["service"][served], weights=table["bytes"][served], minlength=services["server"].size
    )
    few = sizes < MIN_BYTE_SHARE * table["bytes"].sum()
    beside = np.isin(table["connection"], table["connection"][~served]) | ~served
    is_beside = np.ones(services["server"].size, dtype=bool)
    is_beside[table["service"][~beside]] = False
    return np.asarray(few & (is_beside | (services["requests"] < MIN_REQUESTS_FOR_SLOWEST)))


def bytes_by_limit(table: Table) -> Table:
    """Return the bytes per limit of some directions, sorted by bytes.

    Columns: ``limit`` (a value of ``limited_by``, or a cause that is not a sender state),
    ``directions``, ``bytes`` and ``byte_share``.
    """
    names = {name: key for key, name in reversed(LIMIT_NAMES.items())}
    keys = [names[LIMIT_NAMES[key]] for key in cause_or_limit_keys(table).tolist()]
    limit, group = np.unique(np.array(keys, dtype=np.str_), return_inverse=True)
    sizes = np.bincount(group, weights=table["bytes"], minlength=limit.size)
    order = np.argsort(-sizes, kind="stable")
    return {
        "limit": limit[order],
        "directions": np.bincount(group, minlength=limit.size)[order],
        "bytes": sizes[order].astype(np.int64),
        "byte_share": sizes[order] / max(float(sizes.sum()), 1.0),
    }
