"""Support of stacks by engines: supported, supported with a known error, unchecked, or refused.

Engines themselves refuse scenarios; :func:`fit` predicts the result, and a test compares the two.
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
    PATH,
    PLUGINS,
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
from tcpcast.scenario.modern_tcp import MODERN_PRESETS, get_congestion_control
from tcpcast.scenario.tcp import STACKS
from tcpcast.scenario.tcp_rules import MAX_PLUS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tcpcast.scenario import Scenario


class Verdict(Enum):
    """Support of a stack by an engine."""

    APPLIES = "applies"
    STATED_ERROR = "applies with a stated error"
    UNCHECKED = "applies, not checked"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Fit:
    """A cell of the table: the verdict, and the error or the reason ("" for none)."""

    verdict: Verdict
    text: str = ""


APPLIES = Fit(Verdict.APPLIES)

KERNEL_STACKS = ("linux-cubic", "linux-reno", "linux-bbr", "linux-reno-classic", "dctcp")
"""Stacks that Linux implements, in the order in which messages suggest them."""

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
"""Errors within a formula's domain, with inputs from the scenario, over the cells of ``reproduce
kernel``; for transfers, over the cells of tests/agreement/test_modern_transfers.py."""

_UNCHECKED = Fit(Verdict.UNCHECKED, "applies, but is not validated for this stack")
_TRAFFIC = {"bulk": (PATH,), "transfers": (TRANSFERS,), "on-off": (USERS, FIXED_POINT, POPULATION)}
"""Families of engines by kind of traffic."""


def fit(engine: str, stack: str) -> Fit:
    """Return the support of a stack, with its default settings, by an engine.

    Parameters
    ----------
    engine
        A name of the registry.
    stack
        A preset's name.

    Raises
    ------
    KeyError
        Unknown engine or stack.
    """
    entry, preset = REGISTRY[engine], STACKS[stack]
    if isinstance(entry, Formula):
        return _of_formula(engine, entry, stack, delayed_acks=preset["delayed_acks"])
    if entry.family == PLUGINS:
        return Fit(Verdict.UNCHECKED, "depends on its package")
    if engine == "fixed-point" and stack != MAX_PLUS:
        return Fit(Verdict.REFUSED, f"models only {MAX_PLUS}")
    if engine == "kernel" and stack not in KERNEL_STACKS:
        return Fit(Verdict.REFUSED, "only the kernel's own stacks")
    if engine == "mean-field" and stack in MODERN_PRESETS:
        return Fit(Verdict.REFUSED, "not validated for modern TCP")
    return APPLIES


def _of_formula(engine: str, entry: Formula, stack: str, *, delayed_acks: bool) -> Fit:
    """Return the first verdict whose condition holds."""
    control, max_plus = get_congestion_control(stack), entry.stack == MAX_PLUS
    of_another = entry.stack in CONTROLS and CONTROLS.get(control) != engine
    refused, stated = Verdict.REFUSED, Verdict.STATED_ERROR
    measured = MEASURED.get((engine, stack), "")
    verdicts = (
        (of_another, Fit(stated, f"predicts {entry.stack.upper()}, with a warning")),
        (
            not models_control(entry, control),
            Fit(refused, "models Reno's window"),
        ),
        (
            engine == "engset" and stack == MAX_PLUS,
            Fit(refused, "models senders that detect losses"),
        ),
        (engine == "engset" and delayed_acks, Fit(refused, "models one ACK per packet")),
        (max_plus and stack != MAX_PLUS, _UNCHECKED),
        (bool(measured), Fit(stated, measured)),
        (stack in MODERN_PRESETS, _UNCHECKED),
    )
    return next((result for holds, result in verdicts if holds), APPLIES)


def omitted_models(scenario: Scenario, *, suggestions: bool = False) -> dict[str, list[str]]:
    """Return the formulas that a run leaves out because of the scenario's stack, by reason.

    Only formulas for its kind of traffic; none for a capture, whose stack is unknown. Checking
    ``suggestions`` takes as long as the formulas.
    """
    if scenario.captured is not None:
        return {}
    families = _TRAFFIC.get(scenario.populations[0].traffic.kind, ())
    omitted: dict[str, list[str]] = {}
    for name, entry in REGISTRY.items():
        if not isinstance(entry, Formula) or entry.family not in families:
            continue
        if (why := other_control(entry, scenario)) is not None:
            text = why.reason
            if suggestions:
                accepted = accepted_suggestions(name, scenario, why.suggestions, check)
                text = refusal_text(text, accepted)
            omitted.setdefault(text, []).append(name)
    return omitted


def omitted_models_text(*scenarios: Scenario, asked: Collection[str] = ()) -> str:
    """Return a sentence on omitted models of Reno's window, and stacks that would include them.

    Parameters
    ----------
    *scenarios
        Scenarios of one path and its TCP.
    asked
        Requested engines, which report by themselves that they do not apply.

    Returns
    -------
    str
        "" if no model is left out for its window.
    """
    back: dict[tuple[str, ...], list[str]] = {}
    stack = ""
    for scenario in scenarios:
        for name in (name for names in omitted_models(scenario).values() for name in names):
            entry, other = REGISTRY[name], unsupported_stack(name, scenario)
            if other is None or name in asked or not isinstance(entry, Formula):
                continue
            stack = stack or other
            presets = (by for by in supported_presets(entry) if _answers_for(name, scenario, by))
            back.setdefault(tuple(presets), []).append(name)
    if not back:
        return ""
    parts = "; ".join(f"{', '.join(names)}{_presets(by)}" for by, names in back.items())
    return f"left out as models of Reno's window, not {stack}'s: {parts}"


def unsupported_stack(name: str, scenario: Scenario) -> str | None:
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
    """Return the presets that include omitted models, in brackets."""
    if not names:
        return ""
    quoted = " or ".join(f'"{name}"' for name in names)
    return f" (use tcp.stack = {quoted})"
