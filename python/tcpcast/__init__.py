"""tcpcast: what will TCP do here? One scenario, many ways to answer it, one kind of answer."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in typing, which takes a while: Ctrl-C would find the command unready
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from typing import Any, NoReturn

    from tcpcast.answer import Answer, Metric, Note, Status
    from tcpcast.captures import Capture, trace
    from tcpcast.errors import (
        CaptureError,
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
    "run",
    "sweep",
    "trace",
]

_HOMES = {
    "Answer": "tcpcast.answer",
    "Metric": "tcpcast.answer",
    "Note": "tcpcast.answer",
    "Status": "tcpcast.answer",
    "Answers": "tcpcast.report.answers",
    "Capture": "tcpcast.captures",
    "trace": "tcpcast.captures",
    "Scenario": "tcpcast.scenario",
    "load": "tcpcast.scenario",
    "sweep": "tcpcast.sweeps",
    **dict.fromkeys(
        [
            "CaptureError",
            "DomainError",
            "MachineError",
            "NotApplicable",
            "ScenarioError",
            "TcpcastError",
            "UnitError",
            "UnknownEngine",
            "UnknownMetric",
        ],
        "tcpcast.errors",
    ),
}


def __getattr__(name: str) -> Any:
    """Import what is exported at its first use: ``import tcpcast`` alone stays light."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - reads files

        found = globals()[name] = version("tcpcast")
        return found
    if name not in _HOMES:
        raise AttributeError(f"module 'tcpcast' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "__version__"])


def run(  # noqa: PLR0913 - how to run, by name
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
    """Answer a scenario by each named engine.

    Parameters
    ----------
    scenario
        The question: from :func:`load`, built as a :class:`Scenario`, or what :func:`load` takes,
        the name of a packaged scenario or a file.
    engines
        Names as ``tcpcast engines`` lists them, such as ``["engset", "packet"]``, or one name.
        None: every engine that applies and is quick, but for models of another stack's TCP.
    threads
        Worker threads of the simulator, 1 or more; None takes one a core. The figures do not depend
        on it.
    progress
        Called with the share done, 0 to 1, of the engine that is running.
    feed
        What formulas of one path are fed: ``"scenario"``, the loss, RTT and least timeout asked
        for; ``"measured"``, those of a simulation, which is run and answers too.

    force
        Whether files of ``[[probes.pcap]]`` may replace files that exist.
    over_time
        Whether the answer of ``packet`` has the tables from which :meth:`Answers.plot` draws the
        whole run over time and the distribution of completion times.
    accept_late
        Whether ``kernel`` continues although this machine is too busy for its link: its results are
        then marked as not trusted. Otherwise it ends after some seconds.

    Returns
    -------
    Answers
        One answer an engine, in the order asked; index it by the engine's name.

    Raises
    ------
    ScenarioError
        No scenario, nor what :func:`load` can read.
    UnknownEngine
        A name that no engine has.
    DomainError
        ``threads`` that are no whole number from 1.
    NotApplicable
        No engine was named and none applies; the message says why for each.
    TcpcastError
        A feed of another name.
    """
    from tcpcast.engines import RunOptions, answer  # noqa: PLC0415 - as in __getattr__
    from tcpcast.report.answers import Answers  # noqa: PLC0415
    from tcpcast.scenario import Scenario, load  # noqa: PLC0415

    asked = scenario if isinstance(scenario, Scenario) else load(scenario)
    options = RunOptions(
        threads=threads,
        progress=progress,
        force=force,
        over_time=over_time,
        accept_late=accept_late,
    )
    answers = answer(asked, engines, options, feed=feed)
    if not answers and engines is None:
        _refuse(asked)
    return Answers(answers, asked)


def _refuse(scenario: Scenario) -> NoReturn:
    """Raise NotApplicable with each engine's reason."""
    from tcpcast.engines import REGISTRY, answer  # noqa: PLC0415
    from tcpcast.errors import NotApplicable  # noqa: PLC0415

    refusals = answer(scenario, [name for name, entry in REGISTRY.items() if entry.quick])
    why = "; ".join(f"{a.engine}: {a.not_applicable}" for a in refusals)
    raise NotApplicable(f"no engine can answer this scenario. {why}")
