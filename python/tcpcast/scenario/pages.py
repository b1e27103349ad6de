"""Web pages: their objects, from a table of the scenario, a CSV file, a HAR file, or a profile."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from tcpcast.process.errors import CaptureError, UnitError, did_you_mean_text
from tcpcast.process.protected_inputs import protect_inputs
from tcpcast.quantity import units
from tcpcast.scenario.csv_file import data_rows
from tcpcast.scenario.har import read_har
from tcpcast.scenario.quantities import (
    Bytes,
    Duration,
    Ratio,
    integer_annotation,
)
from tcpcast.scenario.table import Errors, Table, get_validation_context, make_error_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROFILES = Path(__file__).parent.parent / "scenarios" / "pages"
"""The folder of the packaged pages, CSV files whose comments state their sources."""

MAX_OBJECTS = 2_000
MAX_HOSTS = 200
CONNECTIONS = {"1.1": 6, "2": 1, "3": 1}
"""Connections of a browser to each host by version of HTTP."""

MAX_RECORD_BYTES = 16_384
"""Largest record of TLS (RFC 8446, section 5.1), the size that most servers use."""

ORIGIN = "origin"
"""Host of objects without one."""


class PageObject(Table):
    """An object of a page. The first one is the document; others are found in an earlier object."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        examples=["app.js"],
        description="name to which `parent` of other objects refers",
    )
    size: Bytes = Field(examples=["30KB"], description="size of the answer with its headers")
    parent: str | None = Field(
        default=None,
        examples=["index.html"],
        description="object that refers to this one; default: the first",
    )
    found: Ratio = Field(
        default=1.0,
        examples=[0.2],
        description="share of the parent that has arrived when the browser finds this object; "
        "default: 1",
    )
    delay: Duration = Field(
        default=0.0,
        examples=["20ms"],
        description="time from the discovery of the object to its request, such as that of a "
        "script; default: 0s",
    )
    server_time: Duration = Field(
        default=0.0,
        examples=["50ms"],
        description="time that the server needs for the answer; default: 0s",
    )
    priority: Annotated[int, *integer_annotation(0, 7)] = Field(
        default=3,
        examples=[1],
        description="urgency from 0, the most urgent, to 7 (RFC 9218); default: 3",
    )
    host: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        default=ORIGIN, examples=["cdn"], description='host of the object; default: "origin"'
    )
    request: Bytes = Field(
        default=200, examples=["400B"], description="size of the request; default: 200B"
    )

    def _find_errors(self) -> Errors:
        for key in ("size", "request"):
            if getattr(self, key) == 0:
                yield make_error_at('must be at least "1B"', key)


def list_profiles() -> list[str]:
    """Return the names of the packaged pages, sorted."""
    return sorted(path.stem for path in PROFILES.glob("*.csv"))


def _read_page(value: object, info: ValidationInfo) -> object:
    """Replace the name of a profile or file by its objects."""
    if not isinstance(value, str):
        if isinstance(value, list) and value:
            return value
        raise UnitError(
            f'{units.quote(value)} is not a page; use a packaged page such as "median", the name '
            "of a .har or .csv file, or a list of objects"
        )
    kind = Path(value).suffix.lower()
    if kind not in (".har", ".csv"):
        profiles = list_profiles()
        if value not in profiles:
            near = did_you_mean_text(value, profiles)
            raise UnitError(
                f"{units.quote(value)} is not a page{near}; use {', '.join(profiles)}, or the "
                "name of a .har or .csv file"
            )
        return _read_csv(PROFILES / f"{value}.csv", value)
    if "\0" in value:
        raise UnitError(f"{units.quote(value)} is not a file name; use page.har, for example")
    path = (get_validation_context(info).folder or Path()) / value
    protect_inputs(path)
    if not path.is_file():
        raise UnitError(f"the file {path} does not exist; use the name of a .har or .csv file")
    if kind == ".csv":
        return _read_csv(path, value)
    try:
        return read_har(path)
    except CaptureError as error:
        raise UnitError(str(error)) from None


def _read_csv(path: Path, name: str) -> list[dict[str, Any]]:
    """Read objects from a CSV file whose columns are named after the keys of an object."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return _read_objects(csv.reader(stream), name)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnitError(f"{path} cannot be read as CSV ({error}); use another file") from None


def _read_objects(lines: Iterable[list[str]], name: str) -> list[dict[str, Any]]:
    keys = [*PageObject.model_fields]
    columns: list[str] = []
    objects: list[dict[str, Any]] = []
    for number, cells in data_rows(lines):
        if not columns:
            columns = cells
            wrong = [column for column in columns if column not in keys]
            if wrong or not {"name", "size"} <= {*columns} or len({*columns}) < len(columns):
                raise UnitError(
                    f"{name}, line {number}: the columns must be name, size, and any of "
                    f"{', '.join(keys[2:])}"
                )
            continue
        if len(cells) != len(columns):
            raise UnitError(
                f"{name}, line {number}: the number of cells is {len(cells)}; use "
                f"{len(columns)}, one per column"
            )
        row: dict[str, Any] = {key: cell for key, cell in zip(columns, cells, strict=True) if cell}
        if "priority" in row:
            row["priority"] = units.parse_count(_integer(row["priority"]), minimum=0, maximum=7)
        objects.append(row)
        _check_number_of_objects(len(objects), name)
    if not objects:
        raise UnitError(f"{name} contains no objects; use a line such as index.html,30KB")
    return objects


def _integer(text: str) -> object:
    return int(text) if text.isdecimal() and len(text) < 4 else text


def _check_number_of_objects(count: int, name: str) -> None:
    if count > MAX_OBJECTS:
        raise UnitError(f"{name} contains more than {MAX_OBJECTS:,} objects; use a smaller page")


def sort_objects(objects: Sequence[PageObject]) -> list[tuple[PageObject, int | None]]:
    """Return the objects, each after its parent, with the indices of the parents.

    Raises
    ------
    UnitError
        Two objects have one name, a parent does not exist, or objects are each other's parents.
    """
    by_name = {item.name: item for item in objects}
    if len(by_name) < len(objects):
        twice = next(o.name for at, o in enumerate(objects) if by_name[o.name] is not objects[at])
        raise UnitError(f"{units.quote(twice)} is listed twice; use different names")
    first = objects[0].name
    parents = {item.name: item.parent if item.parent is not None else first for item in objects[1:]}
    if objects[0].parent is not None:
        raise UnitError(f"{units.quote(first)} is the document; remove its parent")
    for name, parent in parents.items():
        if parent not in by_name:
            near = did_you_mean_text(parent, by_name)
            raise UnitError(f"there is no object {units.quote(parent)}{near}, the parent of {name}")
    places: dict[str, int] = {}
    ordered: list[tuple[PageObject, int | None]] = []
    for item in objects:
        chain = [item.name]
        while chain[-1] not in places and chain[-1] in parents:
            chain.append(parents[chain[-1]])
            if len(chain) > len(objects) + 1:
                cycle = " -> ".join(dict.fromkeys(chain[-4:]))
                raise UnitError(f"the parents of objects form a cycle: {cycle}; correct one parent")
        for name in reversed(chain):
            if name not in places:
                places[name] = len(ordered)
                above = parents.get(name)
                ordered.append((by_name[name], None if above is None else places[above]))
    return ordered


def _check_page(objects: list[PageObject]) -> list[PageObject]:
    _check_number_of_objects(len(objects), "the page")
    sort_objects(objects)
    hosts = {item.host for item in objects}
    if len(hosts) > MAX_HOSTS:
        raise UnitError(f"the page uses {len(hosts)} hosts; use at most {MAX_HOSTS}")
    return objects


PageRule = Annotated[
    list[PageObject],
    BeforeValidator(_read_page, json_schema_input_type=str | list[PageObject]),
    AfterValidator(_check_page),
]
"""The objects of a page, or the name of a profile or file that contains them."""
