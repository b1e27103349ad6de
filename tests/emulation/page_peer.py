# mypy: ignore-errors
"""A server of pages over HTTP/1.1, 2 or 3, and clients that load them, as ends of a link.

``page_peer.py server HTTP FOLDER`` serves ``/OBJECTS/BYTES``, a document with images, with the
certificate in the folder. ``page_peer.py chromium HTTP FOLDER PATHS COUNT`` prints the times of
COUNT loads of each path as JSON, in new profiles with new connections. Times begin with the first
request: Chromium may connect while its page starts.

Two clients do no work of a browser, over HTTP/2: ``curl`` loads only the document, and ``plain``
requests each image a fixed delay after its tag.
"""

import asyncio
import json
import os
import select
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

PORT = 8080
DOCUMENT_SHARE = 0.1
"""Share of the bytes of a page in its document."""
HEADERS = 160
"""Bytes of the headers of an answer over HTTP/1.1, padded to this length, and of the headers,
frames and TLS records of an answer over others, approximately."""
MAX_HEADERS = 300
HEADERS_WAIT_S = 0.01
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def split(objects: int, size: int) -> list[int]:
    """Return the bytes of the document and of each image, with headers."""
    if objects == 1:
        return [size]
    document = max(round(DOCUMENT_SHARE * size), 400 + 100 * objects)
    each = max(400, (size - document) // (objects - 1))
    return [document, *([each] * (objects - 1))]


def image_places(objects: int, document: int) -> list[int]:
    """Return the bytes of the document up to the end of the tag of each image."""
    step = (document - HEADERS - 300) / max(1, objects - 1)
    return [HEADERS + 200 + round((number + 1) * step) for number in range(objects - 1)]


def make_document(objects: int, size: int) -> bytes:
    """Return a document whose tags of images end at their places."""
    sizes = split(objects, size)
    # Chromium would request an icon, which is no object of the page.
    text = "<!doctype html><title>page</title><link rel=icon href=data:,><body>"
    for number, place in enumerate(image_places(objects, sizes[0])):
        tag = f"<img width=1 height=1 src=/image/{number}/{sizes[number + 1] - HEADERS}>"
        text = text.ljust(place - HEADERS - len(tag)) + tag
    return text.ljust(sizes[0] - HEADERS).encode()


def make_image(size: int) -> bytes:
    """Return an image of one pixel, as PNG, that a chunk without meaning fills up to its size.

    Chromium stops loading an image that it cannot decode, and closes its connection.
    """
    pixel = _chunk(b"IHDR", struct.pack(">2I5B", 1, 1, 8, 0, 0, 0, 0))
    data, end = _chunk(b"IDAT", zlib.compress(bytes(2))), _chunk(b"IEND", b"")
    fill = size - len(PNG_SIGNATURE + pixel + data + end) - 12
    return PNG_SIGNATURE + pixel + _chunk(b"fiLl", bytes(fill)) + data + end


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def answer(path: str) -> tuple[bytes, bytes]:
    """Return the type and the body of an answer to a request."""
    kind, *numbers = path.strip("/").split("/")
    if kind == "image":
        return b"image/png", make_image(int(numbers[1]))
    return b"text/html", make_document(int(kind), int(numbers[0]))


async def serve_pages(scope, _receive, send) -> None:
    """Answer a request (the interface of a server is ASGI 3)."""
    if scope["type"] != "http":
        raise ValueError("only HTTP")
    media, body = answer(scope["path"])
    headers = [(b"content-type", media), (b"content-length", str(len(body)).encode())]
    if scope["http_version"] == "1.1":
        written = len("HTTP/1.1 200 \r\n\r\n" + "x-pad: \r\n")
        written += sum(len(name + value) + 4 for name, value in headers)
        headers.append((b"x-pad", (HEADERS - written) * b"x"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def run_server(http: str, folder: Path) -> None:
    """Serve until the link ends."""
    from hypercorn.asyncio import serve  # noqa: PLC0415 - only the server has it
    from hypercorn.asyncio.tcp_server import TCPServer  # noqa: PLC0415
    from hypercorn.config import Config  # noqa: PLC0415
    from hypercorn.events import RawData  # noqa: PLC0415
    from hypercorn.protocol.h2 import H2Protocol  # noqa: PLC0415

    async def keep_priority(_protocol, _event) -> None:
        """Change no priority: hypercorn's tree finds loops in those of Chromium, and ends."""

    H2Protocol._priority_updated = keep_priority
    send_each = TCPServer.protocol_send

    async def send_with_body(server, event) -> None:
        """Write headers with the start of the body, as most servers do.

        hypercorn sends them in packets of their own. Control frames wait in vain for a body.
        """
        waiting = server.__dict__.setdefault("waiting", bytearray())

        def write_waiting() -> None:
            server.writer.write(bytes(waiting))
            waiting.clear()

        if not isinstance(event, RawData):
            write_waiting()
        elif len(event.data) < MAX_HEADERS:
            if not waiting:
                asyncio.get_running_loop().call_later(HEADERS_WAIT_S, write_waiting)
            waiting.extend(event.data)
            return
        else:
            server.writer.write(bytes(waiting) + event.data)
            waiting.clear()
            # Nothing is left to write, but to wait until the socket accepts more.
            event = RawData(b"")
        await send_each(server, event)

    TCPServer.protocol_send = send_with_body
    config = Config()
    config.include_date_header = config.include_server_header = False
    config.errorlog = None
    if http != "1.1":
        config.certfile, config.keyfile = str(folder / "certificate.pem"), str(folder / "key.pem")
    if http == "3":
        config.bind, config.quic_bind = [], [f"0.0.0.0:{PORT}"]
    else:
        # Connections inherit the congestion control, whose default differs between machines.
        listening = socket.socket()
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        listening.bind(("0.0.0.0", PORT))
        config.bind = [f"fd://{listening.detach()}"]
    await serve(serve_pages, config)


TIMES = """() => {
    const [page] = performance.getEntriesByType("navigation");
    const images = performance.getEntriesByType("resource");
    const last = Math.max(page.responseEnd, ...images.map(each => each.responseEnd));
    const first = Math.min(...images.map(each => each.fetchStart));
    const requests = images.map(each => each.requestStart).sort((one, other) => one - other);
    const middle = requests[Math.floor(requests.length / 2)];
    return {
        page: last - page.requestStart,
        first_byte: page.responseStart - page.requestStart,
        first_image: images.length ? first - page.responseStart : 0,
        middle_image: images.length ? middle - page.responseStart : 0,
        objects: 1 + images.length,
        protocol: page.nextHopProtocol,
    };
}"""


def peer_host() -> str:
    """Return the host of the server."""
    return os.environ.get("TCPCAST_PEER", "127.0.0.1")


def browse(http: str, folder: Path, paths: list[str], count: int) -> dict[str, list[dict]]:
    """Load each path several times in Chromium, and return the times in milliseconds."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only the client has it

    from emulation.certificate import key_hash  # noqa: PLC0415

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    found: dict[str, list[dict]] = {}
    origin = f"{peer_host()}:{PORT}"
    arguments = ["--no-sandbox"]
    if http != "1.1":
        key = key_hash(folder / "certificate.pem")
        arguments.append(f"--ignore-certificate-errors-spki-list={key}")
    if http == "3":
        arguments += ["--enable-quic", f"--origin-to-force-quic-on={origin}"]
    scheme = "http" if http == "1.1" else "https"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        for path in paths:
            for _ in range(count):
                context = browser.new_context(ignore_https_errors=True)
                page = context.new_page()
                page.goto(f"{scheme}://{origin}{path}", wait_until="load", timeout=60_000)
                found.setdefault(path, []).append(page.evaluate(TIMES))
                context.close()
        browser.close()
    return found


BETWEEN_LOADS_S = 0.3
"""Pause in which the last packets of a connection leave the link."""
CURL_TIMES = "%{time_pretransfer} %{time_starttransfer} %{time_total} %{http_version}"


def load_by_curl(path: str) -> dict:
    """Load a document with curl over HTTP/2, and return the times in milliseconds."""
    url = f"https://{peer_host()}:{PORT}{path}"
    command = ["curl", "--silent", "--insecure", "--http2", "--output", os.devnull]
    command += ["--write-out", CURL_TIMES, url]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    *times_s, version = output.split()
    if version != "2":
        raise RuntimeError(f"curl used HTTP/{version}; it must support HTTP/2")
    request, first, last = (1000 * float(time_s) for time_s in times_s)
    return {"page": last - request, "first_byte": first - request, "first_image": 0}


STREAM_WINDOW = 6 * 2**20
CONNECTION_WINDOW = 15 * 2**20
"""Bytes of flow control, as those of Chromium: they limit no page."""
PLAIN_DELAY_MS = 20
"""Delay of a plain client between the tag of an image and the request for it."""
PLAIN_HEADERS = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome",
    "accept": "image/avif,image/webp,*/*",
    "accept-encoding": "gzip, deflate, br",
}


class PlainLoad:
    """A load of a page over HTTP/2 that requests each image a fixed delay after its tag."""

    def __init__(self, path: str) -> None:
        from h2.config import H2Configuration  # noqa: PLC0415 - only this client has it
        from h2.connection import H2Connection  # noqa: PLC0415
        from h2.settings import SettingCodes, Settings  # noqa: PLC0415

        objects, size = map(int, path.strip("/").split("/"))
        self.sizes = split(objects, size)
        self.places = image_places(objects, self.sizes[0])
        settings = ssl.create_default_context()
        settings.check_hostname, settings.verify_mode = False, ssl.CERT_NONE
        settings.set_alpn_protocols(["h2"])
        raw = socket.create_connection((peer_host(), PORT))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = settings.wrap_socket(raw, server_hostname=peer_host())
        self.http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        windows = {
            SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            SettingCodes.MAX_CONCURRENT_STREAMS: 1000,
        }
        self.http.local_settings = Settings(client=True, initial_values=windows)
        self.http.initiate_connection()
        self.http.increment_flow_control_window(CONNECTION_WINDOW - (2**16 - 1))
        self.start_s = time.monotonic()
        self.document = self._request(path)
        self.arrived = self.complete = 0
        self.due_s: list[float] = []
        self.requests_s: list[float] = []
        self.first_s = self.last_s = 0.0

    def _request(self, path: str) -> int:
        stream = self.http.get_next_available_stream_id()
        headers = {
            ":method": "GET",
            ":authority": f"{peer_host()}:{PORT}",
            ":scheme": "https",
            ":path": path,
            **PLAIN_HEADERS,
        }
        self.http.send_headers(stream, list(headers.items()), end_stream=True)
        self._write()
        return stream

    def _write(self) -> None:
        self.socket.setblocking(True)
        self.socket.sendall(self.http.data_to_send())
        self.socket.setblocking(False)

    def run(self) -> dict:
        """Load the page, and return the times in milliseconds."""
        with self.socket:
            while self.complete < len(self.sizes):
                self._request_due()
                self._receive()
        delays_s = [time_s - self.first_s for time_s in self.requests_s] or [0]
        return {
            "page": 1000 * (self.last_s - self.start_s),
            "first_byte": 1000 * (self.first_s - self.start_s),
            "first_image": 1000 * delays_s[0],
            "middle_image": 1000 * delays_s[len(self.places) // 2],
        }

    def _request_due(self) -> None:
        while len(self.requests_s) < len(self.due_s):
            number, now_s = len(self.requests_s), time.monotonic()
            if self.due_s[number] > now_s:
                return
            self.requests_s.append(now_s)
            self._request(f"/image/{number}/{self.sizes[number + 1] - HEADERS}")

    def _receive(self) -> None:
        """Wait until data arrive or a request is due, and process the data."""
        from h2.events import DataReceived, StreamEnded  # noqa: PLC0415

        try:
            data = self.socket.recv(2**18)
        except (ssl.SSLWantReadError, BlockingIOError):
            due_s = self.due_s[len(self.requests_s) :]
            wait_s = max(0, due_s[0] - time.monotonic()) if due_s else None
            select.select([self.socket], [], [], wait_s)
            return
        if not data:
            raise RuntimeError("the server closed the connection")
        now_s = time.monotonic()
        for event in self.http.receive_data(data):
            if isinstance(event, DataReceived):
                self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if event.stream_id == self.document:
                    self.first_s = self.first_s or now_s
                    self.arrived += len(event.data)
            elif isinstance(event, StreamEnded):
                self.complete += 1
                self.last_s = now_s
        tags = sum(place <= HEADERS + self.arrived for place in self.places)
        self.due_s += [now_s + PLAIN_DELAY_MS / 1000] * (tags - len(self.due_s))
        # Acks of settings, and updates of windows.
        self._write()


def repeat(load, paths: list[str], count: int) -> dict[str, list[dict]]:
    """Load each path several times, and return the times in milliseconds."""
    found: dict[str, list[dict]] = {path: [] for path in paths}
    for path in paths:
        for _ in range(count):
            found[path].append(load(path))
            time.sleep(BETWEEN_LOADS_S)
    return found


def run_client(role: str, http: str, folder: Path, paths: list[str], count: int) -> None:
    """Print the times of the loads of each path as JSON."""
    if role == "chromium":
        found = browse(http, folder, paths, count)
    elif role == "curl":
        found = repeat(load_by_curl, paths, count)
    else:
        found = repeat(lambda path: PlainLoad(path).run(), paths, count)
    print(json.dumps(found))


if __name__ == "__main__":
    role, http, folder, *rest = sys.argv[1:]
    if role == "server":
        asyncio.run(run_server(http, Path(folder)))
    else:
        run_client(role, http, Path(folder), rest[0].split(","), int(rest[1]))
