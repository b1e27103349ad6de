"""Which engine answers for which stack: applies, with a stated error or unchecked, or refused.

One table in code. What refuses is the engine itself; :func:`fit` says beforehand what it will do,
and a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tcpcast.engines import REGISTRY, check
from tcpcast.engines.advice import accepted_suggestions, stack_changes
from tcpcast.engines.registry import (
    CONTROLS,
    FIXED_POINT,
    OUTSIDE,
    PATH,
    POPULATION,
    TRANSFERS,
    USERS,
    Formula,
    lacks_queue,
    models_control,
    other_control,
    supported_presets,
)
from tcpcast.errors import TcpcastError, refusal_text
from tcpcast.scenario.modern_tcp import TODAYS_PRESETS, control_of
from tcpcast.scenario.tcp import STACKS
from tcpcast.scenario.tcp_rules import MAX_PLUS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tcpcast.scenario import Scenario


class Verdict(Enum):
    """What an engine does with a stack."""

    APPLIES = "applies"
    STATED_ERROR = "applies with a stated error"
    UNCHECKED = "applies, not checked"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Fit:
    """A cell of the table: the verdict, and the error or the reason in words ("" for none)."""

    verdict: Verdict
    words: str = ""


APPLIES = Fit(Verdict.APPLIES)

KERNEL_STACKS = ("linux-cubic", "linux-reno", "linux-bbr", "linux-reno-classic", "dctcp")
"""Stacks that Linux has, in the order in which messages offer them."""

MEASURED: dict[tuple[str, str], str] = {
    ("pftk", "linux-reno-classic"): "22 % below to 5 % above the kernel's goodput",
    ("pftk", "linux-reno"): "7 to 35 % below the kernel's goodput",
    ("parallel", "linux-reno-classic"): "24 % below to 5 % above the kernel's goodput",
    ("parallel", "linux-reno"): "8 to 29 % below the kernel's goodput",
    ("cubic-response", "linux-cubic"): "18 % below to 11 % above the kernel's goodput",
    ("bbr-bound", "linux-bbr"): "an upper bound: 3 to 68 % above the kernel's goodput",
    ("short", "linux-cubic"): "7 % below to 14 % above packet, within 45 % from 2 to 8 losses",
    ("short", "linux-reno"): "within 15 % of packet, within 45 % from 2 to 8 losses",
}
"""Errors in a formula's domain, fed by the scenario, over the cells of ``reproduce kernel``; of
transfers over those of tests/agreement/test_modern_transfers.py."""

_UNCHECKED = Fit(Verdict.UNCHECKED, "applies, but is not checked beside this stack")
_TRAFFIC = {"bulk": (PATH,), "transfers": (TRANSFERS,), "on-off": (USERS, FIXED_POINT, POPULATION)}
"""Families of engines that take a kind of traffic."""


def fit(engine: str, stack: str) -> Fit:
    """Return what an engine does with a stack's own defaults.

    Parameters
    ----------
    engine
        A name of the registry.
    stack
        A preset's name.

    Raises
    ------
    KeyError
        There is no such engine or stack.
    """
    entry, preset = REGISTRY[engine], STACKS[stack]
    if isinstance(entry, Formula):
        return _of_formula(engine, entry, stack, delayed_acks=preset["delayed_acks"])
    if entry.family == OUTSIDE:
        return Fit(Verdict.UNCHECKED, "its package says")
    if engine == "fixed-point" and stack != MAX_PLUS:
        return Fit(Verdict.REFUSED, f"models {MAX_PLUS} alone")
    if engine == "kernel" and stack not in KERNEL_STACKS:
        return Fit(Verdict.REFUSED, "the kernel's own stacks alone")
    if engine == "mean-field" and stack in TODAYS_PRESETS:
        return Fit(Verdict.REFUSED, "not checked for today's TCP")
    return APPLIES


def _of_formula(engine: str, entry: Formula, stack: str, *, delayed_acks: bool) -> Fit:
    """Return the first verdict whose condition holds."""
    control, max_plus = control_of(stack), entry.stack == MAX_PLUS
    of_another = entry.stack in CONTROLS and CONTROLS.get(control) != engine
    refused, stated = Verdict.REFUSED, Verdict.STATED_ERROR
    measured = MEASURED.get((engine, stack), "")
    verdicts = (
        (of_another, Fit(stated, f"predicts {entry.stack.upper()}, and warns of it")),
        (
            not models_control(entry, control),
            Fit(refused, "models Reno's window"),
        ),
        (
            engine == "engset" and stack == MAX_PLUS,
            Fit(refused, "models senders that detect losses"),
        ),
        (engine == "engset" and delayed_acks, Fit(refused, "models an ack for every packet")),
        (max_plus and stack != MAX_PLUS, _UNCHECKED),
        (bool(measured), Fit(stated, measured)),
        (stack in TODAYS_PRESETS, _UNCHECKED),
    )
    return next((found for holds, found in verdicts if holds), APPLIES)


def left_out(scenario: Scenario, *, suggestions: bool = False) -> dict[str, list[str]]:
    """Return the formulas that a run leaves out for the scenario's stack, by the reason.

    Only those that take its kind of traffic; none for a capture, whose stack is unknown. The checks
    of ``suggestions`` take as long as the formulas.
    """
    if scenario.captured is not None:
        return {}
    families = _TRAFFIC.get(scenario.populations[0].traffic.kind, ())
    found: dict[str, list[str]] = {}
    for name, entry in REGISTRY.items():
        if not isinstance(entry, Formula) or entry.family not in families:
            continue
        if (why := other_control(entry, scenario)) is not None:
            text = why.reason
            if suggestions:
                accepted = accepted_suggestions(name, scenario, why.suggestions, check)
                text = refusal_text(text, accepted)
            found.setdefault(text, []).append(name)
    return found


def left_out_text(*scenarios: Scenario, asked: Collection[str] = ()) -> str:
    """Say in a sentence which models of Reno's window are left out, and what brings them back.

    Parameters
    ----------
    *scenarios
        Questions about one path and its TCP.
    asked
        Engines that say themselves that they do not apply.

    Returns
    -------
    str
        "" where none is left out for its window.
    """
    back: dict[tuple[str, ...], list[str]] = {}
    stack = ""
    for scenario in scenarios:
        for name in (name for names in left_out(scenario).values() for name in names):
            entry, other = REGISTRY[name], stack_without(name, scenario)
            if other is None or name in asked or not isinstance(entry, Formula):
                continue
            stack = stack or other
            presets = (by for by in supported_presets(entry) if _answers_for(name, scenario, by))
            back.setdefault(tuple(presets), []).append(name)
    if not back:
        return ""
    parts = "; ".join(f"{', '.join(names)}{_presets(by)}" for by, names in back.items())
    return f"left out as models of Reno's window, not {stack}'s: {parts}"


def stack_without(name: str, scenario: Scenario) -> str | None:
    """Return the scenario's first stack that a formula does not model.

    None if the formula models all of them, or would be left out with any stack.
    """
    entry, groups = REGISTRY[name], scenario.populations
    if not isinstance(entry, Formula) or lacks_queue(entry, scenario):
        return None
    if any(group.has_start_or_stop for group in groups):
        return None
    stacks = (g.tcp.stack for g in groups if not models_control(entry, g.tcp.control))
    return next(stacks, None)


def _answers_for(name: str, scenario: Scenario, stack: str) -> bool:
    """Return True if a formula answers a scenario with another stack."""
    try:
        check(name, scenario.with_changes(stack_changes(scenario, stack)))
    except TcpcastError:
        return False
    return True


def _presets(names: Sequence[str]) -> str:
    """Return the presets that bring models back, in brackets."""
    if not names:
        return ""
    quoted = " or ".join(f'"{name}"' for name in names)
    return f" (back with tcp.stack = {quoted})"
