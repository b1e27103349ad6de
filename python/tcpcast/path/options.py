"""One path, as options say it: each option read and checked, and the scenario they make."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.engines.formula.feed import MIN_LOSS
from tcpcast.errors import ScenarioError, TcpcastError, UnitError
from tcpcast.option import option_names
from tcpcast.path.rows import PATH, PathRows
from tcpcast.path.run_size import PathToSimulate, max_wall, simulated_s, transfers
from tcpcast.ranges import DEFAULT_POINTS, MAX_POINTS, Quantity, is_range, values
from tcpcast.scenario import Scenario
from tcpcast.scenario.link import Buffer, read_buffer
from tcpcast.scenario.modern_tcp import DEFAULT_STACK, TIMESTAMP_BYTES, has_timestamps
from tcpcast.scenario.network import HEADER_BYTES
from tcpcast.scenario.traffic import MOST_SOURCES
from tcpcast.units import format_duration, parse_duration, parse_packets, parse_rate, parse_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


MOST_MSS = 65_495
MOST_INITIAL_WINDOW = 10**6
CURVE_POINTS = 61
CURVE_REACH = 30.0
"""How many times less and more loss than asked a curve shows."""

MOST_LOSS_DRAWN = 0.5
LOSSES_OF_PATHS = (1e-6, 0.1)
PACKET_BYTES = 1500
"""Length of a packet where no option says it."""

DEFAULT_BUFFER = "1bdp"
"""Buffer of a link with a rate, unless an option sets it."""

RANGED = tuple(name for name, row in PATH.items() if row.example)
"""Options that take a range, in the order of the table's columns."""

OPTIONS = option_names(PATH.values())
"""The option behind a key of the scenario, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOptions(PathRows):
    """A path as typed; the options of :data:`RANGED` may be ranges."""

    @property
    def _header_bytes(self) -> int:
        """What the stack adds to the payload; of an unknown stack what most have."""
        tcp = {} if self.stack is None else {"stack": self.stack}
        return HEADER_BYTES + (TIMESTAMP_BYTES if has_timestamps(tcp) else 0)

    @property
    def payload_bytes(self) -> int:
        """Bytes that a packet carries: ``--mss``, or what fits into one of 1500 bytes."""
        return PACKET_BYTES - self._header_bytes if self.mss is None else _mss_bytes(self.mss)

    @property
    def ranges(self) -> list[str]:
        """The options that were given a range."""
        return [name for name in RANGED if is_range(getattr(self, name))]

    @property
    def packet_bytes(self) -> int:
        """Length of a packet with its headers."""
        return self.payload_bytes + self._header_bytes

    def path(self, point: Mapping[str, str]) -> PathToSimulate:
        """Return what says how long a simulation takes, at one point of the ranges."""
        rtt_s, rate_bps = parse_duration(point["rtt"]), parse_rate(point.get("rate", "unlimited"))
        buffer, packet_bytes, buffer_pkts = _buffer(point), self.packet_bytes, 0.0
        if buffer is not None:
            link_buffer = read_buffer(buffer)
            buffer_pkts = link_buffer.packets(
                packet_bytes=packet_bytes, rate_bps=rate_bps, rtt_s=rtt_s
            )
        return PathToSimulate(
            rtt_s=rtt_s,
            loss_ratio=_read_loss(point.get("loss", "0%")),
            link_pps=rate_bps / (8 * packet_bytes),
            flows=int(point.get("flows", "1")),
            stack=self.stack or DEFAULT_STACK,
            buffer_pkts=buffer_pkts,
        )

    def tables(self, point: Mapping[str, str]) -> dict[str, Any]:
        """Return a scenario's tables, all but the traffic, at one point of the ranges."""
        rate = point.get("rate")
        bottleneck = {"loss": point.get("loss"), "rate": rate, "buffer": _buffer(point)}
        tcp = {
            "stack": self.stack,
            "receiver_window": _window(self.rwnd),
            "initial_window": _initial_window(self.iw),
            "min_rto": self.min_rto,
            "delayed_acks": self.delayed_acks or None,
        }
        path = self.path(point)
        run = {"duration": format_duration(simulated_s(path)), "max_wall": max_wall(path)}
        return {
            "name": "path",
            "network": {
                "rtt": point["rtt"],
                "packet": f"{self.packet_bytes}B",
                "bottleneck": bottleneck,
            },
            "tcp": tcp,
            "run": run,
        }


def _buffer(point: Mapping[str, str]) -> str | None:
    """Return the buffer of the link, None if it has no rate and thus no queue."""
    if point.get("rate", "unlimited") != "unlimited":
        return point.get("buffer", DEFAULT_BUFFER)
    if "buffer" in point:
        raise UnitError("--buffer: a link without a rate has no queue; write --rate 100mbit, say")
    return None


def is_default_buffer(options: PathOptions, point: Mapping[str, str]) -> bool:
    """Return True if the link has a buffer that no option sets."""
    return options.buffer is None and _buffer(point) is not None


def points(options: PathOptions, asked: int | None) -> list[dict[str, str]]:
    """Return the values of the ranged options, point by point; one point without any range.

    Parameters
    ----------
    options
        The path.
    asked
        ``--points``: how many values each range has; None for the default.

    Raises
    ------
    UnitError
        A value or a range that cannot be read.
    TcpcastError
        ``--points`` without a range, or more points than :data:`MAX_POINTS` in all.
    """
    if asked is not None and not options.ranges:
        raise TcpcastError("--points: nothing is a range; write --loss 0.01%..10%, say")
    count = DEFAULT_POINTS if asked is None else asked
    if not 2 <= count <= MAX_POINTS:
        raise UnitError(f"--points: {count} is out of range; write from 2 to {MAX_POINTS}")
    taken = quantities(options)
    given = _given(options).items()
    columns = {name: values(taken[name], text, count) for name, text in given}
    number = math.prod(len(column) for column in columns.values())
    if number > MAX_POINTS:
        raise TcpcastError(
            f"{number} points in all; write fewer ranges, or --points "
            f"{max(2, int(MAX_POINTS ** (1 / len(options.ranges))))}, for at most {MAX_POINTS}"
        )
    return [dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())]


def curve_points(options: PathOptions, losses: Sequence[float]) -> list[dict[str, str]]:
    """Return points for a curve over loss: about one loss, or over all of several.

    Parameters
    ----------
    options
        The path; no option but the loss is a range.
    losses
        The losses asked about; a single 0 shows the losses of most paths.
    """
    low, high = min(losses), max(losses)
    if high == 0:
        low, high = LOSSES_OF_PATHS
    elif low == high:
        low, high = low / CURVE_REACH, min(high * CURVE_REACH, MOST_LOSS_DRAWN)
    quantity = quantities(options)["loss"]
    ends = "..".join(quantity.write(end) for end in (low, max(high, 1.01 * low)))
    fixed = {name: text for name, text in _given(options).items() if name != "loss"}
    return [{**fixed, "loss": text} for text in values(quantity, ends, CURVE_POINTS)]


def _given(options: PathOptions) -> dict[str, str]:
    given = {name: getattr(options, name) for name in RANGED}
    return {name: text for name, text in given.items() if text is not None}


def bulk_scenario(options: PathOptions, point: Mapping[str, str]) -> Scenario:
    """Return the path with flows that never end.

    Raises
    ------
    UnitError, ScenarioError
        A value out of range, or nothing that limits the flows; the message names the option.
    """
    if nothing_limits(options, point):
        given = f"{point['loss']} loses nothing, and " if "loss" in point else ""
        raise UnitError(
            f"--loss: {given}nothing limits the flow; write --loss 1%, --rate 100mbit or "
            "--rwnd 64KiB, or --size 100KB for one transfer"
        )
    return _scenario(bulk_tables(options, point))


def bulk_tables(options: PathOptions, point: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables of :func:`bulk_scenario`; None stands for what was left out."""
    flows = int(point.get("flows", "1"))
    return {**options.tables(point), "traffic": {"kind": "bulk", "flows": flows}}


def transfer_pkts(options: PathOptions, point: Mapping[str, str]) -> float | None:
    """Return the packets of a transfer of ``--size``, the last perhaps in part; None without."""
    if "size" not in point:
        return None
    return parse_packets(point["size"], payload_bytes=options.payload_bytes)


def transfer_scenario(options: PathOptions, point: Mapping[str, str]) -> Scenario:
    """Return the path with transfers of ``--size``, each alone on the empty path.

    Raises
    ------
    UnitError, ScenarioError
        As :func:`bulk_scenario`.
    """
    return _scenario(transfer_tables(options, point))


def transfer_tables(options: PathOptions, point: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables of :func:`transfer_scenario`; None stands for what was left out."""
    count = transfers(transfer_pkts(options, point) or 0.0)
    traffic = {"kind": "transfers", "size": point["size"], "count": count}
    tables = options.tables(point)
    # Transfers are counted; how long they take together follows.
    run = {key: value for key, value in tables["run"].items() if key != "duration"}
    return {**tables, "run": run, "traffic": traffic}


def _scenario(tables: Mapping[str, Any]) -> Scenario:
    try:
        return Scenario.from_dict(tables)
    except ScenarioError as fault:
        raise fault.renamed(OPTIONS) from None


def nothing_limits(options: PathOptions, point: Mapping[str, str]) -> bool:
    """Say whether flows that never end would grow without bounds: no loss, link or window."""
    lossless = parse_ratio(point.get("loss", "0%")) < MIN_LOSS
    unlimited = (point.get("rate", "unlimited"), options.rwnd or "unlimited")
    return lossless and set(unlimited) == {"unlimited"}


def quantities(options: PathOptions) -> dict[str, Quantity]:
    """Return how each option of :data:`RANGED` is read and written."""
    return {
        "rtt": _quantity("rtt", _read_rtt, units.format_duration),
        "loss": _quantity("loss", _read_loss, units.format_ratio),
        "rate": _quantity("rate", units.parse_rate, units.format_rate),
        "buffer": _buffer_quantity(options),
        "flows": _quantity("flows", _read_flows, lambda n: f"{n:.0f}", whole=True),
        "size": _size_quantity(options),
    }


def _quantity(
    name: str, read: Callable[[str], float], write: Callable[[float], str], *, whole: bool = False
) -> Quantity:
    row = PATH[name]
    return Quantity(row.flag, read, write, row.example, whole=whole)


def _buffer_quantity(options: PathOptions) -> Quantity:
    """Return the type of ``--buffer``; the values of a range have the unit of its ends."""
    ends = (options.buffer or DEFAULT_BUFFER).split("..")
    try:
        found = {read_buffer(end).unit for end in ends if end.strip()}
    except UnitError:  # raised again where the values are read, with the name of the option
        found = set()
    if len(found) > 1:
        example = PATH["buffer"].example
        raise UnitError(f"--buffer: its ends have different units; write {example}, say")

    def write(amount: float) -> str:
        return str(Buffer(next(iter(found), "bdp"), amount))

    whole = bool(found & {"packets", "bytes"})
    return _quantity("buffer", lambda text: read_buffer(text).amount, write, whole=whole)


def _size_quantity(options: PathOptions) -> Quantity:
    """Return what ``--size`` takes: bytes if all of it is in bytes, else packets."""
    ends = (options.size or "").split("..")
    if all(end.strip().endswith("B") for end in ends):
        return _quantity("size", _read_bytes, _write_bytes, whole=True)
    for end in ends:
        if end.strip() and re.fullmatch(r"[0-9.]+", end.strip()):
            wanted = f"{end.strip()}pkt or {end.strip()}B"
            raise UnitError(f'--size: "{end.strip()}" has no unit; write {wanted}')
    read = partial(_read_packets, payload_bytes=options.payload_bytes)
    return _quantity("size", read, lambda n: f"{n:.0f}pkt", whole=True)


def _read_rtt(text: str) -> float:
    seconds = units.parse_duration(text)
    if seconds == 0:
        raise UnitError(f'{units.show(text)} must be above 0; write "100ms"')
    return seconds


def _read_loss(text: str) -> float:
    ratio = units.parse_ratio(text)
    if ratio >= 1:
        raise UnitError(f'{units.show(text)} loses every packet; write "1%", say')
    return ratio


def _read_flows(text: str) -> float:
    return float(_whole("4", text, MOST_SOURCES))


def _read_bytes(text: str) -> float:
    return _something(text, units.parse_bytes(text))


def _read_packets(text: str, *, payload_bytes: int) -> float:
    return _something(text, units.parse_packets(text, payload_bytes=payload_bytes))


def _something(text: str, size: float) -> float:
    if size == 0:
        raise UnitError(f'{units.show(text)} is nothing to transfer; write "100KB"')
    return size


def _write_bytes(size: float) -> str:
    """Write bytes in thousands where they are, with three digits."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{float(f'{size / scale:.3g}'):g}{unit}"
    return f"{size:.0f}B"


def _whole(example: str, text: str, most: int) -> int:
    """Read a whole number from 1 to ``most``."""
    if re.fullmatch(r"\s*[0-9]{1,60}\s*", text) is None:
        raise UnitError(f"{units.show(text)} is not a whole number; write {example}")
    return units.parse_count(int(text), minimum=1, maximum=most)


def _window(text: str | None) -> int | str | None:
    """Return a bare number as one: the scenario reads it as packets."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else text


def _initial_window(text: str | None) -> int | None:
    try:
        return None if text is None else _whole("10", text, MOST_INITIAL_WINDOW)
    except UnitError as fault:
        raise UnitError(f"--iw: {fault}") from None


def _mss_bytes(text: str) -> int:
    """Read ``--mss``: bytes, with or without a unit."""
    try:
        size = units.parse_bytes(f"{text.strip()}B" if text.strip().isdecimal() else text)
        if not 1 <= size <= MOST_MSS:
            shown = units.show(text)
            raise UnitError(f'{shown} is no payload of a packet; write from "1B" to "{MOST_MSS}B"')
    except UnitError as fault:
        raise UnitError(f"--mss: {fault}") from None
    return size
