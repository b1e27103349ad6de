"""Engines: ways to answer a scenario. Adding one is adding a row here and a file beside it."""

from __future__ import annotations

import difflib
import importlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.answer import Answer
from tcpcast.errors import NotApplicable, UnknownEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.scenario import Scenario


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run, as opposed to what: nothing here may change a figure.

    ``threads`` is the number of worker threads (None: one a core, at most one a replication);
    ``progress`` is called with the share done, from 0 to 1.
    """

    threads: int | None = None
    progress: Callable[[float], None] | None = None


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """A row of the registry: where the engine lives, what it is, when it applies."""

    module: str
    function: str
    summary: str
    applies: str
    quick: bool = True

    def load(self) -> Callable[[Scenario, RunOptions], Answer]:
        """Import the engine; formulas and the simulator are not imported before they are used."""
        function: Callable[[Scenario, RunOptions], Answer] = getattr(
            importlib.import_module(self.module), self.function
        )
        return function


REGISTRY: dict[str, EngineEntry] = {
    "engset": EngineEntry(
        "tcpcast.engines.formula",
        "engset",
        "TCP-Engset model, revisited: closed form for on/off sources sharing a link",
        "one class of on/off sources, a bottleneck with a rate, Reno or NewReno, no random loss",
    ),
    "packet": EngineEntry(
        "tcpcast.engines.packet",
        "packet",
        "exact packet-level simulation",
        "every scenario with a bottleneck rate or a limited receiver window",
    ),
}


def answer(
    scenario: Scenario, engines: Sequence[str] | None = None, options: RunOptions | None = None
) -> list[Answer]:
    """Answer a scenario by each named engine, in the order asked.

    An engine that does not apply gives an answer that says so when it was asked for by name, and
    none when ``engines`` is None (every engine that applies and is quick).

    Raises
    ------
    UnknownEngine
        A name that is not in the registry, with the nearest one that is.
    """
    names = list(engines) if engines is not None else [n for n, e in REGISTRY.items() if e.quick]
    for name in names:
        _check_name(name)
    answers = []
    for name in names:
        engine = REGISTRY[name].load()
        started = time.perf_counter()
        try:
            result = engine(scenario, options or RunOptions())
        except NotApplicable as reason:
            if engines is None:
                continue
            result = Answer(engine=name, not_applicable=str(reason))
        else:
            said = [text for text in scenario.warnings() if text not in result.warnings]
            result.warnings = [*said, *result.warnings]
        result.wall_s = time.perf_counter() - started
        answers.append(result)
        if result.interrupted:
            break
    return answers


def _check_name(name: str) -> None:
    if name in REGISTRY:
        return
    near = difflib.get_close_matches(name, REGISTRY, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UnknownEngine(f"no engine '{name}'{hint} There are: {', '.join(REGISTRY)}.")
