"""Measurements of tcpcast in captures at a Linux sender against the counters of its kernel."""

import csv
from collections.abc import Iterator
from pathlib import Path

import tcpcast


def rows(folder: Path) -> Iterator[list[str]]:
    """Yield all possible rows of both tables of ``docs/background/captures.md``."""
    with (folder / "truth" / "SUMMARY.csv").open(encoding="utf-8", newline="") as content:
        for truth in csv.DictReader(content):
            yield _emulated(folder / truth["capture"], truth)
    with (folder / "kernel" / "pcaps.csv").open(encoding="utf-8", newline="") as content:
        for truth in csv.DictReader(content):
            yield _between_namespaces(folder / "kernel" / truth["pcap_file"], truth)


def busiest(path: Path) -> dict[str, float]:
    table = tcpcast.trace(path).connections
    place = int(table["bytes"].argmax())
    return {name: column[place] for name, column in table.items() if column.dtype.kind in "iuf"}


def _emulated(path: Path, truth: dict[str, str]) -> list[str]:
    result = busiest(path)
    timer = f"{1e3 * result['t0_s']:.0f} / {float(truth['kernel_rto_backoff0_mean_ms']):.0f}"
    return [
        f"`{path.stem}`",
        f"{result['retransmissions']} / {truth['total_retrans']}",
        f"{result['timeouts']} / {truth['total_rto']}",
        f"{result['to']} / {truth['rto_recoveries']}",
        f"{1e3 * result['rtt_mean_s']:.1f} / {float(truth['kernel_srtt_mean_ms']):.1f}",
        f"{1e3 * result['rtt_karn_mean_s']:.1f}",
        timer if result["to"] else "",
        f"{result['td']} + {result['to']}",
        f"{result['td_paper']} + {result['to_paper']}",
    ]


def _between_namespaces(path: Path, truth: dict[str, str]) -> list[str]:
    result = busiest(path)
    return [
        f"`{path.stem}`",
        f"{result['data_packets']} / {truth['tcpi_data_segs_out_count']}",
        f"{result['retransmissions']} / {truth['retransmitted_segs_count']}",
        f"{result['td']} / {truth['fast_recovery_episodes_count']}",
        f"{result['to']} / {truth['timeout_sequences_count']}",
        f"{result['timeouts']} / {truth['timeouts_all_count']}",
        f"{1e3 * result['rtt_mean_s']:.2f} / {float(truth['mean_srtt_ms']):.2f}",
    ]
