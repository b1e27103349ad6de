"""The paper's printed values as data: complete, and consistent with each other."""

import pytest
from tcpcast.models.engset import flights
from tcpcast.process.errors import DomainError
from tcpcast_papers.engset import published
from tcpcast_papers.engset.lone_connection import example_beta
from tcpcast_papers.reproduction import Printed

LINES = {1: 97, 2: 16, 3: 16, 4: 19, 5: 9, 6: 12, 7: 21, 8: 9, 9: 57, 10: 16}


@pytest.mark.parametrize("number", LINES)
def test_tables_have_all_lines(number: int) -> None:
    table = published.published_table(number)
    assert len(table) == LINES[number]
    assert table.title.startswith(f"Table {number}. ")


def test_table_11_is_rejected() -> None:
    with pytest.raises(DomainError, match="no numeric table 11"):
        published.published_table(11)


@pytest.mark.parametrize("end", ["window_low_pkts", "window_high_pkts"])
def test_table_3_corrected_flights_equal_the_model(end: str) -> None:
    for line in published.published_table(3):
        result = flights(
            size_pkts=line.value("mean_size_pkts"),
            receiver_window_pkts=int(line[end] or 44),
            slowest_beta=example_beta(line),
        )
        assert result.sizes() == tuple(float(f) for f in line["flights_corrected_pkts"].split())


def test_values_of_the_text_have_unique_keys() -> None:
    keys = [line["key"] for line in published.values_printed_in_text()]
    assert len(keys) == len(set(keys)) == 41
    drops = published.values_printed_in_text().line_with(key="drops_98").value("value")
    assert round(100 * drops / 9.6e6, 3) == published.published_table(6).line_with(
        source="E", sources=98
    ).value("loss_percent")


def test_lines_keep_printed_digits() -> None:
    line = published.published_table(6).line_with(source="EE(7)", sources=134)
    assert line.printed("loss_percent") == Printed("4.80")
    assert Printed(line["loss_percent"]).decimals == 2
    assert (
        published.published_table(5)
        .line_with(rate_mbps=2, rule="TCP-Engset")
        .printed("buffer_pkts")
        is None
    )


def test_unprinted_values_are_rejected() -> None:
    with pytest.raises(DomainError, match="prints no share_percent"):
        published.published_table(1).line_with(
            mean_size_pkts=22, distribution="E", low_pkts=15
        ).value("share_percent")
    with pytest.raises(DomainError, match="expected one"):
        published.published_table(1).line_with(mean_size_pkts=22)
