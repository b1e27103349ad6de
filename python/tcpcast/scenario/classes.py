"""Classes of users: ``[[class]]`` tables laid over the top level, and what comes out of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeGuard

from pydantic import (
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.scenario.link import Link, PathLink
from tcpcast.scenario.modern_tcp import TIMESTAMP_BYTES, has_timestamps, inherited
from tcpcast.scenario.names import Name
from tcpcast.scenario.network import HEADER_BYTES, NO_RTT, Network
from tcpcast.scenario.quantities import Duration, PacketSize, PositiveDuration
from tcpcast.scenario.table import (
    Reading,
    Table,
    as_table,
    fault,
    faults,
    has_only_lacks,
    reading,
)
from tcpcast.scenario.tcp import Tcp
from tcpcast.scenario.traffic import Bulk, Captured, Count, OnOff, Traffic, Transfers

COUNT_KEYS = {"on-off": "sources", "bulk": "flows"}
"""What the number of senders is called in each kind of traffic that has one."""

MOST_CLASSES = 1000

TRAFFIC: TypeAdapter[Any] = TypeAdapter(Traffic, config=ConfigDict(defer_build=True))
_TCP: TypeAdapter[Any] = TypeAdapter(Tcp)

_NAMING_KEYS = ("kind", "distribution", "model")


class UserClass(Table):
    """A class of users; what it does not say is as at the top level.

    A table that names its kind, distribution or model stands alone; any other is laid over the top
    level's table key by key.
    """

    name: Name = Field(examples=["far"], description="name in tables")
    sources: Count | None = Field(default=None, examples=[100], description="on/off sources")
    flows: Count | None = Field(default=None, examples=[10], description="bulk flows")
    rtt: PositiveDuration | None = Field(
        default=None, examples=["200ms"], description="as network.rtt"
    )
    packet: PacketSize | None = Field(
        default=None,
        examples=["200B"],
        description="as network.packet; at most network.packet",
    )
    start: Duration | None = Field(
        default=None,
        examples=["10s"],
        description="start of its bulk flows, spread over one RTT; default 0 s",
    )
    stop: PositiveDuration | None = Field(
        default=None,
        examples=["70s"],
        description="end of its bulk flows; default never",
    )
    ingress: Link = Field(examples=[{"rate": "100mbit"}], description="merged with network.ingress")
    egress: Link = Field(examples=[{"rate": "2mbit"}], description="merged with network.egress")
    traffic: Traffic = Field(
        examples=[{"off": {"distribution": "exponential", "mean": "1s"}}],
        description="merged with the top level's traffic",
    )
    tcp: Tcp | None = Field(
        default=None,
        examples=[{"stack": "rfc-reno"}],
        description="overrides keys of the top level's tcp",
    )


def _read_with_own_payload(
    value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
) -> Any:
    """Read a class; its sizes in bytes are divided by the payload that its own TCP leaves."""
    context, tcp = reading(info), as_table(value).get("tcp")
    timestamps = context.timestamps if tcp is None else has_timestamps(as_table(tcp))
    payload = context.payload_bytes
    if payload is None:
        return handler(value)
    packet = _packet_bytes(as_table(value).get("packet"))
    if packet is None:
        payload += TIMESTAMP_BYTES * (context.timestamps - timestamps)
    else:
        payload = packet - HEADER_BYTES - TIMESTAMP_BYTES * timestamps
    if payload == context.payload_bytes or payload <= 0:
        return handler(value)
    own = replace(context, payload_bytes=payload, timestamps=timestamps)
    return UserClass.model_validate(value, context=own)


def _packet_bytes(typed: object) -> int | None:
    """Return a packet size as typed; None if there is none, or a wrong one."""
    try:
        return None if typed is None else units.parse_bytes(typed)
    except UnitError:
        return None


ClassEntry = Annotated[UserClass, WrapValidator(_read_with_own_payload)]


@dataclass(frozen=True, slots=True)
class Population:
    """Users alike in everything: a class with all that it inherits, or the whole scenario.

    ``rtt_s`` is the time of one packet and its ack on the empty path; ``forward_delay_s`` and
    ``return_delay_s`` are its propagation, without transmission times.
    """

    name: str
    count: int
    traffic: OnOff | Bulk | Transfers | Captured
    rtt_s: float
    ingress: Link
    egress: Link
    forward_delay_s: float
    return_delay_s: float
    tcp: Tcp
    packet_bytes: int
    start_s: float = 0.0
    stop_s: float = math.inf

    @property
    def payload_bytes(self) -> int:
        """Application bytes in a full data packet."""
        return self.packet_bytes - self.tcp.header_bytes

    @property
    def has_start_or_stop(self) -> bool:
        """Whether its flows start and stop at times of their own, ``start_s`` and ``stop_s``."""
        return self.start_s > 0.0 or math.isfinite(self.stop_s)

    @property
    def opens_each(self) -> bool:
        """Whether each of its transfers opens a connection, with a handshake."""
        opens = self.tcp.handshake not in (None, "none")
        persistent = getattr(self.traffic, "connection", "new") == "persistent"
        return opens and self.traffic.kind in ("on-off", "transfers") and not persistent

    def links(self, network: Network) -> tuple[PathLink, ...]:
        """Return the links that its data packets take, in their order."""
        return network.links(self.ingress, self.egress)


def lay_classes(data: Mapping[str, Any], context: Reading) -> dict[str, Any]:
    """Fill every class with what it inherits from the top level, before anything is checked.

    Parameters
    ----------
    data
        The scenario as typed; anything may be wrong with it, and is then left as it is.
    context
        Values of other tables, with which traffic and TCP are read.

    Returns
    -------
    dict
        A copy whose classes are complete. If the top level's traffic or TCP is incomplete, because
        classes set the rest, that of a class takes its place.

    Raises
    ------
    ValidationError
        More than :data:`MOST_CLASSES` classes, none of which is then read.
    """
    laid = dict(data)
    entries = laid.get("class")
    if isinstance(entries, list) and len(entries) > MOST_CLASSES:
        message = f"has {len(entries)} entries; write at most {MOST_CLASSES}"
        raise faults([fault(message, "class")])
    if isinstance(entries, list):
        laid["class"] = [_laid(entry, laid) if _is_table(entry) else entry for entry in entries]
        laid |= _substitutes(laid, context)
    return laid


def _substitutes(laid: Mapping[str, Any], context: Reading) -> dict[str, Any]:
    """Return the tables of classes that replace those of the top level that lack keys."""
    found: dict[str, Any] = {}
    classes = [entry for entry in laid["class"] if _is_table(entry)]
    problem = _problem(TRAFFIC, laid.get("traffic", {}), context)
    if problem is not None and has_only_lacks(problem):
        own = [entry["traffic"] for entry in classes if "kind" in as_table(entry["traffic"])]
        valid = _first_valid(TRAFFIC, own, context)
        if valid is not None:
            found["traffic"] = valid
        elif own and "traffic" not in laid:
            found["traffic"] = own[0]  # its faults are reported at the class
    tcp = laid.get("tcp")
    if _is_table(tcp) and "stack" not in tcp and _problem(_TCP, tcp, context) is not None:
        own = [entry["tcp"] for entry in classes if "stack" in as_table(entry.get("tcp"))]
        valid = _first_valid(_TCP, own, context) if len(own) == len(classes) else None
        if valid is not None:
            found["tcp"] = valid
    return found


def _first_valid(
    kind: TypeAdapter[Any], tables: Sequence[object], context: Reading
) -> object | None:
    return next((table for table in tables if _problem(kind, table, context) is None), None)


def _problem(kind: TypeAdapter[Any], table: object, context: Reading) -> ValidationError | None:
    try:
        kind.validate_python(table, context=context)
    except ValidationError as error:
        return error
    return None


def overlay(base: Any, top: Any) -> Any:
    """Lay a table over another key by key, unless it names its kind, distribution or model."""
    if not (_is_table(base) and _is_table(top)) or any(key in top for key in _NAMING_KEYS):
        return top
    return {**base, **{key: overlay(base.get(key), value) for key, value in top.items()}}


def _laid(entry: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, Any]:
    typed = scenario.get("network")
    network = typed if _is_table(typed) else {}
    laid = dict(entry)
    for name in ("ingress", "egress"):
        base = network.get(name, {})
        if "rtt" in entry and _is_table(base):
            # The class says its round-trip time: the delays of the top level are not its own.
            base = {key: value for key, value in base.items() if key != "delay"}
        laid[name] = overlay(base, entry.get(name, {}))
    if "rtt" in network:
        laid.setdefault("rtt", network["rtt"])
    laid["traffic"] = overlay(scenario.get("traffic", {}), entry.get("traffic", {}))
    if "tcp" in entry:
        # Keys that were typed: what a preset fills in belongs to the stack that the class has.
        above, own = scenario.get("tcp", {}), entry["tcp"]
        if _is_table(above) and _is_table(own) and "stack" in own:
            above = inherited(above, own["stack"])
        laid["tcp"] = overlay(above, own)
    return _with_count(laid, entry)


def _with_count(laid: dict[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the number of senders from the traffic up to the class."""
    traffic = laid["traffic"]
    key = COUNT_KEYS.get(str(traffic.get("kind"))) if _is_table(traffic) else None
    own = entry.get("traffic")
    told_twice = key in entry and _is_table(own) and key in own
    if key is None or key not in traffic or told_twice:
        return laid
    laid["traffic"] = {name: value for name, value in traffic.items() if name != key}
    laid.setdefault(key, traffic[key])
    return laid


def _is_table(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def class_faults(user_class: UserClass, network: Network) -> list[Any]:
    """Find what is wrong with one class, given that each of its tables is right by itself."""
    found = _count_faults(user_class) + _span_faults(user_class)
    links = user_class.ingress, user_class.egress
    packet = packet_of(user_class, network)
    if packet > network.packet:
        most = units.format_bytes(network.packet)
        message = f'"{packet}B" is more than network.packet; write at most "{most}" here'
        found.append(fault(message, "packet"))
    own_delays = any(link.delay is not None for link in links)
    if user_class.rtt is None and not own_delays and not network.is_timed:
        found.append(fault(NO_RTT, "rtt"))
    if user_class.rtt is not None:
        problem = network.rtt_problem(user_class.rtt, *links, packet, delays_count=own_delays)
        if problem:
            found.append(fault(problem, "rtt"))
    problem = None if found else network.return_problem(user_class.rtt, *links, packet)
    if problem:
        found.append(fault(f"network.return_delay: {problem}", "rtt"))
    for name, link in zip(("ingress", "egress"), links, strict=True):
        problem = network.buffer_problem(link)
        if problem is None and link.buffer.unit == "bdp" and not network.is_timed:
            problem = f'"{link.buffer}" needs network.rtt; write that, or a buffer such as "150pkt"'
        if problem:
            found.append(fault(problem, name, "buffer"))
        for own_key, text in network.own_link_problems(link):
            found.append(fault(text, name, own_key))
    return found


def _span_faults(user_class: UserClass) -> list[Any]:
    """Find what is wrong with the times at which a class starts and stops."""
    typed = {"start": user_class.start, "stop": user_class.stop}
    given = [key for key, value in typed.items() if value is not None]
    traffic = user_class.traffic
    if given and not isinstance(traffic, Bulk):
        message = 'is for traffic.kind = "bulk"; leave it out'
        return [fault(message, key) for key in given]
    if "start" in given and isinstance(traffic, Bulk) and traffic.start is not None:
        return [fault("traffic.start says when its flows start; write one of the two", "start")]
    if "stop" in given and user_class.stop is not None:
        start = user_class.start or 0.0
        if user_class.stop <= start:
            written = units.format_duration(start)
            return [fault(f"is not after the start, {written}; write more", "stop")]
    return []


def _count_faults(user_class: UserClass) -> list[Any]:
    found = []
    traffic = user_class.traffic
    if isinstance(traffic, Captured):
        message = "a capture has no classes; write it at the top level, without classes"
        return [fault(message, "traffic", "kind")]
    key = COUNT_KEYS.get(traffic.kind, "traffic.arrivals")
    for name in COUNT_KEYS.values():
        given = getattr(user_class, name) is not None
        if name != key and given:
            found.append(fault(f"{name} do not go with {traffic.kind} traffic; write {key}", name))
        elif name == key and not given:
            found.append(fault(f"missing; write {key} = 100", name))
    if isinstance(traffic, Transfers):
        if traffic.alone:
            message = (
                "transfers that run each alone share nothing with a class; write arrivals = { "
                'distribution = "poisson", rate = "20/s" }, kind = "on-off" for files in sequence, '
                "or a scenario for each class"
            )
            found.append(fault(message, "traffic", "arrivals"))
    elif traffic.declared is not None:
        found.append(fault("given here and in the class's traffic; write it once", key))
    return found


def packet_of(user_class: UserClass, network: Network) -> int:
    """Return the bytes of a data packet of a class, headers included."""
    return network.packet if user_class.packet is None else user_class.packet


def population(user_class: UserClass, network: Network, tcp: Tcp) -> Population:
    """Resolve one class against the network, and the TCP of those that have none of their own."""
    traffic = user_class.traffic
    if isinstance(traffic, Transfers):
        count = traffic.at_once
    else:
        count = getattr(user_class, COUNT_KEYS[traffic.kind]) or 0
        traffic = traffic.model_copy(update={"declared": count})
    ingress, egress = user_class.ingress, user_class.egress
    packet = packet_of(user_class, network)
    rtt_s, there, back = network.timing(user_class.rtt, ingress, egress, packet)
    return Population(
        name=user_class.name,
        count=count,
        traffic=traffic,
        rtt_s=rtt_s,
        ingress=ingress,
        egress=egress,
        forward_delay_s=there,
        return_delay_s=back,
        tcp=user_class.tcp or tcp,
        packet_bytes=packet,
        start_s=user_class.start or 0.0,
        stop_s=math.inf if user_class.stop is None else user_class.stop,
    )


def sole_population(
    network: Network, traffic: OnOff | Bulk | Transfers | Captured, tcp: Tcp
) -> Population:
    """Return the one population of a scenario without classes."""
    packet, links = network.packet, (network.ingress, network.egress)
    rtt_s, there, back = network.timing(network.rtt, *links, packet)
    return Population(
        name="all",
        count=traffic.at_once if isinstance(traffic, Transfers) else traffic.count,
        traffic=traffic,
        rtt_s=rtt_s,
        ingress=network.ingress,
        egress=network.egress,
        forward_delay_s=there,
        return_delay_s=back,
        tcp=tcp,
        packet_bytes=packet,
    )


MIXED_SIZES = 4.0
"""Minimum ratio of two classes' mean file sizes at which a mean over both describes neither."""


def has_mixed_files(populations: Sequence[Population]) -> bool:
    """Return True if file sizes of classes differ too much for means over all files."""
    sizes = [
        traffic.size.mean_value() if isinstance(traffic, OnOff) else traffic.mean_size_pkts
        for traffic in (population.traffic for population in populations)
        if isinstance(traffic, OnOff | Transfers)
    ]
    return bool(sizes) and max(sizes) > MIXED_SIZES * min(sizes)
