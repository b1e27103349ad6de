"""``tcpcast serve``: the address is printed, the page is there, Ctrl-C ends it."""

from __future__ import annotations

import builtins
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from tcpcast.cli import main

pytest.importorskip("uvicorn", reason="needs uvicorn: the extra web")


def test_the_start_url_is_printed_at_once_and_ctrl_c_ends_it() -> None:
    command = [sys.executable, "-m", "tcpcast", "serve", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=60) as response:
            assert response.status == 200
            assert b"<title>tcpcast</title>" in response.read()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == b""
    assert err.decode().splitlines() == ["tcpcast: serving the page; Ctrl-C ends it"]


def test_the_browser_is_started_without_the_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Queue[str] = Queue()
    found: list[tuple[str, str, int, int]] = []

    def serve(*_: object, **__: object) -> None:
        url = opened.get(timeout=20)
        file = Path(urllib.request.url2pathname(url.removeprefix("file://")))
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]
        found.append((url, file.read_text(), modes[0], modes[1]))

    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setattr("uvicorn.Server.run", serve)
    assert main(["serve"]) == 0
    printed = capsys.readouterr().out.strip()
    ((url, page, mode, mode_of_folder),) = found
    assert url.startswith("file:")  # the arguments of a process are readable by every user
    assert printed.partition("token=")[2] not in url
    assert f'url={printed}"' in page
    assert (mode, mode_of_folder) == (0o600, 0o700)
    assert not Path(url.removeprefix("file://")).exists()


def test_a_port_that_is_taken_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--no-browser", "--port", str(taken.getsockname()[1])]) == 3
    assert "leave it out to take a free one" in capsys.readouterr().err


def test_a_port_out_of_range_is_a_fault_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "70000"]) == 2
    assert "--port: 70000 is out of range" in capsys.readouterr().err


def test_without_its_packages_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in {"uvicorn", "starlette"}:
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["serve", "--no-browser"]) == 3
    assert "pip install starlette uvicorn" in capsys.readouterr().err
