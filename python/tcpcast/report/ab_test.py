"""The report of an A/B comparison: a verdict, a table, JSON, CSV, and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import finite_or_none
from tcpcast.answer.finding import Finding
from tcpcast.answer.metrics import METRICS, PERCENTILES
from tcpcast.comparison.ab_test import MEANS, find_verdict
from tcpcast.quantity.readable_units import count_text
from tcpcast.report.chart import Axis, Chart, Panel, Series, percent_tick, scenario_subtitle
from tcpcast.report.document import BLANK_LINE, Column, Paragraph, Table
from tcpcast.report.json import encode
from tcpcast.report.palette import line_style
from tcpcast.report.quantity import metric_label, scale_for_unit
from tcpcast.report.summary import describe_scenario
from tcpcast.report.verdict import value_text, verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

    from tcpcast.answer import Metric
    from tcpcast.comparison.ab_test import ABTest, PairedMetric
    from tcpcast.report.document import Part

Names = tuple[str, str]
"""Names of both scenarios."""


def ab_parts(test: ABTest, names: Names) -> list[Part]:
    """Return what ``tcpcast compare A B`` prints."""
    parts: list[Part] = [
        Paragraph(describe_scenario(scenario), lead=f"{name}: ")
        for name, scenario in zip(names, test.scenarios, strict=True)
    ]
    verdict = verdict_text(find_verdict(test, names))
    pairs = (
        f"packet, {count_text(test.replications, 'pair')} of runs with the same random numbers, "
        + (
            f"RTT of each pair within {100 * test.rtt_spread:g} % of the scenario's"
            if test.rtt_spread
            else "for exactly these round-trip times"
        )
    )
    # The first metrics of a report on the traffic, and the one of the verdict.
    kinds = {group.traffic.kind for each in test.scenarios for group in each.populations}
    rows = [
        each
        for each in test.metrics
        if each is test.main or {"path", *kinds} & {*METRICS[each.name].headline_of}
    ]
    values = [[_text(row.name, row.values[place]) for row in rows] for place in (0, 1)]
    return [
        *parts,
        BLANK_LINE,
        Paragraph(verdict),
        BLANK_LINE,
        Table(
            [
                Column("metric", [metric_label(row.name) for row in rows], right=False),
                *(Column(name, cells) for name, cells in zip(names, values, strict=True)),
                Column("difference", [_text(row.name, row.difference) for row in rows]),
                Column("users per group", [_users_text(row) for row in rows]),
            ],
            emphasized_rows=[rows.index(test.main)],
        ),
        Paragraph(pairs, "aside", " "),
    ]


def _text(name: str, metric: Metric) -> str:
    return value_text(Finding(metric=name, value=metric))


def _users_text(row: PairedMetric) -> str:
    if row.users is not None:
        return f"{row.users:,}"
    return "-" if row.is_significant else "no difference"


def ab_json(test: ABTest, names: Names) -> str:
    """Return the comparison as a JSON document."""
    findings = find_verdict(test, names)
    return encode(
        {
            "scenarios": {
                name: scenario.resolved()
                for name, scenario in zip("AB", test.scenarios, strict=True)
            },
            "verdict": verdict_text(findings),
            "findings": [finding.to_json() for finding in findings],
            "pairs": test.replications,
            "rtt_spread": test.rtt_spread,
            "metrics": {row.name: _row(row) for row in test.metrics},
        }
    )


def _row(row: PairedMetric) -> dict[str, Any]:
    parts = {"A": row.values[0], "B": row.values[1], "difference": row.difference}
    return {
        key: {end: finite_or_none(getattr(part, end)) for end in ("value", "low", "high")}
        for key, part in parts.items()
    } | {"unit": METRICS[row.name].unit, "users_per_group": row.users}


def ab_csv(test: ABTest) -> str:
    """Return one line per metric."""
    parts = ("A", "B", "difference")
    columns = [f"{part}{end}" for part in parts for end in ("", "_low", "_high")]
    lines = [",".join(["metric", "unit", *columns, "users_per_group"])]
    for row in test.metrics:
        cells = [
            "" if (value := finite_or_none(getattr(part, end))) is None else repr(value)
            for part in (*row.values, row.difference)
            for end in ("value", "low", "high")
        ]
        users = "" if row.users is None else str(row.users)
        lines.append(",".join([row.name, METRICS[row.name].unit, *cells, users]))
    return "\n".join(lines) + "\n"


def iter_ab_figures(test: ABTest, names: Names) -> Iterator[tuple[str, Figure]]:
    """Yield the figure of both distributions: single times, or values of the replications."""
    name = test.main.name
    kind = PERCENTILES.get(name, (MEANS.get(name, ""), 0))[0]
    curves = [_curve(answer.tables, name, kind) for answer in test.answers]
    scale = scale_for_unit(METRICS[name].unit, max(float(x[-1]) for x, _ in curves))
    series = [
        Series(x / scale.factor, y, label, line_style(place))
        for place, ((x, y), label) in enumerate(zip(curves, names, strict=True))
    ]
    low, high = (
        fold(float(np.asarray(each.x)[end]) for each in series)
        for fold, end in ((min, 0), (max, -1))
    )
    what = metric_label(kind) if kind else f"{metric_label(name)} of a run"
    x = Axis(f"{what} ({scale.unit})", min(0.0, low), high)
    y = Axis("share below", 0, 1, ticks=percent_tick)
    chart = Chart(
        title=verdict_text(find_verdict(test, names), intervals=False).removesuffix("."),
        panels=[Panel(series, x, y)],
        subtitle=scenario_subtitle(test.scenarios[0]),
    )
    yield "distributions", chart.draw()


def _curve(tables: Any, name: str, kind: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return values and the share of smaller ones."""
    table = tables["time_distribution"]
    chosen = table["kind"] == kind
    if chosen.any():
        low, high, count = (table[key][chosen] for key in ("low_s", "high_s", "count"))
        # Shares of 0.1 % at the upper end are not shown.
        below = np.concatenate(([0.0], np.cumsum(count) / count.sum()))
        end = int(np.searchsorted(below, 0.999)) + 1
        return np.append(low[:1], high)[:end], below[:end]
    values = np.sort(tables["by_replication"][name])
    values = values[np.isfinite(values)]
    return values, np.arange(1, values.size + 1) / values.size
