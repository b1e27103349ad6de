"""Random scenarios from the JSON Schema, so that new keys are covered automatically.

A scenario starts as one of a few small ones. Random keys then get random values, one at a
time, and a change stays if the scenario is still valid. Most values are near the schema's
examples; the others are spread over all magnitudes, or are a limit of the range.
"""

from __future__ import annotations

import copy
import math
import re
from functools import cache
from re import _constants, _parser  # type: ignore[attr-defined]  # there is no public parser of patterns
from typing import TYPE_CHECKING, Any

from tcpcast.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario.schema import make_scenario_schema
from tcpcast.units import NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

Tables = dict[str, Any]
Schema = dict[str, Any]

LINK = {"rate": "10mbit", "buffer": "50pkt"}
BASE: Tables = {
    "network": {"rtt": "50ms", "bottleneck": LINK},
    "traffic": {"kind": "bulk", "flows": 4},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "20s"},
}
SIZE = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
OFF = {"distribution": "exponential", "mean": "1s"}
BASES: tuple[Tables, ...] = (
    BASE,
    BASE | {"network": {"bottleneck": LINK | {"delay": "20ms"}}},
    BASE
    | {
        "network": {
            "hop": [LINK | {"name": "backbone"}, LINK | {"name": "bottleneck"}],
            "rtt": "50ms",
        }
    },
    BASE | {"traffic": {"kind": "on-off", "sources": 50, "off": OFF, "size": SIZE}},
    {**BASE, "traffic": {"kind": "transfers", "size": ["1pkt", "100KB"], "count": 20}, "run": {}},
    BASE
    | {
        "traffic": {
            "kind": "transfers",
            "size": SIZE,
            "arrivals": {"distribution": "poisson", "rate": "20/s"},
        }
    },
    BASE
    | {
        "traffic": {"kind": "bulk"},
        "class": [{"name": "near", "flows": 2}, {"name": "far", "flows": 3}],
    },
)

UNTOUCHED = ("sweep", "max_wall")
"""Keys without random values: those of another command and of run limits."""

LEFT_OUT_AGAIN = 0.1

NEAR_AN_EXAMPLE = 0.6
NEAR_WITH_TABLES = 0.25
"""Shares of values from an example: for plain values, and for values that may also be tables."""

SPREADS = (0.3, 1.0, 3.0)
"""Standard deviation of a number near an example, in powers of ten."""

OPTIONAL = 0.25
"""Share of the optional keys that a new table contains."""

CHANGES = (4, 40)
TRIES = 8
WIDE = (-9.0, 12.0)
"""Powers of ten for numbers without a maximum."""

_NUMBER = re.compile(NUMBER)


class Generator:
    """Draws scenarios; equal streams of random numbers give equal scenarios."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._root = _schema()

    def scenario(self, max_wall: str) -> Tables:
        """Draw a valid scenario that should stop at ``max_wall``.

        Raises
        ------
        Exception
            Any but :class:`ScenarioError` that reading a scenario raised; its tables are in a note.
        """
        tables = copy.deepcopy(self._random.choice(BASES))
        limit = {"max_wall": max_wall}
        tables["run"] |= limit
        low, high = CHANGES
        for _ in range(int(low * (high / low) ** self._random.random())):
            for _ in range(TRIES):
                changed = copy.deepcopy(tables)
                self._change(changed)
                changed["run"] = changed.get("run", {}) | limit
                if changed != tables and is_valid(changed):
                    tables = changed
                    break
        return tables

    def _change(self, tables: Tables) -> None:
        """Set a random key to a random value, or remove it."""
        table, key, schema = self._random.choice(list(self._keys(self._root, tables)))
        if key in table and self._random.random() < LEFT_OUT_AGAIN:
            del table[key]
        else:
            table[key] = self._value(schema)

    def _keys(self, schema: Schema, table: Tables) -> Iterator[tuple[Tables, str, Schema]]:
        """Yield each present or possible key of a table and of the tables below it."""
        for key, below in schema["properties"].items():
            if key in UNTOUCHED:
                continue
            yield table, key, below
            for entry in _entries(table.get(key)):
                result = next((s for s in self._tables(below) if _fits(s, entry)), None)
                if result is not None:
                    yield from self._keys(result, entry)

    def _alternatives(self, schema: Schema) -> Iterator[Schema]:
        """Yield the alternative schemas of a value, with references resolved."""
        if "$ref" in schema:
            schema = self._root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        result = [part for word in ("anyOf", "oneOf") for part in schema.get(word, [])]
        if not result:
            yield schema
        for part in result:
            yield from self._alternatives(part)

    def _tables(self, schema: Schema) -> Iterator[Schema]:
        """Yield the schemas of tables that a value may be, or may contain in a list."""
        for alternative in self._alternatives(schema):
            if "items" in alternative:
                yield from self._tables(alternative["items"])
            elif "properties" in alternative:
                yield alternative

    def _value(self, schema: Schema) -> Any:
        """Draw a value that a schema allows."""
        examples = [schema[word] for word in ("default",) if word in schema]
        examples += schema.get("examples", [])
        plain = [example for example in examples if not isinstance(example, dict | list)]
        alternatives = list(self._alternatives(schema))
        has_tables = any("properties" in s for s in alternatives)
        near = NEAR_WITH_TABLES if has_tables else NEAR_AN_EXAMPLE
        if plain and self._random.random() < near:
            return self._near(self._random.choice(plain), schema)
        return self._drawn(self._random.choice(alternatives))

    def _drawn(self, schema: Schema) -> Any:
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        drawn: dict[str, Callable[[Schema], Any]] = {
            "boolean": lambda _: self._random.random() < 0.5,
            "integer": lambda schema: int(self._number(schema)),
            "number": self._number,
            "string": self._text,
            "array": self._list,
            "object": self._table,
        }
        return drawn[schema["type"]](schema)

    def _list(self, schema: Schema) -> list[Any]:
        min_items, max_items = schema.get("minItems", 0), schema.get("maxItems", 3)
        length = self._random.randint(min_items, max(min_items, min(max_items, 3)))
        return [self._value(schema["items"]) for _ in range(length)]

    def _table(self, schema: Schema) -> Tables:
        properties = schema.get("properties", {})
        needed = schema.get("required", [])
        drawn = [
            key
            for key in properties
            if key in needed or (key not in UNTOUCHED and self._random.random() < OPTIONAL)
        ]
        table = {key: self._value(properties[key]) for key in drawn}
        if "propertyNames" in schema:
            name = self._random.choice(schema["propertyNames"]["enum"])
            table[name] = self._value(schema["additionalProperties"])
        return table

    def _near(self, example: Any, schema: Schema) -> Any:
        """Return an example, with probability 1/2 with another number."""
        alternatives = list(self._alternatives(schema))
        if isinstance(example, bool) or self._random.random() < 0.5:
            return example
        factor = 10 ** self._random.gauss(0, self._random.choice(SPREADS))
        if isinstance(example, int):
            return max(round(example * factor), alternatives[0].get("minimum", 0))
        if isinstance(example, float):
            return example * factor
        match = _NUMBER.match(example)
        if match is None or any("enum" in s and example in s["enum"] for s in alternatives):
            return self._random.choice(
                next((s["enum"] for s in alternatives if "enum" in s), [example])
            )
        return f"{float(match[0]) * factor:.6g}{example[match.end() :]}"

    def _number(self, schema: Schema) -> float:
        """Draw a number: a limit of its range, or spread evenly over its magnitudes."""
        minimum: float = schema.get("minimum", -10)
        maximum: float | None = schema.get("maximum")
        ends = [minimum] if maximum is None else [minimum, maximum]
        if self._random.random() < 0.3:
            return self._random.choice(ends)
        low, high = WIDE
        if maximum is not None and maximum > 0:
            high = math.log10(maximum)
        return max(minimum, 10 ** self._random.uniform(min(low, high), high))

    def _text(self, schema: Schema) -> str:
        pattern = schema.get("pattern", "^[a-z]{1,8}$")
        _, is_quantity, after = pattern.partition(NUMBER)
        if not is_quantity:
            return self._matching(_parser.parse(pattern))
        number = 10 ** self._random.uniform(*WIDE)
        shown = f"{number:.6g}" if self._random.random() < 0.5 else f"{math.ceil(number)}"
        # An alternative of words, such as "unlimited", follows the last `$`.
        return shown + self._matching(_parser.parse(after.split("$|", 1)[0]))

    def _matching(self, parsed: Any) -> str:
        """Draw a text that a parsed regular expression matches; without optional white space."""
        return "".join(self._part(kind, value) for kind, value in parsed)

    def _part(self, kind: Any, value: Any) -> str:
        match kind:
            case _constants.LITERAL:
                return chr(value)
            case _constants.IN:
                return self._character(value)
            case _constants.BRANCH:
                return self._matching(self._random.choice(value[1]))
            case _constants.SUBPATTERN:
                return self._matching(value[-1])
            case _constants.MAX_REPEAT:
                min_count, max_count, repeated = value
                count = self._random.randint(min_count, min(max_count, min_count + 3))
                return "".join(self._matching(repeated) for _ in range(count))
        return ""  # an end of the text

    def _character(self, members: Any) -> str:
        kind, value = self._random.choice(members)
        if kind is _constants.LITERAL:
            return chr(value)
        if kind is _constants.RANGE:
            return chr(self._random.randint(*value))
        digits = value is _constants.CATEGORY_DIGIT
        return self._random.choice("0123456789") if digits else ""


def is_valid(tables: Tables) -> bool:
    """Return True if a scenario can be read; its tables go into a note of any other exception."""
    try:
        Scenario.from_dict(copy.deepcopy(tables))
    except ScenarioError:
        return False
    except Exception as error:
        error.add_note(repr(tables))
        raise
    return True


def _entries(value: object) -> list[Tables]:
    """Return the tables that a value is or lists."""
    values = value if isinstance(value, list) else [value]
    return [entry for entry in values if isinstance(entry, dict)]


def _fits(schema: Schema, table: Tables) -> bool:
    """Return True if a table fits a schema, by the key that distinguishes the alternatives."""
    properties = schema.get("properties", {})
    words = ((key, s["const"]) for key, s in properties.items() if "const" in s)
    return set(table) <= set(properties) and all(
        table.get(key, word) == word for key, word in words
    )


@cache
def _schema() -> Schema:
    return make_scenario_schema()
