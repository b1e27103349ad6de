"""Captures of very many connections: bounded memory, a useful summary, complete totals."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast.report.trace import worst_first_order

from benches.traffic import SEGMENT, scan

Printed = pytest.CaptureFixture[str]

FLOWS = 200_000
MAX_KIB = 400_000
"""Memory limit, including Python and numpy; 3 kB per connection would exceed it by half."""

MEASURED = """
import re, sys
from pathlib import Path
from tcpcast.cli import main
code = main(["trace", "-", *sys.argv[1:]])
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_port_scan_has_bounded_memory_and_summary() -> None:
    run = subprocess.run(
        [sys.executable, "-c", MEASURED], input=b"".join(scan(FLOWS)), capture_output=True,
        check=True, timeout=120,
    )  # fmt: skip
    assert int(run.stderr.split()[-1]) < MAX_KIB
    output = " ".join(run.stdout.decode().split())
    assert (
        f"{FLOWS:,} TCP segments in {FLOWS:,} connections ({FLOWS // 2:,} without data)" in output
    )
    left = FLOWS // 2 - 65_536
    assert f"… and {left:,} directions with less data. In total, they carry {left:,}" in output
    assert f"{FLOWS * 3 // 2:,} directions without data: {FLOWS // 2:,} packets" in output
    assert re.search(r"[\d,]+ connections were evicted \([\d,]+ of them after one packet\)", output)
    assert "raise --max-connections" in output


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_port_scan_at_two_taps_has_bounded_memory(tmp_path: Path) -> None:
    file = tmp_path / "scan.pcap"
    file.write_bytes(b"".join(scan(FLOWS)))
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, f"--second-capture={file}"], input=file.read_bytes(),
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    assert int(run.stderr.split()[-1]) < MAX_KIB
    output = " ".join(run.stdout.decode().split())
    assert re.search(r"\d+ directions were not compared, because there", output)


def test_directions_without_row_are_in_totals() -> None:
    flows = 2 * (65_536 + 16_384 + 1000)
    capture = tcpcast.trace(b"".join(scan(flows)))
    rows, rest = capture.connections, capture.rest
    assert rows["bytes"].size == 65_536
    assert rows["data_packets"].sum() + rest["data_packets"] == flows // 2
    assert rows["bytes"].sum() + rest["bytes"] == flows // 2 * SEGMENT
    assert rest["empty_connections"] == flows // 2
    # Among equal connections, the first ones have rows.
    assert rows["connection"].tolist() == list(range(1, 2 * 65_536, 2))


def test_evicted_connections_are_reported(tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / "scan.pcap"
    file.write_bytes(b"".join(scan(1000)))
    assert main(["trace", "--json", "--max-connections", "100", str(file)]) == 0
    out, err = capsys.readouterr()
    (capture,) = json.loads(out)["captures"]
    assert capture["rest"]["evicted"] == capture["rest"]["evicted_single"] == 900
    assert "900 connections were evicted (900 of them after one packet): more than 100" in err
    assert "evicted connection count as a new connection" not in out + err
    assert main(["trace", "--max-connections", "0", str(file)]) == 2


def test_only_the_worst_directions_are_printed(tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / "scan.pcap"
    file.write_bytes(b"".join(scan(100)))
    assert main(["trace", str(file), "--json"]) == 0
    (every,) = json.loads(capsys.readouterr().out)["captures"]
    assert main(["trace", str(file), "--json", "--worst", "3"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["captures"]
    worst = [int(row) for row in worst_first_order(tcpcast.trace(file).connections)[:3]]
    assert found["connections"] == [every["connections"][row] for row in worst]
    lists = "services", "failed", "interruptions", "connections"
    assert found["omitted"] == {name: max(0, len(every[name]) - 3) for name in lists}
    assert found["omitted"]["connections"] > 0
    assert found["rest"] == every["rest"]
    assert main(["trace", str(file), "--csv", "--worst", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    page = tmp_path / "page.md"
    assert main(["trace", str(file), "--worst", "3", "--out", str(page)]) == 0
    left = len(every["connections"]) - 3
    for text in (capsys.readouterr().out, page.read_text()):
        assert f"… and {left} more; " in text


@pytest.mark.parametrize("option", ["--all", "--table=rounds"])
def test_the_worst_directions_exclude_other_selections(option: str, capsys: Printed) -> None:
    assert main(["trace", "x.pcap", "--worst", "3", option]) == 2
    assert (
        f"--worst and {option.partition('=')[0]} are mutually exclusive" in capsys.readouterr().err
    )
