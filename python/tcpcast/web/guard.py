"""Access control: admits only the browser that opened the start URL, and only its page.

Other programs on this machine can reach the port, and so can other web pages in the browser. The
check of ``Host`` prevents DNS rebinding (foreign names that resolve to 127.0.0.1), the check of
``Origin`` prevents requests from other pages, and the cookie excludes clients that have not opened
the start URL.
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import HTMLResponse, JSONResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_ADDRESS = "127.0.0.1"

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",  # of figures
        "img-src 'self' data:",  # dense points of figures
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types report",
    ]
)
RESPONSE_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
SAFE_METHODS = {"GET", "HEAD"}

_LOCKED_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>tcpcast</title>
<h1>This page is locked</h1>
<p>Open the address that <code>tcpcast serve</code> printed. It works only once; if it has already
been used, restart the command and open the new address.</p></html>
"""


class Access:
    """Host names of the server, the one-time token of its start URL, and the session cookie."""

    def __init__(self, port: int) -> None:
        self.hosts = {f"{LOOPBACK_ADDRESS}:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.cookie = f"tcpcast-{port}"
        self.url = f"http://{LOOPBACK_ADDRESS}:{port}/?token="
        self._token: str | None = secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(32)

    @property
    def start_url(self) -> str:
        """The URL that opens the page; valid only once."""
        return f"{self.url}{self._token}"

    def consume_token(self, token: str | None) -> bool:
        """Return True if the token is valid, and invalidate it."""
        if not token or self._token is None or not _equal_in_constant_time(token, self._token):
            return False
        self._token = None
        return True

    def has_session(self, headers: Headers) -> bool:
        """Return True if a request comes from the browser that opened the start URL."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and _equal_in_constant_time(cookie.value, self._session)

    def set_cookie_header(self) -> str:
        """Return the value of the Set-Cookie header for the session."""
        return f"{self.cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"


def _equal_in_constant_time(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


class Guard:
    """Middleware that rejects unauthorised requests and adds security headers to all responses."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        opened, refusal = self._check_access(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(RESPONSE_HEADERS)
                if opened:
                    headers.append("set-cookie", self._access.set_cookie_header())
            await send(message)

        await (refusal or self._app)(scope, receive, guarded)

    def _check_access(self, scope: Scope) -> tuple[bool, Response | None]:
        """Return True for a valid start URL; and the response if the request is rejected."""
        headers = Headers(scope=scope)
        refusal = self._reject_foreign_request(headers, scope["method"])
        if refusal is not None or self._access.has_session(headers):
            return False, refusal
        token = QueryParams(scope["query_string"]).get("token")
        if scope["path"] == "/" and scope["method"] == "GET" and self._access.consume_token(token):
            return True, None
        if scope["path"].startswith("/api/"):
            return False, _refusal_response(403, "open the address that tcpcast serve printed")
        return False, HTMLResponse(_LOCKED_PAGE, 403)

    def _reject_foreign_request(self, headers: Headers, method: str) -> Response | None:
        """Return a response that rejects requests with another host name or from another page."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._access.hosts:
            return _refusal_response(421, "Host: must be a name of this server")
        origin = headers.get("origin")
        if origin is None and method not in SAFE_METHODS:
            return _refusal_response(403, "Origin: missing")
        if origin is not None and origin not in self._access.origins:
            return _refusal_response(403, "Origin: requests from other pages are not allowed")
        return None


def _refusal_response(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "field": ""}}, status)
