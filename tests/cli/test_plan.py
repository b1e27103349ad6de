"""`tcpcast plan`: printed reports and exit codes."""

from __future__ import annotations

import functools
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast import plan as planning
from tcpcast.answer import Metric
from tcpcast.cli import main
from tcpcast.plan import Plan
from tcpcast.plan.search import SearchResult
from tcpcast.report.json import encode
from tcpcast.report.plan import columns_table, plan_parts
from tcpcast.report.plan_figures import plan_figure
from tcpcast.report.text import plain_text as as_text

from cli.made_up import simulated

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.scenario import Scenario

    Capture = pytest.CaptureFixture[str]

QUALITY = ["users", "local-loop", "--share", "95%", "--above", "200kbit"]

MADE_UP = """\
web-10mbit: 134 on/off sources, RTT 50 ms, bottleneck 10 Mbit/s, buffer 150
packets, rfc-newreno

The smallest buffer for a loss of 1% is 114 packets, by the model.
  by the model      114 packets
  by simulation     57 packets (the model +100 %)

Buffers by different rules
             buffer  delay
 rule         (pkt)   (ms)
───────────────────────────
 this paper     114  136.8
 600 ms         500      –

Simulated values
           loss
 buffer   ratio
  (pkt)     (%)  95 %
───────────────────────────
     57  0.9000  0.80–1.10
    114  0.0200

   As the paper has it.
 ! the loss is small"""


USERS = """\
web-10mbit: 134 on/off sources, RTT 50 ms, bottleneck 10 Mbit/s, buffer 150
packets, rfc-newreno

The largest population with 95 % of files above 200kbit is 120 sources, between
115 and 126, by engine packet.
  by packet         120 sources, between 115 and 126
  by simulation     118 sources (packet +1.7 %)

File goodput by the number of sources
                share         g   mean   loss  timeout
          load  above        95    RTT  ratio    ratio
 sources   (%)    (%)  (kbit/s)    (s)    (%)      (%)
───────────────────────────────────────────────────────
      60    50     99       450  0.100  0.000   0.0000
     120   100     95       200  1.000  0.500   0.1000
     240   200      0        10      –  5.000   0.2000

 ! the run is short"""


def made_up_plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "question": "smallest buffer for a loss of 1%",
        "value": 114.0,
        "unit": "packet",
        "tables": {
            "simulated": {
                "buffer_pkts": np.array([57, 114]),
                "loss_ratio": np.array([0.009, 0.0002]),
                "low": np.array([0.008, np.nan]),
                "high": np.array([0.011, np.nan]),
            },
            "rules": {
                "rule": np.array(["this paper", "600 ms"]),
                "buffer_pkts": np.array([114.0, 500.0]),
                "delay_s": np.array([0.1368, np.nan]),
            },
        },
        "headings": {
            "rules": "Buffers by different rules",
            "curve": "",
            "simulated": "Simulated values",
        },
        "notes": ["As the paper has it."],
        "warnings": ["the loss is small"],
        "simulated": 57.0,
        "verified": [simulated()],
    }
    return Plan(**{**given, **changes})


def test_plan_report_text() -> None:
    report = plan_parts(made_up_plan(), tcpcast.load("web-10mbit"))
    assert as_text(report, 80) == MADE_UP


def test_table_without_heading_is_printed_with_its_name() -> None:
    tables = {"curve": {"buffer_pkts": np.array([3])}, "further": {"buffer_pkts": np.array([4])}}
    report = plan_parts(made_up_plan(tables=tables), tcpcast.load("web-10mbit"))
    lines = as_text(report).splitlines()
    assert "further" in lines
    assert "curve" not in lines


def test_infinite_values_become_null_in_json() -> None:
    table = {"buffer_pkts": np.array([3.0, np.inf])}
    plan = made_up_plan(tables={"rules": table}, value=math.inf, high=math.inf, simulated=None)
    body = json.loads(encode(plan.to_json()))
    assert body["tables"]["rules"]["columns"]["buffer_pkts"] == [3.0, None]
    assert body["value"] is body["high"] is body["leading"]["value"] is None


def users_plan() -> Plan:
    return Plan(
        question="largest population with 95 % of files above 200kbit",
        value=120,
        low=115,
        high=126,
        unit="sources",
        engine="packet",
        simulated=118.0,
        tables={
            "curve": {
                "sources": np.array([60, 120, 240]),
                "load": np.array([0.5, 1.0, 2.0]),
                "share_above": np.array([0.99, 0.95, 0.0]),
                "g_95_bps": np.array([450e3, 200e3, 10e3]),
                "rtt_mean_s": np.array([0.1, 1.0, np.nan]),
                "loss_ratio": np.array([0.0, 0.005, 0.05]),
                "timeout_ratio": np.array([0.0, 0.001, 0.002]),
            }
        },
        headings={"curve": "File goodput by the number of sources"},
        warnings=["the run is short"],
    )


def test_users_report_text_with_share() -> None:
    assert as_text(plan_parts(users_plan(), tcpcast.load("web-10mbit")), 80) == USERS


def test_users_with_share_options_and_figure(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    requested: dict[str, Any] = {}

    @functools.wraps(planning.plan_quality)
    def plan_quality(scenario: Scenario, **keywords: Any) -> Plan:
        requested.update(keywords, users=scenario.senders)
        plan = users_plan()
        plan.tables["curve"]["mean_bps"] = np.array([5e5, 3e5, 2e4])
        return plan

    monkeypatch.setattr(planning, "plan_quality", plan_quality)
    arguments = ["plan", "users", "web-10mbit", "--share", "95%", "--above", "200kbit"]
    folder = tmp_path / "new"
    assert main([*arguments, "--engine", "packet", "--plot", str(folder)]) == 0
    options = requested.pop("options")
    assert options.threads is None
    assert requested == {
        "share": 0.95,
        "above_bps": 2e5,
        "engine": "packet",
        "users": 134,
    }
    out, err = capsys.readouterr()
    assert "between 115 and 126" in out
    assert f"wrote {folder / 'users.png'}" in err
    assert (folder / "users.png").read_bytes().startswith(b"\x89PNG")
    assert main([*arguments, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["value"], plan["low"], plan["high"]) == (120, 115, 126)
    assert plan["engine"] == "packet"


def test_users_figure_has_five_panels() -> None:
    pytest.importorskip("matplotlib")
    plan = users_plan()
    curve = plan.tables["curve"]
    curve["mean_bps"] = np.array([5e5, 3e5, 2e4])
    drawn = [plan_figure(plan, tcpcast.load("web-10mbit"))]
    panels = drawn[0].axes[:5]
    lines = [panel.get_lines()[-1] for panel in panels]
    for name, scale, line in zip(
        ("loss_ratio", "timeout_ratio", "rtt_mean_s", "mean_bps", "g_95_bps"),
        (0.01, 0.01, 1e-3, 1e3, 1e3),
        lines,
        strict=True,
    ):
        assert line.get_xdata() == pytest.approx([60, 120, 240])
        assert line.get_ydata() == pytest.approx(curve[name] / scale, nan_ok=True)
    curve["sources"] *= 10_000
    drawn.append(plan_figure(plan, tcpcast.load("web-10mbit")))
    for figure, label, texts in zip(
        drawn, ("users", "users (millions)"), ({"100", "200"}, {"1", "2"}), strict=True
    ):
        figure.draw_without_rendering()
        assert figure.axes[4].get_xlabel() == label
        assert texts <= {tick.get_text() for tick in figure.axes[4].get_xticklabels()}


def test_undecided_plan_exits_1_without_answer(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = users_plan()
    plan.low, plan.high, plan.undecided, plan.simulated = 20, 190, True, None
    monkeypatch.setattr(planning, "plan_quality", lambda *_, **__: plan)
    assert main(["plan", *QUALITY]) == 1
    out, _ = capsys.readouterr()
    assert "by packet         undecided, between 20 and 190 sources" in out
    assert main(["plan", *QUALITY, "--json"]) == 1
    body = json.loads(capsys.readouterr().out)["plan"]
    assert (body["value"], body["low"], body["high"]) == (None, 20, 190)
    assert body["undecided"] is True
    assert body["leading"] is None
    plan.set_simulated_answer(SearchResult(118, 116, 121, metric=Metric(0.01)), "loss_ratio")
    assert main(["plan", *QUALITY, "--verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (first,) = (index for index, line in enumerate(lines) if "by simulation" in line)
    assert "118 sources, between 116 and 121" in lines[first]
    assert "undecided" in lines[first + 2]


def test_requested_transfers_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[int | None] = []

    @functools.wraps(planning.plan_buffer)
    def plan_buffer(scenario: object, **keywords: Any) -> Plan:  # noqa: ARG001 - same signature
        requested.append(keywords.get("transfers"))
        return made_up_plan()

    monkeypatch.setattr(planning, "plan_buffer", plan_buffer)
    assert main(["plan", "buffer", "web-10mbit"]) == 0
    assert main(["plan", "buffer", "web-10mbit", "--set", "run.transfers=90000"]) == 0
    assert requested == [None, 90_000]


def test_wide_tables_continue_below_with_first_column() -> None:
    columns = {"sources": np.array([7, 1234])} | {
        f"loss_{name}_pkts": np.array([1.25, 100.0]) for name in ("here", "there", "somewhere")
    }
    text = as_text([columns_table(columns)], 30)
    assert max(map(len, text.splitlines())) <= 30
    assert text.count("1,234") == 2
    assert text.count("100.0") == 3
    assert as_text([columns_table(columns)], 60).count("1,234") == 1


@pytest.mark.parametrize(
    ("arguments", "title", "unit"),
    [
        (
            ["buffer", "web-10mbit", "--loss", "0.5%"],
            "The smallest buffer for a loss of 0.5% is ",
            "packet",
        ),
        (["users", "web-10mbit", "--rate", "200kbit"], "The largest population with ", "sources"),
        (["rate", "web-10mbit", "--rate", "400kbit"], "The bottleneck rate for ", "bit/s"),
    ],
)
def test_each_plan_question_is_answered_by_model(
    arguments: list[str], title: str, unit: str, capsys: Capture
) -> None:
    assert main(["plan", *arguments]) == 0
    out, err = capsys.readouterr()
    assert title in out
    assert "by the model" in out
    assert "by simulation" not in out
    assert err == ""
    assert main(["plan", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert set(document) == {"scenario", "verdict", "plan"}
    assert document["verdict"].startswith(title)
    assert document["plan"]["unit"] == unit
    assert document["plan"]["value"] > 0
    assert len(err.splitlines()) == len(document["plan"]["warnings"])


@pytest.mark.parametrize(
    ("changes", "code"),
    [({}, 0), ({"simulated": None}, 1), ({"simulated": None, "interrupted": True}, 130)],
)
def test_verification_exit_codes(
    changes: dict[str, Any], code: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: dict[str, Any] = {}

    @functools.wraps(planning.plan_buffer)
    def plan_buffer(scenario: object, **keywords: Any) -> Plan:  # noqa: ARG001 - same signature
        requested.update(keywords)
        return made_up_plan(**changes)

    monkeypatch.setattr(planning, "plan_buffer", plan_buffer)
    arguments = ["plan", "buffer", "web-10mbit", "--loss", "2%", "--verify", "--threads", "2"]
    assert main(arguments) == code
    assert requested["loss"] == pytest.approx(0.02)
    assert requested["verify"]
    assert requested["options"].threads == 2
    assert "114 packets" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == code
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["tables"]["rules"]["columns"]["delay_s"] == [0.1368, None]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["users", "web-10mbit", "--rate", "10mbps"], ["--rate", "10mbit"]),
        (["rate", "web-10mbit"], ["--rate"]),
        (["users", "web-10mbit"], ["--share and --above", "--rate 200kbit"]),
        (["users", "web-10mbit", "--share", "95%"], ["--above: missing", "--above 500kbit"]),
        (["users", "web-10mbit", "--above", "1mbit"], ["--share: missing", "--share 95%"]),
        (
            ["users", "web-10mbit", "--rate", "1mbit", "--share", "95%"],
            ["--rate: is a target by itself; omit --share and --above"],
        ),
        (
            ["users", "web-10mbit", "--rate", "1mbit", "--engine", "packet"],
            ["--engine: is only for a target with --share and --above; omit it"],
        ),
        (
            ["users", "web-10mbit", "--share", "95", "--above", "1mbit"],
            ["--share", "write"],
        ),
        (
            ["users", "web-10mbit", "--share", "95%", "--above", "1mbit", "--engine", "engset"],
            ["'engset'", "packet"],
        ),
        (["users", "lossy-path", "--share", "95%", "--above", "1mbit"], ["on-off"]),
        (["buffer", "web-10mbit", "--loss", "much"], ["--loss", "1%"]),
        (["buffer", "web-10mbit", "--loss", "0%"], ["loss"]),
        (["users", "web-10mbit", "--rate", "10gbit"], ["rate"]),
        (["buffer", "lossy-path"], ["which no buffer reduces"]),
        (["buffers"], ["plan buffers", "buffer"]),
        (["buffer", "web-10mbit", "--set", "traffic.sauces=2"], ["traffic.sauces", "sources"]),
        (
            [*QUALITY, "--set", "probes.goodput_least=3pkt"],
            ["probes.goodput_least", "complete files of all sizes"],
        ),
        ([*QUALITY, "--set", "probes={goodput_packets=3}"], ["probes.goodput_packets"]),
        ([*QUALITY, "--set", "probes.goodput_shares=['50%']"], ["goodput_shares", "--share"]),
        ([*QUALITY, "--set", "traffic.sources=3"], ["traffic.sources", "the plan solves for"]),
        ([*QUALITY, "--set", "run.replications=2"], ["run.replications", "4 or more"]),
        (
            ["users", "web-10mbit", "--rate", "1mbit", "--set", "class=[{name='a',sources=3}]"],
            ["class.0.sources"],
        ),
        (
            ["buffer", "web-10mbit", "--set", "network.bottleneck.buffer=9pkt"],
            ["the plan solves for"],
        ),
        (
            ["rate", "web-10mbit", "--rate", "1mbit", "--set", "network.bottleneck.rate=9mbit"],
            ["network.bottleneck.rate", "--rate"],
        ),
    ],
)
def test_bad_input_exits_2_with_option_name(
    arguments: list[str], words: list[str], capsys: Capture
) -> None:
    assert main(["plan", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err


def test_table_texts_wrap_in_narrow_terminals() -> None:
    rules = np.array(["a rule of so many words that they do not fit", "short"])
    table = columns_table({"rule": rules, "buffer_pkts": np.array([12.0, 3.0])})
    assert as_text([table], 36) == (
        "                          buffer\n"
        " rule                      (pkt)\n"
        "─────────────────────────────────\n"
        " a rule of so many words      12\n"
        " that they do not fit\n"
        " short                         3"
    )


def test_plan_writes_html_and_markdown_reports(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    requested = ["plan", "streams", "--rate", "1gbit", "--rtt", "100ms", "--loss", "0.01%"]
    assert main(requested) == 0
    shown = capsys.readouterr().out
    reports = ["--out", "a.html", "--out", "a.md"]
    assert main([*requested, *reports]) == 0
    assert capsys.readouterr().out == shown
    page, words = (tmp_path / "a.html").read_text(), (tmp_path / "a.md").read_text()
    assert page.count("<svg") == 1
    for text in (page, words):
        assert "45 flows" in text
        assert "Rates by the number of flows" in text
        assert (
            "tcpcast plan streams --rate 1gbit --rtt 100ms --loss 0.01% --out a.html --out a.md"
            in text
        )
    assert "receiver_window" in words
    (tmp_path / "a.md").write_text("mine")
    assert main(["plan", "buffer", "web-10mbit", "--out", "a.md"]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["plan", "buffer", "web-10mbit", "--out", "b.md", "--set", "run.seed=3"]) == 0
    command_line = "tcpcast plan buffer web-10mbit --set run.seed=3 --out b.md"
    assert command_line in (tmp_path / "b.md").read_text()
