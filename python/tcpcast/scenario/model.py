"""The scenario: one question, whichever engine answers it."""

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
from tcpcast.scenario.ahead import kind_of_traffic, reading_of
from tcpcast.scenario.changes import apply_changes, checked
from tcpcast.scenario.classes import (
    MOST_CLASSES,
    ClassEntry,
    Population,
    lay_classes,
    population,
    sole_population,
)
from tcpcast.scenario.consistency import (
    faults_of_classes,
    faults_together,
    idle_red_warnings,
    phase_warnings,
    population_warnings,
)
from tcpcast.scenario.cross import CrossTraffic
from tcpcast.scenario.cross_checks import cross_warnings
from tcpcast.scenario.fixed_point import FixedPoint
from tcpcast.scenario.mean_field import MeanField
from tcpcast.scenario.names import Title
from tcpcast.scenario.needed import ASKED, ends_by_itself, needed_of_all
from tcpcast.scenario.network import Network
from tcpcast.scenario.reuse import is_captured, plain, reread
from tcpcast.scenario.run import Probes, Run
from tcpcast.scenario.sweep import Sweep
from tcpcast.scenario.table import (
    EntryNames,
    Reading,
    Table,
    fault,
    faults,
    faults_of,
    reading,
)
from tcpcast.scenario.tcp import Tcp
from tcpcast.scenario.toml import write_toml
from tcpcast.scenario.traffic import (
    Captured,
    Traffic,
    Transfers,
)

_OF_A_CAPTURE = {"network": {"rtt": "1s"}, "run": {"duration": "1s"}}
"""Stands where a capture has no such table, so that each scenario has one; no engine reads it."""


class _Given(NamedTuple):
    """What a scenario was read from: tables as typed, where files are, what tables were told."""

    source: dict[str, Any]
    folder: Path | None
    reading: Reading


class Scenario(Table):
    """A network, its traffic, its TCP and a run: what every engine answers.

    Build one with ``tcpcast.load``, with ``Scenario.from_dict`` or by naming the tables;
    quantities are texts with a unit, as in the file.

    Raises
    ------
    ScenarioError
        One line for each fault: the dotted key, what is wrong, what to write instead.

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

    model_config = ConfigDict(json_schema_extra=needed_of_all)

    name: Title = Field(default="scenario", examples=["web-10mbit"])
    network: Network = Field(examples=[{"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}])
    traffic: Traffic = Field(examples=[{"kind": "bulk", "flows": 10}])
    tcp: Tcp = Field(default_factory=lambda: Tcp.model_validate({}))
    run: Run = Field(examples=[{"duration": "300s"}])
    probes: Probes = Probes.model_construct()
    mean_field: MeanField | None = Field(default=None, examples=[{"flows": 10000}])
    fixed_point: FixedPoint | None = Field(default=None, examples=[{"scheme": 2}])
    classes: list[ClassEntry] = Field(
        default=[], alias="class", max_length=MOST_CLASSES, examples=[[{"name": "far"}]]
    )

    cross: list[CrossTraffic] = Field(
        default=[],
        max_length=100,
        examples=[[{"model": "poisson", "mean": "80%"}]],
        description="cross traffic, one stream each",
    )

    sweep: Sweep | None = Field(
        default=None, exclude=True, examples=[{"network.rtt": "10ms..200ms log 8"}]
    )
    """What ``tcpcast sweep`` varies; no part of the question that ``run`` answers."""

    _given: _Given = PrivateAttr()

    def __init__(self, /, **tables: Any) -> None:
        self._read(tables, None)

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, folder: Path | None = None) -> Self:
        """Build a scenario from nested tables, as ``tomllib`` or ``json`` returns them.

        Parameters
        ----------
        tables
            The scenario.
        folder
            Where relative names of CSV files start; None for the current folder.

        Raises
        ------
        ScenarioError
            One line for each fault.
        """
        if not isinstance(tables, Mapping):
            shown = units.show(tables)
            raise ScenarioError(f"scenario: {shown} is not a table; write [network] and the rest")
        scenario = cls.__new__(cls)
        scenario._read(tables, folder)
        return scenario

    def _read(self, tables: Mapping[str, Any], folder: Path | None) -> None:
        try:
            source = plain(tables)
            context = reading_of(source, folder)
            self.__pydantic_validator__.validate_python(source, self_instance=self, context=context)
        except ValidationError as error:
            of_classes = "traffic" not in source and kind_of_traffic(source) is not None
            found = faults_of(error, _entry_names(source), of_classes=of_classes)
            raise ScenarioError(*found) from None
        except RecursionError:
            raise ScenarioError("scenario: nested too deeply; write fewer levels") from None
        self._given = _Given(source, folder, context)

    def _changed(self, tables: Mapping[str, Any]) -> Self:
        """Return the scenario of these tables; those that are its own are not read again."""
        found = self._reread(tables)
        if found is None:
            found = self.__class__.__new__(self.__class__)
            found._read(tables, self._given.folder)
        return found

    def _reread(self, tables: Mapping[str, Any]) -> Self | None:
        """Return the same, or None if these have to be read as a whole."""
        own = self._given
        try:
            source = plain(tables, own.source)
            context = reading_of(source, own.folder)
            if context != own.reading:
                return None
            values = reread(self, own.source, source, context)
        except (ValidationError, RecursionError):
            return None  # the whole knows where each fault is typed
        if values is None:
            return None
        found = self.__class__.__new__(self.__class__)
        state = {"__dict__": values, "__pydantic_fields_set__": self.model_fields_set}
        private = {"_given": _Given(source, own.folder, context)}
        found.__setstate__(state | {"__pydantic_extra__": None, "__pydantic_private__": private})
        return None if faults_together(found) else found

    @model_validator(mode="before")
    @classmethod
    def _lay_classes(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping):
            return data
        if not is_captured(data):
            data = {"run": {}, **data} if ends_by_itself(data) else data
            return lay_classes(data, reading(info))
        told = [name for name in ASKED if name in data]
        if told:
            message = f"a capture has its own values; leave out {', '.join(told)}"
            raise faults([fault(message, "traffic", "kind")])
        return {**data, **_OF_A_CAPTURE}

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = faults_of_classes(self) or faults_together(self)
        if found:
            raise faults(found)
        return self

    # Asked for with every figure of every class, and the work of all classes each time.
    @functools.cached_property
    def populations(self) -> list[Population]:
        """The classes with all they inherit, or the whole scenario as one; at least one."""
        if not self.classes:
            return [sole_population(self.network, self.traffic, self.tcp)]
        return [population(entry, self.network, self.tcp) for entry in self.classes]

    @property
    def senders(self) -> int:
        """How many sources and flows there are in all classes together."""
        return sum(p.count for p in self.populations)

    @property
    def has_loss_feedback(self) -> bool:
        """Whether senders learn of each loss at once; a run has no others beside these."""
        return any(group.tcp.has_loss_feedback for group in self.populations)

    @property
    def is_modern(self) -> bool:
        """Whether any sender has one of today's stacks."""
        return any(group.tcp.is_modern for group in self.populations)

    @property
    def payload_bytes(self) -> int:
        """Application bytes in a data packet; of the first class, where they differ."""
        return self.populations[0].payload_bytes

    @property
    def own_packets(self) -> list[str]:
        """The classes whose packets have another size than ``network.packet``, by name."""
        usual = self.network.packet
        return [each.name for each in self.classes if each.packet not in (None, usual)]

    @property
    def loses_at_random(self) -> bool:
        """Whether any link that data packets take loses some by chance, whatever its queue."""
        return any(
            on.link.loss is not None for p in self.populations for on in p.links(self.network)
        )

    @property
    def isolated_transfers(self) -> Transfers | None:
        """The traffic, where it is transfers that are each alone on the empty path."""
        if isinstance(self.traffic, Transfers) and self.traffic.alone and not self.classes:
            return self.traffic
        return None

    @property
    def captured(self) -> Captured | None:
        """The traffic, where it is what a capture shows; network, TCP and run then mean nothing."""
        return self.traffic if isinstance(self.traffic, Captured) else None

    @property
    def arriving_load(self) -> float | None:
        """What transfers that arrive bring, over what the bottleneck carries; None without any.

        Packets count once, however often they are lost before the queue.
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
        """Time of one packet and its ack on the idle path.

        It is ``network.rtt``, that of the links' delays, or the first class's if only classes have
        one.
        """
        return self.network.rtt_s if self.network.is_timed else self.populations[0].rtt_s

    @property
    def buffer_pkts(self) -> float:
        """Data packets the bottleneck holds, the one in transmission included; inf: unlimited.

        A buffer in bytes holds more small packets: those of the class with the smallest count.
        """
        buffer = self.network.bottleneck.buffer
        if self.own_packets and buffer.unit == "bytes" and not self.network.bottleneck.polices:
            return float(buffer.amount // min(group.packet_bytes for group in self.populations))
        return self.network.buffer_pkts(self.network.bottleneck)

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """Return the scenario with some values changed, by dotted key as for ``--set``.

        Parameters
        ----------
        changes
            ``{"network.bottleneck.buffer": "300pkt", "class.far.rtt": "300ms"}``. What follows
            from a changed value (a preset's defaults, a buffer of ``1bdp``) follows again. Where
            there are hops, ``network.bottleneck`` is the measured one.

        Raises
        ------
        ScenarioError
            A key that no scenario has, or a value that does not go with the others.
        """
        changes = self._of_measured_hop(checked(changes))
        return self._changed(apply_changes(self._given.source, changes))

    def swept(self, table: Mapping[str, Any]) -> Self:
        """Return the scenario with more in its table ``[sweep]``, or other values there.

        Raises
        ------
        ScenarioError
            As for a scenario that is read.
        """
        source = self._given.source
        own = source.get("sweep")
        if not isinstance(table, Mapping):
            raise ScenarioError(
                f"sweep: {units.show(table)} is not a table; write "
                '{"network.rtt": "10ms..200ms log 8"}, say'
            )
        merged = {**(own if isinstance(own, dict) else {}), **checked(table)}
        return self._changed({**source, "sweep": merged})

    def typed(self) -> tuple[dict[str, Any], str | None]:
        """Return the tables as typed, and the whole name of the folder where files are.

        ``from_dict`` makes the same scenario of the two, on another process or machine.
        """
        source, folder, _ = self._given
        return source, None if folder is None else str(folder.resolve())

    def resolve_path(self, name: str) -> Path:
        """Return where a file of this name is: relative names start at the scenario's folder.

        That of a packaged scenario, or of one that is in no file, is the current folder.
        """
        return (self._given.folder or Path()) / name

    def _of_measured_hop(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Turn changes of the bottleneck into changes of the measured hop, where there are hops.

        It stays the measured one, whatever rates change.
        """
        if not self.network.hops:
            return dict(changes)
        bottleneck, hop = "network.bottleneck.", f"network.hop.{self.network.measured_at}."
        told = {f"{hop}measured": True} if any(k.startswith(bottleneck) for k in changes) else {}
        return told | {
            hop + key.removeprefix(bottleneck) if key.startswith(bottleneck) else key: value
            for key, value in changes.items()
        }

    def resolved(self) -> dict[str, Any]:
        """Return the scenario with every default filled in, in units as people type them.

        Feeding it to ``from_dict`` gives the same scenario. Sizes typed in bytes are in packets,
        and files are replaced by the values in them.
        """
        tables = self.model_dump(by_alias=True, exclude_none=True)
        if self.captured is not None:
            return {name: table for name, table in tables.items() if name not in ASKED}
        for name in ("class", "cross"):
            if not tables[name]:
                del tables[name]
        tables["network"] = self._resolved_network(tables["network"])
        return tables

    def _resolved_network(self, table: dict[str, Any]) -> dict[str, Any]:
        """Leave out the bottleneck or the hops, and say which hop is measured."""
        unused = "bottleneck" if table["hop"] else "hop"
        kept = {key: value for key, value in table.items() if key != unused}
        if table["hop"]:
            kept["hop"] = [
                {"name": hop["name"], **hop, "measured": at == self.network.measured_at}
                for at, hop in enumerate(table["hop"])
            ]
        return kept

    def to_toml(self) -> str:
        """Return ``resolved()`` as a TOML document."""
        return write_toml(self.resolved())

    def digest(self) -> str:
        """Return ``"sha256:..."`` of the canonical JSON of ``resolved()``."""
        return self._digest

    @functools.cached_property
    def _digest(self) -> str:
        text = json.dumps(self.resolved(), sort_keys=True, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def warnings(self) -> list[str]:
        """Return what to check before trusting any answer to this scenario."""
        return list(self._warnings)

    @functools.cached_property
    def _warnings(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        load = self.arriving_load
        if load is not None and load >= 1:
            found[
                f"the offered load of arriving transfers is {units.digits(100 * load, 3)} % of "
                "the bottleneck's rate: more arrive than complete, and every result grows with "
                "the length of the run"
            ] = None
        for warnings in (idle_red_warnings, cross_warnings, phase_warnings):
            found |= dict.fromkeys(warnings(self))
        for group in self.populations:
            for text in population_warnings(self, group):
                found[text] = None
        return tuple(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        """One line: the name, who sends, over what."""
        if self.captured is not None:
            return f"<Scenario {self.name}: capture {self.captured.file}>"
        kinds = ", ".join(
            f"{p.count} {p.traffic.kind}" if p.traffic.kind != "transfers" else "transfers"
            for p in self.populations
        )
        rate = units.format_rate(round(self.network.bottleneck.rate, 3))
        rtt = f"{self.rtt_s * 1e3:.6g}ms"
        return f"<Scenario {self.name}: {kinds}, bottleneck {rate}, rtt {rtt}>"

    __str__ = __repr__


def _entry_names(source: Mapping[str, Any]) -> EntryNames:
    network = source.get("network")
    hops = network.get("hop") if isinstance(network, Mapping) else None
    return {("class",): _names(source.get("class")), ("network", "hop"): _names(hops)}


def _names(entries: object) -> list[str | None]:
    if not isinstance(entries, list):
        return []
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in entries]
    counts = Counter(name for name in names if isinstance(name, str))
    return [name if isinstance(name, str) and counts[name] == 1 else None for name in names]
