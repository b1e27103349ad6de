"""The server accepts requests only from the page in the browser that opened the start URL."""

import pytest
from starlette.testclient import TestClient
from tcpcast.cli.serve import ask
from tcpcast.web.app import create_app
from tcpcast.web.guard import Access

PORT = 8124
ORIGIN = f"http://127.0.0.1:{PORT}"
FORM = "/api/answer/predict"


@pytest.fixture
def access() -> Access:
    return Access(PORT)


@pytest.fixture
def client(access: Access) -> TestClient:
    # The lifespan is not started: none of these requests reaches a worker process.
    return TestClient(create_app(access, {}, ask), base_url=ORIGIN)


def test_start_url_returns_page_and_cookie(client: TestClient, access: Access) -> None:
    response = client.get(access.start_url)
    assert response.status_code == 200
    assert "<title>tcpcast</title>" in response.text
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(f"tcpcast-{PORT}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/").status_code == 200
    assert client.get("/static/page.js").status_code == 200


def test_start_token_works_for_one_browser_only(client: TestClient, access: Access) -> None:
    url = access.start_url
    assert client.get(url).status_code == 200
    other_browser = TestClient(client.app, base_url=ORIGIN)
    assert other_browser.get(url).status_code == 403
    assert client.get(url).status_code == 200, "an authenticated browser may reload the address"


def test_head_request_does_not_consume_start_token(client: TestClient, access: Access) -> None:
    assert client.head(access.start_url).status_code == 403
    assert client.get(access.start_url).status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/static/page.js", "/api/forms", "/report.css"]
)
def test_requests_without_cookie_are_forbidden(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 403
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "[::1]:80"])
def test_wrong_host_header_is_rejected(client: TestClient, access: Access, host: str) -> None:
    response = client.get(access.start_url, headers={"host": host})
    assert response.status_code == 421
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", None])
def test_requests_from_other_origins_are_forbidden(
    client: TestClient, access: Access, origin: str | None
) -> None:
    client.get(access.start_url)
    headers = {} if origin is None else {"origin": origin}
    assert client.post(FORM, headers=headers).status_code == 403


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/page.css", "/api/nothing"])
def test_every_response_has_strict_security_headers(
    client: TestClient, access: Access, path: str
) -> None:
    client.get(access.start_url)
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_static_files_reject_path_traversal(client: TestClient, access: Access) -> None:
    client.get(access.start_url)
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"):
        assert client.get(path).status_code == 404


def test_unknown_paths_and_methods_return_json_errors(client: TestClient, access: Access) -> None:
    client.get(access.start_url)
    assert client.get("/api/nothing").json()["error"]["message"] == "Not Found"
    assert client.get(FORM).status_code == 405
    response = client.post(FORM, headers={"origin": ORIGIN})
    assert response.status_code == 404
    assert "unknown form; use" in response.json()["error"]["message"]
