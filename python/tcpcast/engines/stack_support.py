"""Support of stacks by engines: supported, supported with a known error, unchecked, or refused.

Engines themselves refuse scenarios; :func:`get_stack_support` predicts the result, and a test
compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tcpcast.engines import REGISTRY
from tcpcast.engines.registry import (
    FORMULA_BY_CONTROL,
    PLUGINS_FAMILY,
    TRAFFIC_BY_FAMILY,
    Formula,
    has_policer_instead_of_queue,
    models_congestion_control,
    path_or_control_refusal,
    presets_covered_by_reno_model,
)
from tcpcast.process.errors import assignment_of
from tcpcast.scenario.classic_tcp import TAHOE
from tcpcast.scenario.modern_stacks import MODERN_STACKS
from tcpcast.scenario.modern_tcp import get_congestion_control, is_modern
from tcpcast.scenario.tcp import STACKS
from tcpcast.scenario.tcp_rules import MAX_PLUS

if TYPE_CHECKING:
    from collections.abc import Collection

    from tcpcast.scenario import Scenario


class SupportLevel(Enum):
    """Support of a stack by an engine."""

    APPLIES = "applies"
    STATED_ERROR = "applies with a stated error"
    UNCHECKED = "applies, not checked"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class StackSupport:
    """Support of one stack by one engine: the level, and the known error or the reason, or ""."""

    level: SupportLevel
    text: str = ""


APPLIES = StackSupport(SupportLevel.APPLIES)

ENGSET = ("engset", "engset-sizes", "erlang")
"""Engines that model the senders of TCP-Engset."""

KERNEL_STACKS = tuple(name for name, stack in MODERN_STACKS.items() if not stack.why_not_in_linux)
"""Stacks that Linux implements, in the order in which messages suggest them."""

MEASURED_ERRORS: dict[tuple[str, str], str] = {
    ("pftk", "linux-reno-classic"): "22 % below to 5 % above the kernel's goodput",
    ("pftk", "linux-reno"): "7 to 35 % below the kernel's goodput",
    ("parallel", "linux-reno-classic"): "24 % below to 5 % above the kernel's goodput",
    ("parallel", "linux-reno"): "8 to 29 % below the kernel's goodput",
    ("cubic-response", "linux-cubic"): "18 % below to 11 % above the kernel's goodput",
    ("bbr-bound", "linux-bbr"): "an upper bound: 3 to 68 % above the kernel's goodput",
    ("short", "linux-cubic"): "7 % below to 14 % above the packet engine; within 45 % for "
    "transfers with 2 to 8 losses",
    ("short", "linux-reno"): "within 15 % of the packet engine; within 45 % for transfers with "
    "2 to 8 losses",
    ("pftk-approx", "tfrc"): "13 % below to 2 % above the packet engine",
}
"""Measured errors of formulas with inputs from the scenario. The comparisons with the kernel use
the scenarios of ``reproduce kernel`` that are in the formula's domain. The comparisons with packet
are in tests/agreement: test_modern_transfers.py, and test_paper_senders.py for ``tfrc``."""

_UNCHECKED = StackSupport(SupportLevel.UNCHECKED, "applies, but is not validated for this stack")


def get_stack_support(engine: str, stack: str) -> StackSupport:
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
        control, max_plus = get_congestion_control(stack), entry.stack == MAX_PLUS
        of_another = entry.stack in FORMULA_BY_CONTROL and FORMULA_BY_CONTROL.get(control) != engine
        refused, stated = SupportLevel.REFUSED, SupportLevel.STATED_ERROR
        measured = MEASURED_ERRORS.get((engine, stack), "")
        verdicts = (
            (of_another, StackSupport(stated, f"predicts {entry.stack.upper()}")),
            (
                not models_congestion_control(entry, control),
                StackSupport(refused, "models Reno's window"),
            ),
            (
                engine in ENGSET and stack == MAX_PLUS,
                StackSupport(refused, "models senders that detect losses"),
            ),
            (
                engine in ENGSET and preset["delayed_acks"],
                StackSupport(refused, "models one ACK per packet"),
            ),
            (max_plus and stack != MAX_PLUS, _UNCHECKED),
            (bool(measured), StackSupport(stated, measured)),
            (is_modern(stack) or stack == TAHOE, _UNCHECKED),
        )
        return next((result for holds, result in verdicts if holds), APPLIES)
    if entry.family == PLUGINS_FAMILY:
        return StackSupport(SupportLevel.UNCHECKED, "depends on its package")
    if engine == "fixed-point" and stack != MAX_PLUS:
        return StackSupport(SupportLevel.REFUSED, f"models only {MAX_PLUS}")
    if engine == "kernel" and stack not in KERNEL_STACKS:
        return StackSupport(SupportLevel.REFUSED, "only the kernel's own stacks")
    if engine == "mean-field" and is_modern(stack):
        return StackSupport(SupportLevel.REFUSED, "not validated for modern TCP")
    return _UNCHECKED if engine == "mean-field" and stack == TAHOE else APPLIES


def find_omitted_formulas(scenario: Scenario) -> dict[str, list[str]]:
    """Return the formulas that a run leaves out because of the scenario's stack, by reason.

    The result includes only formulas for the scenario's kind of traffic.
    """
    kind = scenario.populations[0].traffic.kind
    omitted: dict[str, list[str]] = {}
    for name, entry in REGISTRY.items():
        if not isinstance(entry, Formula) or TRAFFIC_BY_FAMILY[entry.family] != kind:
            continue
        if (why := path_or_control_refusal(entry, scenario)) is not None:
            omitted.setdefault(str(why), []).append(name)
    return omitted


def omitted_formulas_text(*scenarios: Scenario, requested: Collection[str] = ()) -> str:
    """Return a sentence on omitted models of Reno's window, and stacks that would include them.

    Parameters
    ----------
    *scenarios
        Scenarios of one path and its TCP.
    requested
        Requested engines; they are left out here, because their own answers contain the reason.

    Returns
    -------
    str
        "" if no model is left out.
    """
    back: dict[tuple[str, ...], list[str]] = {}
    stack = ""
    for scenario in scenarios:
        for name in (name for names in find_omitted_formulas(scenario).values() for name in names):
            entry, other = REGISTRY[name], find_unsupported_stack(name, scenario)
            if other is None or name in requested or not isinstance(entry, Formula):
                continue
            stack = stack or other
            back.setdefault(presets_covered_by_reno_model(entry), []).append(name)
    if not back:
        return ""
    parts = "; ".join(
        f"{', '.join(names)} (use {' or '.join(assignment_of('tcp.stack', p) for p in presets)})"
        for presets, names in back.items()
    )
    return (
        f"these formulas are omitted, because they model the window of Reno, not of {stack}: "
        f"{parts}"
    )


def find_unsupported_stack(name: str, scenario: Scenario) -> str | None:
    """Return the scenario's first stack that a formula does not model.

    None if the formula models all of them, or would be left out with any stack.
    """
    entry, groups = REGISTRY[name], scenario.populations
    if not isinstance(entry, Formula) or has_policer_instead_of_queue(entry, scenario):
        return None
    if scenario.path().obstacles or any(group.has_start_or_stop for group in groups):
        return None
    stacks = (g.tcp.stack for g in groups if not models_congestion_control(entry, g.tcp.control))
    return next(stacks, None)
