"""Ayesta and Avrachenkov's printed values as data: complete and corrected."""

import math

import pytest
from tcpcast.models.short import fluid_timeout_pkts, min_recoverable_pkts, timeout_packets
from tcpcast_papers.reproduction import Printed
from tcpcast_papers.short import published
from tcpcast_papers.short.settings import (
    ALL_SETTINGS,
    FIGURE_SETTINGS,
    LIMITED_TRANSMIT,
    NEWRENO,
    NEWRENO_DELAYED_ACKS,
    PROPOSAL,
    Setting,
)
from tcpcast_papers.short.timeouts import sender_of_line


@pytest.mark.parametrize(("number", "total"), [(1, 30), (2, 49)])
def test_tables_are_complete(number: int, total: int) -> None:
    cells = {
        (line["initial_window_pkts"], line["phase"], line["limited_transmit"]): line
        for line in published.published_table(number)
    }
    assert {window for window, _, _ in cells} == {"1", "2", "3", "4"}
    assert len(cells) == 16
    assert sum(line.value("timeout_packets") for line in cells.values()) == total


@pytest.mark.parametrize("number", [1, 2])
def test_all_cells_except_two_follow_the_rule(number: int) -> None:
    for line in published.published_table(number):
        transfer = sender_of_line(line).transfer
        printed, own = line.value("timeout_packets"), timeout_packets(transfer)
        assert transfer.acked_packets == number
        if line.misprint:
            # The initial window is already large enough: (2) gives 0.
            assert (printed, own) == (1, 0)
            assert fluid_timeout_pkts(transfer) == 0
            assert line.note
        else:
            assert own == printed, line.cells
    assert sum(bool(line.misprint) for line in published.published_table(number)) == 2


@pytest.mark.parametrize(
    "setting", [NEWRENO, LIMITED_TRANSMIT, NEWRENO_DELAYED_ACKS], ids=lambda setting: setting.name
)
def test_minimum_file_size_in_text_equals_the_tables(setting: Setting) -> None:
    line = published.min_file_sizes().line_with(setting=setting.name)
    assert line.value("least_pkts") == min_recoverable_pkts(setting.transfer)
    assert line.note


def test_figures_have_their_published_settings() -> None:
    assert [item.name for item in FIGURE_SETTINGS] == [
        "figure 4",
        "figure 6",
        "figure 7",
        "figure 8",
    ]
    for item in FIGURE_SETTINGS:
        sender = item.transfer
        assert (sender.initial_window_pkts, sender.initial_ssthresh_pkts) == (2, 30)
        assert sender.receiver_window_pkts == 30
        assert sender.rto_s == 1
    assert [item.transfer.acked_packets for item in FIGURE_SETTINGS] == [2, 1, 1, 1]
    assert [item.transfer.limited_transmit for item in FIGURE_SETTINGS] == [None, None, 2, 1]
    assert PROPOSAL.transfer.unprotected_pkts == 1
    assert len({item.name for item in ALL_SETTINGS}) == len(ALL_SETTINGS) == 8


def test_independent_values_have_three_decimals() -> None:
    lines = list(published.published_latencies())
    assert len(lines) == 18
    assert {line["setting"] for line in lines} <= {item.name for item in FIGURE_SETTINGS}
    for line in lines:
        for column in ("model_s", "exact_s"):
            result = line.printed(column)
            assert isinstance(result, Printed)
            assert result.decimals == 3
    for line in published.published_reductions():
        assert 0 < line.value("percent") < 100
        assert math.isfinite(line.value("exact_percent"))
