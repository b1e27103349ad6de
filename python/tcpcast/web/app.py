"""The HTTP routes of the page: static files, forms, and answers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tcpcast.process.errors import TcpcastError
from tcpcast.web.guard import Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from tcpcast.web.guard import Access

STATIC_DIRECTORY = Path(__file__).parent / "static"
MAX_ANSWERS = 6
"""Maximum number of answers that are uploaded or calculated at the same time."""
MAX_QUERY_BYTES = 2**14
MAX_FILE_BYTES = 512 * 2**20
UPLOAD_LIMIT_S = 600.0
PROGRESS_S = 0.2
"""Time between two messages about the progress, in seconds."""


class Form(Protocol):
    """A form of the page."""

    def describe(self) -> dict[str, Any]:
        """Return the JSON form for the page."""

    def request(self, values: Mapping[str, str], file: str = "") -> Any:
        """Return a request to answer; raise TcpcastError if a value is invalid."""


Ask = Callable[[Any, str], "Awaitable[dict[str, Any]]"]
"""Function from a request and the folder of its uploaded file to the answer as JSON."""


def create_app(access: Access, forms: Mapping[str, Form], ask: Ask) -> ASGIApp:
    """Return the web application of one server.

    Parameters
    ----------
    access
        Host names, start URL and cookie of the server.
    forms
        The forms by name.
    ask
        Answers a request; it is cancelled if the client closes the connection.
    """
    page = _Page(forms, ask)
    routes = [
        Route("/", _send_index_page),
        Route("/report.css", _send_report_stylesheet),
        Route("/api/forms", page.send_forms),
        Route("/api/answer/{form}", page.answer, methods=["POST"]),
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


async def _send_index_page(_: Request) -> Response:
    return FileResponse(STATIC_DIRECTORY / "index.html", media_type="text/html; charset=utf-8")


async def _send_report_stylesheet(_: Request) -> Response:
    text = resources("tcpcast.report").joinpath("page.css").read_text(encoding="utf-8")
    return PlainTextResponse(text, media_type="text/css")


class _Page:
    """The forms, and the number of answers in progress."""

    def __init__(self, forms: Mapping[str, Form], ask: Ask) -> None:
        self._forms, self._ask, self._in_work = forms, ask, 0

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._import_formulas)
            yield
            tasks.cancel_scope.cancel()

    async def _import_formulas(self) -> None:
        """Start a process before the first request."""
        first = next(iter(self._forms.values()))
        with suppress(TcpcastError), tempfile.TemporaryDirectory() as folder:
            await self._ask(first.request({}), folder)

    async def send_forms(self, _: Request) -> Response:
        forms = [form.describe() for form in self._forms.values()]
        return JSONResponse({"forms": forms, "upload_bytes": MAX_FILE_BYTES})

    async def answer(self, request: Request) -> Any:
        """Return the response with the answer, which receives an uploaded file first."""
        form = self._forms.get(request.path_params["form"])
        if form is None:
            raise HTTPException(404, f"unknown form; use {', '.join(self._forms)}")
        if len(request.scope["query_string"]) > MAX_QUERY_BYTES:
            raise HTTPException(413, f"the values must contain at most {MAX_QUERY_BYTES:,} bytes")
        values = dict(request.query_params)
        name = values.pop("upload", "")
        return _Answer(request, form.request(values, name), self._ask, self._count_work)

    @contextmanager
    def _count_work(self) -> Iterator[None]:
        if self._in_work >= MAX_ANSWERS:
            raise HTTPException(
                429, f"{MAX_ANSWERS} answers are being computed; wait, or cancel one"
            )
        self._in_work += 1
        try:
            yield
        finally:
            self._in_work -= 1


class _Answer:
    """A response of one JSON object per line: the progress, then the answer.

    The work ends if the client closes the connection.
    """

    def __init__(self, request: Request, asked: Any, ask: Ask, count_work: Any) -> None:
        self._request, self._asked, self._ask = request, asked, ask
        self._count_work = count_work

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        with (
            self._count_work(),
            tempfile.TemporaryDirectory(prefix="tcpcast-serve-") as folder,
        ):
            await _receive_file(self._request, Path(folder) / (self._asked.file or ".nothing"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
                headers = [(b"content-type", b"application/x-ndjson")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                tasks.start_soon(_send_progress, Path(folder) / ".progress", send)
                try:
                    answer = await self._ask(self._asked, folder)
                except TcpcastError as error:
                    answer = _error_document(error)
                tasks.cancel_scope.shield = True
                await send({"type": "http.response.body", "body": _line(answer)})
                tasks.cancel_scope.cancel()


async def _cancel_on_disconnect(receive: Receive, work: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    work.cancel()


async def _send_progress(file: Path, send: Send) -> None:
    while True:
        await anyio.sleep(PROGRESS_S)
        text = file.read_text(encoding="ascii") if file.exists() else ""
        body = _line({"progress": float(text or 0)})
        await send({"type": "http.response.body", "body": body, "more_body": True})


def _line(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b"\n"


async def _receive_file(request: Request, file: Path) -> None:
    """Write the body of a request as it arrives; raise as soon as it is too long or too slow."""
    size = 0
    hint = (
        f"this file is larger than {MAX_FILE_BYTES // 2**20:,} MiB; use tcpcast trace FILE for "
        "this capture"
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MAX_FILE_BYTES:
        raise HTTPException(413, hint)
    try:
        with anyio.fail_after(UPLOAD_LIMIT_S), file.open("wb") as sink:
            async for part in request.stream():
                size += len(part)
                if size > MAX_FILE_BYTES:
                    raise HTTPException(413, hint)
                sink.write(part)
    except TimeoutError:
        raise HTTPException(503, f"the upload took more than {UPLOAD_LIMIT_S:.0f} s") from None


def _error_document(error: TcpcastError) -> dict[str, Any]:
    return {"error": {"message": str(error), "field": getattr(error, "field", "")}}


async def _handle_http_error(_: Request, error: HTTPException) -> Response:
    return _error_response(error.detail, error.status_code, error.headers)


async def _handle_request_error(_: Request, error: TcpcastError) -> Response:
    return JSONResponse(_error_document(error), 400)


async def _handle_disconnect(_: Request, __: Exception) -> Response:
    return _error_response("the client closed the connection before the request was complete", 400)


async def _handle_internal_error(_: Request, error: Exception) -> Response:
    return _error_response(f"internal error of tcpcast: {error!r}", 500)


def _error_response(message: str, status: int, headers: Any = None) -> Response:
    return JSONResponse({"error": {"message": message, "field": ""}}, status, headers)
