"""Plugins: engines and models of other packages, found by entry points."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import started

OWN = '''
    """One file, one engine, one model."""

    from tcpcast import Answer, Metric, NotApplicable


    def answer(scenario, options):
        """Count the packets that are on their way when the link is full."""
        link = scenario.network.bottleneck
        if link.rate_bps == float("inf"):
            raise NotApplicable("it needs a link with a rate; add network.bottleneck.rate")
        bits = 8 * scenario.network.packet_bytes
        on_way = link.rate_bps * scenario.network.rtt_s / bits
        return Answer("any", metrics={"pipe_pkts": Metric(on_way), "heaps": Metric(on_way / 100)})


    answer.applies = "links with a rate"
    answer.metrics = {"heaps": "heap"}


    def half_mathis(*, loss_indication_ratio, rtt_s, more=2.0):
        """Half of the square-root law."""
        return 0.5 * (1.5 / loss_indication_ratio) ** 0.5 / rtt_s


    def lost(scenario, options):
        return "nothing"


    def loud(scenario, options):
        import os, subprocess, sys
        print("from Python")
        subprocess.run([sys.executable, "-c", "print('from a program')"], check=True)
        os.write(1, b"as bytes\\n")
        return Answer("loud", metrics={"goodput_bps": Metric(1.0)})


    def odd(*, temperature):
        return temperature


    nothing = 5
'''
POINTS = """
    [tcpcast.engines]
    pipe = own_engine:answer
    lost = own_engine:lost
    loud = own_engine:loud
    packet = own_engine:answer
    broken = own_engine:is_not_there
    number = own_engine:nothing

    [tcpcast.models]
    half-mathis = own_engine:half_mathis
    odd = own_engine:odd
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a directory with an installed package of one file."""
    (tmp_path / "own_engine.py").write_text(dedent(OWN))
    info = tmp_path / "own_engine-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-engine\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(dedent(POINTS))
    return tmp_path


def tcpcast(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site), "COLUMNS": "200"}
    return started.completed(arguments, folder=site, environment=environment)


def test_plugin_engine_runs_with_built_in_engines(site: Path) -> None:
    done = tcpcast(site, "run", "web-10mbit", "--engine", "engset,pipe", "--all")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "heap" in line)
    assert line.split() == ["heaps", "heap", "–", "0.4167"]
    result = tcpcast(site, "run", "web-10mbit", "--engine", "pipe", "--json")
    (answer,) = json.loads(result.stdout)["answers"]
    assert answer["engine"] == "pipe"
    assert answer["metrics"]["heaps"]["unit"] == "heap"
    assert answer["metrics"]["pipe_pkts"]["value"] == pytest.approx(10e6 * 0.05 / 12000)
    assert answer["provenance"]["package"] == "own-engine 1.2"


def test_plugin_model_has_same_inputs_as_built_in_models(site: Path) -> None:
    change = ("--set", "network.bottleneck.loss=2%")
    done = tcpcast(site, "run", "one-path", "--engine", "mathis,half-mathis", "--json", *change)
    assert done.returncode == 0, done.stderr
    mathis, half = json.loads(done.stdout)["answers"]
    rate = "send_rate_pps"
    assert half["metrics"][rate]["value"] <= mathis["metrics"][rate]["value"]
    assert half["metrics"]["goodput_bps"]["value"] > 0


def test_engines_lists_plugins_and_reports_broken_ones(site: Path) -> None:
    done = tcpcast(site, "engines")
    assert done.returncode == 0
    assert "engines of other packages" in done.stdout
    assert "links with a rate" in done.stdout
    assert "Half of the square-root law" in done.stdout
    assert "engine 'broken' of own-engine 1.2 cannot be imported" in done.stderr
    assert "engine 'number' of own-engine 1.2 is not callable" in done.stderr
    assert "'packet'" in done.stderr
    assert "tcpcast already contains an engine" in done.stderr


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("lost", "it must return tcpcast.Answer", 2),
        (
            "odd",
            "has unknown parameters: temperature; use only the parameters loss_indication_",
            3,
        ),
        ("broken", "cannot be imported", 3),
        ("pip", "no engine 'pip'; did you mean 'pipe'? The engines are: engset,", 2),
        ("nobody", "kernel, pipe, lost,", 2),
    ],
)
def test_run_reports_error_of_broken_plugin(name: str, words: str, code: int, site: Path) -> None:
    done = tcpcast(site, "run", "one-path", "--engine", name)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_output_of_plugin_goes_to_standard_error(site: Path) -> None:
    done = tcpcast(site, "run", "one-path", "--engine", "loud", "--json")
    (answer,) = json.loads(done.stdout)["answers"]
    assert answer["metrics"]["goodput_bps"]["value"] == 1.0
    assert {"from Python", "from a program", "as bytes"} <= set(done.stderr.splitlines())


def test_other_engines_run_if_plugin_fails(site: Path) -> None:
    done = tcpcast(site, "run", "one-path", "--engine", "lost,pftk", "--json")
    lost, pftk = json.loads(done.stdout)["answers"]
    assert done.returncode == 1, done.stderr
    assert lost["incomplete_reason"].startswith(
        "engine 'lost' of own-engine 1.2 returned str; it must"
    )
    assert pftk["metrics"]["goodput_bps"]["value"] > 0
    report = tcpcast(site, "run", "one-path", "--engine", "lost,pftk")
    assert "engine 'lost' of own-engine 1.2 returned str" in " ".join(report.stdout.split())
    swept = tcpcast(site, "sweep", "one-path", "--vary=network.rtt=10ms,20ms", "--engine=lost,pftk")
    assert "failed" in swept.stdout + swept.stderr


def test_shell_completion_offers_plugins_once(site: Path) -> None:
    completion = {"_TCPCAST_COMPLETE": "complete_bash", "COMP_CWORD": "4"}
    words = "tcpcast run one-path --engine packet,p"
    done = subprocess.run(
        [sys.executable, "-m", "tcpcast"],
        env=os.environ | {"PYTHONPATH": str(site), "COMP_WORDS": words} | completion,
        text=True,
        capture_output=True,
        check=True,
    )
    completions = done.stdout.split()
    assert "packet,pipe" in completions
    assert "packet,pftk" in completions
    assert "packet,packet" not in completions
