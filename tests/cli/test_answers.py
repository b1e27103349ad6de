"""Results of `tcpcast.run` in Python."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer, Metric, Note, texts_to_notes, warning_severity
from tcpcast.comparison.compare import compare_all
from tcpcast.engines import RunOptions
from tcpcast.report.full_report import run_document
from tcpcast.report.load_answers import read_saved_answers
from tcpcast.report.run import remarks_below_tables
from tcpcast.report.summary import caveats_of_answer
from tcpcast.scenario import Scenario

pytestmark = pytest.mark.usefixtures("synthetic_engines")


def test_answers_are_indexed_by_engine_and_position(scenario: Scenario) -> None:
    answers = tcpcast.run(scenario, ["engset", "packet"])
    assert answers["packet"] is answers[1]
    assert answers["packet"]["loss_ratio"] == 0.04664
    assert [a.engine for a in answers] == ["engset", "packet"]
    assert answers[:1] == [answers["engset"]]
    with pytest.raises(KeyError, match="engset, packet"):
        answers["pftk"]


def test_run_uses_all_applicable_engines_by_default(scenario: Scenario) -> None:
    assert repr(tcpcast.run(scenario)) == "<Answers to web-10mbit: engset, packet>"


def test_str_of_answers_is_report_table(scenario: Scenario) -> None:
    text = str(tcpcast.run(scenario))
    assert "web-10mbit: 134 on/off sources" in text
    assert "vs packet" in text


def test_run_passes_progress_and_threads_to_engine(
    scenario: Scenario, install: Callable[..., None]
) -> None:
    shares: list[float] = []

    def report_progress(scenario: Scenario, options: RunOptions) -> Answer:
        assert options.progress is not None
        options.progress(0.5)
        return Answer(scenario.name, provenance={"threads": options.threads})

    install(packet=report_progress)
    answers = tcpcast.run(scenario, ["packet"], threads=2, progress=shares.append)
    assert shares == [0.5]
    assert answers[0].provenance == {"threads": 2}


def test_run_rejects_unknown_engine(scenario: Scenario) -> None:
    with pytest.raises(tcpcast.UnknownEngine, match="packet"):
        tcpcast.run(scenario, ["pakcet"])


def test_html_has_one_table_with_all_metrics(scenario: Scenario) -> None:
    answers = tcpcast.run(scenario, ["engset", "packet", "pftk"])
    answers["packet"].warn("a < b & c")
    root = ElementTree.fromstring(f"<div>{answers._repr_html_()}</div>")
    table = root.find("div/table")
    assert table is not None
    heads = ["".join(cell.itertext()) for cell in table.iter("th") if cell.get("scope") == "col"]
    assert heads == ["", "unit", "engsetformula", "packetsimulated", "engsetvs packet"]
    rows = {r[0].get("title"): r for r in table.iter("tr") if r[0].get("title")}
    assert set(rows) == set(answers["engset"].metrics) | set(answers["packet"].metrics)
    cells = ["".join(c.itertext()) for c in rows["connection_rate_bps"]]
    assert cells == ["connection rate", "kbit/s", "154.9", "158.2 ± 1.3", "-2.1 %"]
    untrusted = rows["loss_ratio"][2]
    assert untrusted.text == "48.70†"
    assert untrusted.get("class") == "r formula dim"
    notes = ["".join(item.itertext()) for item in root.iter("p")]
    assert "! packet: a < b & c" in notes
    assert "- pftk does not apply: it needs bulk flows" in notes


def test_withheld_intervals_leave_the_other_columns_of_tables() -> None:
    kept = {"flow": [0, 1], "low_pkts": [1, 3], "goodput_bps": [2e6, 3e6], "on_time_s": [1.0, 2.0]}
    ends = ("goodput_bps_low", "goodput_bps_high", "on_time_low_s", "on_time_high_s", "low", "high")
    columns = {name: np.array(values) for name, values in kept.items()}
    table = columns | {name: np.array([1.0, 2.0]) for name in ends}
    answer = Answer("kernel", kind="measurement", metrics={}, tables={"by_flow": table})
    answer.mark_untrusted("late packets")
    marked = answer.tables["by_flow"]
    assert {name: marked[name].tolist() for name in kept} == kept
    assert all(np.isnan(marked[name]).all() for name in ends)
    assert marked["goodput_bps_interval_warning"].tolist() == ["late packets"] * 2


def test_interval_warning_lists_affected_metrics() -> None:
    warning = Note(
        "the run is too short; check the intervals of ", ("a_s", "b_s"), kind="check", named=True
    )
    quantile = Note(
        "too few files; no interval for the goodput that 95 % reach",
        ("file_goodput",),
        kind="withheld",
    )
    notes = [warning, quantile, *texts_to_notes(["look twice"])]
    answer = Answer("packet", notes=notes, write_errors=["no room"])
    assert list(map(str, caveats_of_answer(answer))) == [
        "the run is too short; check the intervals of a_s, b_s",
        "too few files; no interval for the goodput that 95 % reach",
        *("look twice", "no room"),
    ]
    assert str(warning.limited_to({"b_s", "c_s"})) == (
        "the run is too short; check the intervals of b_s"
    )
    assert warning.limited_to({"c_s"}) is None
    assert str(min(caveats_of_answer(answer), key=warning_severity)) == "no room"
    copied = pickle.loads(pickle.dumps(warning))
    assert (copied, copied.metrics) == (warning, ("a_s", "b_s"))


def warned_answer() -> Answer:
    shown, hidden = "loss_ratio", "timeouts"
    warnings = [
        Note("too few timeouts; no interval for ", (hidden,), kind="withheld", named=True),
        Note("too few losses; no interval for ", (shown, hidden), kind="withheld", named=True),
        Note("the trace is repeated", kind="remark"),
        Note("too short; check the intervals of ", (shown,), kind="check", named=True),
        Note("the run is too short; check every interval", kind="run"),
        *texts_to_notes(["the link is a mean"]),
    ]
    metrics = {name: Metric(0.1, 0.09, 0.11) for name in (shown, hidden)}
    return Answer("packet", metrics=metrics, notes=warnings, kind="simulation")


def test_report_shows_three_worst_warnings_of_shown_metrics() -> None:
    compared, scenario = compare_all([warned_answer()]), tcpcast.load("local-loop")
    assert [part.text for part in remarks_below_tables(compared, scenario)] == [
        "packet: the link is a mean",
        "packet: the run is too short; check every interval",
        "packet: too short; check the intervals of loss_ratio",
        "3 more warnings with --all",
    ]
    every = [part.text for part in remarks_below_tables(compared, scenario, show_all=True)]
    assert every == [f"packet: {text}" for text in warned_answer().warnings]
    document = run_document(compared, scenario, "tcpcast report")
    texts = [getattr(part, "text", "") for part in document.parts]
    assert "3 more warnings below" in texts
    rest = texts[texts.index("More warnings") :]
    assert "packet: too few timeouts; no interval for timeouts" in rest
    assert warned_answer().to_json()["warnings"] == list(warned_answer().warnings)


def test_saved_answers_keep_notes(tmp_path: Path) -> None:
    scenario = tcpcast.load("local-loop", changes={"run.duration": "200s"})
    answers = tcpcast.run(scenario, ["packet"])
    answers[0].notes = warned_answer().notes
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(answers.to_json()))
    (read,) = read_saved_answers(path)
    assert read.notes == answers[0].notes
