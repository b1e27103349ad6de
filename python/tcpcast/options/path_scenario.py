"""The scenario of a path that options describe, the length of its run, and the engines to trust."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Answer, Status
from tcpcast.comparison.compare import main_metric
from tcpcast.engines import REGISTRY, answer
from tcpcast.engines.formula.collect_inputs import (
    loss_limited_pps,
)
from tcpcast.engines.registry import Formula
from tcpcast.engines.stack_support import SupportLevel, get_stack_support
from tcpcast.models.cubic import CUBIC_BETA, CUBIC_C
from tcpcast.models.domain import DOMAINS, LOSS_RATIO, TIMEOUT_TIME_SHARE
from tcpcast.options.path_option_definitions import PATH_OPTIONS
from tcpcast.process.errors import OptionError, ScenarioError, UnitError, name_of
from tcpcast.quantity import units
from tcpcast.quantity.ranges import DEFAULT_POINTS, is_range
from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import apply_changes
from tcpcast.scenario.modern_tcp import RATE_BASED, get_header_bytes
from tcpcast.statistics.drift import MIN_CYCLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKET_BYTES, MAX_MSS = 1500, 65_495
"""Default length of a packet, and maximum of ``--mss``, in bytes."""

DEFAULT_DURATION_S, MIN_DURATION_RTTS = 300.0, 1000.0
"""Duration of a requested simulation, and its minimum in RTTs."""

MIN_LOSSES = 400.0
"""Approximate number of losses in a requested simulation: with fewer losses, the measured rate
depends much on their random times."""

HEAVY_LOSS_RATIO, HEAVY_LOSS_DURATION_FACTOR = 0.1, 100.0
"""Loss ratio above which flows are mostly in RTO, and factor by which runs of few flows are
longer."""

MAX_PACKETS, MAX_TRANSFERRED_PKTS, MAX_QUICK_PKTS = 2e7, 1e8, 7.5e6
"""Maximum number of packets of a requested simulation, of all its transfers, and of a simulation
that runs although it was not requested."""

PACKETS_PER_SECOND = 2.5e6
"""Approximate speed of simulations."""

MIN_DURATION_SHARE, QUICK_SHARE = 0.2, 1 / 8
"""Minimum share of the usual duration of a requested simulation that has many packets, and of the
duration, losses or cycles of a simulation that was not requested."""

MAX_DIGITS = 18
"""Longer numbers remain texts, which scenarios reject."""

DEFAULT_TRANSFERS, MIN_TRANSFERS = 1000, 20
"""Number of simulated transfers, and the number that an interval requires."""

MAX_SINGLE_PKTS = 2e7
"""Packets of a transfer above which its time follows from the long-term rate."""

LAN_RTT_S, FAST_RATE_BPS, FAST_HOST_NOISE_S = 1e-3, 5e9, 10e-6
"""RTT below which, and rate from which, hosts are those of a data centre; their noise. The default
noise of 0.1 ms would be a large part of such an RTT, and limits one paced flow to 4 Gbit/s."""

MAX_WALL = "120s"
"""Time limit of a simulation, which only busy machines reach."""


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """The scenario of a path, and how to answer it.

    Attributes
    ----------
    scenario
        Endless flows, or transfers of ``--size``; of the first values of ranges.
    varied
        Ranges by key, as for :func:`tcpcast.sweep`.
    engines
        The engines to run: the formulas for the stack, and ``packet`` if it is requested, or if no
        formula is reliable and a simulation is quick.
    refused
        An answer that states why a simulation is needed but does not run; otherwise empty.
    amount_bytes
        Total size whose time follows from the rate of endless flows; None without one.
    """

    scenario: Scenario
    varied: Mapping[str, str]
    engines: Sequence[str]
    refused: Sequence[Answer] = ()
    amount_bytes: float | None = None


def ask_path(
    values: Mapping[str, Any],
    *,
    packet: bool = False,
    engines: Sequence[str] | None = None,
    points: int | None = None,
    changes: Mapping[str, Any] | None = None,
) -> PathQuestion:
    """Return the scenario of the options of a path, and the engines to run.

    Parameters
    ----------
    values
        The options by name, as typed; values of ranges have the form ``LOW..HIGH``.
    packet
        Whether a simulation is requested.
    engines
        The requested engines; None for the formulas, and a simulation where they are not reliable.
    points
        Number of values per range; None for the default.
    changes
        Further keys of the scenario.

    Raises
    ------
    ScenarioError
        A value is wrong; the message names the option.
    """
    ranges = {n: text for n, text in values.items() if PATH_OPTIONS[n].example and is_range(text)}
    if points is not None and not ranges:
        raise OptionError(
            "--points",
            f"no option is a range; use {name_of('--loss')} 0.01%..10%, for example",
        )
    per_range = DEFAULT_POINTS if points is None else points
    varied = {PATH_OPTIONS[name].keys[0]: f"{text} {per_range}" for name, text in ranges.items()}
    _check_ranges(varied)
    ends = [[(name, end.strip()) for end in text.split("..")] for name, text in ranges.items()]
    corners = [{**values, **dict(corner)} for corner in itertools.product(*ends)]
    amount_bytes = None
    if values.get("size") is not None and not all(_is_transfer(c, packet=packet) for c in corners):
        if ranges:
            raise OptionError(
                "--size",
                "cannot be combined with a range if there are several flows or the transfer is "
                f"long; omit {name_of('--size')}, or the range",
            )
        amount_bytes = round(_read_size_pkts(values) * _payload_bytes(values))
        corners = [{**values, "size": None}]
    scenarios = [_make_scenario(corner, changes or {}) for corner in corners]
    points_in_total = per_range ** len(ranges)
    scenario, packets, is_enough = _with_length(scenarios, changes or {}, quick=not packet)
    chosen, needs_packet, refused = list(engines or ()), packet, list[Answer]()
    if engines is None:
        answers = [_answer_by_formulas(each) for each in scenarios]
        chosen = [each.engine for each in answers[0]]
        needs_packet = packet or any(map(_needs_simulation, scenarios, answers))
    if (
        needs_packet
        and not packet
        and not (is_enough and packets * points_in_total <= 1.01 * MAX_QUICK_PKTS)
    ):
        scenario, packets, _ = _with_length(scenarios, changes or {}, quick=False)
        seconds = float(f"{packets * points_in_total / PACKETS_PER_SECOND:.1g}")
        why = (
            f"a simulation takes about {seconds:,.0f} s, so tcpcast runs it only with "
            f"{name_of('--packet')}"
        )
        refused = [Answer("packet", status=Status.NOT_APPLICABLE, reason=why)]
        needs_packet = False
    if needs_packet and "packet" not in chosen:
        chosen.append("packet")
    return PathQuestion(scenario, varied, chosen, refused, amount_bytes)


def make_path_scenario(values: Mapping[str, Any]) -> Scenario:
    """Return the scenario of the path with endless flows, for plans.

    Raises
    ------
    ScenarioError
        As for :func:`ask_path`.
    """
    return _with_length([_make_scenario({**values, "size": None}, {})], {}, quick=False)[0]


def _check_ranges(varied: Mapping[str, str]) -> None:
    """Raise ScenarioError with the name of the option if a range is wrong."""
    if not varied:
        return
    from tcpcast.sweeps.axes import read_range_axis  # noqa: PLC0415 - only for ranges

    for key, text in varied.items():
        try:
            read_range_axis(key, text, name_of(key)).to_axis()
        except ScenarioError as error:
            raise ScenarioError(str(error), key=key) from None


def _payload_bytes(values: Mapping[str, Any]) -> int:
    """Return ``--mss``, or the payload of a packet of :data:`PACKET_BYTES`."""
    text = values.get("mss")
    if text is None:
        return PACKET_BYTES - _header_bytes(values)
    try:
        size = units.parse_bytes(f"{text.strip()}B" if text.strip().isdecimal() else text)
    except UnitError as error:
        raise OptionError("--mss", str(error)) from None
    if not 1 <= size <= MAX_MSS:
        message = (
            f"{units.quote(text)} is not the payload of a packet; use a size from "
            f'"1B" to "{MAX_MSS}B"'
        )
        raise OptionError("--mss", message)
    return size


def _header_bytes(values: Mapping[str, Any]) -> int:
    """Return the header bytes of a packet of the stack; for an unknown stack, those of most."""
    stack = values.get("stack")
    return get_header_bytes({} if stack is None else {"stack": stack})


def _read_size_pkts(values: Mapping[str, Any]) -> float:
    return units.parse_packets(values["size"], payload_bytes=_payload_bytes(values))


def _is_transfer(values: Mapping[str, Any], *, packet: bool) -> bool:
    """Return True if ``--size`` is one transfer to be simulated or calculated as such.

    The total of several flows and a long transfer with many losses take the time that the rate of
    endless flows gives. Wrong values are transfers: the scenario then states the error.
    """
    if units.is_bare_number(values["size"]):
        return True
    if str(values.get("flows", "1")) != "1":
        return False
    try:
        size = _read_size_pkts(values)
        loss = units.parse_ratio(values.get("loss") or "0%")
    except UnitError:
        return True
    from tcpcast.engines.formula.short_transfers import MAX_MEAN_LOSSES  # noqa: PLC0415 - slow

    is_short = size * loss <= MAX_MEAN_LOSSES or size * MIN_TRANSFERS <= MAX_QUICK_PKTS
    return size <= MAX_SINGLE_PKTS and (packet or is_short)


def _make_scenario(values: Mapping[str, Any], changes: Mapping[str, Any]) -> Scenario:
    """Return the scenario of single values, without the length of its run."""
    size, rate = values.get("size"), values.get("rate") or "unlimited"
    for end in (size or "").split(".."):
        if units.is_bare_number(end):
            packets = units.format_packets(units.parse_packets(end))
            message = f"{units.quote(end)} has no unit; use {packets} or {packets[:-3]}B"
            raise OptionError("--size", message)
    if rate == "unlimited" and values.get("buffer") is not None:
        raise OptionError(
            "--buffer",
            f"a link without a rate has no queue; use {name_of('--rate')} 100mbit",
        )
    typed = {**values, "mss": f"{_payload_bytes(values) + _header_bytes(values)}B"}
    if rate != "unlimited":
        typed["buffer"] = values.get("buffer") or "1bdp"
    for name in ("flows", "iw", "rwnd"):
        text = str(typed.get(name) or "").strip()
        if text.isdecimal() and len(text) < MAX_DIGITS:
            typed[name] = int(text)
    traffic: dict[str, Any] = {"kind": "bulk", "flows": typed.get("flows", 1)}
    run = {"duration": units.format_duration(DEFAULT_DURATION_S)}
    if size is not None:
        traffic, run = {"kind": "transfers", "size": size}, {}
    tables = {"name": "path", "traffic": traffic, "run": {**run, "max_wall": MAX_WALL}}
    given = {
        key: None if typed.get(name) is False else typed.get(name)
        for name, row in PATH_OPTIONS.items()
        for key in row.keys
        if not key.startswith("traffic.")
    }
    tables = apply_changes(tables, given)
    scenario = Scenario.from_dict(apply_changes(tables, changes))
    is_fast = scenario.rtt_s < LAN_RTT_S or scenario.bottleneck.rate >= FAST_RATE_BPS
    if is_fast and 0.0 < FAST_HOST_NOISE_S < scenario.tcp.host_noise_s:
        noise = {"tcp.host_noise": units.format_duration(FAST_HOST_NOISE_S)}
        return Scenario.from_dict(apply_changes(tables, noise | dict(changes)))
    return scenario


def list_formulas(scenario: Scenario) -> list[str]:
    """Return the formulas for the stack that accept a scenario."""
    return [each.engine for each in _answer_by_formulas(scenario)]


def _answer_by_formulas(scenario: Scenario) -> list[Answer]:
    names = [
        name
        for name, row in REGISTRY.items()
        if isinstance(row, Formula) and row.is_default_for(scenario)
    ]
    return [each for each in answer(scenario, names) if each.applies]


def _needs_simulation(scenario: Scenario, answers: Sequence[Answer]) -> bool:
    """Return True if no formula is reliable, or if random losses spread the times of transfers."""
    metric = main_metric(scenario.populations)
    if scenario.has_random_loss and scenario.populations[0].traffic.kind == "transfers":
        return True
    return not any(
        metric in each.metrics and each.metrics[metric].trusted
        for each in answers
        if not getattr(REGISTRY[each.engine], "is_upper_bound", False)
        and _has_margin(each)
        and get_stack_support(each.engine, scenario.tcp.stack).level != SupportLevel.UNCHECKED
    )


def _has_margin(formula: Answer) -> bool:
    """Return True if losses and timeouts are at most half of what the formula's domain allows.

    Errors grow up to the limits of domains: at a loss of 10 %, ``pftk`` is 25 % too low.
    """
    limits = DOMAINS[formula.engine].limits if formula.engine in DOMAINS else {}
    named = {LOSS_RATIO, TIMEOUT_TIME_SHARE} & limits.keys()
    return all(2 * formula.domain.get(name, 0.0) <= limits[name] for name in named)


def _with_length(
    scenarios: Sequence[Scenario], changes: Mapping[str, Any], *, quick: bool
) -> tuple[Scenario, float, bool]:
    """Return the first scenario with the length of its run, the packets, and if they are enough.

    The length is the largest that one of the scenarios requires, unless ``changes`` set it.
    """
    first, traffic = scenarios[0], scenarios[0].isolated_transfers
    if traffic is not None:
        size = max(pkts for each in scenarios for pkts in _sizes(each))
        most, least = MAX_TRANSFERRED_PKTS, MIN_TRANSFERS
        wanted = DEFAULT_TRANSFERS
        if quick:
            most, least = MAX_QUICK_PKTS, 1
            wanted = DEFAULT_TRANSFERS if first.has_random_loss else MIN_TRANSFERS
        count = max(least, min(wanted, int(most / size)))
        return first.with_changes({"traffic.count": count, **changes}), size * count, True
    lengths = [_choose_duration_s(each, quick=quick) for each in scenarios]
    seconds = max(seconds for seconds, _ in lengths)
    packets = max(seconds * estimate_send_rate_pps(each) for each in scenarios)
    changed = {"run.duration": units.format_duration(seconds), **changes}
    return first.with_changes(changed), packets, all(is_enough for _, is_enough in lengths)


def _sizes(scenario: Scenario) -> Sequence[int]:
    transfers = scenario.isolated_transfers
    return (transfers and transfers.sizes) or [1]


def _choose_duration_s(scenario: Scenario, *, quick: bool) -> tuple[float, bool]:
    """Return the simulated seconds of endless flows, and whether they are enough for a result.

    A run should have :data:`MIN_LOSSES` losses, or :data:`tcpcast.statistics.drift.MIN_CYCLES`
    cycles between losses at a full buffer, unless it then has too many packets.
    """
    group, pps = scenario.populations[0], estimate_send_rate_pps(scenario)
    loss = scenario.path(group).loss
    usual = max(DEFAULT_DURATION_S, MIN_DURATION_RTTS * scenario.rtt_s)
    free_pps = _loss_limited_pps(scenario)
    if loss > HEAVY_LOSS_RATIO and free_pps <= pps:
        usual *= max(1.0, HEAVY_LOSS_DURATION_FACTOR / group.count)
    enough = MIN_CYCLES * _cycle_s(scenario)
    if free_pps <= pps and loss > 0:
        enough = MIN_LOSSES / (free_pps * loss)
    most, share = (MAX_QUICK_PKTS, QUICK_SHARE) if quick else (MAX_PACKETS, MIN_DURATION_SHARE)
    affordable = most / pps if 0 < pps < math.inf else math.inf
    seconds = max(share * usual, min(max(usual, enough), affordable))
    # Rounded to three digits, as the scenario shows it.
    return float(f"{min(seconds, float(units.MAX_TIME)):.3g}"), seconds >= QUICK_SHARE * enough


def _loss_limited_pps(scenario: Scenario) -> float:
    """Return the approximate packets per second of all flows, limited by loss; inf without loss."""
    group = scenario.populations[0]
    return group.count * loss_limited_pps(group, scenario.path(group).loss)


def estimate_send_rate_pps(scenario: Scenario) -> float:
    """Return the approximate packets per second of all flows: limited by link, window or loss."""
    group = scenario.populations[0]
    window_pps = group.count * group.tcp.receiver_window / group.rtt_s
    return min(scenario.path(group).capacity_pps, window_pps, _loss_limited_pps(scenario))


def _cycle_s(scenario: Scenario) -> float:
    """Return the seconds between two losses of a flow at a full buffer; 0 without such losses.

    Between losses, Reno's window grows by half of its maximum, one packet per RTT. CUBIC needs the
    time K (RFC 9438, section 4.2), or Reno's time if it is shorter.
    """
    group, path = scenario.populations[0], scenario.path()
    if group.tcp.control in RATE_BASED or not path.has_rate or math.isinf(scenario.buffer_pkts):
        return 0.0
    full_pkts = path.capacity_pps * group.rtt_s + scenario.buffer_pkts
    window = full_pkts / group.count
    if window >= group.tcp.receiver_window:
        return 0.0
    reno_s = window / 2 * full_pkts / path.capacity_pps
    cubic_s = (window * (1 - CUBIC_BETA) / CUBIC_C) ** (1 / 3)
    return min(reno_s, cubic_s) if group.tcp.control == "cubic" else reno_s
