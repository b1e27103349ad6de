"""Classes of users: reads ``[[class]]`` tables, which inherit keys from the top-level tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import (
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.link import Link
from tcpcast.scenario.links import Dscp, Routes, Site
from tcpcast.scenario.modern_tcp import get_header_bytes, get_inherited_keys
from tcpcast.scenario.name_patterns import Name
from tcpcast.scenario.network import MISSING_RTT_TEXT, Network
from tcpcast.scenario.path import PathLink
from tcpcast.scenario.quantities import Duration, PacketSize, PositiveDuration
from tcpcast.scenario.table import (
    Choice,
    Table,
    ValidationContext,
    get_validation_context,
    has_only_missing_keys,
    make_error_at,
    make_key_error,
    table_or_empty,
)
from tcpcast.scenario.tcp import Tcp
from tcpcast.scenario.traffic import (
    Bulk,
    Count,
    FlowTraffic,
    Messages,
    OnOff,
    Ping,
    Reading,
    Traffic,
    Transfers,
)

COUNT_KEYS = {
    **dict.fromkeys(("on-off", "page"), "sources"),
    **dict.fromkeys(("bulk", "requests", "messages", "ping", "stream"), "flows"),
}
"""Key of the number of senders by kind of traffic."""

MAX_CLASSES = 1000

TRAFFIC_ADAPTER: TypeAdapter[Any] = TypeAdapter(Traffic, config=ConfigDict(defer_build=True))
_TCP_ADAPTER: TypeAdapter[Any] = TypeAdapter(Tcp)

_SELECTOR_KEYS = ("kind", "distribution", "model")


class UserClass(Table):
    """A class of users; omitted keys have the values of the top-level tables.

    A table of the class with a kind, distribution or model replaces the top-level table. Other
    tables of the class override the top-level table key by key.
    """

    name: Name = Field(examples=["far"], description="name in tables")
    sources: Count | None = Field(
        default=None,
        examples=[100],
        description="number of on/off sources or browsers",
    )
    flows: Count | None = Field(default=None, examples=[10], description="number of bulk flows")
    rtt: PositiveDuration | None = Field(
        default=None, examples=["200ms"], description="as network.rtt"
    )
    packet: PacketSize | None = Field(
        default=None,
        examples=["200B"],
        description="size of a data packet, at most network.packet",
    )
    start: Duration | None = Field(
        default=None,
        examples=["10s"],
        description="start time of the flows, spread over one RTT; default: 0s",
    )
    stop: PositiveDuration | None = Field(
        default=None,
        examples=["70s"],
        description="end time of the flows; default: never",
    )
    site: Name | None = Field(
        default=None,
        examples=["home"],
        description="site of the class; `flows` and `sources` are then per member",
    )
    route: Routes | None = Field(
        default=None,
        examples=[["core", "line"]],
        description="links from the server to the client in order; several lists are equal-cost "
        "routes (ECMP): a hash selects one per connection",
    )
    back: Routes | None = Field(
        default=None,
        examples=[["up"]],
        description="links from the client to the server; default: none",
    )
    delay: Duration | None = Field(
        default=None,
        examples=["18ms"],
        description="one-way delay of the rest of the path; default: 0s",
    )
    back_delay: Duration | None = Field(
        default=None,
        examples=["18ms"],
        description="delay of the rest of the path to the server; default: `delay`",
    )
    host: Name | None = Field(
        default=None,
        examples=["laptop"],
        description=("client host, for queues that share the link among hosts"),
    )
    dscp: Dscp | None = Field(
        default=None,
        examples=["ef"],
        description='DSCP of all packets, for queue = "cake"; default: cs0',
    )
    sends: Annotated[Literal["server", "client", "both"], Choice("sender")] | None = Field(
        default=None,
        examples=["client"],
        description="which end sends data: the server (default), the client (an upload), or both",
    )
    ingress: Link = Field(
        examples=[{"rate": "100mbit"}], description="overrides keys of network.ingress"
    )
    egress: Link = Field(
        examples=[{"rate": "2mbit"}], description="overrides keys of network.egress"
    )
    traffic: Traffic = Field(
        examples=[{"off": {"distribution": "exponential", "mean": "1s"}}],
        description="overrides keys of the top-level `traffic`; with kind, replaces the complete "
        "table",
    )
    tcp: Tcp | None = Field(
        default=None,
        examples=[{"stack": "rfc-reno"}],
        description="overrides keys of the top-level `tcp`",
    )

    def flow_count(self, sites: Mapping[str, Site]) -> int:
        """Return the number of senders, over all members of the site."""
        members = 1 if self.site is None else sites[self.site].count
        count = getattr(self, COUNT_KEYS.get(self.traffic.kind, "flows")) or 0
        return count * getattr(self.traffic, "connections", 1) * members


def _read_class_with_own_payload(
    value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
) -> Any:
    """Read a class; sizes in bytes are divided by the payload per packet of this class."""
    context, tcp = get_validation_context(info), table_or_empty(value).get("tcp")
    headers = context.header_bytes if tcp is None else get_header_bytes(table_or_empty(tcp))
    payload = context.payload_bytes
    if payload is None:
        return handler(value)
    packet = _try_read_packet_bytes(table_or_empty(value).get("packet"))
    if packet is None:
        payload += context.header_bytes - headers
    else:
        payload = packet - headers
    if payload == context.payload_bytes or payload <= 0:
        return handler(value)
    own = replace(context, payload_bytes=payload, header_bytes=headers)
    return UserClass.model_validate(value, context=own)


def _try_read_packet_bytes(typed: object) -> int | None:
    """Return a packet size in bytes, or None if it is missing or wrong."""
    try:
        return None if typed is None else units.parse_bytes(typed)
    except UnitError:
        return None


ClassEntry = Annotated[UserClass, WrapValidator(_read_class_with_own_payload)]


@dataclass(frozen=True, slots=True)
class Population:
    """Identical users: a class with its inherited values or, without classes, all users.

    ``rtt_s`` is the base round-trip time, including transmission times; ``forward_delay_s`` and
    ``return_delay_s`` are its propagation delays. ``route`` has the links of the data in order,
    and in a network of links, ``back`` those of the acknowledgements (the first of equal routes).
    """

    name: str
    count: int
    traffic: OnOff | Bulk | Transfers | FlowTraffic
    rtt_s: float
    route: tuple[PathLink, ...]
    ingress: Link
    egress: Link
    forward_delay_s: float
    return_delay_s: float
    tcp: Tcp
    packet_bytes: int
    back: tuple[PathLink, ...] = ()
    sends: Literal["server", "client", "both"] = "server"
    start_s: float = 0.0
    stop_s: float = math.inf

    @property
    def data_links(self) -> tuple[PathLink, ...]:
        """Links that carry data: of the route, and of the return path if both ends send."""
        answers = self.sends == "both" or self.traffic.kind == "ping"
        return (*self.route, *self.back) if answers else self.route

    @property
    def payload_bytes(self) -> int:
        """Application bytes in a full data packet."""
        return self.packet_bytes - self.tcp.header_bytes

    @property
    def allowed_windows_pkts(self) -> tuple[float, float]:
        """Largest windows in packets that the send buffer and the receiver allow."""
        send, receive = (size / self.payload_bytes for size in self.tcp.max_window_bytes)
        return send, min(receive, self.tcp.receiver_window)

    @property
    def idle_delay_s(self) -> float:
        """Mean delay of a message, or RTT of a ping, without other traffic; nan for others."""
        match self.traffic:
            case Messages(size=size):
                bits, delay_s, links = 8.0 * size.mean_value(), self.forward_delay_s, self.route
            case Ping(size=size):
                bits, delay_s = 8.0 * size, self.forward_delay_s + self.return_delay_s
                links = (*self.route, *self.back)
            case _:
                return math.nan
        return delay_s + math.fsum(
            on.link.idle_access_s + bits / on.link.serial_bps for on in links
        )

    @property
    def has_start_or_stop(self) -> bool:
        """Whether ``start_s`` or ``stop_s`` limits when the flows send."""
        return self.start_s > 0.0 or math.isfinite(self.stop_s)

    @property
    def stepped_key(self) -> str:
        """Key of the application's steps of reading or writing; "" without steps."""
        keys = (key for key in ("reads", "writes") if getattr(self.traffic, key, None) is not None)
        return next((f"traffic.{key}" for key in keys), "")

    @property
    def users(self) -> int:
        """Number of browsers, or of senders of other traffic."""
        return self.count // getattr(self.traffic, "connections", 1)

    @property
    def application_bps(self) -> float:
        """Largest rate of the payload of a flow that its applications allow; inf for no limit."""
        reads, writes = (getattr(self.traffic, key, None) for key in ("reads", "writes"))
        steps = []
        if isinstance(reads, Reading):
            steps.append((reads.size, reads.pause.mean_value()))
        if writes is not None and not writes.after:
            steps.append((writes.size.mean_value(), writes.gap.mean_value()))
        rates = [8 * size / time_s for size, time_s in steps if time_s > 0]
        return min([*rates, reads if isinstance(reads, float) else math.inf])

    @property
    def opens_connections(self) -> bool:
        """Whether each transfer opens a connection with a handshake."""
        opens = self.tcp.handshake not in (None, "none")
        persistent = getattr(self.traffic, "connection", "new") == "persistent"
        return opens and self.traffic.kind in ("on-off", "transfers") and not persistent


def merge_classes(data: Mapping[str, Any], context: ValidationContext) -> dict[str, Any]:
    """Merge each class with the top level, before validation.

    Parameters
    ----------
    data
        The scenario as typed; wrong values are left unchanged.
    context
        Values of other tables, with which traffic and TCP are read.

    Returns
    -------
    dict
        A copy with complete classes. If the traffic or TCP table of the top level is incomplete
        because classes set the missing keys, a complete table of a class replaces it.

    Raises
    ------
    ValidationError
        There are more than :data:`MAX_CLASSES` classes; the check precedes the reading of classes.
    """
    laid = dict(data)
    entries = laid.get("class")
    if isinstance(entries, list) and len(entries) > MAX_CLASSES:
        message = f"contains {len(entries)} classes; use at most {MAX_CLASSES} classes"
        raise make_key_error(message, "class")
    if isinstance(entries, list):
        laid["class"] = [_merge_class(e, laid) if _is_table(e) else e for e in entries]
        tables: dict[str, Any] = {}
        classes = [entry for entry in laid["class"] if _is_table(entry)]
        _check_use_of_traffic(laid.get("traffic"), entries)
        problem = _validation_problem(TRAFFIC_ADAPTER, laid.get("traffic", {}), context)
        if problem is not None and has_only_missing_keys(problem):
            candidates = [
                entry["traffic"] for entry in classes if "kind" in table_or_empty(entry["traffic"])
            ]
            valid = _find_valid_table(TRAFFIC_ADAPTER, candidates, context)
            if valid is not None:
                tables["traffic"] = valid
            elif candidates and "traffic" not in laid:
                tables["traffic"] = candidates[0]  # errors of this table are reported for the class
        tcp = laid.get("tcp")
        if (
            _is_table(tcp)
            and "stack" not in tcp
            and _validation_problem(_TCP_ADAPTER, tcp, context) is not None
        ):
            candidates = [
                entry["tcp"] for entry in classes if "stack" in table_or_empty(entry.get("tcp"))
            ]
            valid = (
                _find_valid_table(_TCP_ADAPTER, candidates, context)
                if len(candidates) == len(classes)
                else None
            )
            if valid is not None:
                tables["tcp"] = valid
        laid |= tables
    return laid


def _check_use_of_traffic(top: object, typed: Sequence[Any]) -> None:
    """Raise an error if the top level sets keys of a traffic that each class replaces."""
    own = [table_or_empty(table_or_empty(entry).get("traffic")) for entry in typed]
    is_replaced = bool(own) and all("kind" in table for table in own)
    if not _is_table(top) or not top or "kind" in top or not is_replaced:
        return
    name, key = table_or_empty(typed[0]).get("name", "NAME"), next(iter(top))
    message = f"no class uses this key, because each class defines its traffic; use class.{name}"
    raise make_key_error(f"{message}.traffic.{key}", "traffic", key)


def _find_valid_table(
    kind: TypeAdapter[Any], tables: Sequence[object], context: ValidationContext
) -> object | None:
    return next(
        (table for table in tables if _validation_problem(kind, table, context) is None), None
    )


def _validation_problem(
    kind: TypeAdapter[Any], table: object, context: ValidationContext
) -> ValidationError | None:
    try:
        kind.validate_python(table, context=context)
    except ValidationError as error:
        return error
    return None


def override_table(base: Any, top: Any) -> Any:
    """Override a table key by key; replace it if ``top`` has a kind, distribution or model."""
    if not (_is_table(base) and _is_table(top)) or any(key in top for key in _SELECTOR_KEYS):
        return top
    return {**base, **{key: override_table(base.get(key), value) for key, value in top.items()}}


def _merge_class(entry: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, Any]:
    typed = scenario.get("network")
    network = typed if _is_table(typed) else {}
    laid = dict(entry)
    for name in ("ingress", "egress"):
        base = network.get(name, {})
        if "rtt" in entry and _is_table(base):
            # The round-trip time of the class replaces the delays of the top level.
            base = {key: value for key, value in base.items() if key != "delay"}
        laid[name] = override_table(base, entry.get(name, {}))
    if "rtt" in network and not {"delay", "back_delay"} & entry.keys():
        laid.setdefault("rtt", network["rtt"])
    laid["traffic"] = override_table(scenario.get("traffic", {}), entry.get("traffic", {}))
    if laid["traffic"] == {} and "flows" in entry:
        laid["traffic"] = {"kind": "bulk"}
    if "tcp" in entry:
        # Only typed keys are inherited; the preset of the class's stack sets the other keys.
        above, own = scenario.get("tcp", {}), entry["tcp"]
        if _is_table(above) and _is_table(own) and "stack" in own:
            above = get_inherited_keys(above, own["stack"])
        laid["tcp"] = override_table(above, own)
    # Move the number of senders from the traffic table to the class.
    traffic = laid["traffic"]
    key = COUNT_KEYS.get(str(traffic.get("kind"))) if _is_table(traffic) else None
    own = entry.get("traffic")
    is_given_twice = key in entry and _is_table(own) and key in own
    if key is None or key not in traffic or is_given_twice:
        return laid
    laid["traffic"] = {name: value for name, value in traffic.items() if name != key}
    laid.setdefault(key, traffic[key])
    return laid


def _is_table(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def find_class_errors(user_class: UserClass, network: Network, *, has_links: bool) -> list[Any]:
    """Return contradictions between tables of one class that are valid on their own."""
    errors = []
    traffic = user_class.traffic
    key = COUNT_KEYS.get(traffic.kind, "traffic.arrivals")
    for name in ("sources", "flows"):
        given = getattr(user_class, name) is not None
        if name != key and given:
            errors.append(
                make_error_at(f"{name} do not apply to {traffic.kind} traffic; use {key}", name)
            )
        elif name == key and not given:
            errors.append(make_error_at(f"missing; add {key} = 100", name))
    if isinstance(traffic, Transfers):
        if traffic.isolated:
            message = (
                "isolated transfers cannot share the path with another class; use arrivals = { "
                'distribution = "poisson", rate = "20/s" }, or kind = "on-off" for files in '
                "sequence, or one scenario per class"
            )
            errors.append(make_error_at(message, "traffic", "arrivals"))
    elif traffic.declared is not None:
        errors.append(
            make_error_at(
                "is also set in the traffic table of the class; set this key only once", key
            )
        )
    limits = {"start": user_class.start, "stop": user_class.stop}
    times = [time for time, value in limits.items() if value is not None]
    if isinstance(traffic, OnOff | Transfers):
        message = 'requires traffic.kind = "bulk"; remove this key'
        errors += [make_error_at(message, time) for time in times]
    elif isinstance(traffic, Bulk) and "start" in times and traffic.start is not None:
        message = "traffic.start also sets the start times; use only one of the two keys"
        errors.append(make_error_at(message, "start"))
    elif user_class.stop is not None and user_class.stop <= (user_class.start or 0.0):
        written = units.format_duration(user_class.start or 0.0)
        message = f"must be after the start, {written}; use a later time"
        errors.append(make_error_at(message, "stop"))
    links = user_class.ingress, user_class.egress
    packet = get_packet_bytes(user_class, network)
    if packet > network.packet:
        largest = units.format_bytes(network.packet)
        message = f'"{packet}B" is more than network.packet; use at most "{largest}" here'
        errors.append(make_error_at(message, "packet"))
    if has_links:
        for key in ("delay", "back_delay"):
            if getattr(user_class, key) is not None and user_class.rtt is not None:
                message = "rtt and the delays are mutually exclusive; use one"
                errors.append(make_error_at(message, key))
        for name, link in zip(("ingress", "egress"), links, strict=True):
            if link.model_fields_set:
                message = (
                    "cannot be combined with [link.NAME] tables; describe this link as one of "
                    "these tables"
                )
                errors.append(make_error_at(message, name))
        return errors
    own_delays = any(link.delay is not None for link in links)
    if user_class.rtt is None and not own_delays and not network.has_rtt:
        errors.append(make_error_at(MISSING_RTT_TEXT, "rtt"))
    if user_class.rtt is not None:
        problem = network.rtt_problem(user_class.rtt, *links, packet, delays_count=own_delays)
        if problem:
            errors.append(make_error_at(problem, "rtt"))
    problem = None if errors else network.return_problem(user_class.rtt, *links, packet)
    if problem:
        errors.append(make_error_at(f"network.return_delay: {problem}", "rtt"))
    for name, link in zip(("ingress", "egress"), links, strict=True):
        problem = network.buffer_problem(link)
        if problem is None and link.buffer.unit == "bdp" and not network.has_rtt:
            problem = (
                f'"{link.buffer}" requires network.rtt; use an RTT, or a buffer such as "150pkt"'
            )
        if problem:
            errors.append(make_error_at(problem, name, "buffer"))
        for own_key, text in network.own_link_problems(link):
            errors.append(make_error_at(text, name, own_key))
    return errors


def get_packet_bytes(user_class: UserClass, network: Network) -> int:
    """Return the size of a data packet of a class in bytes, including headers."""
    return network.packet if user_class.packet is None else user_class.packet


def get_ack_bytes(tcp: Tcp, network: Network) -> int:
    """Return the size of an ack without SACK blocks in bytes: at least its headers and options."""
    return max(network.ack_bytes, tcp.header_bytes)


def make_population(user_class: UserClass, network: Network, tcp: Tcp) -> Population:
    """Return the population of a class; ``tcp`` applies if the class has no TCP table."""
    traffic = user_class.traffic
    if isinstance(traffic, Transfers):
        count = traffic.sender_count
    else:
        count = getattr(user_class, COUNT_KEYS[traffic.kind]) or 0
        traffic = traffic.model_copy(update={"declared": count})
        count *= getattr(traffic, "connections", 1)
    ingress, egress = user_class.ingress, user_class.egress
    packet = get_packet_bytes(user_class, network)
    rtt_s, there, back = network.rtt_and_delays_s(user_class.rtt, ingress, egress, packet)
    return Population(
        name=user_class.name,
        count=count,
        traffic=traffic,
        rtt_s=rtt_s,
        # A class with random arrivals has no number of senders, but each transfer uses a link.
        route=network.route(ingress, egress, max(1, count)),
        ingress=ingress,
        egress=egress,
        forward_delay_s=there,
        return_delay_s=back,
        tcp=user_class.tcp or tcp,
        packet_bytes=packet,
        start_s=user_class.start or 0.0,
        stop_s=math.inf if user_class.stop is None else user_class.stop,
    )


def make_sole_population(
    network: Network, traffic: OnOff | Bulk | Transfers | FlowTraffic, tcp: Tcp
) -> Population:
    """Return the one population of a scenario without classes."""
    packet, links = network.packet, (network.ingress, network.egress)
    rtt_s, there, back = network.rtt_and_delays_s(network.rtt, *links, packet)
    count = traffic.sender_count if isinstance(traffic, Transfers) else traffic.count
    return Population(
        name="all",
        count=count,
        traffic=traffic,
        rtt_s=rtt_s,
        route=network.route(*links, max(1, count)),
        ingress=network.ingress,
        egress=network.egress,
        forward_delay_s=there,
        return_delay_s=back,
        tcp=tcp,
        packet_bytes=packet,
    )


MIN_MIXED_SIZE_RATIO = 4.0
"""Ratio of the mean file sizes of two classes above which means over all files are omitted."""


def has_too_different_file_sizes(populations: Sequence[Population]) -> bool:
    """Return True if file sizes of classes differ too much for means over all files."""
    sizes = [
        traffic.size.mean_value() if isinstance(traffic, OnOff) else traffic.mean_size_pkts
        for traffic in (population.traffic for population in populations)
        if isinstance(traffic, OnOff | Transfers)
    ]
    return bool(sizes) and max(sizes) > MIN_MIXED_SIZE_RATIO * min(sizes)
