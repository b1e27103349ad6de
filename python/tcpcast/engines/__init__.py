"""Engines: ways to answer a scenario. Adding one is adding a row here and a file beside it.

A formula's row is in :data:`tcpcast.engines.formula.FORMULAS`.
"""

from __future__ import annotations

import difflib
import functools
import time
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric, Status, noted
from tcpcast.engines.advice import accepted_suggestions
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.registry import (
    CAPTURES,
    FIXED_POINT,
    MEASUREMENT,
    OUTSIDE,
    POPULATION,
    SIMULATION,
    EngineEntry,
    Formula,
)
from tcpcast.errors import (
    DomainError,
    MachineError,
    NotApplicable,
    Suggestion,
    TcpcastError,
    UnknownEngine,
)
from tcpcast.interrupts import raise_what_was_dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.scenario import Scenario


MOST_THREADS = 10_000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run, as opposed to what: nothing here may change a figure of a run that is over.

    ``threads`` is the number of worker threads (None: one a core, at most one a replication);
    ``progress`` is called with the share done, from 0 to 1; ``deadline`` is when all is to be over,
    by :func:`time.perf_counter`, where several runs share one ``run.max_wall``; ``force`` lets
    files of ``[[probes.pcap]]`` replace any file; ``over_time`` adds the tables of ``packet`` that
    figures over time and of completion times are drawn from; without ``tables`` a formula may leave
    out tables that take as long as its metrics, and the scenario's digest, for who shows metrics
    alone; ``accept_late`` lets ``kernel`` continue although this machine is too busy for its link;
    without ``suggestions`` a refusal has only its reason, which saves their checks in a sweep;
    ``known_suggestions`` keeps those already checked, by engine and reason, for the other points of
    a range.
    """

    threads: int | None = None
    progress: Callable[[float], None] | None = None
    deadline: float | None = None
    force: bool = False
    over_time: bool = False
    tables: bool = True
    accept_late: bool = False
    suggestions: bool = True
    known_suggestions: dict[tuple[str, str], tuple[Suggestion, ...]] | None = None

    def __post_init__(self) -> None:
        """Refuse numbers of threads that are none."""
        count = self.threads
        if count is not None and (
            not isinstance(count, Integral) or isinstance(count, bool) or count < 1
        ):
            raise DomainError(
                f"threads: {count!r} is no number of threads; write 1 or more, or leave it out "
                "for one per core"
            )
        if count is not None and count > MOST_THREADS:
            raise DomainError(f"threads: {count} are too many; write at most {MOST_THREADS}")
        if count is not None:
            object.__setattr__(self, "threads", int(count))

    def ends_at(self, scenario: Scenario) -> float | None:
        """Return when a run that begins now has to stop, None for never."""
        limit = scenario.run.max_wall_s
        own = None if limit is None else time.perf_counter() + limit
        return min((end for end in (self.deadline, own) if end is not None), default=None)


REGISTRY: dict[str, EngineEntry] = {
    **FORMULAS,
    "packet": EngineEntry(
        "tcpcast.engines.packet",
        "packet",
        "exact packet-level simulation",
        "every scenario with a bottleneck rate or a limited receiver window, except captures",
        SIMULATION,
        "within its 95 % intervals; the reference simulator of the others",
        any_packets=True,
    ),
    "mean-field": EngineEntry(
        "tcpcast.engines.mean_field",
        "mean_field",
        "a scaled population: a few thousand simulated sources with the fluctuations of all",
        "on/off sources of classic stacks on a drop-tail or fair queue; requested by name",
        POPULATION,
        "populations too large for packet; its warnings name the limits",
        quick=False,
    ),
    "fixed-point": EngineEntry(
        "tcpcast.engines.fixed_point",
        "fixed_point",
        "a few exactly simulated flows among cross flows that repeat their measured values",
        "stack max-plus-reno, on/off sources and bulk flows; requested by name",
        FIXED_POINT,
        "if it converges; otherwise the values are marked, with the test that failed",
        quick=False,
    ),
    "kernel": EngineEntry(
        "tcpcast.engines.kernel",
        "kernel",
        "this machine's own TCP over an emulated link, in real time",
        "one bottleneck, at most 256 senders, Linux; requested by name",
        MEASUREMENT,
        "within its 95 % intervals; not trusted if the machine was too busy",
        quick=False,
        any_packets=True,
    ),
    "trace": EngineEntry(
        "tcpcast.engines.capture",
        "trace",
        "values measured in a packet capture",
        'traffic of kind "capture"',
        CAPTURES,
        "what one tap can measure; its warnings name the limits",
    ),
}

FEEDS = ("scenario", "measured")
"""What a formula of one path may be fed: what the scenario asks, or what ``packet`` measures."""


def answer(
    scenario: Scenario,
    engines: str | Sequence[str] | None = None,
    options: RunOptions | None = None,
    *,
    feed: str = "scenario",
) -> list[Answer]:
    """Answer a scenario by each named engine, in the order asked.

    An engine of another package that fails next to other engines gives an answer that says so.
    An engine that does not apply gives an answer that says so when it was asked for by name, and
    none when ``engines`` is None: every engine that applies and is quick, but for models of another
    stack's TCP, or of another than a capture looks like.

    Parameters
    ----------
    scenario, engines, options
        What is asked, of whom, and how to run it.
    feed
        What formulas of one path are fed: ``"scenario"``, what is asked, or ``"measured"``, the p,
        RTT and T0 of the simulation. ``packet`` then runs first, and its answer is the last one
        where it was not asked for. Traffic of kind ``capture`` feeds them what ``trace`` measured,
        in any case.

    Raises
    ------
    UnknownEngine
        A name that is not in the registry, with the nearest one that is.
    TcpcastError
        A feed of another name.
    """
    if engines is None:
        names = [name for name, entry in REGISTRY.items() if entry.by_default(scenario)]
    else:
        names = _names(engines)
    check_names(names)
    check_feed(feed)
    options = options or RunOptions()
    found: dict[str, Answer] = {}
    order = names
    measures = "trace" if scenario.captured is not None else "packet"
    measured = feed == "measured" or (measures == "trace" and any(map(_is_fed, names)))
    if measured:
        names = [*names, *([measures] if measures not in names else [])]
        order = [measures, *(name for name in names if name != measures)]
    for name in order:
        if engines is None and _of_another_control(REGISTRY[name], found.get("trace")):
            continue
        result = _ask(
            name,
            scenario,
            options,
            found.get(measures) if measured else None,
            alone=len(order) == 1,
        )
        if not result.applies and engines is not None:
            checks = functools.partial(check, feed=feed)
            suggest = functools.partial(accepted_suggestions, check=checks, asked=order)
            _check_suggestions(result, scenario, options, suggest)
        if engines is not None or result.applies:
            found[name] = result
        if result.interrupted:
            break
    return [found[name] for name in names if name in found]


def _names(engines: str | Sequence[str]) -> list[str]:
    """Return names of engines as a list; one alone may stand for a list of it."""
    if isinstance(engines, str):
        return [name.strip() for name in engines.split(",")]
    try:
        return list(engines)
    except TypeError:
        raise UnknownEngine(
            f'engines: {engines!r} names none; write a name, or a list such as ["engset", "packet"]'
        ) from None


def _of_another_control(entry: EngineEntry, captured: Answer | None) -> bool:
    """Say whether a formula is not for the congestion control that a capture looks like."""
    from tcpcast.scenario.modern_tcp import DEFAULT_STACK, control_of  # noqa: PLC0415 - pydantic

    if captured is None or captured.captured is None or not isinstance(entry, Formula):
        return False
    tcp = captured.captured.replay.get("tcp", {"stack": DEFAULT_STACK})
    return not entry.describes(control_of(tcp["stack"]))


def _is_fed(name: str) -> bool:
    entry = REGISTRY[name]
    return isinstance(entry, Formula) and entry.fed


def check_names(names: Sequence[str]) -> None:
    """Raise UnknownEngine unless each name is in the registry, with the nearest one that is."""
    for name in names:
        _check_name(name)


def any_simulates(engines: str | Sequence[str] | None) -> bool:
    """Say whether some engine takes longer than a formula; None and names that are none may."""
    names = None if engines is None else _names(engines)
    return not names or not all(isinstance(REGISTRY.get(name), Formula) for name in names)


def _check_suggestions(
    refused: Answer,
    scenario: Scenario,
    options: RunOptions,
    suggest: Callable[[str, Scenario, Sequence[Suggestion]], tuple[Suggestion, ...]],
) -> None:
    """Replace suggestions by the accepted ones, or by those found for the same reason."""
    known = {} if options.known_suggestions is None else options.known_suggestions
    key = refused.engine, refused.reason
    if options.suggestions and key not in known:
        known[key] = suggest(refused.engine, scenario, refused.suggestions)
    refused.suggestions = known[key] if options.suggestions else ()


def check_feed(feed: str) -> None:
    """Raise TcpcastError unless ``feed`` is one of :data:`FEEDS`."""
    if feed not in FEEDS:
        raise TcpcastError(f"feed takes 'scenario' or 'measured', not '{feed}'.")


_LOSSES = ("loss_indication_ratio", "loss_event_ratio_cumulative", "loss_ratio")
_ASSUMED = dict.fromkeys((*_LOSSES, "timeout_ratio"), Metric(0.01)) | {"rtt_mean_s": Metric(0.1)}
"""Metrics of a simulation with some loss, to check a formula that is fed by one."""


def check(name: str, scenario: Scenario, other_feed: str = "", *, feed: str = "scenario") -> None:
    """Raise NotApplicable unless an engine accepts a scenario; nothing is simulated or measured.

    ``other_feed`` replaces ``feed``; with "measured", a simulation is assumed that measured losses.
    """
    entry = REGISTRY.get(name)
    if entry is None:
        raise NotApplicable(f"there is no engine {name}")
    entry.check_packets(scenario)
    if not isinstance(entry, Formula):
        entry.check(scenario)
    elif scenario.captured is not None:
        raise NotApplicable("the capture is not read")
    elif (other_feed or feed) == "measured":
        REGISTRY["packet"].check(scenario)
        measured = Answer("packet", metrics=dict(_ASSUMED))
        entry.ask(scenario, RunOptions(tables=False), measured)
    elif entry.has_check():
        entry.check(scenario)
    else:
        entry.ask(scenario, RunOptions(tables=False), None)


def _ask(
    name: str, scenario: Scenario, options: RunOptions, measured: Answer | None, *, alone: bool
) -> Answer:
    entry = REGISTRY[name]
    entry.load()  # so that no engine's time holds what it took to import it
    raise_what_was_dropped()
    started = time.perf_counter()
    try:
        entry.check_packets(scenario)
        result = entry.ask(scenario, options, measured)
    except NotApplicable as why:
        result = Answer(name, status=Status.NOT_APPLICABLE, reason=why.reason)
        result.suggestions = why.suggestions
    except TcpcastError as fault:
        if alone or entry.family != OUTSIDE:
            raise
        result = Answer(name, status=Status.FAILED, reason=str(fault))
    else:
        about = noted(scenario.warnings(), "scenario")
        result.notes = [*about, *(note for note in result.notes if note not in about)]
    result.wall_s = time.perf_counter() - started
    return result


_INSTEAD = {
    "bbr": "; 'packet' simulates stacks \"linux-bbr\" and \"bbr3\", the formula is 'bbr-bound'.",
    "cubic": "; 'packet' simulates tcp.stack = \"linux-cubic\", the formula is 'cubic-response'.",
    "reno": '; a TCP is a stack: \'packet\' simulates tcp.stack = "linux-reno" or "rfc-newreno".',
    "ns2": "; 'packet' is the simulator.",
    "simul": "; 'packet' is the simulator.",
}
"""What there is instead of engines that people ask for, by a part of the name."""


def add_outside() -> list[str]:
    """Add the engines and models of other packages to the registry.

    Returns
    -------
    list[str]
        Why one is left out: its package cannot be imported, or the name is taken.
    """
    from tcpcast.engines.plugins import entry_points  # noqa: PLC0415 - looks at all packages

    faults = []
    for name in entry_points():
        try:
            _add(name)
        except MachineError as fault:
            faults.append(str(fault))
    return faults


def _add(name: str) -> bool:
    """Add an engine of another package, and say whether there is one of this name.

    Raises
    ------
    MachineError
        It cannot be imported, or tcpcast has an engine of the name.
    """
    from tcpcast.engines import plugins  # noqa: PLC0415 - looks at all packages

    point = plugins.entry_points().get(name)
    if point is None:
        return False
    if not isinstance(REGISTRY.get(name), plugins.OutsideEntry | None):
        raise MachineError(f"engine '{name}' of {point.value} has the name of one of tcpcast's")
    REGISTRY[name] = plugins.entry(point)
    return True


def _check_name(name: str) -> None:
    if isinstance(name, str) and (name in REGISTRY or _add(name)):
        return
    from tcpcast.engines.plugins import entry_points  # noqa: PLC0415 - looks at all packages

    text = str(name)
    names = list(dict.fromkeys([*REGISTRY, *entry_points()]))
    hint = next((words for part, words in _INSTEAD.items() if part in text.lower()), None)
    if hint is None:
        near = difflib.get_close_matches(text, names, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "."
    raise UnknownEngine(f"no engine '{name}'{hint} There are: {', '.join(names)}.")
