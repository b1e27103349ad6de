"""Errors of plugin engines: each message names the engine."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast import Answer, Metric
from tcpcast.answer import texts_to_notes
from tcpcast.engines import RunOptions, plugins
from tcpcast.errors import MachineError, NotApplicable, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Callable


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


def answer_with(metric: Any, name: str = "goodput_bps", **more: Any) -> Answer:
    return Answer("own", metrics={name: metric}, **more)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "returned NoneType; it must return tcpcast.Answer"),
        (
            answer_with(5.0),
            r"returned float for goodput_bps; it must return tcpcast.Metric\(value\)",
        ),
        (answer_with(Metric("many")), 'returned "many" for goodput_bps; it must be a number'),  # type: ignore[arg-type]
        (answer_with(Metric(True)), "returned true for goodput_bps"),
        (answer_with(Metric(float("nan"))), "returned nan for goodput_bps; omit"),
        (answer_with(Metric(float("inf"))), "returned inf for goodput_bps; omit"),
        (answer_with(Metric(1.0, 0.5, float("inf"))), "returned inf for goodput_bps"),
        (answer_with(Metric(-5.0)), "returned -5.0 for goodput_bps; it must be 0 or more"),
        (
            answer_with(Metric(5.0), "loss_ratio"),
            "returned 5.0 for loss_ratio; a share must be at most 1",
        ),
        (
            answer_with(Metric(1.0), "a" * 10**6),
            'named a metric "a+...; a name has at most 60 characters',
        ),
        (
            answer_with(Metric(1.0, unit="a" * 10**6), "own"),
            "named a unit .* at most 60 characters",
        ),
        (answer_with(Metric("a" * 10**6)), r"returned \"a+\.\.\. for goodput_bps"),  # type: ignore[arg-type]
        (answer_with(Metric(1.0, 0.9, 0.1)), "returned the interval 0.9 to 0.1 for goodput_bps"),
        (answer_with(Metric(1.0, 0.9)), "returned the interval 0.9 to None for goodput_bps"),
        (
            answer_with(Metric(1.0, unit="Mbit/s")),
            "returned goodput_bps in Mbit/s; the unit of this metric must be bit/s",
        ),
        (
            answer_with(Metric(1.0), "a\x1b[31mb"),
            r'named a metric "a\\u001b\[31mb"; a name consists of letters',
        ),
        (
            answer_with(Metric(1.0), notes="too long"),
            "returned notes that are not a list of tcpcast.Note",
        ),
        (
            answer_with(Metric(1.0), notes=None),
            "returned notes that are not a list of tcpcast.Note",
        ),
        (answer_with(Metric(1.0), notes=[1]), "returned notes that are not a list of tcpcast.Note"),
        (answer_with(Metric(1.0), tables=[1]), "returned tables that are not in a dict"),
        (
            answer_with(Metric(1.0), tables={"a": 5}),
            "returned table a that is not a dict of columns",
        ),
        (answer_with(Metric(1.0), tables={5: {}}), "named a table 5; a name must be a string"),
        (
            answer_with(Metric(1.0), tables={"a": {5: [1]}}),
            "named a column 5; a name must be a string",
        ),
        (
            answer_with(Metric(1.0), tables={"a": {"b": [[1], [1, 2]]}}),
            "returned table a with a column b that is not a list of numbers or strings",
        ),
        (
            answer_with(Metric(1.0), tables={"a": {"b": [object()]}}),
            "column b that is not a list of numbers",
        ),
        (
            answer_with(Metric(1.0), tables={"a": {"b": [10**400]}}),
            "column b that is not a list of numbers",
        ),
        (Answer("own", metrics=[1.0]), "returned metrics that are not in a dict"),  # type: ignore[arg-type]
        (answer_with(Metric(10**400)), "returned a number for goodput_bps that is too large"),
        (
            answer_with(Metric(1.0, unit=5)),  # type: ignore[arg-type]
            "returned a unit or interval_warning of goodput_bps that is not a string",
        ),
        (answer_with(Metric(1.0), regime=5), "returned a value of regime that is not a text"),
        (answer_with(Metric(1.0), provenance=5), "returned provenance that are not in a dict"),
        (
            answer_with(Metric(1.0), provenance={"a": object()}),
            "an answer that cannot be converted to JSON",
        ),
        (
            answer_with(Metric(1.0), tables={"queue": {"a": [1, 2], "b": [1]}}),
            r"table queue with columns of unequal length: a \(2,\), b \(1,\)",
        ),
    ],
)
def test_invalid_plugin_answer_is_rejected(
    given: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TcpcastError, match=f"^engine 'own' of another package .*{words}"):
        run_plugin(given, monkeypatch)


def test_numpy_numbers_and_lists_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"goodput_bps": Metric(np.float32(2.0)), "heaps": Metric(np.int64(3))}  # type: ignore[arg-type]
    given = Answer("own", metrics=metrics, tables={"steps": {"t_s": [0.0, 1.0]}})  # type: ignore[dict-item]
    answer = run_plugin(given, monkeypatch, metrics={"heaps": "heap"})
    assert type(answer["goodput_bps"]) is type(answer["heaps"]) is float
    assert answer.metrics["heaps"].unit == "heap"
    assert answer.tables["steps"]["t_s"].shape == (2,)


def test_plugin_check_runs_without_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_flow(scenario: tcpcast.Scenario) -> None:
        print("not for standard output")
        if scenario.senders > 1:
            raise NotApplicable("it has one flow")

    def must_not_run(*_: Any) -> Answer:
        raise AssertionError

    row = make_entry(must_not_run, monkeypatch, check=one_flow)
    row.raise_if_unsupported(tcpcast.load("bufferbloat"))
    with pytest.raises(NotApplicable, match="it has one flow"):
        row.raise_if_unsupported(tcpcast.load("data-centre"))
    with pytest.raises(MachineError, match="failed: AssertionError"):
        make_entry(must_not_run, monkeypatch, check=must_not_run).raise_if_unsupported(
            tcpcast.load("bufferbloat")
        )
    with pytest.raises(NotApplicable, match="only by running it"):
        make_entry(lambda *_: None, monkeypatch).raise_if_unsupported(tcpcast.load("bufferbloat"))


def test_plugin_model_accepts_scenarios_with_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    function: Callable[..., float] = lambda rtt_s: 1 / rtt_s  # noqa: E731
    point = metadata.EntryPoint("own", "own:function", plugins.MODEL_GROUP)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: function)
    row = plugins.import_plugin(point)
    row.raise_if_unsupported(tcpcast.load("lossy-path"))
    with pytest.raises(NotApplicable):
        row.raise_if_unsupported(tcpcast.load("two-classes"))


def test_plugin_exception_is_reported_with_file_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Answer:
        raise ValueError("inside")

    with pytest.raises(MachineError, match=rf"failed: ValueError: inside \({__file__}, line"):
        make_entry(broken, monkeypatch).run(tcpcast.load("one-path"), RunOptions(), None)


class UnreadableError(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError


class UnreadableRefusalError(UnreadableError, TcpcastError):
    """An error of tcpcast whose text cannot be read."""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (UnreadableError(), r"UnreadableError: \(its text cannot be read\)"),
        (UnreadableRefusalError(), r"UnreadableRefusalError: \(its text cannot be read\)"),
        (ValueError("a" * 10**6), r"ValueError: a+\.\.\."),
        (NotApplicable("a" * 10**6), r"NotApplicable: a+\.\.\."),
    ],
)
def test_text_of_plugin_exception_is_shortened(
    fault: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Answer:
        raise fault

    with pytest.raises(MachineError, match=f"failed: {words} ") as caught:
        make_entry(broken, monkeypatch).run(tcpcast.load("one-path"), RunOptions(), None)
    assert len(str(caught.value)) < 1000


class Broken(Answer):
    """An answer whose metrics cannot be read."""

    @property
    def metrics(self) -> Any:
        """Raise."""
        raise RuntimeError("inside")

    @metrics.setter
    def metrics(self, _: Any) -> None: ...


def test_unreadable_plugin_answer_is_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match="failed: RuntimeError: inside"):
        run_plugin(Broken("own"), monkeypatch)


def test_long_plugin_warnings_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run_plugin(
        answer_with(Metric(1.0, interval_warning="a" * 10**6), notes=texts_to_notes(["b" * 10**6])),
        monkeypatch,
    )
    assert [len(text) for text in answer.warnings] == [500]
    assert len(answer.metrics["goodput_bps"].interval_warning or "") == 500


def test_custom_plugin_metric_can_be_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_plugin(answer_with(Metric(-5.0), "margin_db"), monkeypatch)["margin_db"] == -5.0


def test_plugin_can_reject_scenario_as_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Answer:
        raise NotApplicable("it needs rain")

    with pytest.raises(NotApplicable, match=r"^it needs rain$"):
        make_entry(refuses, monkeypatch).run(tcpcast.load("one-path"), RunOptions(), None)


@pytest.mark.parametrize("units", [5, {"heaps": 1}, ["heaps"]])
def test_plugin_units_must_be_dict(units: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match="the attribute metrics must be a dict"):
        make_entry(lambda: None, monkeypatch, metrics=units)
