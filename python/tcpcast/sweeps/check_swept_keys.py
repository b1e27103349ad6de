"""Checks of the varied keys of a sweep against its scenario, and the kinds of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.errors import InputError, ScenarioError
from tcpcast.sweeps.axes import is_quantity_of_kind
from tcpcast.sweeps.grid import evenly_spaced_values
from tcpcast.sweeps.table import get_column_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tcpcast.scenario import Scenario
    from tcpcast.sweeps.axes import SweepAxis
    from tcpcast.sweeps.grid import SweepGrid

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
