"""Class Scenario, the input of every engine."""

import functools
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
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

from tcpcast import units
from tcpcast.errors import ScenarioError
from tcpcast.scenario.changes import apply_changes, check_changes
from tcpcast.scenario.classes import (
    MAX_CLASSES,
    ClassEntry,
    Population,
    make_population,
    make_sole_population,
    merge_classes,
)
from tcpcast.scenario.consistency import (
    find_cross_table_errors,
    find_errors_in_classes,
    warn_about_idle_red,
    warn_about_phase_effects,
    warn_about_population,
)
from tcpcast.scenario.cross import CrossTraffic
from tcpcast.scenario.cross_checks import warn_about_cross_traffic
from tcpcast.scenario.fixed_point import FixedPoint
from tcpcast.scenario.mean_field import MeanField
from tcpcast.scenario.name_patterns import Title
from tcpcast.scenario.network import Network
from tcpcast.scenario.probes import Probes
from tcpcast.scenario.run import Run
from tcpcast.scenario.sweep import Sweep
from tcpcast.scenario.table import (
    EntryNames,
    Table,
    ValidationContext,
    convert_to_input_errors,
    get_validation_context,
    make_key_error,
    make_validation_error,
)
from tcpcast.scenario.table_reuse import (
    copy_as_plain_tables,
    revalidate_changed_tables,
)
from tcpcast.scenario.tcp import Tcp
from tcpcast.scenario.toml import write_toml
from tcpcast.scenario.traffic import Traffic, Transfers
from tcpcast.scenario.validation_context import (
    add_required_tables_to_schema,
    ends_by_itself,
    get_traffic_kind,
    make_context,
)


class _ScenarioInput(NamedTuple):
    """Input of a scenario: tables as typed, base folder of file names, validation context."""

    source: dict[str, Any]
    folder: Path | None
    context: ValidationContext


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
                f"scenario: {shown} is not a table; write the tables [network], [traffic] and so on"
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
            of_classes = "traffic" not in source and get_traffic_kind(source) is not None
            errors = convert_to_input_errors(
                error, _get_class_and_hop_names(source), of_classes=of_classes
            )
            raise ScenarioError(*errors) from None
        except RecursionError:
            raise ScenarioError(
                "scenario: tables are nested too deeply; write fewer levels"
            ) from None
        self._input = _ScenarioInput(source, folder, context)

    def _with_tables(self, tables: Mapping[str, Any]) -> Self:
        """Return a scenario with these tables; unchanged tables are not validated again."""
        scenario = self._reuse_unchanged_tables(tables)
        if scenario is None:
            scenario = self.__class__.__new__(self.__class__)
            scenario._read_tables(tables, self._input.folder)
        return scenario

    def _reuse_unchanged_tables(self, tables: Mapping[str, Any]) -> Self | None:
        """Return a scenario that reuses unchanged tables; None if all tables must be validated."""
        own = self._input
        try:
            source = copy_as_plain_tables(tables, own.source)
            context = make_context(source, own.folder)
            if context != own.context:
                return None
            values = revalidate_changed_tables(self, own.source, source, context)
        except (ValidationError, RecursionError):
            return None  # only a full validation reports errors with their complete keys
        if values is None:
            return None
        scenario = self.__class__.__new__(self.__class__)
        state = {"__dict__": values, "__pydantic_fields_set__": self.model_fields_set}
        private = {"_input": _ScenarioInput(source, own.folder, context)}
        scenario.__setstate__(state | {"__pydantic_extra__": None, "__pydantic_private__": private})
        return None if find_cross_table_errors(scenario) else scenario

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
        return merge_classes(data, get_validation_context(info))

    @model_validator(mode="after")
    def _check_consistency_of_tables(self) -> Self:
        errors = find_errors_in_classes(self) or find_cross_table_errors(self)
        if errors:
            raise make_validation_error(errors)
        return self

    # Cached, because each metric of each class uses it.
    @functools.cached_property
    def populations(self) -> list[Population]:
        """Classes with their inherited values; without classes, one population of all senders."""
        if not self.classes:
            return [make_sole_population(self.network, self.traffic, self.tcp)]
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
    def has_random_loss(self) -> bool:
        """True if at least one link on the forward path has random loss."""
        return any(
            on.link.loss is not None for p in self.populations for on in p.links(self.network)
        )

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
            if isinstance(p.traffic, Transfers) and p.traffic.arrivals is not None
        ]
        if not rates or math.isinf(self.network.bottleneck.rate_bps):
            return None
        return 8 * usual * math.fsum(rates) / self.network.bottleneck.rate_bps

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
        buffer = self.network.bottleneck.buffer
        if (
            self.packet_size_classes
            and buffer.unit == "bytes"
            and not self.network.bottleneck.is_policer
        ):
            return float(buffer.amount // min(group.packet_bytes for group in self.populations))
        return self.network.buffer_pkts(self.network.bottleneck)

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy of the scenario with changed values.

        Parameters
        ----------
        changes
            New values by dotted key, as for ``--set``, for example ``{"network.bottleneck.buffer":
            "300pkt", "class.far.rtt": "300ms"}``. Derived values (a preset's defaults, a buffer of
            ``1bdp``) are computed again. In a network with hops, keys of ``network.bottleneck``
            change the measured hop.

        Raises
        ------
        ScenarioError
            A key is unknown, or a value contradicts other values.
        """
        changes = self._apply_to_measured_hop(check_changes(changes))
        return self._with_tables(apply_changes(self._input.source, changes))

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
                f"sweep: {units.quote(table)} is not a table; write, for example, "
                '{"network.rtt": "10ms..200ms log 8"}'
            )
        merged = {**(own if isinstance(own, dict) else {}), **check_changes(table)}
        return self._with_tables({**source, "sweep": merged})

    def source_tables(self) -> tuple[dict[str, Any], str | None]:
        """Return the tables as typed, and the absolute base directory of relative file names.

        ``from_dict`` creates the same scenario from these two values in another process or on
        another machine.
        """
        source, folder, _ = self._input
        return source, None if folder is None else str(folder.resolve())

    def resolve_path(self, name: str) -> Path:
        """Resolve a file name relative to the scenario's folder.

        Packaged scenarios, and scenarios that were not read from a file, use the current folder.
        """
        return (self._input.folder or Path()) / name

    def _apply_to_measured_hop(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Apply changes of ``network.bottleneck`` to the measured hop if the network has hops.

        The hop is then marked as measured, because new rates could select another hop.
        """
        if not self.network.hops:
            return dict(changes)
        bottleneck, hop = "network.bottleneck.", f"network.hop.{self.network.measured_index}."
        mark = {f"{hop}measured": True} if any(k.startswith(bottleneck) for k in changes) else {}
        return mark | {
            hop + key.removeprefix(bottleneck) if key.startswith(bottleneck) else key: value
            for key, value in changes.items()
        }

    def resolved(self) -> dict[str, Any]:
        """Return the scenario's tables with all defaults, as texts with units.

        ``from_dict`` returns the same scenario for these tables. Sizes typed in bytes are in
        packets, and file names are replaced by the values in the files.
        """
        tables = self.model_dump(by_alias=True, exclude_none=True)
        for name in ("class", "cross"):
            if not tables[name]:
                del tables[name]
        tables["network"] = self._resolved_network(tables["network"])
        return tables

    def _resolved_network(self, table: dict[str, Any]) -> dict[str, Any]:
        """Return the network table with either bottleneck or hops; mark the measured hop."""
        unused = "bottleneck" if table["hop"] else "hop"
        used = {key: value for key, value in table.items() if key != unused}
        if table["hop"]:
            used["hop"] = [
                {"name": hop["name"], **hop, "measured": index == self.network.measured_index}
                for index, hop in enumerate(table["hop"])
            ]
        return used

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
        kinds = ", ".join(
            f"{p.count} {p.traffic.kind}" if p.traffic.kind != "transfers" else "transfers"
            for p in self.populations
        )
        rate = units.format_rate(round(self.network.bottleneck.rate, 3))
        rtt = f"{self.rtt_s * 1e3:.6g}ms"
        return f"<Scenario {self.name}: {kinds}, bottleneck {rate}, rtt {rtt}>"

    __str__ = __repr__


def _get_class_and_hop_names(source: Mapping[str, Any]) -> EntryNames:
    network = source.get("network")
    hops = network.get("hop") if isinstance(network, Mapping) else None
    return {
        ("class",): _get_unique_names(source.get("class")),
        ("network", "hop"): _get_unique_names(hops),
    }


def _get_unique_names(entries: object) -> list[str | None]:
    if not isinstance(entries, list):
        return []
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in entries]
    counts = Counter(name for name in names if isinstance(name, str))
    return [name if isinstance(name, str) and counts[name] == 1 else None for name in names]
