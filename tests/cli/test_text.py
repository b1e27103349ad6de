"""The table that people read: to the letter, at several widths, with and without colour."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
import tcpcast
from tcpcast.answer import Answer, Status, texts_to_notes
from tcpcast.compare import compare_all
from tcpcast.report import text
from tcpcast.report.run import run_parts

from cli.made_up import calculated, simulated, with_classes

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario


def plain(answers: list[Answer], width: int, scenario: Scenario | None = None) -> str:
    return text.text(run_parts(compare_all(answers), scenario), width)


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
 † outside the domain of engset: shown but not compared
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


def test_wide_report_to_the_letter(pair: list[Answer]) -> None:
    assert plain(pair, 80) == WIDE


def test_narrow_report_lists_engines_under_each_metric(pair: list[Answer]) -> None:
    found = plain(pair, 60)
    assert found.startswith(NARROW)
    assert "48.70†" in found
    assert "208.3†" in found


@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(
    width: int, pair: list[Answer]
) -> None:
    found = plain(pair, width)
    assert max(len(line) for line in found.splitlines()) <= width
    for figure in ("154.9", "158.2", "± 1.3", "4.590–4.772", "200,000", "-2.1 %", "+0.9 pp"):
        assert figure in found, figure
    assert "…" not in found


def test_a_list_with_long_names_fits_too(pair: list[Answer]) -> None:
    pair[0].engine = "a-model-of-flows"
    found = plain(pair, 40)
    assert max(len(line) for line in found.splitlines()) <= 40
    assert "  a-model-of-flows  154.9         -2.1 %" in found
    assert "  packet            158.2  ± 1.3\n" in found


def test_a_scenario_is_summed_up_above_the_table(pair: list[Answer]) -> None:
    first = plain(pair, 120, tcpcast.load("web-10mbit")).splitlines()[0]
    assert first == (
        "web-10mbit: 134 on/off sources, RTT 50 ms, bottleneck 10 Mbit/s, "
        "buffer 150 packets, rfc-newreno"
    )
    first = plain(pair, 120, tcpcast.load("lossy-path")).splitlines()[0]
    assert first == (
        "lossy-path: 10 bulk flows, RTT 60 ms, bottleneck 1 Gbit/s, "
        "buffer 10,000 packets, random loss 1 %, rfc-newreno"
    )
    small = tcpcast.load("web-10mbit", changes={"network.bottleneck.buffer": "1pkt"})
    assert "buffer 1 packet, " in plain(pair, 120, small).splitlines()[0]


@pytest.mark.parametrize("width", range(40, 100))
def test_a_number_stays_with_its_unit(pair: list[Answer], width: int) -> None:
    assert not any(
        line.lstrip().startswith("%")
        for line in plain(pair, width, tcpcast.load("lossy-path")).splitlines()
    )


def test_classes_have_tables_of_their_own() -> None:
    found = plain([calculated(), with_classes(simulated())], 80)
    near, far = found.index("class near"), found.index("class far")
    assert "200.0" in found[near:far]
    assert "100.0" in found[far:]


def test_what_does_not_apply_and_what_is_partial_is_said() -> None:
    stopped = simulated()
    stopped.stop("stopped after 3 of 10 replications")
    refused = Answer("pftk", status=Status.NOT_APPLICABLE, reason="it needs bulk flows")
    found = plain([refused, stopped], 100)
    assert "pftk does not apply: it needs bulk flows" in found
    assert "packet: stopped after 3 of 10 replications" in found
    stopped.notes = texts_to_notes(["stopped after 3 of 10 replications"])
    assert plain([stopped], 100).count("3 of 10 replications") == 1


def test_untrusted_figures_are_dimmed_where_there_are_colours(pair: list[Answer]) -> None:
    lines = text.laid_out(run_parts(compare_all(pair)), 100)
    assert any("\x1b[2m48.70†\x1b[0m" in line.styled for line in lines)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_color_takes_away_every_escape(
    monkeypatch: pytest.MonkeyPatch, pair: list[Answer]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for no_color, escapes in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_color)
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        text.print_parts(run_parts(compare_all(pair)))
        assert ("\x1b" in screen.getvalue()) is escapes


def test_markup_in_a_warning_is_printed_as_it_stands() -> None:
    answer = simulated()
    answer.notes = texts_to_notes(["see [red]x[/red] :smile: [[class]]"])
    assert "see [red]x[/red] :smile: [[class]]" in plain([answer], 100)
