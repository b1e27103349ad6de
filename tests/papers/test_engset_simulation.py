"""Reproduction of the paper: its simulated values compared with own values.

The quick run is checked section by section; the whole one has the paper's counts. Both are long
tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_parts import check_figure, section
from tcpcast_papers import paper
from tcpcast_papers.engset.interpretations import SINCE_OWN_TRANSMISSION
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import PRINTED_DIGITS, Row, Verdict

pytestmark = pytest.mark.long

TITLES = [
    *(f"Table {n}." for n in range(1, 11)),
    *(f"Figure {n}." for n in (3, *range(8, 17))),
    "Section 4.2.",
    "Section 4.4.",
    "The surprising observation of Table 10",
    "The phase of the loop",
    "Packets paced by the ingress link",
    "Bursts of at most 2 packets",
]
FIGURES = [f"figure{n:02}.png" for n in (3, *range(8, 17))] + ["table10.png"]


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


@pytest.mark.parametrize("title", TITLES)
def test_every_table_and_figure_has_its_section(quick: Report, title: str) -> None:
    part = section(quick, title)
    assert part.rows or part.figures
    assert all(len(row.label) == len(part.columns) for row in part.rows)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_plotted_and_on_the_page(quick: Report, name: str) -> None:
    check_figure(quick, name)


def test_every_formula_gives_the_printed_digits(quick: Report) -> None:
    # A simulated value without losses has an interval, and also only this tolerance.
    theory = [
        (title, row)
        for title, row in checked(quick)
        if row.tolerance == PRINTED_DIGITS and row.low is None
    ]
    assert len(theory) > 140
    assert [(t, r) for t, r in theory if r.verdict is not Verdict.AGREES] == []


def test_every_published_value_has_a_verdict(quick: Report) -> None:
    shown = [
        (title, row.label)
        for title, row in quick.rows
        if row.published is not None and row.verdict is Verdict.SHOWN
    ]
    assert shown == []
    assert len(list(checked(quick))) > 540


def test_differences_are_explained(quick: Report) -> None:
    assert [*quick.new, *quick.gone] == []


def test_causes_are_phases_and_readings(quick: Report) -> None:
    reasons = {row.cause.reason for _, row in quick.explained_rows if row.cause}
    assert any(reason.startswith("the phase of the loop") for reason in reasons)
    assert any(reason.startswith(SINCE_OWN_TRANSMISSION) for reason in reasons)
    # Tables without losses, and with a buffer that hardly overflows, need no phase.
    explained = {title.partition(".")[0] for title, _ in quick.explained_rows}
    assert explained <= {"Table 7", "Table 8", "Table 9", "Table 10", "Figure 14", "Figure 15"}


def test_shorter_loop_gives_the_printed_rates(quick: Report) -> None:
    gaps = {
        (row.label[0], row.label[1]): row.own or 0.0
        for row in section(quick, "The phase of the loop").rows
        if row.label[2].startswith("EE(7), B = 150")
    }
    for table in ("8", "9"):
        assert gaps["RTT 49.7 ms", table] < 0.7 * gaps["RTT 50 ms", table]


def test_one_nanosecond_changes_loss_of_retransmissions(quick: Report) -> None:
    repeated = {
        row.label[0]: row.own or 0.0
        for row in section(quick, "The phase of the loop").rows
        if row.label[2] == "TOTO per TO"
    }
    assert repeated["RTT 50 ms"] < 1
    for loop in ("RTT 50 ms, RTO 1 ns shorter", "RTT 49.7 ms", "RTT 49.8048 ms"):
        assert repeated[loop] == pytest.approx(9.9, abs=2)


def test_paced_packets_lose_the_second_as_often_as_the_first(quick: Report) -> None:
    ratios = [
        row.own or 0.0
        for row in section(quick, "Packets paced").rows
        if row.label[1].startswith("drops of packet 2")
    ]
    assert ratios[0] > 2
    assert ratios[1] == pytest.approx(1, abs=0.3)


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
