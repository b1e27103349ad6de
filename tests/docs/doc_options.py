"""Lists of the commands' options, and the index of options and keys.

An option that several commands share, with the same meaning, is in a common list.
The lists of commands describe the other options, and name the shared ones that set a key.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from doc_pages import ROOT, anchor
from tcpcast.cli.commands import COMMANDS
from tcpcast.cli.typer_commands import build_command

SHARED_BY = 2
"""Number of commands from which on an argument or option is in the common list."""

NAMED_BY = 3
"""Largest number of commands whose lists name a shared option that sets a key."""

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
    rows = [(head, " ".join(text.split())) for head, text in filter(None, records)]
    # The usage shows which arguments are required; types of Python are not for users.
    return [
        (head, text)
        if head.startswith("-")
        else (head.split()[0], text.removesuffix(" [required]"))
        for head, text in rows
    ]


@cache
def _users() -> dict[Row, list[str]]:
    """Return the commands with each option."""
    users: dict[Row, list[str]] = {}
    for name in commands():
        for row in _rows(name):
            users.setdefault(row, []).append(name)
    return users


def _words(names: list[str]) -> set[str]:
    """Return the first words of commands: all plans are one command."""
    return {name.split()[0] for name in names}


@cache
def _shared() -> dict[Row, list[str]]:
    """Return the options that several commands share, with these commands."""
    return {row: names for row, names in _users().items() if len(_words(names)) >= SHARED_BY}


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


def _usage(name: str) -> str:
    """Return the name of a command and its arguments."""
    words = _context(name).get_usage().removeprefix("Usage: tcpcast ").split()
    return " ".join(word for word in words if word != "[OPTIONS]")


def shared_options() -> str:
    """Return the options that several commands share, with the keys that they set."""
    notes = {flag: text for name in COMMANDS for flag, text in _keys(name).items()}
    heads = [head for head, _ in _shared()]
    items = []
    for (head, text), names in _shared().items():
        # Of options with one name and several meanings, the note names the commands.
        note = _merged(names) if heads.count(head) > 1 else notes.get(head.split()[0], "")
        items.append(_item(head, text, note))
    return "".join(items)


def options(name: str) -> str:
    """Return usage, summary and own options of a command, and its shared options that set keys."""
    command = commands()[name]
    usage = _usage(name)
    paragraphs = [_code(" ".join(part.split())) for part in command.help.split("\n\n")]
    shared = {row[0]: _shared()[row] for row in _rows(name) if row in _shared()}
    keys = _keys(name)
    own = [
        _item(head, text, keys.get(head.split()[0], ""))
        for head, text in _rows(name)
        if head not in shared
    ]
    text = f"`tcpcast {usage}`\n\n" + "\n\n".join(paragraphs) + "\n\n"
    if own:
        text += "".join(own) + "\n"
    few = [h.split()[0] for h, users in shared.items() if len(_words(users)) <= NAMED_BY]
    if flags := [f"`{flag}`" for flag in few if flag in keys]:
        text += f"Also {', '.join(flags)}: see above.\n\n"
    return text + f"{command.epilog.replace('Example: ', 'Example: `')}`\n"


def plan_options() -> str:
    """Return the plans, and their own options in one list."""
    plans = {name: c for name, c in commands().items() if name.startswith("plan ")}
    parts = [
        f"- `{_usage(name)}`: " + _code(" ".join(plan.help.split())) for name, plan in plans.items()
    ]
    items = []
    shared: dict[str, list[str]] = {}
    for (head, text), names in _users().items():
        below = [name.split()[1] for name in names if name in plans]
        users = "all" if len(below) == len(plans) else ", ".join(below)
        if below and (head, text) not in _shared():
            items.append(_item(head, text, users))
        elif below and len(below) < len(plans) and head.startswith("-"):
            shared.setdefault(users, []).append(f"`{head.split()[0]}`")
    return (
        "\n".join(parts)
        + "\n\nOptions, and the plans that have them:\n\n"
        + "".join(sorted(items))
        + "\nAlso "
        + "; ".join(f"{', '.join(flags)} ({users})" for users, flags in shared.items())
        + ": see above.\n"
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
    """Return every option with its commands; options of the same commands share a line."""
    index: dict[str, list[str]] = {}
    for (head, _), names in _users().items():
        if head.startswith("-"):
            option = re.search(r"--[a-z-]+", head)
            assert option is not None, head
            index.setdefault(option[0], []).extend(names)
    groups: dict[str, list[str]] = {}
    for flag in sorted(index):
        users = _merged([name for name in commands() if name in index[flag]])
        groups.setdefault(users, []).append(f"`{flag}`")
    return "".join(f"- {', '.join(options)}: {users}\n" for users, options in groups.items())
