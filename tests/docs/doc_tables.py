"""The tables of the reference that follow from the code, written between two comments.

``<!-- table: NAME -->`` and ``<!-- end of table -->`` enclose what :data:`TABLES` makes of NAME.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from doc_api import MODULES, api
from doc_differences import differences, experts
from tcpcast.engines import REGISTRY
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.packet.configuration import SIZE_BOUNDS
from tcpcast.engines.registry import (
    CAPTURES,
    FAMILIES,
    FIXED_POINT,
    MEASUREMENT,
    PATH,
    POPULATION,
    SIMULATION,
    TRANSFERS,
    USERS,
)
from tcpcast.engines.stacks import Fit, Verdict, fit
from tcpcast.metrics import METRICS
from tcpcast.scenario import (
    PRECISION_METRICS,
    PRESETS,
    Arrivals,
    Bulk,
    Captured,
    Codel,
    FairQueue,
    FixedPoint,
    FqCodel,
    GilbertElliott,
    HeadDrop,
    Hop,
    Link,
    MaxPlusRules,
    MeanField,
    Network,
    OnOff,
    OpportunityRate,
    Pie,
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
    scenario_schema,
)
from tcpcast.scenario.cross import FgnCross, ParetoCross, PoissonCross, TraceCross
from tcpcast.scenario.modern_tcp import DEFAULT_STACK, TODAYS_PRESETS, shown_keys
from tcpcast.scenario.return_path import ReturnLink
from tcpcast.scenario.run import PacketCapture
from tcpcast.scenario.tcp import STACKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.fields import FieldInfo
    from tcpcast.scenario.table import Table

TABLE = re.compile(r"(<!-- table: ([\w.-]+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)

MEANINGS = {
    "Scenario.name": "shown in reports",
    "Scenario.network": "`[network]`, below",
    "Scenario.traffic": "`[traffic]`, below; keys that each `[[class]]` sets are not needed here",
    "Scenario.tcp": "`[tcp]`, below",
    "Scenario.run": "`[run]`, below",
    "Scenario.probes": "`[probes]`, below",
    "Scenario.mean_field": "`[mean_field]`, below; read by engine `mean-field` alone",
    "Scenario.fixed_point": "`[fixed_point]`, below; read by engine `fixed-point` alone",
    "Scenario.sweep": "`[sweep]`, below; read by `tcpcast sweep` alone",
    "Scenario.class": "`[[class]]`, below; without any, all senders are equal",
    "Scenario.cross": "`[[cross]]`, below; cross traffic, one stream each",
    "PoissonCross.distribution": "independent packets",
    "FgnCross.distribution": "a rate in bins that is fractional Gaussian noise",
    "ParetoCross.distribution": "on/off sources with Pareto times",
    "TraceCross.distribution": "a recording, repeated",
    "TraceCross.file": "CSV with columns `time_s` and `bytes`, relative to the scenario's folder",
    "TraceCross.times": "in place of a file: times in seconds, in order",
    "TraceCross.bytes": "in place of a file: bytes at each of these times",
    "Network.ingress": "`[network.ingress]`, as a link below; one per source",
    "Network.bottleneck": "`[network.bottleneck]`, as a link below; shared by all",
    "Network.egress": "`[network.egress]`, as a link below; one per receiver",
    "Network.return": "`[network.return]`, below; shared by all acks, in place of the bottleneck "
    "the other way",
    "Link.queue": "the discipline",
    "ReturnLink.queue": "the discipline",
    "Hop.queue": "the discipline",
    "GilbertElliott.model": "the model of correlated loss",
    "RestOfRound.model": "the model of correlated loss",
    "OnOff.kind": "sources that send a file after each OFF time",
    "OnOff.sources": "how many; needed unless classes count them",
    "Bulk.kind": "flows that always have data to send",
    "Bulk.flows": "how many; needed unless classes count them",
    "Captured.kind": "flows of a packet capture: the measurement, and models fed with it",
    "Transfers.kind": "single transfers, each alone or arriving at random times",
    "Run.seed": "of all random streams",
    "Probes.flows": "flows whose window and sequence numbers are traced, counted from 0",
    "Probes.pcap": "captures: `{ link, file, packets }`",
    "PacketCapture.link": "`sender`, `bottleneck-in`, `bottleneck-out` or `receiver`",
    "PacketCapture.file": "where to write it, in or below the scenario's folder; "
    "an existing file stays, except for a capture with `--force`",
    "PacketCapture.packets": "maximum number of packets in it",
}
"""What keys mean whose description is not in the schema, or says too little on a page."""


PLAIN = "rfc-newreno"
"""The preset that those of papers are told beside."""

PAPERS = {
    "engset-newreno": "TCP-Engset report",
    "pftk-reno": "Padhye, Firoiu, Towsley and Kurose",
    "parallel-newreno": "parallel flows; ns-2 of 2008",
    "short-newreno": "Ayesta and Avrachenkov, section 4",
    "max-plus-reno": "Baccelli, Hong and Liu (INRIA report 4154)",
}
"""Presets of papers."""


TABLES_OF_KEYS: dict[str, type[Table]] = {
    table.__name__: table
    for table in (
        Scenario, Network, Link, Hop, ReturnLink, Red, FairQueue, Codel, FqCodel, Pie, HeadDrop,
        TokenBucket, OpportunityRate,
        GilbertElliott, RestOfRound, OnOff, Bulk, Transfers, Arrivals, Captured, Tcp,
        TcpRules, MaxPlusRules, Run, Probes, PacketCapture, MeanField, FixedPoint, UserClass,
        PoissonCross, FgnCross, ParetoCross, TraceCross, Sweep,
    )
}  # fmt: skip
"""The tables of a scenario, by their names in its schema."""


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
    """Return the schema of a scenario; making it takes longer than the tables that are read off."""
    return scenario_schema()


def keys(name: str) -> str:
    """Return the keys of one table of a scenario: type, an example, the default, the meaning."""
    schema = _schema()
    table = schema if name == "Scenario" else schema["$defs"][name]
    fields = {f.alias or key: f for key, f in TABLES_OF_KEYS[name].model_fields.items()}
    other = table.get("else", {})
    needed = {
        *table.get("required", []),
        *other.get("required", []),
        *(key for either in other.get("anyOf", [])[:1] for key in either["required"]),
    }
    rows = []
    for key, entry in table["properties"].items():
        meaning = MEANINGS.get(f"{name}.{key}") or fields[key].description
        assert meaning, f"nothing says what {name}.{key} means"
        default = _default(name, key, entry, needed=key in needed)
        kind = " or ".join(dict.fromkeys(kinds(entry))).replace("ratio or number", "ratio")
        rows.append([f"`{key}`", kind, _example(fields[key], entry), default, meaning])
    return _table(["key", "type", "example", "default", "meaning"], rows)


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
"""The types of texts with a unit, by a part of their pattern; the first that fits."""

JSON_TYPES = {
    "string": "text",
    "integer": "whole number",
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
    if "enum" in entry or isinstance(entry.get("const"), str):
        return ["word"]
    if "const" in entry:
        return []  # 0 may go without a unit
    if entry.get("type") == "array":
        return [f"list of {' or '.join(dict.fromkeys(kinds(entry['items'])))}"]
    pattern = entry.get("pattern", "")
    return [next((k for part, k in UNITS_TYPED.items() if part in pattern), _plain(entry))]


def _plain(entry: dict[str, Any]) -> str:
    return JSON_TYPES[entry.get("type", "object")]


def _default(name: str, key: str, entry: dict[str, Any], *, needed: bool) -> str:
    if needed:
        return "*needed*"
    if name == "UserClass" and key not in {"start", "stop"}:
        return "*top level's*"
    if (name, key) == ("Tcp", "stack"):
        return _code(DEFAULT_STACK)
    if "$ref" in entry or isinstance(entry.get("default"), dict):
        return ""  # a table, filled in by its own defaults
    return _code(entry["default"]) if "default" in entry else "*none*"


def _example(field: FieldInfo, entry: dict[str, Any]) -> str:
    if field.examples:
        return "" if isinstance(field.examples[0], dict) else _code(field.examples[0])
    choices = entry.get("enum", [entry["const"]] if "const" in entry else [])
    return " or ".join(_code(choice) for choice in choices)


def presets() -> str:
    """Return every default of every preset, those of papers apart."""
    todays = {name: shown_keys(keys) for name, keys in TODAYS_PRESETS.items()}
    return _presets({n: keys for n, keys in PRESETS.items() if n not in PAPERS} | todays)


def papers() -> str:
    """Return what the presets of papers have that is not as in the preset they are named after."""
    rows = []
    for name, paper in PAPERS.items():
        plain, own = PRESETS[PLAIN], PRESETS[name]
        keys = [
            f"`{key} = {_typed(value)}`"
            for key, value in own.items()
            if key != "rules" and value != plain[key]
        ]
        rules = [f"`{key} = {_typed(value)}`" for key, value in own.get("rules", {}).items()]
        rows.append([f"`{name}`", paper, ", ".join(keys), ", ".join(rules)])
    return _table(["stack", "paper", "`[tcp]`", "`[tcp.rules]`"], rows)


def _presets(stacks: dict[str, dict[str, Any]]) -> str:
    keys = [key for key in dict.fromkeys(k for p in stacks.values() for k in p) if key != "rules"]
    rows = [
        [f"`{key}`", *(_code(preset[key]) if key in preset else "" for preset in stacks.values())]
        for key in keys
    ]
    return _table(["key", *(f"`{name}`" for name in stacks)], rows)


def engines() -> str:
    """Return the engines, when each applies, and when to trust it."""
    rows = [
        [f"`{name}`", e.family, e.summary, e.applies, e.trust_text(name)]
        for family in FAMILIES
        for name, e in REGISTRY.items()
        if e.family == family
    ]
    return _table(["engine", "family", "what it is", "applies to", "trust"], rows)


def metrics() -> str:
    """Return every metric with its unit and meaning."""
    rows = [[f"`{name}`", metric.unit, metric.meaning] for name, metric in METRICS.items()]
    return _table(["metric", "unit", "meaning"], rows)


def families() -> str:
    """Return the engines of each family."""
    rows = []
    for family in FAMILIES:
        names = [f"`{name}`" for name, entry in REGISTRY.items() if entry.family == family]
        if names:
            rows.append([family, ", ".join(names), BEST_FOR[family]])
    return _table(["family", "engines", "best for"], rows)


def model(name: str) -> str:
    """Return where a formula stands, what it answers, and its domain."""
    entry = FORMULAS[name]
    row = [f"`{name}`", entry.source, entry.applies, entry.trust_text(name)]
    return _table(["engine", "source", "applies to", "trust"], [row])


def sizes() -> str:
    """Return the size intervals of the table ``by_size``."""
    lows = [1, *(bound + 1 for bound in SIZE_BOUNDS)]
    spans = [f"{low}-{high}" for low, high in zip(lows, SIZE_BOUNDS, strict=False)]
    return ", ".join([*spans, f"{lows[-1]} and more"]) + ".\n"


def precisions() -> str:
    """Return the metrics of which a precision can be asked."""
    return ", ".join(f"`{name}`" for name in PRECISION_METRICS) + ".\n"


def stacks() -> str:
    """Return the support of each stack by each engine; equal columns and equal rows are merged."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for stack in STACKS:
        cells = tuple(_fit(fit(engine, stack)) for engine in REGISTRY)
        columns.setdefault(cells, []).append(f"`{stack}`")
    engines: dict[tuple[str, ...], list[str]] = {}
    for engine, *cells in zip(REGISTRY, *columns, strict=True):
        engines.setdefault(tuple(cells), []).append(f"`{engine}`")
    head = ["engine", *(", ".join(names) for names in columns.values())]
    return _table(head, [[", ".join(names), *row] for row, names in engines.items()])


def _fit(found: Fit) -> str:
    if found.verdict is Verdict.REFUSED:
        return f"refused: {found.text}"
    return found.text or "applies"


BEST_FOR = {
    PATH: "the rate of long flows at a known loss and round-trip time, in milliseconds",
    TRANSFERS: "the time of files of some packets to some megabytes",
    USERS: "populations of users with think times",
    FIXED_POINT: "the schemes of a paper, and their errors",
    POPULATION: "up to ten million users at the cost of a few thousand",
    SIMULATION: "everything else, and to check any formula: the reference",
    MEASUREMENT: "the TCP of the machine itself",
    CAPTURES: "what really happened on a path",
}
"""What each family of engines is asked for."""

TABLES: dict[str, Callable[[], str]] = {
    "metrics": metrics,
    "families": families,
    "presets": presets,
    "presets.papers": papers,
    "engines": engines,
    "stacks": stacks,
    "sizes": sizes,
    "precisions": precisions,
    "trace.differences": differences,
    "trace.experts": experts,
}
for _name in TABLES_OF_KEYS:
    TABLES[f"keys.{_name}"] = lambda name=_name: keys(name)  # type: ignore[misc]
for _name in MODULES:
    TABLES[f"api.{_name}"] = lambda name=_name: api(name)  # type: ignore[misc]
for _name in FORMULAS:
    TABLES[f"model.{_name}"] = lambda name=_name: model(name)  # type: ignore[misc]


def filled(text: str) -> str:
    """Return a page with every table as it is now."""
    return TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[4], text)


def named(text: str) -> set[str]:
    """Return the names of the tables on a page."""
    return {found[2] for found in TABLE.finditer(text)}


def scenario_tables() -> set[str]:
    """Return the definitions of the schema that are tables of keys, distributions and overlays apart."""
    skipped = re.compile(r"Overlay$|Time$|Size$|^Bernoulli$")
    return {name for name in _schema()["$defs"] if not skipped.search(name)} | {"Scenario"}
