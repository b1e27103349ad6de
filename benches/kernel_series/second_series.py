"""Second series of measurements, experiments F1 to F6, read from its original files.

Single flows and pairs at drop-tail queues (F1, F2), start-up (F3), CoDel and FQ-CoDel (F4), short
transfers of CUBIC (F5), random loss (F6); Linux 6.18, one line per run, or per transfer in F5.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tcpcast_papers.kernel.cells import (
    AQM,
    DROP_TAIL,
    LOSS,
    PAIRS,
    REALISED_LOSS,
    STARTUP,
    TRANSFERS,
    Cell,
    FlowGroup,
    Measured,
    mean_over_runs,
)

from benches.kernel_series.pooling import (
    mean_count_of_column,
    mean_of_column,
    percentile_with_interval,
    ratio_of_sums,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Run = dict[str, str]

START_INTERVAL_S = 2.0
"""Interval in which long flows start uniformly."""

MIN_STOPPED_RUNS = 3
"""Number of runs whose link clock stopped together with the host, from which only they are used."""

QUEUES = {"droptail": "droptail", "codel": "codel", "fqcodel": "fq_codel"}


def select_usable_runs(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of a cell to pool, by the rule of the measurements' own summaries.

    Late runs are excluded. If at least three of the others have a link clock that stopped together
    with the host, only these runs are used. Otherwise, all runs without a risk of bursts are used.
    A cell may be left without runs.
    """
    in_time = [run for run in runs if run["late"] == "0"]
    stopped = [run for run in in_time if run["link_clock"] == "stops"]
    if len(stopped) >= MIN_STOPPED_RUNS:
        return stopped
    return [run for run in in_time if run["burst_risk"] == "0"]


def long_flow_cells(series: str, runs: Sequence[Run]) -> Iterator[Cell]:
    """Return the cells of ``F1``, ``F2``, ``F4`` and ``F6``."""
    for name, every in _runs_by_cell(runs).items():
        same = select_usable_runs(every)
        if not same:
            continue
        first = same[0]
        groups = _parse_groups(first["flows"])
        kind = _kind_of_cell(first, groups)
        yield Cell(
            series,
            name,
            kind,
            groups,
            float(first["rate_bps"]),
            queue=QUEUES[first["discipline"]],
            waiting_pkts=int(first["B_pkts"]),
            loss=float(first["random_loss_prob"]),
            ecn=first["tcp_ecn"] == "1",
            warmup_s=float(first["warmup_s"]),
            duration_s=float(first["meas_s"]),
            start_interval_s=START_INTERVAL_S,
            measured=_measure_several_flows(same)
            if len(groups) > 1 or "a_cc" in first
            else _measure_single_flow(same),
        )


def _kind_of_cell(run: Run, groups: tuple[FlowGroup, ...]) -> str:
    if run["discipline"] != "droptail":
        return AQM
    if len(groups) > 1:
        return PAIRS
    # BBR without loss in a series with loss belongs to the cells with a queue.
    return LOSS if float(run["random_loss_prob"]) else DROP_TAIL


def _measure_single_flow(same: Sequence[Run]) -> dict[str, Measured]:
    result = {
        "goodput_bps": mean_of_column(same, "goodput_bps"),
        "loss_indications": mean_count_of_column(same, "loss_indications_count"),
        "timeouts": mean_count_of_column(same, "timeouts_count"),
        "send_rate_pps": mean_of_column(same, "sent_data_pps"),
        "loss_indication_ratio": mean_of_column(same, "loss_indications_per_data_pkt_ratio"),
        "srtt_s": mean_of_column(same, "mean_srtt_ms", 1e-3),
    }
    if float(same[0]["random_loss_prob"]):
        result[REALISED_LOSS] = ratio_of_sums(same, "drop_random_data_pkts", "sent_data_pkts")
    else:
        result["loss_ratio"] = mean_of_column(same, "lost_data_ratio")
        result["queue_delay_s"] = mean_of_column(same, "qdelay_mean_ms", 1e-3)
    return result


def _measure_several_flows(same: Sequence[Run]) -> dict[str, Measured]:
    result = {
        "goodput_bps": mean_of_column(same, "total_goodput_bps"),
        "loss_ratio": mean_of_column(same, "total_lost_data_ratio"),
        "queue_delay_s": mean_of_column(same, "total_qdelay_mean_ms", 1e-3),
    }
    if same[0].get("b_cc"):
        result["share"] = mean_of_column(same, "a_share_ratio")
    return result


def startup_cells(series: str, runs: Sequence[Run]) -> Iterator[Cell]:
    """Return the cells of ``F3_startup``: bytes delivered at times after the accept."""
    for name, every in _runs_by_cell(runs).items():
        same = select_usable_runs(every)
        if not same:
            continue
        first = same[0]
        times = [column for column in first if column.startswith("delivered_by_") and first[column]]
        yield Cell(
            series,
            name,
            STARTUP,
            _parse_groups(first["flows"]),
            float(first["rate_bps"]),
            waiting_pkts=int(first["B_pkts"]),
            duration_s=float(first["meas_s"]),
            measured={
                f"delivered_by_{column.split('_')[2]}": mean_of_column(same, column)
                for column in times
            },
        )


def short_transfer_cells(series: str, transfers: Sequence[Run]) -> Iterator[Cell]:
    """Return the cells of ``F5_short_transfers``, with one line per transfer."""
    for name, same in _runs_by_cell(transfers).items():
        first = same[0]
        stack, rate, rtt, *_ = name.split()
        times = [float(each["xfer_from_accept_s"]) for each in same]
        yield Cell(
            series,
            name,
            TRANSFERS,
            (FlowGroup(f"linux-{stack}", float(rtt.removesuffix("ms"))),),
            float(rate.removesuffix("M")) * 1e6,
            waiting_pkts=100,
            loss=float(first["random_loss_prob"]),
            traffic=(("size", [f"{int(first['size_segs_count'])}pkt"]),),
            measured={
                "delivery_time_s": mean_over_runs(times),
                "delivery_time_p99_s": percentile_with_interval(times, 0.99),
                "total_time_s": mean_over_runs(
                    [float(each["total_from_connect_s"]) for each in same]
                ),
            },
        )


def _parse_groups(flows: str) -> tuple[FlowGroup, ...]:
    """Parse ``cubic60+cubic60+bbr60``: congestion control and propagation RTT of each flow."""
    result = []
    for each, alike in itertools.groupby(flows.split("+")):
        control = each.rstrip("0123456789.")
        result.append(
            FlowGroup(f"linux-{control}", float(each.removeprefix(control)), len(list(alike)))
        )
    return tuple(result)


def _runs_by_cell(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each cell, by its name without the experiment: ``cubic 20M 60ms B50``."""
    result: dict[str, list[Run]] = {}
    for run in runs:
        _, _, name = run["cell"].partition("|")
        result.setdefault(name.replace("|", " "), []).append(run)
    return result


READERS: dict[str, tuple[str, Callable[[str, Sequence[Run]], Iterator[Cell]]]] = {
    "F1_single_droptail.csv": ("F1", long_flow_cells),
    "F2_two_flows_droptail.csv": ("F2", long_flow_cells),
    "F3_startup.csv": ("F3", startup_cells),
    "F4_aqm.csv": ("F4", long_flow_cells),
    "F5_short_transfers.csv": ("F5", short_transfer_cells),
    "F6_random_loss.csv": ("F6", long_flow_cells),
}
"""Files of the series: the letter of each, and the function that converts its lines to cells."""
