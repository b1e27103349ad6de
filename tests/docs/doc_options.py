"""Lists of the commands' options, and the index of options and keys.

An option that several commands share, with the same meaning, is in a common list.
The lists of commands contain the other options.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from doc_pages import ROOT, anchor
from tcpcast.cli.commands import COMMANDS
from tcpcast.cli.typer_commands import build_command

SHARED_BY = 2
"""Number of commands from which on an option is in the common list."""

KEY_SHARED_BY = 3
"""The same for an option that sets a key, which only the lists of commands name."""

SCENARIO_PAGE = ROOT / "docs" / "reference" / "scenario.md"

Row = tuple[str, str]
"""An option with its placeholder, and its meaning."""


@cache
def commands() -> dict[str, Any]:
    """Return each command, and each plan, by its words."""

    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for word, one in getattr(command, "commands", {}).items():
            yield from below(f"{name} {word}", one)

    return {n: c for name in COMMANDS for n, c in below(name, build_command(name))}


def _context(name: str) -> Any:
    # A command keeps the names of its help option from its first context.
    names = {"help_option_names": ["-h", "--help"]}
    return commands()[name].make_context(f"tcpcast {name}", [], resilient_parsing=True, **names)


def _keys(name: str) -> dict[str, str]:
    """Return the keys that the options of a command set."""
    options = COMMANDS[name].options if name in COMMANDS else ()
    return {o.flag: ", ".join(f"`{key}`" for key in o.keys) for o in options if o.keys}


def _rows(name: str) -> list[Row]:
    """Return the arguments and options of a command, as its help describes them."""
    context = _context(name)
    records = (p.get_help_record(context) for p in commands()[name].params)
    return [(head, " ".join(text.split())) for head, text in filter(None, records)]


@cache
def _users() -> dict[Row, list[str]]:
    """Return the commands with each option."""
    users: dict[Row, list[str]] = {}
    for name in commands():
        for row in _rows(name):
            users.setdefault(row, []).append(name)
    return users


@cache
def _shared() -> dict[Row, list[str]]:
    """Return the options that several commands share, with these commands."""
    return {
        row: names
        for row, names in _users().items()
        if row[0].startswith("-")
        and len({name.split()[0] for name in names})
        >= (KEY_SHARED_BY if any(row[0].split()[0] in _keys(name) for name in names) else SHARED_BY)
    }


def _code(text: str) -> str:
    """Mark the options in a help text as code, except in parts that are code already."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", part) for part in parts[::2]]
    return "`".join(parts)


def _merged(names: list[str]) -> str:
    """Return names of commands, with one word for all plans."""
    plans = [name for name in commands() if name.startswith("plan ")]
    if set(plans) <= set(names):
        names = ["plan" if name == plans[0] else name for name in names if name not in plans[1:]]
    return ", ".join(f"`{name}`" for name in names)


def _item(head: str, text: str, note: str = "") -> str:
    return f"- `{head}`: {_code(text)}{f' ({note})' if note else ''}\n"


def shared_options() -> str:
    """Return the options that several commands share."""
    return "".join(_item(head, text) for head, text in _shared())


def options(name: str) -> str:
    """Return usage, summary and own options of a command."""
    command = commands()[name]
    usage = _context(name).get_usage().removeprefix("Usage: ")
    paragraphs = [_code(" ".join(part.split())) for part in command.help.split("\n\n")]
    shared = [head for head, text in _rows(name) if (head, text) in _shared()]
    keys = _keys(name)
    own = [
        _item(head, text, keys.get(head.split()[0], ""))
        for head, text in _rows(name)
        if head not in shared
    ]
    text = f"`{' '.join(usage.split())}`\n\n" + "\n\n".join(paragraphs) + "\n\n"
    if own:
        text += "".join(own) + "\n"
    return text + f"{command.epilog.replace('Example: ', 'Example: `')}`\n"


def plan_options() -> str:
    """Return the plans, and their own options in one list."""
    plans = {name: c for name, c in commands().items() if name.startswith("plan ")}
    parts = [
        f"- `{_context(name).get_usage().removeprefix('Usage: tcpcast ')}`: "
        + _code(" ".join(plan.help.split()))
        for name, plan in plans.items()
    ]
    items = []
    for (head, text), names in _users().items():
        below = [name for name in names if name in plans]
        if below and (head, text) not in _shared():
            is_common = len(below) == len(plans)
            items.append(
                _item(head, text, "all" if is_common else ", ".join(n.split()[1] for n in below))
            )
    return (
        "\n".join(parts) + "\n\nOptions, and the plans that have them:\n\n" + "".join(sorted(items))
    )


COMMAND_TABLES: dict[str, Callable[[], str]] = {"options.plan": plan_options}
"""The tables of options, by their names on the pages; the plans share one."""
for _name in COMMANDS:
    if _name != "plan":
        COMMAND_TABLES[f"options.{_name}"] = partial(options, _name)


def _sections() -> dict[str, str]:
    """Return the address of the section of each table of keys in the reference of scenarios."""
    links, link = {}, ""
    text = SCENARIO_PAGE.read_text(encoding="utf-8")
    for line in re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE).splitlines():
        if line.startswith("#"):
            link = f"{SCENARIO_PAGE.name}#{anchor(line.lstrip('# '))}"
        elif table := re.match(r"<!-- table: keys\.(\w+) -->", line):
            links[table[1]] = link
    return links


def key_index(tables: dict[str, list[str]]) -> str:
    """Return every key of a scenario with links to the tables that have it, a line per letter.

    ``tables`` has the keys of each table, by its name in the schema.
    """
    index: dict[str, dict[str, None]] = {}
    sections = _sections()
    for table, keys in tables.items():
        for key in keys:
            index.setdefault(key, {})[sections[table]] = None
    letters: dict[str, list[str]] = {}
    for key in sorted(index):
        first, *others = index[key]
        also = f" ({', '.join(f'[{n}]({link})' for n, link in enumerate(others, 2))})"
        letters.setdefault(key[0], []).append(f"[`{key}`]({first})" + (also if others else ""))
    return "\n".join(f"{', '.join(links)}.\n" for links in letters.values())


def option_index() -> str:
    """Return every option with the commands that have it."""
    index: dict[str, list[str]] = {}
    for (head, _), names in _users().items():
        if head.startswith("-"):
            option = re.search(r"--[a-z-]+", head)
            assert option is not None, head
            index.setdefault(option[0], []).extend(names)
    return "".join(
        f"- `{option}`: {_merged([name for name in commands() if name in index[option]])}\n"
        for option in sorted(index)
    )
