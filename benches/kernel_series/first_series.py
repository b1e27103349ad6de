"""First series of measurements, experiments A to E, read from its original files.

Long flows under random loss (A, B, C1) and at a drop-tail queue (C2), files of 1 to 30 segments
(D), and on/off sources (E); Linux 6.18, one line per run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast_papers.kernel.cells import (
    DROP_TAIL,
    LOSS,
    ON_OFF,
    REALISED_LOSS,
    TRANSFERS,
    Cell,
    FlowGroup,
    Measured,
    mean_over_runs,
)

from benches.kernel_series.pooling import (
    mean_count_of_column,
    mean_of_column,
    ratio_of_sums,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Run = dict[str, str]

STACKS = {
    "reno_classic": "linux-reno-classic",
    "reno_sack_modern": "linux-reno",
    "cubic_modern": "linux-cubic",
    "bbr_modern": "linux-bbr",
    "reno_gso_off": "linux-reno",
    "reno_sack_norack_notlp": "linux-reno",
    "reno_sack_rack_notlp": "linux-reno",
}
"""Names of the stacks in the measurements, and here."""

UNSUPPORTED_VARIANTS = {
    "frto2": "linux-reno-classic has no F-RTO, and no key enables it",
    "maxreord300": "linux-reno-classic has a fixed duplicate threshold of 3",
    "sack_norack_notlp": "no key disables tail loss probes",
    "sack_rack_notlp": "no key disables tail loss probes",
}
"""Variants that no stack supports, and the reasons."""

SEGMENT_BYTES = 1448


def long_flow_cells(series: str, runs: Sequence[Run]) -> Iterator[Cell]:
    """Return the cells of ``A_pftk_grid``, ``B_modern_stacks``, ``C1_*`` and ``C2_*``."""
    keys = ("variant", "stack", "rtt_ms", "asked_loss_prob", "n_flows")
    for first, same in _runs_by_cell(runs, keys):
        loss = float(first.get("asked_loss_prob", 0))
        count, variant = int(first["n_flows"]), first["variant"]
        stack = STACKS[first["stack"]]
        chance = f" p{loss:g}" if loss else f" B{first['queue_limit_pkts']}"
        yield Cell(
            series,
            f"{variant} {stack} {first['rtt_ms']}ms{chance} n{count}",
            LOSS if loss else DROP_TAIL,
            (FlowGroup(stack, float(first["rtt_ms"]), count),),
            float(first["rate_bps"]),
            waiting_pkts=int(first["queue_limit_pkts"]),
            loss=loss,
            warmup_s=float(first["warmup_s"]),
            # Some files count the specified time from the start, some from the end of the warm-up.
            duration_s=round(float(first["meas_s"]), 1),
            tcp=tuple(_tcp_keys(first).items()),
            unsupported=UNSUPPORTED_VARIANTS.get(variant, ""),
            measured=_measure_long_flows(same, at_queue=not loss),
        )


def _tcp_keys(run: Run) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if run.get("route_quickack") == "1":
        keys["delayed_acks"] = False
    if run.get("tcp_timestamps") == "0":
        keys["timestamps"] = False
    held = run.get("rcv_window_bytes_count") or run.get("window_limit_bytes")
    if held:
        keys["receiver_window"] = int(held) // SEGMENT_BYTES
    return keys


def _measure_long_flows(same: Sequence[Run], *, at_queue: bool) -> dict[str, Measured]:
    result = {
        "goodput_bps": mean_of_column(same, "goodput_payload_bps"),
        "loss_indications": mean_count_of_column(same, "loss_indications_count"),
        "timeouts": mean_count_of_column(same, "timeouts_all_count"),
        "send_rate_pps": mean_of_column(same, "seg_rate_pps"),
        "loss_indication_ratio": mean_of_column(same, "loss_indications_per_data_seg"),
        "srtt_s": mean_of_column(same, "mean_srtt_ms", 1e-3),
    }
    if at_queue:
        result["loss_ratio"] = mean_of_column(same, "measured_loss_ratio_data")
    else:
        result[REALISED_LOSS] = ratio_of_sums(same, "fwd_drop_rand_data_count", "fwd_data_in_count")
    return result


def short_transfer_cells(series: str, runs: Sequence[Run]) -> Iterator[Cell]:
    """Return the cells of ``D_short_transfers``."""
    keys = ("stack", "initcwnd_pkts", "asked_loss_prob", "file_size_segs")
    for first, same in _runs_by_cell(runs, keys):
        loss, size = float(first["asked_loss_prob"]), int(first["file_size_segs"])
        stack, window = STACKS[first["stack"]], int(first["initcwnd_pkts"])
        measured = {
            "delivery_time_s": mean_of_column(same, "xfer_from_accept_s_mean"),
            "delivery_time_p99_s": mean_of_column(same, "xfer_from_accept_s_p99"),
            "total_time_s": mean_of_column(same, "total_from_connect_s_mean"),
        }
        yield Cell(
            series,
            f"{stack} iw{window} p{loss:g} {size}segs",
            TRANSFERS,
            (FlowGroup(stack, float(first["rtt_ms"])),),
            float(first["rate_bps"]),
            waiting_pkts=int(first["queue_limit_pkts"]),
            loss=loss,
            traffic=(("size", [f"{size}pkt"]),),
            tcp=(("initial_window", window),),
            measured=measured,
        )


def on_off_cells(series: str, runs: Sequence[Run]) -> Iterator[Cell]:
    """Return the cells of ``E_onoff_sources``, with the realised mean size."""
    for first, same in _runs_by_cell(runs, ("stack",)):
        size = mean_over_runs([float(run["mean_file_segs"]) for run in same])
        measured = {
            "completions_per_s": mean_of_column(same, "completed_connections_per_s"),
            "loss_ratio": mean_of_column(same, "measured_loss_ratio_data"),
            "delivery_time_s": mean_of_column(same, "xfer_from_accept_s_mean"),
        }
        stack = STACKS[first["stack"]]
        off = {"distribution": "exponential", "mean": f"{first['off_mean_s']}s"}
        yield Cell(
            series,
            f"{stack} n{first['sources_count']}",
            ON_OFF,
            (FlowGroup(stack, float(first["rtt_ms"]), int(first["sources_count"])),),
            float(first["rate_bps"]),
            waiting_pkts=int(first["queue_limit_pkts"]),
            warmup_s=float(first["warmup_s"]),
            duration_s=round(float(first["meas_s"]), 1),
            traffic=(
                ("off", off),
                ("size", {"distribution": "exponential", "mean": f"{size.mean:.4f}pkt"}),
            ),
            tcp=(("initial_window", int(first["initcwnd_pkts"])),),
            measured=measured,
        )


def _runs_by_cell(runs: Sequence[Run], keys: Sequence[str]) -> Iterator[tuple[Run, list[Run]]]:
    """Return the first run and all runs of each cell, in the order of the file."""
    result: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        result.setdefault(tuple(run.get(key, "") for key in keys), []).append(run)
    return ((same[0], same) for same in result.values())


READERS: dict[str, tuple[str, Callable[[str, Sequence[Run]], Iterator[Cell]]]] = {
    "A_pftk_grid.csv": ("A", long_flow_cells),
    "B_modern_stacks.csv": ("B", long_flow_cells),
    "C1_parallel_flows_random_loss.csv": ("C1", long_flow_cells),
    "C2_parallel_flows_droptail.csv": ("C2", long_flow_cells),
    "D_short_transfers.csv": ("D", short_transfer_cells),
    "E_onoff_sources.csv": ("E", on_off_cells),
}
"""Files of the series: the letter of each, and the function that converts its lines to cells."""
