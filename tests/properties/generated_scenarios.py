"""Random scenarios from the JSON Schema, so that new keys are covered automatically.

A scenario starts as one of a few small ones. Random keys then get random values, one at a
time, and a change stays if the scenario is still valid. Most values are near the schema's
examples; the others are spread over all magnitudes, or are a limit of the range.
"""

import copy
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random
from re import _constants, _parser  # type: ignore[attr-defined]  # there is no public parser of patterns
from typing import Any

from tcpcast.process.errors import ScenarioError
from tcpcast.quantity.units import NUMBER
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_stacks import MODERN_STACKS
from tcpcast.scenario.schema import make_scenario_schema

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
    {
        **{key: value for key, value in BASE.items() if key != "network"},
        "traffic": {"kind": "bulk"},
        "link": {"core": LINK, "line": LINK | {"each": "home"}, "up": LINK},
        "site": {"home": {"count": 2}},
        "class": [
            {"name": "web", "flows": 2, "site": "home", "route": ["core", "line"], "delay": "9ms"},
            {"name": "up", "flows": 1, "route": ["core"], "back": ["up"], "sends": "client"},
        ],
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

SHARE_OF_NETWORKS = 0.4
"""Share of combinations that are networks of links."""

OPTIONAL = 0.25
"""Share of the optional keys that a new table contains."""

CHANGES = (4, 40)
TRIES = 8
WIDE = (-9.0, 12.0)
"""Powers of ten for numbers without a maximum."""

_NUMBER = re.compile(NUMBER)


class Generator:
    """Draws scenarios; equal streams of random numbers give equal scenarios."""

    def __init__(self, random: Random, bases: Sequence[Tables] = BASES) -> None:
        self._random, self._bases = random, bases
        self._root = _schema()

    def scenario(self, max_wall: str) -> Tables:
        """Draw a valid scenario that should stop at ``max_wall``.

        Raises
        ------
        Exception
            Any but :class:`ScenarioError` that reading a scenario raised; its tables are in a note.
        """
        tables = copy.deepcopy(self._random.choice(self._bases))
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

    def combination(self, max_wall: str) -> Tables:
        """Draw a valid small scenario that combines features of realistic magnitude.

        Each feature is added with probability 1/2, in random order, unless it contradicts the
        features before it.
        """
        if self._random.random() < SHARE_OF_NETWORKS:
            return self._network(max_wall)
        tables: Tables = {
            "network": {"rtt": self._quantity(20, 300, "ms"), "bottleneck": self._link()},
            "traffic": self._traffic(),
            "tcp": {"stack": self._random.choice(_stacks())},
            "run": {
                "duration": self._random.choice(["1s", "3s", "5s"]),
                "seed": self._random.randrange(1, 10**6),
                "max_wall": max_wall,
            },
        }
        features = [
            self._add_hops,
            self._add_ends,
            self._add_return_path,
            self._add_variation,
            self._add_cross_traffic,
            self._add_tcp_options,
            self._add_classes,
            self._add_run_options,
        ]
        self._random.shuffle(features)
        if "count" in tables["traffic"]:
            del tables["run"]["duration"]
        while not is_valid(tables):  # a stack that does not support the queue or the rate
            tables["network"]["bottleneck"] = self._link()
        for feature in features:
            if self._random.random() < 0.5:
                continue
            for _ in range(TRIES):
                changed = copy.deepcopy(tables)
                feature(changed)
                if is_valid(changed):
                    tables = changed
                    break
        return tables

    def _network(self, max_wall: str) -> Tables:
        """Draw a valid network of links with routes, sites, changes and all kinds of traffic."""
        choose = self._random.choice
        while True:
            names = [f"l{index}" for index in range(self._random.randint(1, 5))]
            links = {name: self._network_link() for name in names}
            classes = []
            for index in range(self._random.randint(1, 4)):
                routes = [self._random.sample(names, self._random.randint(1, min(3, len(names))))]
                routes += [[choose(names)]] if self._random.random() < 0.2 else []
                there = {name for route in routes for name in route}
                back = [name for name in names if name not in there]
                traffic = choose([self._traffic(), self._routed_traffic(), self._routed_traffic()])
                entry: Tables = {"name": f"c{index}", "route": routes, "traffic": traffic}
                for key in ("flows", "sources"):
                    if key in traffic:
                        entry[key] = traffic.pop(key)
                entry |= {"back": back[: self._random.randint(0, 2)]}
                entry |= choose([{}, {"site": "home"}])
                entry |= choose([{}, {"sends": choose(["client", "both"])}])
                entry |= choose([{"delay": self._quantity(1, 100, "ms")}, {"rtt": "300ms"}])
                classes.append(entry)
            tables: Tables = {
                "link": links,
                "class": classes,
                "tcp": {"stack": choose(list(MODERN_STACKS))}
                | choose([{}, {}, {"ecn": choose([True, "accurate"])}]),
                "run": {
                    "duration": choose(["1s", "3s"]),
                    "seed": self._random.randrange(1, 10**6),
                    "max_wall": max_wall,
                    "warmup": choose(["0s", "0.2s", "mser-5"]),
                },
            }
            if any(entry.get("site") for entry in classes):
                tables["site"] = {"home": {"count": self._random.randint(1, 4)}}
            used = {name for c in classes for route in [*c["route"], c["back"]] for name in route}
            tables["link"] = {name: links[name] for name in names if name in used}
            if is_valid(tables):
                return tables

    def _network_link(self) -> Tables:
        choose = self._random.choice
        jitter = {"distribution": "uniform", "low": "0s", "high": "5ms"}
        changed = {"rate": self._quantity(1, 20, "mbit"), "delay": "20ms", "loss": "1%"}
        key = choose(sorted(changed))
        return {
            **self._link(),
            **choose([{}, {"delay": "5ms"}, {"each": "sender"}, {"each": "home"}]),
            **choose([{}, {}, {"jitter": jitter}, {"docsis": {"map_interval": "1ms"}}]),
            **choose([{}, {}, {"remark": choose(["random", {"ect1": "ect0", "share": "50%"}])}]),
            **choose([{}, {}, {"at": {"0.7s": {key: changed[key]}}}]),
        }

    def _routed_traffic(self) -> Tables:
        choose = self._random.choice
        size = choose(["200B", "20KB", {"distribution": "exponential", "mean": "50KB"}])
        pause = choose(["0s", "50ms", {"distribution": "exponential", "mean": "0.2s"}])
        flows = choose([1, 2, 6])
        return choose(
            [
                {"kind": "bulk", "flows": flows},
                {"kind": "requests", "answer": size, "pause": pause, "flows": flows}
                | choose([{}, {"fan_in": flows}, {"server_time": "5ms"}]),
                {"kind": "messages", "size": choose(["60B", "1200B"]), "interval": "20ms"}
                | choose([{}, {"ecn": "ect1"}])
                | {"flows": flows},
                {"kind": "ping", "interval": choose(["10ms", "100ms"]), "flows": flows},
                {"kind": "stream", "flows": flows}
                | choose(
                    [
                        {"rate": self._quantity(0.5, 8, "mbit")},
                        {"ladder": ["0.5mbit", "2mbit", "6mbit"]},
                        {"ladder": ["0.5mbit", "2mbit"], "control": "throughput"},
                    ]
                ),
                {"kind": "page", "objects": choose(["text", "chain", "median"]), "sources": flows}
                | choose([{}, {"http": "1.1"}, {"order": "in-turn"}, {"connection": "persistent"}])
                | {"pause": pause},
            ]
        )

    def _quantity(self, low: float, high: float, unit: str) -> str:
        number = math.exp(self._random.uniform(math.log(low), math.log(high)))
        return f"{number:.4g}{unit}"

    def _rate(self) -> Any:
        mean = self._quantity(1, 20, "mbit")
        if self._random.random() < 0.85:
            return mean
        burst = self._random.choice(["3KB", "15KB", "150KB"])
        return self._random.choice(
            [
                {"bucket": mean, "burst": burst},
                {"bucket": mean, "burst": burst, "policer": True},
                {"opportunities": self._random.choice(["50x12", "4", "12x1 40"])},
            ]
        )

    def _loss(self) -> Any:
        share = self._random.choice(["0.01%", "0.5%", "2%", "10%"])
        to_bad = self._random.choice(["0.1%", "1%", "10%"])
        ends = self._random.choice([{}, {"loss_bad": "50%"}, {"loss_good": "1%"}])
        bursts = {"model": "gilbert-elliott", "to_bad": to_bad, "to_good": "20%", **ends}
        return self._random.choice([share, share, bursts])

    def _link(self) -> Tables:
        link: Tables = {"rate": self._rate()}
        choices: dict[str, Callable[[], Any]] = {
            "buffer": lambda: self._random.choice(
                ["1pkt", "2pkt", "10pkt", "100pkt", "15KB", "20ms", "0.1bdp", "1bdp", "4bdp"]
            ),
            "queue": lambda: self._random.choice(
                [
                    *("droptail", "red", "fq", "codel", "fq_codel", "pie", "dualpi2", "head-drop"),
                    {"kind": "fq", "scheduler": "round-robin", "buffers": "individual"},
                    {"kind": "codel", "target": "2ms", "interval": "50ms", "ce_threshold": "1ms"},
                    {"kind": "red", "ecn": True},
                ]
            ),
            "loss": self._loss,
        }
        return link | {key: draw() for key, draw in choices.items() if self._random.random() < 0.4}

    def _size(self) -> Any:
        mean = self._random.choice(["4pkt", "20pkt", "100pkt"])
        return self._random.choice(
            [
                {"distribution": "exponential", "mean": mean, "minimum": "1pkt"},
                {"distribution": "pareto", "mean": mean, "alpha": 1.5},
                {"distribution": "constant", "value": mean},
                {"distribution": "empirical", "values": ["2pkt", "4pkt"], "weights": [3, 2]},
            ]
        )

    def _traffic(self) -> Tables:
        rate = self._random.choice(["0.5/s", "5/s", "50/s"])
        listed = self._random.choice([1, 20, ["1pkt", "8pkt", "100KB"], ["1MB", 3]])
        mean = self._random.choice(["0.1s", "1s"])
        off = self._random.choice(
            [
                {"distribution": "exponential", "mean": mean},
                {"distribution": "uniform", "low": "0s", "high": "500ms"},
                {"distribution": "ep", "mean": mean, "minimum": "0.05s"},
            ]
        )
        return self._random.choice(
            [
                {"kind": "bulk", "flows": self._random.choice([1, 1, 3, 8, 20])},
                {"kind": "transfers", "size": listed, "count": 20},
                {
                    "kind": "transfers",
                    "size": self._random.choice([listed, self._size()]),
                    "arrivals": {"distribution": "poisson", "rate": rate},
                },
                {
                    "kind": "on-off",
                    "off": off,
                    "size": self._size(),
                    "sources": self._random.choice([1, 3, 20, 200]),
                    "connection": self._random.choice(["new", "persistent"]),
                    "start": self._random.choice(["silent", "equilibrium"]),
                },
            ]
        )

    def _add_hops(self, tables: Tables) -> None:
        network = tables["network"]
        hops = [network.pop("bottleneck", None) or self._link()]
        hops += [self._link() for _ in range(self._random.randint(1, 2))]
        for index, hop in enumerate(hops):
            hop["name"] = f"h{index}"
            if self._random.random() < 0.2:
                hop |= {"shared": False}
        self._random.choice(hops)["measured"] = True
        network["hop"] = hops

    def _add_ends(self, tables: Tables) -> None:
        for end in ("ingress", "egress"):
            link = {"rate": self._quantity(1, 100, "mbit")}
            for key, value in (("buffer", "5pkt"), ("loss", "1%")):
                if self._random.random() < 0.3:
                    link[key] = value
            tables["network"][end] = link
        if self._random.random() < 0.3:
            tables["network"]["packet"] = self._random.choice(["200B", "576B", "9000B"])

    def _add_return_path(self, tables: Tables) -> None:
        network = tables["network"]
        if self._random.random() < 0.6:
            network["return"] = {"rate": self._quantity(0.03, 2, "mbit")}
        if self._random.random() < 0.5:
            network["ack_loss"] = self._loss()

    def _add_variation(self, tables: Tables) -> None:
        mean = self._quantity(0.1, 20, "ms")
        jitter = {"distribution": "exponential", "mean": mean}
        tables["network"]["jitter"] = jitter | {"reorder": self._random.random() < 0.3}

    def _add_cross_traffic(self, tables: Tables) -> None:
        share = self._random.choice(["10%", "50%", "95%"])
        streams: list[Tables] = [
            {"model": "poisson", "mean": share},
            {"model": "pareto", "mean": share, "sources": 5, "on": "100ms", "off": "200ms"},
            {"model": "fgn", "mean": share, "sd": "10%", "hurst": 0.8, "bin": "10ms"},
            {"model": "trace", "times": [0, 0.05, 0.1], "bytes": [3000, 1500, 20000]},
        ]
        streams = self._random.sample(streams, self._random.randint(1, 2))
        hops = tables["network"].get("hop")
        for stream in streams if hops else []:
            stream["hop"] = self._random.choice(hops)["name"]
        tables["cross"] = streams

    def _add_tcp_options(self, tables: Tables) -> None:
        tables["tcp"] |= self._tcp_options()

    def _tcp_options(self) -> Tables:
        options: dict[str, list[Any]] = {
            "handshake": ["none", "tcp", "tls12", "tls13"],
            "ecn": [True, False],
            "receiver_window": [1, 2, 10, 44, "1MiB"],
            "initial_window": [1, 4, 10],
            "host_noise": ["0s", "0.1ms", "5ms"],
            "delayed_acks": [True, False],
            "limited_transmit": [True, False],
            "min_rto": ["1ms", "200ms", "1s"],
            "timestamps": [True, False],
            "initial_ssthresh": ["receiver-window", 1, 8, "unlimited"],
            "idle_restart": ["never", "rto", "150ms"],
            "rules": [
                {"window_unit": "bytes", "slow_start_at_ssthresh": True},
                {"timer_restart": "send", "backoff_until": "ack"},
                {"max_plus": {"growth": "after-halving", "halve_once": True}},
                {"max_plus": {"whole_halves": True, "timeout": False}},
            ],
        }
        chosen = self._random.sample(sorted(options), self._random.randint(1, 3))
        return {key: self._random.choice(options[key]) for key in chosen}

    def _add_classes(self, tables: Tables) -> None:
        """Add classes, often with identical settings."""
        identical = self._random.random() < 0.3
        traffic = tables["traffic"]
        count = {"bulk": "flows", "on-off": "sources"}.get(traffic["kind"], "")
        number = traffic.pop(count, 1) if count else None
        entries: list[Tables] = []
        for index in range(self._random.randint(2, 4)):
            entry: Tables = {"name": f"c{index}"}
            if number is not None:
                entry[count] = number if identical else self._random.choice([1, 3, 8])
            if not identical:
                self._change_class(entry)
            entries.append(entry)
        tables["class"] = entries

    def _change_class(self, entry: Tables) -> None:
        changes: dict[str, Callable[[], Any]] = {
            "rtt": lambda: self._quantity(10, 300, "ms"),
            "packet": lambda: self._random.choice(["100B", "576B", "1500B"]),
            "tcp": lambda: {"stack": self._random.choice(_stacks()), **self._tcp_options()},
            "egress": lambda: {"rate": self._quantity(0.3, 20, "mbit")},
            "start": lambda: "0.5s",
        }
        for key in self._random.sample(sorted(changes), self._random.randint(0, 2)):
            entry[key] = changes[key]()
        if self._random.random() < 0.4:
            traffic = self._traffic()
            for key in ("flows", "sources"):
                entry.pop(key, None)
                if key in traffic:
                    entry[key] = traffic.pop(key)
            entry["traffic"] = traffic

    def _add_run_options(self, tables: Tables) -> None:
        options = {
            "warmup": self._random.choice(["0s", "0.15s", "0.5s"]),
            "replications": self._random.choice([2, 4, 8]),
            "precision": self._random.choice(["5%", "20%"]),
        }
        for key in self._random.sample(sorted(options), self._random.randint(1, 2)):
            tables["run"][key] = options[key]
        if self._random.random() < 0.3:
            tables["probes"] = {"flows": [0], "goodput_packets": 10}

    def _change(self, tables: Tables) -> None:
        """Set a random key to a random value, or remove it."""
        table, key, schema = self._random.choice(self.keys(tables))
        if key in table and self._random.random() < LEFT_OUT_AGAIN:
            del table[key]
        else:
            table[key] = self._value(schema)

    def keys(self, tables: Tables) -> list[tuple[Tables, str, Schema]]:
        """Return each key that a scenario has or may have: its table, its name and its schema."""
        return list(self._keys(self._root, tables))

    def _keys(self, schema: Schema, table: Tables) -> Iterator[tuple[Tables, str, Schema]]:
        """Yield each present or possible key of a table and of the tables below it."""
        named = schema.get("additionalProperties")
        properties = schema.get("properties", {})
        if isinstance(named, dict) and not properties:  # tables by names that users choose
            properties = dict.fromkeys(table, named)
        for key, below in properties.items():
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
            elif "properties" in alternative or "additionalProperties" in alternative:
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
        if isinstance(schema.get("additionalProperties"), dict):
            names = schema.get("propertyNames", {}).get("enum", ["core", "line", "home", "0.5s"])
            table[self._random.choice(names)] = self._value(schema["additionalProperties"])
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


def scenarios_with_each_example(bases: Sequence[Tables] = BASES) -> Iterator[tuple[str, Tables]]:
    """Yield a name and a valid scenario for each example of each key that a base may have."""
    generator = Generator(Random(0))
    for number, base in enumerate(bases):
        for index, (_, key, schema) in enumerate(generator.keys(base)):
            for at, example in enumerate(schema.get("examples", [])):
                tables = copy.deepcopy(base)
                table, _, _ = generator.keys(tables)[index]
                table[key] = example
                if is_valid(tables):
                    yield f"{key}-{number}-{index}-{at}", tables


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
    if isinstance(schema.get("additionalProperties"), dict):
        return True
    words = ((key, s["const"]) for key, s in properties.items() if "const" in s)
    return set(table) <= set(properties) and all(
        table.get(key, word) == word for key, word in words
    )


@cache
def _stacks() -> list[str]:
    stacks: list[str] = _schema()["$defs"]["Tcp"]["properties"]["stack"]["enum"]
    return stacks


@cache
def _schema() -> Schema:
    return make_scenario_schema()
