"""`tcpcast plan streams` and `tcpcast plan max-loss`: reports, figures and errors."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast import plan as planning
from tcpcast.cli import main
from tcpcast.plan import Plan
from tcpcast.report.plan import plan_parts, plan_quantity_text
from tcpcast.report.text import plain_text as as_text

if TYPE_CHECKING:
    from pathlib import Path

    Capture = pytest.CaptureFixture[str]

CLASSIC = ["--stack", "rfc-newreno"]
STREAMS = ["streams", *CLASSIC, "--rate", "100mbit", "--rtt", "200ms", "--delayed-acks"]
STREAMS += ["--loss", "0.1%"]
LOSS = ["max-loss", "--goodput", "50mbit", "--rtt", "80ms", *CLASSIC]

MADE_UP = """\
lossy-path: 10 bulk flows, RTT 60 ms, bottleneck 1 Gbit/s, buffer 10,000
packets, random loss 1 %, rfc-newreno

The useful number of parallel flows is 62 flows, by the model.
  by the model      62 flows
  by simulation     63.5 flows (the model -2.4 %)

62 flows fill the link, because loss holds one down.

Rates by the number of flows
        parallel      gain
 flows  (Mbit/s)  (kbit/s)  limit
─────────────────────────────────────
     1       1.6       800  loss
    62     100.0         0  capacity

   As the model has it.
 ! the loss is large"""


def made_up_plan(**changes: Any) -> Plan:
    streams = {
        "flows": np.array([1, 62]),
        "parallel_bps": np.array([1.6e6, 100e6]),
        "gain_bps": np.array([8e5, 0.0]),
        "limit": np.array(["loss", "capacity"]),
    }
    given: dict[str, Any] = {
        "question": "useful number of parallel flows",
        "value": 62,
        "unit": "flows",
        "tables": {"streams": streams, "curve": streams},
        "headings": {"streams": "Rates by the number of flows", "curve": ""},
        "recommendation": "62 flows fill the link, because loss holds one down.",
        "notes": ["As the model has it."],
        "warnings": ["the loss is large"],
        "simulated": 63.5,
    }
    return Plan(**{**given, **changes})


def test_streams_report_text() -> None:
    """The curve is in the JSON output and in the figure, not in the report."""
    assert as_text(plan_parts(made_up_plan(), tcpcast.load("lossy-path")), 80) == MADE_UP


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1, "flows", "1 flow"),
        (1300217106, "flows", "1,300,217,106 flows"),
        (63.5, "flows", "63.5 flows"),
        (12345, "sources", "12,345 sources"),
        (57.0, "packet", "57 packets"),
        (1.276e-5, "1", "0.001276 %, one packet in 78,370"),
        (0.25, "1", "25 %"),
    ],
)
def test_quantities_have_singular_and_thousands_separators(
    value: float, unit: str, text: str
) -> None:
    assert plan_quantity_text(value, unit) == text


FIGURE = {"curve", "isoline"}
"""Inputs of a figure."""


@pytest.mark.parametrize(
    ("arguments", "title", "unit", "tables"),
    [
        (STREAMS, "The useful number of parallel flows is ", "flows", {"streams", "curve"}),
        (
            ["streams", "lossy-path"],
            "The useful number of parallel flows is ",
            "flows",
            {"streams", "curve"},
        ),
        (
            LOSS,
            "The largest loss for a goodput of 50 Mbit/s is ",
            "1",
            {"tolerated", "ways", *FIGURE},
        ),
        (
            [*LOSS, "--flows", "4", "--rwnd", "256KiB", "--rate", "1gbit", "--mss", "8960"],
            "The largest loss for a goodput of ",
            "1",
            {"tolerated", "ways", *FIGURE},
        ),
        (
            ["max-loss", "one-path", "--goodput", "5mbit"],
            "The largest loss for a goodput of ",
            "1",
            {"tolerated", "ways", *FIGURE},
        ),
    ],
)
def test_streams_and_max_loss_are_answered_by_models(
    arguments: list[str], title: str, unit: str, tables: set[str], capsys: Capture
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
    plan = document["plan"]
    assert plan["unit"] == unit
    assert plan["value"] > 0
    assert plan["recommendation"].endswith(".")
    assert set(plan["tables"]) == tables
    assert len(err.splitlines()) == len(plan["warnings"])


def test_plan_scenario_contains_answer(capsys: Capture) -> None:
    assert main(["plan", *STREAMS, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["scenario"]["traffic"]["flows"] == document["plan"]["value"] == 62
    assert document["scenario"]["tcp"]["delayed_acks"] is True
    assert main(["plan", *LOSS, "--json", "--min-rto", "300ms", "--set", "run.seed=7"]) == 0
    document = json.loads(capsys.readouterr().out)
    loss = document["scenario"]["network"]["bottleneck"]["loss"]
    assert float(loss.removesuffix("%")) / 100 == pytest.approx(document["plan"]["value"])
    assert document["scenario"]["tcp"]["min_rto"] == "300ms"
    assert document["scenario"]["run"]["seed"] == 7


def test_options_and_scenario_of_same_path_agree(capsys: Capture) -> None:
    options = ["--rate", "1gbit", "--rtt", "60ms", "--loss", "1%", *CLASSIC]
    values = []
    for arguments in (["streams", "lossy-path"], ["streams", *options]):
        assert main(["plan", *arguments, "--json"]) == 0
        values.append(json.loads(capsys.readouterr().out)["plan"]["value"])
    assert values[0] == values[1]


@pytest.mark.parametrize("width", [80, 100])
def test_reports_fit_terminal_width(
    width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in (STREAMS, LOSS):
        assert main(["plan", *arguments]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_streams_figure_has_stable_bytes(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "figures"
    assert main(["plan", *STREAMS, "--plot", str(folder)]) == 0
    assert str(folder / "streams.png") in capsys.readouterr().err
    first = (folder / "streams.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert len(first) > 10_000
    assert main(["plan", *STREAMS, "--plot", str(folder)]) == 0
    assert (folder / "streams.png").read_bytes() == first


def test_plot_rejects_file_as_directory(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert main(["plan", *STREAMS, "--plot", str(tmp_path / "file")]) == 3
    assert "not a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "code"),
    [({}, 0), ({"simulated": None}, 1), ({"simulated": None, "interrupted": True}, 130)],
)
def test_verification_exit_codes(
    changes: dict[str, Any], code: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: dict[str, Any] = {}

    @functools.wraps(planning.plan_streams)
    def plan_streams(scenario: object, **keywords: Any) -> Plan:  # noqa: ARG001 - same signature
        requested.update(keywords)
        return made_up_plan(**changes)

    monkeypatch.setattr(planning, "plan_streams", plan_streams)
    assert main(["plan", *STREAMS, "--verify", "--threads", "2"]) == code
    assert requested["verify"]
    assert requested["options"].threads == 2
    assert "62 flows" in capsys.readouterr().out


def test_too_large_check_exits_1_with_warning(capsys: Capture) -> None:
    fast = ["streams", "--rate", "1000gbit", "--rtt", "100ms", "--loss", "0.0001%", "--verify"]
    assert main(["plan", *fast]) == 1
    out, _ = capsys.readouterr()
    assert "not checked by simulation" in out
    assert "by the model" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["streams", "--rtt", "1ms", "--loss", "1%"], ["--rate", "missing", "1gbit"]),
        (["streams", "--rate", "1gbit", "--loss", "1%"], ["--rtt", "missing"]),
        (["streams", "lossy-path", "--rtt", "1ms"], ["--rtt", "lossy-path", "--set"]),
        (["streams", "lossy-path", "--min-rto", "1s"], ["--min-rto"]),
        (["streams", "one-path"], ["no rate", "1gbit"]),
        (["streams", "web-10mbit"], ["bulk"]),
        ([*STREAMS[:-1], "100%"], ["--loss", "100%"]),
        ([*STREAMS[:-1], "120%"], ["--loss", "120%"]),
        ([*STREAMS[:-1], "1%..2%"], ["--loss", "predict"]),
        ([*STREAMS, "--rtt", "0ms"], ["--rtt", "above 0"]),
        ([*STREAMS, "--rtt", "1us"], ["--rtt", "transmission"]),
        ([*STREAMS, "--rate", "0mbit"], ["--rate", "0mbit"]),
        ([*STREAMS, "--rate", "10mbps"], ["--rate", "10mbit"]),
        ([*STREAMS, "--rate", "unlimited"], ["no rate"]),
        ([*STREAMS, "--rwnd", "0"], ["--rwnd"]),
        ([*STREAMS, "--mss", "0"], ["--mss"]),
        ([*STREAMS, "--set", "traffic.sauces=2"], ["traffic.sauces"]),
        (["max-loss", "--rtt", "80ms"], ["--goodput"]),
        (["max-loss", "--goodput", "50mbit"], ["--rtt", "missing"]),
        (["max-loss", "--goodput", "50", "--rtt", "80ms"], ["--goodput", "50mbit"]),
        (["max-loss", "--goodput", "0mbit", "--rtt", "80ms"], ["--goodput", "0mbit"]),
        (["max-loss", "--goodput", "unlimited", "--rtt", "80ms"], ["goodput", "finite"]),
        ([*LOSS, "--flows", "0"], ["--flows", "at least 1"]),
        ([*LOSS, "--flows", "2.5"], ["--flows", "whole"]),
        ([*LOSS, "--rate", "50mbit"], ["50 Mbit/s cannot be reached", "48.67 Mbit/s"]),
        ([*LOSS, "--rwnd", "64KiB"], ["cannot be reached", "343 packets", "8 flows", "10.28 ms"]),
        (["max-loss", "web-10mbit", "--goodput", "1mbit"], ["bulk"]),
        ([*LOSS, "--set", "network.bottleneck.loss=2%"], ["solves for the loss", "--goodput"]),
        ([*LOSS, "--set", "run.replications=3"], ["run.replications", "run.duration"]),
        ([*STREAMS, "--set", "traffic.flows=3"], ["traffic.flows", "the plan solves for"]),
        ([*STREAMS, "--set", "tcp.initial_ssthresh=3"], ["tcp.initial_ssthresh", "PFTK"]),
        ([*STREAMS, "--set", "probes.flows=[0]"], ["probes.flows", "tcpcast run"]),
        (["streams", "lossy-path", "--set", "run.warmup=1s"], ["run.warmup"]),
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


def test_path_from_options_has_no_default_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float | None] = []

    @functools.wraps(planning.plan_streams)
    def plan_streams(scenario: tcpcast.Scenario, **keywords: Any) -> Plan:  # noqa: ARG001 - same signature
        limits.append(scenario.run.max_wall_s)
        return Plan("flows", 1.0, "flows")

    monkeypatch.setattr(planning, "plan_streams", plan_streams)
    assert main(["plan", *STREAMS]) == 0
    assert main(["plan", *STREAMS, "--set", "run.max_wall=9s"]) == 0
    assert limits == [None, 9.0]


def test_max_loss_needs_no_loss_in_scenario(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "bare.toml"
    file.write_text(
        '[network]\nrtt = "80ms"\n[traffic]\nkind = "bulk"\nflows = 1\n[run]\nduration = "60s"\n'
    )
    assert main(["plan", "max-loss", str(file), "--goodput", "5mbit", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["plan"]["value"]
    assert main(["plan", "max-loss", "--rtt", "80ms", "--goodput", "5mbit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["value"] == value


def test_check_length_and_unused_keys(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[float] = []

    @functools.wraps(planning.plan_streams)
    def plan_streams(scenario: tcpcast.Scenario, **keywords: Any) -> Plan:  # noqa: ARG001 - same signature
        requested.append(keywords.get("least_s", 0.0))
        return made_up_plan()

    monkeypatch.setattr(planning, "plan_streams", plan_streams)
    assert main(["plan", "streams", "lossy-path", "--verify"]) == 0
    assert "Not used: run.duration, run.replications, run.warmup" in capsys.readouterr().out
    changed = ["--set", "run.duration=9h"]
    assert main(["plan", "streams", "lossy-path", "--verify", *changed]) == 0
    assert "Not used: run.replications, run.warmup" in capsys.readouterr().out
    assert main(["plan", *STREAMS]) == 0
    assert requested == [0.0, 32400.0, 0.0]
