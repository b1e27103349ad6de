"""Expectations of programs over emulated links: ``tcpcast link --expect`` and its reports."""

import sys
from dataclasses import fields, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tcpcast.cli import main
from tcpcast.cli.link import (
    PathResult,
    check_outcome,
    parse_expectation,
    results_as_junit,
    results_as_markdown,
    simulate_reference,
)
from tcpcast.emulation.link_outcome import DirectionCounts, LinkOutcome
from tcpcast.process.errors import TcpcastError
from tcpcast.scenario import Scenario

NOTHING = DirectionCounts(**{field.name: 0 for field in fields(DirectionCounts)})
PATH = Scenario.from_dict(
    {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "1bdp"}},
        "traffic": {"kind": "bulk", "flows": 1},
        "run": {"duration": "1s"},
    }
)


def outcome(mbps: float, *, wait_ms: int = 0, status: int = 0) -> LinkOutcome:
    """Return a run of 20 s, of which the link was paused for 10 s, and whose server ended later."""
    sent = replace(NOTHING, program_bytes=int(mbps * 1e6 / 8 * 10), wait_mean_ns=wait_ms * 10**6)
    return LinkOutcome(
        status=status,
        device="TUN",
        program_ns=20 * 10**9,
        elapsed_ns=25 * 10**9,
        away_ns=10 * 10**9,
        pauses=0,
        longest_pause_ns=0,
        missed=0,
        cpu_ns=0,
        near_to_far=sent,
        far_to_near=NOTHING,
        distortion=None,
        capture_fault=None,
    )


@pytest.mark.parametrize(
    ("bound", "mbps", "passed"),
    [
        ("rate >= 90% of linux-cubic", 9.6, True),
        ("rate >= 90% of linux-cubic", 8.0, False),
        ("rate <= 110% of linux-cubic", 9.6, True),
        ("rate >= 9mbit", 8.9, False),
        ("delay <= 20ms", 1.0, True),
        ("delay<=4ms", 1.0, False),
    ],
)
def test_a_bound_is_a_number_or_a_share_of_a_simulated_flow(
    bound: str, mbps: float, *, passed: bool
) -> None:
    expectation = parse_expectation(bound)
    (check,) = check_outcome([expectation], PATH, outcome(mbps, wait_ms=5), from_near=True)
    assert check.passed is passed
    if expectation.stack is not None:
        # CUBIC fills the link within 10 s except for its slow start.
        assert check.reference == pytest.approx(9.7e6, rel=0.03)


def test_a_link_without_a_rate_has_no_queueing_delay() -> None:
    path = Scenario.from_dict(
        {
            "network": {"rtt": "40ms"},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"receiver_window": 1000},
            "run": {"duration": "1s"},
        }
    )
    expectations = [parse_expectation(f"{name} >= 1% of quinn") for name in ("rate", "delay")]
    rate, delay = check_outcome(expectations, path, outcome(10), from_near=True)
    assert delay.reference == 0
    assert rate.reference is not None
    assert rate.reference > 10e6


def test_the_simulated_flow_lasts_as_long_as_a_short_program() -> None:
    """Within 5 RTTs, of which the handshake takes one, a flow sends 10, 20, 40 and 80 packets."""
    path = PATH.with_changes({"network.bottleneck.rate": "1gbit"})
    seconds = 5 * path.populations[0].rtt_s
    sent = simulate_reference(path, "linux-cubic", seconds)["rate"] * seconds / (8 * 1500)
    assert 70 <= sent <= 150


def test_the_simulated_flow_is_a_mean_over_several_random_losses() -> None:
    """One run of 2 s with a loss of 1 % had a standard deviation of 32 % of its rate."""
    rates = [
        simulate_reference(PATH.with_changes(changes), "linux-cubic", 2.0)["rate"]
        for seed in range(1, 9)
        for changes in [{"network.bottleneck.loss": "1%", "run.seed": seed}]
    ]
    assert np.std(rates) < 0.2 * np.mean(rates)


def test_a_wrong_stack_is_named_before_the_program_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    command = ["link", "--rtt", "10ms", "--expect", "rate >= 80% of linux-cubik"]
    assert main([*command, "--", "touch", str(ran)]) == 2
    assert not ran.exists()
    message = capsys.readouterr().err
    assert message.startswith('tcpcast: --expect: "linux-cubik" is not a stack')


@pytest.mark.parametrize("bound", ["rate", "rate > 1mbit", "loss <= 1%", "rate >= 2 of linux-bbr"])
def test_other_forms_are_refused_with_an_example(bound: str) -> None:
    with pytest.raises(TcpcastError, match="for example"):
        parse_expectation(bound)


def test_reports_have_a_line_for_each_path_and_bound() -> None:
    expectation = parse_expectation("rate >= 9mbit")
    results = []
    for loss, mbps, status in (("0%", 9.6, 0), ("1%", 5.0, 0), ("2%", 0.0, 7)):
        run = outcome(mbps, status=status)
        checks = check_outcome([expectation], PATH, run, from_near=True)
        results.append(PathResult({"network.bottleneck.loss": loss}, run, checks))
    rows = results_as_markdown(results).splitlines()[2:]
    assert [row.split(" | ")[-1] for row in rows] == [
        "passed |",
        "**failed** |",
        "the program ended with exit code 7 |",
    ]
    sentences = [
        result.sentence(result.checks[0]).split(": ")[1].split(";")[0] for result in results
    ]
    assert sentences == ["passed", "failed", "not checked"]
    suite = ElementTree.fromstring(results_as_junit(results))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    (failed,) = suite.findall("testcase[failure]")
    assert failed.get("classname") == "network.bottleneck.loss=1%"


@pytest.mark.skipif(sys.platform != "linux", reason="a link needs Linux")
def test_command_runs_over_each_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["link", "--rtt", "10ms", "--rate", "10mbit", "--expect", "rate >= 1gbit"]
    command += ["--vary", "network.rtt=10ms,20ms", "--out", "paths.md"]
    code = main([*command, "--", "true"])
    if code == 3:
        pytest.skip("the link could not be created, or the machine is busy")
    assert code == 1
    rows = Path("paths.md").read_text().splitlines()
    assert len(rows) == 4
    assert rows[2].startswith("| network.rtt=10ms | rate >= 1gbit |")
    assert all(row.endswith("**failed** |") for row in rows[2:])
