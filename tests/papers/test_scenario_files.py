"""Scenario files of a reproduction: ``run`` repeats its simulations with the same numbers."""

import csv
import importlib
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from report_parts import Part
from tcpcast.answer import Answer
from tcpcast.cli import main
from tcpcast.scenario import Scenario, load
from tcpcast_papers import PAPERS, scenario_files
from tcpcast_papers.reproduction import Printed, Section, Tolerance
from tcpcast_papers.runner import Paper
from tcpcast_papers.simulations import RecordedRun, ResultReaders, Runs, simulate_scenario

Capture = pytest.CaptureFixture[str]
LOSSES = ("0.5%", "1%")


def scenario(loss: str) -> Scenario:
    return Scenario.from_dict(
        {
            "name": "a path",
            "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "loss": loss}},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "40s", "warmup": "5s", "seed": 3},
        }
    )


@dataclass(frozen=True)
class Bulk:
    """A flow with random loss."""

    loss: str
    weight: float = 1.0

    def run(self, progress: Callable[[float], None]) -> Answer:
        return simulate_scenario(scenario(self.loss), progress)


def rate_kbps(runs: Runs[None], loss: str) -> float:
    return runs[Bulk(loss)]["goodput_bps"] / 1e3


def rate_section(runs: Runs[None], _: Path) -> Section:
    section = runs.section("Table 1. Rates", ("loss", "quantity"))
    for loss in LOSSES:
        section.rows += runs.value((loss, "rate"), "kbit/s", rate_kbps, runs, loss)
    section.rows = [
        replace(row, published=Printed("1000"), tolerance=Tolerance(relative=10.0))
        for row in section.rows
    ]
    return section


def ratio_section(runs: Runs[None], _: Path) -> Section:
    section = runs.section("Table 2. Ratios", ("quantity",))
    first, second = LOSSES
    section.rows += runs.value(
        ("ratio",), "1", lambda: rate_kbps(runs, first) / rate_kbps(runs, second)
    )
    return section


def request(runs: Runs[None]) -> None:
    for loss in LOSSES:
        runs.request(Bulk(loss))


@pytest.fixture
def made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[..., Any]], Paper[Any, Any]]:
    """Return a function that returns a paper with these sections and two runs."""
    data = tmp_path / "paper_of_two_runs" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    (data / "accepted.csv").write_text("runs,section,row,reason\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def paper(*computed: Callable[..., Any]) -> Paper[Any, Any]:
        parts = (Part(computed, request),)
        return Paper("paper_of_two_runs", "A paper", parts, lambda _: [], Runs, None, None)

    return paper


@pytest.fixture
def command(
    made_up: Callable[..., Paper[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Return a function that reproduces a paper with two runs into ``runs`` of the folder."""
    monkeypatch.setattr(
        "tcpcast.papers.load_reproduction", lambda _: made_up(rate_section, ratio_section).reproduce
    )

    def run(*options: str) -> int:
        return main(["reproduce", "engset", "--out", "page", "--scenarios", "runs", *options])

    return run


def index(folder: Path) -> list[dict[str, str]]:
    with (folder / "index.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_run_of_a_written_file_prints_the_value_of_its_row(
    command: Callable[..., int], tmp_path: Path, capsys: Capture
) -> None:
    assert command() == 0
    assert "wrote scenarios and their index.csv to runs" in capsys.readouterr().err
    lines = index(tmp_path / "runs")
    assert [(line["file"], line["section"], line["row"]) for line in lines] == [
        ("table-1-0.5-percent-rate.toml", "Table 1", "0.5% | rate"),
        ("table-1-0.5-percent-rate.toml", "Table 2", "ratio"),
        ("table-1-1-percent-rate.toml", "Table 1", "1% | rate"),
        ("table-1-1-percent-rate.toml", "Table 2", "ratio"),
    ]
    for line in lines[::2]:
        assert (line["metric"], line["unit"], line["published"]) == (
            "goodput_bps",
            "kbit/s",
            "1000",
        )
        assert main(["run", f"runs/{line['file']}", "--engine", line["engine"], "--json"]) == 0
        (result,) = json.loads(capsys.readouterr().out)["answers"]
        own = result["metrics"]["goodput_bps"]["value"]
        assert f"{own:.9g}" == line["value"]
        assert own == pytest.approx(1e3 * float(line["own"]), rel=1e-8)


def test_files_of_an_earlier_reproduction_are_overwritten_but_not_others(
    command: Callable[..., int], tmp_path: Path, capsys: Capture
) -> None:
    assert command() == command() == 0
    own = tmp_path / "runs" / "table-1-1-percent-rate.toml"
    own.write_text("# mine\n")
    assert command() == 2
    assert f"{own.relative_to(tmp_path)} exists and is not overwritten" in capsys.readouterr().err
    assert own.read_text() == "# mine\n"
    assert command("--force") == 0
    assert load(own) == scenario("1%")


def test_foreign_index_is_rejected_before_the_simulations(
    command: Callable[..., int], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "index.csv").write_text("a,b\n")
    assert command() == 2
    assert "index.csv exists and is not overwritten" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


def test_run_belongs_to_the_section_that_reads_it(
    made_up: Callable[..., Paper[Any, Any]], tmp_path: Path
) -> None:
    def twice(runs: Runs[None], _: Path, *, number: int, loss: str) -> Section:
        section = runs.section(f"Figure {number}. Twice the rate", ("loss",))
        section.remarks = [f"{2 * rate_kbps(runs, loss)} kbit/s"]
        return section

    figures = (partial(twice, number=number, loss=loss) for number, loss in enumerate(LOSSES, 1))
    made_up(*figures).reproduce(tmp_path / "page", scenarios=tmp_path / "runs")
    lines = index(tmp_path / "runs")
    assert [line["section"] for line in lines] == ["Figure 1", "Figure 2"]
    assert {(line["row"], line["own"], line["metric"]) for line in lines} == {
        ("", "", "send_rate_pps")
    }


def test_commands_of_a_cell_repeat_its_simulations(
    command: Callable[..., int],  # noqa: ARG001 - reproduces the paper with two runs
    tmp_path: Path,
    capsys: Capture,
) -> None:
    assert main(["reproduce", "engset", "--cell", "Table 1, 1%", "--scenarios", "runs"]) == 0
    out = capsys.readouterr().out
    assert "Table 2" not in out
    assert out.endswith(
        "Repeat with:\n  tcpcast run runs/table-1-1-percent-rate.toml --engine packet\n"
    )
    assert [line["row"] for line in index(tmp_path / "runs")] == ["1% | rate"]
    assert not (tmp_path / "engset-paper").exists()


def test_names_are_safe_and_unique(tmp_path: Path) -> None:
    titles = ["/Table 1. A", "Table 1. B", "/etc/passwd", "Größe: 5 %"]
    losses = ["1%", "2%", "3%"]
    section = {title: Section(title) for title in titles}
    runs = [
        (RecordedRun(scenario(loss), "packet", {}), ResultReaders([section[title]]))
        for title in titles
        for loss in losses
    ]
    # Equal scenarios have one file, in the order of the first section.
    errors: list[str] = []
    scenario_files.write(runs, tmp_path / "runs", errors)
    assert errors == []
    names = {path.name for path in (tmp_path / "runs").glob("*.toml")}
    assert names == {f"table-1-loss-{loss[0]}-percent.toml" for loss in losses}
    assert {load(tmp_path / "runs" / name) for name in names} == set(map(scenario, losses))
    other = RecordedRun(scenario("4%"), "packet", {})
    scenario_files.write([(other, ResultReaders([section[titles[3]]]))], tmp_path / "other", [])
    assert [path.name for path in (tmp_path / "other").glob("*.toml")] == ["gr-e-5-percent.toml"]


# The lightest run of dctcp has two million packets.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n == "dctcp")) for n in PAPERS]
)
def test_lightest_runs_of_a_paper_give_the_same_numbers(name: str, tmp_path: Path) -> None:
    description = importlib.import_module(f"tcpcast_papers.{name.replace('-', '_')}.description")
    runs = description.PAPER.simulations(description.PAPER.quick, 2, None)
    for part in description.PAPER.parts:
        if (wanted := getattr(part, "request", None)) is not None:
            wanted(runs)
    lightest = sorted(runs._jobs, key=lambda key: float(runs._jobs[key].weight))[:6]
    runs._jobs = {key: runs._jobs[key] for key in lightest}
    runs.simulate()
    recorded = list(runs.recorded_runs())
    errors: list[str] = []
    scenario_files.write(recorded, tmp_path, errors)
    assert errors == []
    expected: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in index(tmp_path):
        expected[line["file"]][line["metric"]] = line["value"]
    assert expected
    for run, _ in recorded:
        name_of_run = {"name": run.scenario.name}
        written = (load(tmp_path / file, changes=name_of_run) for file in expected)
        assert run.scenario in written
    for file, numbers in expected.items():
        again = load(tmp_path / file)
        engine = "fixed-point" if "fixed-point" in file else "packet"
        answer = simulate_scenario(again, lambda _: None, engine=engine)
        for metric, value in numbers.items():
            assert metric == "" or f"{answer[metric]:.9g}" == value
