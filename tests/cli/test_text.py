"""The text report: exact text, several terminal widths, with and without colour."""

import pytest
import tcpcast
from tcpcast.answer import Answer, Status, texts_to_notes
from tcpcast.comparison.compare import compare_all
from tcpcast.report import text
from tcpcast.report.run import run_parts
from tcpcast.scenario import Scenario

from cli.made_up import calculated, simulated, with_classes


def report_text(answers: list[Answer], width: int, scenario: Scenario | None = None) -> str:
    return text.plain_text(run_parts(compare_all(answers), scenario), width)


WIDE = """\
                                                           engset
                  unit    engset   packet  95 %         vs packet
──────────────────────────────────────────────────────────────────
 connection rate  kbit/s   154.9    158.2  ± 1.3           -2.1 %
 ON time          ms       929.6      917  ± 12            +1.3 %
 offered load     %        163.5        –
 utilisation      %        99.99   99.120  ± 0.030        +0.9 pp
 loss ratio       %       48.70†    4.664  4.590–4.772
 mean queue       pkt     208.3†    102.3  ± 1.2
 max queue        pkt          –      150
 T0               s            –        –
 Jain index                    1    0.981  ± 0.010         +1.9 %
 transfers                     –  200,000

   vs packet: difference relative to packet; pp: percentage points
 † engset: outside the model's domain; the values are shown but not compared
 ! engset: loss is above 1 %
 ! packet: only 3 timeouts were seen
   engset in 0 s; packet in 1.9 s, seed 1"""

NARROW = """\
connection rate (kbit/s)
  engset    154.9                -2.1 %
  packet    158.2  ± 1.3
ON time (ms)
  engset    929.6                +1.3 %
  packet      917  ± 12
offered load (%)
  engset    163.5
utilisation (%)
  engset    99.99               +0.9 pp
  packet   99.120  ± 0.030"""


def test_wide_report_equals_expected_text(pair: list[Answer]) -> None:
    assert report_text(pair, 80) == WIDE


def test_narrow_report_lists_engines_under_each_metric(pair: list[Answer]) -> None:
    printed = report_text(pair, 60)
    assert printed.startswith(NARROW)
    assert "48.70†" in printed
    assert "208.3†" in printed


@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
def test_lines_fit_terminal_and_numbers_are_complete(width: int, pair: list[Answer]) -> None:
    printed = report_text(pair, width)
    assert max(len(line) for line in printed.splitlines()) <= width
    for number in ("154.9", "158.2", "± 1.3", "4.590–4.772", "200,000", "-2.1 %", "+0.9 pp"):
        assert number in printed, number
    assert "…" not in printed


def test_report_begins_with_scenario_summary(pair: list[Answer]) -> None:
    first = report_text(pair, 120, tcpcast.load("web-10mbit")).splitlines()[0]
    assert first == (
        "web-10mbit: 134 on/off sources, RTT 50 ms, bottleneck 10 Mbit/s, "
        "buffer 150 packets, rfc-newreno"
    )
    first = report_text(pair, 120, tcpcast.load("lossy-path")).splitlines()[0]
    assert first == (
        "lossy-path: 10 bulk flows, RTT 60 ms, bottleneck 1 Gbit/s, "
        "buffer 10,000 packets, random loss 1 %, rfc-newreno"
    )
    small = tcpcast.load("web-10mbit", changes={"network.bottleneck.buffer": "1pkt"})
    assert "buffer 1 packet, " in report_text(pair, 120, small).splitlines()[0]


@pytest.mark.parametrize("width", range(40, 100))
def test_line_break_does_not_separate_number_and_unit(pair: list[Answer], width: int) -> None:
    assert not any(
        line.lstrip().startswith("%")
        for line in report_text(pair, width, tcpcast.load("lossy-path")).splitlines()
    )


def test_report_has_table_per_class() -> None:
    printed = report_text([calculated(), with_classes(simulated())], 80)
    near, far = printed.index("class near"), printed.index("class far")
    assert "200.0" in printed[near:far]
    assert "100.0" in printed[far:]


def test_report_lists_inapplicable_and_incomplete_answers() -> None:
    stopped = simulated()
    stopped.mark_incomplete("stopped after 3 of 10 replications")
    refused = Answer("pftk", status=Status.NOT_APPLICABLE, reason="it needs bulk flows")
    printed = report_text([refused, stopped], 100)
    assert "pftk does not apply: it needs bulk flows" in printed
    assert "packet: stopped after 3 of 10 replications" in printed
    stopped.notes = texts_to_notes(["stopped after 3 of 10 replications"])
    assert report_text([stopped], 100).count("3 of 10 replications") == 1


def test_untrusted_values_are_dimmed_on_colour_terminals(pair: list[Answer]) -> None:
    lines = text.layout_lines(run_parts(compare_all(pair)), 100)
    assert any("\x1b[2m48.70†\x1b[0m" in line.styled for line in lines)


def test_markup_in_warning_is_printed_unchanged() -> None:
    answer = simulated()
    answer.notes = texts_to_notes(["see [red]x[/red] :smile: [[class]]"])
    assert "see [red]x[/red] :smile: [[class]]" in report_text([answer], 100)
