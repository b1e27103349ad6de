"""The playground of the documentation: its WebAssembly module returns what the native one does."""

import json
import math
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from doc_pages import ROOT
from tcpcast import _native

FOLDER = ROOT / "docs" / "playground"
MODULE = ROOT / "target" / "wasm32-unknown-unknown" / "playground" / "tcpcast_wasm.wasm"
MAX_BYTES = 3_000_000

BUILD = runpy.run_path(str(FOLDER / "build.py"))
EXPERIMENTS = runpy.run_path(str(FOLDER / "experiments.py"))
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS["EXPERIMENTS"]}

HARNESS = """
const modules = {"elements.js": {}, "drawing.js": {}, "plot.js": {}};
PAGE
const { simulate, requestAt, place } = modules["playground.js"];
const [module, ...arguments_] = process.argv.slice(1);
const { experiment, indices } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const runs = indices.map((index) => ({ request: requestAt(experiment, index) }));
const started = experiment.sliders.map((slider) => slider.start);
if (!module) console.log(JSON.stringify({ runs, start: place(experiment, started) }));
else WebAssembly.instantiate(require("fs").readFileSync(module)).then(({ instance }) => {
  for (const run of runs) run.answer = simulate(instance.exports, run.request);
  console.log(JSON.stringify({ runs }));
});
"""


@pytest.fixture(scope="module")
def plain() -> dict[str, dict[str, Any]]:
    """Return the data of the page, by experiment."""
    return {each["name"]: each for each in EXPERIMENTS["data"]()}


def in_node(experiment: dict[str, Any], indices: list[int], module: Path | None = None) -> Any:
    """Run the code of the page on combinations of slider positions."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    page = HARNESS.replace("PAGE", BUILD["as_function"](FOLDER / "playground.js"))
    run = subprocess.run(
        [node, "-e", page, "--", *([str(module)] if module else [])],
        input=json.dumps({"experiment": experiment, "indices": indices}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", BY_NAME)
def test_page_requests_the_scenario_of_each_position(name: str, plain: dict[str, Any]) -> None:
    scenarios = BY_NAME[name].combinations()
    indices = list(range(0, len(scenarios), 7))
    found = in_node(plain[name], indices)
    expected = [EXPERIMENTS["request"](scenarios[index]) for index in indices]
    assert [run["request"] for run in found["runs"]] == json.loads(json.dumps(expected))
    positions = [list(slider.positions).index(slider.start) for slider in BY_NAME[name].sliders]
    lengths = [len(slider.positions) for slider in BY_NAME[name].sliders]
    start = sum(at * math.prod(lengths[i + 1 :]) for i, at in enumerate(positions))
    assert found["start"] == start


@pytest.mark.parametrize("name", BY_NAME)
def test_wasm_returns_the_integers_of_the_native_module(name: str, plain: dict[str, Any]) -> None:
    if not MODULE.exists():
        pytest.skip("needs the target wasm32-unknown-unknown of Rust: make playground")
    count = len(plain[name]["facts"])
    for run in in_node(plain[name], [0, count // 2, count - 1], MODULE)["runs"]:
        native = _native.Simulation(run["request"]["config"], 1)
        native.advance(transfers=None, until_ns=run["request"]["until_ns"], threads=1)
        answer, traces = run["answer"], native.traces()
        stale = "the module differs from the native one: make playground"
        assert answer["course"] == native.time_series()[0].tolist(), stale
        assert answer["counters"] == native.counters()[0][-1].tolist(), stale
        assert answer["course_cells"] == _native.TIME_SERIES_CELLS
        assert answer["link_cells"] == _native.LINK_CELLS
        assert answer["class_cells"] == _native.CLASS_CELLS
        assert answer["windows"]["time_ns"] == traces["window_time_ns"].tolist()
        assert answer["windows"]["flow"] == traces["window_flow"].tolist()
        for column in ("cwnd", "ssthresh", "flight"):
            assert answer["windows"][column] == traces[column].tolist(), stale


def test_wasm_names_the_wrong_key(plain: dict[str, Any]) -> None:
    if not MODULE.exists():
        pytest.skip("needs the target wasm32-unknown-unknown of Rust: make playground")
    wrong = plain["slow-start"] | {"differences": [[[["config", "queue"], "none"]]]}
    with pytest.raises(subprocess.CalledProcessError) as error:
        in_node(wrong, [0], MODULE)
    assert "config.queue" in error.value.stderr


def test_script_is_below_three_megabytes(plain: dict[str, Any]) -> None:
    if not MODULE.exists():
        pytest.skip("needs the target wasm32-unknown-unknown of Rust: make playground")
    script = BUILD["script"](MODULE.read_bytes(), list(plain.values()), EXPERIMENTS["templates"]())
    assert len(script.encode()) < MAX_BYTES


def test_bundling_rejects_an_unknown_form_of_import(tmp_path: Path) -> None:
    module = tmp_path / "page.js"
    module.write_text('import * as all from "./other.js";\nexport * from "./other.js";\n')
    with pytest.raises(ValueError, match="not supported"):
        BUILD["as_function"](module)


CALCULATOR = """
const modules = {"elements.js": {}, "drawing.js": { amount: (value, unit) => [value, unit] }};
modules["playground.js"] = {};
PAGE
const { requestFor, readFields, timeOf } = modules["calculator.js"];
const { template, texts, answer } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const { values, error } = readFields(texts);
const request = values && requestFor(template, values);
console.log(JSON.stringify({ error, request, time: answer && timeOf(answer, 2500, 1000) }));
"""


def calculate(**texts: str) -> Any:
    """Return the request of the calculator for texts in its fields, or the error."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    page = CALCULATOR.replace("PAGE", BUILD["as_function"](FOLDER / "calculator.js"))
    fields = {"rtt": "50", "rate": "100", "loss": "0", "buffer": "1", "flows": "1"} | texts
    answer = {
        "course_cells": ["delivered", "lacking_bytes"],
        "course": [[0, 0, 0, 0], [10**9, 0, 2, 0], [2 * 10**9, 0, 3, 0]],
    }
    given = {"template": EXPERIMENTS["templates"]()["linux-cubic"], "texts": fields}
    run = subprocess.run(
        [node, "-e", page],
        input=json.dumps(given | {"answer": answer}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("texts", "changes"),
    [
        ({}, {}),
        ({"rtt": "120.5"}, {"network.rtt": "120.5ms", "run.duration": "48.2s"}),
        (
            {"rate": "7.3", "buffer": "2.5", "loss": "0.3"},
            {
                "network.bottleneck.rate": "7.3mbit",
                "network.bottleneck.buffer": "2.5bdp",
                "network.bottleneck.loss": "0.3%",
            },
        ),
        (
            {"flows": "3", "window": "64"},
            {
                "traffic.flows": 3,
                "traffic.start": [0.0, 0.0, 0.0],
                "tcp.receiver_window": "64KiB",
            },
        ),
    ],
)
def test_calculator_requests_the_scenario_of_its_fields(
    texts: dict[str, str], changes: dict[str, Any]
) -> None:
    found = calculate(**texts)["request"]
    expected = json.loads(
        json.dumps(EXPERIMENTS["request"](EXPERIMENTS["path"]("linux-cubic", changes)))
    )
    expected["config"]["probes"]["traced"] = []
    expected["config"]["warmup_ns"] = found["until_ns"] // 4
    assert found == expected


def test_calculator_interpolates_the_time_of_a_transfer_and_states_ranges() -> None:
    assert calculate()["time"] == 1.5
    assert calculate(loss="60")["error"] == "Random loss: must be between 0 and 50 %"
