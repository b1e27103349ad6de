"""Papers with a few values: simulations, known differences, and exit codes."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from report_parts import Part
from tcpcast.cli import main
from tcpcast.engines import RunOptions
from tcpcast.process.errors import DomainError, ScenarioError
from tcpcast_papers import PAPERS
from tcpcast_papers.drawing import Plot, create_panels
from tcpcast_papers.printed import BOTH
from tcpcast_papers.report import KnownDifference
from tcpcast_papers.reproduction import Printed, Row, Section, Tolerance
from tcpcast_papers.runner import Paper, known_differences
from tcpcast_papers.simulations import Runs

Capture = pytest.CaptureFixture[str]
PACKAGE = "paper_made_up"
HEAD = "runs,section,row,reason"
LOSS_DIFFERS = "both,Table 1,loss | 10,other rules"


@dataclass(frozen=True)
class Figure:
    """A simulation with a fixed result; an ``endless`` one is interrupted by Ctrl-C."""

    value: float
    endless: bool = False
    weight: float = 1.0

    def run(self, progress: Callable[[float], None]) -> float:
        progress(0.5)
        if self.endless:
            os.kill(os.getpid(), signal.SIGINT)  # to the waiting thread
            while True:
                progress(0.5)
                threading.Event().wait(0.01)
        return self.value


def paper(*parts: Part, quick: float = 100.0) -> Paper[float, Runs[float]]:
    return Paper(PACKAGE, "A paper", parts, lambda _: ["Made up."], Runs[float], 100.0, quick, BOTH)


def table(number: int, *figures: Figure, drawn: bool = False, half: float = 0.0) -> Part:
    """Return a table with one row per value; the paper prints 100 within 1 %."""

    def row(runs: Runs[float], label: tuple[str, ...], figure: Figure) -> Row:
        own = runs[figure]
        tolerance = Tolerance(relative=0.01)
        return Row(label, "kbit/s", Printed("100"), own, own - half, own + half, tolerance)

    def section(runs: Runs[float], folder: Path) -> Section:
        result = runs.section(f"Table {number}. A table", ("what", "N"))
        for index, figure in enumerate(figures, 1):
            label = ("loss", f"{10 * index}")
            result.rows += runs.row(label, partial(row, runs, label, figure))
        if drawn:
            result.figures = [Plot(create_panels(1)[0], folder / f"figure{number}.png")]
        result.remarks = [f"Mean {sum(runs[figure] for figure in figures)}."]
        return result

    def request(runs: Runs[float]) -> None:
        for figure in figures:
            runs.request(figure)

    return Part([section], request)


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that writes the known differences of the paper."""
    data = tmp_path / PACKAGE / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)  # imported by the previous test

    def write(*lines: str) -> None:
        (data / "accepted.csv").write_text("\n".join((HEAD, *lines)) + "\n")

    write()
    return write


@pytest.fixture
def command(
    known: Callable[..., None],  # noqa: ARG001 - the paper has such a file
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., int]:
    """Return a function that reproduces a paper from the command line."""

    def run(made_up: Paper[float, Runs[float]], *options: str) -> int:
        monkeypatch.setattr("tcpcast.papers.load_reproduction", lambda _: made_up.reproduce)
        return main(["reproduce", "engset", "--out", str(tmp_path / "page"), *options])

    return run


def test_listed_differences_pass(
    known: Callable[..., None], command: Callable[..., int], capsys: Capture, tmp_path: Path
) -> None:
    known(LOSS_DIFFERS)
    assert command(paper(table(1, Figure(90.0), Figure(100.5)))) == 0
    out = capsys.readouterr().out
    assert "Known differences, other rules:\n  Table 1, loss, 10: published 100, own 90" in out
    summary = "1 of 2 values checked agree, 1 known difference, no new differences."
    assert summary in out
    assert "!" not in out
    page = (tmp_path / "page" / "index.md").read_text()
    assert summary in page
    assert "- Table 1, loss, 10: published 100, own 90 kbit/s (-10.0 %)" in page


def test_unlisted_difference_fails(
    known: Callable[..., None], command: Callable[..., int], capsys: Capture, tmp_path: Path
) -> None:
    known(LOSS_DIFFERS)
    assert command(paper(table(1, Figure(90.0), Figure(120.0)))) == 1
    out = capsys.readouterr().out
    assert "0 of 2 values checked agree, 1 known difference, 1 new difference." in out
    new = "Table 1, loss, 20: published 100, own 120 kbit/s (+20.0 %)"
    assert f"! {new}" in out
    assert f"**{new}**" in (tmp_path / "page" / "index.md").read_text()


@pytest.mark.parametrize("gone", ["own agrees", "no such row"])
def test_listed_difference_that_is_gone_fails(
    gone: str, known: Callable[..., None], command: Callable[..., int], capsys: Capture
) -> None:
    number = 1 if gone == "own agrees" else 2
    known(LOSS_DIFFERS)
    assert command(paper(table(number, Figure(100.0)))) == 1
    out = capsys.readouterr().out
    assert "no new differences, 1 known difference gone." in out
    assert "! Table 1, loss, 10: known difference is gone (other rules)" in out


def test_star_in_a_listed_difference_matches_any_cell(
    known: Callable[..., None], command: Callable[..., int], capsys: Capture
) -> None:
    known("both,Table 1,loss | *,other rules")
    assert command(paper(table(1, Figure(90.0), Figure(120.0), Figure(100.0)))) == 0
    assert "2 known differences, no new differences" in capsys.readouterr().out
    assert command(paper(table(1, Figure(100.0)))) == 1
    assert "! Table 1, loss, *: known difference is gone" in capsys.readouterr().out


def test_json_contains_reasons_and_gone_differences(
    known: Callable[..., None], command: Callable[..., int], capsys: Capture
) -> None:
    known(LOSS_DIFFERS, "both,Table 1,loss | 30,noise")
    assert command(paper(table(1, Figure(90.0), Figure(120.0), Figure(100.0))), "--json") == 1
    output = json.loads(capsys.readouterr().out)
    assert [row["accepted"] for row in output["sections"][0]["rows"]] == ["other rules", None, None]
    assert output["gone"] == [{"section": "Table 1", "label": ["loss", "30"], "reason": "noise"}]


def test_unsettled_row_is_neither_new_nor_gone(
    known: Callable[..., None], command: Callable[..., int]
) -> None:
    unsettled = paper(table(1, Figure(98.5), half=1.0))
    assert command(unsettled) == 0
    known(LOSS_DIFFERS)
    assert command(unsettled) == 0


def test_whole_and_quick_runs_have_separate_lists(known: Callable[..., None]) -> None:
    known(LOSS_DIFFERS, 'whole,Table 2,"RTT, mean",wide', "quick,Table 3,g | 2 | 3,short")
    both = KnownDifference("Table 1", ("loss", "10"), "other rules")
    assert known_differences(PACKAGE, "whole") == (
        both,
        KnownDifference("Table 2", ("RTT, mean",), "wide"),
    )
    assert known_differences(PACKAGE, "quick") == (
        both,
        KnownDifference("Table 3", ("g", "2", "3"), "short"),
    )


def test_simulations_run_once_with_increasing_progress(
    known: Callable[..., None],  # noqa: ARG001 - the paper has such a file
    tmp_path: Path,
) -> None:
    shares: list[float] = []
    again = Figure(100.0)
    made_up = paper(table(1, again, Figure(101.0)), table(2, again))
    for threads in (1, 2):
        made_up.reproduce(tmp_path / f"{threads}", threads=threads, progress=shares.append)
        assert len(shares) == 2 * 2
        assert shares == sorted(shares)
        assert shares[-1] == 1
        shares.clear()
    pages = [(tmp_path / f"{threads}" / "index.md").read_bytes() for threads in (1, 2)]
    assert pages[0] == pages[1]


def test_ctrl_c_during_simulations_prints_finished_sections(
    known: Callable[..., None], command: Callable[..., int], capsys: Capture, tmp_path: Path
) -> None:
    known(LOSS_DIFFERS, "both,Table 2,loss | 10,noise")
    parts = table(1, Figure(90.0), drawn=True), table(2, Figure(1.0, endless=True))
    assert command(paper(*parts), "--threads", "1") == 130
    out, err = capsys.readouterr()
    assert "Table 1. A table" in out
    assert "Table 2" not in out
    assert "gone" not in out
    assert "only the sections above are finished; no page was written" in err
    assert not list((tmp_path / "page").glob("*"))


def test_ctrl_c_during_sections_prints_finished_sections(
    command: Callable[..., int], capsys: Capture, tmp_path: Path
) -> None:
    def interrupted(_: object, __: object) -> Section:
        signal.raise_signal(signal.SIGINT)
        return Section("")

    assert (
        command(paper(table(1, Figure(100.0)), Part([interrupted]), table(2, Figure(1.0)))) == 130
    )
    out = capsys.readouterr().out
    assert "Table 1. A table" in out
    assert "Table 2" not in out
    assert not list((tmp_path / "page").glob("*"))


def test_ctrl_c_before_any_section_raises(command: Callable[..., int], capsys: Capture) -> None:
    assert command(paper(table(1, Figure(1.0, endless=True)))) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "interrupted" in err


def test_cell_prints_its_row_and_runs_only_its_simulation(
    known: Callable[..., None], command: Callable[..., int], capsys: Capture, tmp_path: Path
) -> None:
    known(LOSS_DIFFERS, "both,Table 2,loss | 10,noise")
    endless = table(2, Figure(1.0, endless=True))
    made_up = paper(table(1, Figure(90.0), Figure(1.0, endless=True), drawn=True), endless)
    for name in ("Table 1, loss, 10", "table 1,N=10", "Table 1, 10"):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr("tcpcast.papers.load_reproduction", lambda _: made_up.reproduce)
            assert main(["reproduce", "engset", "--cell", name]) == 0
        out = capsys.readouterr().out
        assert "Known differences, other rules:\n  Table 1, loss, 10: published 100, own 90" in out
        assert "0 of 1 values checked agree, 1 known difference, no new differences." in out
        assert f"Repeat with:\n  tcpcast reproduce engset --cell '{name}'\n" in out
    assert not list(tmp_path.glob("*paper"))
    assert command(made_up, "--cell", "Table 1") == 2
    assert "--cell are mutually exclusive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Table 1, loss, 30", "no cell 'Table 1, loss, 30'; the nearest names are: Table 1, loss,"),
        ("Tabel 2, loss", "no section 'Tabel 2, loss'; the nearest names are: Table 2; Table 1"),
    ],
)
def test_unknown_cell_suggests_names_without_a_simulation(
    name: str,
    message: str,
    known: Callable[..., None],  # noqa: ARG001 - the paper has such a file
    tmp_path: Path,
) -> None:
    made_up = paper(*(table(number, Figure(1.0, endless=True), drawn=True) for number in (1, 2)))
    with pytest.raises(ScenarioError, match=message):
        made_up.reproduce(tmp_path, cell=name)


def test_cell_of_a_section_with_rows_known_after_simulations(
    known: Callable[..., None],  # noqa: ARG001 - the paper has such a file
    tmp_path: Path,
) -> None:
    figure = Figure(3.0)

    def compute(runs: Runs[float], _: Path) -> Section:
        section = runs.section("Table 3. Late", ("value",))
        section.rows = [Row((f"{runs[figure]:g}",), "", None, runs[figure])]
        return section

    part = Part([compute], lambda runs: runs.request(figure))
    report = paper(part).reproduce(tmp_path, cell="Table 3, 3")
    assert [row.own for _, row in report.rows] == [3.0]


@pytest.mark.parametrize("threads", [0, -1])
def test_invalid_number_of_threads_is_rejected(
    threads: int,
    known: Callable[..., None],  # noqa: ARG001 - the paper has such a file
    tmp_path: Path,
) -> None:
    with pytest.raises(DomainError, match=r"threads: .* is not a number of threads; use 1 or more"):
        paper(table(1, Figure(100.0))).reproduce(tmp_path / "page", threads=threads)


def test_too_many_threads_are_rejected() -> None:
    with pytest.raises(DomainError, match=r"threads: 1\d* is too large; use at most 10000"):
        RunOptions(threads=10**20)


def test_quick_runs_use_the_quick_sample_sizes(
    known: Callable[..., None],  # noqa: ARG001 - the paper has such a file
    tmp_path: Path,
) -> None:
    efforts: list[float] = []
    part: Part = Part(
        [lambda runs, _: runs.section("Table 1")],
        lambda runs: efforts.append(runs.sample_sizes),
    )
    made_up = replace(paper(part), quick=7.0)
    made_up.reproduce(tmp_path, quick=True)
    made_up.reproduce(tmp_path)
    assert efforts == [7.0, 100.0]


@pytest.mark.parametrize("name", PAPERS)
def test_known_differences_have_reasons(name: str) -> None:
    package = f"tcpcast_papers.{name.replace('-', '_')}"
    for runs in ("whole", "quick"):
        listed = known_differences(package, runs)
        assert all(
            difference.section and all(difference.label) and difference.reason
            for difference in listed
        )
        keys = [(difference.section, difference.label) for difference in listed]
        assert len(set(keys)) == len(keys)


def test_number_of_threads_accepts_numpy_integers() -> None:
    assert type(RunOptions(threads=np.int64(2)).threads) is int  # type: ignore[arg-type]
    for other in (True, np.True_, 2.0):
        with pytest.raises(DomainError, match="is not a number of threads"):
            RunOptions(threads=other)  # type: ignore[arg-type]
