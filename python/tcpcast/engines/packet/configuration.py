"""Convert a scenario to the configuration of the simulator, which is plain data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.engines.packet.cross_traffic import stream_configs
from tcpcast.engines.packet.equilibrium import initial_class_states
from tcpcast.engines.packet.network_scale import FULL_SCALE, NetworkScale, subtract_delays
from tcpcast.engines.packet.queue_config import (
    buffer_capacity,
    discipline_config,
    finite_bps,
    rate_config,
    token_bucket_config,
)
from tcpcast.engines.packet.scenario_features import find_late_class
from tcpcast.scenario.byte_sizes import FileInBytes
from tcpcast.scenario.classes import get_ack_bytes
from tcpcast.scenario.distributions import Distribution
from tcpcast.scenario.loss import RestOfRound
from tcpcast.scenario.modern_stacks import EXTERNAL_BASE, MODERN_STACKS, NEWEST_MEASURED_KERNEL
from tcpcast.scenario.pages import CONNECTIONS, sort_objects
from tcpcast.scenario.queue import FairQueue
from tcpcast.scenario.quic import QUIC_STACKS
from tcpcast.scenario.rate import TokenBucket
from tcpcast.scenario.traffic import (
    READ_BYTES_AT_RATE,
    Bulk,
    Messages,
    Pages,
    Ping,
    Reading,
    Requests,
    Stream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.engines.packet.config_types import Choice, Config
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.jitter import Jitter
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.links import Change, NetworkLink
    from tcpcast.scenario.loss import Loss
    from tcpcast.scenario.remark import Remark
    from tcpcast.scenario.tcp import Tcp

SIZE_BOUNDS = (2, 6, 14, 30, 62, 128, 256, 512, 1024, 2048, 4096)
"""Upper ends of the size intervals in packets: Table 1 of the Engset report."""

MAX_ACK_DELAY_NS = 25_000_000
"""Default of the transport parameter `max_ack_delay` (RFC 9000, section 18.2)."""

UNLIMITED_WINDOW = 2**32 - 1

TIE_NOISE_NS = 100
"""Mean delay noise of hosts without specified noise, in ns, used with several classes; far below
the transmission time of a packet."""

LIMITED_TRANSMIT_CONFIG = {"each": "each-duplicate", "second": "on-second"}

RECOVERY_CONFIG: dict[str, Choice] = {
    "reno": "reno",
    "newreno": {"newreno": {"restart_timer": True}},
    "tahoe": "tahoe",
    "newreno-patient": {"newreno": {"restart_timer": False}},
}


def to_nanoseconds(seconds: float) -> int:
    """Return a time to the nearest nanosecond."""
    return round(seconds * 1e9)


def make_configuration(
    scenario: Scenario, warmup_s: float, scale: NetworkScale = FULL_SCALE
) -> Config:
    """Return the simulator's configuration as plain data.

    Parameters
    ----------
    scenario
        The scenario.
    warmup_s
        Length of the warm-up; counting starts at its end.
    scale
        Number of sources per simulated source.
    """
    topology = scenario.topology
    places = {name: index for index, name in enumerate(topology.links)}
    sites, losses = list(scenario.sites), [link.loss for link in topology.links.values()]
    return {
        "seed": scenario.run.seed,
        "links": [
            _link_config(scenario, link, topology.buffers_pkts[name], sites, scale)
            for name, link in topology.links.items()
        ],
        "sites": [{"count": site.count} for site in scenario.sites.values()],
        "classes": [
            _routed_class_config(scenario, index, start, places, scale)
            for index, start in enumerate(initial_class_states(scenario))
        ],
        "cross": stream_configs(scenario, places, scale),
        "round_loss": next((loss.rate for loss in losses if isinstance(loss, RestOfRound)), None),
        "rtt_spread": scenario.run.rtt_spread or 0.0,
        "headline": places[topology.headline],
        "warmup_ns": to_nanoseconds(warmup_s),
        "probes": probes_config(scenario),
    }


def is_without_tcp(group: Population) -> bool:
    """Return True for messages and pings."""
    return isinstance(group.traffic, Messages | Ping)


def probes_config(scenario: Scenario) -> Config:
    """Return what a run records."""
    return {
        "size_bounds": size_interval_bounds(scenario),
        "traced": list(scenario.probes.flows),
        "trace_points": None,
        "course": find_late_class(scenario) is not None,
        "captures": [(wanted.link, wanted.packets) for wanted in scenario.probes.pcap],
        "goodput_packets": scenario.probes.goodput_packets or 0,
        "goodput_least": math.floor(scenario.probes.goodput_least),
        "report_at_ns": [to_nanoseconds(time) for time in scenario.run.report_at or ()],
    }


def _link_config(
    scenario: Scenario,
    link: NetworkLink,
    buffer_pkts: float,
    sites: Sequence[str],
    scale: NetworkScale,
) -> Config:
    policer = link.varying if isinstance(link.varying, TokenBucket) and link.is_policer else None
    scale = scale if link.each is None else FULL_SCALE
    in_bytes = link.buffer.unit == "bytes" and scale == FULL_SCALE
    limit_pkts = math.inf if in_bytes or policer else buffer_pkts
    individual = isinstance(link.queue, FairQueue) and link.queue.buffers == "individual"
    limit = buffer_capacity(limit_pkts, link.rate, scenario.network.packet_bytes)
    rate = rate_config(link)
    if "constant" in rate:
        rate = {"constant": scale.scale_rate_bps(rate["constant"])}
    each: Choice = "all" if link.each is None else "sender"
    if link.each in sites:
        each = {"site": sites.index(link.each)}
    return {
        "rate": {"constant": None} if policer else rate,
        "policer": None if policer is None else token_bucket_config(policer),
        "delay_ns": to_nanoseconds(link.delay or 0.0),
        "limit_pkts": scale.scale_buffer_pkts(limit, individual=individual),
        "limit_bytes": int(link.buffer.amount) if in_bytes else None,
        "queue": discipline_config(scenario, link),
        "loss": None if isinstance(link.loss, RestOfRound) else link_loss_config(link),
        "remark": _remark_config(link.remark),
        "jitter": jitter_config(link.jitter),
        "docsis": None
        if link.docsis is None
        else {
            "map_interval_ns": to_nanoseconds(link.docsis.map_interval),
            "min_delay_ns": to_nanoseconds(link.docsis.min_delay),
        },
        "each": each,
        "changes": [
            {"at_ns": to_nanoseconds(time_s), "change": change}
            for time_s, changes in link.changes
            for change in _change_configs(link, changes)
        ],
    }


def _change_configs(link: NetworkLink, change: Change) -> Iterator[Config]:
    if change.rate is not None:
        yield {"rate": None if math.isinf(change.rate) else finite_bps(change.rate)}
    if change.delay is not None:
        yield {"delay": to_nanoseconds(change.delay)}
    if change.loss_rule is not None:
        yield {"loss": link_loss_config(link.model_copy(update={"loss_rule": change.loss_rule}))}


def _routed_class_config(
    scenario: Scenario,
    index: int,
    start: tuple[float, float] | None,
    places: Mapping[str, int],
    scale: NetworkScale,
) -> Config:
    group, routes = scenario.populations[index], scenario.topology.classes[index]
    entry = scenario.classes[index] if scenario.classes else None
    site, host = (None, None) if entry is None else (entry.site, entry.host)
    hosts = dict.fromkeys(each.host for each in scenario.classes if each.host is not None)
    # Hosts without specified noise get just enough noise to order simultaneous packets of different
    # classes at random. Otherwise, the first class would always be first.
    is_tied = len(scenario.populations) > 1 and not group.tcp.has_loss_feedback
    sources = scale.scale_source_count(group.count)
    longer_ns = extra_byte_ns(scenario, scale) * group.packet_bytes
    delay_ns, back_ns = subtract_delays(
        to_nanoseconds(max(0.0, routes.delay_s)),
        to_nanoseconds(max(0.0, routes.back_delay_s)),
        (longer_ns, 0.0),
    )
    return {
        "site": None if site is None else list(scenario.sites).index(site),
        "flows": sources // (1 if site is None else scenario.sites[site].count),
        "routes": [[places[name] for name in route] for route in routes.route],
        "back": [[places[name] for name in route] for route in routes.back],
        "host": None if host is None else list(hosts).index(host),
        "dscp": (entry and entry.dscp) or 0,
        "delay_ns": delay_ns,
        "back_delay_ns": back_ns,
        "packet_bytes": group.packet_bytes,
        "ack_bytes": get_ack_bytes(group.tcp, scenario.network),
        "tso": group.tcp.tso == "auto",
        "gro": group.tcp.gro is not False,
        "sends": group.sends,
        "traffic": _routed_traffic_config(group, start, (delay_ns, back_ns)),
        "reading": _reading_config(group),
        "writing": _writing_config(group),
        "tcp": _tcp_config(group),
        "host_noise_ns": max(
            to_nanoseconds(group.tcp.host_noise_s), TIE_NOISE_NS if is_tied else 0
        ),
        "scale": None if scale == FULL_SCALE else max(1.0, group.count / sources),
    }


def _routed_traffic_config(
    group: Population, start: tuple[float, float] | None, delays_ns: tuple[int, int]
) -> Config:
    traffic = group.traffic
    config: Config
    match traffic:
        case Requests():
            times = "request", "answer", "server_time", "pause"
            config = {key: getattr(traffic, key).parameters() for key in times}
            config["fan_in"] = traffic.fan_in
        case Messages():
            config = {"bytes": traffic.size.parameters(), "interval": traffic.interval.parameters()}
            config["ecn"] = traffic.ecn or "not-ect"
        case Ping():
            config = {"bytes": traffic.size, "interval": traffic.interval.parameters()}
        case Stream():
            config = {
                "rates_bps": [finite_bps(rate) for rate in traffic.rates],
                "control": traffic.control or "buffer",
                "segment_s": traffic.segment,
                "start_buffer_s": traffic.start_buffer,
                "max_buffer_s": traffic.max_buffer,
            }
        case Pages():
            hosts, ordered = traffic.hosts, sort_objects(traffic.objects)
            longer_ns = [
                to_nanoseconds((traffic.host_rtt.get(host, group.rtt_s) - group.rtt_s) / 2)
                for host in hosts
            ]
            config = {
                "pages": [
                    [
                        {
                            "bytes": item.size,
                            "request": item.request,
                            "host": hosts.index(item.host),
                            "parent": parent,
                            "found_at": (
                                0
                                if parent is None
                                else math.ceil(item.found * ordered[parent][0].size)
                            ),
                            "delay_s": item.delay,
                            "server_time_s": item.server_time,
                            "urgency": item.priority,
                        }
                        for item, parent in ordered
                    ]
                ],
                "hosts": [
                    {
                        "delay_ns": max(0, delays_ns[0] + ns),
                        "back_delay_ns": max(0, delays_ns[1] + ns),
                    }
                    for ns in longer_ns
                ],
                "connections_per_host": CONNECTIONS[traffic.http],
                "multiplexes": traffic.http != "1.1",
                "order": traffic.order,
                "persistent": traffic.connection == "persistent",
                "opening": _opening_bytes(group),
                "record": traffic.record if _has_tls_over_tcp(group) else 1,
                "server_time": traffic.server_time.parameters(),
                "pause": traffic.pause.parameters(),
            }
        case _:
            return {"files": traffic_config(group, start)}
    return {traffic.kind: config | _start_and_stop_config(group)}


def _reading_config(group: Population) -> Config | None:
    reads = getattr(group.traffic, "reads", None)
    if reads is None:
        return None
    if isinstance(reads, Reading):
        return {"size": reads.size, "pause": {"time": reads.pause.parameters()}}
    return {"size": READ_BYTES_AT_RATE, "pause": {"rate-bps": max(1, round(reads))}}


def _writing_config(group: Population) -> Config | None:
    writes = getattr(group.traffic, "writes", None)
    if writes is None:
        return None
    return {
        "size": writes.size.parameters(),
        "gap": writes.gap.parameters(),
        "after_ns": to_nanoseconds(writes.after),
    }


def _remark_config(remark: Remark | None) -> Config | None:
    if remark is None:
        return None
    return {"to": None if remark.to is None else list(remark.to), "share": remark.share}


def jitter_config(jitter: Jitter | None) -> Config | None:
    """Return the distribution of a link's jitter; None without jitter."""
    if jitter is None:
        return None
    return {"delay": jitter.distribution.parameters(), "reorder": jitter.reorder}


def sorted_listed_sizes(scenario: Scenario) -> list[int] | None:
    """Return the sizes of all files in ascending order, None if they are not listed."""
    packets: set[int] = set()
    for group in scenario.populations:
        if group.traffic.kind == "bulk":
            continue
        sizes = group.traffic.sizes if group.traffic.kind == "transfers" else None
        if sizes is None:
            return None
        todays = group.payload_bytes if group.tcp.is_modern else None
        packets.update(_packets_and_missing_bytes(size, todays)[0] for size in sizes)
    return sorted(packets) or None


def size_interval_bounds(scenario: Scenario) -> list[int]:
    """Return the upper ends of the size intervals; each listed size has its own interval."""
    return sorted_listed_sizes(scenario) or list(SIZE_BOUNDS)


def extra_byte_ns(scenario: Scenario, scale: NetworkScale) -> float:
    """Return the extra transmission time of a byte, summed over all shared links, in ns."""
    if scale == FULL_SCALE:
        return 0.0
    shared = [link for link in scenario.topology.links.values() if link.each is None]
    # The constant rate of both directions in bit/s, None if unlimited. Varying rates of the
    # forward path are part of the queue's configuration.
    return sum(
        scale.extra_byte_ns(None if math.isinf(link.serial_bps) else max(1, round(link.serial_bps)))
        for link in shared
    )


def _tcp_config(group: Population) -> Config | None:
    if is_without_tcp(group):
        return None
    if group.tcp.is_modern:
        tcp = group.tcp
        external = MODERN_STACKS[tcp.stack].external if tcp.is_external else None
        return {
            "modern": {
                **_common_tcp_config(tcp),
                "stack": (
                    CONTROL_OF_QUIC[tcp.control]
                    if tcp.is_quic
                    else tcp.stack
                    if external is None
                    else EXTERNAL_BASE
                ),
                "external": external,
                "kernel": tcp.kernel or NEWEST_MEASURED_KERNEL,
                "mss": group.payload_bytes,
                "receiver_window": (
                    None
                    if math.isinf(tcp.receiver_window)
                    else _bounded_window_pkts(tcp.receiver_window)
                ),
                "limited_transmit": tcp.limited_transmit,
                "idle_restart": tcp.idle_restart == "rto",
                "timestamps": bool(tcp.timestamps),
                "handshake": tcp.handshake or "none",
                "fast_open": bool(tcp.fast_open),
                "ecn": "accurate" if tcp.ecn == "accurate" else "classic" if tcp.ecn else "off",
                "pacing": (
                    {"max-rate-bps": round(tcp.pacing)}
                    if isinstance(tcp.pacing, float)
                    else tcp.pacing or "internal"
                ),
                "socket_buffers": _socket_buffers_config(tcp),
                "socket": _socket_config(group),
                # Browsers and web servers set TCP_NODELAY.
                "nodelay": bool(tcp.nodelay) or isinstance(group.traffic, Pages),
                "virtual_flows": tcp.virtual_flows or 1,
                "ecn_fallback": bool(tcp.ecn_fallback),
                "certificate": tcp.certificate,
                "quic": _quic_config(group) if tcp.is_quic else None,
            }
        }
    return {"packets": packet_tcp_config(group.tcp)}


_TICKET_BYTES = {"tls13": 478, "tls13-resumption": 239, "tls13-0rtt": 239}
"""Bytes of the session tickets that a server sends after a handshake: two of OpenSSL, or one in a
resumed session. In TLS 1.2 they are part of the handshake."""
_SETTINGS_BYTES = 73
"""Bytes of SETTINGS of HTTP/2 in a record."""


def _has_tls_over_tcp(group: Population) -> bool:
    return not group.tcp.is_quic and str(group.tcp.handshake).startswith("tls")


def _opening_bytes(group: Population) -> list[int]:
    """Return the bytes of the messages with which a server opens a session."""
    if not _has_tls_over_tcp(group):
        return []
    tickets = _TICKET_BYTES.get(str(group.tcp.handshake))
    settings = (
        _SETTINGS_BYTES if isinstance(group.traffic, Pages) and group.traffic.http == "2" else None
    )
    return [bytes_ for bytes_ in (tickets, settings) if bytes_ is not None]


def packet_tcp_config(tcp: Tcp) -> Config:
    """Return classic TCP, whose sequence numbers count packets."""
    rules = tcp.rules
    sends = LIMITED_TRANSMIT_CONFIG[rules.limited_transmit_on] if tcp.limited_transmit else "off"
    return {
        **_common_tcp_config(tcp),
        # These rules do not apply to max-plus-reno.
        "recovery": RECOVERY_CONFIG[rules.recovery],
        "timer_restart": rules.timer_restart,
        "backoff_until": rules.backoff_until,
        "last_packets_threshold": tcp.last_packets_threshold,
        "limited_transmit": sends,
        "max_burst": _bounded_window_pkts(
            math.inf if isinstance(rules.max_burst, str) else rules.max_burst
        ),
        "window_unit": rules.window_unit,
        "initial_ssthresh": _bounded_window_pkts(tcp.initial_ssthresh),
        "slow_start_at_ssthresh": rules.slow_start_at_ssthresh,
        "receiver_window": _bounded_window_pkts(tcp.receiver_window),
        "idle_restart": (
            "after-timeout"
            if tcp.idle_restart == "rto"
            else "never"
            if isinstance(tcp.idle_restart, str)
            else {"after": to_nanoseconds(tcp.idle_restart)}
        ),
        "instant": None if rules.max_plus is None else dict(rules.max_plus),
    }


CONTROL_OF_QUIC = {
    "cubic": "linux-cubic",
    "reno": "linux-reno",
    "bbr": "linux-bbr",
    "bbr3": "bbr3",
}
"""Stacks of TCP that have the congestion control of a QUIC stack."""


def _quic_config(group: Population) -> Config:
    tcp, stack = group.tcp, QUIC_STACKS[group.tcp.stack]
    window = stack.window_bytes
    if math.isfinite(tcp.receiver_window):
        window = _bounded_window_pkts(tcp.receiver_window) * group.payload_bytes
    return {
        "ack_packets": tcp.ack_packets if tcp.delayed_acks else 1,
        "ack_delay_ns": to_nanoseconds(tcp.ack_timeout_s),
        "max_ack_delay_ns": max(to_nanoseconds(tcp.ack_timeout_s), MAX_ACK_DELAY_NS),
        "acks_reordering": stack.acks_reordering,
        "initial_rtt_ns": to_nanoseconds(tcp.initial_rto_s) // 3,
        "probes": stack.probes,
        "probes_carry_data": stack.probes_carry_data,
        "fills_window": stack.fills_window,
        "fractional_cubic": stack.fractional_cubic,
        "slow_start_exit": stack.slow_start_exit,
        "undo_percent": stack.undo_percent,
        "pacing_percent": 0 if tcp.pacing == "off" else stack.pacing_percent,
        "burst": {
            "min_packets": stack.burst_min_packets,
            "max_packets": stack.burst_max_packets,
            "window_percent": stack.burst_window_percent,
            "time_ns": to_nanoseconds(stack.burst_time_s),
            "wait": stack.pacing_wait,
        },
        "window": window,
        "window_doubles": stack.window_doubles and math.isinf(tcp.receiver_window),
    }


def _socket_buffers_config(tcp: Tcp) -> str | Config:
    buffers = tcp.socket_buffers or "unlimited"
    if isinstance(buffers, str):
        return buffers
    return {"bytes": {"send": buffers.send, "receive": buffers.receive}}


def _socket_config(group: Population) -> Config | None:
    """Return the options of a socket whose application waits for space in the send buffer."""
    multiplexes = isinstance(group.traffic, Pages) and group.traffic.http == "2"
    if multiplexes or getattr(group.traffic, "writes", None) is not None:
        lowat = group.tcp.notsent_lowat
        return {
            "send_buffer": group.tcp.max_send_memory_bytes,
            "notsent_lowat": None if lowat in (None, "unlimited") else lowat,
        }
    return None


def _common_tcp_config(tcp: Tcp) -> Config:
    return {
        "duplicate_threshold": tcp.duplicate_threshold,
        "initial_window": tcp.initial_window,
        "delayed_acks": tcp.delayed_acks,
        "ack_timeout_ns": to_nanoseconds(tcp.ack_timeout_s),
        "min_rto_ns": to_nanoseconds(tcp.min_rto_s),
        "initial_rto_ns": to_nanoseconds(tcp.initial_rto_s),
        "max_rto_ns": to_nanoseconds(tcp.max_rto_s),
        "rto_granularity_ns": to_nanoseconds(tcp.rto_granularity_s),
    }


def _bounded_window_pkts(packets: float) -> int:
    return int(min(packets, UNLIMITED_WINDOW))


def traffic_config(group: Population, start: tuple[float, float] | None) -> Config:
    """Return the files or bulk flows of a class; ``start`` is the state of on/off sources."""
    traffic = group.traffic
    payload = group.payload_bytes if group.tcp.is_modern else None
    if traffic.kind == "on-off":
        if start is None:
            initial_state_config: Choice = "off"
        else:
            active, within = start
            initial_state_config = {"equilibrium": {"active": active, "within": within}}
        return {
            "on-off": {
                "off": traffic.off.parameters(),
                "size": traffic.size.parameters(),
                "rounding": _size_rounding_config(traffic.size, payload, traffic.size_rounding),
                "persistent": traffic.connection == "persistent",
                # Correlation of the copula's normal distribution, from Spearman's correlation.
                "coupling": 2.0 * math.sin(math.pi * traffic.correlation / 6.0),
                "begin": initial_state_config,
            }
        }
    if traffic.kind == "transfers":
        files = [_packets_and_missing_bytes(size, payload) for size in traffic.sizes or []]
        if traffic.arrivals is None:
            return {"transfers": {"sizes": files}}
        gap = {"distribution": "exponential", "minimum": 0.0, "scale": 1 / traffic.arrivals.rate}
        if isinstance(traffic.size, Distribution):
            rounding = _size_rounding_config(traffic.size, payload, "nearest")
            return {
                "arrivals": {"gap": gap, "size": traffic.size.parameters(), "rounding": rounding}
            }
        values = [size - lacking / (payload or 1) for size, lacking in files]
        cumulative = [(at + 1) / len(values) for at in range(len(values))]
        return {
            "arrivals": {
                "gap": gap,
                "size": {"distribution": "empirical", "values": values, "cumulative": cumulative},
                "rounding": "nearest" if payload is None else {"bytes": payload},
            }
        }
    return {"bulk": _start_and_stop_config(group)}


def _start_and_stop_config(group: Population) -> Config:
    start = group.traffic.start if isinstance(group.traffic, Bulk) else None
    if isinstance(group.traffic, Bulk) and group.traffic.connects_in_turn:
        # The simulated handshake of all flows is that of the last one.
        times: Config = {"times": [group.start_s + (group.count - 1) * group.rtt_s] * group.count}
    elif start is None:
        ends = {"low": group.start_s, "high": group.start_s + group.rtt_s}
        times = {"drawn": {"distribution": "uniform", **ends}}
    elif isinstance(start, list):
        times = {"times": list(start)}
    else:
        times = {"drawn": start.parameters()}
    return {"start": times, "stop": None if math.isinf(group.stop_s) else group.stop_s}


def _size_rounding_config(size: Distribution[Any], payload: int | None, otherwise: str) -> Choice:
    return {"bytes": payload} if payload is not None and size.is_in_bytes else otherwise


def _packets_and_missing_bytes(size: int, payload: int | None) -> tuple[int, int]:
    """Return the packets of a file, and the missing bytes of its last packet."""
    if payload is None or not isinstance(size, FileInBytes):
        return int(size), 0
    return size.packets(payload), size.padding_bytes(payload)


def loss_model_config(loss: Loss | None) -> Config | None:
    """Return a link's loss model, which is independent of flows; None for no loss.

    Raises
    ------
    TypeError
        The model loses the rest of a round, which scenarios allow only at the bottleneck.
    """
    if loss is None:
        return None
    if loss.model == "bernoulli":
        return {"bernoulli": loss.rate}
    if loss.model == "rest-of-round":
        raise TypeError('loss model "rest-of-round" is supported only at the bottleneck')
    return {"gilbert-elliott": {name: value for name, value in loss if name != "model"}}


def link_loss_config(link: Link) -> Config | None:
    """Return the random loss of a link and its position; None for no loss."""
    model = loss_model_config(link.loss)
    return None if model is None else {"model": model, "at": link.loss_at}
