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

from web.lossy_capture import write_lossy_capture

if TYPE_CHECKING:
    from pathlib import Path

    from web.conftest import Page

SMALL = {"rate": "2mbit", "loss": "2%", "rtt": "20ms"}
ENDLESS = {"rate": "10gbit", "loss": "0.0001%"}
WAIT_S = 120.0


def wait_for_job(page: Page, name: str) -> dict[str, Any]:
    """Wait until a job has ended."""
    deadline = time.monotonic() + WAIT_S
    while True:
        job: dict[str, Any] = page.client.get(f"/api/jobs/{name}").json()
        if job["state"] != "running":
            return job
        assert time.monotonic() < deadline, job
        time.sleep(0.05)


def cancel(page: Page, name: str) -> dict[str, Any]:
    headers = {"origin": str(page.client.base_url)}
    job: dict[str, Any] = page.client.delete(f"/api/jobs/{name}", headers=headers).json()
    return job


def upload(page: Page, content: bytes, name: str) -> Any:
    headers = {"origin": str(page.client.base_url)}
    return page.client.post(
        "/api/captures", params={"name": name}, content=content, headers=headers
    )


@pytest.fixture(scope="session")
def finished_job(page: Page) -> dict[str, Any]:
    body = {"question": "path", "values": SMALL}
    return wait_for_job(page, page.post("/api/jobs", body).json()["id"])


def test_simulation_returns_points_with_intervals(finished_job: dict[str, Any]) -> None:
    assert finished_job["state"] == "done", finished_job["error"]
    assert finished_job["progress"] == 1.0
    assert len(finished_job["points"]) == finished_job["result"]["points"]
    first = finished_job["points"][0]
    assert first["text"] == "2%"
    (value,) = first["values"]
    assert value["low"] < value["value"] < value["high"]


def test_first_point_equals_packet_engine_result(finished_job: dict[str, Any]) -> None:
    defaults = {field.name: field.default for field in PATH.fields if field.default}
    (answer,) = tcpcast.run(PATH.scenario({**defaults, **SMALL}), ["packet"])
    (value,) = finished_job["points"][0]["values"]
    assert value["value"] == answer["goodput_bps"]


def test_job_is_cancelled_immediately_and_repeatedly(page: Page) -> None:
    job = page.post("/api/jobs", {"question": "path", "values": ENDLESS}).json()
    assert job["state"] == "running"
    assert cancel(page, job["id"])["state"] == "cancelled"
    assert cancel(page, job["id"])["state"] == "cancelled", "cancelling again changes nothing"


def test_capture_result_has_limiting_factor_and_advice(page: Page, tmp_path: Path) -> None:
    capture = write_lossy_capture(tmp_path)
    name = '<img src=x onerror="alert(1)">\x1b[31m.pcap'
    response = upload(page, capture.read_bytes(), name)
    assert response.status_code == 202
    job = wait_for_job(page, response.json()["id"])
    assert job["state"] == "done", job["error"]
    result = job["result"]
    assert result["file"] == '<img src=x onerror="alert(1)">\\x1b[31m.pcap'
    (row,) = result["rows"]
    assert row["limited_by"]
    assert row["advice"].startswith("Limited by ")
    assert result["verdict"]
    assert row["shares"][0]["share"] > 0


def test_error_for_bad_capture_names_uploaded_file(page: Page) -> None:
    job = wait_for_job(page, upload(page, b"no capture at all", "notes.txt").json()["id"])
    assert job["state"] == "failed"
    assert "notes.txt" in job["error"]["message"]
    assert "tcpcast-serve" not in job["error"]["message"], "no path of the server"


def test_upload_size_is_limited(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_CAPTURE_BYTES", 1000)
    response = upload(page, b"x" * 1001, "large.pcap")
    assert response.status_code == 413
    assert "tcpcast trace" in response.json()["error"]["message"]
    streamed = page.client.post(
        "/api/captures",
        content=(b"x" * 600 for _ in range(2)),  # sent without Content-Length
        headers={"origin": str(page.client.base_url)},
    )
    assert streamed.status_code == 413
    assert upload(page, b"", "empty.pcap").status_code == 400


def test_number_of_uploads_is_limited() -> None:
    async def upload_at_once() -> None:
        async with jobs.Jobs().upload():
            pass  # a finished upload is not counted
        queue = jobs.Jobs()
        async with contextlib.AsyncExitStack() as uploads:
            for _ in range(jobs.MAX_RUNNING_JOBS):
                await uploads.enter_async_context(queue.upload())
            with pytest.raises(jobs.TooManyJobs, match="are running"):
                queue.check_capacity()
        queue.check_capacity()

    asyncio.run(upload_at_once())


def test_stalled_upload_times_out(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stall(*_: Any) -> None:
        await asyncio.sleep(WAIT_S)

    monkeypatch.setattr(jobs, "UPLOAD_LIMIT_S", 0.1)
    monkeypatch.setattr(app, "_receive_capture", stall)
    response = upload(page, b"x", "slow.pcap")
    assert response.status_code == 503
    assert "the upload took more than 0 s" in response.json()["error"]["message"]


class ExternalReferences(HTMLParser):
    """Collects the references of an HTML document to other resources."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [
            f"{tag} {name}" for name, _ in attrs if name in {"src", "href", "action"}
        ]


def test_report_is_self_contained_and_has_shown_results(
    page: Page, finished_job: dict[str, Any]
) -> None:
    body = {"question": "path", "values": SMALL, "job": finished_job["id"]}
    response = page.post("/api/report", body)
    assert response.status_code == 200, response.text
    report = response.json()
    assert report["file"] == "tcpcast-path.html"
    document = ExternalReferences()
    document.feed(report["html"])
    assert document.references == []
    assert "script" not in document.tags
    assert "tcpcast predict --rtt 20ms" in report["html"]
    assert finished_job["points"][0]["values"][0]["text"] in report["html"]
    assert len(report["html"]) < 200_000
