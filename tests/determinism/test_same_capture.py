"""The same capture gives the same bytes, independent of the process and of the input method."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tcpcast
from tcpcast.cli import main

from benches.traffic import capture

BLOCK = 1 << 17
"""Maximum number of bytes in a block of zstd."""
NAME = "slow.pcap"
FORMATS = ["--json", "--csv", "--table=rounds"]


def zstd(content: bytes) -> bytes:
    """Return a zstd frame with uncompressed blocks (RFC 8878, section 3.1.1)."""
    window_of_a_block = 7 << 3
    parts = [bytes([0x28, 0xB5, 0x2F, 0xFD, 0, window_of_a_block])]
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        last = start + BLOCK >= len(content)
        parts += [(len(block) << 3 | last).to_bytes(3, "little"), block]
    return b"".join(parts)


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a capture of hundreds of connections of users on a shared link."""
    file = tmp_path_factory.mktemp("captured") / NAME
    changes = {
        "run.transfers": 400,
        "run.replications": 1,
        "network.bottleneck.loss": "1%",
        "probes.pcap": [{"link": "sender", "file": str(file), "packets": 5000}],
    }
    tcpcast.run(tcpcast.load("web-10mbit", changes=changes), ["packet"])
    return file.read_bytes()


def run_process(
    *command: str, folder: Path, piped: bytes | None = None, hash_seed: str = "0"
) -> bytes:
    """Return the output of a separate process."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    run = subprocess.run(
        [sys.executable, *command],
        input=piped,
        capture_output=True,
        check=True,
        cwd=folder,
        env=environment,
    )
    return run.stdout


@contextmanager
def standard_input(file: Path) -> Iterator[None]:
    """Let this process read a file as its standard input."""
    before = os.dup(0)
    with file.open("rb") as opened:
        os.dup2(opened.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
ON_ONE_PROCESSOR = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
"""
ALL = """
import json, sys
from tcpcast.cli import main
for arguments in json.loads(sys.argv[1]):
    print("exit", main(["trace", *arguments]), flush=True)
"""


def test_two_processes_print_same_bytes(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    (tmp_path / "after.pcap").write_bytes(content[: len(content) // 2])
    arguments = [
        *([form, NAME] for form in FORMATS),
        ["--json", NAME, "--second-capture", "after.pcap"],
    ]
    first, second = (
        run_process("-c", ALL, json.dumps(arguments), folder=tmp_path, hash_seed=seed)
        for seed in "12"
    )
    assert second == first
    forms = first.split(b"exit ")
    assert len(forms) == len(arguments) + 1
    assert all(len(form) > 20_000 for form in forms[:-1])
    assert b'"under_way": ' in forms[-2]


@pytest.mark.skipif(PROCESSORS < 2, reason="one processor")
@pytest.mark.parametrize("connections", [2, 400])
def test_one_and_all_processors_print_same_bytes(connections: int, tmp_path: Path) -> None:
    """Threads share a large capture with several connections, or one of many connections.

    A capture of 2^14 segments is large (``MIN_LARGE_SEGMENTS`` of the crate).
    """
    parts = capture(packets=20_000, connections=connections)
    (tmp_path / NAME).write_bytes(b"".join(parts))
    arguments = json.dumps([[form, NAME] for form in FORMATS])
    on_one, on_all = (
        run_process("-c", code, arguments, folder=tmp_path)
        for code in (ON_ONE_PROCESSOR + ALL, ALL)
    )
    assert on_one == on_all
    assert len(on_one) > 10_000


@pytest.mark.parametrize("form", FORMATS)
def test_files_stdin_gzip_and_zstd_give_same_bytes(
    form: str,
    content: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    result = set()
    for encoding, write in ENCODERS.items():
        folder = tmp_path / encoding
        folder.mkdir()
        (folder / NAME).write_bytes(write(content))
        monkeypatch.chdir(folder)
        assert main(["trace", form, NAME]) == 0
        result.add(capfdbinary.readouterr().out)
    if form == "--json":
        command = ("-m", "tcpcast", "trace", form, "-")
        piped = run_process(*command, folder=tmp_path, piped=gzip.compress(content))
        result.add(piped.replace(b'"file": "-"', f'"file": "{NAME}"'.encode(), 1))
    else:
        # From a pipe only one form is possible; the recorded name differs.
        with standard_input(tmp_path / "gzip" / NAME):
            assert main(["trace", form, "-"]) == 0
        result.add(capfdbinary.readouterr().out.replace(b"\n-,", f"\n{NAME},".encode()))
    assert len(result) == 1


def test_bytes_in_python_give_same_document_as_file(
    content: bytes, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert main(["trace", "--json", str(tmp_path / NAME)]) == 0
    expected = json.loads(capfdbinary.readouterr().out)
    for write in ENCODERS.values():
        document = json.loads(json.dumps(tcpcast.trace(write(content)).to_json()))
        assert [capture.pop("file") for capture in document["captures"]] == ["<bytes>"]
        assert document["captures"] == [
            {key: value for key, value in capture.items() if key != "file"}
            for capture in expected["captures"]
        ]
