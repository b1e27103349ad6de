"""A finished sweep with its definition, from a folder or from memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError, TcpcastError
from tcpcast.scenario import Scenario
from tcpcast.sweeps.axes import SweepAxis
from tcpcast.sweeps.check_swept_keys import get_column_kinds
from tcpcast.sweeps.folder import DIGEST_KEY, SweepFolder, read_definition
from tcpcast.sweeps.results import SweepResults, count_statuses
from tcpcast.sweeps.table import get_column_unit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


MAX_FIGURE_KEYS = 2
"""Maximum number of varied keys in a figure."""


@dataclass(frozen=True, slots=True)
class FinishedSweep:
    """Definition and results of a sweep.

    ``groups`` has the varied keys; keys in one group vary together. ``engines`` is None if all
    applicable engines that run by default were used.
    """

    scenario: Scenario
    groups: tuple[tuple[SweepAxis, ...], ...]
    engines: tuple[str, ...] | None
    replications: int
    feed: str
    version: str
    digest: str
    results: SweepResults

    @property
    def axes(self) -> list[SweepAxis]:
        """The varied keys in the order of the columns."""
        return [axis for group in self.groups for axis in group]

    @property
    def is_grid(self) -> bool:
        """Whether one or two keys vary in all combinations."""
        return len(self.groups) <= MAX_FIGURE_KEYS and all(len(group) == 1 for group in self.groups)

    @property
    def table(self) -> dict[str, Any]:
        """Table ``[sweep]`` of the sweep."""
        entries: dict[str, Any] = {axis.key: list(axis.values) for axis in self.axes}
        zipped = [[axis.key for axis in group] for group in self.groups if len(group) > 1]
        entries |= {"zip": zipped} if zipped else {}
        entries |= {"engines": list(self.engines)} if self.engines is not None else {}
        entries |= {"replications": self.replications} if self.replications > 1 else {}
        return entries | ({"feed": self.feed} if self.feed != "scenario" else {})


def make_finished_sweep(definition: Mapping[str, Any], results: SweepResults) -> FinishedSweep:
    """Return a sweep from the definition of :func:`prepare_sweep` and its results."""
    engines = definition["engines"]
    return FinishedSweep(
        Scenario.from_dict(definition["scenario"]),
        tuple(
            tuple(SweepAxis(key, tuple(values)) for key, values in group.items())
            for group in definition["axes"]
        ),
        None if engines is None else tuple(engines),
        definition["replications"],
        definition["feed"],
        definition["version"],
        definition[DIGEST_KEY],
        results,
    )


def read_sweep(path: Path) -> FinishedSweep:
    """Return the sweep of a folder.

    Raises
    ------
    TcpcastError
        The folder contains no sweep, or the sweep cannot be read.
    MachineError
        pyarrow is not installed.
    """
    definition = read_definition(path)
    if definition is None:
        raise TcpcastError(f"{path} contains no sweep; write the folder of `tcpcast sweep --out`")
    parts = SweepFolder(path).existing_parts()
    results = SweepResults(list(parts), count_statuses(list(parts)), folder=path)
    try:
        finished = make_finished_sweep(definition, results)
        cells = math.prod(len(group[0].values) for group in finished.groups)
        batches = math.ceil(cells * finished.replications / definition["batch"])
    except (KeyError, TypeError, AttributeError, IndexError, ScenarioError) as error:
        raise TcpcastError(
            f"{path}: its definition cannot be read ({error}); write the folder of "
            "`tcpcast sweep --out` of this version"
        ) from None
    results.batches, results.interrupted = batches, len(parts) < batches
    kinds = get_column_kinds(finished.scenario, finished.axes)
    results.keys = {key: get_column_unit(kind) for key, kind in kinds.items()}
    return finished
