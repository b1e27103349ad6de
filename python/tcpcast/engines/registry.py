"""Rows of the registry: module, description and domain of each engine.

Modules of engines are imported at their first use.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note, texts_to_notes
from tcpcast.process.errors import DomainError, NotApplicable, Suggestion, name_of
from tcpcast.quantity.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer
    from tcpcast.engines.options import RunOptions
    from tcpcast.scenario import Scenario

CROSS_TRAFFIC_OMITTED = "the formula ignores cross traffic"
RETURN_PATH_OMITTED = "the formula ignores the return path: its ACKs are neither queued nor lost"
"""Warnings about features of a scenario that a formula omits."""

SUGGEST_MEASURED_FEED = Suggestion(feed="measured")
"""Suggests inputs from a simulation, which include the effects of omitted features on loss and
RTT."""


PATH_FAMILY = "closed formulas for one path"
TRANSFERS_FAMILY = "closed formulas for short transfers"
USERS_FAMILY = "closed formulas for users on a link"
FIXED_POINT_FAMILY = "fixed point"
POPULATION_FAMILY = "scaled population"
SIMULATION_FAMILY = "packet-level simulation"
MEASUREMENT_FAMILY = "real kernel"

FORMULA_BY_CONTROL = {"cubic": "cubic-response", "bbr": "bbr-bound"}
"""Formula engines of congestion controls other than Reno."""

PLUGINS_FAMILY = "engines of other packages"
FAMILIES = (
    *(
        PATH_FAMILY,
        TRANSFERS_FAMILY,
        USERS_FAMILY,
        FIXED_POINT_FAMILY,
        POPULATION_FAMILY,
        SIMULATION_FAMILY,
        MEASUREMENT_FAMILY,
    ),
    PLUGINS_FAMILY,
)
"""Kinds of engines, in the order of ``tcpcast engines``."""

TRAFFIC_BY_FAMILY = {PATH_FAMILY: "bulk", TRANSFERS_FAMILY: "transfers", USERS_FAMILY: "on-off"}
"""Kind of traffic that the formulas of a family describe."""


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """A row of the registry; ``function`` of ``module`` takes a scenario and options.

    ``family`` is one of :data:`FAMILIES`. ``trust`` states when its values can be trusted, for an
    engine without a row in :data:`tcpcast.models.domain.DOMAINS`. ``any_packet_size`` is True if
    classes may differ in packet size, ``has_links`` if the engine covers networks of links.
    ``plot_style`` is a colour of
    :data:`tcpcast.report.palette.COLOUR_NAMES`, and the index of a marker (measured and simulated
    values) or of a dash pattern (calculated values). It is None for engines of other packages.
    """

    module: str
    function: str
    summary: str
    applies: str
    family: str
    trust: str = ""
    runs_by_default: bool = True
    any_packet_size: bool = False
    has_links: bool = False
    plot_style: tuple[str, int] | None = None

    def trust_conditions(self, name: str) -> str:
        """Return the conditions for trusting an engine: its ``trust``, or its domain."""
        from tcpcast.models.domain import describe_domain  # noqa: PLC0415 - imports numpy

        return self.trust or describe_domain(name)

    def is_default_for(self, scenario: Scenario) -> bool:  # noqa: ARG002 - used by subclasses
        """Return True if the engine runs by default."""
        return self.runs_by_default

    def check_network(self, scenario: Scenario) -> None:
        """Raise NotApplicable for packet sizes or links that the engine does not support."""
        if not self.any_packet_size:
            check_packet_sizes_are_equal("the model", scenario)
        stepped = [group.stepped_key for group in scenario.populations if group.stepped_key]
        if stepped and self.family != SIMULATION_FAMILY:
            raise NotApplicable(
                f"{stepped[0]}: in this engine, applications read and write immediately",
                Suggestion(engine="packet"),
            )
        if scenario.links and not self.has_links:
            raise NotApplicable(
                "the engine models one bottleneck for all packets, but the scenario is a "
                "network of links with routes"
            )

    def load(self) -> Callable[..., Any]:
        """Import the module of the engine and return its function."""
        function: Callable[..., Any] = getattr(importlib.import_module(self.module), self.function)
        return function

    def run(
        self,
        scenario: Scenario,
        options: RunOptions,
        measured: Answer | None,  # noqa: ARG002 - used by subclasses
    ) -> Answer:
        """Answer a scenario; ``measured`` is the simulator's answer, for formulas.

        Raises
        ------
        NotApplicable
            The engine does not cover the scenario; the message contains the reason.
        """
        answer: Answer = self.load()(scenario, options)
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula(EngineEntry):
    """Entry of an engine with a closed form: ``function`` takes a scenario, returns an Answer.

    ``source`` is the publication. If ``accepts_measured``, the function also takes the ``packet``
    answer, or None to use the scenario's values. If
    ``stack`` is not Reno, the formula is evaluated by default only for scenarios with that stack;
    requested by name, it answers any scenario. ``controls`` are the congestion controls that a
    model of Reno's window covers.
    The rate of a formula with ``is_upper_bound`` is a bound rather than an estimate.
    """

    source: str
    accepts_measured: bool = False
    stack: str = ""
    controls: tuple[str, ...] = ("reno",)
    is_upper_bound: bool = False
    has_links: bool = True

    def is_default_for(self, scenario: Scenario) -> bool:
        """Return True if the formula runs by default."""
        if path_or_control_refusal(self, scenario) is not None:
            return False
        tcp = scenario.populations[0].tcp
        controls = {"bbr": ("bbr", "bbr3")}.get(self.stack, (self.stack,))
        return self.runs_by_default and (self.stack in {"", tcp.stack} or tcp.control in controls)

    def run(
        self,
        scenario: Scenario,
        options: RunOptions,  # noqa: ARG002 - for engines that simulate
        measured: Answer | None,
    ) -> Answer:
        """Answer a scenario, with the simulator's p, RTT and T0 if ``measured`` is given."""
        from tcpcast.models.domain import outside_domain_reason  # noqa: PLC0415 - imports numpy

        is_measured = measured is not None and self.accepts_measured
        refusal = path_or_control_refusal(self, scenario, is_measured=is_measured)
        if refusal is not None:
            raise refusal
        inputs = (scenario, measured) if self.accepts_measured else (scenario,)
        try:
            answer: Answer = self.load()(*inputs)
        except DomainError as error:
            # For example values of a simulation that the model excludes; other engines go on.
            raise NotApplicable(f"the model excludes these inputs: {error}") from error
        feed_measured = (SUGGEST_MEASURED_FEED,) if self.accepts_measured else ()
        if scenario.cross and measured is None:
            answer.warn(Note(CROSS_TRAFFIC_OMITTED, kind="model", suggestions=feed_measured))
        if scenario.network.has_return and measured is None:
            answer.warn(Note(RETURN_PATH_OMITTED, kind="model", suggestions=feed_measured))
        if self.accepts_measured:
            feed = "scenario" if measured is None else "measured"
            answer.provenance.setdefault("feed", feed)
        answer.warn(*_warn_about_omitted_hops(scenario))
        answer.warn(
            *(
                []
                if measured
                else warn_about_varying_path(scenario, accepts_measured=self.accepts_measured)
            )
        )
        why = outside_domain_reason(answer.engine, **answer.domain)
        outside = [f"outside the domain of the model: {why}"] if why else []
        tcp = scenario.populations[0].tcp
        if self.stack in FORMULA_BY_CONTROL and self.stack != tcp.control:
            of = self.stack.upper()
            outside.append(f"the model is for {of}, but the scenario's stack is {tcp.stack}")
        if outside:
            answer.mark_untrusted()
            answer.notes[:0] = texts_to_notes(outside, "outside")
        answer.provenance |= {"version": _native_version(), "formula": self.source}
        answer.provenance["scenario"] = scenario.digest()
        return answer


def check_packet_sizes_are_equal(who: str, scenario: Scenario) -> None:
    """Raise NotApplicable if a class has another packet size than ``network.packet``."""
    keys = [f"class.{name}.packet" for name in scenario.packet_size_classes]
    if keys:
        raise NotApplicable(
            f"{keys[0]}: {who} requires packets of one size; set the size with network.packet",
            Suggestion(dict.fromkeys(keys)),
        )


@functools.cache
def _native_version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - reads files

    return version("tcpcast")


def path_or_control_refusal(
    entry: Formula, scenario: Scenario, *, is_measured: bool = False
) -> NotApplicable | None:
    """Return the reason to refuse a model: its path, another congestion control, paced rates.

    The result is None if the model applies. With ``is_measured``, its inputs are measured, and
    include the effects of all links.
    """
    obstacle = scenario.path().obstacles
    if obstacle and not is_measured:
        return NotApplicable(obstacle)
    if any(group.has_start_or_stop for group in scenario.populations):
        return NotApplicable(
            "the flows of the model never start or stop, but a class of the scenario has start or "
            "stop times"
        )
    paced = min(group.tcp.max_rate_bps for group in scenario.populations)
    if paced < math.inf:
        return NotApplicable(
            f"tcp.pacing = {format_rate(paced)} limits the rate, but the formula models a TCP "
            "that only windows limit",
            Suggestion(engine="packet"),
        )
    if has_policer_instead_of_queue(entry, scenario):
        return NotApplicable(
            "the formula models a queue, but network.bottleneck.rate is a policer without a queue"
        )
    if entry.stack in FORMULA_BY_CONTROL:
        return None
    others = [
        g.tcp for g in scenario.populations if not models_congestion_control(entry, g.tcp.control)
    ]
    if not others:
        return None
    suggestions = []
    if all(g.traffic.kind == TRAFFIC_BY_FAMILY[entry.family] for g in scenario.populations):
        formula = FORMULA_BY_CONTROL.get(others[0].control, "")
        if formula and entry.family == PATH_FAMILY:
            suggestions.append(Suggestion(engine=formula))
        stack = presets_covered_by_reno_model(entry)[0]
        suggestions.append(Suggestion(changes_to_set_stack(scenario, stack)))
    return NotApplicable(
        f"the formula models the window of Reno, but the scenario's stack is {others[0].stack}",
        *suggestions,
    )


def changes_to_set_stack(scenario: Scenario, stack: str) -> dict[str, str]:
    """Return the changes that give a stack to all senders."""
    owners = [f"class.{entry.name}." for entry in scenario.classes if entry.tcp is not None]
    all_own = len(owners) == len(scenario.classes) > 0
    keys = [*([] if all_own else ["tcp.stack"]), *(f"{owner}tcp.stack" for owner in owners)]
    return dict.fromkeys(keys, stack)


def has_policer_instead_of_queue(entry: Formula, scenario: Scenario) -> bool:
    """Return True if a formula models a queue, but the scenario has a policer."""
    return entry.family == USERS_FAMILY and scenario.bottleneck.is_policer


def models_congestion_control(entry: Formula, control: str) -> bool:
    """Return True if a formula models a congestion control."""
    return (
        entry.stack == control if entry.stack in FORMULA_BY_CONTROL else control in entry.controls
    )


def presets_covered_by_reno_model(entry: Formula) -> tuple[str, ...]:
    """Return the presets that a model of Reno covers: the closest modern one, and the paper's."""
    if entry.stack == "max-plus-reno":
        return (entry.stack,)
    if entry.family == PATH_FAMILY:
        return ("linux-reno", "pftk-reno")
    return ("engset-newreno",) if entry.family == USERS_FAMILY else ("linux-reno",)


def warn_about_varying_path(scenario: Scenario, *, accepts_measured: bool) -> list[str]:
    """Return warnings about varying rates and delays, which formulas replace by constants."""
    network, warnings = scenario.network, []
    for on in scenario.populations[0].route:
        rate = on.link.varying
        if rate is None:
            continue
        key = f"{on.key}.rate is a {rate.kind}"
        mean = rate.mean_text
        if on.link.is_policer:
            warnings.append(
                f"{key}: the model includes the rate of the policer ({mean}), but not its drops, "
                "which greatly reduce the rate of TCP; check with the packet engine"
                + (f", or {name_of('--feed')} measured" if accepts_measured else "")
            )
        else:
            warnings.append(f"{key}: the model assumes a constant rate of {mean} (the mean)")
    if network.jitter is not None:
        warnings.append("the RTT of the model is constant, so network.jitter is ignored")
    return warnings


def _warn_about_omitted_hops(scenario: Scenario) -> list[str]:
    """Return a warning about hops whose queues a formula omits."""
    network = scenario.network
    others = [hop.name for at, hop in enumerate(network.hops) if at != network.measured_index]
    if not others:
        return []
    queue = network.hops[network.measured_index].name
    return [
        f"the model includes a queue only at {queue}; {', '.join(others)} add only transmission "
        "times, delays and specified losses"
    ]
