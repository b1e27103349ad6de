"""Advice agrees with the numbers of a capture, and no number depends on the time of day.

The captures of the kernel are outside the project, in ``shared/captures`` next to it; without them
only simulated captures are examined.
"""

import gzip
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from replays import simulated
from tcpcast.array_types import Table
from tcpcast.captures import Capture, iter_plain_rows
from tcpcast.captures.advice import advise_each_direction
from tcpcast.captures.congestion_control import UNKNOWN

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
"""Rates in advice are rounded to three digits."""
UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
RATE = r"(\d[\d,]*(?:\.\d+)?) ([kMG]?bit/s)"
AT_LEAST_THE_GOODPUT = (
    rf"the link carries at most {RATE}",
    rf"the link \({RATE}\) is the limit",
    rf"flows: {RATE} in total",
    rf"imited by:? (?:the )?link at {RATE}",
    rf"PFTK predicts {RATE}",
    rf"allows up to {RATE}",
)
"""Phrases that contain an upper bound of the rate."""


def number(text: str) -> float:
    return float(text.replace(",", ""))


def share_errors(row: dict[str, Any]) -> Iterator[str]:
    shares = [row[name] for name in row if name.startswith("share_")]
    known = [share for share in shares if share is not None]
    if known:
        if len(known) < len(shares) or abs(sum(known) - 1) > 1e-6:
            yield f"shares add up to {sum(known)}"
        if min(known) < 0 or max(known) > 1:
            yield "a share is below 0 or above 1"


def count_errors(row: dict[str, Any]) -> Iterator[str]:
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


def rate_errors(row: dict[str, Any]) -> Iterator[str]:
    goodput, throughput = row["goodput_bps"], row["throughput_bps"]
    if goodput is not None and throughput is not None and goodput > throughput * (1 + 1e-9):
        yield "goodput above throughput"
    link = row["bottleneck_rate_bps"]
    if link is not None and goodput is not None and link * ROUNDED < goodput:
        yield f"link {link} below the goodput {goodput}"
    times = [row[f"rtt_{name}_s"] for name in ("min", "p50", "p95", "p99", "max")]
    if None not in times and times != sorted(times):
        yield f"RTT quantiles out of order: {times}"


def cause_errors(row: dict[str, Any]) -> Iterator[str]:
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


def text_errors(row: dict[str, Any], text: str) -> Iterator[str]:
    losses = row["td"] + row["to"]
    if "othing was lost" in text and row["retransmissions"] + losses > 0:
        yield "nothing was lost, but retransmitted"
    if any(number(value) > 100 for value in re.findall(r"([\d.,]+) %", text)):
        yield "more than 100 %"
    for value in re.findall(r"one loss indication per ([\d,.]+) packets", text):
        if abs(number(value) * losses / row["data_packets"] - 1) > 0.51 / number(value) + 0.01:
            yield f"{value} packets per loss indication"
    goodput = row["goodput_bps"] or 0.0
    for pattern in AT_LEAST_THE_GOODPUT:
        for value, unit in re.findall(pattern, text):
            if number(value) * UNITS[unit] * ROUNDED < goodput:
                yield f"at most {value} {unit}, goodput {goodput}"


def contradictions(capture: Capture) -> list[str]:
    table = capture.connections
    messages = []
    for row, text in zip(
        iter_plain_rows(table), advise_each_direction(table).tolist(), strict=True
    ):
        errors = [
            *share_errors(row),
            *count_errors(row),
            *rate_errors(row),
            *cause_errors(row),
            *text_errors(row, text),
        ]
        messages += [f"{row['src']} > {row['dst']}: {error}; {text}" for error in errors]
    return messages


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_advice_on_recorded_captures_agrees_with_numbers(path: Path) -> None:
    assert contradictions(tcpcast.trace(path)) == []


@pytest.mark.parametrize("name", SIMULATED)
def test_advice_on_simulated_captures_agrees_with_numbers(name: str, tmp_path: Path) -> None:
    _, _, capture = simulated(BASE, tmp_path, SIMULATED[name])
    assert contradictions(capture) == []


def shifted(path: Path, target: Path, shift_ns: int) -> Path:
    """Write a capture whose timestamps are shifted by ``shift_ns``."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    unit = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}[struct.unpack_from("<I", content)[0]]
    output, offset = bytearray(content[:24]), 24
    while offset < len(content):
        seconds, fraction, captured_length, length = struct.unpack_from("<IIII", content, offset)
        time_ns = seconds * 10**9 + fraction * unit + shift_ns
        output += struct.pack(
            "<IIII", time_ns // 10**9, time_ns % 10**9 // unit, captured_length, length
        )
        output += content[offset + 16 : offset + 16 + captured_length]
        offset += 16 + captured_length
    target.write_bytes(output)
    return target


def differences(before: Table, after: Table) -> list[str]:
    """Return the columns that differ by more than rounding."""
    columns = []
    for name, column in before.items():
        if name in {"start", "time"}:
            continue
        same = (
            np.allclose(column, after[name], rtol=1e-6, atol=1e-12, equal_nan=True)
            if column.dtype.kind == "f"
            else np.array_equal(column, after[name])
        )
        columns += [] if same else [name]
    return columns


SHIFTS_NS = (1_000, 137_000_000, 86_400_000_000_000 + 311_000_000)


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_capture_values_ignore_the_time_of_day(name: str, tmp_path: Path) -> None:
    _, _, before = simulated(BASE, tmp_path, SIMULATED[name])
    for shift_ns in SHIFTS_NS:
        after = tcpcast.trace(shifted(tmp_path / "sender.pcap", tmp_path / "later.pcap", shift_ns))
        for table in ("connections", "intervals", "rounds", "retransmissions"):
            assert differences(getattr(before, table), getattr(after, table)) == [], table


def with_ip_ids(path: Path, target: Path, *, keep: int) -> Path:
    """Write a capture with consecutive IP IDs of the receiver and every ``keep``-th ack only."""
    content = path.read_bytes()
    output, offset, count = bytearray(content[:24]), 24, 0
    while offset < len(content):
        (captured_length,) = struct.unpack_from("<I", content, offset + 8)
        record = bytearray(content[offset : offset + 16 + captured_length])
        offset += 16 + captured_length
        if record[16 + 12 + 1] & 0x80:  # from 10.128.0.0/9
            count += 1
            record[16 + 4 : 16 + 6] = struct.pack(">H", count % 65_536)
            if not record[16 + 33] & 2 and count % keep:
                continue
        output += record
    target.write_bytes(output)
    return target


@pytest.mark.parametrize(("keep", "reported"), [(1, False), (4, True)])
def test_lost_acks_on_return_path_are_counted_and_reported(
    keep: int, reported: bool, tmp_path: Path
) -> None:
    changes = {"traffic.flows": 1, "network.bottleneck.loss": "0%", "tcp": {"stack": "linux-cubic"}}
    _, _, before = simulated(BASE, tmp_path, changes)
    table = tcpcast.trace(
        with_ip_ids(tmp_path / "sender.pcap", tmp_path / "few", keep=keep)
    ).connections
    sent = before.connections["acks"][0] + before.connections["duplicate_acks"][0]
    assert table["missing_acks"][0] == pytest.approx(sent * (1 - 1 / keep), rel=0.02)
    assert ("acks were lost before" in advise_each_direction(table)[0]) is reported
