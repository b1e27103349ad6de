"""Tables of the reference that are generated from the code, between two comments.

``<!-- table: NAME -->`` and ``<!-- end of table -->`` enclose the result of ``TABLES[NAME]``.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from doc_api import MODULES, api
from doc_options import COMMAND_TABLES, key_index, option_index, shared_options
from pydantic.fields import FieldInfo
from tcpcast.answer.metrics import METRICS
from tcpcast.engines import REGISTRY
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.packet.configuration import SIZE_BOUNDS
from tcpcast.engines.registry import FAMILIES
from tcpcast.engines.stack_support import StackSupport, SupportLevel, get_stack_support
from tcpcast.scenario import (
    PRECISION_METRICS,
    PRESETS,
    Arrivals,
    Bulk,
    FairQueue,
    FixedPoint,
    GilbertElliott,
    Hop,
    Link,
    MaxPlusRules,
    MeanField,
    Network,
    OnOff,
    OpportunityRate,
    Probes,
    Red,
    RestOfRound,
    Run,
    Scenario,
    Sweep,
    Tcp,
    TcpRules,
    TokenBucket,
    Transfers,
    UserClass,
    WifiRate,
    get_packaged_names,
    make_scenario_schema,
)
from tcpcast.scenario.aqm import AQM_TABLES
from tcpcast.scenario.classic_tcp import CLASSIC_RECOVERY, PAPER_BY_STACK
from tcpcast.scenario.cross import FgnCross, ParetoCross, PoissonCross, TraceCross
from tcpcast.scenario.links import Change, Docsis, NetworkLink, Site
from tcpcast.scenario.modern_stacks import MODERN_STACKS, ModernStack
from tcpcast.scenario.modern_tcp import DEFAULT_STACK, MODERN_PRESETS, drop_classic_keys
from tcpcast.scenario.pages import PageObject
from tcpcast.scenario.probes import PacketCapture
from tcpcast.scenario.quic import QUIC_STACKS, QuicStack
from tcpcast.scenario.return_path import ReturnLink
from tcpcast.scenario.table import Table
from tcpcast.scenario.tcp import STACKS, SocketBuffers
from tcpcast.scenario.traffic import Messages, Pages, Ping, Reading, Requests, Stream, Writing

TABLE = re.compile(r"(<!-- table: ([\w.-]+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)

_READS = "how the application reads ([below](#readers-and-writers)); default: at once"

MEANINGS = {
    "Scenario.name": "shown in reports",
    "Scenario.network": "the path; optional with `[link.NAME]`",
    "Scenario.link": "links of a network, instead of `[network.bottleneck]`",
    "NetworkLink.queue": "queue discipline",
    "Requests.flows": "number; optional if classes have it",
    "Messages.flows": "number; optional if classes have it",
    "Ping.flows": "number; optional if classes have it",
    "Stream.flows": "number; optional if classes have it",
    "Pages.sources": "number of browsers; optional if classes have it",
    "Scenario.traffic": "what all sources send; optional if each `[[class]]` has its own",
    "Scenario.tcp": "TCP of all sources",
    "Scenario.run": "length, seed and precision",
    "Scenario.probes": "what to record",
    "Scenario.mean_field": "for the `mean-field` engine",
    "Scenario.fixed_point": "for the `fixed-point` engine",
    "Scenario.sweep": "for `tcpcast sweep`",
    "Scenario.class": "sources that differ; default: all sources are equal",
    "Scenario.cross": "streams of cross traffic",
    "TraceCross.file": "CSV with columns `time_s` and `bytes`, relative to the scenario's folder",
    "TraceCross.times": "instead of a file: sorted times in seconds",
    "TraceCross.bytes": "instead of a file: bytes at each time",
    "Network.ingress": "a [link](#links) per source",
    "Network.bottleneck": "a link shared by all",
    "Network.egress": "a link per receiver",
    "Network.return": "a [link](#the-return-path) shared by all acks",
    "Link.queue": "queue discipline",
    "ReturnLink.queue": "queue discipline",
    "Hop.queue": "queue discipline",
    "OnOff.sources": "number; optional if classes have it",
    "Bulk.flows": "number; optional if classes have it",
    "OnOff.reads": _READS,
    "Bulk.reads": _READS,
    "Bulk.writes": "blocks that the application writes ([below](#readers-and-writers)); "
    "default: it always has data",
    "Transfers.reads": _READS,
    "Run.seed": "seed of all random streams",
    "Probes.flows": "flows, from 0, whose windows and packets are recorded",
    "Probes.pcap": "captures, below",
    "PacketCapture.link": "point of the path",
    "PacketCapture.file": "output file, in or below the scenario's folder",
    "PacketCapture.packets": "maximum number of packets",
}
"""Meanings of keys whose description in the schema is missing or too short for the page."""


PLAIN = "rfc-newreno"
"""The preset with which presets of papers are compared."""

TABLES_OF_KEYS: dict[str, type[Table]] = {
    table.__name__: table
    for table in (
        Scenario, Network, Link, Hop, ReturnLink, Red, FairQueue, TokenBucket, OpportunityRate,
        WifiRate,
        GilbertElliott, RestOfRound, OnOff, Bulk, Transfers, Arrivals, Tcp,
        TcpRules, MaxPlusRules, Run, Probes, PacketCapture, MeanField, FixedPoint, UserClass,
        PoissonCross, FgnCross, ParetoCross, TraceCross, Sweep, NetworkLink, Change, Docsis, Site,
        Requests, Messages, Ping, Stream, Pages, PageObject, SocketBuffers, Reading, Writing,
    )
} | {table.__name__: table for table in AQM_TABLES.values()}  # fmt: skip
"""The tables of a scenario, by their names in its schema."""


EXTENDED: dict[str, tuple[str, ...]] = {
    "Hop": ("Link",),
    "NetworkLink": ("Link", "Network"),
    "ReturnLink": ("Link",),
    "FqCodel": ("Codel",),
    "Cake": ("Dualpi2",),
    "Bulk": ("OnOff",),
    "Transfers": ("OnOff",),
    "Requests": ("Bulk",),
    "Messages": ("Bulk",),
    "Ping": ("Bulk",),
    "Stream": ("Bulk",),
    "FgnCross": ("PoissonCross",),
    "ParetoCross": ("PoissonCross",),
    "TraceCross": ("PoissonCross",),
}
"""Tables of keys whose page lists only the differences from other tables."""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _typed(value: Any) -> str:
    """Write a value as it is typed in TOML."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_typed(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_typed(item) for item in value)}]"
    return json.dumps(value)


def _code(value: Any) -> str:
    return f"`{_typed(value)}`"


@cache
def _schema() -> dict[str, Any]:
    """Return the schema of a scenario, cached because creating it is slow."""
    return make_scenario_schema()


def _definition(name: str) -> dict[str, Any]:
    """Return the schema of a table of a scenario."""
    schema = _schema()
    result: dict[str, Any] = schema if name == "Scenario" else schema["$defs"][name]
    return result


def _entries(name: str) -> dict[str, Any]:
    """Return the schema of each key of a table, except keys that the page names above the table."""
    return {
        key: entry
        for key, entry in _definition(name)["properties"].items()
        if key not in {"kind", "distribution", "model"} or "const" not in entry
    }


def keys(name: str) -> str:
    """Return the keys of a table of a scenario, each with its default, type and meaning.

    Keys that a table in :data:`EXTENDED` repeats are left out.
    """
    repeated = {item for other in EXTENDED.get(name, ()) for item in _items(other)}
    return "".join(f"{item}\n" for item in _items(name) if item not in repeated)


def _items(name: str) -> list[str]:
    """Return the keys of a table; a default or an example of a single type shows the type."""
    table = _definition(name)
    fields = {f.alias or key: f for key, f in TABLES_OF_KEYS[name].model_fields.items()}
    needed = {*table.get("required", []), *(["traffic"] if name == "Scenario" else [])}
    items = []
    for key, entry in _entries(name).items():
        meaning = MEANINGS.get(f"{name}.{key}") or fields[key].description
        assert meaning, f"{name}.{key} has no description"
        default = _default(name, key, entry, needed=key in needed)
        types = [t for t in dict.fromkeys(kinds(entry)) if t != default]
        is_typical = default.startswith("`") and default not in kinds(entry)
        example = "" if is_typical else _example(fields[key])
        if example in kinds(entry):
            example = ""
        if {"ratio", "number"} <= {*types}:
            types.remove("number")  # a ratio may be a number without "%"
        value = example or default * is_typical
        if re.match(r"`\[[^]]", value):
            types = [t for t in types if not t.startswith("list of ")]
        plain = [t for t in types if not t.startswith("`")]
        if len(plain) == 1 and re.match(r'`("?\d|true|false)', value):
            types.remove(plain[0])
        if example:
            types.append(example)
        if default.startswith("*"):
            types.append(default)
        kind = ", ".join(types)
        head = f"`{key}` = {default}" if default.startswith("`") else f"`{key}`"
        if default.startswith("`"):
            meaning = DEFAULT_IN_TEXT.sub("", meaning)
        items.append(f"- {head}{f' ({kind})' if kind else ''}: {meaning}")
    return items


ROUTE_KEYS = {"site", "route", "back", "delay", "back_delay", "host", "dscp", "sends"}
"""Keys of a class that the top level does not have."""

UNITS_TYPED = {
    "(ns|us": "time",
    "[bB][iI][tT](/[sS])?|%": "rate, share",
    "[bB][iI][tT]": "rate",
    "pkt|bdp": "buffer",
    "pkt|B": "size",
    "(pkt)": "packets",
    "(B|kB": "bytes",
    "%?": "ratio",
}
"""The types of texts with a unit, by a part of their pattern; the first match wins."""

DEFAULT_IN_TEXT = re.compile(r"; default: \S+$")
"""A default at the end of a description, which the page has before it."""

MAX_WORDS = 12
"""Maximum number of words that the column of types lists."""

JSON_TYPES = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "table",
}


def kinds(entry: dict[str, Any]) -> list[str]:
    """Return the types of a key's values, from its part of the schema."""
    choices = entry.get("anyOf", entry.get("oneOf", []))
    if choices:
        return [kind for choice in choices for kind in kinds(choice)]
    if "$ref" in entry:
        return ["table"]
    words = entry.get("enum") or ([entry["const"]] if isinstance(entry.get("const"), str) else [])
    if words:
        return [_code(word) for word in words] if len(words) <= MAX_WORDS else ["word"]
    if "const" in entry:
        return []  # 0 needs no unit
    if entry.get("type") == "array":
        return [f"list of {' or '.join(dict.fromkeys(kinds(entry['items'])))}"]
    pattern = entry.get("pattern", "")
    return [next((k for part, k in UNITS_TYPED.items() if part in pattern), _plain(entry))]


def _plain(entry: dict[str, Any]) -> str:
    return JSON_TYPES[entry.get("type", "object")]


def _default(name: str, key: str, entry: dict[str, Any], *, needed: bool) -> str:
    if needed:
        return "*needed*"
    if name == "UserClass" and key not in {"start", "stop", *ROUTE_KEYS}:
        return "*top level's*"
    if (name, key) == ("Tcp", "stack"):
        return _code(DEFAULT_STACK)
    if "$ref" in entry or isinstance(entry.get("default"), dict):
        return ""  # a table, filled in by its own defaults
    return _code(entry["default"]) if "default" in entry else ""


def _example(field: FieldInfo) -> str:
    example: Any = next(iter(field.examples or []), {})
    return "" if isinstance(example, dict) else _code(example)


def presets() -> str:
    """Return how each preset, those of papers apart, differs from the default stack."""
    plain = drop_classic_keys(MODERN_PRESETS[DEFAULT_STACK])
    todays = {name: drop_classic_keys(keys) for name, keys in MODERN_PRESETS.items()}
    stacks = {n: keys for n, keys in PRESETS.items() if n not in PAPER_BY_STACK} | todays
    groups: dict[str, list[str]] = {}
    for name, preset in stacks.items():
        keys = [k for k in preset if k != "rules" and preset[k] != plain.get(k)]
        parts = [f"`{key} = {_typed(preset[key])}`" for key in keys]
        refused = ", ".join(f"`{key}`" for key in plain if key not in preset)
        parts += [f"without {refused}"] * bool(refused)
        groups.setdefault(", ".join(parts) or "the defaults above", []).append(f"`{name}`")
    return "".join(f"- {', '.join(names)}: {text}\n" for text, names in groups.items())


def modern_stacks() -> str:
    """Return the rules of each modern stack; rules of most stacks are stated once."""
    labels = {
        "loss_detection": "loss detection",
        "window_reduction": "window reduction",
        "timeout": "RTO",
    }
    usual = {field: ModernStack._field_defaults[field] for field in labels}
    items = []
    for name, stack in MODERN_STACKS.items():
        other = "".join(
            f"; {label}: {getattr(stack, field)}"
            for field, label in labels.items()
            if getattr(stack, field) != usual[field]
        )
        items.append(f"- `{name}`: {stack.control_text}{other}\n")
    return (
        f"Unless its item states otherwise, a stack detects losses by {usual['loss_detection']}, "
        f"reduces its window by {usual['window_reduction']}, and has an RTO of {usual['timeout']}:"
        f"\n\n{''.join(items)}"
    )


def quic_stacks() -> str:
    """Return the rules in which QUIC stacks differ."""
    head = ["stack", "control", "slow start ends", "ack", "pacing", "burst", "window", "source"]
    rows = [[f"`{name}`", *_quic_rules(stack)] for name, stack in QUIC_STACKS.items()]
    return _table(head, rows)


_SLOW_START_ENDS = {
    "loss": "by a loss",
    "rtt_rise": "when the RTT rises by a quarter",
    "hystart_plus_plus": "by HyStart++",
}


def _quic_rules(stack: QuicStack) -> list[str]:
    few, many = stack.burst_min_packets, stack.burst_max_packets
    burst = f"{few} packets"
    rate = stack.pacing_percent / 100
    pacing = f"{rate:g} {'window' if rate == 1 else 'windows'} per RTT"
    if stack.pacing_percent == 0:
        burst, pacing = "the window", "none"
    elif stack.burst_time_s > 0:
        burst = f"data of {1e3 * stack.burst_time_s:g} ms, {few} to {many} packets"
    elif stack.burst_window_percent > 0:
        burst = f"{stack.burst_window_percent} % of the window, {few} to {many} packets"
    if stack.pacing_wait == "packet_of_any_tokens":
        burst += ", then pairs"
    every = f"every {stack.keys['ack_packets']}, " if stack.acks_reordering else ""
    grows = ", doubles" if stack.window_doubles else ""
    window = "none" if stack.window_bytes >= 1 << 40 else f"{stack.window_bytes:,} B{grows}"
    return [
        stack.keys["congestion_control"],
        _SLOW_START_ENDS[stack.slow_start_exit],
        f"{every}{stack.keys['ack_timeout'].replace('ms', ' ms')}",
        pacing,
        burst,
        window,
        stack.source.partition(" (")[0],
    ]


def classic_stacks() -> str:
    """Return the recovery of each classic stack."""
    return _table(["stack", "recovery"], [[f"`{n}`", r] for n, r in CLASSIC_RECOVERY.items()])


def papers() -> str:
    """Return the differences of presets of papers from the presets after which they are named."""
    rows = []
    for name, paper in PAPER_BY_STACK.items():
        plain, own = PRESETS[PLAIN], PRESETS[name]
        keys = [
            f"`{key} = {_typed(value)}`"
            for key, value in own.items()
            if key != "rules" and value != plain[key]
        ]
        rules = [f"`{key} = {_typed(value)}`" for key, value in own.get("rules", {}).items()]
        rows.append([f"`{name}`", paper, ", ".join(keys), ", ".join(rules)])
    return _table(["stack", "paper", "`[tcp]`", "`[tcp.rules]`"], rows)


def engines() -> str:
    """Return the engines by condition, with their limits; equal limits refer to the first ones."""
    first: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for name in (n for family in FAMILIES for n, e in REGISTRY.items() if e.family == family):
        engine = REGISTRY[name]
        trust = engine.trust_conditions(name)
        before = first.setdefault(trust, name)
        limits = f"Trust: {trust}" if before == name else f"Trust as for `{before}`"
        groups.setdefault(engine.applies, []).append(f"- `{name}`: {engine.summary}. {limits}.\n")
    return "\n".join(f"For {applies}:\n\n{''.join(items)}" for applies, items in groups.items())


PERCENTILE = re.compile(r"^\d+th percentile of")


def metrics() -> str:
    """Return every metric with its unit and meaning; percentiles of one quantity share an item."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, metric in METRICS.items():
        meaning = PERCENTILE.sub("percentiles of", metric.meaning)
        rows.setdefault((metric.unit, meaning), []).append(f"`{name}`")
    items = (f"- {', '.join(n)} ({unit}): {meaning}\n" for (unit, meaning), n in rows.items())
    return "".join(items)


def model(name: str) -> str:
    """Return the source of a formula."""
    return f"Source: {FORMULAS[name].source}.\n"


def scenarios() -> str:
    """Return the names of the packaged scenarios."""
    return f"{', '.join(f'`{name}`' for name in get_packaged_names())}.\n"


def sizes() -> str:
    """Return the size intervals of the table ``by_size``."""
    lows = [1, *(bound + 1 for bound in SIZE_BOUNDS)]
    spans = [f"{low}-{high}" for low, high in zip(lows, SIZE_BOUNDS, strict=False)]
    return ", ".join([*spans, f"{lows[-1]} and more"]) + ".\n"


def precisions() -> str:
    """Return the metrics that support a precision."""
    return ", ".join(f"`{name}`" for name in PRECISION_METRICS) + ".\n"


REFUSED = ""
"""The support of stacks that an engine refuses."""


def stacks() -> str:
    """Return the support of each stack by each engine; engines with equal support share an item."""
    supports = {
        stack: [_support(get_stack_support(engine, stack)) for engine in REGISTRY]
        for stack in STACKS
    }
    classic = [stack for stack in STACKS if supports[stack] == supports[PLAIN]]
    engines: dict[tuple[str, ...], list[str]] = {}
    for engine, *row in zip(REGISTRY, *supports.values(), strict=True):
        engines.setdefault(tuple(row), []).append(f"`{engine}`")
    items = [
        f"- {', '.join(names)}: {_stacks_by_support(row, classic)}\n"
        for row, names in engines.items()
    ]
    names = ", ".join(f"`{stack}`" for stack in classic)
    return f"The *classic* stacks are {names}.\n\n{''.join(items)}"


def _stacks_by_support(row: tuple[str, ...], classic: list[str]) -> str:
    """Return the stacks that an engine supports, grouped by support.

    If the engine refuses no stack, the largest group is last, without names.
    """
    groups: dict[str, list[str]] = {}
    for stack, support in zip(STACKS, row, strict=True):
        name = "classic" if stack in classic else f"`{stack}`"
        names = groups.setdefault(support, [])
        if name not in names:
            names.append(name)
    if REFUSED not in groups:
        common = max(groups, key=lambda support: len(groups[support]))
        del groups[common]
        groups[common] = ["all other stacks" if groups else "all stacks"]
    groups.pop(REFUSED, None)
    return "; ".join(f"{', '.join(names)} ({support})" for support, names in groups.items())


def _support(support: StackSupport) -> str:
    words = {SupportLevel.UNCHECKED: "not validated"}
    if support.level is SupportLevel.REFUSED:
        return REFUSED
    return words.get(support.level) or support.text or "applies"


TABLES: dict[str, Callable[[], str]] = {
    "metrics": metrics,
    "presets": presets,
    "presets.papers": papers,
    "engines": engines,
    "stacks": stacks,
    "stacks.modern": modern_stacks,
    "stacks.quic": quic_stacks,
    "stacks.classic": classic_stacks,
    "scenarios": scenarios,
    "sizes": sizes,
    "precisions": precisions,
    "options": shared_options,
    "index.options": option_index,
    "index.keys": lambda: key_index({name: list(_entries(name)) for name in TABLES_OF_KEYS}),
}
TABLES |= COMMAND_TABLES
for _name in TABLES_OF_KEYS:
    TABLES[f"keys.{_name}"] = lambda name=_name: keys(name)  # type: ignore[misc]
for _name in MODULES:
    TABLES[f"api.{_name}"] = lambda name=_name: api(name)  # type: ignore[misc]
for _name in FORMULAS:
    TABLES[f"model.{_name}"] = lambda name=_name: model(name)  # type: ignore[misc]


def fill_tables(text: str) -> str:
    """Return a page with up-to-date tables."""
    return TABLE.sub(lambda result: result[1] + TABLES[result[2]]() + result[4], text)


def table_names(text: str) -> set[str]:
    """Return the names of the tables on a page."""
    return {result[2] for result in TABLE.finditer(text)}


def scenario_tables() -> set[str]:
    """Return the schema definitions of tables of keys, except distributions and overlays."""
    skipped = re.compile(r"Overlay$|Time$|Size$|Bytes$|^Bernoulli$")
    return {name for name in _schema()["$defs"] if not skipped.search(name)} | {"Scenario"}
