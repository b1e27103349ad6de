"""The paper's printed values as data: complete, and consistent with each other."""

import csv
from importlib.resources import files

import pytest
from tcpcast.errors import DomainError
from tcpcast.models.engset import flights
from tcpcast_papers.engset import published
from tcpcast_papers.engset.lone_connection import example_beta
from tcpcast_papers.engset.rounded_size_distributions import SizeDistribution
from tcpcast_papers.engset.settings import CONNECTIONS, read_setting
from tcpcast_papers.published import Line
from tcpcast_papers.reproduction import Printed

LINES = {1: 97, 2: 16, 3: 16, 4: 19, 5: 9, 6: 12, 7: 21, 8: 9, 9: 57, 10: 16}
COLUMNS = [(size, distribution) for size in CONNECTIONS for distribution in ("E", "EP")]


@pytest.mark.parametrize("number", LINES)
def test_tables_have_all_lines(number: int) -> None:
    table = published.published_table(number)
    assert len(table) == LINES[number]
    assert table.title.startswith(f"Table {number}. ")


def test_table_11_is_rejected() -> None:
    with pytest.raises(DomainError, match="no numeric table 11"):
        published.published_table(11)


@pytest.mark.parametrize("name", [f"table{n:02}.csv" for n in LINES] + ["text.csv"])
def test_misprints_have_a_note(name: str) -> None:
    with files("tcpcast_papers.engset").joinpath("data", name).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    for row in rows:
        assert {"misprint", "note"} <= row.keys()
        assert None not in row, f"a cell too many: {row}"
        assert None not in row.values(), f"a cell too few: {row}"
        assert row["note"] or not row["misprint"]


def shares(size: int, distribution: str) -> tuple[tuple[Line, ...], list[float]]:
    lines = published.published_table(1).lines_with(mean_size_pkts=size, distribution=distribution)
    return lines, [line.value("share_percent") for line in lines if line["share_percent"]]


@pytest.mark.parametrize(("size", "distribution"), COLUMNS)
def test_table_1_columns_sum_to_100_percent(size: int, distribution: str) -> None:
    lines, printed = shares(size, distribution)
    lost = [line for line in lines if not line["share_percent"]]
    assert len(lost) == ((size, distribution) in {(22, "E"), (5, "EP")})
    exact = SizeDistribution.from_setting(read_setting(f"F{size}-N1-10M1G-R50-{distribution}"))
    missing = sum(
        100 * exact.share(int(line["low_pkts"]), line.integer("high_pkts")) for line in lost
    )
    assert sum(printed) + missing == pytest.approx(100, abs=0.21)


@pytest.mark.parametrize(("size", "distribution"), COLUMNS)
def test_table_1_means_are_in_their_intervals_and_agree_with_mean(
    size: int, distribution: str
) -> None:
    lines, _ = shares(size, distribution)
    exact = SizeDistribution.from_setting(read_setting(f"F{size}-N1-10M1G-R50-{distribution}"))
    for line in lines:
        if line["mean_in_interval_pkts"]:
            mean, low = line.value("mean_in_interval_pkts"), int(line["low_pkts"])
            assert low <= mean <= (line.integer("high_pkts") or float("inf"))
            assert mean == pytest.approx(exact.mean(low, line.integer("high_pkts")), rel=0.05)


@pytest.mark.parametrize("distribution", ["E", "EP"])
def test_table_1_moved_rows_contradict_their_printed_position(
    distribution: str,
) -> None:
    for line in published.published_table(1).lines_with(distribution=distribution, misprint="row"):
        intervals = dict(published.INTERVALS)
        printed_low = int(line["printed_low_pkts"])
        mean = line.value("mean_in_interval_pkts")
        assert not printed_low <= mean <= (intervals[printed_low] or float("inf"))


def test_table_3_flights_sum_to_the_file_and_give_m_and_n() -> None:
    for line in published.published_table(3):
        sizes = [int(size) for size in line["flights_corrected_pkts"].split()]
        assert sum(sizes) == int(line["mean_size_pkts"])
        assert len(sizes) == int(line["m_corrected"])
        assert sizes[-1] - 1 == int(line["n_corrected"])
        changed = [
            name for name in ("m", "n", "flights_pkts") if line[name] != line[_corrected(name)]
        ]
        assert bool(changed) == (line.misprint not in {"", "condition"})


def _corrected(name: str) -> str:
    return "flights_corrected_pkts" if name == "flights_pkts" else f"{name}_corrected"


@pytest.mark.parametrize("end", ["window_low_pkts", "window_high_pkts"])
def test_table_3_corrected_flights_equal_the_model(end: str) -> None:
    for line in published.published_table(3):
        result = flights(
            size_pkts=line.value("mean_size_pkts"),
            receiver_window_pkts=int(line[end] or 44),
            slowest_beta=example_beta(line),
        )
        assert result.sizes() == tuple(float(f) for f in line["flights_corrected_pkts"].split())


def test_tables_8_and_10_print_the_same_run() -> None:
    all_files = published.published_table(8).line_with(low_pkts="")
    averages = published.published_table(10).line_with(distribution="EE(7)", buffer_pkts=150)
    assert all_files["rate_kbps"] == averages["rate_kbps"]
    implied = averages.value("on_time_ms") * averages.value("rate_kbps") / 12_000
    assert implied == pytest.approx(all_files.value("mean_size_pkts"), abs=0.01)


def test_tables_6_and_10_print_the_same_runs() -> None:
    for distribution in ("EE(7)", "E"):
        by_load = published.published_table(6).line_with(sources=134, source=distribution)
        by_buffer = published.published_table(10).line_with(
            distribution=distribution, buffer_pkts=200
        )
        assert by_load["rate_kbps"] == by_buffer["rate_kbps"]
        assert by_load.value("loss_percent") == by_buffer.value("loss_percent")


def test_table_7_is_consistent() -> None:
    value = {line["quantity"]: line.value("measured") for line in published.published_table(7)}
    kinds = [value[f"{kind} per TO"] for kind in ("TOTO", "TDTO", "TObeg", "TOend", "TOother")]
    assert sum(kinds) == pytest.approx(100, abs=0.2)
    rate = 12 * value["file size"] / value["ON time"] * 1e3
    assert rate == pytest.approx(value["connection rate"], abs=0.2)
    queue = (value["RTT measured by TCP"] - 50) / 1.2
    assert queue == pytest.approx(122, abs=0.5)


def test_intervals_of_tables_4_and_8_cover_all_files() -> None:
    for distribution in ("EE(7)", "EP"):
        total = sum(
            line.value("files_percent")
            for line in published.published_table(4).lines_with(distribution=distribution)
        )
        assert total == pytest.approx(100, abs=0.05)
    parts = [line for line in published.published_table(8) if line["low_pkts"]]
    assert sum(line.value("files_percent") for line in parts) == pytest.approx(100, abs=0.05)
    size = sum(line.value("files_percent") * line.value("mean_size_pkts") for line in parts) / 100
    assert size == pytest.approx(11.88, abs=0.05)


def test_table_9_covers_two_distributions_and_three_buffers() -> None:
    for distribution, intervals in (("EE(7)", 8), ("EP", 11)):
        for buffer, stalls in ((50, intervals), (150, intervals), (750, 0)):
            lines = published.published_table(9).lines_with(
                distribution=distribution, buffer_pkts=buffer
            )
            assert len(lines) == intervals
            assert sum(bool(line["stalled_percent"]) for line in lines) == stalls


def test_table_5_delays_follow_from_buffers() -> None:
    for line in published.published_table(5):
        if line["buffer_pkts"]:
            delay = 12 * line.value("buffer_pkts") / line.value("rate_mbps")
            assert delay == pytest.approx(line.value("delay_ms"), rel=0.01)


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
