"""Runs that are interrupted, stopped by a time limit, or extended to reach a precision."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast.engines.registry import EngineEntry

Capture = pytest.CaptureFixture[str]

ENDLESS = ["run", "web-10mbit", "--engine=packet", "--json", "--set=run.transfers=900000000"]

# Sends a signal after a delay, when the modules of the command are already imported.
INTERRUPTED = """
import os, signal, sys, threading
import tcpcast.engines.packet, tcpcast.report.json, tcpcast.scenario
from tcpcast.cli import main
number, after, *arguments = sys.argv[1:]
threading.Timer(float(after), os.kill, (os.getpid(), int(number))).start()
sys.exit(main(arguments))
"""


def run_and_interrupt(
    *arguments: str, after_s: float = 0.4, number: int = signal.SIGINT
) -> tuple[dict[str, Any], str, int]:
    """Return the JSON, standard error and exit code of a command that receives a signal.

    On a busy machine, the simulation may not have started; then the delay is doubled.
    """
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(number)), str(after_s), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120 + after_s,  # a busy machine needs 10 s to start
    )
    assert "Traceback" not in run.stderr
    if not run.stdout and after_s < 10:
        return run_and_interrupt(*arguments, after_s=2 * after_s, number=number)
    return json.loads(run.stdout), run.stderr, run.returncode


def children_cpu_s() -> float:
    """Return the CPU time of ended child processes."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.parametrize(("threads", "number"), [("1", signal.SIGINT), ("2", signal.SIGTERM)])
def test_ctrl_c_prints_completed_part_of_run(threads: str, number: int) -> None:
    more = ["--set=run.replications=3", f"--threads={threads}"]
    document, words, code = run_and_interrupt(*ENDLESS, *more, number=number)
    assert code == 130
    (answer,) = document["answers"]
    assert answer["incomplete_reason"].startswith("interrupted")
    assert "interrupted" in words
    assert answer["metrics"]["transfers"]["value"] > 100
    assert 0.3 < answer["metrics"]["utilisation"]["value"] <= 1
    # Replications that did not start are left out, not counted as zeros.
    assert 100e3 < answer["metrics"]["connection_rate_bps"]["value"] < 200e3


def test_ctrl_c_ends_search_for_warm_up() -> None:
    began = children_cpu_s()
    document, _, code = run_and_interrupt(*ENDLESS, "--set=run.warmup=mser-5")
    assert code == 130
    assert document["answers"][0]["incomplete_reason"].startswith("interrupted")
    assert children_cpu_s() - began < 8


def test_ctrl_c_during_warm_up_ends_run() -> None:
    document, _, code = run_and_interrupt(*ENDLESS, "--set=run.warmup=100000000s")
    assert code == 130
    (answer,) = document["answers"]
    assert "the run ended during the warm-up" in answer["incomplete_reason"]
    assert all(metric["value"] is not None for metric in answer["metrics"].values())


def test_ctrl_c_suppressed_by_import_ends_command(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def suppress_interrupt(_: EngineEntry) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(EngineEntry, "load", suppress_interrupt)
    assert main(["run", "web-10mbit", "--engine=engset"]) == 130
    assert "interrupted before there was an answer" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def document(arguments: list[str], capsys: Capture, code: int) -> dict[str, Any]:
    assert main(arguments) == code
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    return dict(answer)


def test_max_wall_stops_run(capsys: Capture) -> None:
    answer = document([*ENDLESS, "--set=run.max_wall=0.4s"], capsys, 1)
    assert "run.max_wall was reached" in answer["incomplete_reason"]
    assert 0.3 < answer["wall_s"] < 60  # the whole run takes hours
    assert answer["metrics"]["transfers"]["value"] > 0
    assert answer["metrics"]["transfers"]["value"] < 900_000_000


def test_max_wall_stops_search_for_warm_up(capsys: Capture) -> None:
    more = ["--set=run.max_wall=0.4s", "--set=run.warmup=mser-5"]
    answer = document([*ENDLESS, *more], capsys, 1)
    assert "run.max_wall was reached" in answer["incomplete_reason"]
    assert answer["wall_s"] < 60


def test_unreached_max_wall_is_not_reported(capsys: Capture) -> None:
    short = ["run", "web-10mbit", "--engine=packet", "--json", "--set=run.transfers=500"]
    answer = document([*short, "--set=run.max_wall=60s"], capsys, 0)
    assert "incomplete_reason" not in answer


def web_users(**run: Any) -> tcpcast.Scenario:
    """Return a scenario of web users with a short run."""
    changes = {f"run.{key}": value for key, value in run.items()}
    return tcpcast.load("web-10mbit").with_changes({"run.transfers": 1000} | changes)


@pytest.mark.parametrize("replications", [1, 3])
def test_precision_target_is_reached(replications: int) -> None:
    targets = {"connection_rate_bps": "2%", "loss_ratio": "5%"}
    scenario = web_users(precision=targets, replications=replications)
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.incomplete_reason is None
    for name, target in (("connection_rate_bps", 0.02), ("loss_ratio", 0.05)):
        metric = answer.metrics[name]
        assert metric.low is not None
        assert metric.high is not None
        assert (metric.high - metric.low) / 2 <= target * metric.value * (1 + 1e-9)
    assert answer["transfers"] > 1000


def test_run_length_depends_on_precision() -> None:
    (coarse,) = tcpcast.run(web_users(precision={"connection_rate_bps": "3%"}), ["packet"])
    (fine,) = tcpcast.run(web_users(precision={"connection_rate_bps": "1%"}), ["packet"])
    assert coarse["transfers"] < fine["transfers"] < 100 * coarse["transfers"]


def test_max_wall_before_precision_is_reported(capsys: Capture) -> None:
    more = ["--set=run.precision=0.001%", "--set=run.max_wall=0.5s", "--set=run.transfers=1000"]
    answer = document([*ENDLESS, *more], capsys, 1)
    assert "run.max_wall was reached before run.precision" in answer["incomplete_reason"]
    assert "connection_rate_bps" in answer["incomplete_reason"]


def test_unreachable_precision_is_reported() -> None:
    # The loss is 0, so its interval has no relative width.
    changes = {"network.bottleneck.buffer": "unlimited", "run.transfers": 100}
    scenario = web_users(precision={"loss_ratio": "5%"}).with_changes(changes)
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.incomplete_reason is not None
    assert "run.precision was not reached" in answer.incomplete_reason
    assert "loss_ratio" in answer.incomplete_reason
