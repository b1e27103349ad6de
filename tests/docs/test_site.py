"""The documentation builds as a site without warnings and without external resources.

``make docs`` and ``make check-long`` run it; other tests check pages and links without the site.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from doc_pages import ROOT, pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext

# Search without importing: the process that builds the site imports them.
for needed in ("sphinx", "myst_parser", "furo"):
    if find_spec(needed) is None:
        pytest.skip(f"needs {needed}: make setup", allow_module_level=True)

pytestmark = pytest.mark.long

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"(https?:)?//[^\"]*\"")
BUILD = """
import gc, sys
gc.disable()
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""
PHONE, DESK = 380, 1200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built like ``make site``.

    Garbage collection is disabled, which saves a quarter of the time.
    """
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [
            *(sys.executable, "-c", BUILD, "--quiet", "--fail-on-warning", "--keep-going"),
            *("-c", "docs", "-d", str(folder / "doctrees"), ".", str(folder / "html")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return folder / "html"


def test_site_has_every_page(site: Path) -> None:
    for page in pages():
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


def test_every_page_is_in_the_navigation(site: Path) -> None:
    sidebar = (site / "index.html").read_text(encoding="utf-8")
    for page in pages():
        if page != ROOT / "README.md":
            link = page.relative_to(ROOT).with_suffix(".html").as_posix()
            assert f'class="reference internal" href="{link}"' in sidebar, page


def test_pages_load_no_external_resources(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8"), style


def test_equations_are_mathml(site: Path) -> None:
    text = (site / "docs" / "reference" / "models.html").read_text(encoding="utf-8")
    assert text.count("<math") > 50
    assert "$$" not in text
    assert "MathJax" not in text


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserContext]:
    """Yield a browser without a network, which counts its external requests."""
    if CHROMIUM is None:
        pytest.skip("needs chromium: make peers")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium.new_context(offline=True)
        chromium.close()


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("how many users", "First answer in five minutes: how many users fit?"),
        ("speedtest", "Which queue keeps a call usable during an upload?"),
        ("starlink", "Model a network of links"),
        ("docker", "Install tcpcast, and solve problems"),
    ],
)
def test_search_finds_pages_by_words_of_their_readers(
    site: Path, browser: BrowserContext, query: str, title: str
) -> None:
    page = browser.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q={query}")
    page.locator("#search-results li a", has_text=title).first.wait_for()
    found = page.locator("#search-results li a").all_inner_texts()
    assert title in found[:3]
    page.close()


def test_theme_is_corrected_for_keyboards_and_screen_readers(site: Path) -> None:
    text = (site / "docs" / "reference" / "commands.html").read_text(encoding="utf-8")
    assert text.count("<pre") == text.count('<pre tabindex="0"') > 0
    assert not re.search(r'role="heading"(?! aria-level)', text)
    assert not re.search(r'<div class="table-wrapper', text)
    equations = (site / "docs" / "reference" / "models.html").read_text(encoding="utf-8")
    assert (
        equations.count('<div class="math"') == equations.count('<div class="math" tabindex') > 20
    )
    assert 'aria-label="Pages"' in text


def test_calculator_has_an_address_to_share(site: Path, browser: BrowserContext) -> None:
    if not (site / "_static" / "playground.js").exists():
        pytest.skip("needs the target wasm32-unknown-unknown of Rust: make playground")
    page = browser.new_page()
    calculator = (site / "docs" / "calculator.html").as_uri()
    page.goto(f"{calculator}#rtt=20&rate=10&loss=0&buffer=1&flows=2&window=&size=&stack=linux-bbr")
    page.locator("#path-calculator td").first.wait_for()
    assert page.locator("#field-stack").input_value() == "linux-bbr"
    assert float(page.locator("#path-calculator td").first.inner_text().split()[0]) > 9
    page.locator("#field-rate").fill("20")
    page.locator("#field-rate").press("Tab")
    page.wait_for_url("**rate=20**")
    page.locator("#field-loss").fill("60")
    page.locator("#field-loss").press("Tab")
    page.get_by_text("must be between 0 and 50 %").wait_for()
    for width in (PHONE, DESK):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_search_works_offline(site: Path, browser: BrowserContext) -> None:
    requested_urls: list[str] = []
    browser.on("request", lambda request: requested_urls.append(request.url))
    page = browser.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=bufferbloat")
    page.wait_for_selector("#search-results li")
    result = page.locator("#search-results li a").all_inner_texts()
    assert "Gallery" in result
    page.close()
    assert requested_urls
    assert [url for url in requested_urls if not url.startswith(("file:", "data:"))] == []


def test_pages_fit_and_work_offline(site: Path, browser: BrowserContext) -> None:
    requested_urls: list[str] = []
    browser.on("request", lambda request: requested_urls.append(request.url))
    page = browser.new_page()
    for name in ("index", "docs/gallery", "docs/reference/models", "docs/reference/commands"):
        page.goto((site / f"{name}.html").as_uri())
        for width in (PHONE, DESK):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
        assert page.evaluate(broken) == 0, name
    page.close()
    assert [url for url in requested_urls if not url.startswith(("file:", "data:"))] == []


def test_playground_simulates_offline(site: Path, browser: BrowserContext) -> None:
    if not (site / "_static" / "playground.js").exists():
        pytest.skip("needs the target wasm32-unknown-unknown of Rust: make playground")
    errors: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "docs" / "gallery.html").as_uri())
    for button in page.locator("#experiments .tabs button").all():
        button.click()
        result = page.locator("#experiments .result:not(:empty)")
        opened = result.inner_text()
        page.locator("#experiments input[type=range]").last.press("ArrowRight")
        differs = "text => document.querySelector('.result').innerText !== text"
        page.wait_for_function(differs, arg=opened)
        for width in (PHONE, DESK):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    assert errors == []
