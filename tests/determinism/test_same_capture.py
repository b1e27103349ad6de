"""The same capture gives the same bytes, whatever process reads it and however it comes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import tcpcast
from tcpcast.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BLOCK = 1 << 17
"""Most bytes of a block of zstd."""
NAME = "slow.pcap"
FORMS = ["--json", "--csv", "--table=rounds"]


def zstd(content: bytes) -> bytes:
    """Return a frame of zstd whose blocks are as they were (RFC 8878, section 3.1.1)."""
    window_of_a_block = 7 << 3
    parts = [bytes([0x28, 0xB5, 0x2F, 0xFD, 0, window_of_a_block])]
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        last = start + BLOCK >= len(content)
        parts += [(len(block) << 3 | last).to_bytes(3, "little"), block]
    return b"".join(parts)


WRITTEN: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Hundreds of connections of users who share a link."""
    file = tmp_path_factory.mktemp("captured") / NAME
    changes = {
        "run.connections": 1500,
        "run.replications": 1,
        "network.bottleneck.loss": "1%",
        "probes.pcap": [{"link": "sender", "file": str(file), "packets": 20_000}],
    }
    tcpcast.run(tcpcast.load("web-10mbit", changes=changes), ["packet"])
    return file.read_bytes()


def printed(
    form: str, *files: str, folder: Path, piped: bytes | None = None, hash_seed: str = "0"
) -> bytes:
    """Return what a process of its own prints."""
    command = [sys.executable, "-m", "tcpcast", "trace", form, *files]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    run = subprocess.run(
        command, input=piped, capture_output=True, check=True, cwd=folder, env=environment
    )
    return run.stdout


@pytest.mark.parametrize("form", FORMS)
def test_in_two_processes(form: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    once = printed(form, NAME, folder=tmp_path, hash_seed="1")
    assert len(once) > 100_000
    assert printed(form, NAME, folder=tmp_path, hash_seed="2") == once


def test_two_taps_in_two_processes(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    (tmp_path / "after.pcap").write_bytes(content[: len(content) // 2])
    arguments = (NAME, "--after", "after.pcap")
    once = subprocess.run(
        [sys.executable, "-m", "tcpcast", "trace", "--json", *arguments],
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    again = subprocess.run(once.args, capture_output=True, check=False, cwd=tmp_path)
    assert b'"under_way": ' in once.stdout
    assert (again.returncode, again.stdout, again.stderr) == (
        once.returncode,
        once.stdout,
        once.stderr,
    )


@pytest.mark.parametrize("form", FORMS)
def test_from_a_file_standard_input_gzip_and_zstd(
    form: str,
    content: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    found = set()
    for how, write in WRITTEN.items():
        folder = tmp_path / how
        folder.mkdir()
        (folder / NAME).write_bytes(write(content))
        monkeypatch.chdir(folder)
        assert main(["trace", form, NAME]) == 0
        found.add(capfdbinary.readouterr().out)
    piped = printed(form, "-", folder=tmp_path, piped=gzip.compress(content))
    if form == "--json":
        found.add(piped.replace(b'"file": "-"', f'"file": "{NAME}"'.encode(), 1))
    else:
        found.add(piped.replace(b"\n-,", f"\n{NAME},".encode()))
    assert len(found) == 1


def test_from_bytes(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    told = json.loads(printed("--json", NAME, folder=tmp_path))
    for write in WRITTEN.values():
        document = json.loads(json.dumps(tcpcast.trace(write(content)).to_json()))
        assert [capture.pop("file") for capture in document["captures"]] == ["<bytes>"]
        assert document["captures"] == [
            {key: value for key, value in capture.items() if key != "file"}
            for capture in told["captures"]
        ]
