"""A server of pages over HTTP/1.1, and Chromium that loads them, as the two ends of a link.

``page_peer.py server`` serves ``/OBJECTS/BYTES``, a document with images. ``page_peer.py browse
URLS COUNT`` prints the times of COUNT loads of each path as JSON, in new profiles with new
connections. Times begin with the first request: Chromium may connect while its page starts.
"""

import asyncio
import json
import os
import shutil
import sys

PORT = 8080
DOCUMENT_SHARE = 0.1
"""Share of the bytes of a page in its document."""
HEADERS = 160
"""Bytes of the headers of an answer, padded to this length."""


def split(objects: int, size: int) -> list[int]:
    """Return the bytes of the document and of each image, with headers."""
    if objects == 1:
        return [size]
    document = max(round(DOCUMENT_SHARE * size), 400 + 100 * objects)
    each = max(400, (size - document) // (objects - 1))
    return [document, *([each] * (objects - 1))]


def image_places(objects: int, document: int) -> list[int]:
    """Return the bytes of the document up to the end of the tag of each image."""
    step = (document - HEADERS - 200) / max(1, objects - 1)
    return [HEADERS + 100 + round((number + 1) * step) for number in range(objects - 1)]


def make_document(objects: int, size: int) -> bytes:
    """Return a document whose tags of images end at their places."""
    sizes = split(objects, size)
    text = "<!doctype html><title>page</title><body>"
    for number, place in enumerate(image_places(objects, sizes[0])):
        tag = f"<img width=1 height=1 src=/image/{number}/{sizes[number + 1] - HEADERS}>"
        text = text.ljust(place - HEADERS - len(tag)) + tag
    return text.ljust(sizes[0] - HEADERS).encode()


def answer(path: str) -> bytes:
    """Return an answer to a request."""
    kind, *numbers = path.strip("/").split("/")
    if kind == "image":
        body, media = bytes(int(numbers[1])), "image/png"
    elif kind.isdecimal():
        body, media = make_document(int(kind), int(numbers[0])), "text/html"
    else:
        body, media = b"", "text/plain"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\nX-Pad: "
    return (head.ljust(HEADERS - 4, "x") + "\r\n\r\n").encode() + body


async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection one after the other."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer(head.split()[1].decode()))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    """Serve until the link ends."""
    server = await asyncio.start_server(serve_connection, "0.0.0.0", PORT)
    async with server:
        await server.serve_forever()


TIMES = """() => {
    const [page] = performance.getEntriesByType("navigation");
    const ends = performance.getEntriesByType("resource").map(each => each.responseEnd);
    return [Math.max(page.responseEnd, ...ends) - page.requestStart,
            page.responseStart - page.requestStart, ends.length];
}"""


def browse(paths: list[str], count: int) -> None:
    """Load each path several times, and print the times of pages and first bytes in ms."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only the client has it

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    found: dict[str, list[list[float]]] = {}
    peer = os.environ["TCPCAST_PEER"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path in paths:
            for _ in range(count):
                context = browser.new_context()
                page = context.new_page()
                page.goto(f"http://{peer}:{PORT}{path}", wait_until="load", timeout=60_000)
                found.setdefault(path, []).append(page.evaluate(TIMES))
                context.close()
        browser.close()
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        asyncio.run(serve())
    else:
        browse(sys.argv[2].split(","), int(sys.argv[3]))
