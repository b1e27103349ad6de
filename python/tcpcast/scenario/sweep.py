"""Table ``[sweep]``: varied keys with their values, engines, and sampling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity.units import quote
from tcpcast.scenario.changes import iter_values_by_dotted_key, parse_value
from tcpcast.scenario.csv_file import data_rows, read_file_of_table
from tcpcast.scenario.quantities import integer_annotation
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    make_error_at,
    make_key_error,
)

MAX_REPLICATIONS = 100_000
MAX_LATIN_CELLS = 1_000_000
MAX_FILE_LINES = 1_000_000
_VARY_EXAMPLE = '"network.rtt" = "10ms..200ms log 8"'
_TEXT_LIST_SCHEMA = {"type": "array", "items": {"type": "string"}}


def _read_zip_groups(value: object) -> object:
    """Convert one list of keys to a list with one group."""
    if isinstance(value, list) and value and all(isinstance(key, str) for key in value):
        return [value]
    return value


LABEL_KEY = "name"
"""The key whose values label combinations of other keys."""

_FILE_ADVICE = (
    "use a CSV file whose columns are dotted keys of the scenario, such as traffic.sources, or name"
)


def _read_rows(rows: Iterable[list[str]], name: str) -> dict[str, list[Any]]:
    """Return the values of each key of a CSV file, which are read as those of ``--set``."""
    columns: dict[str, list[Any]] = {}
    for number, cells in data_rows(rows):
        if not columns:
            columns = {key: [] for key in cells}
            if len(columns) < len(cells) or not all("." in k or k == LABEL_KEY for k in columns):
                raise UnitError(f"{name}, line {number}: {_FILE_ADVICE}")
            continue
        if len(cells) != len(columns) or not all(cells):
            raise UnitError(
                f"{name}, line {number}: each of the {len(columns)} columns requires a value"
            )
        for (key, values), cell in zip(columns.items(), cells, strict=True):
            values.append(cell if key == LABEL_KEY else parse_value(cell))
        if number > MAX_FILE_LINES:
            raise UnitError(f"{name} contains more than {MAX_FILE_LINES:,} lines; use fewer rows")
    if not columns or not next(iter(columns.values())):
        raise UnitError(f"{name} contains no rows; {_FILE_ADVICE}")
    return columns


def _add_varied_keys_to_schema(schema: dict[str, Any]) -> None:
    """Add the varied keys, with or without quotes, to the JSON Schema."""
    schema["additionalProperties"] = {
        "description": "a dotted key of the scenario, with a range or a list of values",
        "anyOf": [
            {"type": "string", "examples": ["10ms..200ms log 8"]},
            {"type": "array", "minItems": 1},
            {"type": "object"},
        ],
    }


class Sweep(Table):
    """Parameters of ``tcpcast sweep``: each additional key is a dotted key of the scenario.

    The value of a varied key is a range, ``"10ms..200ms log 8"``, or a list. All combinations of
    values are run, except for keys in ``zip`` or in a ``file`` (varied in parallel) or ``latin``
    (Latin hypercube samples).
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_varied_keys_to_schema)

    engines: Annotated[
        list[str],
        BeforeValidator(
            lambda value: (
                [name.strip() for name in value.split(",")] if isinstance(value, str) else value
            )
        ),
        WithJsonSchema({"anyOf": [{"type": "string"}, _TEXT_LIST_SCHEMA]}),
    ] = Field(
        default=[],
        examples=[["pftk", "packet"]],
        description="names of engines; default: every quick engine that applies",
    )
    replications: Annotated[int, *integer_annotation(1, MAX_REPLICATIONS)] = Field(
        default=1,
        examples=[5],
        description="simulations per combination of values, with seeds `run.seed`, `run.seed` + "
        "1, ...",
    )
    feed: Annotated[Literal["scenario", "measured"], Choice("feed")] = Field(
        default="scenario", description="inputs of formulas, as in `tcpcast run --feed`"
    )
    zip: Annotated[
        list[list[str]],
        BeforeValidator(_read_zip_groups),
        WithJsonSchema(
            {"anyOf": [_TEXT_LIST_SCHEMA, {"type": "array", "items": _TEXT_LIST_SCHEMA}]}
        ),
    ] = Field(
        default=[],
        examples=[["network.rtt", "network.bottleneck.rate"]],
        description="keys whose lists vary together, value by value",
    )
    file: str | None = Field(
        default=None,
        examples=["day.csv"],
        description="CSV file with one combination of values per row; columns are keys, and "
        "`name` labels the rows",
    )
    latin: Annotated[int, *integer_annotation(2, MAX_LATIN_CELLS)] | None = Field(
        default=None,
        examples=[50],
        description="points of a Latin hypercube, instead of all combinations",
    )

    @property
    def vary(self) -> dict[str, str | list[Any]]:
        """The varied keys in the order typed, each with its range or values."""
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any, info: ValidationInfo) -> Any:
        """Accept ``network.rtt = ...`` without quotes around the key, and read the file."""
        if not isinstance(data, Mapping):
            return data
        table = dict(iter_values_by_dotted_key(data, whole=Sweep.model_fields))
        if table.get("file") is None:
            return table
        columns = read_file_of_table(table, ("file",), info, _FILE_ADVICE, _read_rows)
        twice = next((key for key in columns if key in table), None)
        if twice is not None:
            raise make_key_error(f"the file also contains {twice}; use this key once", "file")
        groups = _read_zip_groups(table.get("zip", []))
        if len(columns) > 1 and isinstance(groups, list):
            table["zip"] = [*groups, list(columns)]
        return {key: value for key, value in table.items() if key != "file"} | columns

    def _find_errors(self) -> Errors:
        for key, value in self.vary.items():
            if not isinstance(value, str | list):
                example = f'"{key}" = [...], or "10ms..200ms log 8"'
                yield make_error_at(f"{quote(value)} is not a range or list; use {example}", key)
        if not self.vary:
            yield make_error_at(f"no key varies; use {_VARY_EXAMPLE}, for example")
