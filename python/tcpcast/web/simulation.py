"""Simulated points of the page: results, verdict, and the run over time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import finite_or_none
from tcpcast.engines import RunOptions, answer
from tcpcast.errors import TcpcastError
from tcpcast.limit_names import limit_name
from tcpcast.report.summary import MAX_WARNINGS
from tcpcast.web.evaluation import (
    call_with_field_errors,
    displayed_value,
    point_warnings,
    read_request,
    requested_axis,
    simulation_heading,
    values_along_axis,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario
    from tcpcast.web.questions import Question
    from tcpcast.web.questions.fields import Values

    Send = Callable[[dict[str, Any]], None]

SIMULATED_POINTS = 5
"""Number of points of a simulation: the requested point, then others along the axis."""

MAX_SIMULATION_S = 60.0
"""Time in seconds after which no further point is started."""

MAX_CHART_POINTS = 256
"""Maximum number of completion times in a chart."""

REPEATED_RUN_LIMIT_S = 5
"""Time limit in seconds of a run that is repeated for a report."""


def simulate(request: Mapping[str, Any], send: Send) -> dict[str, Any]:
    """Simulate the requested point, then other points along the axis, and report each result.

    Parameters
    ----------
    request
        Keys of :func:`tcpcast.web.evaluation.evaluate_curve`.
    send
        Called with ``{"progress": share}`` and ``{"point": {...}}``. The first point also has
        ``heading`` (verdict, sentences and warnings) and ``over_time``.

    Raises
    ------
    FieldError, TcpcastError
        As for a curve; or the simulation does not apply.
    """
    asked, values = read_request(request)
    axis = requested_axis(asked, request)
    return call_with_field_errors(asked, lambda: _simulate_points(asked, values, axis, send))


def _simulate_points(asked: Question, values: Values, axis: str, send: Send) -> dict[str, Any]:
    here = asked.value_on_axis(values, axis)
    others = values_along_axis(asked, axis, here, SIMULATED_POINTS - 1)
    texts = list(dict.fromkeys([here, *others]))[:SIMULATED_POINTS]
    ends = time.monotonic() + MAX_SIMULATION_S
    done = 0
    for at, text in enumerate(texts):
        if at and time.monotonic() > ends:
            break

        def progress(share: float, at: int = at) -> None:
            send({"progress": (at + share) / len(texts)})

        at_point = {**values, axis: text}
        options = RunOptions(progress=progress, over_time=at == 0)
        scenario = asked.scenario(at_point)
        (found,) = answer(scenario, ["packet"], options)
        if not found.applies:
            raise TcpcastError(found.refusal(asked.names))
        point = _point_as_json(asked, at_point, found, axis)
        if at == 0:
            point |= {
                "heading": simulation_heading(asked, at_point, found),
                "over_time": list(_over_time_charts(found, scenario)),
            }
        send({"point": point})
        done += 1
    return {"points": done, "left_out": len(texts) - done}


def _point_as_json(asked: Question, values: Values, found: Answer, axis: str) -> dict[str, Any]:
    metrics = asked.simulated_metrics(values, found)
    return {
        "x": asked.field(axis).number(values[axis]),
        "text": values[axis],
        "regime": limit_name(found.regime or ""),
        "wall_s": found.wall_s,
        "warnings": point_warnings(asked, found)[:MAX_WARNINGS],
        "values": [
            {
                "name": name,
                "group": None if asked.metrics_by_class is None else at,
                **displayed_value(asked.metric, metric),
            }
            for at, (name, metric) in enumerate(metrics.items())
        ],
    }


def _over_time_charts(found: Answer, scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield charts: congestion windows and goodput in equal slots, or times of transfers.

    Each chart has ``label`` and ``unit`` of its values, ``across`` and ``x`` (ends of slots or
    completion times, in seconds), ``warmup_s``, and ``lines`` with ``name``, ``values``, and
    ``low`` and ``high``: minimum and maximum of a window, otherwise a 95 % interval.
    """
    groups = {group.name: group for group in scenario.populations}
    several = len(groups) > 1
    warmup = {"warmup_s": found.warmup_s or 0.0}

    def class_text(name: str) -> str:
        return f"{name} ({groups[name].tcp.stack})"

    windows = found.tables.get("windows_over_time")
    if windows is not None:
        names = [
            class_text(str(name)) if several else f"flow {flow}"
            for name, flow in zip(windows["class"], windows["flow"], strict=True)
        ]
        columns = ("mean_pkts", "low_pkts", "high_pkts")
        yield _chart_json("Congestion window", "packet", windows, (names, columns)) | warmup
    flows = found.tables.get("flows_over_time")
    if flows is not None:
        names = [class_text(str(name)) if several else "total" for name in flows["class"]]
        columns = ("goodput_bps", "goodput_bps_low", "goodput_bps_high")
        yield _chart_json("Goodput", "bit/s", flows, (names, columns)) | warmup
    times = found.tables.get("completion_distribution")
    if times is not None and windows is None:
        step = -(-len(times["time_s"]) // MAX_CHART_POINTS)
        table = {name: column[::-step][::-1] for name, column in times.items()}
        names, columns = ["transfers"] * len(table["time_s"]), ("share", "low", "high")
        chart = _chart_json("Share of transfers", "%", table, (names, columns), "time_s")
        yield chart | {"across": "Completion time"}


def _chart_json(
    label: str,
    unit: str,
    table: Mapping[str, np.ndarray[Any, Any]],
    lines: tuple[list[str], tuple[str, str, str]],
    across: str = "to_s",
) -> dict[str, Any]:
    """Return one line per name; slots before the start of a flow have no value."""
    names, columns = lines
    ends = np.unique(table[across])
    drawn = []
    for name in dict.fromkeys(names):
        rows = np.array([each == name for each in names])
        places = np.searchsorted(ends, table[across][rows])
        values = np.full((len(columns), len(ends)), np.nan)
        values[:, places] = [table[column][rows] for column in columns]
        middle, low, high = ([finite_or_none(float(v)) for v in row] for row in values)
        drawn.append({"name": name, "values": middle, "low": low, "high": high})
    x = [float(end) for end in ends]
    return {"label": label, "unit": unit, "across": "Time", "x": x, "lines": drawn, "warmup_s": 0.0}


def run_over_time(request: Mapping[str, Any]) -> tuple[Scenario, Answer]:
    """Repeat the requested simulation for figures of the run over time.

    The run stops after :data:`REPEATED_RUN_LIMIT_S`; until then it is identical to the earlier one.

    Parameters
    ----------
    request
        Keys of :func:`tcpcast.web.evaluation.evaluate`.

    Raises
    ------
    FieldError, TcpcastError
        As for evaluate.
    """
    asked, values = read_request(request)
    scenario = asked.scenario(values).with_changes({"run.max_wall": f"{REPEATED_RUN_LIMIT_S}s"})
    (found,) = answer(scenario, ["packet"], RunOptions(over_time=True))
    return scenario, found
