"""`tcpcast run`: standard output, standard error and exit codes."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tcpcast
from tcpcast.answer import Answer, Status
from tcpcast.cli import main
from tcpcast.engines import RunOptions
from tcpcast.process.errors import MachineError, NotApplicable
from tcpcast.scenario import Scenario, read_packaged_text

from cli.made_up import calculated, simulated

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("synthetic_engines")


def test_table_goes_to_stdout(capsys: Capture) -> None:
    assert main(["run", "web-10mbit", "--engine", "engset,packet"]) == 0
    out, err = capsys.readouterr()
    assert "vs packet" in out
    assert "158.2" in out
    assert err == ""


def test_json_goes_to_stdout_and_warnings_to_stderr(capsys: Capture) -> None:
    assert main(["run", "web-10mbit", "--engine", "engset,pftk,packet", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [a["engine"] for a in document["answers"]] == ["engset", "pftk", "packet"]
    assert document["scenario"]["traffic"]["sources"] == 134
    assert err.splitlines() == [
        "tcpcast: engset: loss is above 1 %",
        "tcpcast: pftk: it needs bulk flows",
        "tcpcast: packet: only 3 timeouts were seen",
    ]


def test_scenario_is_read_from_standard_input(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = read_packaged_text("web-10mbit")
    for file in ("web-10mbit", "-"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["run", file, "--print-scenario", "--set", "traffic.sources=98"]) == 0
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]
    monkeypatch.setattr("sys.stdin", io.StringIO("rtt = 50ms"))
    assert main(["run", "-"]) == 2
    assert capsys.readouterr().err.startswith("tcpcast: standard input:1:9: not TOML")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert main(["run", "-"]) == 2
    assert "standard input: must be text" in capsys.readouterr().err


def test_run_with_only_inapplicable_engine_exits_2(capsys: Capture) -> None:
    assert main(["run", "web-10mbit", "--engine", "pftk", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["answers"] == [
        {
            "engine": "pftk",
            "not_applicable": "it needs bulk flows; use the packet engine",
            "reason": "it needs bulk flows",
            "suggestions": [{"engine": "packet"}],
        }
    ]
    assert "it needs bulk flows" in err


def test_run_exits_2_if_no_engine_applies(capsys: Capture, install: Callable[..., None]) -> None:
    def refuse(*_: object) -> Answer:
        raise NotApplicable("not in this weather")

    install(sundial=refuse)
    assert main(["run", "web-10mbit"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "sundial: not in this weather" in err


def test_incomplete_answer_is_printed_and_exits_1(
    capsys: Capture, install: Callable[..., None]
) -> None:
    def incomplete_answer(*_: object) -> Answer:
        answer = simulated()
        answer.mark_incomplete("the precision of 1 % was not reached within 1 s")
        return answer

    install(packet=incomplete_answer)
    assert main(["run", "web-10mbit"]) == 1
    assert "precision of 1 % was not reached" in capsys.readouterr().out
    assert main(["run", "web-10mbit", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["answers"][0]["incomplete_reason"].startswith("the precision")
    assert "precision of 1 % was not reached" in err


def test_interrupted_run_prints_completed_part_and_exits_130(
    capsys: Capture, install: Callable[..., None]
) -> None:
    def interrupted(*_: object) -> Answer:
        answer = simulated()
        answer.mark_incomplete("interrupted after 2 of 4 replications", Status.INTERRUPTED)
        return answer

    install(packet=interrupted, engset=lambda *_: calculated())
    assert main(["run", "web-10mbit", "--engine", "packet,engset"]) == 130
    out = capsys.readouterr().out
    assert "158.2" in out
    assert "interrupted after 2 of 4 replications" in out
    assert "engset" not in out


def test_interrupt_before_first_answer_exits_130(
    capsys: Capture, install: Callable[..., None]
) -> None:
    def raise_interrupt(*_: object) -> Answer:
        raise KeyboardInterrupt

    install(packet=raise_interrupt)
    assert main(["run", "web-10mbit"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "tcpcast: interrupted before there was an answer\n"


def test_machine_error_exits_3(capsys: Capture, install: Callable[..., None]) -> None:
    def raise_machine_error(*_: object) -> Answer:
        raise MachineError("the native module is not built: make setup")

    install(packet=raise_machine_error)
    assert main(["run", "web-10mbit"]) == 3
    assert capsys.readouterr().err == "tcpcast: the native module is not built: make setup\n"


def test_set_seed_and_threads_reach_engine(install: Callable[..., None]) -> None:
    calls: list[tuple[Scenario, RunOptions]] = []

    def record_call(scenario: Scenario, options: RunOptions) -> Answer:
        calls.append((scenario, options))
        return simulated()

    install(packet=record_call)
    changes = ["--set", "traffic.sources=98", "--set", "network.bottleneck.buffer=300pkt"]
    assert main(["run", "web-10mbit", *changes, "--seed", "7", "--threads", "2"]) == 0
    scenario, options = calls[0]
    assert scenario.populations[0].count == 98
    assert scenario.network.bottleneck.buffer.amount == 300
    assert scenario.run.seed == 7
    assert options.threads == 2


@pytest.mark.parametrize("name", ["web-10mbit", "lossy-path"])
def test_printed_scenario_can_be_run(name: str, capsys: Capture, tmp_path: Path) -> None:
    assert main(["run", name, "--set", "run.seed=5", "--print-scenario"]) == 0
    shown = capsys.readouterr().out
    file = tmp_path / "shown.toml"
    file.write_text(shown, encoding="utf-8")
    reloaded = tcpcast.load(str(file))
    assert reloaded.digest() == tcpcast.load(name).with_changes({"run.seed": 5}).digest()
    assert main(["run", str(file), "--print-scenario"]) == 0
    assert capsys.readouterr().out == shown


def test_printed_json_scenario_equals_scenario_in_answer(capsys: Capture) -> None:
    assert main(["run", "web-10mbit", "--print-scenario", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main(["run", "web-10mbit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenario"] == shown


def test_plot_writes_figures_and_prints_paths(capsys: Capture, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "figures"
    assert main(["run", "web-10mbit", "--plot", str(folder), "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert sorted(p.name for p in folder.iterdir()) == ["queue.png", "sharing.png", "states.png"]
    assert f"wrote {folder / 'states.png'}" in err


@pytest.mark.usefixtures("synthetic_engines")
def test_csv_has_row_per_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "web-10mbit", "--engine", "engset,packet,pftk", "--csv"]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(out.splitlines()))
    assert list(rows[0]) == [
        *(
            "engine",
            "class",
            "metric",
            "value",
            "low",
            "high",
            "unit",
            "trusted",
            "interval_warning",
        )
    ]
    by_metric = {(row["engine"], row["metric"]): row for row in rows}
    rate = by_metric["packet", "connection_rate_bps"]
    assert [rate[name] for name in ("value", "low", "high", "unit")] == [
        *("158213.1", "156900.0", "159526.2", "bit/s")
    ]
    assert "pftk: it needs bulk flows" in err
    assert not any(row["engine"] == "pftk" for row in rows)
