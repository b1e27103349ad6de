"""Class Scenario, the input of every engine."""

import functools
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails

from tcpcast.answer.metrics import METRICS
from tcpcast.process.errors import ScenarioError, name_of
from tcpcast.quantity import units
from tcpcast.scenario.applications import find_application_errors
from tcpcast.scenario.aqm import ManagedQueue
from tcpcast.scenario.changes import apply_changes, check_changes, copy_as_plain_tables
from tcpcast.scenario.classes import (
    COUNT_KEYS,
    MAX_CLASSES,
    ClassEntry,
    Population,
    find_class_errors,
    make_population,
    make_sole_population,
    merge_classes,
)
from tcpcast.scenario.cross import CrossTraffic
from tcpcast.scenario.cross_checks import find_cross_traffic_errors, warn_about_cross_traffic
from tcpcast.scenario.fixed_point import FixedPoint
from tcpcast.scenario.link import Link
from tcpcast.scenario.links import MAX_LINKS, NetworkLink, Site
from tcpcast.scenario.mean_field import MeanField
from tcpcast.scenario.modern_tcp import get_header_bytes
from tcpcast.scenario.name_patterns import Name, Title
from tcpcast.scenario.network import Network
from tcpcast.scenario.path import PathLink, PathView
from tcpcast.scenario.probes import Probes
from tcpcast.scenario.queue import FairQueue
from tcpcast.scenario.return_path import RETURN
from tcpcast.scenario.routes import (
    NETWORK_KEYS,
    Topology,
    add_buffers,
    find_headline,
    find_network_errors,
    find_route_errors,
    make_route,
    make_routed_population,
    make_topology,
    view_path,
)
from tcpcast.scenario.run import Run
from tcpcast.scenario.sweep import Sweep
from tcpcast.scenario.table import (
    Errors,
    Table,
    ValidationContext,
    convert_to_input_errors,
    get_validation_context,
    make_error_at,
    make_key_error,
    prepend_location,
    table_or_empty,
)
from tcpcast.scenario.tcp import Tcp
from tcpcast.scenario.toml import write_toml
from tcpcast.scenario.traffic import MAX_SOURCES, Bulk, OnOff, Traffic, Transfers


def add_required_tables_to_schema(schema: dict[str, Any]) -> None:
    """Add the required tables to the JSON Schema."""
    own = {"required": ["traffic"], "properties": {"traffic": {"required": ["kind"]}}}
    each = {"required": ["class"], "properties": {"class": {"minItems": 1, "items": own}}}
    apart = {"network", "traffic", "run"}
    alone = {"required": ["kind"], "properties": {"kind": {"const": "transfers"}}}
    schema["required"] = [name for name in schema["required"] if name not in apart]
    network = [{"required": ["network"]}, {"required": ["link"]}]
    schema["allOf"] = [{"anyOf": [{"required": ["traffic"]}, each]}, {"anyOf": network}]
    # Isolated transfers determine the length of the run.
    schema["if"] = {
        "properties": {"traffic": alone | {"not": {"required": ["arrivals"]}}},
        "required": ["traffic"],
        "not": {"required": ["class"]},
    }
    schema["else"] = {"required": ["run"]}


def ends_by_itself(source: Mapping[str, Any]) -> bool:
    """Return True if the traffic determines the length of the run, so ``[run]`` is optional."""
    traffic = source.get("traffic")
    if not isinstance(traffic, Mapping) or source.get("class"):
        return False
    return traffic.get("kind") == "transfers" and "arrivals" not in traffic


def make_context(source: Mapping[str, Any], folder: Path | None) -> ValidationContext:
    """Return the validation context of a scenario."""
    header_bytes = get_header_bytes(table_or_empty(source.get("tcp")))
    try:
        payload = units.parse_bytes(table_or_empty(source.get("network")).get("packet", "1500B"))
        payload -= header_bytes
    except ValueError:
        payload = 0
    metrics = {row.precision_of: name for name, row in METRICS.items() if row.precision_of}
    metric = metrics.get(str(get_traffic_kind(source)), metrics["on-off"])
    # With a wrong packet size, which is an error elsewhere, use an arbitrary payload.
    payload = payload if payload > 0 else 1460
    keys: set[str] = set()
    for entry in _get_class_tables(source):
        keys |= entry.keys()
        keys |= {f"{name}.{key}" for name, value in entry.items() for key in table_or_empty(value)}
    return ValidationContext(
        payload,
        folder,
        metric,
        ends_by_itself(source),
        frozenset(keys),
        header_bytes,
        has_links=bool(source.get("link")),
        traffic_key=_traffic_key(source),
    )


def _traffic_key(source: Mapping[str, Any]) -> str:
    """Return the key of the traffic: that of a class if only classes have traffic."""
    if not has_traffic_only_in_classes(source):
        return "traffic"
    entries = _get_class_tables(source)
    name = entries[0].get("name", "NAME") if len(entries) == 1 else "NAME"
    return f"class.{name}.traffic"


def has_traffic_only_in_classes(source: Mapping[str, Any]) -> bool:
    """Return whether classes have traffic, and the top level has none."""
    return "traffic" not in source and get_traffic_kind(source) is not None


def get_traffic_kind(data: Mapping[str, Any]) -> object:
    """Return the kind of traffic of the top-level table, or else of the first class."""
    tables = [data.get("traffic"), *(entry.get("traffic") for entry in _get_class_tables(data))]
    return next(
        (table_or_empty(table)["kind"] for table in tables if "kind" in table_or_empty(table)), None
    )


def _get_class_tables(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = data.get("class")
    return [table_or_empty(entry) for entry in entries] if isinstance(entries, list) else []


class _ScenarioInput(NamedTuple):
    """Input of a scenario: tables as typed, and the base folder of file names."""

    source: dict[str, Any]
    folder: Path | None


class Scenario(Table):
    """A network, its traffic, its TCP settings and a run: the input of every engine.

    Create a scenario with ``tcpcast.load``, with ``Scenario.from_dict``, or by passing the tables
    as keyword arguments. Quantities are texts with a unit, as in the file.

    Raises
    ------
    ScenarioError
        One line per error: the dotted key, the problem and the correction.

    Examples
    --------
    >>> scenario = Scenario.from_dict({
    ...     "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "1bdp"}},
    ...     "traffic": {"kind": "bulk", "flows": 2},
    ...     "run": {"duration": "60s"},
    ... })
    >>> scenario.buffer_pkts
    42.0
    """

    model_config = ConfigDict(json_schema_extra=add_required_tables_to_schema)

    name: Title = Field(default="scenario", examples=["web-10mbit"])
    links: dict[Name, NetworkLink] = Field(
        default={},
        alias="link",
        max_length=MAX_LINKS,
        examples=[{"core": {"rate": "1gbit"}}],
        description=("links of a network, instead of [network.bottleneck]; each class has a route"),
    )
    sites: dict[Name, Site] = Field(
        default={},
        alias="site",
        max_length=MAX_LINKS,
        examples=[{"home": {"count": 250}}],
        description="hosts that share links, such as homes",
    )
    network: Network = Field(examples=[{"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}])
    traffic: Traffic = Field(examples=[{"kind": "bulk", "flows": 10}])
    tcp: Tcp = Field(default_factory=lambda: Tcp.model_validate({}))
    run: Run = Field(examples=[{"duration": "300s"}])
    probes: Probes = Probes.model_construct()
    mean_field: MeanField | None = Field(default=None, examples=[{"flows": 10000}])
    fixed_point: FixedPoint | None = Field(default=None, examples=[{"scheme": 2}])
    classes: list[ClassEntry] = Field(
        default=[], alias="class", max_length=MAX_CLASSES, examples=[[{"name": "far"}]]
    )

    cross: list[CrossTraffic] = Field(
        default=[],
        max_length=100,
        examples=[[{"model": "poisson", "mean": "80%"}]],
        description="streams of cross traffic, one table per stream",
    )

    sweep: Sweep | None = Field(
        default=None, exclude=True, examples=[{"network.rtt": "10ms..200ms log 8"}]
    )
    """Varied keys of ``tcpcast sweep``; ``run`` ignores this table."""

    _input: _ScenarioInput = PrivateAttr()

    def __init__(self, /, **tables: Any) -> None:
        self._read_tables(tables, None)

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, folder: Path | None = None) -> Self:
        """Build a scenario from nested tables, as ``tomllib`` or ``json`` returns them.

        Parameters
        ----------
        tables
            The scenario.
        folder
            Base folder of relative CSV file names; None for the current folder.

        Raises
        ------
        ScenarioError
            One line per error.
        """
        if not isinstance(tables, Mapping):
            shown = units.quote(tables)
            raise ScenarioError(
                f"scenario: {shown} is not a table; add the tables [network], [traffic] and so on"
            )
        scenario = cls.__new__(cls)
        scenario._read_tables(tables, folder)
        return scenario

    def _read_tables(self, tables: Mapping[str, Any], folder: Path | None) -> None:
        try:
            source = copy_as_plain_tables(tables)
            context = make_context(source, folder)
            self.__pydantic_validator__.validate_python(source, self_instance=self, context=context)
        except ValidationError as error:
            network = source.get("network")
            hops = network.get("hop") if isinstance(network, Mapping) else None
            errors = convert_to_input_errors(
                error,
                {
                    ("class",): _get_unique_names(source.get("class")),
                    ("network", "hop"): _get_unique_names(hops),
                },
                of_classes=has_traffic_only_in_classes(source),
            )
            raise ScenarioError(*errors) from None
        except RecursionError:
            raise ScenarioError(
                "scenario: tables are nested too deeply; use fewer levels"
            ) from None
        self._input = _ScenarioInput(source, folder)

    @model_validator(mode="before")
    @classmethod
    def _complete_tables(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping):
            return data
        if get_traffic_kind(data) == "capture":
            message = (
                "a scenario does not read captures; run tcpcast trace FILE --models to compare a "
                "capture with formulas, or tcpcast trace FILE --scenario NAME.toml to simulate it"
            )
            raise make_key_error(message, "traffic", "kind")
        data = {"run": {}, **data} if ends_by_itself(data) else data
        data = {"network": {}, **data} if data.get("link") else data
        return merge_classes(data, get_validation_context(info))

    def _find_errors(self) -> Errors:
        errors = []
        seen: set[str] = set()
        for index, entry in enumerate(self.classes):
            below = find_class_errors(entry, self.network, has_links=bool(self.links))
            if entry.name in seen:
                below.append(
                    make_error_at(
                        f'"{entry.name}" is the name of another class; use another name', "name"
                    )
                )
            seen.add(entry.name)
            errors += [prepend_location(f, "class", index) for f in below]
        errors += find_network_errors(self)
        yield from errors or [
            *find_route_errors(self),
            *find_cross_table_errors(self),
            *find_application_errors(self),
        ]

    # Cached, because each metric of each class uses it.
    @functools.cached_property
    def populations(self) -> list[Population]:
        """Classes with their inherited values; without classes, one population of all senders."""
        if not self.classes:
            return [make_sole_population(self.network, self.traffic, self.tcp)]
        if self.links:
            groups = [make_routed_population(entry, self) for entry in self.classes]
            return add_buffers(self, groups)
        return [make_population(entry, self.network, self.tcp) for entry in self.classes]

    @property
    def senders(self) -> int:
        """Total number of sources and flows in all classes."""
        return sum(p.count for p in self.populations)

    @property
    def has_loss_feedback(self) -> bool:
        """True if senders have instantaneous loss feedback, which all classes have or none."""
        return any(group.tcp.has_loss_feedback for group in self.populations)

    @property
    def is_modern(self) -> bool:
        """True if at least one sender has a modern stack."""
        return any(group.tcp.is_modern for group in self.populations)

    @property
    def payload_bytes(self) -> int:
        """Application bytes in a data packet of the first class."""
        return self.populations[0].payload_bytes

    @property
    def packet_size_classes(self) -> list[str]:
        """Names of the classes whose packet size differs from ``network.packet``."""
        usual = self.network.packet
        return [each.name for each in self.classes if each.packet not in (None, usual)]

    @property
    def has_changes(self) -> bool:
        """True if links change during the run, so that there is no steady state."""
        return any(link.at for link in self.links.values())

    @property
    def has_random_loss(self) -> bool:
        """True if at least one link on the forward path has random loss."""
        return any(on.link.loss is not None for p in self.populations for on in p.route)

    @property
    def isolated_transfers(self) -> Transfers | None:
        """The traffic if it consists of isolated transfers on an idle path, otherwise None."""
        if isinstance(self.traffic, Transfers) and self.traffic.isolated and not self.classes:
            return self.traffic
        return None

    @property
    def arriving_load(self) -> float | None:
        """Offered load of arriving transfers as a share of the bottleneck's rate, or None.

        Retransmissions are not counted. None if no transfers arrive or the rate is unlimited.
        """
        usual = self.network.packet
        rates = [
            p.traffic.arrivals.rate * p.traffic.mean_size_pkts * (p.packet_bytes / usual)
            for p in self.populations
            if isinstance(p.traffic, Transfers)
            and p.traffic.arrivals is not None
            and any(on.measured for on in p.route)
        ]
        if not rates or math.isinf(self.bottleneck.rate_bps):
            return None
        return 8 * usual * math.fsum(rates) / self.bottleneck.rate_bps

    @functools.cached_property
    def topology(self) -> Topology:
        """All links and the routes of the classes, in which the short form is expanded."""
        return make_topology(self)

    @functools.cached_property
    def headline(self) -> str:
        """Name of the link of a network that metrics of the bottleneck describe."""
        return find_headline(self)

    @functools.cached_property
    def measured(self) -> PathLink:
        """The link that metrics of the bottleneck describe, on the path of a class that uses it."""
        paths = ((*group.route, *group.back) for group in self.populations)
        known = (on for path in paths for on in path if on.measured)
        return next(known, None) or make_route(self, [self.headline], max(1, self.senders))[0]

    @property
    def bottleneck(self) -> Link:
        """The link that metrics of the bottleneck describe."""
        return self.measured.link

    def path(self, group: Population | None = None) -> PathView:
        """Return the path of a class, by default of the first, as a formula sees it."""
        return view_path(group or self.populations[0], self)

    @property
    def rtt_s(self) -> float:
        """Base round-trip time in seconds: one packet and its ack on the idle path.

        The value is ``network.rtt``, or follows from the delays of the links. If only classes have
        a round-trip time, the value is the first class's.
        """
        return self.network.rtt_s if self.network.has_rtt else self.populations[0].rtt_s

    @property
    def buffer_pkts(self) -> float:
        """Buffer of the bottleneck in data packets, including the packet in transmission, or inf.

        For a buffer in bytes, the result is the number of packets of the smallest packet size.
        """
        buffer = self.bottleneck.buffer
        if self.packet_size_classes and buffer.unit == "bytes" and not self.bottleneck.is_policer:
            return float(buffer.amount // min(group.packet_bytes for group in self.populations))
        return self.measured.buffer_pkts

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy of the scenario with changed values.

        Parameters
        ----------
        changes
            New values by dotted key, as for ``--set``, for example ``{"network.bottleneck.buffer":
            "300pkt", "class.far.rtt": "300ms"}``. Derived values (a preset's defaults, a buffer of
            ``1bdp``) are computed again. In a network of links or hops, keys of
            ``network.bottleneck`` change the link that metrics of the bottleneck describe.

        Raises
        ------
        ScenarioError
            A key is unknown, or a value contradicts other values.
        """
        typed = check_changes(changes)
        changes, alias = dict(typed), "network.bottleneck."
        if (self.links or self.network.hops) and any(key.startswith(alias) for key in typed):
            # Marked as measured, because new rates could select another link.
            mark: dict[str, Any]
            if self.links:
                at, mark = f"link.{self.headline}.", {"probes.link": self.headline}
            else:
                at = f"network.hop.{self.network.measured_index}."
                mark = {f"{at}measured": True}
            changes = mark | {
                at + key.removeprefix(alias) if key.startswith(alias) else key: value
                for key, value in typed.items()
            }
        return self.from_dict(apply_changes(self._input.source, changes), folder=self._input.folder)

    def with_sweep(self, table: Mapping[str, Any]) -> Self:
        """Return a copy of the scenario with keys of its table ``[sweep]`` added or replaced.

        Raises
        ------
        ScenarioError
            The resulting table ``[sweep]`` has errors.
        """
        source = self._input.source
        own = source.get("sweep")
        if not isinstance(table, Mapping):
            raise ScenarioError(
                f"sweep: {units.quote(table)} is not a table; use "
                '{"network.rtt": "10ms..200ms log 8"}, for example'
            )
        merged = {**(own if isinstance(own, dict) else {}), **check_changes(table)}
        return self.from_dict({**source, "sweep": merged}, folder=self._input.folder)

    def source_tables(self) -> tuple[dict[str, Any], str | None]:
        """Return the tables as typed, and the absolute base directory of relative file names.

        ``from_dict`` creates the same scenario from these two values in another process or on
        another machine.
        """
        source, folder = self._input
        return source, None if folder is None else str(folder.resolve())

    def resolve_path(self, name: str) -> Path:
        """Resolve a file name relative to the scenario's folder.

        Packaged scenarios, and scenarios that were not read from a file, use the current folder.
        """
        return (self._input.folder or Path()) / name

    def resolved(self) -> dict[str, Any]:
        """Return the scenario's tables with all defaults, as texts with units.

        ``from_dict`` returns the same scenario for these tables. Sizes typed in bytes are in
        packets, and file names are replaced by the values in the files.
        """
        tables = self.model_dump(by_alias=True, exclude_none=True)
        for name in ("class", "cross"):
            if not tables[name]:
                del tables[name]
        for name in ("link", "site"):
            if not tables[name]:
                del tables[name]
        table = tables["network"]
        if self.links:
            tables["network"] = {key: table[key] for key in NETWORK_KEYS if key in table}
            for entry in tables["class"]:
                del entry["ingress"], entry["egress"]
            for link in tables["link"].values():
                if not link["at"]:
                    del link["at"]
            return tables
        unused = "bottleneck" if table["hop"] else "hop"
        used = {key: value for key, value in table.items() if key != unused}
        if table["hop"]:
            used["hop"] = [
                {"name": hop["name"], **hop, "measured": index == self.network.measured_index}
                for index, hop in enumerate(table["hop"])
            ]
        tables["network"] = used
        return tables

    def to_toml(self) -> str:
        """Return ``resolved()`` as a TOML document."""
        return write_toml(self.resolved())

    def digest(self) -> str:
        """Return ``"sha256:..."`` of the canonical JSON of ``resolved()``."""
        return self._compute_digest

    @functools.cached_property
    def _compute_digest(self) -> str:
        text = json.dumps(self.resolved(), sort_keys=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def warnings(self) -> list[str]:
        """Return warnings: reasons why answers to this scenario may be misleading."""
        return list(self._warnings)

    @functools.cached_property
    def _warnings(self) -> tuple[str, ...]:
        texts: dict[str, None] = {}
        load = self.arriving_load
        if load is not None and load >= 1:
            texts[
                f"the offered load of arriving transfers is {units.digits(100 * load, 3)} % "
                "of the bottleneck's rate: more transfers arrive than complete, so every "
                "result depends on the length of the run"
            ] = None
        for warnings in (warn_about_idle_red, warn_about_cross_traffic, warn_about_phase_effects):
            texts |= dict.fromkeys(warnings(self))
        for group in self.populations:
            for text in warn_about_population(self, group):
                texts[text] = None
        return tuple(texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        """Return name, number of senders, rate of the bottleneck and RTT on one line."""
        counts: Counter[str] = Counter()
        for group in self.populations:
            counts[group.traffic.kind] += 0 if group.traffic.kind == "transfers" else group.count
        kinds = ", ".join(f"{count} {kind}" if count else kind for kind, count in counts.items())
        rate = units.format_rate(round(self.bottleneck.rate, 3))
        rtt = f"{self.rtt_s * 1e3:.6g}ms"
        return f"<Scenario {self.name}: {kinds}, bottleneck {rate}, rtt {rtt}>"

    __str__ = __repr__


def _get_unique_names(entries: object) -> list[str | None]:
    if not isinstance(entries, list):
        return []
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in entries]
    counts = Counter(name for name in names if isinstance(name, str))
    return [name if isinstance(name, str) and counts[name] == 1 else None for name in names]


def _links_with_queues(scenario: Scenario) -> list[tuple[tuple[str | int, ...], Link]]:
    """Return the keys and links of ``[link]``, ``[[network.hop]]`` or ``[network.bottleneck]``."""
    network = scenario.network
    if scenario.links:
        return [(("link", name), link) for name, link in scenario.links.items()]
    if network.hops:
        return [(("network", "hop", index), hop) for index, hop in enumerate(network.hops)]
    return [(("network", "bottleneck"), network.bottleneck_link)]


def find_cross_table_errors(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Return contradictions between tables that are valid on their own."""
    traffic = scenario.traffic
    if not scenario.classes and not isinstance(traffic, Transfers) and traffic.declared is None:
        key = COUNT_KEYS[traffic.kind]
        usual = 1 if traffic.kind == "page" else 100
        yield make_error_at(f"missing; add {key} = {usual}, or [[class]] tables", "traffic", key)
        return
    groups = scenario.populations
    if scenario.senders > MAX_SOURCES:
        message = (
            f"the classes contain {scenario.senders} senders; use at most {MAX_SOURCES} in total"
        )
        yield make_error_at(message, "class")
    if scenario.run.transfers is not None and all(isinstance(p.traffic, Bulk) for p in groups):
        message = 'bulk flows never complete; use duration = "300s" instead'
        yield make_error_at(message, "run", "transfers")
    for index, group in enumerate(groups):
        start = group.traffic.start if isinstance(group.traffic, Bulk) else None
        if isinstance(start, list) and len(start) != group.count:
            above: tuple[str | int, ...] = ("class", index) if scenario.classes else ()
            text = (
                f"{len(start)} start times do not match {group.count} flows; use one time per flow"
            )
            yield make_error_at(text, *above, "traffic", "start")
    yield from find_cross_traffic_errors(scenario)
    # Find classes that start after the end of the run.
    end = scenario.run.duration_s or math.inf
    for index, entry in enumerate(scenario.classes):
        if entry.start is not None and entry.start >= end:
            longer = units.format_duration(math.ceil(entry.start) + 60)
            message = (
                f'is after the end of the run; use an earlier time, or run.duration = "{longer}"'
            )
            yield make_error_at(message, "class", index, "start")
    # Find paths on which packets take no time, and flows that nothing limits.
    network = scenario.network
    places: Sequence[tuple[str | int, ...]]
    if scenario.links:
        places = [("class", index) for index in range(len(groups))]
    else:
        *_, at = [key for key, link in _links_with_queues(scenario) if link is scenario.bottleneck]
        places = [at] * len(groups)
    instant_at = [place for place, group in zip(places, groups, strict=True) if group.rtt_s == 0]
    if instant_at:
        message = (
            "the round-trip time is 0, because no link of the path has a rate or a delay; use a "
            'delay above 0, such as delay = "10ms"'
        )
        yield make_error_at(message, *instant_at[0], "delay")
    free_at = [
        place
        for place, group in zip(places, groups, strict=True)
        if isinstance(group.traffic, Bulk)
        and math.isinf(group.tcp.receiver_window)
        and all(math.isinf(on.link.rate) and on.link.loss is None for on in group.data_links)
    ]
    if free_at:
        message = "nothing limits the flows; use a rate or a loss, or tcp.receiver_window = 44"
        yield make_error_at(message, *free_at[0], "route" if scenario.links else "rate")
    for index, flow in enumerate(scenario.probes.flows):
        if flow >= scenario.senders:
            last = scenario.senders - 1
            numbers = f"a number from 0 to {last}" if last else "0"
            message = f"there is no flow {flow}; use {numbers}"
            if last < 0:
                message = (
                    f"flow {flow} cannot be traced, because each transfer is a new "
                    "flow; remove this number"
                )
            yield make_error_at(message, "probes", "flows", index)
    for place, link in _links_with_queues(scenario):
        if (
            isinstance(link.queue, FairQueue)
            and link.queue.head_of_line == "in service"
            and (not scenario.has_loss_feedback or link.varying is not None)
        ):
            message = (
                'requires tcp.stack = "max-plus-reno" and a constant rate; remove this key, or '
                'use "in buffer"'
            )
            yield make_error_at(message, *place, "queue", "head_of_line")
    # Find times of `report_at` for which a run cannot report the delivered bytes.
    times = scenario.run.report_at
    if times is not None:
        if not any(isinstance(group.traffic, Bulk) for group in scenario.populations):
            message = 'requires flows that never end; remove this key, or use traffic.kind = "bulk"'
            yield make_error_at(message, "run", "report_at")
        elif scenario.has_loss_feedback:
            message = (
                "counts bytes delivered in order, but the receiver of max-plus-reno does not sort "
                'packets; remove this key, or use tcp.stack = "rfc-newreno"'
            )
            yield make_error_at(message, "run", "report_at")
        elif times[-1] >= (scenario.run.duration_s or math.inf):
            latest, longer = map(units.format_duration, (times[-1], math.ceil(times[-1]) + 1))
            message = f'{latest} is after the end of the run; use duration = "{longer}"'
            yield make_error_at(message, "run", "report_at", len(times) - 1)
    # Find classes with senders that cannot be combined with the senders of the first class.
    first = groups[0].tcp
    # In runs with modern TCP, each source has a receiver of the matching kind.
    alike = any(group.tcp.is_modern for group in groups)
    for index, group in enumerate(groups):
        window_units = group.tcp.rules.window_unit, first.rules.window_unit
        for where, (own, other), differs in (
            (
                ("stack",),
                (group.tcp.stack, first.stack),
                group.tcp.has_loss_feedback != first.has_loss_feedback,
            ),
            (
                ("rules", "window_unit"),
                window_units,
                not alike and window_units[0] != window_units[1],
            ),
        ):
            if differs:
                message = (
                    f'"{own}" cannot be combined with "{other}" of class {groups[0].name}; '
                    "use one value for all classes, or one scenario per class"
                )
                yield make_error_at(message, "class", index, "tcp", *where)
    # Find packets without room for payload after the headers, including TCP timestamps.
    short: dict[tuple[str | int, ...], InitErrorDetails] = {}
    for index, group in sorted(enumerate(groups), key=lambda each: each[1].tcp.header_bytes):
        packet, headers = group.packet_bytes, group.tcp.header_bytes
        if packet <= headers:
            is_own = scenario.classes and scenario.classes[index].packet is not None
            at = ("class", index, "packet") if is_own else ("network", "packet")
            text = (
                f"{packet} B leaves no room for payload after {headers} B of headers; "
                f'use at least "{headers + 1}B"'
            )
            short[at] = make_error_at(text, *at)
    yield from short.values()
    quic = next((group.tcp.stack for group in groups if group.tcp.is_quic), None)
    if quic is not None and scenario.probes.pcap:
        message = f"captures contain TCP packets, but {quic} sends QUIC packets; remove probes.pcap"
        yield make_error_at(message, "probes", "pcap")
    instant = next((group.tcp.stack for group in groups if group.tcp.has_loss_feedback), None)
    if instant is None:
        return
    # These senders retransmit each dropped packet immediately, and have no retransmission timer.
    for place, link in _links_with_queues(scenario):
        if isinstance(link.queue, ManagedQueue):
            message = (
                f"{link.queue.kind} controls senders by its drops, and {instant} replaces each "
                'dropped packet immediately; use "droptail" or "fq" here, or tcp.stack = '
                '"rfc-newreno"'
            )
            yield make_error_at(message, *place, "queue")
    for key, value in ((RETURN, network.return_link), ("ack_loss", network.ack_loss)):
        if value is not None:
            message = (
                f"{instant} requires every ack, because this stack has no retransmission timer; "
                'remove this key, or use tcp.stack = "rfc-newreno"'
            )
            yield make_error_at(message, "network", key)
    if scenario.probes.pcap:
        message = (
            f"{instant} acknowledges every single packet and retransmits nothing, so a "
            "capture would not show TCP; remove probes.pcap, or use stack = "
            '"rfc-newreno"'
        )
        yield make_error_at(message, "probes", "pcap")


def warn_about_idle_red(scenario: Scenario) -> list[str]:
    """Warn if RED never drops early because its average queue stays below the minimum threshold."""
    red, waiting = scenario.network.red_parameters(), scenario.buffer_pkts - 1
    if red is None or waiting > red.min_threshold_pkts:
        return []
    return [
        f"RED drops nothing early: at most {waiting:,.0f} packets can queue, fewer than "
        f"min_threshold ({red.min_threshold_pkts:.4g} packets); use a larger buffer or a "
        "lower threshold"
    ]


BBR3_MARKS_MAX_RTT_S = 0.005
"""Largest RTT in seconds at which ``bbr3`` responds to marks: ``bbr_ecn_max_rtt_us``."""

LARGE_NOISE = 0.1
"""Share of the round-trip time above which the mean of ``tcp.host_noise`` affects results."""


def warn_about_phase_effects(scenario: Scenario) -> list[str]:
    """Warn if phase effects determine the shares of the link because hosts have no noise."""
    network, groups = scenario.network, scenario.populations
    endless = [group for group in groups if isinstance(group.traffic, Bulk)]
    exact = [
        group for group in endless if not group.tcp.host_noise and not group.tcp.has_loss_feedback
    ]
    steady = network.jitter is None and not scenario.cross and not scenario.has_random_loss
    if (
        not exact
        or len({group.rtt_s for group in endless}) < 2
        or not steady
        or scenario.bottleneck.queue != "droptail"
        or math.isinf(scenario.buffer_pkts)
    ):
        return []
    return [
        f"hosts of {', '.join(group.name for group in exact)} send without random delay, so "
        "small changes of the RTT decide which flow loses packets at a drop-tail queue "
        '(phase effect); use tcp.host_noise = "0.1ms", a typical value of real hosts'
    ]


def warn_about_population(scenario: Scenario, group: Population) -> list[str]:
    """Return warnings about one class."""
    tcp, texts = group.tcp, []
    if isinstance(group.traffic, OnOff) and not group.traffic.size.has_finite_variance():
        texts.append(
            "traffic.size has no finite variance: means converge slowly, and intervals are too "
            "narrow"
        )
    if isinstance(group.traffic, OnOff) and not group.traffic.off.has_finite_variance():
        texts.append(
            "traffic.off has no finite variance: means converge slowly, and intervals are too "
            "narrow"
        )
    endless = isinstance(group.traffic, Bulk) and math.isinf(tcp.receiver_window)
    if (
        endless
        and scenario.bottleneck.queue == "droptail"
        and all(on.link.loss is None and math.isinf(on.buffer_pkts) for on in group.route)
    ):
        texts.append(
            "bulk flows with an unlimited window fill an unlimited buffer: the queue grows as long "
            "as the run lasts"
        )
    if tcp.host_noise > LARGE_NOISE * group.rtt_s:
        texts.append(
            "the mean processing delay of the hosts (tcp.host_noise) is "
            f"{units.format_duration(tcp.host_noise)}, compared with a round-trip time of "
            f"{units.digits(group.rtt_s * 1e3)} ms, so the answer depends on the hosts; use the "
            'delay of your hosts, or "0s"'
        )
    uses_bbr3 = "bbr3" in (tcp.stack, tcp.congestion_control)
    if uses_bbr3 and tcp.ecn and group.rtt_s > BBR3_MARKS_MAX_RTT_S:
        texts.append(
            f"bbr3 ignores marks if the round-trip time is above {BBR3_MARKS_MAX_RTT_S * 1e3:g} "
            f"ms, and the round-trip time here is {units.digits(group.rtt_s * 1e3)} ms; remove "
            "tcp.ecn"
        )
    if tcp.initial_rto < group.rtt_s:
        texts.append(
            "tcp.initial_rto is below the round-trip time of "
            f"{units.digits(group.rtt_s * 1e3)} ms: every connection starts with a spurious timeout"
        )
    if tcp.initial_window > tcp.receiver_window:
        texts.append(
            f"{name_of('tcp.initial_window')} is above {name_of('tcp.receiver_window')}, which "
            "therefore limits the initial window"
        )
    return texts
