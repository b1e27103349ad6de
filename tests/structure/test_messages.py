"""Names in messages exist: options, commands, keys of a scenario and stacks."""

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tcpcast
import typer
from tcpcast.cli import app, complete
from tcpcast.engines import REGISTRY, check_engine_names
from tcpcast.process.errors import ScenarioError, UnknownEngine
from tcpcast.scenario.tcp import STACKS

PACKAGE = Path(__file__).parents[2] / "python" / "tcpcast"
UNKNOWN = "\0"
"""Placeholder for a value that a message inserts."""


@cache
def messages() -> dict[str, str]:
    """Return the texts in the code except for docstrings, each with its place."""
    result = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        parts = {id(v) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for v in n.values}
        for node in ast.walk(tree):
            if id(node) in skipped | parts or (text := text_of(node)) is None or " " not in text:
                continue
            result[f"{path.relative_to(PACKAGE)}:{node.lineno}"] = text  # type: ignore[attr-defined]
    return result


def text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or UNKNOWN for part in node.values)
    return None


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), (*path, name))


def unknown_names(pattern: str, known: Collection[str]) -> list[str]:
    """Return the unknown names that a pattern finds in messages, with their places."""
    return [
        f"{location}: {name}"
        for location, text in messages().items()
        for name in re.findall(pattern, text)
        if name not in known
    ]


def test_options_in_messages_exist() -> None:
    tree = dict(commands(typer.main.get_command(app)))
    options = {"--help"} | {
        o for c in tree.values() for p in c.params for o in (*p.opts, *p.secondary_opts)
    }
    assert not unknown_names(
        rf"(?<![-\w{UNKNOWN}])(--[a-z][a-z-]*[a-z])(?![a-z{UNKNOWN}-])", options
    )


def test_commands_in_messages_exist() -> None:
    tree = dict(commands(typer.main.get_command(app)))
    assert not unknown_names(r"tcpcast ([a-z]+) [A-Z-]", {path[0] for path in tree if path})


ENTRIES = {"probes.pcap.packets"}
"""Keys of tables in a list, which no dotted key names."""


def test_keys_in_messages_exist() -> None:
    known = {key.removesuffix("=") for key in complete.complete_scenario_key("")}
    tables = "network|traffic|tcp|run|probes|mean_field|fixed_point"
    assert not unknown_names(
        rf"(?<![\w.-])((?:{tables})(?:\.[a-z_]+)+)(?![\w.{UNKNOWN}(-]*[({UNKNOWN}])",
        known | ENTRIES,
    )


def test_stacks_in_messages_exist() -> None:
    assert not unknown_names(rf'stack = "([^"{UNKNOWN}]+)"', set(STACKS))
    assert not unknown_names(r'"((?:linux|rfc|pftk|engset)-[a-z-]+)"', set(STACKS))


def test_engines_in_messages_exist() -> None:
    assert not unknown_names(r"(?:write --engine|use engine) ([a-z-]+)(?!\0)", REGISTRY)


@pytest.mark.parametrize("name", ["bbr2", "cubic", "reno", "ns2", "simulator", "mathiss"])
def test_hints_for_an_unknown_engine_name_engines(name: str) -> None:
    with pytest.raises(UnknownEngine) as refused:
        check_engine_names([name])
    hint, _, _ = str(refused.value).partition(" There are: ")
    assert set(re.findall(r"'([a-z-]+)'", hint.partition(";")[2])) <= set(REGISTRY)
    assert set(re.findall(r'"([a-z0-9-]+)"', hint)) <= set(STACKS)


@pytest.mark.parametrize("written", ["bbr2", "reno", "cubic", "bbr", "newreno", "sack", "vegas"])
def test_hints_for_an_unknown_stack_name_stacks(written: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        tcpcast.load("office-50mbit", changes={"tcp.stack": written})
    hints = str(refused.value).partition("; ")[2] or str(refused.value).partition("?")[0]
    named = re.findall(r'"([a-z0-9-]+)"', hints)
    assert named
    for stack in named:
        if stack != written:
            tcpcast.load("office-50mbit", changes={"tcp.stack": stack})
