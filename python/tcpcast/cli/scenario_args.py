"""The scenario and the engines of a command line."""

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
        The file does not exist, or is invalid; the message has one line per error.
    """
    changed = parse_assignments(changes or ())
    if seed is not None:
        changed["run.seed"] = seed
    return load(file, changes=changed)


def engine_names(engine: Sequence[str] | None) -> list[str] | None:
    """Return the distinct names in ``--engine``; None without the option.

    Raises
    ------
    TcpcastError
        A name is empty.
    """
    if not engine:
        return None
    names = [name.strip() for part in engine for name in part.split(",")]
    if not all(names):
        raise TcpcastError(
            f"--engine: '{','.join(engine)}' contains an empty name; separate names by commas"
        )
    return list(dict.fromkeys(names))
