"""`tcpcast plan`: what is printed of a plan, and the exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast import plan as planning
from tcpcast.cli import main
from tcpcast.plan import Plan
from tcpcast.report.plan import ColumnsTable, plan_report
from tcpcast.report.terminal import plain

from cli.made_up import simulated

if TYPE_CHECKING:
    Capture = pytest.CaptureFixture[str]

MADE_UP = """\
web-10mbit: 134 on/off sources, RTT 50 ms, bottleneck 10 Mbit/s, buffer 150
packets, rfc-newreno

Smallest buffer for a loss of 1%
  by the model      114 packets
  by simulation     57 packets (the model +100 %)

Rules side by side
             buffer  delay
 rule         (pkt)   (ms)
───────────────────────────
 this paper     114  136.8
 600 ms         500      –

Simulated
           loss
 buffer   ratio
  (pkt)     (%)  95 %
───────────────────────────
     57  0.9000  0.80–1.10
    114  0.0200

   As the paper has it.
 ! the loss is small"""


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
        "notes": ["As the paper has it."],
        "warnings": ["the loss is small"],
        "simulated": 57.0,
        "verified": [simulated()],
    }
    return Plan(**{**given, **changes})


def test_a_plan_to_the_letter() -> None:
    report = plan_report(made_up_plan(), tcpcast.load("web-10mbit"))
    assert plain(report, 80) == MADE_UP


def test_columns_that_do_not_fit_go_on_below_with_the_first_repeated() -> None:
    columns = {"sources": np.array([7, 1234])} | {
        f"loss_{name}_pkts": np.array([1.25, 100.0]) for name in ("here", "there", "somewhere")
    }
    text = plain(ColumnsTable(columns), 30)
    assert max(map(len, text.splitlines())) <= 30
    assert text.count("1,234") == 2
    assert text.count("100.0") == 3
    assert plain(ColumnsTable(columns), 60).count("1,234") == 1


@pytest.mark.parametrize(
    ("arguments", "title", "unit"),
    [
        (
            ["buffer", "web-10mbit", "--loss", "0.5%"],
            "Smallest buffer for a loss of 0.5%",
            "packet",
        ),
        (["users", "web-10mbit", "--rate", "200kbit"], "Most sources", "sources"),
        (["rate", "web-10mbit", "--rate", "400kbit"], "Bottleneck rate", "bit/s"),
    ],
)
def test_each_question_by_the_model(
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
    assert set(document) == {"scenario", "plan"}
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
    asked: dict[str, Any] = {}

    def plan_buffer(scenario: object, **how: Any) -> Plan:  # noqa: ARG001 - its form
        asked.update(how)
        return made_up_plan(**changes)

    monkeypatch.setattr(planning, "plan_buffer", plan_buffer)
    arguments = ["plan", "buffer", "web-10mbit", "--loss", "2%", "--verify", "--threads", "2"]
    assert main(arguments) == code
    assert asked["loss"] == pytest.approx(0.02)
    assert asked["verify"]
    assert asked["options"].threads == 2
    assert "114 packets" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == code
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["tables"]["rules"]["columns"]["delay_s"] == [0.1368, None]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["users", "web-10mbit", "--rate", "10mbps"], ["--rate", "10mbit"]),
        (["rate", "web-10mbit"], ["--rate"]),
        (["buffer", "web-10mbit", "--loss", "much"], ["--loss", "1%"]),
        (["buffer", "web-10mbit", "--loss", "0%"], ["loss"]),
        (["users", "web-10mbit", "--rate", "10gbit"], ["rate"]),
        (["buffer", "lossy-path"], ["on/off"]),
        (["buffers"], ["plan buffers", "buffer"]),
        (["buffer", "web-10mbit", "--set", "traffic.sauces=2"], ["traffic.sauces", "sources"]),
    ],
)
def test_bad_input_is_named_and_exits_2(
    arguments: list[str], words: list[str], capsys: Capture
) -> None:
    assert main(["plan", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err
