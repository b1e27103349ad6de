"""Rewriting a scenario file of an earlier version: its keys get their places of today.

Comments, order and everything else in the file stay. The document is taken apart by tomlkit, and
what comes out is read again and compared with what should be in it.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError
from tcpcast.scenario.loading import parse_toml
from tcpcast.scenario.renamed import INSTEAD_OF_ON_SECOND, MOVED_IN_TCP, ON_SECOND
from tcpcast.scenario.toml import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tomlkit.items import AbstractTable, Item, Key

    Body = list[tuple[Key | None, Item]]


def migrated(text: str, where: str) -> tuple[str, list[str]]:
    """Return a scenario file with the keys of this version.

    Parameters
    ----------
    text
        The file.
    where
        Its name, for messages.

    Returns
    -------
    tuple of str and list of str
        The file as it is to be, and a line for each change; without any it needs none.

    Raises
    ------
    ScenarioError
        Not TOML, or laid out so that no key can be moved without moving others.
    """
    import tomlkit  # noqa: PLC0415 - for files of an earlier version alone
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    wanted = parse_toml(text, where)
    changes = [line for path, table in _tcp_tables(wanted) for line in _move(path, table)]
    if not changes:
        return text, []
    try:
        document = tomlkit.parse(text)
        for table in _tcp_items(document.body):
            _rewrite(table)
        written = tomlkit.dumps(document)
        same = tomllib.loads(written) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError):
        same = False
    if not same:
        raise ScenarioError(
            f"{where}: too unusual a layout to be rewritten; write by hand: {'; '.join(changes)}"
        )
    return written, changes


def _tcp_tables(tables: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables of TCP of a scenario, as they were typed, with where they are."""
    entries = tables.get("class")
    classes = entries if isinstance(entries, list) else []
    found = [("tcp", tables.get("tcp"))]
    for place, entry in enumerate(classes):
        if isinstance(entry, dict):
            found.append((f"class.{entry.get('name', place)}.tcp", entry.get("tcp")))
    for path, table in found:
        if isinstance(table, dict):
            yield path, table


def _move(path: str, tcp: dict[str, Any]) -> Iterator[str]:
    """Move the keys of a table, and yield a line for each."""
    for key, now in MOVED_IN_TCP.items():
        if key in tcp and _put(tcp, now, tcp[key]):
            del tcp[key]
            yield f"{path}.{key} is now {path}.{'.'.join(now)}"
    if tcp.get("limited_transmit") == ON_SECOND:
        for now, value in INSTEAD_OF_ON_SECOND.items():
            _put(tcp, now, value)
        pairs = INSTEAD_OF_ON_SECOND.items()
        texts = (f"{path}.{'.'.join(now)} = {write_value(value)}" for now, value in pairs)
        yield f'{path}.limited_transmit = "{ON_SECOND}" is now {" and ".join(texts)}'


def _put(table: dict[str, Any], place: tuple[str, ...], value: Any) -> bool:
    """Set a value at a place, and say whether there is one: what is no table holds none."""
    for part in place[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return False
    table[place[-1]] = value
    return True


def _tcp_items(body: Body) -> Iterator[AbstractTable]:
    """Yield the tables of TCP in a document, however they are written."""
    for key, item in body:
        if key is not None and key.key == "tcp":
            yield from _tables(item)
        elif key is not None and key.key == "class":
            for entry in _tables(item):
                for inner, table in entry.value.body:
                    if inner is not None and inner.key == "tcp":
                        yield from _tables(table)


def _tables(item: Item) -> Iterator[AbstractTable]:
    """Yield a table, or each in a list of tables."""
    from tomlkit.items import AbstractTable, AoT, Array  # noqa: PLC0415

    if isinstance(item, AbstractTable):
        yield item
    elif isinstance(item, AoT | Array):
        for entry in item:
            yield from _tables(entry)


def _rewrite(table: AbstractTable) -> None:
    """Give the keys of one table of TCP their places of today, each where it stands."""
    from tomlkit.items import InlineTable  # noqa: PLC0415

    body = table.value.body
    for at in reversed(range(len(body))):
        key, item = body[at]
        if key is None:
            continue
        if key.key in MOVED_IN_TCP:
            _rename(key, item, ".".join(MOVED_IN_TCP[key.key][:-1]))
        elif key.key == "limited_transmit" and item.unwrap() == ON_SECOND:
            inline = isinstance(table, InlineTable)
            body[at : at + 1] = _instead_of_on_second(key, item, inline=inline)


def _rename(key: Key, item: Item, above: str) -> None:
    """Put the name of a table before a key: ``timer_restart`` is ``rules.timer_restart``."""
    from tomlkit.items import Table  # noqa: PLC0415

    # What tomlkit writes: the key with the quotes and spaces that were typed.
    key._original = f"{above}.{key.as_string()}"
    if isinstance(item, Table) and item.display_name is not None:
        before, dot, name = item.display_name.rpartition(".")
        item.display_name = f"{before}{dot}{above}.{name}"


def _instead_of_on_second(key: Key, item: Item, *, inline: bool) -> Body:
    """Return the two entries that take the place of one, on two lines or behind a comma."""
    import tomlkit  # noqa: PLC0415
    from tomlkit.items import SingleKey, Whitespace  # noqa: PLC0415

    (_, first), (now, second) = INSTEAD_OF_ON_SECOND.items()
    kept, added = tomlkit.item(first), tomlkit.item(second)
    for each in (kept, added):
        each.trivia.indent = item.trivia.indent
        each.trivia.trail = "" if inline else item.trivia.trail or "\n"
    kept.trivia.comment_ws, kept.trivia.comment = item.trivia.comment_ws, item.trivia.comment
    added.trivia.trail = item.trivia.trail
    new_key = SingleKey(now[-1], sep=" = ", original=".".join(now))
    between: Body = [(None, Whitespace(",")), (None, Whitespace(" "))] if inline else []
    return [(key, kept), *between, (new_key, added)]
