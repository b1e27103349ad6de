"""Engine ``trace``: measurements of the flows in a packet capture.

All values are measured directly; their intervals are estimated from batches of 100 s.
``captured.fed`` contains the inputs of path models, and ``captured.replay`` the scenario that
reproduces the capture.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import tcpcast
from tcpcast import statistics
from tcpcast.answer import Answer, CaptureInputs, Metric, Status, texts_to_notes
from tcpcast.captures import trace as read
from tcpcast.captures.capture_stats import estimated_loss_ratio
from tcpcast.captures.capture_tables import restrict_to_directions
from tcpcast.captures.congestion_control import BBR
from tcpcast.captures.direction_selection import (
    describe_directions,
    seconds_since,
    select_directions,
)
from tcpcast.captures.link_estimate import link_bps
from tcpcast.captures.model_rates import LINUX_MIN_RTO_MINUS_RTT_S
from tcpcast.captures.models import (
    LOSS_MODELS,
    model_intervals,
    model_rates_by_direction,
)
from tcpcast.captures.models import model_errors as errors_of
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.captures.table import INTERVAL_S
from tcpcast.errors import CaptureError, NotApplicable
from tcpcast.scenario.modern_tcp import get_congestion_control

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.captures import Capture, Table
    from tcpcast.engines import RunOptions
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate

    Column = np.ndarray[Any, Any]

MIN_INTERVALS = 5
"""Minimum number of complete batches of 100 s for an interval."""

BBR_WARNING = (
    "the models of Reno's and CUBIC's windows do not apply, because the sender looks like BBR: "
    "its rate depends on the capacity of the path, not on losses"
)

FLOW_TABLE_COLUMNS = (
    "connection", "data_packets", "send_rate_pps", "goodput_bps", "loss_indication_ratio", "td",
    "to", "timeouts", "t0_s", "rtt_mean_s", "w_max_pkts", "packets_per_ack", "retransmit_ratio",
)  # fmt: skip
"""Columns of the table ``by_flow``, as in ``tcpcast trace --csv``."""


def raise_if_unsupported(scenario: Scenario) -> None:
    """Raise NotApplicable unless the traffic is a capture."""
    if scenario.captured is None:
        raise NotApplicable(
            'engine trace needs a capture: traffic = { kind = "capture", file = … }'
        )


def trace(scenario: Scenario, options: RunOptions) -> Answer:  # noqa: ARG001 - an engine's signature
    """Measure the chosen flows of a capture, as one aggregate.

    The metrics are the simulator metrics that one capture point can measure. ``completion_time_s``
    is present if the capture contains each flow from handshake to end: the time from the first to
    the last data packet, plus one mean RTT for the last ACK. Tables: ``by_flow``,
    ``model_intervals`` and ``models``.

    Raises
    ------
    NotApplicable
        Traffic of another kind.
    CaptureError
        The file is not a capture, or has no such connection.
    """
    raise_if_unsupported(scenario)
    captured = scenario.captured
    assert captured is not None
    capture = read(captured.file)
    selected = restrict_to_directions(
        capture, np.sort(select_directions(capture, captured.connection))
    )
    aggregate = {name: column[0] for name, column in selected.groups(by="all").items()}
    tables, warnings = _make_replay_scenario(selected)
    answer = Answer(
        engine="trace",
        kind="measurement",
        metrics=_aggregate_metrics(selected, aggregate),
        tables=_capture_tables(selected),
        notes=texts_to_notes([*capture.warnings, *warnings]),
        provenance={
            "version": tcpcast.__version__,
            "scenario": scenario.digest(),
            "capture": captured.file,
            "sha256": _compute_file_digest(captured.file),
            "flows": describe_directions(selected, np.arange(selected.connections["src"].size)),
            "interval": f"95 %, jackknife over intervals of {INTERVAL_S} s",
        },
        captured=CaptureInputs(_formula_inputs(selected, aggregate), tables),
    )
    if capture.damaged or capture.interrupted:
        status = Status.INTERRUPTED if capture.interrupted else Status.PARTIAL
        why = "interrupted" if capture.interrupted else "the capture is damaged"
        answer.mark_incomplete(
            f"{why}; the results cover only the packets before this point", status
        )
    return answer


def _make_replay_scenario(selected: Capture) -> tuple[dict[str, Any], list[str]]:
    """Return the scenario that reproduces the capture, with warnings; {} if there is none."""
    try:
        written = make_replay_scenario(selected)
    except CaptureError:
        return {}, []
    notes = [BBR_WARNING] if get_congestion_control(written.tables["tcp"]["stack"]) == BBR else []
    return written.tables, [*notes, *written.warnings]


def _compute_file_digest(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise CaptureError(f"{file}: {error.strerror or error}") from error


def _aggregate_metrics(selected: Capture, aggregate: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the metrics of the aggregate, with intervals if the capture is long enough."""
    table = selected.connections
    payload = aggregate["unique_bytes"] / max(aggregate["bytes"], 1)
    indications = aggregate["td"] + aggregate["to"]
    values = {
        "rtt_mean_s": aggregate["rtt_mean_s"],
        "send_rate_pps": aggregate["send_rate_pps"],
        "goodput_pps": aggregate["send_rate_pps"] * payload,
        "goodput_bps": aggregate["goodput_bps"],
        "loss_indication_ratio": aggregate["loss_indication_ratio"],
        "timeout_share": aggregate["to"] / indications if indications else math.nan,
        "t0_s": aggregate["t0_s"],
        "retransmit_ratio": aggregate["retransmissions"] / aggregate["packets_sent"],
    }
    if table["src"].size > 1:
        values["loss_event_ratio_cumulative"] = aggregate["loss_event_ratio_cumulative"]
        values["jain_index"] = aggregate["jain_index"]
    whole = (table["end"] == "closed") & table["syn_captured"]
    if whole.all():
        times = table["duration_s"] + table["rtt_mean_s"]
        values["completion_time_s"] = float(times.mean())
    spread = _estimate_ratios_from_batches(selected)
    metrics = {
        name: _metric_with_scaled_interval(float(value), spread.get(name))
        for name, value in values.items()
        if np.isfinite(value)
    }
    counts = {"td_indications": "td", "to_indications": "to", "timeouts": "timeouts"}
    return metrics | {name: Metric(float(aggregate[column])) for name, column in counts.items()}


def _metric_with_scaled_interval(value: float, estimate: Estimate | None) -> Metric:
    """Scale an interval from complete batches to the value of the full capture."""
    if estimate is None or estimate.low is None or estimate.high is None or not estimate.value:
        return Metric(value)
    share = value / estimate.value
    return Metric(value, share * estimate.low, share * estimate.high)


def _estimate_ratios_from_batches(selected: Capture) -> dict[str, Estimate | None]:
    """Estimate ratios from batches of 100 s of all flows; {} if they are too few."""
    units = _sum_per_interval(selected)
    if np.count_nonzero(units["time"] >= INTERVAL_S) < MIN_INTERVALS:
        return {}
    sent, time = units["data_packets"], units["time"]
    indications = units["td"] + units["to"]
    first = sent - units["retransmissions"]

    def share(events: Column, of: Column) -> Estimate | None:
        return statistics.estimate_ratio(events, of, events=True, maximum=1.0)

    return {
        "rtt_mean_s": statistics.estimate_ratio(units["rtt_sum"], units["rtt_samples"]),
        "send_rate_pps": statistics.estimate_ratio(sent, time),
        "goodput_pps": statistics.estimate_ratio(first, time),
        "goodput_bps": statistics.estimate_ratio(first, time),
        "loss_indication_ratio": share(indications, sent),
        "timeout_share": share(units["to"], indications),
        "retransmit_ratio": share(units["retransmissions"], sent),
    }


def _sum_per_interval(selected: Capture) -> dict[str, Column]:
    """Sum the 100 s intervals of all flows that begin in the same 100 s of the capture."""
    table, flows = selected.intervals, selected.connections
    offset = seconds_since(flows["start"], flows["start"].min())
    length = float((offset + np.nan_to_num(flows["duration_s"])).max())
    unit = ((offset[table["direction"]] + table["start_s"]) // INTERVAL_S).astype(np.int64)
    count = int(unit.max(initial=-1)) + 1
    rtt = np.nan_to_num(table["rtt_sample_mean_s"]) * table["rtt_samples"]
    names = ("data_packets", "retransmissions", "td", "to", "rtt_samples")
    columns = {name: table[name] for name in names} | {"rtt_sum": rtt}
    sums = {
        name: np.bincount(unit, weights=column, minlength=count) for name, column in columns.items()
    }
    begin = INTERVAL_S * np.arange(count)
    return sums | {"time": np.clip(length - begin, 0.0, INTERVAL_S)}


def _capture_tables(selected: Capture) -> dict[str, Table]:
    flows = selected.connections
    rows = np.arange(flows["src"].size)
    ends = [describe_directions(selected, rows[[row]]) for row in rows]
    name = np.array(ends, dtype=np.str_)
    intervals = model_intervals(selected, rows)
    direction = intervals.pop("direction")
    of_all = model_rates_by_direction(selected, rows)
    errors = errors_of({"direction": np.zeros_like(direction), **intervals})
    return {
        "by_flow": {"name": name, **{column: flows[column] for column in FLOW_TABLE_COLUMNS}},
        "model_intervals": {"name": name[direction], **intervals},
        "models": {
            "model": np.array(list(LOSS_MODELS)),
            "send_rate_pps": np.array([np.nansum(of_all[f"{model}_pps"]) for model in LOSS_MODELS]),
            "trusted": np.array([of_all[f"{model}_trusted"].all() for model in LOSS_MODELS]),
            "interval_error": np.array(
                [errors[model][0] if errors[model].size else math.nan for model in LOSS_MODELS]
            ),
        },
    }


def _formula_inputs(selected: Capture, aggregate: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the inputs of formulas that are not metrics; None if the capture lacks one."""
    table = selected.connections
    least = table["rtt_min_s"][np.isfinite(table["rtt_min_s"])]
    rtt, timer = float(aggregate["rtt_mean_s"]), float(aggregate["t0_s"])
    b = max(1.0, float(np.nan_to_num(aggregate["packets_per_ack"], nan=1.0)))
    known = {
        "t0_s": timer if timer > 0 else rtt + LINUX_MIN_RTO_MINUS_RTT_S,
        "flows": max(1, round(float(aggregate["parallel_flows"]))),
        "packets_per_ack": b if str(aggregate["window_grows_by"]) != "packets" else 1.0,
        "w_max_pkts": float(aggregate["w_max_pkts"]),
        "loss_ratio": estimated_loss_ratio(table),
        "rtt_min_s": float(least.min(initial=math.inf)),
        "bottleneck_pps": link_bps(selected) / (8 * float(table["segment_bytes"].max())),
    }
    return {name: value if math.isfinite(value) else None for name, value in known.items()}
