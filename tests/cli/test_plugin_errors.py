"""Errors of plugin engines: each message names the engine."""

from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import Answer, Metric
from tcpcast.engines import RunOptions, plugins
from tcpcast.process.errors import MachineError, NotApplicable, TcpcastError


def make_entry(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, **attributes: Any
) -> plugins.PluginEntry:
    for name, value in attributes.items():
        setattr(function, name, value)
    point = metadata.EntryPoint("own", "own:function", plugins.ENGINE_GROUP)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: function)
    return plugins.import_plugin(point)


def run_plugin(given: Any, monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> Answer:
    row = make_entry(lambda *_: given, monkeypatch, **attributes)
    return row.run(tcpcast.load("one-path"), RunOptions(), None)


def test_value_that_is_not_an_answer_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "^engine 'own' of another package returned NoneType; it must return tcpcast.Answer"
    with pytest.raises(TcpcastError, match=words):
        run_plugin(None, monkeypatch)


@pytest.mark.parametrize(
    "given",
    [
        Answer("own", metrics={"goodput_bps": 5.0}),  # type: ignore[dict-item]
        Answer("own", metrics={"goodput_bps": Metric("many")}),  # type: ignore[arg-type]
        Answer("own", tables={"steps": 5}),  # type: ignore[dict-item]
    ],
)
def test_answer_of_other_types_fails_with_its_error(
    given: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MachineError, match=r"^engine 'own' of another package failed: "):
        run_plugin(given, monkeypatch)


def test_numpy_numbers_and_lists_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"goodput_bps": Metric(np.float32(2.0)), "heaps": Metric(np.int64(3))}  # type: ignore[arg-type]
    given = Answer("own", metrics=metrics, tables={"steps": {"t_s": [0.0, 1.0]}})  # type: ignore[dict-item]
    answer = run_plugin(given, monkeypatch, metrics={"heaps": "heap"})
    assert type(answer["goodput_bps"]) is type(answer["heaps"]) is float
    assert answer.metrics["heaps"].unit == "heap"
    assert answer.tables["steps"]["t_s"].shape == (2,)


def test_plugin_exception_is_reported_with_file_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Answer:
        raise ValueError("inside")

    with pytest.raises(MachineError, match=rf"failed: ValueError: inside \({__file__}, line"):
        make_entry(broken, monkeypatch).run(tcpcast.load("one-path"), RunOptions(), None)


def test_plugin_can_reject_scenario_as_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Answer:
        raise NotApplicable("it needs rain")

    with pytest.raises(NotApplicable, match=r"^it needs rain$"):
        make_entry(refuses, monkeypatch).run(tcpcast.load("one-path"), RunOptions(), None)


@pytest.mark.parametrize("units", [5, {"heaps": 1}, ["heaps"]])
def test_plugin_units_must_be_dict(units: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match="the attribute metrics must be a dict"):
        make_entry(lambda: None, monkeypatch, metrics=units)
