"""No sentence contradicts a number, and no number depends on the time of day.

The captures of the kernel are outside the project, in ``shared/captures`` next to it; without them
only simulated captures are examined.
"""

from __future__ import annotations

import gzip
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from replays import simulated
from tcpcast.captures import rows
from tcpcast.captures.advice import advice
from tcpcast.captures.congestion_control import BBR, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.captures import Capture, Table

FOLDERS = [parent / "shared/captures" for parent in Path(__file__).resolve().parents]
FOLDER = next((folder for folder in FOLDERS if folder.is_dir()), Path("nowhere"))
OFFLOAD = sorted((FOLDER / "offload").glob("*.pcap.gz"))
RECORDED = OFFLOAD + sorted(FOLDER.glob("*.pcap*"))

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "2%"}},
    "traffic": {"kind": "bulk", "flows": 2},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "30s", "warmup": "0s"},
}
SIMULATED: dict[str, dict[str, Any]] = {
    "loss": {},
    "queue": {"network.bottleneck.loss": "0%"},
    "window": {"network.bottleneck.loss": "0%", "tcp.receiver_window": 8},
    "much loss": {"network.bottleneck.loss": "8%"},
    "cubic": {"tcp": {"stack": "linux-cubic"}, "network.bottleneck.loss": "0.5%"},
    "bbr": {"tcp": {"stack": "linux-bbr"}, "network.bottleneck.loss": "1%"},
}

ROUNDED = 1.006
"""A rate in a sentence has three digits."""
UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
RATE = r"(\d[\d,]*(?:\.\d+)?) ([kMG]?bit/s)"
AT_LEAST_THE_GOODPUT = (
    rf"the link carries at most {RATE}",
    rf"the link \({RATE}\) is the limit",
    rf"flows: {RATE} in total",
    rf"full link at {RATE}",
    rf"PFTK predicts {RATE}",
    rf"allows up to {RATE}",
)
"""Sentences that name an upper bound of the rate."""


def number(text: str) -> float:
    return float(text.replace(",", ""))


def faults_of_shares(row: dict[str, Any]) -> Iterator[str]:
    shares = [row[name] for name in row if name.startswith("share_")]
    known = [share for share in shares if share is not None]
    if known:
        if len(known) < len(shares) or abs(sum(known) - 1) > 1e-6:
            yield f"shares add up to {sum(known)}"
        if min(known) < 0 or max(known) > 1:
            yield "a share is no share"


def faults_of_counts(row: dict[str, Any]) -> Iterator[str]:
    if row["retransmissions"] > row["data_packets"]:
        yield "more retransmissions than packets"
    if row["unique_bytes"] > row["bytes"]:
        yield "more unique bytes than bytes"
    losses = row["td"] + row["to"]
    if losses > row["data_packets"]:
        yield "more loss indications than packets"
    if row["td"] > 0 and row["retransmissions"] == 0:
        yield "fast retransmits without a retransmission"
    if losses == 0 and (row["loss_indication_ratio"] or 0) > 0:
        yield "p without a loss indication"
    if row["spurious_dsack"] + row["spurious_eifel"] > row["retransmissions"]:
        yield "more needless retransmissions than retransmissions"


def faults_of_rates(row: dict[str, Any]) -> Iterator[str]:
    goodput, throughput = row["goodput_bps"], row["throughput_bps"]
    if goodput is not None and throughput is not None and goodput > throughput * (1 + 1e-9):
        yield "goodput above throughput"
    link = row["bottleneck_rate_bps"]
    if link is not None and goodput is not None and link * ROUNDED < goodput:
        yield f"link {link} below the goodput {goodput}"
    times = [row[f"rtt_{name}_s"] for name in ("min", "p50", "p95", "p99", "max")]
    if None not in times and times != sorted(times):
        yield f"RTT quantiles out of order: {times}"


def faults_of_cause(row: dict[str, Any]) -> Iterator[str]:
    losses = row["td"] + row["to"]
    cause = row["cause"]
    if cause in {"loss", "policer"} and losses == 0:
        yield f"{cause} without a loss"
    if cause == "timeout" and row["timeouts"] == 0:
        yield "timeouts without a timeout"
    if cause == "reordering" and row["late_packets"] + row["out_of_order"] == 0:
        yield "reordering without late packets"
    if cause in {"application", "application_pacing"} and row["looks_like"] != UNKNOWN:
        yield f"looks like {row['looks_like']} although the window was not the limit"
    if row["sharing_flows"] > 1 and row["sharing_bps"] * ROUNDED < row["goodput_bps"]:
        yield "several flows have less than one of them"


def faults_of_text(row: dict[str, Any], text: str) -> Iterator[str]:
    losses = row["td"] + row["to"]
    if "othing was lost" in text and row["retransmissions"] + losses > 0:
        yield "nothing was lost, but retransmitted"
    if any(number(found) > 100 for found in re.findall(r"([\d.,]+) %", text)):
        yield "more than 100 %"
    for found in re.findall(r"one loss indication per ([\d,.]+) packets", text):
        if abs(number(found) * losses / row["data_packets"] - 1) > 0.51 / number(found) + 0.01:
            yield f"{found} packets per loss indication"
    goodput = row["goodput_bps"] or 0.0
    for pattern in AT_LEAST_THE_GOODPUT:
        for value, unit in re.findall(pattern, text):
            if number(value) * UNITS[unit] * ROUNDED < goodput:
                yield f"at most {value} {unit}, goodput {goodput}"


def contradictions(capture: Capture) -> list[str]:
    table = capture.connections
    found = []
    for row, text in zip(rows(table), advice(table).tolist(), strict=True):
        faults = [
            *faults_of_shares(row),
            *faults_of_counts(row),
            *faults_of_rates(row),
            *faults_of_cause(row),
            *faults_of_text(row, text),
        ]
        found += [f"{row['src']} > {row['dst']}: {fault}; {text}" for fault in faults]
    return found


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_no_sentence_of_a_recorded_capture_contradicts_a_number(path: Path) -> None:
    assert contradictions(tcpcast.trace(path)) == []


@pytest.mark.parametrize("name", SIMULATED)
def test_no_sentence_of_a_simulated_capture_contradicts_a_number(name: str, tmp_path: Path) -> None:
    _, _, capture = simulated(BASE, tmp_path, SIMULATED[name])
    assert contradictions(capture) == []


@pytest.mark.parametrize("path", OFFLOAD, ids=lambda path: path.name)
def test_a_capture_of_cubic_does_not_look_like_bbr(path: Path) -> None:
    assert BBR not in tcpcast.trace(path).connections["looks_like"].tolist()


def later(path: Path, target: Path, shift_ns: int) -> Path:
    """Write a capture with all its times later."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    unit = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}[struct.unpack_from("<I", content)[0]]
    whole, at = bytearray(content[:24]), 24
    while at < len(content):
        seconds, part, kept, length = struct.unpack_from("<IIII", content, at)
        time_ns = seconds * 10**9 + part * unit + shift_ns
        whole += struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9 // unit, kept, length)
        whole += content[at + 16 : at + 16 + kept]
        at += 16 + kept
    target.write_bytes(whole)
    return target


def differences(before: Table, after: Table) -> list[str]:
    """Return the columns that differ by more than rounding."""
    found = []
    for name, column in before.items():
        if name in {"start", "time"}:
            continue
        same = (
            np.allclose(column, after[name], rtol=1e-6, atol=1e-12, equal_nan=True)
            if column.dtype.kind == "f"
            else np.array_equal(column, after[name])
        )
        found += [] if same else [name]
    return found


SHIFTS_NS = (1_000, 137_000_000, 86_400_000_000_000 + 311_000_000)


@pytest.mark.parametrize("path", OFFLOAD[::3], ids=lambda path: path.name)
def test_no_figure_of_a_recorded_capture_depends_on_the_time(path: Path, tmp_path: Path) -> None:
    before = tcpcast.trace(path)
    for shift_ns in SHIFTS_NS[1:2]:
        after = tcpcast.trace(later(path, tmp_path / "later.pcap", shift_ns))
        assert differences(before.connections, after.connections) == []


@pytest.mark.parametrize("name", SIMULATED)
def test_no_figure_of_a_simulated_capture_depends_on_the_time(name: str, tmp_path: Path) -> None:
    _, _, before = simulated(BASE, tmp_path, SIMULATED[name])
    for shift_ns in SHIFTS_NS:
        after = tcpcast.trace(later(tmp_path / "sender.pcap", tmp_path / "later.pcap", shift_ns))
        for table in ("connections", "intervals", "rounds", "retransmissions"):
            assert differences(getattr(before, table), getattr(after, table)) == [], table


def numbered(path: Path, target: Path, *, keep: int) -> Path:
    """Write a capture whose receiver numbers its packets, with one of ``keep`` acks."""
    content = path.read_bytes()
    whole, at, count = bytearray(content[:24]), 24, 0
    while at < len(content):
        (kept,) = struct.unpack_from("<I", content, at + 8)
        record = bytearray(content[at : at + 16 + kept])
        at += 16 + kept
        if record[16 + 12 + 1] & 0x80:  # from 10.128.0.0/9
            count += 1
            record[16 + 4 : 16 + 6] = struct.pack(">H", count % 65_536)
            if not record[16 + 33] & 2 and count % keep:
                continue
        whole += record
    target.write_bytes(whole)
    return target


@pytest.mark.parametrize(("keep", "named"), [(1, False), (4, True)])
def test_acks_that_are_lost_on_the_return_path_are_named(
    keep: int, named: bool, tmp_path: Path
) -> None:
    changes = {"traffic.flows": 1, "network.bottleneck.loss": "0%", "tcp": {"stack": "linux-cubic"}}
    _, _, before = simulated(BASE, tmp_path, changes)
    table = tcpcast.trace(
        numbered(tmp_path / "sender.pcap", tmp_path / "few", keep=keep)
    ).connections
    sent = before.connections["acks"][0] + before.connections["duplicate_acks"][0]
    assert table["missing_acks"][0] == pytest.approx(sent * (1 - 1 / keep), rel=0.02)
    assert ("acks were lost before" in advice(table)[0]) is named
