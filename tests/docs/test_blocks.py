"""The code blocks of the documentation run and print the shown output."""

import re
import runpy
import shutil
from itertools import zip_longest
from pathlib import Path

import pytest
from doc_figures import figures, images, look_alike
from doc_pages import ROOT, Block, Reader, blocks, follows, pages, stale_numbers, timeless

KNOWN = {"", "console", "python", "toml", "sh", "text", "json", "yaml"}
AGREEMENT = ROOT / "docs" / "figures" / "agreement.svg"
"""Drawn by ``docs/agreement_figure.py`` from a data file, not by a command of a page."""
MAX_SCREENSHOT_BYTES = 1_500_000


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=name)
def test_page_prints_the_shown_output(page: Path, tmp_path: Path) -> None:
    """Run all blocks except for long ones."""
    read(page, tmp_path, long=False)


@pytest.mark.long
@pytest.mark.parametrize(
    "page", [page for page in pages() if any(block.is_long for block in blocks(page))], ids=name
)
def test_page_with_long_blocks_prints_the_shown_output(page: Path, tmp_path: Path) -> None:
    read(page, tmp_path, long=True)


def read(page: Path, folder: Path, *, long: bool) -> None:
    """Run the blocks of a page and compare their output."""
    reader = Reader(folder)
    result = blocks(page)
    missing = set()
    left_out = False
    for block, after in zip_longest(result, result[1:]):
        if block.is_long and not long:
            left_out = True
            continue
        if block.needs is not None and shutil.which(block.needs) is None:
            missing.add(block.needs)
            continue
        if block.language == "python":
            printed = reader.output(block)
            shown = after.lines if after is not None and follows(block, after) else []
            assert block.is_measured or timeless(shown) == timeless(printed), block.location
        else:
            expected = reader.read(block)
            if expected is not None and not block.is_measured:
                assert timeless(block.lines) == timeless(expected), block.location
    check_figures(page, folder, all_ran=not (missing or left_out))
    if missing:
        pytest.skip(f"missing {', '.join(sorted(missing))}: make peers; other blocks pass")


def check_figures(page: Path, folder: Path, *, all_ran: bool) -> None:
    """Compare the figures of a page with those that its commands drew."""
    for written, kept in figures(page).items():
        drawn = folder / written
        assert drawn.exists() or not all_ran, f"{page}: no block writes {written}"
        if drawn.exists():
            now, before = (path.read_text(encoding="utf-8") for path in (drawn, kept))
            assert look_alike(now, before), f"{kept} has changed: make docs-update"


def test_each_figure_is_written_and_shown_by_one_page() -> None:
    kept = {path.resolve() for path in (ROOT / "docs").rglob("*.svg")}
    drawn = [path for page in pages() for path in figures(page).values()]
    assert len(drawn) == len(set(drawn))
    assert {*drawn, AGREEMENT} == kept
    screenshots = {path.resolve() for path in (ROOT / "docs" / "screenshots").iterdir()}
    assert {path for page in pages() for path in images(page)} == kept | screenshots
    assert sum(path.stat().st_size for path in screenshots) < MAX_SCREENSHOT_BYTES


def test_figure_of_the_agreement_shows_its_data_file(tmp_path: Path) -> None:
    figure = tmp_path / "agreement.svg"
    runpy.run_path(str(ROOT / "docs" / "agreement_figure.py"))["main"](figure)
    now, before = (path.read_text(encoding="utf-8") for path in (figure, AGREEMENT))
    assert look_alike(now, before), "make docs-update"


def test_output_may_be_cut(tmp_path: Path) -> None:
    lines = ["$ printf 'a\\nb\\nc\\n'", "a", "..."]
    block = Block(ROOT / "README.md", "console", 0, 3, lines)
    assert Reader(tmp_path).read(block) == lines
    block.lines = [lines[0], "a", "b", "c"]
    assert Reader(tmp_path).read(block) == block.lines


def test_drawings_are_compared_without_last_digits() -> None:
    drawing = '<path id="p1" d="M 10.25 3"/><use xlink:href="#p1"/>'
    assert look_alike(drawing, '<path id="p2" d="M 10.26 3"/><use xlink:href="#p2"/>')
    assert not look_alike(drawing, drawing.replace("10.25", "11.25"))
    assert not look_alike(drawing, drawing.replace("M", "L"))


@pytest.mark.parametrize("page", pages(), ids=name)
def test_blocks_have_a_language(page: Path) -> None:
    for block in blocks(page):
        assert block.language in KNOWN, block.location


def test_readme_example_has_six_lines_and_output() -> None:
    result = blocks(ROOT / "README.md")
    code = next(block for block in result if block.language == "python")
    assert len(code.lines) == 6
    assert follows(code, result[result.index(code) + 1])


def test_tutorial_shows_the_rate_of_the_paper() -> None:
    """Compare the formula and the simulation with Table 6 of the report: 154.2 kbit/s."""
    result = blocks(ROOT / "docs" / "tutorial.md")
    block = next(block for block in result if "--engine engset,packet" in block.lines[0])
    shown = next(line for line in block.lines if "connection rate" in line)
    engset_kbps, packet_kbps = (float(number) for number in re.findall(r"\d+\.\d+", shown)[:2])
    assert engset_kbps == pytest.approx(154.2, rel=0.02)
    assert packet_kbps == pytest.approx(154.2, rel=0.02)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_make_target_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?:`|^)make ((?:[a-z-]+ ?)+)", text, re.MULTILINE)
    assert {target for names in named for target in names.split()} <= make_targets()


def test_command_can_span_several_lines(tmp_path: Path) -> None:
    lines = ["$ echo one \\", "    two", "one two", "$ false"]
    block = Block(ROOT / "README.md", "console", 0, 4, lines)
    assert Reader(tmp_path).read(block) == lines


def test_elapsed_times_are_ignored() -> None:
    assert timeless(["engset in 1.2 ms; packet in 790 ms, warm-up 20 s"]) == [
        "engset in a moment; packet in a moment, warm-up 20 s"
    ]


def test_numbers_that_left_the_outputs_are_reported_in_sentences() -> None:
    page = """\
95 % of the files get 2.66 Mbit/s, and half of them 8.10 Mbit/s.

```console
$ tcpcast run office
 5th percentile   Mbit/s    {}  2.52–2.88
 50th percentile  Mbit/s    8.10  {}–8.22
```
"""
    before, after = page.format("2.66", "7.90"), page.format("2.69", "7.93")
    (line,) = stale_numbers(before, after)
    assert line.startswith("1: 2.66 is no longer in an output: 95 % of the files")
    assert stale_numbers(before, before) == []
    assert stale_numbers(before, after.replace("get 2.66", "get 2.69")) == []
