"""Damaged and hostile files: one line, and bounded memory."""

import gzip
import json
import math
import random
import resource
from pathlib import Path
from typing import Any

import pytest
from line_test_files import crusader_document, flent_document, write_flent
from tcpcast.cli import main
from tcpcast.measurements import make_line_scenario, read_line_test
from tcpcast.process.errors import TcpcastError
from tcpcast.process.json_file import MAX_BYTES, MAX_VALUES

Capture = pytest.CaptureFixture[str]

WHOLE = gzip.compress(json.dumps(flent_document()).encode())


def without(key: str) -> bytes:
    """Return the made-up test without a key."""
    return json.dumps({k: v for k, v in flent_document().items() if k != key}).encode()


@pytest.mark.parametrize(
    ("program", "content", "message"),
    [
        ("flent", WHOLE[:-20], "damaged gzip data"),
        ("flent", b"\x1f\x8b" + 50 * b"\xff", "damaged gzip data"),
        ("flent", WHOLE[:200] + bytes(200) + WHOLE[400:], "damaged gzip data"),
        ("flent", b"", "this is not valid JSON in line 1; use a complete file of flent"),
        ("flent", b"\xff\xfe\x00", "this is not valid JSON; use a complete file of flent"),
        ("flent", b"[1, 2]", "the JSON contains no object; use a file of flent"),
        (
            "flent",
            b'{"version": 4}',
            "the JSON is not from flent: metadata and results are missing",
        ),
        ("flent", without("results"), "the JSON is not from flent"),
        ("flent", without("version"), "version of this file of flent's format is not supported"),
        ("flent", without("version")[:-1] + b', "version": 9}', "version 9 of flent's format"),
        (
            "flent",
            100_000 * b"[",
            "the JSON is nested more deeply than in any file that flent writes",
        ),
        ("crusader", b"{}", "the JSON is not from Crusader: pings and streams are missing"),
        (
            "crusader",
            0x5372AB82AE7C59CB.to_bytes(8, "little") + bytes(99),
            "the file is a result of Crusader that was not exported; use `crusader export FILE`",
        ),
        ("iperf3", b"{", "this is not valid JSON"),
        ("iperf3", b'{"start": ' + 100_000 * b"[", "the JSON is nested too deeply"),
    ],
)
def test_one_line(
    tmp_path: Path, capsys: Capture, program: str, content: bytes, message: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main(["compare", program, str(path)]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"tcpcast: {path}: {message}")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, 1e300, None])
def test_flows_without_numbers_are_one_line(tmp_path: Path, capsys: Capture, value: Any) -> None:
    document = flent_document()
    for name, samples in document["raw_values"].items():
        for sample in samples if name.startswith("TCP") else ():
            sample["val"] = value
    path = tmp_path / "file"
    path.write_text(json.dumps(document))
    assert main(["compare", "flent", str(path)]) == 2
    message = "no TCP flow has a rate above 0 (null and NaN do not count); use a test such as "
    assert capsys.readouterr().err == f"tcpcast: {path}: {message}rrul or tcp_nup\n"


def test_times_of_damaged_files_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    document = flent_document()
    path = tmp_path / "file"
    for sample in document["raw_values"]["Ping (ms) ICMP"]:
        sample["val"] = 1e14
    path.write_text(json.dumps(document))
    assert math.isnan(read_line_test("flent", path).idle_rtt_s)
    flow = next(name for name in document["raw_values"] if name.startswith("TCP"))
    document["raw_values"][flow][-1]["t"] = 1e14
    path.write_text(json.dumps(document))
    assert main(["compare", "flent", str(path)]) == 2
    message = "the times of the flows span 1e+14 s, but a test takes at most 1000000 s; repeat the"
    assert capsys.readouterr().err == f"tcpcast: {path}: {message} test\n"


def test_missing_files_and_unknown_programs(tmp_path: Path, capsys: Capture) -> None:
    assert main(["compare", "flent", str(tmp_path / "none")]) == 2
    assert "none: cannot be read (No such file or directory)" in capsys.readouterr().err
    assert main(["compare", "flent", str(tmp_path)]) == 2
    assert "cannot be read (Is a directory)" in capsys.readouterr().err
    assert main(["compare", "speedtest", str(tmp_path)]) == 2
    assert '"speedtest" is not known; use flent, iperf3, crusader' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b" " * (1 << 20), "more than 64 MiB after decompression"),
        (b"[],", f"{MAX_VALUES:,} values"),
    ],
    ids=["long", "many values"],
)
def test_gzip_bombs_are_bounded(tmp_path: Path, block: bytes, message: str) -> None:
    path = tmp_path / "bomb.flent.gz"
    whole = MAX_BYTES + 1 if block[:1] == b" " else 4 * MAX_VALUES
    path.write_bytes(gzip.compress(b'{"results": [' + block * (whole // len(block) + 1)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TcpcastError, match=message):
        read_line_test("flent", path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 3 * (MAX_BYTES >> 10)


ODD: tuple[Any, ...] = (None, True, -1, 1e300, "", "x", "\x00", [], [[]], {}, {"a": None}, 10**30)


def change(value: Any, rng: random.Random) -> Any:
    """Return a copy of JSON data in which some values are odd, missing or repeated."""
    if rng.random() < 0.02:
        return rng.choice(ODD)
    if isinstance(value, dict):
        return {k: change(v, rng) for k, v in value.items() if rng.random() > 0.03}
    if isinstance(value, list):
        return [change(each, rng) for each in value if rng.random() > 0.02]
    return value


@pytest.mark.parametrize("program", ["flent", "crusader"])
def test_odd_values_are_unknown_or_one_line(tmp_path: Path, program: str) -> None:
    rng = random.Random(54)
    document = flent_document() if program == "flent" else crusader_document()
    readable, messages = 0, list[str]()
    for _ in range(150):
        path = write_flent(tmp_path, change(document, rng))
        try:
            test = read_line_test(program, path)
            make_line_scenario(test, {"down": "100mbit", "up": "20mbit", "rtt": "20ms"})
        except TcpcastError as error:
            messages.append(str(error))
            continue
        readable += 1
        assert all(rate > 0 for rates in test.flows.values() for rate in rates)
    assert 20 < readable < 150
    assert not [message for message in messages if "\n" in message]
