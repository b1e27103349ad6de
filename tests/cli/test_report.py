"""`tcpcast report`, `run --out` and `trace --out`: self-contained files with escaped names."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer, Metric, Status, texts_to_notes
from tcpcast.cli import main
from tcpcast.comparison.compare import compare_all
from tcpcast.report import text
from tcpcast.report.answers import Answers
from tcpcast.report.document import (
    Code,
    Column,
    Document,
    Figure,
    Heading,
    Paragraph,
    ShareBar,
    Table,
)
from tcpcast.report.full_report import captures_document, run_document
from tcpcast.report.html import html_page
from tcpcast.report.load_answers import read_saved_answers
from tcpcast.report.markdown import markdown_page
from tcpcast.report.run import run_parts
from tcpcast.report.trace_verdict import captures_verdict_parts

from cli.made_up import calculated, simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn
    from tcpcast.scenario import Scenario

    Output = pytest.CaptureFixture[str]

pytest.importorskip("matplotlib")
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
MARK = "<!-- written by tcpcast report -->"
HOSTILE = '</title><script>alert(1)</script><img src=x onerror=y>&"\x1b]0;t\x07\u202e'


class ExternalReferences(HTMLParser):
    """Collects the elements of a page and the external resources that they load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [
            value
            for name, value in attrs
            if name.rpartition(":")[2] in {"src", "href", "action", "srcset", "data"}
            and value
            and not value.startswith(("#", "data:image/png;base64,"))
        ]


def check_page(page: str) -> None:
    page_parser = ExternalReferences(page)
    assert page_parser.loaded == []
    assert not page_parser.tags & {"script", "iframe", "img", "link", "object", "form"}
    assert page.startswith(f"<!doctype html>\n{MARK}\n")
    assert "default-src 'none'" in page
    assert "url(" not in re.sub(r"url\(#\w+\)", "", page)


def all_parts(name: str) -> list[Table | Paragraph | Heading | ShareBar | Code | Figure]:
    table = Table([Column(name, [name], right=False), Column("n", ["1"])], ends=[(name, name)])
    return [
        Heading(name),
        Paragraph(name, "warning", "! ", lead=name),
        table,
        ShareBar(name, 0.5),
        Code(name),
        Figure("<svg></svg>", name),
    ]


def test_html_report_escapes_names() -> None:
    page = html_page(Document(HOSTILE, all_parts(HOSTILE)), MARK)
    check_page(page)
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") == 12


def test_html_report_escapes_texts_of_plugins() -> None:
    metrics = {
        "own": Metric(1.0, unit=HOSTILE, interval_warning=HOSTILE),
        "goodput_bps": Metric(2.0),
    }
    answer = Answer(HOSTILE, metrics=metrics, notes=texts_to_notes([HOSTILE]), regime=HOSTILE)
    answer.mark_incomplete(HOSTILE)
    parts = run_parts(compare_all([answer, Answer("other", metrics=metrics)]), show_all=True)
    page = html_page(Document("a", parts), MARK)
    check_page(page)
    assert "\x1b" not in page


def test_markdown_report_escapes_names() -> None:
    name = f"{HOSTILE} | [x](http://y) *z* _u_ `v` # w queue_mean"
    page = markdown_page(Document(name, all_parts(name)), MARK)
    assert "\x1b" not in page
    body = re.sub(r"^```$.*?^```$", "", page.removeprefix(MARK), flags=re.S | re.M)
    assert not re.search(r"(?<!\\)[<>`\[\]]", body)
    assert "queue_mean" in body
    (rows,) = [block for block in body.split("\n\n") if "---:" in block]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()} == {4}


def test_markdown_code_fence_is_longer_than_content() -> None:
    page = markdown_page(Document("t", [Code("a\n```\n<b>\n````\n")]), MARK)
    assert page.endswith("`````\na\n```\n<b>\n````\n`````\n")


def test_text_report_escapes_control_characters() -> None:
    shown = text.plain_text(all_parts(HOSTILE), 60)
    assert "\x1b" not in shown
    assert "\\x1b]0;t\\x07\\u202e" in shown


def test_html_report_has_tables_figures_and_scenario(scenario: Scenario) -> None:
    compared = compare_all(
        [calculated(), simulated(), Answer("pftk", status=Status.NOT_APPLICABLE, reason="no flows")]
    )
    document = run_document(compared, scenario, "tcpcast report web-10mbit", figures=True)
    page = html_page(document, MARK)
    check_page(page)
    for words in (
        "134 on/off sources",
        '<span class="kind">formula</span>',
        '<span class="kind">simulated</span>',
        '<td class="r simulation">158.2 <small>± 1.3</small></td>',
        '<td class="r formula dim">48.70†</td>',
        "pftk does not apply: no flows",
        "only 3 timeouts were seen",
        "tcpcast report web-10mbit",
        "seed 1",
        "sha256:00",
        "min_rto",
    ):
        assert words in page, words
    assert page.count("<svg") == 3
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    repeated = run_document(compared, scenario, "tcpcast report web-10mbit", figures=True)
    assert html_page(repeated, MARK) == page


def test_html_report_does_not_depend_on_wall_time(scenario: Scenario) -> None:
    """The same version and seed give the same bytes."""
    slow = simulated()
    slow.wall_s = 99.0
    pages = [
        html_page(run_document(compare_all([answer]), scenario, "x"), MARK)
        for answer in (simulated(), slow)
    ]
    assert pages[0] == pages[1]


def test_run_writes_html_and_markdown_reports(tmp_path: Path, capsys: Output) -> None:
    html, markdown = tmp_path / "a.html", tmp_path / "a.md"
    arguments = ["run", "one-path", "--engine", "pftk,mathis", "--set", 'network.rtt="70ms"']
    assert main([*arguments, "--out", str(html), "--out", str(markdown)]) == 0
    out, err = capsys.readouterr()
    assert "goodput" in out
    assert err.splitlines() == [f"tcpcast: wrote {html}", f"tcpcast: wrote {markdown}"]
    check_page(html.read_text())
    command_line = "tcpcast report one-path --engine pftk,mathis --set 'network.rtt=\"70ms\"'"
    assert command_line in markdown.read_text()
    assert "| goodput | Mbit/s |" in markdown.read_text()


def test_report_replaces_only_reports(tmp_path: Path, capsys: Output) -> None:
    page = tmp_path / "a.html"
    arguments = ["report", "one-path", "--engine", "pftk", "--out", str(page)]
    page.write_text("mine")
    assert main(arguments) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert page.read_text() == "mine"
    assert main([*arguments, "--force"]) == 0
    assert main(arguments) == 0
    check_page(page.read_text())
    away = tmp_path / "away.html"
    away.symlink_to(page)
    assert main([*arguments[:-1], str(away)]) == 2


def test_report_of_capture_directory_has_one_verdict(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "slow <b> captures"
    (folder / "below").mkdir(parents=True)
    names = [folder / "a.pcap.gz", folder / "below" / "<script>.pcap.gz"]
    for name in names:
        name.write_bytes(TRANSFER.read_bytes())
    (folder / "notes.txt").write_text("no capture")
    (folder / "none.pcap").write_text("no capture either")
    code = main(["report", folder.name])
    assert code == 2  # one file is not a capture; the others are read
    assert "none.pcap" in capsys.readouterr().err
    page = (tmp_path / f"{folder.name}.html").read_text()
    check_page(page)
    assert "in 2 captures" in page
    assert "272 packets" in page.replace("tcpcast", "")
    for heading in ("What to change first", "Worst transfers"):
        assert f"<h2>{heading}</h2>" in page
    assert "limited by the" in page
    assert page.count("<svg") >= 2
    assert (
        f"tcpcast report &#x27;{folder.name.replace('<', '&lt;').replace('>', '&gt;')}&#x27;"
        in page
    )


def test_trace_and_report_write_same_report(tmp_path: Path, capsys: Output) -> None:
    html, markdown, other = (tmp_path / name for name in ("a.html", "a.md", "b.html"))
    arguments = [str(TRANSFER), "--out", str(html), "--out", str(markdown)]
    assert main(["trace", *arguments]) == 0
    assert "136" in capsys.readouterr().out
    assert main(["report", str(TRANSFER), "--out", str(other)]) == 0
    end = "<h2>Reproduce this report</h2>"
    assert html.read_text().partition(end)[0] == other.read_text().partition(end)[0]
    assert "Why was it slow?" in markdown.read_text()
    assert "<svg" not in markdown.read_text()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--connection", "0"], "| from"),
        (["--group-by", "all", "--rtt", "60ms"], "| parallel flows |"),
        (["--models"], "intervals of 100 s: 1 TD"),
    ],
)
def test_report_shows_what_the_options_of_trace_select(
    tmp_path: Path, options: list[str], text: str
) -> None:
    page = tmp_path / "a.md"
    arguments = [str(TRANSFER), *options, "--out", str(page)]
    assert main(["trace", *arguments]) == 0
    report = page.read_text()
    assert f"```\ntcpcast trace {' '.join(arguments)}\n```" in report
    assert text in report


def saved_answers(folder: Path, capsys: Output, *more: str) -> Path:
    path = folder / "answers.json"
    assert main([*ONE_RUN, "--json", *more]) in {0, 1}
    path.write_text(capsys.readouterr().out)
    return path


ONE_RUN = ["run", "web-10mbit", "--engine", "engset,packet", "--set", "run.transfers=2000"]


def digest_figure(name: str, figure: Drawn) -> Figure:
    """Return a small stand-in for a figure: a digest of its data and the labels of its curves."""
    lines: list[Any] = [line.get_xydata() for line in figure.findobj(Line2D)]
    lines += [patch.get_path().vertices for patch in figure.findobj(Patch)]
    for collection in figure.findobj(Collection):
        lines += [path.vertices for path in collection.get_paths()]
    names = [axes.get_legend_handles_labels()[1] for axes in figure.axes]
    data = hashlib.sha256(b"".join(np.asarray(line, dtype=float).tobytes() for line in lines))
    return Figure(f"<svg>{name} {names} {data.hexdigest()}</svg>", figure.get_suptitle())


def test_report_of_saved_answers_needs_no_simulation(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, rewritten = tmp_path / "a.html", tmp_path / "b.html"
    monkeypatch.setattr("tcpcast.report.figures.svg_figure", digest_figure)
    saved = saved_answers(tmp_path, capsys, "--out", str(original))
    monkeypatch.setattr("tcpcast.engines.answer", None)
    assert main(["report", str(saved), "--out", str(rewritten)]) in {0, 1}
    end = "<h2>Reproduce this report</h2>"
    assert rewritten.read_text().partition(end)[0] == original.read_text().partition(end)[0]
    assert original.read_text().count("<svg>") >= 5
    assert f"tcpcast report {saved}\n" in rewritten.read_text()
    assert "tcpcast report web-10mbit.toml --engine engset,packet" in rewritten.read_text()


def test_saved_answers_are_read_without_loss(scenario: Scenario, tmp_path: Path) -> None:
    one, other = calculated(), simulated()
    one.regime, one.steps, one.domain = "bottleneck", [{"symbol": "p"}], {"loss": 0.1}
    other.mark_incomplete("interrupted")
    other.tables["words"] = {"word": np.array(["a", "b"])}
    refused = Answer("pftk", status=Status.NOT_APPLICABLE, reason="no flows")
    kernel = Answer("kernel", kind="measurement", metrics={"t0_s": Metric(1.0)})
    answers = Answers([one, other, refused, kernel], scenario)
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(answers.to_json()))
    saved = read_saved_answers(path)
    assert saved.scenario == scenario
    assert [answer.kind for answer in saved] == [
        *("formula", "simulation", "formula"),
        "measurement",
    ]
    assert saved.to_json() == answers.to_json()


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("{", [], "not JSON"),
        ("[1]", [], "this file contains no tcpcast answers"),
        ('{"scenario": {}, "answers": []}', [], "this file contains no tcpcast answers (answers:"),
        ('{"captures": []}', [], "tcpcast report FILE.pcap"),
        ('{"scenario": {"run": {}}, "answers": [{"engine": "x"}]}', [], "scenario: network"),
        ('{"scenario": {}, "answers": [{"engine": "x", "metrics": {"a": 1}}]}', [], "metrics.a"),
        ("{}", ["--engine", "packet"], "--engine requires a scenario, but answers.json contains"),
        ("{}", ["--feed", "measured"], "--feed requires a scenario"),
        ("{}", ["one-path"], "saved answers and other files"),
    ],
)
def test_report_rejects_bad_answer_files(  # noqa: PLR0917 - fixtures
    content: str,
    options: list[str],
    words: str,
    tmp_path: Path,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers.json").write_text(content)
    assert main(["report", "answers.json", *options]) == 2
    assert words in capsys.readouterr().err


def test_the_limit_of_most_bytes_is_advised_first() -> None:
    one, two = tcpcast.trace(str(TRANSFER)), tcpcast.trace(str(TRANSFER))
    for capture, factor, limit in ((one, 1, "application"), (two, 3, "timeout")):
        table = capture.connections
        table["bytes"] = factor * table["bytes"]
        table["limited_by"] = np.array([limit])
        table["cause_evident"] = np.array([False])
        for name in [name for name in table if name.startswith("share_")]:
            table[name] = np.array([1.0 if name == f"share_{limit}" else 0.0])
    verdict = text.plain_text(captures_verdict_parts([one, two], 20))
    assert verdict.index("Timeouts: 1 transfer.") < verdict.index("Application: 1 transfer.")


def test_report_of_many_packets_is_small() -> None:
    """Curves of many points are images within the figures."""
    capture = tcpcast.trace(str(TRANSFER), trail_points=8000)
    size = 60_000
    steps = np.arange(size)
    trail = {name: np.resize(column, size) for name, column in capture.trail.items()}
    trail["time"] = capture.trail["time"].min() + (steps * 1_000_000).astype("timedelta64[ns]")
    capture.trail = trail
    page = html_page(captures_document([capture], "x", figures=True), MARK)
    check_page(page)
    assert "data:image/png;base64," in page
    assert len(page) < 1_000_000


def test_capture_without_data_has_report() -> None:
    capture = tcpcast.trace(str(TRANSFER))
    capture.connections = {name: column[:0] for name, column in capture.connections.items()}
    page = html_page(captures_document([capture], "x", figures=True), MARK)
    assert "0 directions with data" in page
