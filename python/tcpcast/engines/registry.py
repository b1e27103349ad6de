"""Rows of the registry: where an engine lives, what it is, when it applies.

Nothing heavy is imported here: an engine's module is imported when it is asked.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.engines.advice import stack_changes
from tcpcast.errors import NotApplicable, Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.scenario import Scenario

LEFT_OUT = "cross traffic is left out: the formula has no cross traffic"
RETURN_LEFT_OUT = "the return path is left out: to the formula acks neither wait nor get lost"
FEED_MEASURED = "; --feed measured includes its effect on loss and round-trip times"
"""What is said of a formula that was fed by a scenario with what it does not have."""


PATH = "closed formulas for one path"
TRANSFERS = "closed formulas for short transfers"
USERS = "closed formulas for users on a link"
FIXED_POINT = "fixed point"
POPULATION = "scaled population"
SIMULATION = "packet-level simulation"
MEASUREMENT = "real kernel"
CAPTURES = "captures"

CONTROLS = {"cubic": "cubic-response", "bbr": "bbr-bound"}
"""Congestion controls other than Reno's that have a formula, and its engine."""

OUTSIDE = "engines of other packages"
FAMILIES = (
    *(PATH, TRANSFERS, USERS, FIXED_POINT, POPULATION, SIMULATION, MEASUREMENT, CAPTURES),
    OUTSIDE,
)
"""Kinds of engines, in the order of ``tcpcast engines``."""


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """A row of the registry; ``function`` of ``module`` takes a scenario and options.

    ``family`` is one of :data:`FAMILIES`; ``trust`` says when its values are to be trusted, for an
    engine without a row in :data:`tcpcast.models.domain.DOMAINS`; ``any_packets`` is True if
    packets of classes may have different sizes.
    """

    module: str
    function: str
    summary: str
    applies: str
    family: str
    trust: str = ""
    quick: bool = True
    any_packets: bool = False

    def trusted_when(self, name: str) -> str:
        """Return when to trust the engine of this name: as its row says, or by its domain."""
        from tcpcast.models.domain import description  # noqa: PLC0415 - imports numpy

        return self.trust or description(name)

    def by_default(self, scenario: Scenario) -> bool:  # noqa: ARG002 - a formula's
        """Say whether a run that names no engine asks this one."""
        return self.quick

    def check_packets(self, scenario: Scenario) -> None:
        """Raise NotApplicable if a class has packets of a size that the engine does not have."""
        if not self.any_packets:
            check_one_size("it", scenario)

    def load(self) -> Callable[..., Any]:
        """Import the engine; formulas and the simulator are not imported before they are used."""
        function: Callable[..., Any] = getattr(importlib.import_module(self.module), self.function)
        return function

    def check(self, scenario: Scenario) -> None:
        """Raise NotApplicable unless the engine accepts a scenario; nothing is run."""
        if not self.has_check():
            raise NotApplicable("the engine has no check without a run")
        importlib.import_module(self.module).check(scenario)

    def has_check(self) -> bool:
        """Return True if the engine can be checked without a run."""
        return hasattr(importlib.import_module(self.module), "check")

    def ask(
        self,
        scenario: Scenario,
        options: RunOptions,
        measured: Answer | None,  # noqa: ARG002 - a formula's
    ) -> Answer:
        """Answer a scenario; ``measured`` is what the simulator says of it, for formulas.

        Raises
        ------
        NotApplicable
            The engine does not cover the scenario; the message says why.
        """
        answer: Answer = self.load()(scenario, options)
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula(EngineEntry):
    """A row that is a closed form: ``function`` takes a scenario and returns an Answer.

    ``source`` says where the formula stands; the function of one that is ``fed`` takes the
    ``packet`` answer as well (of a capture, the ``trace`` answer), or None to be fed what the
    scenario asks. One that models the TCP of
    a ``stack`` other than Reno's answers any scenario that asks for it by name, and by default
    those of that stack; ``controls`` are the congestion controls for which a model of Reno's window
    answers. The function of one that is ``tabled`` takes :attr:`RunOptions.tables`, too.
    """

    source: str
    fed: bool = False
    stack: str = ""
    controls: tuple[str, ...] = ("reno",)
    tabled: bool = False

    def by_default(self, scenario: Scenario) -> bool:
        """Say whether a run that names no engine asks this one."""
        if other_control(self, scenario) is not None:
            return False
        if scenario.captured is not None:  # what it looks like is known when it has been read
            return self.quick and self.stack in ("", *CONTROLS)
        tcp = scenario.populations[0].tcp
        controls = {"bbr": ("bbr", "bbr3")}.get(self.stack, (self.stack,))
        return self.quick and (self.stack in {"", tcp.stack} or tcp.control in controls)

    def check(self, scenario: Scenario) -> None:
        """Raise NotApplicable unless the formula covers a scenario, without solving it."""
        if (refusal := other_control(self, scenario)) is not None:
            raise refusal
        super(Formula, self).check(scenario)

    def describes(self, control: str) -> bool:
        """Say whether a run that names no engine keeps it for a capture of some control.

        CUBIC's window is often that of Reno; BBR's rate follows no loss.
        """
        return self.stack in {"reno": ("",), "bbr": ("bbr",)}.get(control, ("", "cubic"))

    def ask(
        self,
        scenario: Scenario,
        options: RunOptions,
        measured: Answer | None,
    ) -> Answer:
        """Answer a scenario, by the simulator's p, RTT and T0 where ``measured`` holds them."""
        from tcpcast.engines.formula.trust import mark_outside  # noqa: PLC0415 - imports numpy

        refusal = other_control(self, scenario)
        if refusal is not None:
            raise refusal
        inputs = (scenario, measured) if self.fed else (scenario,)
        told = {"tables": options.tables} if self.tabled else {}
        answer: Answer = self.load()(*inputs, **told)
        if scenario.cross and measured is None:
            answer.warn(LEFT_OUT + (FEED_MEASURED if self.fed else ""))
        if scenario.captured is None and scenario.network.has_return and measured is None:
            answer.warn(RETURN_LEFT_OUT + (FEED_MEASURED if self.fed else ""))
        if self.fed:
            feed = "scenario" if measured is None else "measured"
            answer.provenance.setdefault("feed", feed)
        answer.warn(*_hops_left_out(scenario))
        answer.warn(*([] if measured else path_left_out(scenario, fed=self.fed)))
        mark_outside(answer)
        answer.provenance |= {"version": _version(), "formula": self.source}
        if options.tables:
            answer.provenance["scenario"] = scenario.digest()
        return answer


def check_one_size(who: str, scenario: Scenario) -> None:
    """Raise NotApplicable if packets of a class have another size than ``network.packet``."""
    keys = [f"class.{name}.packet" for name in scenario.own_packets]
    if keys:
        raise NotApplicable(
            f"{keys[0]}: {who} has packets of one size, network.packet",
            Suggestion(dict.fromkeys(keys)),
        )


@functools.cache
def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - reads files

    return version("tcpcast")


def other_control(entry: Formula, scenario: Scenario) -> NotApplicable | None:
    """Return the refusal of a model: another congestion control than Reno, or a policer.

    None if it answers, and for a capture, whose stack is unknown.
    """
    groups = () if scenario.captured is not None else scenario.populations
    if any(group.has_start_or_stop for group in groups):
        return NotApplicable("its flows are always on, and a class of the scenario starts or stops")
    if scenario.captured is not None:
        return None
    if lacks_queue(entry, scenario):
        return NotApplicable(
            "it models a queue, and network.bottleneck.rate is a policer, which has none"
        )
    if entry.stack in CONTROLS:
        return None
    others = [g.tcp for g in scenario.populations if not models_control(entry, g.tcp.control)]
    if not others:
        return None
    formula = CONTROLS.get(others[0].control, "") if entry.family == PATH else ""
    return NotApplicable(
        f"it models the window of Reno, and the scenario's stack is {others[0].stack}",
        *([Suggestion(engine=formula)] if formula else []),
        Suggestion(stack_changes(scenario, supported_presets(entry)[0])),
    )


def lacks_queue(entry: Formula, scenario: Scenario) -> bool:
    """Return True if a formula models a queue, and the scenario has a policer instead."""
    return entry.family == USERS and scenario.network.bottleneck.is_policer


def models_control(entry: Formula, control: str) -> bool:
    """Say whether a formula answers for a congestion control."""
    return entry.stack == control if entry.stack in CONTROLS else control in entry.controls


def supported_presets(entry: Formula) -> tuple[str, ...]:
    """Return the presets for which a model of Reno answers: the nearest of today, the paper's."""
    if entry.stack == "max-plus-reno":
        return (entry.stack,)
    if entry.family == PATH:
        return ("linux-reno", "pftk-reno")
    return ("engset-newreno",) if entry.family == USERS else ("linux-reno",)


def path_left_out(scenario: Scenario, *, fed: bool) -> list[str]:
    """Say what a formula, whose links have constant rates and delays, makes of others."""
    if scenario.captured is not None:
        return []
    network, found = scenario.network, []
    for on in network.links(network.ingress, network.egress):
        rate = on.link.varying
        if rate is None:
            continue
        key = f"network.{on.key}.rate is a {rate.kind}"
        mean = rate.mean_text
        if on.link.is_policer:
            found.append(
                f"{key}: the model has its rate, {mean}, and none of its drops, which cost TCP "
                "much of it; check by packet" + (", or --feed measured" if fed else "")
            )
        else:
            found.append(f"{key}: the model has a link of its mean rate, {mean}, at all times")
    if network.jitter is not None:
        found.append("network.jitter is left out: the model's round-trip time is without")
    return found


def _hops_left_out(scenario: Scenario) -> list[str]:
    """Say which hops are no queues to a formula, which knows one."""
    network = scenario.network
    others = [hop.name for at, hop in enumerate(network.hops) if at != network.measured_at]
    if not others:
        return []
    queue = network.hops[network.measured_at].name
    return [
        f"the model has one queue, at {queue}; {', '.join(others)} only add transmission times, "
        "delays and specified losses"
    ]
