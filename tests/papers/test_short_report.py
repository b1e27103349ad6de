"""The report on short transfers: its sections, in the quick run and in the whole one."""

from pathlib import Path as Folder

import numpy as np
import pytest
from report_parts import check_figure, own, section
from tcpcast_papers import claims, paper
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Verdict
from tcpcast_papers.short.methods import AS_PRINTED, MODEL, REFINED
from tcpcast_papers.short.settings import LIMITED_TRANSMIT, NEWRENO, NEWRENO_DELAYED_ACKS, PROPOSAL

pytestmark = pytest.mark.long

TITLES = [
    "Table 1.",
    "Table 2.",
    "Figure 4.",
    "Figure 6.",
    "Figure 7.",
    "Figure 8.",
    "Figure 9.",
    "Figure 10.",
    "Section 3.1.",
    "Section 4.1.",
    "Section 4.2.",
    "Section 5.",
    "Section 4. Errors",
    "Independent values",
]
FIGURES = [*(f"figure{n}.png" for n in (4, 6, 7, 8, 9, 10)), "errors.png"]


@pytest.fixture(scope="module")
def shares() -> list[float]:
    return []


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory, shares: list[float]) -> Report:
    folder = tmp_path_factory.mktemp("short")
    return paper("short")(folder, quick=True, progress=shares.append)


@pytest.mark.parametrize("title", TITLES)
def test_every_part_has_its_section(quick: Report, title: str) -> None:
    part = section(quick, title)
    assert part.rows
    assert part.remarks
    assert all(len(row.label) == len(part.columns) for row in part.rows)
    assert all(row.own is not None and np.isfinite(row.own) for row in part.rows)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_plotted_and_on_the_page(quick: Report, name: str) -> None:
    check_figure(quick, name)


def test_only_the_end_of_backoff_causes_differences(quick: Report) -> None:
    assert [*quick.new, *quick.gone] == []
    assert quick.count(Verdict.AGREES) >= 80
    values = ((title, row) for title, row in quick.explained_rows if title != claims.TITLE)
    for title, row in values:
        assert title == TITLES[-1]
        assert int(row.label[2]) >= 2


def test_recursion_agrees_to_the_digits(quick: Report) -> None:
    rows = [r for r in section(quick, TITLES[-1]).rows if r.label[3] == "recursion, d = 1"]
    assert len(rows) == 18
    assert all(row.verdict is Verdict.AGREES for row in rows)


def test_misprinted_cells_are_inconsistent(quick: Report) -> None:
    for title in TITLES[:2]:
        rows = [r for r in section(quick, title).rows if r.label[3] == "rule"]
        assert len(rows) == 16
        wrong = [row for row in rows if row.verdict is Verdict.INCONSISTENT]
        assert [row.own for row in wrong] == [0, 0]
        assert all(row.note for row in wrong)


@pytest.mark.parametrize(("title", "peak"), [("Figure 4.", 7), ("Figure 6.", 5), ("Figure 7.", 4)])
@pytest.mark.parametrize("by", [MODEL, "packets"])
def test_latency_of_one_loss_peaks_at_minimum_file_size(
    quick: Report, title: str, peak: int, by: str
) -> None:
    assert own(section(quick, title), "peak of one loss", by) == peak


def test_proposal_has_no_latency_peak(quick: Report) -> None:
    for by in (MODEL, "packets"):
        assert own(section(quick, "Figure 8."), "peak of one loss", by) == 1


def test_duplicates_round_trip_explains_error_with_one_loss(quick: Report) -> None:
    part = section(quick, "Section 4. Errors")
    for setting in (NEWRENO, LIMITED_TRANSMIT, PROPOSAL):
        printed, corrected = (own(part, setting.description, "1", by) for by in (AS_PRINTED, MODEL))
        assert corrected < 0.4 * printed


def test_refinement_reduces_the_error(quick: Report) -> None:
    part = section(quick, "Section 4. Errors")
    for setting in (NEWRENO, LIMITED_TRANSMIT, NEWRENO_DELAYED_ACKS):
        for losses in ("2", "3"):
            corrected, refined = (
                own(part, setting.description, losses, by) for by in (MODEL, REFINED)
            )
            assert refined < 0.7 * corrected


def test_expected_latency_of_three_senders_is_shown(quick: Report) -> None:
    part = section(quick, "Figure 9.")
    for size in ("8 packets", "20 packets"):
        times = [
            own(part, sender, size, "packets")
            for sender in ("NewReno", "limited transmit", "the proposal")
        ]
        assert times == sorted(times, reverse=True)
    assert own(part, "the proposal", "30 packets", "packets") == own(
        part, "limited transmit", "30 packets", "packets"
    )


def test_progress_is_monotonic(quick: Report, shares: list[float]) -> None:
    assert quick.sections
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_whole_paper_is_reproducible(tmp_path: Folder) -> None:
    pages = []
    for threads in (1, None):
        folder = tmp_path / f"{threads}"
        report = paper("short")(folder, threads=threads)
        assert [*report.new, *report.gone] == []
        pages.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert pages[0] == pages[1]
