"""The page as a person sees it, in headless Chromium: each test finds empty tabs.

A tab that is left goes to an empty page, which ends all that it did, and the next test takes it: to
begin one takes longer than most of the tests.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tcpcast.scenario.stack_facts import describe_stack

from web.lossy_capture import capture_of_a_path

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page, Route

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: make peers")

WAIT_MS = 90_000
"""A machine that is busy takes long to import the models; an idle one answers in a moment."""


@dataclass
class Served:
    """A browser that has opened the start URL, and what went wrong in it."""

    context: BrowserContext
    url: str
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    empty: list[Page] = field(default_factory=list)
    kept: Page | None = None
    """A tab that a test goes on with where the one before left it."""

    @property
    def origin(self) -> str:
        return "http://" + urlsplit(self.url).netloc

    def tab(self, state: str = "", size: tuple[int, int] = (1600, 1000)) -> Page:
        tab = self.empty.pop() if self.empty else self._begun()
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.goto(f"{self.origin}/{state}")
        return tab

    def _begun(self) -> Page:
        tab = self.context.new_page()
        tab.set_default_timeout(WAIT_MS)
        tab.on("request", lambda request: self.asked.append(request.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        return tab

    def leave(self) -> None:
        """Empty all tabs but the one that is kept."""
        self.empty = [tab for tab in self.context.pages if tab != self.kept]
        for tab in self.empty:
            tab.goto("about:blank")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    command = [sys.executable, "-m", "tcpcast", "serve", "--no-browser"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        playwright.sync_playwright() as driver,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            # Its sandbox needs rights that a container seldom gives; the page is our own.
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            context = browser.new_context(color_scheme="light")
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            found = Served(context, url)
            first = context.new_page()
            first.goto(url, timeout=WAIT_MS)
            answered(first)
            assert "token" not in first.url
            first.close()
            yield found
            browser.close()
        finally:
            server.terminate()


@pytest.fixture(autouse=True)
def nothing_fails(served: Served) -> Iterator[None]:
    yield
    served.leave()
    outside = [url for url in served.asked if urlsplit(url).netloc != urlsplit(served.url).netloc]
    assert [url for url in outside if not url.startswith(("blob:", "about:blank"))] == []
    assert served.errors == []


def answered(tab: Page) -> str:
    """Wait for an answer and its curve; return the verdict."""
    tab.locator("#answer:not(.stale) #verdict").wait_for()
    tab.locator("#plot canvas").wait_for()
    return tab.locator("#verdict").inner_text()


def state(tab: Page) -> dict[str, str]:
    return {name: texts[0] for name, texts in parse_qs(urlsplit(tab.url).fragment).items()}


@pytest.mark.parametrize("question", ["path", "flows", "transfer", "winner", "users", "buffer"])
def test_each_question_is_answered(served: Served, question: str) -> None:
    if served.kept is None:
        served.kept = served.tab()
    tab = served.kept
    answered(tab)
    tab.select_option("#question", question)
    tab.wait_for_url(re.compile(f"question={question}"))
    assert answered(tab)
    assert tab.locator("#models tbody tr").count() >= 1
    assert tab.locator("#legend li").count() >= 1


def test_a_slider_changes_the_answer_and_the_address(served: Served) -> None:
    tab = served.tab("#question=path&loss=1%25")
    before = answered(tab)
    slider = tab.get_by_label("Random loss, slider")
    slider.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    typed = tab.get_by_label("Random loss", exact=True).input_value()
    assert typed != "1%"
    assert slider.get_attribute("aria-valuetext") == typed
    tab.locator("#verdict", has_not_text=before).wait_for()
    assert state(tab)["loss"] == typed


def test_the_same_address_shows_the_same(served: Served) -> None:
    tab = served.tab("#question=users&sources=55&rate=5mbit&across=rate")
    said = answered(tab)
    other = served.tab("#" + urlsplit(tab.url).fragment)
    assert answered(other) == said
    assert other.locator("#across").input_value() == "rate"
    assert other.get_by_label("Users", exact=True).input_value() == "55"


def test_bad_input_is_told_beside_its_field(served: Served) -> None:
    tab = served.tab("#question=path")
    answered(tab)
    typed = tab.get_by_label("Rate of the link", exact=True)
    typed.fill("10mbps")
    tab.locator("#fault-rate", has_text="10mbit").wait_for()
    assert typed.get_attribute("aria-invalid") == "true"
    assert tab.locator("#simulate").is_disabled()
    typed.fill("10mbit")
    answered(tab)
    assert tab.locator("#fault").is_hidden()
    assert typed.get_attribute("aria-invalid") is None


def test_a_simulation_puts_points_on_the_curve(served: Served) -> None:
    tab = served.tab("#question=path&rate=2mbit&loss=2%25&rtt=20ms")
    answered(tab)
    assert tab.locator("#verdict").inner_text().endswith("press Simulate.")
    tab.click("#simulate")
    tab.locator("#simulation", has_text="simulated: 5 points").wait_for()
    verdict = tab.locator("#verdict").inner_text()
    assert re.match(r"The flow gets [\d.]+ Mbit/s \((± [\d.]+|[\d.]+ to [\d.]+)\); ", verdict)
    assert "packet, simulated" in tab.locator("#legend").inner_text()
    assert "95 % interval" in tab.locator("#models tr.simulated").inner_text()
    tab.locator("#numbers summary").click()
    assert "packet, simulated" in tab.locator("#numbers-table").inner_text()
    tab.click("#numbers summary")
    tab.get_by_role("button", name="Copy as command").click()
    tab.locator("#copied", has_text="Copied").wait_for()
    assert tab.locator("#command").text_content() == clipboard(tab)
    assert clipboard(tab).endswith("--packet")
    with tab.expect_download() as download:
        tab.click("#report")
    assert download.value.suggested_filename == "tcpcast-path.html"


def test_a_simulated_run_is_drawn_over_time(served: Served) -> None:
    tab = served.tab("#question=winner&rate=2mbit&rtt-a=20ms&rtt-b=20ms&across=rate")
    answered(tab)
    assert tab.locator("#course").is_hidden()
    tab.click("#simulate")
    tab.locator("#course-plot canvas").wait_for()
    assert re.match("Class [ab] .* takes .* of the link", tab.locator("#verdict").inner_text())
    legend = tab.locator("#course-legend")
    assert legend.locator("li").all_inner_texts()[:2] == ["a (linux-cubic)", "b (linux-bbr)"]
    assert drawn_pixels(tab, "#course-plot canvas") > 1000
    tab.select_option("#course-chart", "Goodput")
    name = tab.locator("#course-plot [role=img]").get_attribute("aria-label")
    assert name is not None
    assert name.startswith("Goodput by time")
    tab.locator("#course summary").click()
    assert tab.locator("#course-table tbody tr").count() > 50
    tab.get_by_label("Rate of the link", exact=True).fill("3mbit")
    tab.locator("#course").wait_for(state="hidden")


def drawn_pixels(tab: Page, canvas: str) -> int:
    """Return the number of pixels of a canvas that are not transparent."""
    count: int = tab.locator(canvas).evaluate(
        """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
          .data.filter((value, at) => at % 4 === 3 && value > 0).length"""
    )
    return count


def test_three_warnings_are_shown_and_the_others_on_request(served: Served) -> None:
    tab = served.tab("#question=path&stack=linux-reno&loss=30%25")
    answered(tab)
    assert tab.locator("#warnings li").count() == 3
    others = tab.locator("#more-warnings")
    assert not others.locator("li").first.is_visible()
    shown = re.fullmatch(r"Show all (\d+) warnings", others.locator("summary").inner_text())
    assert shown is not None
    others.locator("summary").click()
    assert others.locator("li").count() == int(shown[1]) - 3
    assert others.locator("li").first.is_visible()


def test_a_stack_is_explained_next_to_its_choice(served: Served) -> None:
    tab = served.tab("#question=path&stack=linux-bbr")
    answered(tab)
    assert tab.locator("#hint-stack").inner_text() == describe_stack("linux-bbr")
    tab.select_option("#field-stack", "dctcp")
    assert tab.locator("#hint-stack").inner_text() == describe_stack("dctcp")
    tab.get_by_role("button", name="Reset").click()
    assert tab.locator("#hint-stack").inner_text() == describe_stack("linux-cubic")


MARKUP = "<img src=x onerror=alert(1)><b>bold</b>"


def test_markup_in_an_answer_stays_text(served: Served) -> None:
    """Names of classes and scenarios reach the verdict, warnings and charts as text."""
    tab = served.tab()

    def answer_with_markup(route: Route) -> None:
        body = route.fetch().json()
        body |= {"verdict": MARKUP, "sentences": [MARKUP], "warnings": [MARKUP] * 5}
        body |= {"summary": MARKUP, "table": {"caption": MARKUP, "columns": [MARKUP], "rows": []}}
        body["answers"][0] |= {"name": MARKUP, "what": MARKUP, "regime": MARKUP}
        route.fulfill(json=body)

    def simulation_with_markup(route: Route) -> None:
        line = {"name": MARKUP, "values": [1, 2], "low": [1, 1], "high": [2, 3]}
        chart = {"label": MARKUP, "unit": "packet", "across": MARKUP, "x": [1, 2], "warmup_s": 0}
        heading = {"verdict": MARKUP, "sentences": [MARKUP], "warnings": [MARKUP]}
        value = {"name": MARKUP, "value": 1e6, "low": 1e6, "high": 1e6}
        value |= {"text": MARKUP, "interval": MARKUP, "trusted": True}
        point = {"x": 0.001, "text": MARKUP, "regime": MARKUP, "values": [value]}
        point |= {"heading": heading, "over_time": [chart | {"lines": [line]}]}
        job = {"id": "x", "state": "done", "progress": 1, "points": [point], "error": None}
        route.fulfill(json=job)

    tab.route("**/api/evaluate", answer_with_markup)
    tab.route("**/api/jobs", simulation_with_markup)
    tab.get_by_label("Round-trip time", exact=True).fill("70ms")
    tab.locator("#verdict", has_text=MARKUP).wait_for()
    answered(tab)
    tab.click("#simulate")
    tab.locator("#course-plot canvas").wait_for()
    assert MARKUP in tab.locator("#course-legend").inner_text()
    assert tab.locator("main img, main b").count() == 0
    tab.unroute_all(behavior="ignoreErrors")
    tab.close()


@pytest.mark.parametrize("size", [(380, 800), (1200, 900)])
def test_the_keyboard_reaches_each_control_in_the_order_of_the_page(
    served: Served, size: tuple[int, int]
) -> None:
    tab = served.tab("#question=path&loss=30%25&stack=linux-reno", size)
    answered(tab)
    reached, hidden, unmarked = [], [], []
    for _ in range(60):
        tab.keyboard.press("Tab")
        found = tab.evaluate(FOCUSED)
        if found is None:
            break
        reached.append(found["name"])
        hidden += [found["name"]] * found["covered"]
        unmarked += [found["name"]] * (not found["outlined"])
    wanted = ["question", "field-rtt", "field-rate", "simulate", "across", "report", "file"]
    assert [name for name in reached if name in wanted] == wanted
    assert hidden == []
    assert unmarked == []
    tab.locator("#simulate").focus()
    tab.keyboard.press("Enter")
    tab.locator("#simulation", has_text="simulated:").wait_for()
    assert tab.evaluate("document.activeElement.id") == "simulate"
    tab.locator("#course-chart").focus()
    tab.keyboard.press("ArrowDown")
    assert tab.locator("#course-chart").input_value() == "Goodput"


FOCUSED = """() => {
  const at = document.activeElement;
  if (at === document.body || at === null) return null;
  const box = at.getBoundingClientRect();
  const [x, y] = [box.left + Math.min(box.width / 2, 10), box.top + Math.min(box.height / 2, 10)];
  const top = document.elementFromPoint(x, y);
  return {
    name: at.id || at.textContent.trim() || at.ariaLabel,
    covered: !(top && (at === top || at.contains(top) || top.contains(at))),
    outlined: getComputedStyle(at).outlineStyle !== "none",
  };
}"""
"""The focused element: its name, whether others cover it, and whether its focus is visible."""


def clipboard(tab: Page) -> str:
    text: str = tab.evaluate("navigator.clipboard.readText()")
    return text


def test_two_tabs_simulate_at_once_and_one_is_cancelled(served: Served) -> None:
    one = served.tab("#question=path&rate=10gbit&loss=0.0001%25")
    other = served.tab("#question=path&rate=1mbit&loss=5%25")
    answered(one)
    answered(other)
    one.click("#simulate")
    one.locator("#cancel").wait_for()
    other.click("#simulate")
    other.locator("#simulation", has_text="simulated:").wait_for()
    assert one.locator("#cancel").is_visible()
    one.click("#cancel")
    one.locator("#simulation", has_text="cancelled").wait_for()
    assert one.locator("#simulate").is_enabled()


def test_another_value_ends_a_simulation(served: Served) -> None:
    tab = served.tab("#question=path&rate=10gbit&loss=0.0001%25")
    answered(tab)
    tab.click("#simulate")
    tab.locator("#cancel").wait_for()
    tab.get_by_label("Round-trip time", exact=True).fill("20ms")
    tab.locator("#cancel").wait_for(state="hidden")
    answered(tab)


def test_a_capture_is_read_and_its_names_stay_text(served: Served, tmp_path: Path) -> None:
    tab = served.tab()
    answered(tab)
    name = "<img src=x onerror=alert(1)>.pcap"
    tab.set_input_files("#file", upload_of(name, b"no capture"))
    tab.locator("#capture-fault", has_text=name).wait_for()
    tab.set_input_files("#file", upload_of(name, capture_of_a_path(tmp_path).read_bytes()))
    tab.locator("#capture-answer article").wait_for()
    assert name in tab.locator("#capture-answer").inner_text()
    assert tab.locator("#capture-answer img").count() == 0
    assert "Limited by:" in tab.locator("#capture-answer").inner_text()


def upload_of(name: str, content: bytes) -> Any:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


@pytest.mark.parametrize("question", ["winner", "buffer"])
def test_nothing_is_wider_than_the_window(served: Served, question: str) -> None:
    tab = served.tab(f"#question={question}", (1600, 900))
    answered(tab)
    for width in (1600, 800, 380):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.wait_for_timeout(100)  # the curve follows its place
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        box = tab.locator("#plot canvas").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_every_control_has_a_name_and_can_be_reached(served: Served) -> None:
    tab = served.tab("#question=winner")
    answered(tab)
    nameless = tab.evaluate(
        """[...document.querySelectorAll("input, select, button, meter, progress")]
          .filter((each) => !each.labels?.length && !each.ariaLabel && !each.textContent.trim())
          .map((each) => each.id)"""
    )
    assert nameless == []
    hidden = tab.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length")
    assert hidden == 1, "only the answer, which the first link leads to"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "answer"
    assert state(tab)["question"] == "winner", "the fragment is the state, not a place"


def test_on_paper_the_page_is_light_and_without_buttons(served: Served) -> None:
    tab = served.tab()
    answered(tab)
    tab.emulate_media(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(ground) == "rgb(21, 23, 26)"
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert tab.locator("#simulate").is_hidden()
    assert tab.locator("#verdict").is_visible()
    # The curve is drawn anew, in the colours of light.
    line = tab.locator("#legend path").first
    playwright.expect(line).to_have_attribute("stroke", "#0072B2")
    tab.close()
