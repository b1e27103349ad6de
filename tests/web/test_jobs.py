"""Long-running jobs: simulations, captures and the report."""

from __future__ import annotations

import asyncio
import contextlib
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
import tcpcast
from tcpcast.web import app, jobs
from tcpcast.web.questions.path import PATH

from web.lossy_capture import capture_of_a_path

if TYPE_CHECKING:
    from pathlib import Path

    from web.conftest import Page

SMALL = {"rate": "2mbit", "loss": "2%", "rtt": "20ms"}
ENDLESS = {"rate": "10gbit", "loss": "0.0001%"}
WAIT_S = 120.0


def over(page: Page, name: str) -> dict[str, Any]:
    """Wait until a job has ended."""
    ends = time.monotonic() + WAIT_S
    while True:
        job: dict[str, Any] = page.client.get(f"/api/jobs/{name}").json()
        if job["state"] != "running":
            return job
        assert time.monotonic() < ends, job
        time.sleep(0.05)


def cancel(page: Page, name: str) -> dict[str, Any]:
    headers = {"origin": str(page.client.base_url)}
    told: dict[str, Any] = page.client.delete(f"/api/jobs/{name}", headers=headers).json()
    return told


def upload(page: Page, content: bytes, name: str) -> Any:
    headers = {"origin": str(page.client.base_url)}
    return page.client.post(
        "/api/captures", params={"name": name}, content=content, headers=headers
    )


@pytest.fixture(scope="session")
def simulated(page: Page) -> dict[str, Any]:
    body = {"question": "path", "values": SMALL}
    return over(page, page.post("/api/jobs", body).json()["id"])


def test_a_simulation_has_points_with_intervals(simulated: dict[str, Any]) -> None:
    assert simulated["state"] == "done", simulated["error"]
    assert simulated["progress"] == 1.0
    assert len(simulated["points"]) == simulated["result"]["points"]
    first = simulated["points"][0]
    assert first["text"] == "2%"
    (value,) = first["values"]
    assert value["low"] < value["value"] < value["high"]


def test_the_first_point_is_what_the_packet_engine_answers(simulated: dict[str, Any]) -> None:
    defaults = {field.name: field.default for field in PATH.fields if field.default}
    (found,) = tcpcast.run(PATH.scenario({**defaults, **SMALL}), ["packet"])
    (value,) = simulated["points"][0]["values"]
    assert value["value"] == found["goodput_bps"]


def test_a_job_is_cancelled_at_once(page: Page) -> None:
    job = page.post("/api/jobs", {"question": "path", "values": ENDLESS}).json()
    assert job["state"] == "running"
    assert cancel(page, job["id"])["state"] == "cancelled"
    assert cancel(page, job["id"])["state"] == "cancelled", "once more changes nothing"


def test_a_capture_says_what_limited_it(page: Page, tmp_path: Path) -> None:
    capture = capture_of_a_path(tmp_path)
    name = '<img src=x onerror="alert(1)">\x1b[31m.pcap'
    told = upload(page, capture.read_bytes(), name)
    assert told.status_code == 202
    job = over(page, told.json()["id"])
    assert job["state"] == "done", job["error"]
    read = job["result"]
    assert read["file"] == '<img src=x onerror="alert(1)">\\x1b[31m.pcap'
    (row,) = read["rows"]
    assert row["limited_by"]
    assert row["advice"].startswith("Limited by:")
    assert row["shares"][0]["share"] > 0


def test_what_is_no_capture_fails_with_its_own_name(page: Page) -> None:
    job = over(page, upload(page, b"no capture at all", "notes.txt").json()["id"])
    assert job["state"] == "failed"
    assert "notes.txt" in job["error"]["message"]
    assert "tcpcast-serve" not in job["error"]["message"], "not where it lies on the server"


def test_an_upload_is_bounded(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_CAPTURE_BYTES", 1000)
    response = upload(page, b"x" * 1001, "large.pcap")
    assert response.status_code == 413
    assert "tcpcast trace" in response.json()["error"]["message"]
    told = page.client.post(
        "/api/captures",
        content=(b"x" * 600 for _ in range(2)),  # says no length beforehand
        headers={"origin": str(page.client.base_url)},
    )
    assert told.status_code == 413
    assert upload(page, b"", "empty.pcap").status_code == 400


def test_the_number_of_uploads_is_bounded() -> None:
    async def upload_at_once() -> None:
        async with jobs.Jobs().upload():
            pass  # one that has ended is not counted
        kept = jobs.Jobs()
        async with contextlib.AsyncExitStack() as uploads:
            for _ in range(jobs.MAX_RUNNING):
                await uploads.enter_async_context(kept.upload())
            with pytest.raises(jobs.Full, match="are running"):
                kept.check_capacity()
        kept.check_capacity()

    asyncio.run(upload_at_once())


def test_a_stalled_upload_ends(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stall(*_: Any) -> None:
        await asyncio.sleep(WAIT_S)

    monkeypatch.setattr(jobs, "UPLOAD_S", 0.1)
    monkeypatch.setattr(app, "_receive", stall)
    response = upload(page, b"x", "slow.pcap")
    assert response.status_code == 503
    assert "the upload took more than 0 s" in response.json()["error"]["message"]


class Outside(HTMLParser):
    """Everything in a document that leads out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [f"{tag} {name}" for name, _ in attrs if name in {"src", "href", "action"}]


def test_the_report_is_one_file_with_what_is_shown(page: Page, simulated: dict[str, Any]) -> None:
    body = {"question": "path", "values": SMALL, "job": simulated["id"]}
    response = page.post("/api/report", body)
    assert response.status_code == 200, response.text
    told = response.json()
    assert told["file"] == "tcpcast-path.html"
    document = Outside()
    document.feed(told["html"])
    assert document.found == []
    assert "script" not in document.tags
    assert "tcpcast predict --rtt 20ms" in told["html"]
    assert simulated["points"][0]["values"][0]["text"] in told["html"]
    assert len(told["html"]) < 200_000
