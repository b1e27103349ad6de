# mypy: ignore-errors
"""A server of pages over HTTP/1.1, 2 or 3, and Chromium that loads them, as ends of a link.

``page_peer.py server HTTP FOLDER`` serves ``/OBJECTS/BYTES``, a document with images, with the
certificate in the folder. ``page_peer.py browse HTTP FOLDER PATHS COUNT`` prints the times of COUNT
loads of each path as JSON, in new profiles with new connections. Times begin with the first
request: Chromium may connect while its page starts.
"""

import asyncio
import json
import os
import shutil
import socket
import struct
import sys
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
    return {
        page: last - page.requestStart,
        first_byte: page.responseStart - page.requestStart,
        first_image: images.length ? first - page.responseStart : 0,
        objects: 1 + images.length,
        protocol: page.nextHopProtocol,
    };
}"""


def browse(http: str, folder: Path, paths: list[str], count: int) -> None:
    """Load each path several times, and print the times in milliseconds."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only the client has it

    from emulation.certificate import key_hash  # noqa: PLC0415

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    found: dict[str, list[dict]] = {}
    origin = f"{os.environ.get('TCPCAST_PEER', '127.0.0.1')}:{PORT}"
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
    print(json.dumps(found))


if __name__ == "__main__":
    role, http, folder, *rest = sys.argv[1:]
    if role == "server":
        asyncio.run(run_server(http, Path(folder)))
    else:
        browse(http, Path(folder), rest[0].split(","), int(rest[1]))
