"""Fixture for tests of the web API: an authenticated client that needs no socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("starlette", reason="needs starlette: the extra web")
pytest.importorskip("httpx2", reason="needs httpx2: Starlette's TestClient")

from starlette.testclient import TestClient
from tcpcast.web.app import create_app
from tcpcast.web.guard import Access

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"


class Page:
    """API client that has opened the start URL and holds its cookie."""

    def __init__(self, client: TestClient, access: Access) -> None:
        self.client = client
        self.access = access

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        return self.client.post(path, json=body, headers={"origin": ORIGIN, **headers})

    def evaluate(self, question: str, **values: Any) -> dict[str, Any]:
        response = self.post("/api/evaluate", {"question": question, "values": values})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def post_rejected(self, body: Any, path: str = "/api/evaluate") -> tuple[int, str, str]:
        """Post a bad request; return the status, the field and the message of the error."""
        response = self.post(path, body)
        error = response.json()["error"]
        return response.status_code, error["field"], error["message"]


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    access = Access(PORT)
    app = create_app(access)
    # A bug must appear as the response that a browser would get.
    with TestClient(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
        assert client.get(access.start_url).status_code == 200
        yield Page(client, access)
