"""The scenario that a command line asks about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.errors import TcpcastError
from tcpcast.scenario import load, parse_assignments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.scenario import Scenario


def read_scenario(file: str, changes: Sequence[str] | None, seed: int | None = None) -> Scenario:
    """Read a scenario file, or a packaged scenario, and apply ``--set`` and ``--seed``.

    Raises
    ------
    ScenarioError
        No such file, or one line for each fault in it.
    """
    changed = parse_assignments(changes or ())
    if seed is not None:
        changed["run.seed"] = seed
    return load(file, changes=changed)


def engine_names(engine: Sequence[str] | None) -> list[str] | None:
    """Return the names that ``--engine`` has, once each; None without any.

    Raises
    ------
    TcpcastError
        Nothing between two commas.
    """
    if not engine:
        return None
    names = [name.strip() for part in engine for name in part.split(",")]
    if not all(names):
        raise TcpcastError(f"--engine takes names separated by commas, not '{','.join(engine)}'.")
    return list(dict.fromkeys(names))
