"""Reads the scenario and the engines from command-line arguments."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.process.errors import OptionError, ScenarioError
from tcpcast.scenario import load, parse_assignments
from tcpcast.scenario.loading import MAX_FILE_BYTES, parse_scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.scenario import Scenario

STANDARD_INPUT = "-"


def read_scenario(
    file: str,
    changes: Sequence[str] | None,
    *,
    placeholders: Mapping[str, str] | None = None,
) -> Scenario:
    """Read a scenario file, or a packaged scenario, and apply ``--set``.

    Parameters
    ----------
    file
        The file, the name of a packaged scenario, or ``-`` for standard input.
    changes
        The values of ``--set``.
    placeholders
        Further changes, applied if the scenario is invalid without them.

    Raises
    ------
    ScenarioError
        The file does not exist, or is invalid; the message has one line per error.
    """
    changed = parse_assignments(changes or ())
    read = partial(load, file)
    if file == STANDARD_INPUT:
        read = partial(parse_scenario, _read_standard_input(), "standard input", folder=Path())
    try:
        return read(changes=changed)
    except ScenarioError as error:
        if not placeholders:
            raise
        try:
            return read(changes={**changed, **placeholders})
        except ScenarioError:
            raise error from None


def _read_standard_input() -> str:
    """Return the text on standard input, or its beginning if it exceeds the permitted size."""
    try:
        text = sys.stdin.read(MAX_FILE_BYTES + 1) if sys.stdin is not None else ""
        text.encode()  # standard input may replace invalid bytes by surrogates
        return text
    except UnicodeError:
        raise ScenarioError("standard input: must be text; use a scenario in TOML") from None


def read_engine_option(engine: Sequence[str] | None) -> list[str] | None:
    """Return the distinct names in ``--engine``; None without the option.

    Raises
    ------
    OptionError
        A name is empty.
    """
    if not engine:
        return None
    names = [name.strip() for part in engine for name in part.split(",")]
    if not all(names):
        raise OptionError(
            "--engine", f"'{','.join(engine)}' contains an empty name; separate names by commas"
        )
    return list(dict.fromkeys(names))
