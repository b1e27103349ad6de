"""The page in headless Chromium: each test starts with empty tabs.

After a test, its tabs load an empty page, which ends their activity, and the next test reuses them:
opening a new tab takes longer than most of the tests.
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
from tcpcast.cli import main
from tcpcast.scenario.stack_descriptions import describe_stack

from web.lossy_capture import write_lossy_capture

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page, Route

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: make peers")

WAIT_MS = 90_000
"""Long, because a busy machine needs much time to import the models."""


@dataclass
class Served:
    """A browser that has opened the start URL, with its requests and errors."""

    context: BrowserContext
    url: str
    requested_urls: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    empty: list[Page] = field(default_factory=list)
    reused_tab: Page | None = None
    """A tab whose state is kept for the next test."""

    @property
    def origin(self) -> str:
        return "http://" + urlsplit(self.url).netloc

    def tab(self, state: str = "", size: tuple[int, int] = (1600, 1000)) -> Page:
        tab = self.empty.pop() if self.empty else self._new_tab()
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.goto(f"{self.origin}/{state}")
        return tab

    def _new_tab(self) -> Page:
        tab = self.context.new_page()
        tab.set_default_timeout(WAIT_MS)
        tab.on("request", lambda request: self.requested_urls.append(request.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        return tab

    def reset_tabs(self) -> None:
        """Empty all tabs except for the kept one."""
        self.empty = [tab for tab in self.context.pages if tab != self.reused_tab]
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
            # Chromium's sandbox needs rights that containers rarely have; the page is trusted.
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            context = browser.new_context(color_scheme="light")
            context.grant_permissions(["clipboard-read", "clipboard-write"])
            session = Served(context, url)
            tab = context.new_page()
            tab.goto(url, timeout=WAIT_MS)
            wait_for_answer(tab)
            assert "token" not in tab.url
            tab.close()
            yield session
            browser.close()
        finally:
            server.terminate()


@pytest.fixture(autouse=True)
def check_no_errors_and_no_external_requests(served: Served) -> Iterator[None]:
    yield
    served.reset_tabs()
    outside = [
        url for url in served.requested_urls if urlsplit(url).netloc != urlsplit(served.url).netloc
    ]
    assert [url for url in outside if not url.startswith(("blob:", "about:blank"))] == []
    assert served.errors == []


def wait_for_answer(tab: Page) -> str:
    """Wait for an answer and its curve; return the verdict."""
    tab.locator("#answer:not(.stale) #verdict").wait_for()
    tab.locator("#plot canvas").wait_for()
    return tab.locator("#verdict").inner_text()


def state(tab: Page) -> dict[str, str]:
    return {name: texts[0] for name, texts in parse_qs(urlsplit(tab.url).fragment).items()}


@pytest.mark.parametrize("question", ["path", "flows", "transfer", "winner", "users", "buffer"])
def test_each_question_shows_answer_and_curve(served: Served, question: str) -> None:
    if served.reused_tab is None:
        served.reused_tab = served.tab()
    tab = served.reused_tab
    wait_for_answer(tab)
    tab.select_option("#question", question)
    tab.wait_for_url(re.compile(f"question={question}"))
    assert wait_for_answer(tab)
    assert tab.locator("#models tbody tr").count() >= 1
    assert tab.locator("#legend li").count() >= 1


def test_slider_updates_answer_and_url(served: Served) -> None:
    tab = served.tab("#question=path&loss=1%25")
    before = wait_for_answer(tab)
    slider = tab.get_by_label("Random loss, slider")
    slider.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    typed = tab.get_by_label("Random loss", exact=True).input_value()
    assert typed != "1%"
    assert slider.get_attribute("aria-valuetext") == typed
    tab.locator("#verdict", has_not_text=before).wait_for()
    assert state(tab)["loss"] == typed


def test_same_url_shows_same_answer(served: Served) -> None:
    tab = served.tab("#question=users&sources=55&rate=5mbit&across=rate")
    sentence = wait_for_answer(tab)
    other = served.tab("#" + urlsplit(tab.url).fragment)
    assert wait_for_answer(other) == sentence
    assert other.locator("#across").input_value() == "rate"
    assert other.get_by_label("Users", exact=True).input_value() == "55"


def test_bad_input_is_reported_next_to_its_field(served: Served) -> None:
    tab = served.tab("#question=path")
    wait_for_answer(tab)
    typed = tab.get_by_label("Rate of the link", exact=True)
    typed.fill("10mbps")
    tab.locator("#fault-rate", has_text="10mbit").wait_for()
    assert typed.get_attribute("aria-invalid") == "true"
    assert tab.locator("#simulate").is_disabled()
    typed.fill("10mbit")
    wait_for_answer(tab)
    assert tab.locator("#fault").is_hidden()
    assert typed.get_attribute("aria-invalid") is None


def test_simulation_adds_points_to_curve(served: Served) -> None:
    tab = served.tab("#question=path&rate=2mbit&loss=2%25&rtt=20ms")
    wait_for_answer(tab)
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
    wait_for_answer(tab)
    assert tab.locator("#course").is_hidden()
    tab.click("#simulate")
    tab.locator("#course-plot canvas").wait_for()
    assert re.match("Class [AB] .* takes .* of the link", tab.locator("#verdict").inner_text())
    # A class has one name and one colour on the whole page.
    points = tab.locator("#legend li", has_text="simulated")
    assert [text.split(",")[0] for text in points.all_inner_texts()] == [
        "A (linux-cubic)", "B (linux-bbr)",
    ]  # fmt: skip
    legend = tab.locator("#course-legend")
    for at in range(2):
        colour = legend.locator("li path").nth(at).get_attribute("stroke")
        assert points.nth(at).locator("svg > *").get_attribute("fill") == colour
    assert legend.locator("li").all_inner_texts()[:2] == ["A (linux-cubic)", "B (linux-bbr)"]
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
    wait_for_answer(tab)
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
    wait_for_answer(tab)
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
    wait_for_answer(tab)
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
    wait_for_answer(tab)
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


def test_the_keyboard_starts_a_simulation_and_selects_a_chart(served: Served) -> None:
    tab = served.tab("#question=path&rate=1mbit&loss=30%25&stack=linux-reno", (380, 800))
    wait_for_answer(tab)
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


def test_cancelling_one_tab_keeps_simulation_of_other_tab(served: Served) -> None:
    one = served.tab("#question=path&rate=10gbit&loss=0.0001%25")
    other = served.tab("#question=path&rate=1mbit&loss=5%25")
    wait_for_answer(one)
    wait_for_answer(other)
    one.click("#simulate")
    one.locator("#cancel").wait_for()
    other.click("#simulate")
    other.locator("#simulation", has_text="simulated:").wait_for()
    assert one.locator("#cancel").is_visible()
    one.click("#cancel")
    one.locator("#simulation", has_text="cancelled").wait_for()
    assert one.locator("#simulate").is_enabled()


def test_changed_value_cancels_simulation(served: Served) -> None:
    tab = served.tab("#question=path&rate=10gbit&loss=0.0001%25")
    wait_for_answer(tab)
    tab.click("#simulate")
    tab.locator("#cancel").wait_for()
    tab.get_by_label("Round-trip time", exact=True).fill("20ms")
    tab.locator("#cancel").wait_for(state="hidden")
    wait_for_answer(tab)


def test_capture_is_analysed_and_its_name_is_escaped(served: Served, tmp_path: Path) -> None:
    tab = served.tab()
    wait_for_answer(tab)
    name = "<img src=x onerror=alert(1)>.pcap"
    tab.set_input_files("#file", upload_data(name, b"no capture"))
    tab.locator("#capture-fault", has_text=name).wait_for()
    tab.set_input_files("#file", upload_data(name, write_lossy_capture(tmp_path).read_bytes()))
    tab.locator("#capture-answer article").wait_for()
    assert name in tab.locator("#capture-answer").inner_text()
    assert tab.locator("#capture-answer img").count() == 0
    assert "Limited by the" in tab.locator("#capture-answer").inner_text()
    tab.set_viewport_size({"width": 380, "height": 900})
    limits = tab.locator("#capture-answer th", has_text="Limited by").first.bounding_box()
    assert limits is not None
    assert limits["x"] + limits["width"] <= 380
    assert tab.locator("#capture-answer .scroll").first.evaluate("e => e.scrollWidth") <= 380


def test_limits_are_visible_in_a_report_on_a_telephone(served: Served, tmp_path: Path) -> None:
    """Regression: the last column of the worst transfers was outside a window of 380 px."""
    report = tmp_path / "report.html"
    capture = str(write_lossy_capture(tmp_path))
    assert main(["trace", capture, "--out", str(report)]) == 0
    tab = served.context.new_page()
    tab.set_viewport_size({"width": 380, "height": 800})
    tab.set_content(report.read_text(encoding="utf-8"))
    limits = tab.locator("th", has_text="limited").first.bounding_box()
    assert limits is not None
    assert limits["x"] + limits["width"] <= 380
    assert tab.evaluate("document.documentElement.scrollWidth") <= 380
    tab.close()


def upload_data(name: str, content: bytes) -> Any:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


@pytest.mark.parametrize("question", ["winner", "buffer"])
def test_page_fits_window_width(served: Served, question: str) -> None:
    tab = served.tab(f"#question={question}", (1600, 900))
    wait_for_answer(tab)
    for width in (1600, 800, 380):
        tab.set_viewport_size({"width": width, "height": 900})
        tab.wait_for_timeout(100)  # the plot is resized
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        box = tab.locator("#plot canvas").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_every_control_has_label_and_is_reachable_by_keyboard(served: Served) -> None:
    tab = served.tab("#question=winner")
    wait_for_answer(tab)
    unlabelled = tab.evaluate(
        """[...document.querySelectorAll("input, select, button, meter, progress")]
          .filter((e) => !e.labels?.length && !e.ariaLabel && !e.textContent.trim())
          .map((e) => e.id)"""
    )
    assert unlabelled == []
    hidden = tab.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length")
    assert hidden == 1, "only the answer, the target of the first link"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "answer"
    assert state(tab)["question"] == "winner", "the fragment still holds the state"


def test_printed_page_is_light_and_has_no_buttons(served: Served) -> None:
    tab = served.tab()
    wait_for_answer(tab)
    tab.emulate_media(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(ground) == "rgb(21, 23, 26)"
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert tab.locator("#simulate").is_hidden()
    assert tab.locator("#verdict").is_visible()
    # The curve is drawn again in the colours of the light theme.
    line = tab.locator("#legend path").first
    playwright.expect(line).to_have_attribute("stroke", "#0072B2")
    tab.close()
