"""tcpcast predicts TCP performance: several engines answer the same scenario."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # without importing typing, which is slow and delays Ctrl-C handling
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any

    from tcpcast.answer import Answer, Metric, Note, Status
    from tcpcast.captures import Capture, trace
    from tcpcast.control import CongestionControl, register_control
    from tcpcast.process.errors import (
        CaptureError,
        ControlError,
        DomainError,
        MachineError,
        NotApplicable,
        ScenarioError,
        TcpcastError,
        UnitError,
        UnknownEngine,
        UnknownMetric,
    )
    from tcpcast.report.answers import Answers
    from tcpcast.scenario import Scenario, load
    from tcpcast.sweeps import sweep

    __version__: str

__all__ = [
    "Answer",
    "Answers",
    "Capture",
    "CaptureError",
    "CongestionControl",
    "ControlError",
    "DomainError",
    "MachineError",
    "Metric",
    "NotApplicable",
    "Note",
    "Scenario",
    "ScenarioError",
    "Status",
    "TcpcastError",
    "UnitError",
    "UnknownEngine",
    "UnknownMetric",
    "load",
    "register_control",
    "run",
    "sweep",
    "trace",
]

_MODULE_BY_NAME = {
    "Answer": "tcpcast.answer",
    "Metric": "tcpcast.answer",
    "Note": "tcpcast.answer",
    "Status": "tcpcast.answer",
    "Answers": "tcpcast.report.answers",
    "Capture": "tcpcast.captures",
    "CongestionControl": "tcpcast.control",
    "register_control": "tcpcast.control",
    "trace": "tcpcast.captures",
    "Scenario": "tcpcast.scenario",
    "load": "tcpcast.scenario",
    "sweep": "tcpcast.sweeps",
    **dict.fromkeys(
        [
            "CaptureError",
            "ControlError",
            "DomainError",
            "MachineError",
            "NotApplicable",
            "ScenarioError",
            "TcpcastError",
            "UnitError",
            "UnknownEngine",
            "UnknownMetric",
        ],
        "tcpcast.process.errors",
    ),
}


def __getattr__(name: str) -> Any:
    """Import exports at their first use, so that ``import tcpcast`` is fast."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reads files

        number = globals()[name] = version("tcpcast")
        return number
    if name == "networks":
        return importlib.import_module("tcpcast.networks")
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'tcpcast' has no attribute '{name}'")
    value = getattr(importlib.import_module(_MODULE_BY_NAME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_BY_NAME, "__version__"])


def run(  # noqa: PLR0913 - options of the run, by keyword
    scenario: Scenario | str | PathLike[str],
    engines: str | Sequence[str] | None = None,
    *,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
    feed: str = "scenario",
    force: bool = False,
    over_time: bool = False,
    accept_late: bool = False,
) -> Answers:
    """Run engines on a scenario, and return their answers.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or an argument of :func:`load`: the name of a packaged scenario, or a
        file.
    engines
        Names as ``tcpcast engines`` lists them, such as ``["engset", "packet"]``, or one name.
        None: every applicable engine that runs by default, except for models of another stack.
    threads
        Worker threads of the simulator, 1 or more; None: one per core. Results do not depend on it.
    progress
        Called with the finished share, 0 to 1, of the running engine.
    feed
        Source of the inputs of path formulas. ``"scenario"`` means the specified loss, RTT and
        minimum RTO. ``"measured"`` means the values of a simulation, whose answer is also returned.

    force
        Whether files of ``[[probes.pcap]]`` may overwrite existing files.
    over_time
        Whether the answer of ``packet`` contains the tables from which :meth:`Answers.plot` draws
        the run over time and the distribution of completion times.
    accept_late
        Whether ``kernel`` continues if this machine is too busy to emulate its link on time; the
        results are then marked as untrusted. Otherwise, ``kernel`` stops after some seconds.

    Returns
    -------
    Answers
        One answer per engine, in the given order; index it by the engine's name.

    Raises
    ------
    ScenarioError
        ``scenario`` is neither a scenario nor a valid argument of :func:`load`.
    UnknownEngine
        An engine name is unknown.
    DomainError
        ``threads`` is not an integer of at least 1.
    NotApplicable
        No engine was named and none applies; the message contains the reasons.
    TcpcastError
        The value of ``feed`` is unknown.
    """
    from tcpcast.engines import REGISTRY, RunOptions, answer  # noqa: PLC0415 - as in __getattr__
    from tcpcast.process.errors import NotApplicable  # noqa: PLC0415
    from tcpcast.report.answers import Answers  # noqa: PLC0415
    from tcpcast.scenario import Scenario, load  # noqa: PLC0415

    resolved = scenario if isinstance(scenario, Scenario) else load(scenario)
    options = RunOptions(
        threads=threads,
        progress=progress,
        force=force,
        over_time=over_time,
        accept_late=accept_late,
    )
    answers = answer(resolved, engines, options, feed=feed)
    if not answers and engines is None:
        names = [name for name, entry in REGISTRY.items() if entry.runs_by_default]
        refusals = answer(resolved, names)
        why = "; ".join(f"{a.engine}: {a.not_applicable}" for a in refusals)
        raise NotApplicable(f"no engine applies to this scenario. {why}")
    return Answers(answers, resolved)
