"""tcpcast against tcptrace, tshark and an independent count on the reference captures.

``trace_differences.csv`` lists the known differences and ``trace_reasons.csv`` their reasons;
``docs/background/captures.md`` prints both. A difference missing in the list is an error,
and so is a listed one that does not exist. The captures are not part of the project: their folder
is ``TCPCAST_CAPTURES``, or ``shared/captures`` next to the project.
"""

import csv
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from trace_kernel import rows
from trace_tools import (
    HERE,
    TOOLS,
    captures,
    differences,
    installed,
    reference,
    run_tools,
)

FOLDER = captures()
needs_captures = pytest.mark.skipif(
    FOLDER is None, reason="no reference captures: TCPCAST_CAPTURES, or shared/captures"
)

FILES = sorted(path.name for path in FOLDER.iterdir() if ".pcap" in path.name) if FOLDER else []
MAX_KIB = 200_000
"""Maximum memory of one process that reads all malformed captures, including Python and numpy."""


def table(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as content:
        return list(csv.DictReader(content))


def folder() -> Path:
    assert FOLDER is not None
    return FOLDER


@cache
def references() -> Any:
    return reference(folder() / "reference.csv")


def is_tshark_compatible() -> bool:
    """Return True if this tshark counts like the one used for ``reference.csv``."""
    if not installed("tshark"):
        return False
    run = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=False)
    return "4.0." in run.stdout.partition("\n")[0]


def test_each_difference_has_a_reason() -> None:
    reasons = {row["reason"]: row for row in table("trace_reasons.csv")}
    used = [row["reason"] for row in table("trace_differences.csv")]
    assert set(used) == reasons.keys()
    assert {row["right"] for row in reasons.values()} <= {"tcpcast", "nobody", *TOOLS}
    assert all(row["why"].endswith((".", ".)")) for row in reasons.values())


@needs_captures
@pytest.mark.parametrize("name", FILES)
def test_differences_equal_the_listed_ones(name: str, tmp_path: Path) -> None:
    """On failure, correct ``trace_differences.csv`` or the program."""
    counted = references().get(name)
    if counted is None:
        if not (installed("tcptrace") and is_tshark_compatible()):
            pytest.skip("no values, and tcptrace or tshark 4.0 is missing: make peers")
        counted = run_tools(folder() / name, tmp_path)
    result = [",".join(row) for row in differences(folder() / name, counted)]
    listed = [row for row in table("trace_differences.csv") if row["capture"] == name]
    known = [",".join(list(row.values())[:-1]) for row in listed]
    assert result == known


@needs_captures
@pytest.mark.parametrize("name", FILES)
def test_all_segments_are_read(name: str) -> None:
    """Directions without data are included: the number of segments equals that of tshark."""
    counted = references().get(name, {})
    packets = [tools.values["packets"]["tshark"] for tools in counted.values()]
    if not packets or "" in packets:
        pytest.skip("not all directions are in reference.csv")
    damaged = {"ndpi-reasm-sll.pcapng": 1}
    assert tcpcast.trace(folder() / name).segments == sum(map(int, packets)) - damaged.get(name, 0)


@needs_captures
def test_page_shows_kernel_counts_and_measured_values() -> None:
    """The page shows nine of the rows; on failure, copy these from the rows below."""
    page = HERE.parents[1] / "docs" / "background" / "captures.md"
    lines = set(page.read_text(encoding="utf-8").splitlines())
    expected = [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in rows(folder())]
    assert len(expected) == 13
    assert len(lines.intersection(expected)) == 9


MEASURED = """
import contextlib, io, json, re, sys, time
from pathlib import Path
from tcpcast.cli import main
for path in sorted(Path(sys.argv[1]).iterdir()):
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["trace", "--json", str(path)])
    took = time.process_time() - began
    result = json.loads(out.getvalue())["captures"] if code < 2 else []
    # Not getrusage: its peak includes the memory of the parent process.
    peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
    print(json.dumps([path.name, code, took, peak, err.getvalue(), result]))
"""

VALID = {
    "err-buffertoosmall.pcapng", "ossfuzz_seed_fake_traces_2.pcapng", "own-gzipped.pcap",
    "own-many-flows.pcap", "own-vlan-deep.pcap", "own-wscale-255.pcap",
}  # fmt: skip
"""Files in this folder that are valid for a reader."""


@needs_captures
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_damaged_and_hostile_files_end_soon_with_an_error() -> None:
    command = [sys.executable, "-c", MEASURED, str(folder() / "malformed")]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(lines) == len(list((folder() / "malformed").iterdir())) >= 60
    for name, code, took, peak_kib, output, result in lines:
        assert took < 5, name
        assert peak_kib < MAX_KIB, name
        assert code in (0, 1, 2), name
        assert output or name in VALID, name
        warnings = [warning for capture in result for warning in capture["warnings"]]
        assert all(warning in output for warning in warnings) or code == 2, name
        assert ("damaged; the results cover only the packets before" in output) == (code == 1), name
    codes = {name: code for name, code, *_ in lines}
    assert {name for name, code in codes.items() if code == 2} == {"err-eof.bin", "own-text.pcap"}
    assert sum(code == 1 for code in codes.values()) >= 7
