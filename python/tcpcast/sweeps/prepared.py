"""A prepared sweep: its scenario, its cells and engines, and the key of each answer."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines import REGISTRY, check_engine_names
from tcpcast.engines.registry import Formula
from tcpcast.process.errors import InputError, ScenarioError, did_you_mean_text, find_nearest_word
from tcpcast.quantity.units import quote
from tcpcast.scenario import Scenario, Sweep, load
from tcpcast.scenario.sweep import LABEL_KEY
from tcpcast.sweeps.axes import (
    SweepAxis,
    SweepRange,
    check_that_values_differ,
    is_quantity_of_kind,
    read_list_axis,
    read_range_axis,
)
from tcpcast.sweeps.table import get_column_kind, get_column_unit
from tcpcast.sweeps.worker import ALL_ENGINES, CellRun, SweepSpec, get_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike


MAX_CELLS = 10_000_000
_LATIN_STREAM = 0x1A71


@dataclass(frozen=True, slots=True)
class SweepGrid:
    """Combinations of groups of axes; the axes of a group vary together.

    The last group varies fastest with the cell number.
    """

    groups: tuple[tuple[SweepAxis, ...], ...]

    def __len__(self) -> int:
        """Return the number of cells."""
        return math.prod(len(group[0].values) for group in self.groups)

    @property
    def axes(self) -> list[SweepAxis]:
        """All axes, in the order of the columns."""
        return [axis for group in self.groups for axis in group]

    def cell(self, number: int) -> dict[str, Any]:
        """Return the values of a cell by key."""
        indices = []
        for group in reversed(self.groups):
            number, index = divmod(number, len(group[0].values))
            indices.append(index)
        return {
            axis.key: axis.values[index]
            for group, index in zip(self.groups, reversed(indices), strict=True)
            for axis in group
        }


def make_grid(table: Sweep, seed: int) -> SweepGrid:
    """Return the cells of a ``[sweep]`` table.

    Parameters
    ----------
    table
        The table.
    seed
        ``run.seed``, the seed of the points of ``latin``.

    Raises
    ------
    ScenarioError
        A range or list is wrong, keys of ``zip`` have different numbers of values, or there are
        more than :data:`MAX_CELLS` cells; the message has the key and the correction.
    """
    for key in table.vary:
        near = find_nearest_word(key, Sweep.model_fields) if "." not in key else None
        if near is not None:
            raise ScenarioError(f"sweep.{key}: unknown key; did you mean {quote(near)}?")
    read: dict[str, SweepAxis | SweepRange] = {
        key: read_range_axis(key, value) if isinstance(value, str) else read_list_axis(key, value)
        for key, value in table.vary.items()
    }
    zipped = _get_zip_groups(table.zip, read)
    drawn = _draw_latin_hypercube(table.latin, read, zipped, seed)
    groups: list[tuple[SweepAxis, ...]] = []
    for key, entry in read.items():
        together = zipped.get(key) or (drawn if key in {axis.key for axis in drawn} else None)
        axes = together or (entry.to_axis() if isinstance(entry, SweepRange) else entry,)
        if axes not in groups:
            if axes is not drawn:  # ranges of few whole numbers repeat in a Latin hypercube
                check_that_values_differ(axes)
            groups.append(axes)
    grid = SweepGrid(tuple(groups))
    if len(grid) > MAX_CELLS:
        raise ScenarioError(
            f"sweep: {len(grid):,} combinations are more than {MAX_CELLS:,}; use fewer "
            "values, or latin = 1000"
        )
    return grid


def _get_zip_groups(
    groups: Sequence[Sequence[str]], read: Mapping[str, SweepAxis | SweepRange]
) -> dict[str, tuple[SweepAxis, ...]]:
    """Return the groups of ``zip`` by key."""
    zipped: dict[str, tuple[SweepAxis, ...]] = {}
    for group in groups:
        axes = []
        for key in group:
            if key not in read:
                raise ScenarioError(
                    f"sweep.zip: {quote(key)} does not vary{did_you_mean_text(key, read)}; add "
                    "it to [sweep] with its values"
                )
            if key in zipped or group.count(key) > 1:
                raise ScenarioError(f"sweep.zip: {quote(key)} is named twice; use it once")
            entry = read[key]
            axes.append(entry.to_axis() if isinstance(entry, SweepRange) else entry)
        if len(axes) < 2:
            raise ScenarioError("sweep.zip: a group contains only one key; use two keys or more")
        lengths = {axis.key: len(axis.values) for axis in axes}
        if len(set(lengths.values())) > 1:
            text = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            raise ScenarioError(
                f"sweep.zip: the numbers of values differ ({text}); use the same number of values "
                "for each key"
            )
        zipped |= dict.fromkeys(group, tuple(axes))
    return zipped


def _draw_latin_hypercube(
    latin: int | None,
    read: Mapping[str, SweepAxis | SweepRange],
    zipped: Mapping[str, object],
    seed: int,
) -> tuple[SweepAxis, ...]:
    """Draw a Latin hypercube: one value from each of the equal parts of each range."""
    if latin is None:
        return ()
    ranges = [e for key, e in read.items() if isinstance(e, SweepRange) and key not in zipped]
    if not ranges:
        raise ScenarioError(
            "sweep.latin: no key is a range; use a range for at least one key, or remove latin"
        )
    for entry in ranges:
        if entry.points is not None:
            raise ScenarioError(
                f"sweep.{entry.key}: latin = {latin} sets the number of values; remove the "
                f"{entry.points} at the end of the range"
            )
    random = np.random.default_rng([seed, _LATIN_STREAM])
    parts = random.permuted(np.tile(np.arange(latin), (len(ranges), 1)), axis=1)
    shares = (parts + random.random(parts.shape)) / latin
    return tuple(
        entry.values_at_positions(column)
        for entry, column in zip(ranges, shares.tolist(), strict=True)
    )


def select_figure_keys(groups: Sequence[Sequence[str]]) -> list[str]:
    """Return the key of each group of keys that a figure shows; nothing if there is no figure."""
    shown = [group[0] for group in groups if len(group) == 1 or group[0] == LABEL_KEY]
    return shown if len(shown) == len(groups) <= MAX_FIGURE_KEYS else []


def evenly_spaced_values(axis: SweepAxis, maximum: int) -> Iterator[Any]:
    """Yield at most ``maximum`` evenly spaced values of an axis, including the first and last."""
    count = len(axis.values)
    indices = range(count) if count <= maximum else np.linspace(0, count - 1, maximum).astype(int)
    for index in indices:
        yield axis.values[int(index)]


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
                f"sweep.{axis.key}: a sweep cannot vary the table [sweep]; remove this key"
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
    def figure_keys(self) -> dict[str, str]:
        """The keys that figures show, with the units of their columns; empty if there are none.

        Keys that vary together are shown by the labels of their rows.
        """
        groups = [[axis.key for axis in group] for group in self.grid.groups]
        return {key: self.keys[key] for key in select_figure_keys(groups)}

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
