"""Baccelli, Hong and Liu's printed values as data: complete and consistent."""

import pytest
from tcpcast_papers.fixed_point import published
from tcpcast_papers.fixed_point.formulas import equation_1_kbit, printed_inputs
from tcpcast_papers.fixed_point.ftp import COLUMNS
from tcpcast_papers.fixed_point.measures import GOODPUT_LEVELS, MAX_RTT_S, QUANTITY_LABELS
from tcpcast_papers.fixed_point.published import (
    BACKBONE_BUFFER_S,
    CONGESTED,
    POPULATIONS,
    PRINTED_RTT_S,
    TABLE_OF_CASE,
    TABLES,
    independent_values,
    printed_cell,
    published_table,
)
from tcpcast_papers.fixed_point.tables import SPREADS

ROWS = {1: 5, 2: 5, 3: 9, 4: 9, 5: 9, 6: 10, 7: 3}


def columns(number: int) -> tuple[str, ...]:
    if number in COLUMNS:
        return tuple(column.name for column in COLUMNS[number])
    return tuple(SPREADS) if number == 6 else tuple(str(n) for n in POPULATIONS)


@pytest.mark.parametrize("number", TABLES)
def test_tables_are_complete(number: int) -> None:
    lines = list(published_table(number))
    assert len(lines) == ROWS[number]
    for line in lines:
        assert all(line.value(column) >= 0 for column in columns(number))
        if number != 7:
            assert line["quantity"] in QUANTITY_LABELS


@pytest.mark.parametrize("case", TABLE_OF_CASE)
@pytest.mark.parametrize("sources", POPULATIONS)
def test_table_7_follows_from_tables_3_to_5(case: int, sources: int) -> None:
    printed = published_table(7).line_with(case=case).printed(str(sources))
    assert printed is not None
    loss, timeouts, rtt = printed_inputs(case, sources)
    assert equation_1_kbit(loss, timeouts, rtt) == pytest.approx(printed.value, rel=0.03)
    more = PRINTED_RTT_S[case].get(sources)
    if more is None:
        assert equation_1_kbit(loss, timeouts, rtt) == pytest.approx(printed.value, rel=0.005)
    else:
        assert equation_1_kbit(loss, timeouts, more) == pytest.approx(printed.value, rel=0.003)
        assert more == pytest.approx(rtt, abs=0.0075)


@pytest.mark.parametrize(("case", "ceiling"), [(1, 1.303), (3, 2.803)])
def test_printed_rtts_in_overload_violate_littles_law(case: int, ceiling: float) -> None:
    backbone = BACKBONE_BUFFER_S if case == 3 else 0.0
    assert pytest.approx(ceiling, abs=5e-4) == MAX_RTT_S + backbone
    for sources in CONGESTED:
        printed = printed_cell(TABLE_OF_CASE[case], "rtt", str(sources))
        assert printed is not None
        assert printed.value > ceiling


def test_independent_values_obey_littles_law() -> None:
    assert [line["quantity"] for line in independent_values()] == [
        "loss",
        "timeouts",
        "rtt",
        "goodput",
        *GOODPUT_LEVELS,
    ]
    for line in independent_values():
        assert all(line.value(str(n)) >= 0 for n in POPULATIONS)
    for sources in POPULATIONS:
        assert independent_values().line_with(quantity="rtt").value(str(sources)) <= MAX_RTT_S
    threshold = published.LINK_PPS * published.MEAN_THINK_S / published.MEAN_SIZE_PKTS
    assert threshold == pytest.approx(5000)
