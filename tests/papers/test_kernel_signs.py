"""The sign test of the comparison with the kernel: groups, probabilities, rows of the report."""

import itertools
import math

import pytest
from scipy.stats import binomtest
from tcpcast.answer import Metric
from tcpcast_papers.kernel import cells, sections, signs
from tcpcast_papers.kernel.cells import Cell, FlowGroup, Measured
from tcpcast_papers.kernel.comparison import Comparison
from tcpcast_papers.kernel.signs import SignTest

GROUPS = 20


def line(
    difference: float, *, waiting: int = 10, stack: str = "linux-reno", name: str = "goodput_bps"
) -> Comparison:
    """Return a value with this difference from the kernel's 100, in tolerances of 10."""
    kernel = Measured(100.0, 1.0, 4)
    cell = Cell(
        "F6",
        "any",
        cells.DROP_TAIL,
        (FlowGroup(stack, 60.0),),
        20e6,
        waiting_pkts=waiting,
        measured={name: kernel},
    )
    own = Metric(100.0 + difference)
    return Comparison(cell, name, kernel, own, 10.0, 12.0)


def test_probabilities_equal_two_sided_sign_test() -> None:
    for above, below in itertools.product(range(12), repeat=2):
        if above + below == 0:
            continue
        result = SignTest(("group",), above, below, GROUPS)
        expected = binomtest(above, above + below).pvalue
        assert result.probability == pytest.approx(expected), (above, below)
        assert result.corrected_probability == pytest.approx(min(1.0, GROUPS * expected))


def test_group_is_one_sided_if_corrected_probability_is_small() -> None:
    for differing in range(1, 40):
        for above in range(differing + 1):
            result = SignTest(("group",), above, differing - above, GROUPS)
            reached = abs(result.share - 0.5) <= result.max_deviation + 1e-12
            assert reached == (result.corrected_probability >= signs.SIGNIFICANCE), (
                above,
                differing,
            )


def test_small_differences_are_ignored_and_groups_are_sorted() -> None:
    lines = [
        *(line(difference) for difference in (0.9, -0.9, 1.1, -1.1, 2.0, 3.0, -3.0)),
        *(line(5.0, stack="linux-bbr") for _ in range(6)),
        Comparison(line(5.0).cell, "goodput_bps", Measured(100.0, 1.0, 4), None, 10.0, None),
    ]
    bbr, reno = signs.sign_tests(lines)
    assert (bbr.above, bbr.below, bbr.groups) == (6, 0, 2)
    assert (reno.above, reno.below) == (3, 2)


def test_small_groups_do_not_affect_the_correction() -> None:
    small = [line(5.0, stack=f"stack {index}") for index in range(50)]
    (tested,) = signs.sign_tests([*small, *(line(5.0) for _ in range(7))])
    assert (tested.above, tested.groups) == (7, 1)
    assert tested.corrected_probability < signs.SIGNIFICANCE


def test_buffers_below_one_bdp_are_a_separate_group() -> None:
    # 20 Mbit/s times 60 ms are 100 packets, and one more is in transmission.
    lines = [
        line(5.0, waiting=waiting) for waiting in (98, 99) for _ in range(signs.MIN_DIFFERENCES)
    ]
    assert {group_signs.group[-1] for group_signs in signs.sign_tests(lines)} == {
        "below 1 BDP",
        "1 BDP or more",
    }


def test_report_shows_corrected_and_uncorrected_probability() -> None:
    note = sections.sign_test_row(SignTest(("group",), 7, 0, GROUPS)).note
    assert note == "7 above, 0 below, p = 0.016, corrected for 20 groups 0.31"
    assert math.isclose(SignTest(("group",), 7, 0, GROUPS).probability, 2 / 2**7)
