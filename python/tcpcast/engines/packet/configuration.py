"""From a scenario to the plain numbers that the simulator takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.engines.packet.cross import streams
from tcpcast.engines.packet.equilibrium import starts
from tcpcast.engines.packet.loss import loss_law
from tcpcast.engines.packet.managed import managed
from tcpcast.engines.packet.return_path import return_link
from tcpcast.engines.packet.scale import WHOLE, Scale, shortened
from tcpcast.scenario.laws import Law
from tcpcast.scenario.queue import FairQueue
from tcpcast.scenario.sizes import FileInBytes

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.hops import Hop
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.network import Network
    from tcpcast.scenario.tcp import Tcp
    from tcpcast.scenario.traffic import Transfers

SIZE_BOUNDS = (2, 6, 14, 30, 62, 128, 256, 512, 1024, 2048, 4096)
"""Upper ends of the size intervals, packets: Table 1 of the Engset report."""

UNLIMITED_WINDOW = 2**32 - 1

LIMITED_TRANSMIT = {"each": "each-duplicate", "second": "on-second"}


def nanoseconds(seconds: float) -> int:
    """Return a time to the nearest nanosecond."""
    return round(seconds * 1e9)


def configuration(scenario: Scenario, warmup_s: float, scale: Scale = WHOLE) -> dict[str, Any]:
    """Return the simulator's configuration: integers, floats, lists and dicts of them.

    Parameters
    ----------
    scenario
        The scenario.
    warmup_s
        Length of the warm-up; nothing before its end is counted.
    scale
        How many sources each simulated one stands for.
    """
    network = scenario.network
    return {
        "seed": scenario.run.seed,
        "packet_bytes": network.packet_bytes,
        "ack_bytes": network.ack_bytes,
        "bottleneck_bps": scale.rate(_rate(network.bottleneck)),
        "buffer_pkts": _room(network, network.bottleneck, scale),
        "red": _red(network, network.bottleneck),
        "fair": _fair(scenario, network.bottleneck),
        "managed": managed(scenario, network.bottleneck),
        "loss": loss_law(network.bottleneck.loss),
        "jitter": _jitter(network),
        "cross": streams(scenario, scale),
        "hops_before": [_hop(scenario, hop, scale) for hop in network.hops_before],
        "hops_after": [_hop(scenario, hop, scale) for hop in network.hops_after],
        "return_link": return_link(scenario),
        "tcp": _tcp(scenario.populations[0].tcp, network.packet_bytes),
        "classes": [
            _class(scenario, group, start, scale)
            for group, start in zip(scenario.populations, starts(scenario), strict=True)
        ],
        "warmup_ns": nanoseconds(warmup_s),
        "size_bounds": size_bounds(scenario),
        "traced": list(scenario.probes.flows),
        "goodput_packets": scenario.probes.goodput_packets or 0,
        "goodput_least": math.floor(scenario.probes.goodput_least),
        "report_at_ns": [nanoseconds(time) for time in scenario.run.report_at or ()],
        "captures": [(wanted.link, wanted.packets) for wanted in scenario.probes.pcap],
    }


def listed_sizes(scenario: Scenario) -> list[int] | None:
    """Return the sizes of all files, rising, or None where they are not listed."""
    found: set[int] = set()
    for group in scenario.populations:
        if group.traffic.kind == "bulk":
            continue
        sizes = group.traffic.sizes if group.traffic.kind == "transfers" else None
        if sizes is None:
            return None
        payload = scenario.network.packet_bytes - group.tcp.header_bytes
        todays = payload if group.tcp.is_todays else None
        found.update(_file(size, todays)[0] for size in sizes)
    return sorted(found) or None


def size_bounds(scenario: Scenario) -> list[int]:
    """Return the upper ends of the size intervals; each listed size is one of its own."""
    return listed_sizes(scenario) or list(SIZE_BOUNDS)


def _rate(link: Link) -> int | None:
    """Return the constant rate of both ways; what is of the forward path alone is the queue's."""
    return None if math.isinf(link.serial_bps) else max(1, round(link.serial_bps))


def longer_ns(scenario: Scenario, scale: Scale) -> float:
    """Return how much longer a byte takes on all shared links together, in ns."""
    network = scenario.network
    hops = [hop for hop in (*network.hops_before, *network.hops_after) if hop.shared]
    measured = scale.longer_ns(_rate(network.bottleneck))
    return measured + sum(scale.longer_ns(_rate(hop)) for hop in hops)


def _room(network: Network, link: Link, scale: Scale) -> int | None:
    queue = link.queue
    individual = isinstance(queue, FairQueue) and queue.buffers == "individual"
    return scale.room(_whole(network.buffer_pkts(link)), individual=individual)


def _whole(count: float) -> int | None:
    return None if math.isinf(count) else math.floor(count)


def _red(network: Network, link: Link) -> dict[str, float | bool] | None:
    red = network.red_parameters(link)
    if red is None:
        return None
    return {
        "min_threshold": red.min_threshold_pkts,
        "max_threshold": red.max_threshold_pkts,
        "max_probability": red.max_probability,
        "weight": red.weight,
        "gentle": red.gentle,
        "packets_per_second": red.packets_per_second,
    }


def _fair(scenario: Scenario, link: Link) -> dict[str, Any] | None:
    queue = link.queue
    if not isinstance(queue, FairQueue):
        return None
    packet_bytes = scenario.network.packet_bytes
    drawn = scenario.hears_losses and queue.drop != "arriving"
    return {
        # A turn of one packet is round robin packet by packet.
        "quantum_bytes": queue.quantum or packet_bytes,
        "packet_bytes": packet_bytes,
        "room": queue.buffers,
        "overflow": queue.drop,
        "ties": queue.ties or ("random" if drawn else "latest"),
    }


def _hop(scenario: Scenario, hop: Hop, scale: Scale) -> dict[str, Any]:
    network = scenario.network
    scale = scale if hop.shared else WHOLE
    return {
        "rate_bps": scale.rate(_rate(hop)),
        "delay_ns": nanoseconds(hop.delay_s or 0.0),
        "buffer_pkts": _room(network, hop, scale),
        "red": _red(network, hop),
        "fair": _fair(scenario, hop),
        "managed": managed(scenario, hop),
        "loss": loss_law(hop.loss),
        "shared": hop.shared,
    }


def _jitter(network: Network) -> dict[str, Any] | None:
    jitter = network.jitter
    if jitter is None:
        return None
    return {"law": jitter.law.parameters(), "reorder": jitter.reorder}


def _tcp(tcp: Tcp, packet_bytes: int) -> dict[str, Any]:
    rules = tcp.rules
    sends = LIMITED_TRANSMIT[rules.limited_transmit_on] if tcp.limited_transmit else "off"
    return {
        **_of_either_kind(tcp),
        # Of today's TCP, and of max-plus-reno, the rules mean nothing.
        "recovery": rules.recovery,
        "timer_restart": rules.timer_restart,
        "backoff_until": rules.backoff_until,
        "last_packets_threshold": tcp.last_packets_threshold,
        "limited_transmit": sends,
        "window_unit": rules.window_unit,
        "initial_ssthresh": _window(tcp.initial_ssthresh),
        "slow_start_at_ssthresh": rules.slow_start_at_ssthresh,
        "receiver_window": _window(tcp.receiver_window),
        "idle_restart": _idle_restart(tcp.idle_restart),
        "instant": None if rules.max_plus is None else rules.max_plus.model_dump(),
        "modern": _modern(tcp, packet_bytes) if tcp.is_todays else None,
    }


def _modern(tcp: Tcp, packet_bytes: int) -> dict[str, Any]:
    unlimited = math.isinf(tcp.receiver_window)
    return {
        **_of_either_kind(tcp),
        "stack": tcp.stack,
        "mss": packet_bytes - tcp.header_bytes,
        "receiver_window": None if unlimited else _window(tcp.receiver_window),
        "limited_transmit": tcp.limited_transmit,
        "idle_restart": tcp.idle_restart == "rto",
        "timestamps": bool(tcp.timestamps),
        "handshake": tcp.handshake or "none",
        "ecn": bool(tcp.ecn),
    }


def _of_either_kind(tcp: Tcp) -> dict[str, Any]:
    return {
        "duplicate_threshold": tcp.duplicate_threshold,
        "initial_window": tcp.initial_window,
        "delayed_acks": tcp.delayed_acks,
        "ack_timeout_ns": nanoseconds(tcp.ack_timeout_s),
        "min_rto_ns": nanoseconds(tcp.min_rto_s),
        "initial_rto_ns": nanoseconds(tcp.initial_rto_s),
        "max_rto_ns": nanoseconds(tcp.max_rto_s),
        "rto_granularity_ns": nanoseconds(tcp.rto_granularity_s),
    }


def _idle_restart(rule: float | str) -> int | str | None:
    if isinstance(rule, str):
        return None if rule == "never" else rule
    return nanoseconds(rule)


def _window(packets: float) -> int:
    return int(min(packets, UNLIMITED_WINDOW))


def _class(
    scenario: Scenario, group: Population, start: tuple[float, float] | None, scale: Scale
) -> dict[str, Any]:
    network = scenario.network
    others = [group.ingress, *network.hops_before, *network.hops_after, group.egress]
    elsewhere = math.fsum(link.delay_s or 0.0 for link in others)
    transfers = group.traffic.kind == "transfers"
    forward_ns = max(0, nanoseconds(group.forward_delay_s - elsewhere))
    back_ns = max(0, nanoseconds(group.return_delay_s - elsewhere))
    if scale != WHOLE:
        of_byte = longer_ns(scenario, scale)
        by_ns = of_byte * network.packet_bytes, of_byte * network.ack_bytes
        forward_ns, back_ns = shortened(forward_ns, back_ns, by_ns)
    sources = scale.sources(group.count)
    return {
        # Transfers find their senders themselves.
        "sources": 0 if transfers else sources,
        "ingress": _access(scenario, group.ingress),
        "egress": _access(scenario, group.egress),
        "forward_ns": forward_ns,
        "back_ns": back_ns,
        "tcp": _tcp(group.tcp, network.packet_bytes),
        "stands_for": None if scale == WHOLE else max(1.0, group.count / sources),
        **dict.fromkeys(_TRAFFIC_KEYS),
        **_traffic(group, start, network),
    }


_TRAFFIC_KEYS = (
    *("off", "size", "payload", "start", "start_times", "stop"),
    *("gap", "sizes", "lacking"),
)


def _traffic(
    group: Population, start: tuple[float, float] | None, network: Network
) -> dict[str, Any]:
    traffic = group.traffic
    payload = network.packet_bytes - group.tcp.header_bytes if group.tcp.is_todays else None
    if traffic.kind == "on-off":
        return {
            "off": traffic.off.parameters(),
            "size": traffic.size.parameters(),
            "payload": payload if traffic.size.is_in_bytes else None,
            "on_off": {
                "cut": traffic.size_rounding == "down",
                "persistent": traffic.connection == "persistent",
                "equilibrium": start,
                # Spearman's correlation of a Gaussian copula, turned into that of the normal law.
                "coupling": 2.0 * math.sin(math.pi * traffic.correlation / 6.0),
            },
        }
    if traffic.kind == "transfers":
        return _transfers(traffic, payload)
    if traffic.kind == "capture":
        raise TypeError("what was captured is no traffic to simulate")
    return {**_start(group), "stop": None if math.isinf(group.stop_s) else group.stop_s}


def _start(group: Population) -> dict[str, Any]:
    """Return when the endless flows of a class start."""
    start = getattr(group.traffic, "start", None)
    if start is None:
        within = {"low": group.start_s, "high": group.start_s + group.rtt_s}
        return {"start": {"law": "uniform", **within}}
    if isinstance(start, list):
        return {"start_times": list(start)}
    return {"start": start.parameters()}


def _transfers(traffic: Transfers, payload: int | None) -> dict[str, Any]:
    """Return sizes, and the bytes that last packets lack; those of today's TCP have a payload."""
    files = [_file(size, payload) for size in traffic.sizes or []]
    if traffic.arrivals is None:
        return {"sizes": [size for size, _ in files], "lacking": [lacking for _, lacking in files]}
    gap = {"law": "exponential", "minimum": 0.0, "mean": 1 / traffic.arrivals.rate}
    if isinstance(traffic.size, Law):
        in_bytes = traffic.size.is_in_bytes
        return {
            "gap": gap,
            "size": traffic.size.parameters(),
            "payload": payload if in_bytes else None,
        }
    values = [size - lacking / (payload or 1) for size, lacking in files]
    return {
        "gap": gap,
        "size": {
            "law": "empirical",
            "values": values,
            "cumulative": [(at + 1) / len(values) for at in range(len(values))],
        },
        "payload": payload,
    }


def _file(size: int, payload: int | None) -> tuple[int, int]:
    """Return the packets of a file, and the bytes that the last one lacks of a full one."""
    if payload is None or not isinstance(size, FileInBytes):
        return int(size), 0
    return size.packets(payload), size.lacking_bytes(payload)


def _access(scenario: Scenario, link: Link) -> dict[str, Any]:
    return {
        "rate_bps": _rate(link),
        "delay_ns": nanoseconds(link.delay_s or 0.0),
        "limit_pkts": _whole(scenario.network.buffer_pkts(link)),
        "loss": loss_law(link.loss),
    }
