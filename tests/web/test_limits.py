"""Uploads, and the limits of the work that a request may cause."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from tcpcast.cli import serve
from tcpcast.cli.page import make_forms
from tcpcast.cli.worker import TimeLimitExceeded, file_name, run_in_worker
from tcpcast.process.errors import WorkerDied
from tcpcast.web import app

from web.conftest import Page
from web.lossy_capture import write_lossy_capture

ENDLESS = {"file": "one-path", "run.duration": "100000000s", "simulate": "1"}
WAIT_S = 120.0


def test_capture_has_limit_and_advice_and_its_name_is_text(page: Page, tmp_path: Path) -> None:
    capture = write_lossy_capture(tmp_path).read_bytes()
    name = '../<img src=x onerror="alert(1)">\x1b[31m.pcap'
    answer = page.answer("trace", capture, upload=name)
    assert "limited by" in answer["verdict"]
    assert "Limited by the" in answer["page"] or "limited by" in answer["page"].lower()
    assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in answer["page"]
    assert "<img" not in answer["page"]
    assert "\x1b" not in answer["page"]


def test_error_for_bad_capture_names_uploaded_file(page: Page) -> None:
    _, message = page.error("trace", b"no capture at all", upload="notes.txt")
    assert "notes.txt" in message
    assert "tcpcast-serve" not in message, "no path of the server"
    assert page.error("trace")[1] == "choose a capture"


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("a.pcap", "a.pcap"),
        ("../../etc/passwd", "passwd"),
        ("..\\x.pcap", "x.pcap"),
        ("..", "capture"),
        ("-", "capture"),
        ("--out=x.html", "out=x.html"),
        (".progress", "progress"),
        ("\0/\n", "capture"),
    ],
)
def test_name_of_upload_stays_in_its_folder(name: str, stored: str) -> None:
    assert file_name(name) == stored
    assert len(file_name("x" * 1000).encode()) <= 200


def test_upload_size_is_limited(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_FILE_BYTES", 1000)
    response = page.post("trace", b"x" * 1001, upload="large.pcap")
    assert response.status_code == 413
    assert "tcpcast trace" in response.json()["error"]["message"]
    without_length = page.post("trace", (b"x" * 600 for _ in range(2)), upload="large.pcap")
    assert without_length.status_code == 413
    assert page.post("predict", rtt="x" * 20_000).status_code == 413


def test_stalled_upload_times_out(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stall(*_: Any) -> Any:
        await anyio.sleep(WAIT_S)
        yield b""

    monkeypatch.setattr(app, "UPLOAD_LIMIT_S", 0.1)
    monkeypatch.setattr("starlette.requests.Request.stream", stall)
    response = page.post("trace", b"x", upload="slow.pcap")
    assert response.status_code == 503
    assert "the upload took more than" in response.json()["error"]["message"]


def test_number_of_answers_is_limited(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_ANSWERS", 0)
    assert page.post("predict").status_code == 429
    monkeypatch.undo()
    assert page.answer("predict")["verdict"]


def test_work_ends_when_the_client_disconnects() -> None:
    """The response is cancelled, its worker is killed, and its folder is removed."""
    processes: list[int] = []
    folders: list[str] = []

    async def ask(_: Any, folder: str) -> Any:
        folders.append(folder)
        return await run_in_worker(_write_and_wait, folder, limit_s=WAIT_S)

    async def connect() -> None:
        page = app._Page(make_forms(), ask)
        sent = False

        async def receive() -> Any:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": b"", "more_body": False}
            while not (folders and Path(folders[0], "process").exists()):
                await anyio.sleep(0.02)
            processes.append(int(Path(folders[0], "process").read_text()))
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            pass

        scope = {
            "type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b"",
            "path_params": {"form": "predict"},
        }  # fmt: skip
        answer = await page.answer(Request(scope, receive))
        with anyio.fail_after(WAIT_S):
            await answer(scope, receive, send)

    anyio.run(connect)
    with pytest.raises(ProcessLookupError):
        os.kill(processes[0], 0)
    assert not Path(folders[0]).exists()


def _kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _write_and_wait(folder: str) -> None:
    import time  # noqa: PLC0415 - runs in another process

    partial_file = Path(folder, "part")
    partial_file.write_text(str(os.getpid()))
    partial_file.rename(Path(folder, "process"))
    time.sleep(WAIT_S)


def test_crash_of_a_worker_is_an_error_of_its_request_only() -> None:
    async def crash_and_continue() -> int:
        with pytest.raises(WorkerDied, match="ended without an answer"):
            await run_in_worker(_kill_process, limit_s=WAIT_S)
        with pytest.raises(WorkerDied, match="by zero"):
            await run_in_worker(divmod, 1, 0, limit_s=WAIT_S)
        found: int = await run_in_worker(abs, -3, limit_s=WAIT_S)
        return found

    assert anyio.run(crash_and_continue) == 3


def test_calculation_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpcast.cli.worker.GRACE_S", 0.0)

    async def wait() -> None:
        await run_in_worker(_write_and_wait, "/tmp", limit_s=0.3)

    with pytest.raises(TimeLimitExceeded):
        anyio.run(wait)


def test_simulation_is_interrupted_at_its_time_limit(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "LIMIT_S", 3.0)
    answer = page.lines("run", **ENDLESS)[-1]
    assert "interrupted" in str(answer)


def test_memory_of_a_calculation_is_limited(page: Page) -> None:
    values = {"file": "web-10mbit", "engine": "packet", "traffic.sources": "10000000"}
    values["simulate"] = "1"
    text = page.answer("run", **values)["page"]
    assert re.search(r"of memory, but only (1\.[0-9]+|2) GiB are free", text)
