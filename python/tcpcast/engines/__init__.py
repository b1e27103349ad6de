"""Engines: methods that compute the answer of a scenario.

A new engine needs an entry in the registry below and a module in this package. The entries of
formulas are in :data:`tcpcast.engines.formula.FORMULAS`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Status, texts_to_notes
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.options import RunOptions as RunOptions
from tcpcast.engines.registry import (
    FIXED_POINT_FAMILY,
    MEASUREMENT_FAMILY,
    PLUGINS_FAMILY,
    POPULATION_FAMILY,
    SIMULATION_FAMILY,
    EngineEntry,
    Formula,
)
from tcpcast.process.errors import (
    MachineError,
    NotApplicable,
    Suggestion,
    TcpcastError,
    UnknownEngine,
    find_nearest_word,
)
from tcpcast.process.interrupts import raise_dropped_interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.scenario import Scenario

REGISTRY: dict[str, EngineEntry] = {
    **FORMULAS,
    "packet": EngineEntry(
        "tcpcast.engines.packet",
        "packet",
        "exact packet-level simulation",
        "every scenario with a bottleneck rate or a limited receiver window",
        SIMULATION_FAMILY,
        "within its 95 % intervals; the reference for the other engines",
        any_packet_size=True,
        has_links=True,
        plot_style=("blue", 0),
    ),
    "mean-field": EngineEntry(
        "tcpcast.engines.mean_field",
        "mean_field",
        "a simulation in which a few thousand sources represent all sources",
        "on/off sources of classic stacks on a drop-tail or fair queue; not run by default",
        POPULATION_FAMILY,
        "for populations that are too large for the packet engine; each answer warns about its "
        "limits",
        runs_by_default=False,
        plot_style=("green", 1),
    ),
    "fixed-point": EngineEntry(
        "tcpcast.engines.fixed_point",
        "fixed_point",
        "exact simulation of a few flows; all others follow distributions measured on these few",
        "on/off sources and bulk flows with stack max-plus-reno; not run by default",
        FIXED_POINT_FAMILY,
        "if it converges; otherwise the answer marks its values as not trusted, and names the "
        "failed test",
        runs_by_default=False,
        plot_style=("sky", 2),
    ),
    "kernel": EngineEntry(
        "tcpcast.engines.kernel",
        "kernel",
        "this machine's own TCP over emulated links, in real time",
        "one bottleneck, or links with routes; at most 256 senders; Linux; not run by default",
        MEASUREMENT_FAMILY,
        "within its 95 % intervals; not trusted if the machine was too busy",
        runs_by_default=False,
        any_packet_size=True,
        has_links=True,
        plot_style=("black", 3),
    ),
}

FEEDS = ("scenario", "measured")
"""Sources of the inputs of path formulas: the scenario, or the measurement by ``packet``."""


def answer(
    scenario: Scenario,
    engines: str | Sequence[str] | None = None,
    options: RunOptions | None = None,
    *,
    feed: str = "scenario",
) -> list[Answer]:
    """Answer a scenario by each named engine, in the given order.

    If ``engines`` is None, every engine is run that runs by default and covers the scenario. Models
    of another stack are left out.

    If a requested engine does not cover the scenario, its answer contains the reason. If an engine
    of another package fails and other engines were requested too, its answer contains the error.

    Parameters
    ----------
    scenario, engines, options
        The scenario, the names of engines, and the options of the run.
    feed
        Source of the inputs of path formulas: ``"scenario"``, or ``"measured"`` for p, RTT and T0
        of the simulation. ``packet`` then runs first. If ``packet`` was not requested, its answer
        is the last in the list.

    Raises
    ------
    UnknownEngine
        A name is not in the registry; the message suggests the closest one.
    TcpcastError
        Unknown feed.
    """
    if engines is None:
        names = [name for name, entry in REGISTRY.items() if entry.is_default_for(scenario)]
    else:
        names = _list_engine_names(engines)
    check_engine_names(names)
    check_feed(feed)
    options = options or RunOptions()
    answers: dict[str, Answer] = {}
    order = names
    if feed == "measured":
        names = [*names, *(["packet"] if "packet" not in names else [])]
        order = ["packet", *(name for name in names if name != "packet")]
    for name in order:
        result = _run_engine(
            name,
            scenario,
            options,
            answers.get("packet") if feed == "measured" else None,
            is_only_engine=len(order) == 1,
        )
        if not result.applies:
            others = (each for each in result.suggestions if each.engine not in order)
            result.suggestions = tuple(others) or _SUGGEST_PACKET * ("packet" not in order)
        if engines is not None or result.applies:
            answers[name] = result
        if result.interrupted:
            break
    return [answers[name] for name in names if name in answers]


def _list_engine_names(engines: str | Sequence[str]) -> list[str]:
    """Return names of engines as a list; a single name is allowed."""
    if isinstance(engines, str):
        return [name.strip() for name in engines.split(",")]
    try:
        return list(engines)
    except TypeError:
        raise UnknownEngine(
            f'engines: {engines!r} is not a name; use a name or a list such as ["engset", "packet"]'
        ) from None


def check_engine_names(names: Sequence[str]) -> None:
    """Raise UnknownEngine, with the closest name, unless each name is in the registry."""
    for name in names:
        _check_engine_name(name)


def may_simulate(engines: str | Sequence[str] | None) -> bool:
    """Return True if an engine may take longer than a formula; also for None and unknown names."""
    names = None if engines is None else _list_engine_names(engines)
    return not names or not all(isinstance(REGISTRY.get(name), Formula) for name in names)


def check_feed(feed: str) -> None:
    """Raise TcpcastError unless ``feed`` is one of :data:`FEEDS`."""
    if feed not in FEEDS:
        raise TcpcastError(f"feed must be 'scenario' or 'measured', not '{feed}'")


_SUGGEST_PACKET = (Suggestion(engine="packet"),)


def _run_engine(
    name: str,
    scenario: Scenario,
    options: RunOptions,
    measured: Answer | None,
    *,
    is_only_engine: bool,
) -> Answer:
    entry = REGISTRY[name]
    entry.load()  # so that the measured time excludes the import
    raise_dropped_interrupt()
    started = time.perf_counter()
    try:
        entry.check_network(scenario)
        result = entry.run(scenario, options, measured)
    except NotApplicable as why:
        result = Answer(name, status=Status.NOT_APPLICABLE, reason=why.reason)
        result.suggestions = why.suggestions
    except TcpcastError as error:
        if is_only_engine or entry.family != PLUGINS_FAMILY:
            raise
        result = Answer(name, status=Status.FAILED, reason=str(error))
    else:
        about = texts_to_notes(scenario.warnings(), "scenario")
        result.notes = [*about, *(note for note in result.notes if note not in about)]
    result.wall_s = time.perf_counter() - started
    return result


_HINTS_FOR_UNKNOWN_NAMES = {
    "bbr": '; the packet engine simulates the stacks "linux-bbr" and "bbr3", and '
    "'bbr-bound' is the formula for BBR.",
    "cubic": "; the packet engine simulates the stack \"linux-cubic\", and 'cubic-response' is the "
    "formula for CUBIC.",
    "reno": '; the packet engine simulates the stacks "linux-reno" and "rfc-newreno".',
    "ns2": "; the simulator is the packet engine.",
    "simul": "; the simulator is the packet engine.",
    "trace": "; to compare a capture with formulas, run: tcpcast trace FILE --models.",
}
"""Engines to suggest for unknown names, by a part of the name."""


def register_plugins() -> list[str]:
    """Add the engines and models of other packages to the registry.

    Returns
    -------
    list[str]
        Errors of engines that are left out: the package cannot be imported, or the name is taken.
    """
    from tcpcast.engines.plugins import find_plugin_entry_points  # noqa: PLC0415 - inspects all packages

    errors = []
    for name in find_plugin_entry_points():
        try:
            _register_plugin(name)
        except MachineError as error:
            errors.append(str(error))
    return errors


def _register_plugin(name: str) -> bool:
    """Add an engine of another package; return False if there is none with this name.

    Raises
    ------
    MachineError
        The package cannot be imported, or tcpcast has an engine with this name.
    """
    from tcpcast.engines import plugins  # noqa: PLC0415 - inspects all packages

    point = plugins.find_plugin_entry_points().get(name)
    if point is None:
        return False
    if not isinstance(REGISTRY.get(name), plugins.PluginEntry | None):
        raise MachineError(
            f"engine '{name}' of {point.value}: tcpcast already contains an engine with this "
            "name; rename the entry point"
        )
    REGISTRY[name] = plugins.import_plugin(point)
    return True


def _check_engine_name(name: str) -> None:
    if isinstance(name, str) and (name in REGISTRY or _register_plugin(name)):
        return
    from tcpcast.engines.plugins import find_plugin_entry_points  # noqa: PLC0415 - inspects all packages

    text = str(name)
    names = list(dict.fromkeys([*REGISTRY, *find_plugin_entry_points()]))
    hint = next(
        (words for part, words in _HINTS_FOR_UNKNOWN_NAMES.items() if part in text.lower()), None
    )
    if hint is None:
        near = find_nearest_word(text, names)
        hint = f"; did you mean '{near}'?" if near else "."
    raise UnknownEngine(f"no engine '{name}'{hint} The engines are: {', '.join(names)}.")
