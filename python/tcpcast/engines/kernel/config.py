"""Configuration of the emulator: a scenario's links, and the kernel's TCP at the hosts.

Unsupported keys are rejected by name, with the behaviour of the kernel.
"""

from __future__ import annotations

import math
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines.kernel.counters import count_senders
from tcpcast.engines.packet.configuration import (
    is_without_tcp,
    make_configuration,
    to_nanoseconds,
)
from tcpcast.engines.registry import changes_to_set_stack
from tcpcast.engines.stack_support import KERNEL_STACKS
from tcpcast.process.errors import NotApplicable, Suggestion
from tcpcast.quantity.units import format_duration
from tcpcast.scenario.loss import RestOfRound
from tcpcast.scenario.modern_stacks import MODERN_STACKS
from tcpcast.scenario.modern_tcp import get_congestion_control
from tcpcast.scenario.traffic import Messages, Stream, Transfers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.tcp import Tcp

SNAPSHOTS_PER_RUN = 256
MIN_SNAPSHOT_INTERVAL_S, MAX_SNAPSHOT_INTERVAL_S = 0.005, 10.0
"""Interval between counter snapshots; enough for MSER-5, and for a run that ends early."""

HANDSHAKE_AND_PAUSE_RTTS = 5.0
"""Round trips of a transfer of one packet, including the pauses before and after it."""

MAX_FLOWS = 256
MIN_PACKET_BYTES, MAX_PACKET_BYTES = 88, 1984
MIN_MESSAGE_BYTES = 28
MAX_QUEUED_BYTES = 256 * 2**20
"""Limits of the links: flows, bytes of a full packet (the kernel sends segments of at least 48),
bytes of the headers of a message or ping, memory for packets."""

CONGESTION_CONTROLS_FILE = "/proc/sys/net/ipv4/tcp_available_congestion_control"

_KERNEL_FIXED_KEYS = {
    "initial_rto_s": ("initial_rto", "the kernel's first timeout is 1 s"),
    "max_rto_s": ("max_rto", "the kernel doubles timeouts up to 120 s"),
    "rto_granularity_s": ("rto_granularity", "the kernel's clock determines the granularity"),
    "delayed_acks": ("delayed_acks", "the kernel's receiver decides when to delay ACKs"),
    "limited_transmit": ("limited_transmit", "the kernel always uses limited transmit"),
    "kernel": ("kernel", "the kernel of this machine follows its own rules"),
    "tso": ("tso", "the hosts of the kernel engine send single packets"),
    "gro": ("gro", "the hosts of the kernel engine receive single packets"),
    "socket_buffers": ("socket_buffers", "the buffers of the kernel engine are large enough"),
    "fast_open": ("fast_open", "the clients of the kernel engine send no data with their SYN"),
    "nodelay": ("nodelay", "the applications of the kernel engine write all data at once"),
    "notsent_lowat": (
        "notsent_lowat",
        "the applications of the kernel engine write all data at once",
    ),
    "pacing": ("pacing", "the hosts of the kernel engine use neither fq nor a rate limit"),
}
"""TCP keys that the kernel determines: attribute, key, and the kernel's behaviour."""

_ACCURATE_ECN_SINCE = 7
"""Linux version in which both ends can use accurate ECN."""

_CLASSIC_SYSCTLS = {
    "tcp_sack": "0",
    "tcp_dsack": "0",
    "tcp_recovery": "0",
    "tcp_early_retrans": "0",
    "tcp_frto": "0",
    "tcp_max_reordering": "3",
}
"""Settings without SACK, RACK, tail loss probes and F-RTO."""

MAX_RECEIVE_BUFFER_BYTES = 64 * 2**20
"""Maximum receive buffer in bytes; its overhead takes up to three quarters of it."""

RECEIVE_WINDOW_RANGE_BYTES = 2304, MAX_RECEIVE_BUFFER_BYTES // 4
"""Smallest and largest receiver window that the kernel can be limited to, in bytes."""

_COMMON_SYSCTLS = {
    "tcp_no_metrics_save": "1",
    "tcp_window_scaling": "1",
    "tcp_rmem": f"4096 4194304 {MAX_RECEIVE_BUFFER_BYTES}",
    "tcp_wmem": "4096 262144 67108864",
}
"""Settings of both ends: no state is kept between connections, and no buffer is a limit."""


def run_arguments(scenario: Scenario, replication: int) -> dict[str, Any]:
    """Return the arguments of ``_native.run_traffic`` for one replication.

    Files, OFF times, start times, requests and messages use the random streams of the packet
    engine, so both engines send the same data.

    Parameters
    ----------
    scenario
        A scenario that :func:`raise_if_unsupported` accepts.
    replication
        Index of the replication, from 0.
    """
    isolated, run = scenario.isolated_transfers, scenario.run
    until, wanted = run.duration_s, None
    if run.transfers is not None:
        wanted = (to_nanoseconds(run.warmup_s or 0.0), run.transfers)
    expected_s = min(estimate_replication_s(scenario), run.max_wall_s or math.inf)
    slot_s = min(
        max(expected_s / SNAPSHOTS_PER_RUN, MIN_SNAPSHOT_INTERVAL_S), MAX_SNAPSHOT_INTERVAL_S
    )
    pause_s = 2.0 * scenario.populations[0].rtt_s + 0.01
    hosts, flows = _hosts_and_flows(scenario)
    return {
        "config": make_configuration(scenario, 0.0),
        "hosts": hosts,
        "flows": flows,
        "schedule": {
            "until_ns": None if until is None else to_nanoseconds(until),
            "wanted": wanted,
            "slot_ns": None if isolated is not None else to_nanoseconds(slot_s),
            "pause_ns": to_nanoseconds(pause_s),
            "count": 0 if isolated is None else isolated.count or 0,
        },
        "replication": replication,
        "capture": None,
        "most_bytes": MAX_QUEUED_BYTES,
    }


SERVER, CLIENT = 0, 1
"""Numbers of the ends of a flow."""

_SIDES = ("near", "far")


def _hosts_and_flows(scenario: Scenario) -> tuple[list[Config], list[Config]]:
    """Return the hosts, and the flows with the numbers of their hosts.

    An end that sends data is a host of its own, which has its own counters. Other ends with the
    same settings are one host per side.
    """
    hosts: list[Config] = []
    shared: dict[Any, int] = {}
    flows = []
    before = np.cumsum([0, *(group.count for group in scenario.populations)]).tolist()
    for index, group in enumerate(scenario.populations):
        senders = _data_senders(group)
        common = {
            "control": group.tcp.control,
            "receiver_window_bytes": None
            if is_without_tcp(group)
            else _receive_window_bytes(group),
            "payload": group.payload_bytes,
        }
        for number in range(count_senders(group)):
            own: list[int] = []
            for end in (SERVER, CLIENT):
                host = _host_arguments(scenario, group, end, is_sender=end in senders)
                key = None if end in senders else (end, *host["sysctls"])
                if key is None or key not in shared:
                    hosts.append(host)
                if key is not None:
                    shared.setdefault(key, len(hosts) - 1)
                own.append(len(hosts) - 1 if key is None else shared[key])
            place = {"class": index, "place": number, "source": before[index] + number}
            flows.append({**common, **place, "hosts": own})
    return hosts, flows


def _data_senders(group: Population) -> tuple[int, ...]:
    """Return the ends of a class that send data; the client sends pings."""
    if group.traffic.kind == "ping":
        return (CLIENT,)
    if group.traffic.kind in ("requests", "stream"):
        return (SERVER,)
    return {"server": (SERVER,), "client": (CLIENT,)}.get(group.sends, (SERVER, CLIENT))


def _host_arguments(scenario: Scenario, group: Population, end: int, *, is_sender: bool) -> Config:
    host: Config = {"side": _SIDES[end], "sysctls": [], "route": None, "mtu": MAX_PACKET_BYTES}
    if is_without_tcp(group):
        return host
    tcp = group.tcp
    both = {
        # These must agree at both ends.
        "tcp_timestamps": "1" if tcp.timestamps else "0",
        "tcp_ecn": "3" if tcp.ecn == "accurate" else str(int(bool(tcp.ecn))),
    }
    sysctls = _COMMON_SYSCTLS | (
        both | (_CLASSIC_SYSCTLS if tcp.stack == "linux-reno-classic" else {})
    )
    if is_sender:
        sysctls |= {
            "tcp_slow_start_after_idle": "0" if tcp.idle_restart == "never" else "1",
            "tcp_reordering": str(tcp.duplicate_threshold),
        }
        host["route"] = (tcp.initial_window, max(1, round(tcp.min_rto_s * 1000)))
        host["mtu"] = group.packet_bytes
    else:
        with_tcp = [each for each in scenario.populations if not is_without_tcp(each)]
        host["mtu"] = max(each.packet_bytes for each in with_tcp)
        if not all(math.isinf(each.tcp.receiver_window) for each in with_tcp):
            # A fixed receive buffer if a window is limited: a growing one resets the limit.
            sysctls["tcp_rmem"] = f"4096 {MAX_RECEIVE_BUFFER_BYTES} {MAX_RECEIVE_BUFFER_BYTES}"
    return host | {"sysctls": list(sysctls.items())}


def estimate_replication_s(scenario: Scenario) -> float:
    """Return the approximate minimum duration of a replication, in seconds."""
    isolated, run = scenario.isolated_transfers, scenario.run
    if isolated is not None:
        pkts, group, network = isolated.mean_size_pkts, scenario.populations[0], scenario.network
        # Windows double per RTT; a large file takes its transmission time at the link's rate.
        rounds = HANDSHAKE_AND_PAUSE_RTTS + math.log2(1 + pkts / group.tcp.initial_window)
        sending_s = 8 * network.packet_bytes * pkts / scenario.bottleneck.rate_bps
        return isolated.total * (rounds * group.rtt_s + sending_s)
    if run.transfers is None:
        return run.duration_s or 0.0
    per_s, bits = 0.0, 0.0
    for group in scenario.populations:
        if group.traffic.kind == "on-off":
            own = group.count / (group.traffic.off.mean_value() + 2.0 * group.rtt_s)
        else:
            arrivals = getattr(group.traffic, "arrivals", None)
            own = 0.0 if arrivals is None else float(arrivals.rate)
        per_s += own
        size = getattr(group.traffic, "mean_size_pkts", None)
        if group.traffic.kind == "on-off":
            size = group.traffic.size.mean_value()
        bits += 8.0 * group.packet_bytes * own * (size or 0.0)
    share = max(1.0, bits / scenario.bottleneck.rate_bps)
    return (run.warmup_s or 0.0) + run.transfers * share / per_s


def _receive_window_bytes(group: Population) -> int | None:
    """Return the receiver window in bytes of data; None if it is unlimited."""
    if math.isinf(group.tcp.receiver_window):
        return None
    return int(group.tcp.receiver_window) * group.payload_bytes


def raise_if_unsupported(scenario: Scenario) -> None:
    """Raise an error for features that the kernel or the link does not support.

    Raises
    ------
    NotApplicable
        With the key, the reason, and suggested changes.
    """
    for problem in _find_unsupported_features(scenario):
        raise problem


def _find_unsupported_features(scenario: Scenario) -> Iterator[NotApplicable]:
    run, isolated = scenario.run, scenario.isolated_transfers
    if isolated is None and run.transfers is None and math.isinf(run.duration_s or math.inf):
        yield NotApplicable(
            "the kernel engine runs in real time and requires a finite duration",
            Suggestion({"run.duration": "30s"}),
        )
    if run.transfers is not None and run.warmup_s is None:
        yield NotApplicable(
            "run.transfers counts transfers after the warm-up, but the kernel engine determines "
            "the end of the warm-up only after the run",
            Suggestion({"run.warmup": "10s"}),
            Suggestion({"run.duration": "30s"}),
        )
    count = sum(map(count_senders, scenario.populations))
    if count > MAX_FLOWS:
        yield NotApplicable(
            f"{count} senders are too many: the kernel engine uses a network namespace per sender, "
            f"and at most {MAX_FLOWS} namespaces"
        )
    files = scenario.probes.pcap
    if len(files) > 1 or any(file.link not in ("sender", "receiver") for file in files):
        yield NotApplicable(
            'probes.pcap: the kernel engine writes only one capture, with link = "sender" or '
            '"receiver"',
            Suggestion({"probes.pcap": None}),
        )
    if scenario.cross:
        yield NotApplicable(
            "cross: the kernel engine does not generate cross traffic; use a class with "
            'traffic.kind = "messages" on the same links',
            Suggestion({"cross": None}),
        )
    if isinstance(scenario.bottleneck.loss_rule, RestOfRound):
        yield NotApplicable(
            "network.bottleneck.loss: the emulated link supports only independent loss, because "
            "it does not know the round trips of TCP",
            Suggestion({"network.bottleneck.loss": "1%"}),
        )
    if scenario.network.packet_bytes > MAX_PACKET_BYTES:
        yield NotApplicable(
            f"network.packet: the link carries at most {MAX_PACKET_BYTES} B",
            Suggestion({"network.packet": f"{MAX_PACKET_BYTES}B"}),
        )
    for name in scenario.packet_size_classes:
        group = next(each for each in scenario.populations if each.name == name)
        if group.packet_bytes < MIN_PACKET_BYTES:
            key = f"class.{name}.packet"
            yield NotApplicable(
                f"{key}: the kernel sends packets of at least {MIN_PACKET_BYTES} B, with headers",
                Suggestion({key: f"{MIN_PACKET_BYTES}B"}),
            )
    for group in scenario.populations:
        yield from _find_unsupported_traffic(scenario, group)
        if is_without_tcp(group):
            continue
        yield from _find_unsupported_tcp_features(scenario, group.tcp)
        (minimum, maximum), packet = RECEIVE_WINDOW_RANGE_BYTES, group.payload_bytes
        window = _receive_window_bytes(group)
        if window is not None and not minimum <= window <= maximum:
            nearest = -(-minimum // packet) if window < minimum else maximum // packet
            yield NotApplicable(
                f"tcp.receiver_window: the kernel's receiver advertises windows of {minimum} B "
                f"to {maximum} B of data ({-(-minimum // packet)} to {maximum // packet} packets)",
                Suggestion({"tcp.receiver_window": nearest}),
            )


def _find_unsupported_traffic(scenario: Scenario, group: Population) -> Iterator[NotApplicable]:
    traffic, where = group.traffic, f"class.{group.name}"
    if traffic.kind == "page":
        yield NotApplicable(
            "traffic.kind: the kernel engine cannot load pages; use the packet engine"
        )
    if group.sends == "both" and traffic.kind not in ("messages", "ping", "requests", "stream"):
        yield NotApplicable(
            f"{where}.sends: the kernel engine sends files in one direction per class; use two "
            'classes, with sends = "server" and sends = "client"'
        )
    links = (*group.route, *group.back)
    if isinstance(traffic, Transfers) and traffic.arrivals is not None:
        several = [
            on
            for on in links
            if not on.shared
            and (on.instances != 1 or not scenario.links)
            and (math.isfinite(on.link.serial_bps) or on.link.loss is not None)
        ]
        if several:
            yield NotApplicable(
                f"{several[0].key}: in the kernel engine, one host sends all arriving transfers of "
                "a class, so they share this link; use traffic of kind on-off, or remove its "
                "rate and loss"
            )
    if isinstance(traffic, Stream) and traffic.ladder is not None:
        yield NotApplicable(
            f"{where}.traffic.ladder: the kernel engine supports only one quality, which has a "
            "constant rate"
        )
    if isinstance(traffic, Messages) and traffic.ecn is not None:
        yield NotApplicable(
            f"{where}.traffic.ecn: the kernel engine sends messages without ECN; remove this key"
        )
    if isinstance(traffic, Messages) and (
        traffic.size.share_above(MAX_PACKET_BYTES) > 0
        or traffic.size.share_above(MIN_MESSAGE_BYTES - 1) < 1
    ):
        yield NotApplicable(
            f"{where}.traffic.size: the kernel engine sends messages of {MIN_MESSAGE_BYTES} B to "
            f"{MAX_PACKET_BYTES} B, with headers; use a constant or uniform size in this range"
        )


def _find_unsupported_tcp_features(scenario: Scenario, tcp: Tcp) -> Iterator[NotApplicable]:
    release = platform.release()
    if tcp.ecn == "accurate" and int(release.partition(".")[0] or 0) < _ACCURATE_ECN_SINCE:
        yield NotApplicable(
            f"tcp.ecn: accurate ECN in the kernel engine requires Linux {_ACCURATE_ECN_SINCE}.0, "
            f"but this machine runs Linux {release}; use ecn = true"
        )
    if tcp.stack not in KERNEL_STACKS:
        fact = "the kernel supports only modern Linux stacks"
        if tcp.is_quic:
            fact = "the kernel does not implement QUIC"
        elif tcp.is_modern:
            fact = MODERN_STACKS[tcp.stack].why_not_in_linux
        # One stack per congestion control of the kernel, a version of the same one first.
        stacks: dict[str, str] = {}
        for name in KERNEL_STACKS:
            stacks.setdefault(get_congestion_control(name), name)
        nearest = sorted(
            stacks.values(),
            key=lambda stack: not tcp.control.startswith(get_congestion_control(stack)),
        )
        yield NotApplicable(
            f'tcp.stack = "{tcp.stack}": {fact}',
            *(Suggestion(changes_to_set_stack(scenario, stack)) for stack in nearest[:2]),
        )
        return
    offered = get_kernel_congestion_controls()
    if tcp.control not in offered:
        yield NotApplicable(
            f'tcp.stack = "{tcp.stack}": this machine\'s kernel does not offer {tcp.control}, '
            f"but only {', '.join(offered) or 'none'}; load the module: modprobe tcp_{tcp.control}"
        )
    preset = type(tcp).model_validate({"stack": tcp.stack})
    for attribute, (key, fact) in _KERNEL_FIXED_KEYS.items():
        if getattr(tcp, attribute) != getattr(preset, attribute):
            yield NotApplicable(f"tcp.{key}: {fact}", Suggestion({f"tcp.{key}": None}))
    if tcp.handshake != "tcp":
        yield NotApplicable(
            f'tcp.handshake = "{tcp.handshake}": the kernel engine always uses the handshake of '
            "TCP",
            Suggestion({"tcp.handshake": "tcp"}),
        )
    if tcp.min_rto_s < 0.004:
        yield NotApplicable(
            f"tcp.min_rto = {format_duration(tcp.min_rto_s)}: the resolution of the kernel's "
            "clock is 4 ms, so the minimum RTO is at least 4 ms",
            Suggestion({"tcp.min_rto": "4ms"}),
        )


def get_kernel_congestion_controls() -> tuple[str, ...]:
    """Return the congestion controls of this machine's kernel; empty if unknown."""
    try:
        with open(CONGESTION_CONTROLS_FILE, encoding="ascii") as file:
            return tuple(file.read().split())
    except OSError:
        return ()
