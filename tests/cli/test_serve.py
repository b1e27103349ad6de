"""``tcpcast serve``: printed address, served page, end by Ctrl-C."""

import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from queue import Queue

import pytest
from tcpcast.cli import main

pytest.importorskip("uvicorn", reason="needs uvicorn: the extra web")


def test_serve_prints_start_url_and_ends_on_ctrl_c() -> None:
    command = [sys.executable, "-m", "tcpcast", "serve", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=120) as response:
            assert response.status == 200
            assert b"<title>tcpcast</title>" in response.read()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out == b""
    assert err.decode().splitlines() == ["tcpcast: serving the page; press Ctrl-C to stop"]


def test_browser_is_started_without_token_in_arguments(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Queue[str] = Queue()
    pages: list[tuple[str, str, int, int]] = []

    def serve(*_: object, **__: object) -> None:
        url = opened.get(timeout=120)
        file = Path(urllib.request.url2pathname(url.removeprefix("file://")))
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]
        pages.append((url, file.read_text(), modes[0], modes[1]))

    monkeypatch.setattr("webbrowser.open", opened.put)
    monkeypatch.setattr("uvicorn.Server.run", serve)
    assert main(["serve"]) == 0
    printed = capsys.readouterr().out.strip()
    ((url, page, mode, mode_of_folder),) = pages
    assert url.startswith("file:")  # every user can read process arguments
    assert printed.partition("token=")[2] not in url
    assert f'url={printed}"' in page
    assert (mode, mode_of_folder) == (0o600, 0o700)
    assert not Path(url.removeprefix("file://")).exists()


def test_port_in_use_gives_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--no-browser", "--port", str(taken.getsockname()[1])]) == 3
    assert "omit the option to use a free port" in capsys.readouterr().err
