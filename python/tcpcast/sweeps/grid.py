"""The cells of a sweep: numbered combinations of the values of varied keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.errors import ScenarioError
from tcpcast.scenario import Sweep
from tcpcast.scenario.table import did_you_mean_text, find_nearest_word
from tcpcast.sweeps.axes import SweepAxis, SweepRange, read_list_axis, read_range_axis
from tcpcast.units import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
            groups.append(axes)
    grid = SweepGrid(tuple(groups))
    if len(grid) > MAX_CELLS:
        raise ScenarioError(
            f"sweep: {len(grid):,} combinations are more than {MAX_CELLS:,}; write fewer "
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
                    f"sweep.zip: {quote(key)} does not vary{did_you_mean_text(key, read)}; write "
                    "it into [sweep] with its values"
                )
            if key in zipped or group.count(key) > 1:
                raise ScenarioError(f"sweep.zip: {quote(key)} is named twice; write it once")
            entry = read[key]
            axes.append(entry.to_axis() if isinstance(entry, SweepRange) else entry)
        if len(axes) < 2:
            raise ScenarioError("sweep.zip: a group of one key; write two keys or more")
        lengths = {axis.key: len(axis.values) for axis in axes}
        if len(set(lengths.values())) > 1:
            text = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            raise ScenarioError(
                f"sweep.zip: {text} values; write the same number of values for each key"
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
            "sweep.latin: no key is a range; write a range for at least one key, or leave latin out"
        )
    for entry in ranges:
        if entry.points is not None:
            raise ScenarioError(
                f"sweep.{entry.key}: latin = {latin} sets the number of values; leave out the "
                f"{entry.points} at the end of the range"
            )
    random = np.random.default_rng([seed, _LATIN_STREAM])
    parts = random.permuted(np.tile(np.arange(latin), (len(ranges), 1)), axis=1)
    shares = (parts + random.random(parts.shape)) / latin
    return tuple(
        entry.values_at_positions(column)
        for entry, column in zip(ranges, shares.tolist(), strict=True)
    )


def evenly_spaced_values(axis: SweepAxis, maximum: int) -> Iterator[Any]:
    """Yield at most ``maximum`` evenly spaced values of an axis, including the first and last."""
    count = len(axis.values)
    indices = range(count) if count <= maximum else np.linspace(0, count - 1, maximum).astype(int)
    for index in indices:
        yield axis.values[int(index)]
