"""`tcpcast plan`: printed reports, figures, exit codes and errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import plan as planning
from tcpcast.answer import Metric
from tcpcast.cli import main
from tcpcast.plan import Plan
from tcpcast.process.errors import NotApplicable
from tcpcast.report.plan import columns_table, plan_parts
from tcpcast.report.plan_figures import plan_figure
from tcpcast.report.text import plain_text as as_text
from tcpcast.scenario import Scenario

from cli.made_up import simulated

Capture = pytest.CaptureFixture[str]

MADE_UP = """\
web-10mbit: 134 on/off sources, RTT 50 ms, bottleneck 10 Mbit/s, buffer 150
packets, rfc-newreno

The smallest buffer for a loss of 1 % is 114 packets (110 to 120).
The loss ratio is then 0.99 % (0.95 to 1.03), from a fit to 7 runs.

A buffer of 171 kB.

Rules of thumb
         buffer  delay
 rule     (pkt)   (ms)
───────────────────────
 600 ms     500    600

Values by packet
          loss
 buffer  ratio           utilisation
  (pkt)    (%)  95 %             (%)
─────────────────────────────────────
     57  2.000  ± 0.10            99
    114  0.990  ± 0.040            –

   As the paper has it.
 ! the loss is small"""


def made_up_plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "question": "smallest buffer for a loss of 1 %",
        "value": 114,
        "low": 110,
        "high": 120,
        "unit": "packet",
        "metric": "loss_ratio",
        "target": 0.01,
        "metric_at_value": Metric(0.0099, 0.0095, 0.0103),
        "fit_runs": 7,
        "bracket": (57, 114),
        "column": "buffer_pkts",
        "axis": "buffer (packets)",
        "tables": {
            "values": {
                "buffer_pkts": np.array([57, 114]),
                "loss_ratio": np.array([0.02, 0.0099]),
                "low": np.array([0.019, 0.0095]),
                "high": np.array([0.021, 0.0103]),
                "utilisation": np.array([0.99, np.nan]),
            },
            "rules": {
                "rule": np.array(["600 ms"]),
                "buffer_pkts": np.array([500.0]),
                "delay_s": np.array([0.6]),
            },
        },
        "recommendation": "A buffer of 171 kB.",
        "notes": ["As the paper has it."],
        "warnings": ["the loss is small"],
        "runs": [simulated()],
    }
    return Plan(**{**given, **changes})


def test_plan_report_text() -> None:
    report = plan_parts(made_up_plan(), tcpcast.load("web-10mbit"))
    assert as_text(report, 80) == MADE_UP


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
    ("arguments", "verdict", "unit"),
    [
        (
            ["buffer", "web-10mbit", "--set", "traffic.sources=80"],
            "The smallest buffer for a loss of 1 % is 100 packets (by the formula engset).",
            "packet",
        ),
        (
            ["users", "web-10mbit", "--rate", "300kbit"],
            "The largest population with a mean rate of 300 kbit/s is 102 sources (by the formula",
            "sources",
        ),
        (
            ["rate", "web-10mbit", "--rate", "400kbit"],
            "The smallest link rate with a mean rate of 400 kbit/s is 14.3 Mbit/s (by the formula",
            "bit/s",
        ),
    ],
)
def test_formulas_answer_questions_about_users(
    arguments: list[str], verdict: str, unit: str, capsys: Capture
) -> None:
    assert main(["plan", *arguments, "--engine", "engset"]) == 0
    out, err = capsys.readouterr()
    shown = " ".join(out.split())
    assert verdict in shown
    assert err == ""
    assert main(["plan", *arguments, "--engine", "engset", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"scenario", "verdict", "findings", "plan"}
    assert document["verdict"].startswith(verdict)
    plan, (finding,) = document["plan"], document["findings"]
    assert plan["unit"] == unit
    assert finding["value"] == plan["value"] > 0
    assert finding["basis"] == plan["engine"] == "engset"


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        (
            ["streams", "--rate", "10mbit", "--rtt", "30ms", "--rwnd", "6KB"],
            "The smallest number of parallel flows that keep the link busy for 95 % of the time is "
            "7 flows.",
        ),
        (
            ["streams", "--rate", "10mbit", "--rtt", "30ms"],
            "is 1 flow; the search ends at this value, ",
        ),
        (
            ["max-loss", "--goodput", "5mbit", "--rtt", "30ms", "--set", "run.seed=7"],
            "The largest loss for a goodput of 5 Mbit/s is ",
        ),
    ],
)
def test_paths_of_options_are_simulated(
    arguments: list[str], verdict: str, capsys: Capture
) -> None:
    assert main(["plan", *arguments]) == 0
    assert verdict in " ".join(capsys.readouterr().out.split())
    assert main(["plan", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    scenario, value = document["scenario"], document["plan"]["value"]
    if arguments[0] == "streams":
        assert scenario["traffic"]["flows"] == value
    else:
        assert float(scenario["network"]["bottleneck"]["loss"][:-1]) == pytest.approx(100 * value)
        assert scenario["run"]["seed"] == 7


def test_max_loss_needs_no_loss_in_scenario(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "bare.toml"
    file.write_text(
        '[network]\nrtt = "80ms"\n[traffic]\nkind = "bulk"\nflows = 1\n[run]\nduration = "60s"\n'
    )
    words = ["plan", "max-loss", "--goodput", "5mbit", "--engine", "cubic-response", "--json"]
    assert main([*words, str(file)]) == 0
    value = json.loads(capsys.readouterr().out)["plan"]["value"]
    assert main([*words, "--rtt", "80ms"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["value"] == value


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({}, 0, "is 114 packets"),
        ({"value": None, "undecided": True}, 1, "lies between 110 and 120 packets"),
        ({"value": None, "incomplete": True}, 1, "lies between 57 and 114 packets; run.max_wall"),
        ({"value": None, "interrupted": True}, 130, "lies between 57 and 114 packets; interr"),
        (
            {"value": 1, "low": None, "high": None, "at_limit": True},
            0,
            "the search ends at this value",
        ),
        ({"value": None, "untrusted": "outside", "engine": "engset"}, 1, "gives no answer: outsi"),
    ],
)
def test_exit_code_and_verdict_agree(
    changes: dict[str, Any], code: int, text: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: dict[str, Any] = {}

    def solve(question: str, scenario: tcpcast.Scenario, **keywords: Any) -> Plan:
        requested.update(keywords, question=question, users=scenario.senders)
        return made_up_plan(**changes)

    monkeypatch.setattr(planning, "solve", solve, raising=False)
    arguments = ["plan", "buffer", "web-10mbit", "--loss", "2%", "--threads", "2"]
    assert main(arguments) == code
    assert requested.pop("options").threads == 2
    expected = {"question": "buffer", "users": 134, "loss": 0.02, "engine": "packet"}
    assert requested == expected
    assert text in " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "--json"]) == code
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["bracket"] == {"low": 57, "high": 114}
    assert plan["tables"]["values"]["columns"]["utilisation"] == [0.99, None]


def test_path_from_options_has_no_default_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []

    def solve(_: str, scenario: tcpcast.Scenario, **__: Any) -> Plan:
        limits.append(scenario.run.max_wall_s)
        return made_up_plan()

    monkeypatch.setattr(planning, "solve", solve, raising=False)
    streams = ["plan", "streams", "--rate", "10mbit", "--rtt", "30ms"]
    assert main(streams) == 0
    assert main([*streams, "--set", "run.max_wall=9s"]) == 0
    assert limits == [None, 9.0]


PATH = ["--rate", "100mbit", "--rtt", "200ms", "--loss", "0.1%"]


QUICK = ["plan", "streams", *PATH, "--engine", "cubic-response"]


def test_plan_writes_html_and_markdown_reports(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main(QUICK) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    assert main([*QUICK, "--out", "a.html", "--out", "a.md"]) == 0
    assert capsys.readouterr().out == shown
    page, words = (tmp_path / "a.html").read_text(), (tmp_path / "a.md").read_text()
    assert page.count("<svg") == 1
    for text in (page, words):
        assert "Values by cubic-response" in text
        assert "--engine cubic-response" in text
    assert "receiver_window" in words
    (tmp_path / "a.md").write_text("mine")
    assert main([*QUICK, "--out", "a.md"]) == 2
    assert "--force" in capsys.readouterr().err


def test_figure_has_stable_bytes(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "figures"
    assert main([*QUICK, "--plot", str(folder)]) == 0
    assert str(folder / "streams.png") in capsys.readouterr().err
    first = (folder / "streams.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert main([*QUICK, "--plot", str(folder)]) == 0
    assert (folder / "streams.png").read_bytes() == first
    (tmp_path / "file").write_text("not a folder")
    assert main([*QUICK, "--plot", str(tmp_path / "file")]) == 3
    assert "not a directory" in capsys.readouterr().err


def test_figure_shows_runs_target_and_answer() -> None:
    pytest.importorskip("matplotlib")
    web = tcpcast.load("web-10mbit")
    plan = made_up_plan()
    plan.runs[0].kind = "simulation"
    axes = plan_figure(plan, web).axes[0]
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    assert lines["target, 1 %"].get_ydata() == pytest.approx([1, 1])
    assert lines["answer"].get_xdata() == pytest.approx([114, 114])
    (points,) = (
        each
        for each in axes.get_lines()
        if np.size(each.get_xdata()) == 2
        and each not in {lines["target, 1 %"], lines["answer"]}
        and each.get_marker() == "o"
    )
    assert points.get_ydata() == pytest.approx([2, 0.99])
    assert axes.get_xlabel() == "buffer (packets)"
    assert axes.get_ylabel() == "loss ratio (%)"
    undecided = made_up_plan(value=None, undecided=True)
    labels = [str(line.get_label()) for line in plan_figure(undecided, web).axes[0].get_lines()]
    assert "answer" not in labels


SHAPED: dict[str, Any] = {
    "link": {
        "router": {
            "rate": "1gbit",
            "buffer": "unlimited",
            "queue": {"kind": "cake", "rate": "5mbit"},
        },
        "modem": {"rate": "10mbit", "buffer": "300KB"},
        "down": {"rate": "50mbit"},
    },
    "class": [
        {
            "name": "upload",
            "flows": 2,
            "sends": "client",
            "route": ["down"],
            "back": ["router", "modem"],
            "delay": "10ms",
            "traffic": {"kind": "bulk"},
        },
        {
            "name": "call",
            "flows": 1,
            "sends": "client",
            "route": ["down"],
            "back": ["router", "modem"],
            "delay": "10ms",
            "traffic": {"kind": "messages", "size": "200B", "interval": "20ms"},
        },
    ],
    "run": {"duration": "24s", "warmup": "4s", "seed": 1},
}


def test_fastest_shaper_is_the_line_in_frames() -> None:
    scenario = Scenario.from_dict(SHAPED | {"probes": {"link": "router"}})
    plan = planning.solve("shaper", scenario, delay_s=0.02)
    assert plan.question == "fastest shaper for a delay of 20 ms (p95)"
    assert plan.value is not None
    # CAKE counts 14 B of Ethernet headers in addition: 10 Mbit/s of packets are 10.09 of frames.
    # Up to there the queue forms in CAKE, and behind it in the modem.
    assert 9.5e6 < plan.value < 10.3e6
    assert plan.scenario is not None
    assert plan.scenario.resolved()["link"]["router"]["queue"]["rate"].endswith("mbit")


def test_largest_target_of_an_aqm_for_a_delay() -> None:
    links = {
        "up": {"rate": "10mbit", "buffer": "300KB", "queue": "codel"},
        "down": {"rate": "50mbit"},
    }
    classes = [each | {"back": ["up"]} for each in SHAPED["class"]]
    tables = SHAPED | {"link": links, "class": classes, "probes": {"link": "up"}}
    plan = planning.solve("aqm", Scenario.from_dict(tables), delay_s=0.05)
    assert plan.value is not None
    # The delay of 50 ms includes 10 ms of the path; the queue oscillates around the target.
    assert 0.005 < plan.value < 0.04
    delays = plan.tables["values"]["delay_p95_s"]
    assert delays[0] < 0.05 < delays[-1]


@pytest.mark.parametrize(
    ("question", "changes", "message"),
    [
        ("shaper", {"probes.link": "modem"}, "requires a shaper, but link modem has none"),
        ("aqm", {"probes.link": "router"}, "a queue with a target, but link router has none"),
        ("aqm", {"class.call.traffic": {"kind": "bulk"}}, "requires a class of kind messages"),
    ],
)
def test_plans_of_delays_refuse_what_they_cannot_vary(
    question: str, changes: dict[str, Any], message: str
) -> None:
    tables = SHAPED | {"probes": {"link": "router"}}
    scenario = Scenario.from_dict(tables).with_changes(changes)
    with pytest.raises(NotApplicable, match=message):
        planning.solve(question, scenario, delay_s=0.02)


def test_plan_of_users_names_the_classes_without_users() -> None:
    present = r'but the traffic of the scenario is "bulk" \(upload\), "messages" \(call\)$'
    with pytest.raises(NotApplicable, match=present):
        planning.solve("users", Scenario.from_dict(SHAPED), rate_bps=1e6)


def test_plans_of_delays_on_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "shaped.toml"
    path.write_text(Scenario.from_dict(SHAPED).to_toml())
    assert main(["plan", "shaper", str(path), "--link", "router", "--delay", "soon"]) == 2
    assert '--delay: "soon" is not a time' in capsys.readouterr().err
    assert main(["plan", "shaper", str(path), "--link", "modem", "--delay", "20ms"]) == 2
    message = capsys.readouterr().err
    assert "link modem has none; use --link" in message
    assert 'link.modem.queue = { kind = "cake", rate = "9.5mbit" }' in message
    changed = ["--set", "link.router.queue.rate=9mbit"]
    assert main(["plan", "shaper", str(path), "--link", "router", "--delay", "20ms", *changed]) == 2
    assert "link.router.queue.rate: plan shaper solves for this key" in capsys.readouterr().err
    unknown = ["--class", "upload"]
    assert main(["plan", "shaper", str(path), "--link", "router", "--delay", "20ms", *unknown]) == 2
    assert '--class: must be "call", not "upload"' in capsys.readouterr().err
    web = "web-10mbit"
    assert main(["plan", "aqm", web, "--delay", "20ms"]) == 2
    assert "plan aqm requires a network of links" in capsys.readouterr().err
