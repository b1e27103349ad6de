"""Options of a single path: read and check each option, and create the scenario."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.engines.formula.collect_inputs import MIN_LOSS
from tcpcast.errors import (
    ScenarioError,
    Suggestion,
    SuggestionSyntax,
    TcpcastError,
    UnitError,
    refusal_text,
)
from tcpcast.path.run_size import (
    SimulatedPath,
    choose_simulated_s,
    choose_transfer_count,
    max_wall_text,
)
from tcpcast.path_option_definitions import OPTIONS_BY_KEY, PATH_OPTIONS, PathOptionValues
from tcpcast.ranges import DEFAULT_POINTS, MAX_POINTS, Quantity, expand_range, is_range
from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import apply_changes
from tcpcast.scenario.link import Buffer, read_buffer
from tcpcast.scenario.modern_tcp import DEFAULT_STACK, TIMESTAMP_BYTES, has_timestamps
from tcpcast.scenario.network import HEADER_BYTES
from tcpcast.scenario.traffic import MAX_SOURCES
from tcpcast.units import format_duration, parse_duration, parse_packets, parse_rate, parse_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


MAX_MSS = 65_495
MAX_INITIAL_WINDOW = 10**6
CURVE_POINTS = 61
CURVE_FACTOR = 30.0
"""Factor by which a curve extends below and above the given loss."""

MAX_DRAWN_LOSS = 0.5
DEFAULT_LOSS_RANGE = (1e-6, 0.1)
PACKET_BYTES = 1500
"""Default length of a packet in bytes."""

DEFAULT_BUFFER = "1bdp"
"""Default buffer of a link with a rate."""

RANGE_OPTIONS = tuple(name for name, row in PATH_OPTIONS.items() if row.example)
"""Options that accept a range, in the order of columns in the table of predictions."""

_RATE_SUGGESTION = Suggestion({"network.bottleneck.rate": "100mbit"})
_LIMIT_SUGGESTIONS = (
    Suggestion({"network.bottleneck.loss": "1%"}),
    _RATE_SUGGESTION,
    Suggestion({"tcp.receiver_window": "64KiB"}),
    Suggestion({"traffic.size": "100KB"}),
)


class _FlagSyntax(SuggestionSyntax):
    """Syntax of suggestions on a command line with the options of a path."""

    def assignment(self, key: str, value: Any) -> str:
        """Return the option for a key."""
        return f"{OPTIONS_BY_KEY[key]} {value}"


class PathError(UnitError):
    """A wrong value of an option.

    Parameters
    ----------
    key
        Key of the scenario that the option sets.
    reason
        The error.
    *suggestions
        Values that are accepted instead.
    """

    def __init__(self, key: str, reason: str, *suggestions: Suggestion) -> None:
        super().__init__(
            f"{OPTIONS_BY_KEY[key]}: {refusal_text(reason, suggestions, _FlagSyntax())}"
        )
        self.key, self.reason, self.suggestions = key, reason, suggestions


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOptions(PathOptionValues):
    """A path as typed; the options of :data:`RANGE_OPTIONS` may be ranges."""

    @property
    def _header_bytes(self) -> int:
        """Header bytes per packet of the stack; for an unknown stack, the number of most stacks."""
        tcp = {} if self.stack is None else {"stack": self.stack}
        return HEADER_BYTES + (TIMESTAMP_BYTES if has_timestamps(tcp) else 0)

    @property
    def payload_bytes(self) -> int:
        """Payload of a packet: ``--mss``, or the payload of a packet of 1500 bytes."""
        return PACKET_BYTES - self._header_bytes if self.mss is None else _read_mss_bytes(self.mss)

    @property
    def ranges(self) -> list[str]:
        """Names of the options with a range."""
        return [name for name in RANGE_OPTIONS if is_range(getattr(self, name))]

    @property
    def packet_bytes(self) -> int:
        """Length of a packet including headers."""
        return self.payload_bytes + self._header_bytes

    def path(self, point: Mapping[str, str]) -> SimulatedPath:
        """Return the path for one set of values, to choose the length of its simulation."""
        rtt_s, rate_bps = parse_duration(point["rtt"]), parse_rate(point.get("rate", "unlimited"))
        buffer, packet_bytes, buffer_pkts = _get_buffer(point), self.packet_bytes, 0.0
        if buffer is not None:
            link_buffer = read_buffer(buffer)
            buffer_pkts = link_buffer.packets(
                packet_bytes=packet_bytes, rate_bps=rate_bps, rtt_s=rtt_s
            )
        return SimulatedPath(
            rtt_s=rtt_s,
            loss_ratio=_read_loss(point.get("loss", "0%")),
            link_pps=rate_bps / (8 * packet_bytes),
            flows=int(point.get("flows", "1")),
            stack=self.stack or DEFAULT_STACK,
            buffer_pkts=buffer_pkts,
        )

    def tables(self, point: Mapping[str, str]) -> dict[str, Any]:
        """Return the tables of the scenario for one set of values, without the traffic."""
        typed: dict[str, Any] = {
            name: getattr(self, name) for name in PATH_OPTIONS if name not in RANGE_OPTIONS
        }
        typed |= {
            **point,
            "buffer": _get_buffer(point),
            "mss": f"{self.packet_bytes}B",
            "rwnd": _convert_window(self.rwnd),
            "iw": _convert_initial_window(self.iw),
            "delayed_acks": self.delayed_acks or None,
        }
        values = {
            key: typed.get(name)
            for name, row in PATH_OPTIONS.items()
            for key in row.keys
            if not key.startswith("traffic.")
        }
        path = self.path(point)
        run = {
            "duration": format_duration(choose_simulated_s(path)),
            "max_wall": max_wall_text(path),
        }
        return apply_changes({"name": "path", "run": run}, values)


def _get_buffer(point: Mapping[str, str]) -> str | None:
    """Return the buffer of the link, or None if it has no rate and therefore no queue."""
    if point.get("rate", "unlimited") != "unlimited":
        return point.get("buffer", DEFAULT_BUFFER)
    if "buffer" in point:
        raise PathError(
            "network.bottleneck.buffer", "a link without a rate has no queue", _RATE_SUGGESTION
        )
    return None


def has_default_buffer(options: PathOptions, point: Mapping[str, str]) -> bool:
    """Return True if the link has a buffer that no option sets."""
    return options.buffer is None and _get_buffer(point) is not None


def expand_points(options: PathOptions, per_range: int | None) -> list[dict[str, str]]:
    """Return all combinations of values from the ranges, each as values by option.

    Parameters
    ----------
    options
        The path.
    per_range
        ``--points``: number of values per range; None for the default.

    Raises
    ------
    UnitError
        A value or a range is wrong.
    TcpcastError
        ``--points`` was given without a range, or there are more than :data:`MAX_POINTS` points.
    """
    if per_range is not None and not options.ranges:
        raise TcpcastError("--points: no option is a range; write, for example, --loss 0.01%..10%")
    count = DEFAULT_POINTS if per_range is None else per_range
    if not 2 <= count <= MAX_POINTS:
        raise UnitError(f"--points: {count} is out of range; write 2 to {MAX_POINTS}")
    taken = make_option_quantities(options)
    texts = _expand_ranges(options).items()
    columns = {name: expand_range(taken[name], text, count) for name, text in texts}
    number = math.prod(len(column) for column in columns.values())
    if number > MAX_POINTS:
        raise TcpcastError(
            f"the ranges have {number} combinations, but at most {MAX_POINTS} are "
            "supported; write fewer ranges, or "
            f"--points {max(2, int(MAX_POINTS ** (1 / len(options.ranges))))}"
        )
    return [dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())]


def make_loss_curve_points(options: PathOptions, losses: Sequence[float]) -> list[dict[str, str]]:
    """Return sets of values for a curve over loss: around one loss, or across several losses.

    Parameters
    ----------
    options
        The path; only the loss may be a range.
    losses
        The given losses; for a single 0, the curve shows typical losses.
    """
    low, high = min(losses), max(losses)
    if high == 0:
        low, high = DEFAULT_LOSS_RANGE
    elif low == high:
        low, high = low / CURVE_FACTOR, min(high * CURVE_FACTOR, MAX_DRAWN_LOSS)
    quantity = make_option_quantities(options)["loss"]
    ends = "..".join(quantity.write(end) for end in (low, max(high, 1.01 * low)))
    fixed = {name: text for name, text in _expand_ranges(options).items() if name != "loss"}
    return [{**fixed, "loss": text} for text in expand_range(quantity, ends, CURVE_POINTS)]


def _expand_ranges(options: PathOptions) -> dict[str, str]:
    texts = {name: getattr(options, name) for name in RANGE_OPTIONS}
    return {name: text for name, text in texts.items() if text is not None}


def make_bulk_scenario(options: PathOptions, point: Mapping[str, str]) -> Scenario:
    """Return the scenario of the path with flows that never end.

    Raises
    ------
    UnitError, ScenarioError
        A value is out of range, or nothing limits the flows. The message names the option.
    """
    if has_no_rate_limit(options, point):
        prefix = f"{point['loss']} means no loss, and " if "loss" in point else ""
        raise PathError(
            "network.bottleneck.loss", f"{prefix}nothing limits the flow", *_LIMIT_SUGGESTIONS
        )
    return _make_scenario(make_bulk_tables(options, point))


def make_bulk_tables(options: PathOptions, point: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables of :func:`make_bulk_scenario`, with None for omitted options."""
    flows = int(point.get("flows", "1"))
    return {**options.tables(point), "traffic": {"kind": "bulk", "flows": flows}}


def read_transfer_size_pkts(options: PathOptions, point: Mapping[str, str]) -> float | None:
    """Return the number of packets of ``--size``, which may be fractional, or None."""
    if "size" not in point:
        return None
    return parse_packets(point["size"], payload_bytes=options.payload_bytes)


def make_transfer_scenario(options: PathOptions, point: Mapping[str, str]) -> Scenario:
    """Return the scenario of the path with isolated transfers of ``--size``.

    Raises
    ------
    UnitError, ScenarioError
        As :func:`make_bulk_scenario`.
    """
    return _make_scenario(make_transfer_tables(options, point))


def make_transfer_tables(options: PathOptions, point: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables of :func:`make_transfer_scenario`, with None for omitted options."""
    count = choose_transfer_count(read_transfer_size_pkts(options, point) or 0.0)
    traffic = {"kind": "transfers", "size": point["size"], "count": count}
    tables = options.tables(point)
    # The number of transfers determines the length of the run.
    run = {key: value for key, value in tables["run"].items() if key != "duration"}
    return {**tables, "run": run, "traffic": traffic}


def _make_scenario(tables: Mapping[str, Any]) -> Scenario:
    try:
        return Scenario.from_dict(tables)
    except ScenarioError as error:
        raise error.renamed(OPTIONS_BY_KEY) from None


def has_no_rate_limit(options: PathOptions, point: Mapping[str, str]) -> bool:
    """Return True if loss, link and window do not limit endless flows."""
    lossless = parse_ratio(point.get("loss", "0%")) < MIN_LOSS
    unlimited = (point.get("rate", "unlimited"), options.rwnd or "unlimited")
    return lossless and set(unlimited) == {"unlimited"}


def make_option_quantities(options: PathOptions) -> dict[str, Quantity]:
    """Return the quantity, with conversion functions, of each option in :data:`RANGE_OPTIONS`."""
    return {
        "rtt": _make_option_quantity("rtt", _read_rtt, units.format_duration),
        "loss": _make_option_quantity("loss", _read_loss, units.format_ratio),
        "rate": _make_option_quantity("rate", units.parse_rate, units.format_rate),
        "buffer": _make_buffer_quantity(options),
        "flows": _make_option_quantity("flows", _read_flows, lambda n: f"{n:.0f}", whole=True),
        "size": _make_size_quantity(options),
    }


def _make_option_quantity(
    name: str, read: Callable[[str], float], write: Callable[[float], str], *, whole: bool = False
) -> Quantity:
    row = PATH_OPTIONS[name]
    return Quantity(row.flag, read, write, row.example, whole=whole)


def _make_buffer_quantity(options: PathOptions) -> Quantity:
    """Return the quantity of ``--buffer``; the values of a range have the unit of its ends."""
    ends = (options.buffer or DEFAULT_BUFFER).split("..")
    try:
        buffer_units = {read_buffer(end).unit for end in ends if end.strip()}
    except UnitError:  # raised again, with the name of the option, when the values are read
        buffer_units = set()
    if len(buffer_units) > 1:
        example = PATH_OPTIONS["buffer"].example
        raise PathError(
            "network.bottleneck.buffer",
            f"the ends of the range have different units; write, for example, {example}",
        )

    def write(amount: float) -> str:
        return str(Buffer(next(iter(buffer_units), "bdp"), amount))

    is_integer = bool(buffer_units & {"packets", "bytes"})
    return _make_option_quantity(
        "buffer", lambda text: read_buffer(text).amount, write, whole=is_integer
    )


def _make_size_quantity(options: PathOptions) -> Quantity:
    """Return the quantity of ``--size``: bytes if all ends are in bytes, otherwise packets."""
    ends = (options.size or "").split("..")
    if all(end.strip().endswith("B") for end in ends):
        return _make_option_quantity("size", _read_bytes, _write_bytes, whole=True)
    for end in ends:
        if units.is_bare_number(end):
            _reject_size_without_unit(end.strip())
    read = partial(_read_packets, payload_bytes=options.payload_bytes)
    return _make_option_quantity("size", read, lambda n: f"{n:.0f}pkt", whole=True)


def _reject_size_without_unit(text: str) -> None:
    try:
        packets = _require_nonzero_size(text, units.parse_packets(text))
    except UnitError as error:
        raise PathError("traffic.size", str(error)) from None
    written = f"{units.format_packets(packets)} or {math.ceil(packets)}B"
    raise PathError("traffic.size", f"{units.quote(text)} has no unit; write {written}")


def _read_rtt(text: str) -> float:
    seconds = units.parse_duration(text)
    if seconds == 0:
        raise UnitError(f'{units.quote(text)} must be above 0; write, for example, "100ms"')
    return seconds


def _read_loss(text: str) -> float:
    ratio = units.parse_ratio(text)
    if ratio >= 1:
        raise UnitError(f'{units.quote(text)} loses every packet; write, for example, "1%"')
    return ratio


def _read_flows(text: str) -> float:
    return float(_read_count("4", text, MAX_SOURCES))


def _read_bytes(text: str) -> float:
    return _require_nonzero_size(text, units.parse_bytes(text))


def _read_packets(text: str, *, payload_bytes: int) -> float:
    return _require_nonzero_size(text, units.parse_packets(text, payload_bytes=payload_bytes))


def _require_nonzero_size(text: str, size: float) -> float:
    if size == 0:
        raise UnitError(f'{units.quote(text)} is an empty transfer; write, for example, "100KB"')
    return size


def _write_bytes(size: float) -> str:
    """Format bytes with three digits and a decimal prefix."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{float(f'{size / scale:.3g}'):g}{unit}"
    return f"{size:.0f}B"


def _read_count(example: str, text: str, most: int) -> int:
    """Read a whole number from 1 to ``most``."""
    if re.fullmatch(r"\s*[0-9]{1,60}\s*", text) is None:
        raise UnitError(f"{units.quote(text)} is not a whole number; write, for example, {example}")
    return units.parse_count(int(text), minimum=1, maximum=most)


def _convert_window(text: str | None) -> int | str | None:
    """Convert a window as typed: a bare number becomes an int, which means packets."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else text


def _convert_initial_window(text: str | None) -> int | None:
    try:
        return None if text is None else _read_count("10", text, MAX_INITIAL_WINDOW)
    except UnitError as error:
        raise PathError("tcp.initial_window", str(error)) from None


def _read_mss_bytes(text: str) -> int:
    """Read ``--mss``: bytes, with or without a unit."""
    try:
        size = units.parse_bytes(f"{text.strip()}B" if text.strip().isdecimal() else text)
        if not 1 <= size <= MAX_MSS:
            shown = units.quote(text)
            raise UnitError(
                f'{shown} is not the payload of a packet; write a size from "1B" to "{MAX_MSS}B"'
            )
    except UnitError as error:
        raise PathError("network.packet", str(error)) from None
    return size
