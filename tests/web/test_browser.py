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
from tcpcast.cli.page import make_forms
from tcpcast.scenario.stack_descriptions import describe_stack

from web.lossy_capture import write_lossy_capture

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

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
        self.empty = list(self.context.pages)
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
    """Wait for an answer; return the verdict."""
    tab.locator("#answer:not(.stale) #verdict:not(:empty)").wait_for()
    return tab.locator("#verdict").inner_text()


def wait_for_curve(tab: Page) -> None:
    wait_for_answer(tab)
    tab.locator("#curve > figure svg").wait_for()


def state(tab: Page) -> dict[str, str]:
    return {name: texts[0] for name, texts in parse_qs(urlsplit(tab.url).fragment).items()}


PREDICT = "#form=predict&rate=2mbit&loss=2%25&rtt=20ms"
FEW = "&run.transfers=3000"
QUICK = {
    "predict": PREDICT,
    "run": "#form=run&file=web-10mbit&run.transfers=3000&run.warmup=5s",
    "home": "#form=home&down=10mbit&up=2mbit&uses=call%2Cupload&queue=droptail%2Cfq_codel",
    "plan-buffer": "#form=plan-buffer&file=web-10mbit&loss=2%25&traffic.sources=60" + FEW,
    "plan-users": "#form=plan-users&file=web-10mbit&share=&above=&rate=400kbit" + FEW,
    "plan-rate": "#form=plan-rate&file=web-10mbit&rate=400kbit" + FEW,
    "plan-streams": "#form=plan-streams&rate=10mbit&rtt=20ms",
    "plan-max-loss": "#form=plan-max-loss&goodput=5mbit&rtt=20ms",
    "plan-aqm": "#form=plan-aqm&delay=60ms&run.duration=10s&run.warmup=3s&link.up.queue=codel",
    "trace": "#form=trace",
}
"""A quick state of each form."""
WITHOUT_FORMULA = {"plan-aqm"}
"""Forms that only a simulation answers."""
SIZES = [(380, 800), (1200, 900)]


def fits(tab: Page) -> bool:
    """Return True if nothing is wider than the window, at each size."""
    result = []
    for width, height in SIZES:
        tab.set_viewport_size({"width": width, "height": height})
        scroll: int = tab.evaluate("document.documentElement.scrollWidth")
        result.append(scroll <= width)
    return all(result)


@pytest.mark.parametrize("form", [name for name in make_forms() if name != "trace"])
def test_each_form_answers_and_fits(served: Served, form: str) -> None:
    tab = served.tab(QUICK[form], SIZES[0])
    verdict = wait_for_answer(tab)
    if form in WITHOUT_FORMULA:
        assert verdict == "No formula applies; press Simulate."
    else:
        assert re.search(r"\d", verdict)
        assert tab.locator("#report table").count() >= 1
    assert tab.locator("#command").inner_text().startswith(f"tcpcast {form.replace('-', ' ', 1)}")
    assert fits(tab)
    if form in {"predict", "run"}:
        wait_for_curve(tab)
        assert fits(tab)
    tab.click("#run")
    tab.locator("#state", has_text="simulated").wait_for()
    assert tab.locator("#fault").is_hidden()
    assert re.search(r"\d", tab.locator("#verdict").inner_text())
    assert tab.locator("#report table").count() >= 1
    assert tab.locator("main figure svg").count() >= 1
    assert fits(tab)


def test_the_default_stack_is_that_of_linux(served: Served) -> None:
    tab = served.tab()
    wait_for_answer(tab)
    assert state(tab)["form"] == "predict"
    assert tab.get_by_label("TCP stack").input_value() == "linux-cubic"


def test_slider_updates_answer_and_url(served: Served) -> None:
    tab = served.tab("#form=predict&loss=1%25")
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
    tab.get_by_label("Random loss", exact=True).fill("5%")
    tab.wait_for_timeout(1000)
    wait_for_answer(tab)
    assert slider.get_attribute("aria-valuetext") == "5%"


def test_same_url_shows_same_answer(served: Served) -> None:
    tab = served.tab("#form=run&file=web-10mbit&traffic.sources=55&across=network.rtt")
    sentence = wait_for_answer(tab)
    other = served.tab("#" + urlsplit(tab.url).fragment)
    assert wait_for_answer(other) == sentence
    assert other.locator("#across").input_value() == "network.rtt"
    assert other.get_by_label("traffic.sources", exact=True).input_value() == "55"


def test_another_scenario_has_its_own_fields(served: Served) -> None:
    tab = served.tab("#form=run&file=web-10mbit")
    wait_for_answer(tab)
    tab.select_option("#field-file", "two-classes")
    tab.get_by_label("class.far.rtt", exact=True).wait_for()
    assert "far" in wait_for_answer(tab)
    assert state(tab) == {"form": "run", "file": "two-classes", "across": "network.rtt"}


def test_a_scenario_without_a_formula_asks_for_a_simulation(served: Served) -> None:
    tab = served.tab("#form=run")
    assert wait_for_answer(tab).endswith("press Simulate.")


def test_bad_input_is_reported_next_to_its_field(served: Served) -> None:
    tab = served.tab("#form=predict")
    wait_for_answer(tab)
    typed = tab.get_by_label("Rate of the link", exact=True)
    typed.fill("10mbps")
    tab.locator("#field-rate-fault", has_text="10mbit").wait_for()
    assert typed.get_attribute("aria-invalid") == "true"
    typed.fill("10mbit")
    wait_for_answer(tab)
    assert tab.locator("#fault").is_hidden()
    assert typed.get_attribute("aria-invalid") is None


def test_simulation_has_an_interval_points_and_a_report(served: Served) -> None:
    tab = served.tab(PREDICT)
    wait_for_curve(tab)
    tab.click("#run")
    tab.locator("#state", has_text="simulated").wait_for()
    assert re.search(r"\((± )?\d", tab.locator("#verdict").inner_text())
    assert "packet" in (tab.locator("#curve > figure svg").text_content() or "")
    tab.get_by_role("button", name="Copy command").click()
    tab.locator("#copied", has_text="Copied").wait_for()
    assert tab.locator("#command").text_content() == clipboard(tab)
    assert "--packet" in clipboard(tab)
    with tab.expect_download() as download:
        tab.click("#download")
    assert download.value.suggested_filename == "tcpcast-predict.html"
    assert tab.locator("#verdict").inner_text() in download.value.path().read_text()


def test_a_stack_is_explained_next_to_its_choice(served: Served) -> None:
    tab = served.tab("#form=predict&stack=linux-bbr")
    wait_for_answer(tab)
    assert tab.locator("#field-stack-hint").inner_text() == describe_stack("linux-bbr")
    tab.get_by_role("button", name="Reset").click()
    assert tab.locator("#field-stack-hint").inner_text() == describe_stack("linux-cubic")


@pytest.mark.parametrize("size", SIZES)
def test_the_keyboard_reaches_each_control_in_the_order_of_the_page(
    served: Served, size: tuple[int, int]
) -> None:
    tab = served.tab(PREDICT, size)
    wait_for_curve(tab)
    reached, hidden, unmarked = [], [], []
    for _ in range(80):
        tab.keyboard.press("Tab")
        found = tab.evaluate(FOCUSED)
        if found is None:
            break
        reached.append(found["name"])
        hidden += [found["name"]] * found["covered"]
        unmarked += [found["name"]] * (not found["outlined"])
    wanted = ["form", "field-rtt", "field-rate", "run", "across", "copy", "download", "command"]
    assert [name for name in reached if name in wanted] == wanted
    assert hidden == []
    assert unmarked == []


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
    endless = "#form=run&file=one-path&run.duration=100000000s"
    one, other = served.tab(endless), served.tab(endless)
    for tab in (one, other):
        tab.get_by_label("network.rtt", exact=True).wait_for()  # before, the button does nothing
        tab.locator("#run").focus()
        tab.keyboard.press("Enter")
        tab.locator("#cancel").wait_for()
    one.click("#cancel")
    one.locator("#state", has_text="cancelled").wait_for()
    assert one.evaluate("document.activeElement.id") == "run"
    assert other.locator("#cancel").is_visible()
    other.get_by_label("network.rtt", exact=True).fill("20ms")  # a change cancels
    other.locator("#cancel").wait_for(state="hidden")
    wait_for_answer(other)


@pytest.mark.parametrize("size", SIZES)
def test_capture_is_analysed_and_its_name_is_escaped(
    served: Served, tmp_path: Path, size: tuple[int, int]
) -> None:
    tab = served.tab("#form=trace", size)
    wait_for_answer(tab)
    name = "<img src=x onerror=alert(1)>.pcap"
    tab.set_input_files("#file", upload_data(name, b"no capture"))
    tab.locator("#fault", has_text=name).wait_for()
    tab.set_input_files("#file", upload_data(name, write_lossy_capture(tmp_path).read_bytes()))
    tab.locator("#report table").first.wait_for()
    assert "oss" in tab.locator("#verdict").inner_text()
    assert name in tab.locator("main").inner_text()
    assert tab.locator("main img").count() == 0
    assert tab.locator("main figure svg").count() >= 1
    assert fits(tab)


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


def test_every_control_has_label_and_is_reachable_by_keyboard(served: Served) -> None:
    tab = served.tab("#form=run&file=cubic-and-bbr")
    tab.get_by_label("class.bbr.flows", exact=True).wait_for()
    unlabelled = tab.evaluate(
        """[...document.querySelectorAll("input, select, button, progress")]
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
    assert state(tab)["form"] == "run", "the fragment still holds the state"


def test_dark_page_has_dark_figures_and_prints_light(served: Served) -> None:
    tab = served.tab(PREDICT)
    tab.emulate_media(color_scheme="dark")
    wait_for_curve(tab)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(ground) == "rgb(20, 20, 20)"
    figure = "getComputedStyle(document.querySelector('#curve svg text')).fill"
    assert tab.evaluate(figure) == "rgb(232, 232, 232)"
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert tab.locator("#run").is_hidden()
    assert tab.locator("#verdict").is_visible()
    tab.close()
