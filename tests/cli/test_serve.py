"""``tcpcast serve``: printed address, served page, end by Ctrl-C."""

from __future__ import annotations

import builtins
import http.client
import json
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
from typing import Any

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
    assert err.decode().splitlines() == ["tcpcast: serving the page; stop with Ctrl-C"]


NAMES = {
    "a lone surrogate": b"%ED%A0%80.pcap",
    "bytes that are not UTF-8": b"%FF%FE.pcap",
    "a line break": b"a%0D%0ASet-Cookie:%20b=c.pcap",
    "nothing": b"",
    "a path": b"..%2F..%2Fetc%2Fpasswd",
}


def test_upload_names_are_sanitized() -> None:
    command = [sys.executable, "-m", "tcpcast", "serve", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = urllib.parse.urlsplit(process.stdout.readline().decode().strip())
        try:
            _, response_headers, _ = send_request(url, b"GET", url.query.encode(), {})
            cookie = response_headers["set-cookie"].split(";")[0]
            headers = {"Cookie": cookie, "Origin": f"http://{url.netloc}"}
            for case, name in NAMES.items():
                path = b"/api/answer/trace?upload=" + name
                status, response_headers, body = send_request(
                    url, b"POST", path, headers, b"no capture"
                )
                assert status == (200 if name else 400), (case, body)
                assert "set-cookie" not in response_headers
                message = json.loads(body.splitlines()[-1])["error"]["message"]
                assert message.isprintable(), (case, message)
                assert "tcpcast-serve" not in message
        finally:
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=120)[1]
    assert err.decode().splitlines() == ["tcpcast: serving the page; stop with Ctrl-C"]


def send_request(
    url: urllib.parse.SplitResult,
    method: bytes,
    path: bytes,
    headers: dict[str, str],
    body: bytes = b"",
) -> tuple[int, dict[str, str], bytes]:
    """Send a request with an unchecked path; return status, headers and body."""
    path = path if path.startswith(b"/") else b"/?" + path
    lines = [f"Host: {url.netloc}", "Connection: close", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, path, "\r\n".join(lines).encode())
    with socket.create_connection((url.hostname or "", url.port or 0), timeout=120) as link:
        link.sendall(head + body)
        response = http.client.HTTPResponse(link)
        response.begin()
        response_headers = {name.lower(): value for name, value in response.getheaders()}
        return response.status, response_headers, response.read()


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


def test_port_out_of_range_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "70000"]) == 2
    assert "--port: 70000 must be between" in capsys.readouterr().err


def test_missing_web_packages_are_named(
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
