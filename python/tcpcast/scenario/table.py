"""Base class of all scenario tables: rejects unknown keys and rewords pydantic's errors.

An error is one line: the dotted key, the problem and the correction. Each table rewords the errors
of its own keys; ``convert_to_input_errors`` prepends the dotted path.
"""

import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from tcpcast.process.errors import InputError, did_you_mean_text, find_nearest_word
from tcpcast.quantity.units import quote
from tcpcast.scenario import name_patterns
from tcpcast.scenario.toml import write_value

_ERROR_TYPE = "scenario_error"
_MISSING_KEY_TYPE = "scenario_missing_key"
_MAX_LINES = 20

TableT = TypeVar("TableT", bound="Table")
Errors = Iterator[InitErrorDetails]
"""Errors at locations relative to a table."""

_TAGS_WITHOUT_KEY = frozenset(
    (
        *("droptail", "a-distribution", "a-list", "a-rule", "a-size", "a-rate", "a-bucket"),
        *("a-trace", "a-wifi", "a-table"),
    )
)
"""Tags of union members that have no selecting key (see ``pydantic.Tag``)."""


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """Validation context: values of other tables that a table needs.

    ``payload_bytes`` converts sizes in bytes to packets (None: unknown). ``folder`` is the base of
    relative file names. ``precision_metric`` is the metric of a bare ``precision``.
    ``ends_by_itself`` is True if the traffic determines the length of the run. ``class_keys`` are
    keys set by at least one class, such as ``rtt`` and ``egress.rate``. ``header_bytes`` are the
    bytes of a full data packet without its payload. ``has_links`` is True if the scenario is a
    network of links with routes. ``traffic_key`` is the key of the traffic, which may be that of a
    class.
    """

    payload_bytes: int | None = None
    folder: Path | None = None
    precision_metric: str = "connection_rate_bps"
    ends_by_itself: bool = False
    class_keys: frozenset[str] = frozenset()
    header_bytes: int = 40
    has_links: bool = False
    traffic_key: str = "traffic"


def get_validation_context(info: ValidationInfo) -> ValidationContext:
    """Return the context of a validation, or an empty context for a separately built table."""
    return info.context if isinstance(info.context, ValidationContext) else ValidationContext()


class Table(BaseModel):
    """A table of the scenario, with error messages for users."""

    # Validators are built at first use, because most commands read few kinds of tables. Defaults
    # that are tables use ``model_construct``, which needs no validator.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Messages for keys of other tables that users write here by mistake."""

    @model_validator(mode="wrap")
    @classmethod
    def _reword_errors(
        cls: type[TableT],
        data: Any,
        handler: ModelWrapValidatorHandler[TableT],
        info: ValidationInfo,
    ) -> TableT:
        try:
            table = handler(data)
        except ValidationError as error:
            context = get_validation_context(info)
            errors = [_reword_error(cls, e, context) for e in error.errors()]
            raise make_validation_error(errors) from None
        if errors := list(table._find_errors()):
            raise make_validation_error(errors)
        return table

    def _find_errors(self) -> Errors:
        """Yield contradictions between values that are valid on their own."""
        yield from ()

    @classmethod
    def fields_by_key(cls) -> dict[str, Any]:
        """Return the fields by key as users type it."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}

    @classmethod
    def example(cls, key: str) -> Any:
        """Return an example value of a key for messages, or None."""
        field = cls.fields_by_key().get(key)
        return field.examples[0] if field is not None and field.examples else None


def table_or_empty(value: object) -> Mapping[str, Any]:
    """Return the value if it is a table, otherwise an empty table."""
    return value if isinstance(value, Mapping) else {}


def empty_list() -> list[Any]:
    """Return an empty list; pydantic needs a signature, which ``list`` does not have."""
    return []


def make_error_at(
    message: str, *location: str | int, value: object = None, kind: str = _ERROR_TYPE
) -> InitErrorDetails:
    """Return an error at a location relative to the table that is validated."""
    # Without arguments, pydantic does not format the template, so braces are safe.
    texts: Any = kind, message
    return InitErrorDetails(type=PydanticCustomError(*texts), loc=location, input=value)


def make_missing_key_error(message: str, *location: str | int) -> InitErrorDetails:
    """Return the error of a missing key at a location relative to the table that is validated."""
    return make_error_at(message, *location, kind=_MISSING_KEY_TYPE)


def make_missing_kind_error(value: Mapping[str, Any], key: str, example: str) -> InitErrorDetails:
    """Return the error of a missing key that selects the kind of a table."""
    if "law" in value:
        return make_error_at(f"unknown key; add {key} = {quote(value['law'])}", "law")
    return make_missing_key_error(f"missing; add {key} = {example}", key)


def has_only_missing_keys(error: ValidationError) -> bool:
    """Return True if all errors are missing keys."""
    return all(detail["type"] == _MISSING_KEY_TYPE for detail in error.errors())


def prepend_location(detail: InitErrorDetails, *above: str | int) -> InitErrorDetails:
    """Return an error with keys prepended to its location."""
    return {**detail, "loc": (*above, *detail["loc"])}


def make_validation_error(details: Iterable[InitErrorDetails]) -> ValidationError:
    """Return the exception that pydantic propagates to the enclosing table."""
    return ValidationError.from_exception_data("scenario", list(details))


def make_key_error(message: str, *location: str | int, value: object = None) -> ValidationError:
    """Return the exception for one error, at a location relative to the table."""
    return make_validation_error([make_error_at(message, *location, value=value)])


def get_all_subclasses(base: type[Table]) -> list[type[Table]]:
    """Return all direct and indirect subclasses of a table."""
    return [t for child in base.__subclasses__() for t in (child, *get_all_subclasses(child))]


def get_union_member_names() -> frozenset[str]:
    """Return the names of union members, which pydantic inserts into the location of an error.

    The names are not keys of the scenario. For a table, the name is the value of its selecting key,
    such as ``kind``.
    """
    words = (
        typing.get_args(field.annotation)
        for table in get_all_subclasses(Table)
        for field in table.model_fields.values()
        if typing.get_origin(field.annotation) is typing.Literal
    )
    return _TAGS_WITHOUT_KEY | {values[0] for values in words if len(values) == 1}


_NAMED = frozenset({"link", "site"})
"""Tables whose keys are names that users choose."""

EntryNames = Mapping[tuple[str, ...], Sequence[str | None]]
"""Names of the entries of each list of tables, by location of the list; None if unnamed."""


def convert_to_input_errors(
    error: ValidationError, names: EntryNames | None = None, *, of_classes: bool = False
) -> list[InputError]:
    """Return the errors of a scenario.

    Parameters
    ----------
    error
        Errors collected by pydantic.
    names
        Names of the classes and hops in order, for keys such as ``class.far`` instead of
        ``class.1``.
    of_classes
        True if only classes have traffic, so that errors of the top level repeat errors of classes.

    Returns
    -------
    list of InputError
        Dotted keys with messages. An error that a class inherits from the top level is listed once.
        If there are too many errors, the last entry has no key and states the number of the others.
    """
    messages: dict[tuple[tuple[int | str, ...], str], None] = {}
    members = get_union_member_names()
    for e in error.errors():
        location = e["loc"]
        pairs = zip(("", *location), location, strict=False)
        messages[
            tuple(
                p
                for above, p in pairs
                if p not in members or above in _NAMED or (above, p) == ("run", "transfers")
            ),
            e["msg"],
        ] = None
    if of_classes:
        messages = {key: None for key in messages if key[0][:1] != ("traffic",)}
    listed = [
        InputError(_format_location(location, names or {}), message)
        for location, message in messages
        if (_get_inherited_location(location), message) not in messages
    ]
    if len(listed) > _MAX_LINES:
        listed[_MAX_LINES:] = [InputError("", f"and {len(listed) - _MAX_LINES} more")]
    return listed


def choice_validator(what: str, words: Sequence[str]) -> Callable[[object], str]:
    """Return a validator that accepts only the given words.

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
        raise ValueError(unknown_word_message(what, word, words))

    return check


@dataclass(frozen=True, slots=True)
class Choice:
    """Annotation of a ``Literal`` type: the message for other values lists the words.

    ``what`` is the thing chosen, for the message: ``"scheduler"``.
    """

    what: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return the schema of the type with a check before its own validation."""
        check = choice_validator(self.what, typing.get_args(source))
        return core_schema.no_info_before_validator_function(check, handler(source))


def check_selecting_key(value: object, *, key: str, what: str, words: Sequence[str]) -> object:
    """Return a table whose key, such as ``model``, is one of the given words; raise otherwise."""
    if not isinstance(value, Mapping):
        return value
    if key not in value:
        raise make_validation_error([make_missing_kind_error(value, key, _join_quoted(words))])
    try:
        return {**value, key: choice_validator(what, words)(value[key])}
    except ValueError as error:
        raise make_key_error(str(error), key) from None


def unknown_word_message(what: str, word: object, known: Sequence[str]) -> str:
    """Return the message for an unknown value, with a suggestion."""
    suggestion = did_you_mean_text(word, known)
    return f"{quote(word)} is not a {what}{suggestion}; use {_join_quoted(known)}"


def _join_quoted(words: Sequence[str]) -> str:
    quoted = [f'"{word}"' for word in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]]) if quoted[1:] else quoted[0]


_MAX_LISTED_KEYS = 25
"""Keys that a message lists, so that it stays readable."""


def unknown_key_message(table: type[Table], key: object, context: ValidationContext) -> str:
    """Return the message for an unknown key, with a suggestion."""
    if isinstance(key, str) and key in table.elsewhere:
        return table.elsewhere[key]
    names = table.fields_by_key()
    keys = {"traffic": context.traffic_key} if "class" in names else {}
    below = [
        f'"{keys.get(name, name)}.{key}"'
        for name, f in names.items()
        if key in _get_keys_of_subtables(f.annotation)
    ]
    if below:
        return f"unknown key; use {' or '.join(below)}"
    near = find_nearest_word(key, names)
    if near:
        return f'unknown key; did you mean "{near}"?'
    listed, more = list(names)[:_MAX_LISTED_KEYS], len(names) - _MAX_LISTED_KEYS
    rest = f", and {more} more" if more > 0 else ""
    return f"unknown key; the keys here are {', '.join(listed)}{rest}"


def _get_keys_of_subtables(annotation: Any) -> set[str]:
    """Return the keys of all tables that a field may contain."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return set(annotation.fields_by_key())
    return {key for part in typing.get_args(annotation) for key in _get_keys_of_subtables(part)}


def _reword_error(
    table: type[Table], error: ErrorDetails, context: ValidationContext
) -> InitErrorDetails:
    location, kind, value = error["loc"], error["type"], error["input"]
    if kind in (_ERROR_TYPE, _MISSING_KEY_TYPE):
        return make_error_at(error["msg"], *location, value=value, kind=kind)
    if kind == "extra_forbidden":
        return make_error_at(unknown_key_message(table, location[-1], context), *location)
    example = (
        _example_toml_value(table, str(location[0])) if location else _example_inline_table(table)
    )
    if kind == "missing":
        return make_missing_key_error(f"missing; add {location[-1]} = {example}", *location)
    if kind == "value_error":
        return make_error_at(str(error["ctx"]["error"]), *location, value=value)
    if kind in ("too_short", "too_long"):
        size = error["ctx"]["actual_length"]
        bound = f"at least {error['ctx'].get('min_length')}"
        if kind == "too_long":
            bound = f"at most {error['ctx']['max_length']}"
        return make_error_at(f"contains {size} entries; use {bound}", *location)
    written = f"; use {example}" if example else ""
    message = f"{quote(value)} is not {_expected_type_text(error)}{written}"
    entries = table.example(str(location[0])) if location else None
    if (
        kind == "list_type"
        and isinstance(value, Mapping)
        and isinstance(entries, list)
        and entries
        and isinstance(entries[0], Mapping)
    ):
        message = (
            "is a single table, but must be a list of tables; begin each entry with "
            "double brackets, as in [[class]]"
        )
    return make_error_at(message, *location, value=value)


def _example_toml_value(table: type[Table], key: str) -> str | None:
    value = table.example(key)
    return None if value is None else write_value(value)


def _example_inline_table(table: type[Table]) -> str:
    examples = ((key, _example_toml_value(table, key)) for key in table.fields_by_key())
    key, value = next((key, value) for key, value in examples if value)
    return f"{{ {key} = {value} }}"


def _expected_type_text(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind == "literal_error":
        return str(error["ctx"]["expected"])
    if kind == "string_pattern_mismatch":
        return name_patterns.PATTERN_TEXTS[error["ctx"]["pattern"]]
    if kind == "string_too_long":
        return f"short enough (at most {error['ctx']['max_length']} characters)"
    texts = {
        "model_type": "a table",
        "model_attributes_type": "a table",
        "dict_type": "a table",
        "list_type": "a list",
        "string_type": "a string",
        "string_too_short": "long enough",
        "bool_type": "true or false",
    }
    return texts.get(kind, f"right ({error['msg']})")


def _get_inherited_location(location: tuple[int | str, ...]) -> tuple[int | str, ...] | None:
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


def _format_location(location: tuple[int | str, ...], names: EntryNames) -> str:
    parts = list(location)
    for above, listed in names.items():
        depth = len(above)
        index = parts[depth] if tuple(parts[:depth]) == above and len(parts) > depth else None
        if isinstance(index, int) and index < len(listed) and listed[index]:
            parts[depth] = str(listed[index])
    texts = map(str, parts)
    return ".".join(t if re.fullmatch(r"[\w-]{1,64}", t) else quote(t) for t in texts) or "scenario"
