"""Reproduction of the paper: its simulated values compared with own values.

The quick run is checked section by section; the whole one has the paper's counts. Both are long
tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_parts import check_figure, section
from tcpcast_papers import paper
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Row, Verdict

pytestmark = pytest.mark.long

TITLES = [
    *(f"Table {n}." for n in range(1, 11)),
    *(f"Figure {n}." for n in (3, *range(8, 17))),
    "Section 4.2.",
    "Section 4.4.",
    "The surprising observation of Table 10",
]
FIGURES = [f"figure{n:02}.png" for n in (3, *range(8, 17))] + ["table10.png"]
BY_SIZE = ("Table 8.", "Table 9.")


@pytest.fixture(scope="module")
def shares() -> list[float]:
    return []


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory, shares: list[float]) -> Report:
    folder = tmp_path_factory.mktemp("engset")
    return paper("engset")(folder, quick=True, progress=shares.append)


def checked(report: Report) -> Iterator[tuple[str, Row]]:
    for part in report.sections:
        for row in part.rows:
            if row.verdict is not Verdict.SHOWN:
                yield part.title, row


def of_an_interval(title: str, row: Row) -> bool:
    return title.startswith(BY_SIZE) and "all" not in row.label


def buffer(title: str, row: Row) -> int:
    """Return the buffer of a size interval's row in packets; Table 8 has it in its heading."""
    return 150 if title.startswith("Table 8.") else int(row.label[1])


def misplaced(report: Report) -> list[tuple[str, Row]]:
    """Return explained rows, except for size interval rates under heavy loss."""
    return [
        (t, r)
        for t, r in report.explained
        if not (of_an_interval(t, r) and r.label[-1] == "rate" and buffer(t, r) <= 150)
    ]


@pytest.mark.parametrize("title", TITLES)
def test_every_table_and_figure_has_its_section(quick: Report, title: str) -> None:
    part = section(quick, title)
    assert part.rows or part.figures
    assert all(len(row.label) == len(part.columns) for row in part.rows)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_plotted_and_on_the_page(quick: Report, name: str) -> None:
    check_figure(quick, name)


def test_every_formula_gives_the_printed_digits(quick: Report) -> None:
    theory = [
        (title, row)
        for title, row in checked(quick)
        if row.tolerance is not None and row.tolerance.printed_digits
    ]
    assert len(theory) > 140
    assert [(t, r) for t, r in theory if r.verdict is not Verdict.AGREES] == []


def test_rates_on_times_and_losses_agree(quick: Report) -> None:
    rows = [(t, r) for t, r in checked(quick) if not of_an_interval(t, r)]
    assert [(t, r) for t, r in rows if r.verdict is Verdict.DIFFERS] == []
    unsettled = [r for _, r in rows if r.verdict is Verdict.UNSETTLED]
    assert len(unsettled) <= 0.05 * len(rows)


def test_differences_are_explained(quick: Report) -> None:
    assert len(list(checked(quick))) > 350
    assert [*quick.new, *quick.gone] == []


def test_only_size_interval_rates_under_heavy_loss_need_causes(quick: Report) -> None:
    assert quick.explained
    assert misplaced(quick) == []
    assert {row.cause.reason for _, row in quick.explained if row.cause} == {
        "the phase of the loop"
    }


def test_rates_of_size_intervals_agree_with_a_large_buffer(quick: Report) -> None:
    rows = [(t, r) for t, r in checked(quick) if of_an_interval(t, r) and buffer(t, r) > 150]
    assert len(rows) == 19
    assert all(row.explained_by is None for _, row in rows)
    assert [(t, r) for t, r in rows if r.verdict is Verdict.DIFFERS] == []


def test_shorter_loop_explains_the_printed_rates(quick: Report) -> None:
    gaps: dict[str, list[float]] = {"RTT 50 ms": [], "RTT 49.8048 ms": []}
    for row in section(quick, "The phase of the loop").rows:
        if row.label[3].startswith("rate of 257-512") and row.difference is not None:
            gaps[row.label[0]].append(abs(row.difference))
    mean = {rtt: sum(result) / len(result) for rtt, result in gaps.items()}
    assert len(gaps["RTT 50 ms"]) == 4
    assert mean["RTT 49.8048 ms"] < 0.5 * mean["RTT 50 ms"]


def test_one_nanosecond_changes_loss_of_retransmissions(quick: Report) -> None:
    repeated = {
        row.label[0]: row.own or 0.0
        for row in section(quick, "The phase of the loop").rows
        if row.label[3] == "TOTO per TO"
    }
    assert len(repeated) == 4
    exact = repeated.pop("RTT 50 ms")
    assert exact < 1
    assert all(share == pytest.approx(9.9, abs=2) for share in repeated.values())


def test_files_of_54_to_106_packets_time_out_at_printed_packet(quick: Report) -> None:
    rows = {(r.label, r.note): r for r in section(quick, "Section 4.2.").rows}
    for size, packet in ((54, 54), (106, 90)):
        label = (f"packet at which a file of {size} packets times out",)
        assert rows[label, "simulated"].own == packet
        assert rows[label, "simulated"].own == packet


def test_compensation_in_table_10_requires_high_load(quick: Report) -> None:
    rows = section(quick, "The surprising observation").rows
    spread = {(row.label[0], row.label[1]): row.own or 0.0 for row in rows}
    assert spread["134", "E"] < 3
    assert spread["82", "E"] > 5


def test_queue_of_one_connection_matches_measurement(quick: Report) -> None:
    rows = section(quick, "Section 4.4.").rows
    measured = [row for row in rows if row.note.startswith("simulated")]
    assert len(measured) == 2
    for row in measured:
        assert row.published is not None
        assert row.own == pytest.approx(row.published.value, rel=0.05)


def test_progress_is_monotonic(quick: Report, shares: list[float]) -> None:
    assert quick.sections
    assert shares[-1] == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)


def test_whole_paper_agrees_with_listed_differences(tmp_path: Path) -> None:
    report = paper("engset")(tmp_path)
    assert [*report.new, *report.gone] == []
    assert misplaced(report) == []
