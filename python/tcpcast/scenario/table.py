"""What every table of a scenario has in common: unknown keys refused, faults said in plain words.

A fault is one line: the dotted key, what is wrong, what to write instead. Each table words the
faults of its own keys, since it alone knows which keys it has; ``faults_of`` puts the dotted
path before them.
"""

import difflib
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from tcpcast.errors import Fault
from tcpcast.scenario import names
from tcpcast.scenario.toml import write_value
from tcpcast.units import show

_FAULT = "scenario_fault"
_LACK = "scenario_lack"
_MOST_LINES = 20
_LONGEST = 200

TableT = TypeVar("TableT", bound="Table")

_NO_TABLES = frozenset(
    ("droptail", *("a-distribution", "a-list", "a-rule", "a-size", "a-rate", "a-bucket", "a-trace"))
)
"""Members of unions that no word of a table tells apart, as ``Tag`` names them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the rest of the scenario says that a table needs while it is being read.

    ``payload_bytes`` turns sizes in bytes into packets (None: not known), ``folder`` is where
    relative file names start, ``precision_metric`` the metric that a bare ``precision`` is of,
    ``ends_by_itself`` whether the traffic says how long the run is, ``class_keys`` the keys that at
    least one class sets, such as ``rtt`` and ``egress.rate``, ``timestamps`` whether the payload
    leaves room for that option.
    """

    payload_bytes: int | None = None
    folder: Path | None = None
    precision_metric: str = "connection_rate_bps"
    ends_by_itself: bool = False
    class_keys: frozenset[str] = frozenset()
    timestamps: bool = False


def reading(info: ValidationInfo) -> Reading:
    """Return the context of a validation, or an empty one for a table built on its own."""
    return info.context if isinstance(info.context, Reading) else Reading()


class Table(BaseModel):
    """A table of the scenario; its faults are worded here."""

    # Most commands read few kinds of tables: what validates one is built when the first is read.
    # Defaults that are tables come by ``model_construct``, which needs no validator.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Keys of another table of the same place, with what to write."""

    @model_validator(mode="wrap")
    @classmethod
    def _word_faults(
        cls: type[TableT], data: Any, handler: ModelWrapValidatorHandler[TableT]
    ) -> TableT:
        try:
            return handler(data)
        except ValidationError as error:
            raise faults([_plain_words(cls, e) for e in error.errors()]) from None

    @classmethod
    def key_names(cls) -> dict[str, Any]:
        """Return the keys as people type them, each with its field."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}

    @classmethod
    def example(cls, key: str) -> Any:
        """Return a value that a key might have, for messages; None where there is none."""
        field = cls.key_names().get(key)
        return field.examples[0] if field is not None and field.examples else None


def as_table(value: object) -> Mapping[str, Any]:
    """Return a table as typed, or an empty one if the value is no table."""
    return value if isinstance(value, Mapping) else {}


def no_entries() -> list[Any]:
    """Return the list of a key left out. Pydantic reads a signature, which ``list`` has as text."""
    return []


def fault(
    message: str, *location: str | int, value: object = None, kind: str = _FAULT
) -> InitErrorDetails:
    """Describe one fault at a place below the present table."""
    # A template without a context is taken as it is, so braces in the message are safe.
    texts: Any = kind, message
    return InitErrorDetails(type=PydanticCustomError(*texts), loc=location, input=value)


def lack(message: str, *location: str | int) -> InitErrorDetails:
    """Describe a key that is missing at a place below the present table."""
    return fault(message, *location, kind=_LACK)


def no_choice(value: Mapping[str, Any], key: str, example: str) -> InitErrorDetails:
    """Describe the missing key that selects the kind of a table; ``law`` is its former name."""
    if "law" in value:
        return fault(f"unknown key; write {key} = {show(value['law'])}", "law")
    return lack(f"missing; write {key} = {example}", key)


def has_only_lacks(error: ValidationError) -> bool:
    """Return True if nothing is wrong except that keys are missing."""
    return all(detail["type"] == _LACK for detail in error.errors())


def nested(detail: InitErrorDetails, *above: str | int) -> InitErrorDetails:
    """Move a fault below a place."""
    return {**detail, "loc": (*above, *detail["loc"])}


def faults(details: Iterable[InitErrorDetails]) -> ValidationError:
    """Gather faults into the exception that pydantic carries upwards."""
    return ValidationError.from_exception_data("scenario", list(details))


def tables_below(base: type[Table]) -> list[type[Table]]:
    """Return all kinds of tables that are there so far, of a kind."""
    return [t for child in base.__subclasses__() for t in (child, *tables_below(child))]


def union_members() -> frozenset[str]:
    """Return the names of union members, which pydantic puts into the path of a fault.

    No one typed them as a key. That of a table is the one word that the key has which tells it from
    others.
    """
    words = (
        typing.get_args(field.annotation)
        for table in tables_below(Table)
        for field in table.model_fields.values()
        if typing.get_origin(field.annotation) is typing.Literal
    )
    return _NO_TABLES | {found[0] for found in words if len(found) == 1}


EntryNames = Mapping[tuple[str, ...], Sequence[str | None]]
"""The names of the entries of lists of tables, by the list's place; None where one has none."""


def faults_of(
    error: ValidationError, names: EntryNames | None = None, *, of_classes: bool = False
) -> list[Fault]:
    """Return the faults of a scenario.

    Parameters
    ----------
    error
        What pydantic collected.
    names
        Names of the classes and hops in order, so that a line says ``class.far``, not ``class.1``.
    of_classes
        True if only classes have traffic: faults at the top level are copies of their faults.

    Returns
    -------
    list of Fault
        What is wrong with each dotted key, and what to write. A fault that a class inherited from
        the top level is told once. The last one has no key where there are too many.
    """
    found: dict[tuple[tuple[int | str, ...], str], None] = {}
    members = union_members()
    for e in error.errors():
        found[_without_members(e["loc"], members), e["msg"]] = None
    if of_classes:
        found = {key: None for key in found if key[0][:1] != ("traffic",)}
    listed = [
        Fault(_dotted(location, names or {}), message)
        for location, message in found
        if (_inherited_from(location), message) not in found
    ]
    if len(listed) > _MOST_LINES:
        listed[_MOST_LINES:] = [Fault("", f"and {len(listed) - _MOST_LINES} more")]
    return listed


def _without_members(
    location: tuple[int | str, ...], members: frozenset[str]
) -> tuple[int | str, ...]:
    """Remove names of union members; ``transfers`` below ``run`` is a key."""
    pairs = zip(("", *location), location, strict=False)
    return tuple(p for above, p in pairs if p not in members or (above, p) == ("run", "transfers"))


def choice(what: str, words: Sequence[str]) -> Callable[[object], str]:
    """Return a validator for one of a few words.

    Parameters
    ----------
    what
        The thing chosen, for the message: ``"queue discipline"``.
    words
        The words that are accepted.
    """

    def check(value: object) -> str:
        word = value
        if isinstance(value, Mapping) and len(value) == 1:
            word = value.get("kind", value)
        if isinstance(word, str) and word in words:
            return word
        raise ValueError(not_a_word(what, word, words))

    return check


def not_a_word(what: str, word: object, known: Sequence[str]) -> str:
    """Say that a word is not one of those known, and which it might be."""
    return f"{show(word)} is not a {what}{suggestion(word, known)}; write {_listed(known)}"


def _listed(words: Sequence[str]) -> str:
    quoted = [f'"{word}"' for word in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]]) if quoted[1:] else quoted[0]


def suggestion(word: object, known: Iterable[str]) -> str:
    """Return ``, did you mean "..."?`` for the nearest known word, or nothing."""
    near = nearest(word, known)
    return f' (did you mean "{near}"?)' if near else ""


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word nearest to what was typed, or None when none is near."""
    names = {name.lower(): name for name in known}
    typed = str(word).lower()
    found = difflib.get_close_matches(typed, names, n=1, cutoff=0.6)
    if not found:
        found = [n for n in names if len(typed) > 2 and (n.startswith(typed) or typed in n)][:1]
    return names[found[0]] if found else None


def unknown_key(table: type[Table], key: object) -> str:
    """Say that a table has no such key, and which it might be."""
    if isinstance(key, str) and key in table.elsewhere:
        return table.elsewhere[key]
    names = table.key_names()
    below = [f'"{name}.{key}"' for name, f in names.items() if key in _keys_below(f.annotation)]
    if below:
        return f"unknown key; write {' or '.join(below)}"
    near = nearest(key, names)
    if near:
        return f'unknown key; did you mean "{near}"?'
    return f"unknown key; the keys here are {', '.join(names)}"


def _keys_below(annotation: Any) -> set[str]:
    """Collect the keys of the tables that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return set(annotation.key_names())
    return {key for part in typing.get_args(annotation) for key in _keys_below(part)}


def _plain_words(table: type[Table], error: ErrorDetails) -> InitErrorDetails:
    location, kind, value = error["loc"], error["type"], error["input"]
    if kind in (_FAULT, _LACK):
        return fault(error["msg"], *location, value=value, kind=kind)
    if kind == "extra_forbidden":
        return fault(unknown_key(table, location[-1]), *location)
    example = _example(table, str(location[0])) if location else _table_example(table)
    if kind == "missing":
        return lack(f"missing; write {location[-1]} = {example}", *location)
    if kind == "value_error":
        return fault(str(error["ctx"]["error"]), *location, value=value)
    if kind in ("too_short", "too_long"):
        size = error["ctx"]["actual_length"]
        bound = f"at least {error['ctx'].get('min_length')}"
        if kind == "too_long":
            bound = f"at most {error['ctx']['max_length']}"
        return fault(f"has {size} entries; write {bound}", *location)
    written = f"; write {example}" if example else ""
    message = f"{show(value)} is not {_wanted(error)}{written}"
    if kind == "list_type" and isinstance(value, Mapping) and _has_entries(table, location):
        message = "is one table; write its name in double brackets for each entry, as in [[class]]"
    return fault(message, *location, value=value)


def _has_entries(table: type[Table], location: Sequence[int | str]) -> bool:
    """Say whether a key holds a list of tables."""
    example = table.example(str(location[0])) if location else None
    return isinstance(example, list) and bool(example) and isinstance(example[0], Mapping)


def _example(table: type[Table], key: str) -> str | None:
    value = table.example(key)
    return None if value is None else write_value(value)


def _table_example(table: type[Table]) -> str:
    examples = ((key, _example(table, key)) for key in table.key_names())
    key, value = next((key, value) for key, value in examples if value)
    return f"{{ {key} = {value} }}"


def _wanted(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind == "literal_error":
        return str(error["ctx"]["expected"])
    if kind == "string_pattern_mismatch":
        return names.WORDS[error["ctx"]["pattern"]]
    if kind == "string_too_long":
        return f"short enough (at most {error['ctx']['max_length']} characters)"
    wanted = {
        "model_type": "a table",
        "model_attributes_type": "a table",
        "dict_type": "a table",
        "list_type": "a list",
        "string_type": "a text",
        "string_too_short": "long enough",
        "bool_type": "true or false",
    }
    return wanted.get(kind, f"right ({error['msg']})")


def _inherited_from(location: tuple[int | str, ...]) -> tuple[int | str, ...] | None:
    match location:
        case ("class", int(), "rtt"):
            return ("network", "rtt")
        case ("class", int(), "sources" | "flows" as count):
            return ("traffic", count)
        case ("class", int(), "traffic" | "tcp" as table, *rest):
            return (table, *rest)
        case ("class", int(), "ingress" | "egress" as link, *rest):
            return ("network", link, *rest)
    return None


def _dotted(location: tuple[int | str, ...], names: EntryNames) -> str:
    parts = list(location)
    for place, listed in names.items():
        depth = len(place)
        at = parts[depth] if tuple(parts[:depth]) == place and len(parts) > depth else None
        if isinstance(at, int) and at < len(listed) and listed[at]:
            parts[depth] = str(listed[at])
    return ".".join(_shown_key(part) for part in parts) or "scenario"


def _shown_key(key: int | str) -> str:
    text = str(key)
    return text if re.fullmatch(r"[\w-]{1,64}", text) else show(text)
