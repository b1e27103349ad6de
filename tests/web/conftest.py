"""Fixture for tests of the web API: an authenticated client that needs no socket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("starlette", reason="needs starlette: the extra web")
pytest.importorskip("httpx2", reason="needs httpx2: Starlette's TestClient")

from starlette.testclient import TestClient
from tcpcast.cli.page import make_forms
from tcpcast.cli.serve import ask
from tcpcast.web.app import create_app
from tcpcast.web.guard import Access

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"


class Page:
    """API client that has opened the start URL and holds its cookie."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def post(self, form: str, content: Any = None, **values: str) -> httpx2.Response:
        url = f"/api/answer/{form}"
        return self.client.post(url, params=values, content=content, headers={"origin": ORIGIN})

    def lines(self, form: str, content: Any = None, **values: str) -> list[dict[str, Any]]:
        """Return the messages about the progress, and the answer or its error."""
        return [json.loads(line) for line in self.post(form, content, **values).text.splitlines()]

    def answer(self, form: str, content: Any = None, **values: str) -> dict[str, Any]:
        answer = self.lines(form, content, **values)[-1]
        assert "error" not in answer, answer
        return answer

    def error(self, form: str, content: Any = None, **values: str) -> tuple[str, str]:
        """Return the field and the message of the error."""
        error = self.lines(form, content, **values)[-1]["error"]
        return error["field"], error["message"]


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    access = Access(PORT)
    app = create_app(access, make_forms(), ask)
    # A bug must appear as the response that a browser would get.
    with TestClient(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
        assert client.get(access.start_url).status_code == 200
        yield Page(client)
