"""`tcpcast home`: queues of a line compared by what people notice."""

import json
import tomllib
from typing import Any

import pytest
from tcpcast.cli import main
from tcpcast.scenario import Scenario

Capture = pytest.CaptureFixture[str]

QUICK = (
    "--down",
    "50mbit",
    "--up",
    "10mbit",
    "--set",
    "run.duration=40s",
    "--set",
    "run.warmup=5s",
)


def home(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(["home", *QUICK, *arguments]) == code
    return capsys.readouterr().out


def test_fair_queueing_keeps_a_call_short_beside_an_upload(capsys: Capture) -> None:
    uses = ("--uses", "call,upload", "--queue", "droptail,fq_codel,cake", "--json")
    result: dict[str, Any] = json.loads(home(capsys, *uses))
    rows = {row["link.*.queue"]: row for row in result["answers"]}
    delay_s = {queue: row["delay_p95_s.call"] for queue, row in rows.items()}
    # 250 ms of buffer, and 10 ms of delay each way.
    assert 0.2 < delay_s["droptail"] < 0.27
    assert delay_s["fq_codel"] < 0.015
    assert delay_s["cake"] < 0.015
    upload = {queue: row["goodput_bps.upload"] for queue, row in rows.items()}
    assert all(8e6 < rate < 9.7e6 for rate in upload.values())
    verdict = result["verdict"]
    assert verdict.startswith(
        "With droptail, class upload raises the delay of class call from 10.2 ms to 2"
    )
    assert "(p95, bufferbloat grade D); " in verdict
    assert "ms (A+) and costs class upload " in verdict
    assert verdict.endswith(" % of its goodput.")


def test_a_use_without_other_traffic_has_a_verdict(capsys: Capture) -> None:
    lines = home(capsys, "--uses", "call", "--queue", "droptail,cake").splitlines()
    assert lines[0].startswith("The delay p95 does not differ significantly (1")


def test_printed_scenario_gives_the_same_run(capsys: Capture) -> None:
    text = home(capsys, "--uses", "call=2,download", "--queue", "fq_codel", "--print-scenario")
    scenario = Scenario.from_dict(tomllib.loads(text))
    assert [(g.name, g.count) for g in scenario.populations] == [("call", 2), ("download", 1)]
    queues = scenario.resolved()["link"]
    assert {name: link["queue"]["kind"] for name, link in queues.items()} == {
        "down": "fq_codel",
        "up": "fq_codel",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--uses", "cal"),
            '--uses: "cal" is not an activity (did you mean "call"?); use download',
        ),
        (("--uses", "call=0"), '--uses: "call=0": use a number from 1 to 1000, as in call=2'),
        (("--uses", ","), "--uses: contains no activity; use call,upload, for example"),
        (("--queue", ","), "--queue: contains no queue discipline; use droptail,fq_codel"),
        (("--queue", "droptail,foo"), '--queue: "foo" is not a queue discipline'),
        (
            ("--down", "unlimited"),
            "--down: the rate of a line must be finite; use 20mbit, for example",
        ),
        (("--up", "fast"), '--up: "fast" is not a rate'),
        (("--rtt", "soon"), '--rtt: "soon" is not a time'),
        (("--buffer", "3"), '--buffer: "3" has no unit'),
        (
            ("--set", "link.up.queue=cake"),
            "link.up.queue: --queue sets the value for both directions",
        ),
        (
            ("--buffer", "50pkt", "--set", "link.*.buffer=9pkt"),
            "link.*.buffer: --buffer sets the value for both directions",
        ),
    ],
)
def test_errors_name_the_option(capsys: Capture, arguments: tuple[str, ...], message: str) -> None:
    assert main(["home", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"tcpcast: {message}")


def test_measurement_runs_for_24_seconds_unless_a_duration_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = []

    def sweep(scenario: Any, *_: object, processes: int | None = None, **__: object) -> None:
        runs.append((scenario.run.duration_s, scenario.run.warmup_s, processes))

    monkeypatch.setattr("tcpcast.cli.sweep.sweep_scenario", sweep)
    for changes in ([], ["--set", "run.duration=60s"]):
        assert main(["home", "--engine", "packet,kernel", *changes]) == 0
    assert main(["home"]) == 0
    assert runs == [(24.0, 4.0, 1), (60.0, 4.0, 1), (220.0, 20.0, None)]
