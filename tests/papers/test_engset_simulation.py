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
    "The base RTT of 10M2M",
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


def test_causes_are_readings_at_the_base_rtt(quick: Report) -> None:
    reasons = {row.cause.reason for _, row in quick.explained_rows if row.cause}
    assert SINCE_OWN_TRANSMISSION in reasons
    assert "TOend also after a fast retransmit" in reasons
    assert not any("RTT" in reason for reason in reasons)
    explained = {title.partition(".")[0] for title, _ in quick.explained_rows}
    assert explained == {"Table 7", "Table 9"}


def values_by_rtt(report: Report, text: str) -> list[float]:
    """Values with the base RTT, with 50 ms, and with 49.999 ms."""
    (row,) = [r for r in section(report, "The base RTT").rows if r.label[1].startswith(text)]
    return [value or 0.0 for value in (row.own, *row.others)]


@pytest.mark.parametrize("text", [f"{d}, B = {b}" for d in ("EE(7)", "EP") for b in (50, 150)])
def test_rates_are_closest_with_the_base_rtt(quick: Report, text: str) -> None:
    base, tie, before = values_by_rtt(quick, text)
    assert base < before < tie
    assert base < 3


def test_repeated_timeouts_are_rare_only_in_the_tie(quick: Report) -> None:
    base, tie, before = values_by_rtt(quick, "TOTO per TO")
    assert base == pytest.approx(9.9, abs=1.5)
    assert before == pytest.approx(9.9, abs=1.5)
    assert tie < 1


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


def test_whole_paper_agrees_with_listed_differences(tmp_path: Path) -> None:
    report = paper("engset")(tmp_path)
    assert [*report.new, *report.gone] == []
