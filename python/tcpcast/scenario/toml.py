"""Write a resolved scenario as TOML in the usual layout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_WITH_HEADERS = ("link", "site", "network", "tcp")
"""Tables whose subtables have headers."""
_ESCAPED_CHARACTERS = re.compile(r'["\\\x00-\x1f\x7f]')


def write_toml(tables: Mapping[str, Any]) -> str:
    """Write nested tables, texts, numbers, booleans and lists as a TOML document.

    Plain values come first, then the tables with headers: those at the top level, links and sites,
    the links in ``network`` and the rules in ``tcp``. Deeper tables are inline. Lists of tables at
    these levels become arrays of tables.

    Parameters
    ----------
    tables
        Tables as ``tomllib`` returns them, without dates and null.

    Returns
    -------
    str
        A document for which ``tomllib`` returns ``tables``.
    """
    top = [
        f"{_write_key(k)} = {write_value(v)}"
        for k, v in tables.items()
        if not _needs_table_header(v)
    ]
    blocks = ["\n".join(top)] if top else []
    for name, value in tables.items():
        if isinstance(value, Mapping):
            blocks += _write_table(_write_key(name), value, nested=name in _WITH_HEADERS)
        elif _needs_table_header(value):
            blocks += _write_array(_write_key(name), value)
    return "\n\n".join(blocks) + "\n"


def _needs_table_header(value: object) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _write_table(header: str, table: Mapping[str, Any], *, nested: bool) -> list[str]:
    below = {k: v for k, v in table.items() if nested and _needs_table_header(v)}
    own = {k: v for k, v in table.items() if k not in below}
    blocks = [f"[{header}]\n{_write_table_lines(own)}".rstrip()] if own or not below else []
    for name, value in below.items():
        inner = f"{header}.{_write_key(name)}"
        if isinstance(value, Mapping):
            blocks += _write_table(inner, value, nested=False)
        else:
            blocks += _write_array(inner, value)
    return blocks


def _write_array(header: str, tables: list[Mapping[str, Any]]) -> list[str]:
    return [f"[[{header}]]\n{_write_table_lines(table)}".rstrip() for table in tables]


def _write_table_lines(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{_write_key(key)} = {write_value(value)}" for key, value in table.items())


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _write_string(key)


def _write_string(text: str) -> str:
    escaped = _ESCAPED_CHARACTERS.sub(lambda m: _ESCAPES.get(m[0], f"\\u{ord(m[0]):04x}"), text)
    return f'"{escaped}"'


def write_value(value: Any) -> str:
    """Return the TOML text of one value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _write_string(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_write_key(k)} = {write_value(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(write_value(v) for v in value)}]"
    raise TypeError(f"a scenario cannot contain {type(value).__name__}")
