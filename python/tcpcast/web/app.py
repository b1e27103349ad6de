"""The HTTP routes of the page: static files, questions, jobs and uploads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tcpcast.errors import TcpcastError, WorkerDied
from tcpcast.web.guard import Access, Guard
from tcpcast.web.jobs import Job, Jobs, TooManyJobs, UnknownJob
from tcpcast.web.processes import FormulaProcess, TimeLimitExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import ASGIApp

STATIC_DIRECTORY = Path(__file__).parent / "static"
MAX_JSON_BYTES = 2**16
MAX_CAPTURE_BYTES = 512 * 2**20
MAX_NAME_LENGTH = 255
_LARGE_CAPTURE_HINT = "; read larger captures with: tcpcast trace FILE"

_STATUS_BY_ERROR: dict[type[Exception], int] = {
    TooManyJobs: 429,
    UnknownJob: 404,
    TimeLimitExceeded: 503,
    WorkerDied: 500,
}


def create_app(access: Access) -> ASGIApp:
    """Return the web application of one server.

    Parameters
    ----------
    access
        Host names, start URL and cookie of the server.
    """
    page = _Page()
    ask = {
        "/api/evaluate": "evaluate",
        "/api/curve": "curve",
        "/api/report": "report",
    }
    routes = [
        Route("/", page.send_index_page),
        Route("/api/questions", page.send_questions),
        *(Route(path, page.make_formula_handler(do), methods=["POST"]) for path, do in ask.items()),
        Route("/api/jobs", page.start_simulation, methods=["POST"]),
        Route("/api/jobs/{name}", page.send_job_state),
        Route("/api/jobs/{name}", page.cancel_job, methods=["DELETE"]),
        Route("/api/captures", page.start_capture_analysis, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC_DIRECTORY)),
    ]
    handlers: dict[Any, Any] = {
        HTTPException: _handle_http_error,
        TcpcastError: _handle_request_error,
        ClientDisconnect: _handle_disconnect,
        Exception: _handle_internal_error,
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=page.lifespan)
    return Guard(app, access)


class _Page:
    """State shared by the routes: processes for formulas, jobs, and a folder for captures."""

    def __init__(self) -> None:
        self._models = FormulaProcess()
        self._curves = FormulaProcess()  # separate process, so that sliders do not wait for curves
        self._jobs = Jobs()
        self._folder: Path | None = None
        self._offered: Any = None

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._folder = Path(tempfile.mkdtemp(prefix="tcpcast-serve-"))
        starting = asyncio.create_task(self._import_models())
        try:
            yield
        finally:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            await self._jobs.end()
            await self._models.end()
            await self._curves.end()
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _import_models(self) -> None:
        """Import the models before the first question."""
        await self._models.start()
        await self._curves.start()

    async def send_index_page(self, _: Request) -> Response:
        return FileResponse(STATIC_DIRECTORY / "index.html", media_type="text/html; charset=utf-8")

    async def send_questions(self, _: Request) -> Response:
        if self._offered is None:
            self._offered = await self._models.ask({"do": "questions"})
        return JSONResponse({"questions": self._offered, "upload_bytes": MAX_CAPTURE_BYTES})

    def make_formula_handler(self, action: str) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that forwards a request to a process for formulas."""

        async def handle(request: Request) -> Response:
            body = await _read_json_object(request)
            if action == "report":
                body["points"] = self._simulated_points_of_job(body)
            quick = action == "evaluate" and body.get("quick") is True
            models = self._models if quick else self._curves
            return JSONResponse(await models.ask({**body, "do": action}))

        return handle

    def _simulated_points_of_job(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the points that the job named in a request has simulated."""
        name = body.get("job")
        return self._jobs.find(name).points if isinstance(name, str) else []

    async def start_simulation(self, request: Request) -> Response:
        body = await _read_json_object(request)
        checked = {**body, "do": "evaluate", "quick": True}
        await self._models.ask(checked)  # reports an invalid request immediately
        job = self._jobs.start({**body, "do": "simulate"})
        return JSONResponse(job.describe(), 202)

    async def send_job_state(self, request: Request) -> Response:
        return JSONResponse(self._find_job(request).describe())

    async def cancel_job(self, request: Request) -> Response:
        job = self._find_job(request)
        await self._jobs.cancel(job)
        return JSONResponse(job.describe())

    def _find_job(self, request: Request) -> Job:
        return self._jobs.find(request.path_params["name"])

    async def start_capture_analysis(self, request: Request) -> Response:
        assert self._folder is not None
        name = request.query_params.get("name", "")[:MAX_NAME_LENGTH] or "capture"
        descriptor, path = tempfile.mkstemp(dir=self._folder)
        file = Path(path)
        try:
            with open(descriptor, "wb") as sink:
                async with self._jobs.upload():
                    await _receive_capture(request, sink.write)
            asked = {"do": "capture", "path": path, "name": name}
            job = self._jobs.start(asked, on_end=lambda: file.unlink(missing_ok=True))
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        return JSONResponse(job.describe(), 202)


async def _receive_capture(request: Request, write: Callable[[bytes], Any]) -> None:
    """Write the body of a request as it arrives; raise as soon as it is too long."""
    size = 0
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_CAPTURE_BYTES:
        raise _too_large_error(MAX_CAPTURE_BYTES, _LARGE_CAPTURE_HINT)
    async for part in request.stream():
        size += len(part)
        if size > MAX_CAPTURE_BYTES:
            raise _too_large_error(MAX_CAPTURE_BYTES, _LARGE_CAPTURE_HINT)
        write(part)
    if not size:
        raise TcpcastError("the file is empty; choose a pcap or pcapng file")


def _too_large_error(max_bytes: int, hint: str = "") -> HTTPException:
    return HTTPException(413, f"more than {max_bytes // 2**10:,} KiB{hint}")


async def _read_json_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send the header content-type: application/json")
    text = bytearray()
    async for part in request.stream():
        text += part
        if len(text) > MAX_JSON_BYTES:
            raise _too_large_error(MAX_JSON_BYTES)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise TcpcastError("the body is not JSON") from None
    if not isinstance(content, dict):
        raise TcpcastError('the body is not an object; send {"question": "path", "values": {}}')
    return content


async def _handle_http_error(_: Request, error: HTTPException) -> Response:
    return _error_response(error.detail, error.status_code, "", error.headers)


async def _handle_request_error(_: Request, error: TcpcastError) -> Response:
    status = next((code for kind, code in _STATUS_BY_ERROR.items() if isinstance(error, kind)), 400)
    return _error_response(str(error), status, getattr(error, "field", ""))


async def _handle_disconnect(_: Request, __: Exception) -> Response:
    return _error_response("the request ended before it was complete", 400, "")


async def _handle_internal_error(_: Request, error: Exception) -> Response:
    return _error_response(f"internal error of tcpcast: {error!r}", 500, "")


def _error_response(message: str, status: int, field: str, headers: Any = None) -> Response:
    return JSONResponse({"error": {"message": message, "field": field}}, status, headers)
