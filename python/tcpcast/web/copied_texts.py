"""Texts to copy from the page: a command and a Python program that give the same answer."""

from __future__ import annotations

import pprint
import shlex
from typing import TYPE_CHECKING, Any

from tcpcast.scenario.toml import write_toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEREDOC_END = "END_OF_SCENARIO"


def shell_command(words: Sequence[str]) -> str:
    """Return a command line with these words, quoted for a shell."""
    return shlex.join(words)


def commands_for_scenario_file(tables: Mapping[str, Any], engines: Sequence[str]) -> str:
    """Return commands that write a scenario file and run it."""
    name = f"{tables['name']}.toml"
    run = shell_command(["tcpcast", "run", name, "--engine", ",".join(engines)])
    return (
        f"cat > {shlex.quote(name)} <<'{_HEREDOC_END}'\n{write_toml(tables)}{_HEREDOC_END}\n{run}"
    )


def program_of_tables(tables: Mapping[str, Any], engines: Sequence[str]) -> str:
    """Return a program that contains a scenario and runs engines on it."""
    return (
        "import tcpcast\n\n"
        f"scenario = tcpcast.Scenario.from_dict(\n{_indented(dict(tables))}\n)\n"
        f"answers = tcpcast.run(scenario, {list(engines)!r})\n"
        "print(answers)\n"
    )


def program_of_packaged(name: str, changes: Mapping[str, Any], engines: Sequence[str]) -> str:
    """Return a program that runs engines on a packaged scenario with changed keys."""
    return (
        "import tcpcast\n\n"
        f"{_load_statement(name, changes)}"
        f"answers = tcpcast.run(scenario, {list(engines)!r})\n"
        "print(answers)\n"
    )


def program_of_buffer_plan(
    name: str, changes: Mapping[str, Any], loss: float, simulated: bool
) -> str:
    """Return a program that computes the buffer for a loss."""
    engine = "" if simulated else ', engine="engset"'
    return (
        "import tcpcast\nfrom tcpcast.plan import solve\n\n"
        f"{_load_statement(name, changes)}"
        f'plan = solve("buffer", scenario, loss={loss!r}{engine})\n'
        "print(plan)\n"
    )


def set_arguments(changes: Mapping[str, Any]) -> list[str]:
    """Return ``--set KEY=VALUE`` for each change."""
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]


def _load_statement(name: str, changes: Mapping[str, Any]) -> str:
    return (
        "scenario = tcpcast.load(\n"
        f"    {name!r},\n    changes=\n{_indented(dict(changes))},\n)\n".replace("=\n    {", "={")
    )


def _indented(value: Any) -> str:
    text = pprint.pformat(value, width=88, sort_dicts=False)
    return "\n".join(f"    {line}" for line in text.splitlines())
