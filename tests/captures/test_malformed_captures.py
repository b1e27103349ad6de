"""Malformed captures: every output is complete, without Python warnings, NaN or infinity."""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import tcpcast
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.captures import Capture
from tcpcast.captures.capture_tables import restrict_to_directions
from tcpcast.captures.direction_selection import select_directions
from tcpcast.captures.groups import GROUPINGS
from tcpcast.captures.models import model_results, model_tables
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.process.errors import CaptureError
from tcpcast.report.text import layout_lines
from tcpcast.report.trace import capture_parts, csv_lines, json_lines, worst_first_order
from tcpcast.report.trace_models import model_parts
from tcpcast.scenario import Scenario

ENDS = (b"\x0a\0\0\1", b"\x0a\0\0\2")
SYN, ACK, FIN, RST = 2, 16, 1, 4


def random_capture(seed: int) -> bytes:
    """Return a pcap of raw IPv4 with random, mostly inconsistent segments."""
    draw = random.Random(seed)
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    full = draw.choice([1, 100, 1460, 30_000])
    sent = [draw.randrange(1 << 32), draw.randrange(1 << 32)]
    one_way, time = draw.choice([0.5, 0.8, 1.0]), draw.choice([0.0, 1e9])
    for index in range(draw.choice([1, 2, 5, 40, 200])):
        time = max(0.0, time + draw.choice([0, 1e-6, 1e-4, 0.01, 0.1, 1, 10, 300, -0.01]))
        flags = draw.choice([ACK] * 12 + [ACK | FIN, SYN, SYN | ACK, RST, ACK | 64, 0])
        back = int(draw.random() > one_way)
        if index < 2 and seed % 3:
            flags, back = (SYN, SYN | ACK)[index], index
        size = 0 if flags & SYN else draw.choice([0, 1, full, full, full * 2])
        number = sent[back]
        if draw.random() < 0.2:
            number -= draw.choice([0, 1, full, 10 * full, 1 << 31])
        else:
            sent[back] += size + (flags & (SYN | FIN) > 0)
        acked = sent[1 - back] - draw.choice([0, 0, 0, full, 1 << 30])
        out.append(record(draw, time, back, number, acked, flags, size))
    capture = b"".join(out)
    return capture if draw.random() < 0.9 else capture[: draw.randrange(len(capture))]


def record(  # noqa: PLR0917 - a header's fields
    draw: random.Random, time: float, back: int, number: int, acked: int, flags: int, size: int
) -> bytes:
    """Return a pcap record of one segment, headers only."""
    options = b""
    if flags & SYN:
        options = b"\2\4" + struct.pack(">H", draw.choice([0, 1, 536, 1460]))
        options += draw.choice([b"", bytes([3, 3, draw.choice([0, 7, 255]), 1]), b"\4\2\1\1"])
    elif draw.random() < 0.3:
        options = b"\1\1\5\x0a" + struct.pack(
            ">II", acked + 100 & 0xFFFFFFFF, acked + 200 & 0xFFFFFFFF
        )
    port = 1000 + draw.randrange(2)
    tcp = struct.pack(
        ">HHIIBBHHH",
        80 if back else port,
        port if back else 80,
        number & 0xFFFFFFFF,
        acked & 0xFFFFFFFF,
        (20 + len(options)) // 4 << 4,
        flags,
        draw.choice([0, 1, 1000, 8192, 65535]),
        0,
        0,
    )
    tcp += options
    length = min(20 + len(tcp) + size, 65535)
    head = struct.pack(">BBHHHBBH", 0x45, 0, length, draw.randrange(65536), 0, 64, 6, 0)
    packet = head + ENDS[back] + ENDS[1 - back] + tcp
    stamp = struct.pack("<IIII", int(time), int(time % 1 * 1e6), len(packet), length)
    return stamp + packet


def all_output(capture: Capture) -> list[str]:
    """Return the complete output about a capture."""
    rows = worst_first_order(capture.connections)
    lines = layout_lines(
        [
            *capture_parts(capture),
            *model_parts(capture.connections, model_results(capture, rows), rows.size),
        ],
        1000,
    )
    json.dumps(capture.to_json(), allow_nan=False)
    json.loads("\n".join(json_lines([capture], models=[model_tables(capture)])))
    for way in GROUPINGS:
        capture.groups(way)
        capture.groups(way, rtt_s=0.1)
    capture.models()
    capture.model_errors()
    return [*(line.text for line in lines), *csv_lines([capture])]


def simulated(folder: Path) -> bytes:
    """Return a capture of one flow with losses; its timestamps begin at 1,000 s."""
    tables = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "30pkt"}},
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"stack": "linux-reno"},
        "run": {"duration": "8s", "warmup": "1s"},
        "probes": {"pcap": [{"link": "sender", "file": str(folder / "in.pcap")}]},
    }
    loss = {"network.bottleneck.loss": "1%"}
    tcpcast.run(Scenario.from_dict(tables).with_changes(loss), ["packet"])
    return (folder / "in.pcap").read_bytes()


def stepped_back(capture: bytes, records: int, seconds: int) -> bytes:
    """Return a capture whose clock steps back by a time after its first records."""
    out, offset = [capture[:24]], 24
    while offset < len(capture):
        second, fraction, length, _ = struct.unpack_from("<4I", capture, offset)
        late = seconds if len(out) <= records else 0
        out.append(struct.pack("<2I", 1000 + second + late, fraction))
        out[-1] += capture[offset + 8 : offset + 16 + length]
        offset += 16 + length
    return b"".join(out)


def test_early_backward_clock_steps_are_accepted(tmp_path: Path) -> None:
    capture = simulated(tmp_path)
    for records in (1, 5, 200):
        for seconds in (1, 8, -8):
            result = tcpcast.trace(stepped_back(capture, records, seconds))
            assert all_output(result)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_segments_give_consistent_output(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            capture = tcpcast.trace(random_capture(seed), trail_points=seed % 50)
        except tcpcast.CaptureError:  # cut within its first bytes
            return
        lines = all_output(capture)
        shares = [
            values for name, values in capture.connections.items() if name.startswith("share_")
        ]
        total = np.sum(shares, axis=0)
        assert np.allclose(total[np.isfinite(total)], 1.0)
        for word in (" nan", " inf ", ": 0 B"):
            assert not any(word in line for line in lines), word
        for which in (None, "all"):
            try:
                written = make_replay_scenario(
                    restrict_to_directions(capture, select_directions(capture, which)), "again"
                )
            except tcpcast.CaptureError as error:
                expected = ("no round-trip time", "no connection", "no scenario can be derived")
                assert any(words in str(error) for words in expected)  # noqa: PT017
                continue
            Scenario.from_dict(written.tables)


def as_pcapng(capture: bytes, resolution: int) -> bytes:
    """Return a nanosecond pcap as pcapng, with an option for the resolution of its clock."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out.append(block(1, struct.pack("<HHIHHB3xI", 101, 0, 0, 9, 1, resolution, 0)))
    offset = 24
    while offset < len(capture):
        second, fraction, length, original_length = struct.unpack_from("<4I", capture, offset)
        ticks = (1_700_000_000 + second) * 10**9 + fraction
        body = struct.pack("<5I", 0, ticks >> 32, ticks & 0xFFFFFFFF, length, original_length)
        out.append(block(6, body + capture[offset + 16 : offset + 16 + length]))
        offset += 16 + length
    return b"".join(out)


def test_wrong_time_resolution_has_warning_and_terminates(tmp_path: Path) -> None:
    capture = simulated(tmp_path)
    whole = tcpcast.trace(as_pcapng(capture, 9))
    assert not whole.warnings
    assert whole.groups("all")["loss_events"][0] > 1
    for resolution in (6, 8, 0x80 | 1, 0x80 | 29, 0x80 | 30):
        result = tcpcast.trace(as_pcapng(capture, resolution))
        late = [line for line in result.warnings if "timestamp after the year 2262" in line]
        assert len(late) == (result.connections["start"][0] > np.datetime64("2262-01-01"))
        assert all_output(result)
        assert result.groups("all", rtt_s=1e9)["loss_events"][0] >= 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipe_without_writer_is_reported_and_interruptible(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.pcap"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "tcpcast", "trace", str(pipe)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert line == f'tcpcast: "{pipe}": waiting for a program to write to this pipe\n'
    assert process.returncode == 130
    assert "interrupted before a result was available" in errors


@pytest.mark.parametrize("number", [-1, 10**9 + 1, 10**20, 10**400])
@pytest.mark.parametrize("name", ["trail_points", "max_connections"])
def test_numbers_out_of_range_are_rejected(name: str, number: int) -> None:
    with pytest.raises(CaptureError, match=f"{name} = .*: must be between ") as caught:
        tcpcast.trace(b"", **{name: number})  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
