"""Quantities as texts: reading, writing, and error messages."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.process.errors import TcpcastError, UnitError
from tcpcast.quantity import units
from tcpcast.scenario.link import read_buffer


@pytest.mark.parametrize(
    ("typed", "rate_bps"),
    [
        ("1bit", 1),
        ("128kbit", 128e3),
        ("10mbit", 10e6),
        ("10Mbit", 10e6),
        ("10 Mbit/s", 10e6),
        ("1.5mbit/s", 1.5e6),
        ("10Mb/s", 10e6),
        ("3 kb/s", 3e3),
        ("800b/s", 800),
        ("1gbit", 1e9),
        ("1tbit", 1e12),
        ("2.5e1 Gbit/s", 25e9),
        ("1_000kbit", 1e6),
        ("unlimited", math.inf),
    ],
)
def test_parse_rate_reads_rates(typed: object, rate_bps: float) -> None:
    assert units.parse_rate(typed) == rate_bps


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [
        ("50ms", 0.05),
        ("1s", 1),
        ("150 us", 150e-6),
        ("150µs", 150e-6),
        ("12ns", 12e-9),
        ("2min", 120),
        ("1.5h", 5400),
        ("0s", 0),
        (0, 0),
    ],
)
def test_parse_duration_reads_times(typed: object, seconds: float) -> None:
    assert units.parse_duration(typed) == seconds


@pytest.mark.parametrize(
    ("typed", "size"),
    [
        ("1500B", 1500),
        ("200KB", 200_000),
        ("200kB", 200_000),
        ("1MB", 10**6),
        ("64KiB", 65536),
        ("1.5 MiB", 1572864),
        ("2GB", 2 * 10**9),
    ],
)
def test_parse_bytes_reads_sizes(typed: object, size: int) -> None:
    assert units.parse_bytes(typed) == size


@pytest.mark.parametrize(
    ("typed", "packets"),
    [("12pkt", 12), ("12.5 pkt", 12.5), (12, 12), ("12", 12), (2.5, 2.5), (np.int64(7), 7)],
)
def test_parse_packets_reads_packets(typed: object, packets: float) -> None:
    assert units.parse_packets(typed) == packets


def test_parse_packets_converts_bytes_by_payload() -> None:
    assert units.parse_packets("14600B", payload_bytes=1460) == 10
    assert units.parse_packets("18KB", payload_bytes=1460) == pytest.approx(12.3288, abs=1e-4)


@pytest.mark.parametrize(
    ("typed", "ratio"),
    [("1%", 0.01), ("0.1 %", 0.001), (0.01, 0.01), ("0.5", 0.5), (0, 0), ("100%", 1)],
)
def test_parse_ratio_reads_ratios(typed: object, ratio: float) -> None:
    assert units.parse_ratio(typed) == ratio


@pytest.mark.parametrize(("typed", "hz"), [("20/s", 20), ("3/min", 0.05), ("1 / ms", 1000)])
def test_parse_per_second_reads_frequencies(typed: object, hz: float) -> None:
    assert units.parse_per_second(typed) == hz


@pytest.mark.parametrize(("typed", "count"), [(1, 1), (2e2, 200), (np.int32(5), 5)])
def test_parse_count_reads_integers(typed: object, count: int) -> None:
    read = units.parse_count(typed, minimum=1, maximum=1000)
    assert read == count
    assert type(read) is int


@pytest.mark.parametrize(
    ("read", "typed", "remedy"),
    [
        (units.parse_rate, "10mbps", 'use "10mbit" for bits or "80mbit" for bytes'),
        (units.parse_rate, "10 Gbps", 'use "10gbit" for bits or "80gbit" for bytes'),
        (units.parse_rate, "0", 'must be above 0; use "10mbit", for example'),
        (units.parse_rate, 0, "must be above 0"),
        (units.parse_bytes, "2PB", 'use "2000TB"'),
        (units.parse_bytes, "1EiB", 'use "1048576TiB"'),
        (units.parse_rate, "10MB/s", '"80mbit"'),
        (units.parse_rate, "10", 'has no unit; use "10mbit"'),
        (units.parse_rate, 10, 'has no unit; use "10mbit"'),
        (units.parse_rate, "99999", 'has no unit; use "99999mbit"'),
        (units.parse_rate, "1e7", 'has no unit; use "10000000bit"'),
        (units.parse_rate, ".5mbit", 'no digit before the point; use "0.5mbit"'),
        (units.parse_rate, "10kibit", '"10kbit"'),
        (units.parse_rate, "-5mbit", 'is negative; use "5mbit"'),
        (units.parse_rate, "0bit", "must be above 0"),
        (units.parse_rate, "1e30gbit", "too large"),
        (units.parse_rate, "inf", "remove this key"),
        (units.parse_rate, None, '"10mbit"'),
        (units.parse_duration, 50, 'has no unit; use "50ms"'),
        (units.parse_duration, 0.05, 'has no unit; use "0.05s"'),
        (units.parse_duration, ".1s", 'no digit before the point; use "0.1s"'),
        (units.parse_duration, ".1", 'use "0.1s"'),
        (units.parse_duration, np.float64(3), 'use "3ms"'),
        (units.parse_duration, "5m", '"5min" for minutes or "5ms" for milliseconds'),
        (units.parse_duration, "50msec", 'use "50ms"'),
        (units.parse_duration, "50MS", 'use "50ms"'),
        (units.parse_duration, "2 hours", 'use "2h"'),
        (units.parse_duration, "1m30s", "one number and one unit"),
        (units.parse_duration, "10mbit", 'use "10ms"'),
        (units.parse_duration, "-1s", "negative"),
        (units.parse_duration, "1e200h", "too large"),
        (units.parse_duration, "1e9999s", "is not a time"),
        (units.parse_duration, float("nan"), "is not a time"),
        (units.parse_duration, True, "true is not a time"),
        (units.parse_duration, [1], "is not a time"),
        (units.parse_bytes, 1500, 'use "1500B"'),
        (units.parse_bytes, "1500b", 'use "1500B"'),
        (units.parse_bytes, "64kb", 'use "64KB"'),
        (units.parse_bytes, "1.5B", "whole"),
        (units.parse_bytes, "3pkt", '"3B"'),
        (units.parse_packets, "12 packets", 'use "12pkt"'),
        (units.parse_packets, "18KB", "packet size"),
        (units.parse_packets, -1, "use 1"),
        (units.parse_packets, 10**100, "too large"),
        pytest.param(units.parse_packets, 10**5000, "too large", id="5000 digits"),
        (units.parse_ratio, 2, 'use "2%"'),
        (units.parse_ratio, "150%", "too large"),
        (units.parse_ratio, ".1%", 'no digit before the point; use "0.1%"'),
        (units.parse_ratio, ".001", 'no digit before the point; use "0.001"'),
        (read_buffer, "1e2", 'has no unit; use "100pkt"'),
        (read_buffer, "1_000", 'has no unit; use "1000pkt"'),
        (read_buffer, ".5bdp", 'no digit before the point; use "0.5bdp"'),
        (units.parse_ratio, "1 percent", '"1%"'),
        (units.parse_per_second, "20", 'use "20/s"'),
        (units.parse_per_second, 20, 'use "20/s"'),
        (units.parse_per_second, "0/s", "must be above 0"),
        (units.parse_per_second, "20/fortnight", 'use "20/s"'),
    ],
)
def test_parsers_reject_invalid_text_with_a_remedy(
    read: Callable[[object], float], typed: object, remedy: str
) -> None:
    with pytest.raises(UnitError) as caught:
        read(typed)
    assert remedy in str(caught.value)
    assert "; " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "remedy"),
    [
        ("3", "without quotes"),
        ("1.5", "not a whole number"),
        ("9" * 20, "too large"),
        (0, "use at least 1"),
        (-3, "use at least 1"),
        (1.5, "use 1"),
        (1e9, "use at most 1000"),
        (True, "use 134, for example"),
        (float("inf"), "use 134, for example"),
        (float("nan"), "use 134, for example"),
        pytest.param(10**5000, "too large", id="5000 digits"),
    ],
)
def test_parse_count_rejects_invalid_values_with_a_remedy(typed: object, remedy: str) -> None:
    with pytest.raises(UnitError, match=r"use |must be ") as caught:
        units.parse_count(typed, minimum=1, maximum=1000)
    assert remedy in str(caught.value)


def test_messages_shorten_long_values() -> None:
    with pytest.raises(UnitError) as caught:
        units.parse_rate("x" * 10_000)
    assert len(str(caught.value)) < 200


@given(st.floats(min_value=1, max_value=1e13))
def test_formatted_rate_reads_back(rate_bps: float) -> None:
    assert units.parse_rate(units.format_rate(rate_bps)) == rate_bps


@given(st.floats(min_value=0, max_value=1e8))
def test_formatted_time_reads_back(seconds: float) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@given(st.floats(min_value=0, max_value=1e12))
def test_formatted_packets_read_back(packets: float) -> None:
    assert units.parse_packets(units.format_packets(packets)) == packets


@given(st.floats(min_value=0, max_value=1))
def test_formatted_ratio_reads_back(ratio: float) -> None:
    assert units.parse_ratio(units.format_ratio(ratio)) == ratio


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (units.format_rate(1.5e6), "1.5mbit"),
        (units.format_rate(128e3), "128kbit"),
        (units.format_rate(math.inf), "unlimited"),
        (units.format_duration(0.05), "50ms"),
        (units.format_duration(64.0), "64s"),
        (units.format_duration(150e-6), "150us"),
        (units.format_duration(1e-12), "0.001ns"),
        (units.format_ratio(3e-108), "3E-106%"),
        (units.format_ratio(0.01), "1%"),
        (units.format_ratio(0.0), "0%"),
        (units.format_packets(12.0), "12pkt"),
        (units.format_bytes(1500), "1500B"),
    ],
)
def test_format_functions_choose_common_units(written: str, expected: str) -> None:
    assert written == expected


@given(st.text(max_size=40))
def test_parsers_raise_only_unit_errors_for_any_text(text: str) -> None:
    readers: tuple[Callable[[object], float], ...] = (
        units.parse_rate,
        units.parse_duration,
        units.parse_bytes,
        units.parse_packets,
        units.parse_ratio,
        units.parse_per_second,
    )
    for read in readers:
        try:
            number = read(text)
        except TcpcastError as error:
            assert "; " in str(error)  # noqa: PT017 - refusing is fine, but with a remedy
        else:
            assert number >= 0


@pytest.mark.parametrize(
    ("value", "min_digits", "text"),
    [
        (2_000_000, 6, "2,000,000"),
        (1e6, 5, "1,000,000"),
        (999_999.6, 6, "1,000,000"),
        (9999.7, 4, "10,000"),
        (1234.5, 4, "1,234"),
        (12.3456, 4, "12.35"),
        (-2e6, 4, "-2,000,000"),
        (1e14, 4, "100,000,000,000,000"),
        (6.797e20, 4, "6.797e+20"),
        (0.0, 4, "0"),
        (math.inf, 4, "inf"),
    ],
)
def test_digits_avoids_exponents(value: float, min_digits: int, text: str) -> None:
    assert units.digits(value, min_digits) == text
