"""Takes the screenshots of the documentation with Chromium: ``make screenshots``.

Usage: ``screenshots.py SITE [NAME ...]``, where SITE is the built documentation; without names, it
takes all screenshots.
"""

from __future__ import annotations

import io
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "screenshots"
CAPTURE = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
COLOURS = 96
"""Colours of each PNG file, which keep text and lines sharp."""
WAIT_MS = 300_000
"""Long, because a busy machine needs much time for a simulation."""
QUESTION = "#form=run&file=office-50mbit&across=traffic.sources"


@contextmanager
def folder_with_capture() -> Iterator[Path]:
    """Yield a temporary folder, in which commands run."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CAPTURE, folder)
        yield Path(folder)


@contextmanager
def opened(browser: Browser, url: str, size: tuple[int, int], scheme: str) -> Iterator[Page]:
    """Yield a tab with a page."""
    width, height = size
    how: dict[str, Any] = {"color_scheme": scheme}
    context = browser.new_context(viewport={"width": width, "height": height}, **how)
    tab = context.new_page()
    tab.set_default_timeout(WAIT_MS)
    tab.goto(url)
    yield tab
    context.close()


def local_page(browser: Browser, width: int = 1200, scheme: str = "light") -> bytes:
    """Return a picture of ``tcpcast serve`` after a simulation."""
    command = [sys.executable, "-m", "tcpcast", "serve", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        start = server.stdout.readline().strip()
        with opened(browser, start, (width, 850), scheme) as tab:
            tab.locator("#answer:not(.stale) #verdict").wait_for()
            tab.goto(start.partition("?")[0].rpartition("/")[0] + "/" + QUESTION)
            tab.reload()
            tab.locator("#answer:not(.stale) #verdict").wait_for()
            tab.click("#run")
            tab.locator("#state", has_text="simulated").wait_for()
            picture = tab.screenshot()
        server.terminate()
    return picture


def report(browser: Browser, *words: str, at: str = "h1") -> bytes:
    """Return a picture of the HTML report of a command, from the element ``at`` downwards."""
    with folder_with_capture() as folder:
        file = folder / "report.html"
        command = [sys.executable, "-m", "tcpcast", *words, "--out", file.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=folder)
        with opened(browser, file.as_uri(), (900, 900), "light") as tab:
            tab.locator(at).first.evaluate("element => element.scrollIntoView()")
            return tab.screenshot()


def terminal(browser: Browser, *words: str) -> bytes:
    """Return a picture of the output of a command in a terminal with 80 columns."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "tcpcast", *words]
    how: dict[str, Any] = {"stdout": theirs, "stderr": subprocess.DEVNULL, "env": environment}
    with folder_with_capture() as folder, subprocess.Popen(command, cwd=folder, **how):
        os.close(theirs)
        output = b"".join(iter(partial(read_terminal, ours), b"")).decode()
    console = Console(record=True, width=80, file=io.StringIO(), color_system="truecolor")
    console.print(Text.from_ansi(f"$ tcpcast {' '.join(words)}\n{output}".replace("\r", "")))
    style = "body { margin: 0 } pre { display: inline-block; padding: 12px; line-height: 1.25 }"
    page = console.export_html(inline_styles=True).replace(
        "<head>", f"<head><style>{style}</style>"
    )
    with opened(browser, "about:blank", (800, 600), "light") as tab:
        tab.set_content(page)
        return tab.locator("pre").screenshot()


def read_terminal(ours: int) -> bytes:
    """Return the next output of a terminal, b"" at its end, which Linux reports as an error."""
    try:
        return os.read(ours, 65536)
    except OSError:
        return b""


def playground(browser: Browser) -> bytes:
    """Return a picture of the playground in the built documentation."""
    page = Path(sys.argv[1]).resolve() / "docs" / "gallery.html"
    with opened(browser, page.as_uri(), (1200, 850), "light") as tab:
        tab.locator("#experiments canvas").first.wait_for()
        return tab.locator("#experiments").screenshot()


def reproduction(browser: Browser) -> bytes:
    """Return a picture of the first figure of a reproduced paper."""
    return report(browser, "reproduce", "pftk", "--quick", at="figure")


SCREENSHOTS: dict[str, Callable[[Browser], bytes]] = {
    "page": local_page,
    "page-dark": lambda browser: local_page(browser, scheme="dark"),
    "page-narrow": lambda browser: local_page(browser, 380),
    "terminal-run": lambda browser: terminal(browser, "run", "office-50mbit"),
    "terminal-trace": lambda browser: terminal(browser, "trace", CAPTURE.name),
    "report-run": lambda browser: report(browser, "run", "office-50mbit"),
    "report-sweep": lambda browser: report(
        browser,
        *("sweep", "office-50mbit", "--vary", "tcp.stack=linux-cubic,linux-bbr,linux-reno"),
        *("--vary", "network.bottleneck.queue=droptail,fq_codel"),
    ),
    "report-trace": lambda browser: report(browser, "trace", CAPTURE.name),
    "playground": playground,
    "paper": reproduction,
}


def main() -> None:
    """Write the requested screenshots."""
    FOLDER.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in sys.argv[2:] or SCREENSHOTS:
            picture = Image.open(io.BytesIO(SCREENSHOTS[name](browser))).convert("RGB")
            picture.quantize(COLOURS, dither=Image.Dither.NONE).save(
                FOLDER / f"{name}.png", optimize=True
            )
            print(f"wrote {name}.png", file=sys.stderr)
        browser.close()


if __name__ == "__main__":
    main()
