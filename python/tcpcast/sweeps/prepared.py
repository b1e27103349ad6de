"""A prepared sweep: its scenario, its cells and engines, and the key of each answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpcast.engines import REGISTRY, check_engine_names
from tcpcast.engines.registry import Formula
from tcpcast.errors import InputError, ScenarioError
from tcpcast.scenario import Scenario, load
from tcpcast.sweeps.axes import SweepAxis, is_quantity_of_kind
from tcpcast.sweeps.grid import SweepGrid, evenly_spaced_values, make_grid
from tcpcast.sweeps.table import get_column_kind, get_column_unit
from tcpcast.sweeps.worker import ALL_ENGINES, CellRun, SweepSpec, get_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike


MAX_VALIDATED_VALUES = 50
"""Maximum number of values per key that are validated before the first run."""


def get_column_kinds(base: Scenario, axes: Iterable[SweepAxis]) -> dict[str, str]:
    """Return the kind of the column of each varied key.

    Numbers without a unit are ratios if the scenario accepts a percentage for their key.
    """
    kinds = {}
    for axis in axes:
        kinds[axis.key] = get_column_kind(axis)
        if (
            kinds[axis.key] == "number"
            and is_quantity_of_kind("ratio", axis.values)
            and not _find_errors_of_key(base, axis.key, {axis.key: "1%"})
        ):
            kinds[axis.key] = "ratio"
    return kinds


def check_swept_keys(base: Scenario, grid: SweepGrid) -> None:
    """Reject unknown keys and invalid values before the first run.

    Contradictions between values are reported in the rows of their cells.
    """
    ends: tuple[dict[str, Any], ...] = ({}, grid.cell(0), grid.cell(len(grid) - 1))
    for axis in grid.axes:
        if axis.key == "sweep" or axis.key.startswith("sweep."):
            raise ScenarioError(
                f"sweep.{axis.key}: a sweep cannot vary the table [sweep]; leave this key out"
            )
        for value in evenly_spaced_values(axis, MAX_VALIDATED_VALUES):
            # Keep only errors that occur with all values of the other keys; the rows of the cells
            # report other errors.
            always: dict[InputError, None] | None = None
            for others in ends:
                errors = _find_errors_of_key(base, axis.key, {**others, axis.key: value})
                always = dict.fromkeys(
                    errors if always is None else (each for each in always if each in errors)
                )
                if not always:
                    break
            if always:
                raise ScenarioError(*(f._replace(key=f"sweep.{f.key}") for f in always))


def _find_errors_of_key(base: Scenario, key: str, changes: Mapping[str, Any]) -> list[InputError]:
    """Return the errors of a key after these changes."""
    try:
        base.with_changes(changes)
    except ScenarioError as error:
        return [each for each in error.errors if _concerns_key(each.key, key)]
    return []


def _concerns_key(location: str, key: str) -> bool:
    path = location.replace('"', "")
    return path == key or path.startswith(f"{key}.") or key.startswith(f"{path}.")


MAX_FIGURE_KEYS = 2
"""Maximum number of varied keys in a figure."""

_NO_PROBES: dict[str, Any] = {"probes.flows": [], "probes.pcap": []}


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """A scenario, the grid of varied values, and the engines.

    ``engines`` is None if all applicable engines that run by default answer. ``digest`` identifies
    everything on which the answers of all cells depend: the version, the scenario and the feed.
    """

    scenario: Scenario
    grid: SweepGrid
    engines: tuple[str, ...] | None
    replications: int
    feed: str
    version: str
    digest: str

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> PreparedSweep:
        """Return the sweep of a definition from :meth:`definition`."""
        groups = [
            tuple(SweepAxis(key, tuple(values)) for key, values in group.items())
            for group in definition["axes"]
        ]
        engines = definition["engines"]
        given = {name: definition[name] for name in ("replications", "feed", "version", "digest")}
        return cls(
            Scenario.from_dict(definition["scenario"]),
            SweepGrid(tuple(groups)),
            None if engines is None else tuple(engines),
            **given,
        )

    def definition(self) -> dict[str, Any]:
        """Return the sweep as JSON values, with all values that files contain."""
        return {
            "scenario": self.scenario.resolved(),
            "axes": [{axis.key: list(axis.values) for axis in group} for group in self.grid.groups],
            "engines": self.engines,
            "replications": self.replications,
            "feed": self.feed,
            "version": self.version,
            "digest": self.digest,
        }

    @property
    def runs(self) -> int:
        """Number of cells times replications."""
        return len(self.grid) * self.replications

    @property
    def has_only_formulas(self) -> bool:
        """True if all replications of a cell have equal answers."""
        names = self.engines
        return names is not None and self.feed == "scenario" and all(map(_is_formula, names))

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of the column of each varied key."""
        return get_column_kinds(self.scenario, self.grid.axes)

    @property
    def keys(self) -> dict[str, str]:
        """The varied keys with the units of their columns."""
        return {key: get_column_unit(kind) for key, kind in self.kinds.items()}

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of several classes, and of links, as ``link.NAME``; each has its own columns."""
        names = tuple(group.name for group in self.scenario.populations)
        links = tuple(f"link.{name}" for name in self.scenario.links)
        return (*names, *links) if len(names) > 1 else links

    @property
    def is_grid(self) -> bool:
        """Whether one or two keys vary in all combinations."""
        groups = self.grid.groups
        return len(groups) <= MAX_FIGURE_KEYS and all(len(group) == 1 for group in groups)

    @property
    def table(self) -> dict[str, Any]:
        """Table ``[sweep]`` of the sweep."""
        entries: dict[str, Any] = {axis.key: list(axis.values) for axis in self.grid.axes}
        zipped = [[axis.key for axis in group] for group in self.grid.groups if len(group) > 1]
        entries |= {"zip": zipped} if zipped else {}
        entries |= {"engines": list(self.engines)} if self.engines is not None else {}
        entries |= {"replications": self.replications} if self.replications > 1 else {}
        return entries | ({"feed": self.feed} if self.feed != "scenario" else {})

    def spec(self) -> SweepSpec:
        """Return the common parameters of all runs, for workers."""
        tables, folder = self.scenario.source_tables()
        names = self.engines, self.feed, self.digest, self.version
        return SweepSpec(tables, folder, *names, bool(self.classes))

    def run(self, number: int) -> CellRun:
        """Return a run by its number; the replications of a cell follow each other.

        An engine's answer has a key of its own if it does not depend on the other engines.
        """
        cell, replication = divmod(number, self.replications)
        values = self.grid.cell(cell)
        seed = int(values.get("run.seed", self.scenario.run.seed)) + replication
        names = self.engines
        if names is None or self.feed != "scenario":
            names = (ALL_ENGINES,)
        elif replication > 0:  # all replications of a formula are equal
            names = tuple(name for name in names if not _is_formula(name))
        text = json.dumps([self.digest, values, seed], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode())
        keys = {}
        for name in names:
            of_engine = digest.copy()
            of_engine.update(name.encode())
            keys[name] = of_engine.digest()
        return CellRun(cell, replication, seed, values, keys)


def _is_formula(name: str) -> bool:
    """Return True if an engine is a formula."""
    return isinstance(REGISTRY[name], Formula)


def prepare_sweep(
    scenario: Scenario | str | PathLike[str],
    vary: Mapping[str, Any] | None = None,
    *,
    engines: str | Sequence[str] | None = None,
    replications: int | None = None,
    feed: str | None = None,
) -> PreparedSweep:
    """Return a prepared sweep; see :func:`tcpcast.sweep` for the arguments and errors."""
    source = scenario if isinstance(scenario, Scenario) else load(scenario)
    named = engines if engines is None or isinstance(engines, str) else list(engines)
    given: dict[str, Any] = {"engines": named, "replications": replications, "feed": feed}
    own = {name: value for name, value in given.items() if value is not None}
    source = source.with_sweep({} if vary is None else vary).with_sweep(own)
    table = source.sweep
    assert table is not None
    names = tuple(table.engines) or None
    check_engine_names(names or ())
    base = source.with_changes({"sweep": None, **_NO_PROBES})
    grid = make_grid(table, base.run.seed)
    check_swept_keys(base, grid)
    depends_on = [
        version := get_version(),
        base.resolved(),
        base.source_tables()[0],  # values such as 1bdp are computed again in each cell
        table.feed,
        names if table.feed != "scenario" else None,
    ]
    text = json.dumps(depends_on, sort_keys=True, default=str)
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    sweep = PreparedSweep(base, grid, names, table.replications, table.feed, version, digest)
    return replace(sweep, replications=1) if sweep.has_only_formulas else sweep
