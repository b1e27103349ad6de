"""The quantity that a plan varies: its keys of the scenario, and the limits of the search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import NotApplicable, OptionError, ScenarioError, name_of
from tcpcast.quantity import units
from tcpcast.scenario.rate import TokenBucket
from tcpcast.scenario.traffic import MAX_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcpcast.plan.questions import Question
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.links import NetworkLink

MAX_EXACT_SOURCES = 300_000
"""Largest population that is simulated source by source; each source takes 1 kB or more."""

MAX_FLOWS = 4096
"""Largest number of parallel flows of a search."""

MAX_BUFFER_MULTIPLE = 64
"""Maximum buffer of a search, in bandwidth-delay products or packets per sender."""

UNLIMITED_RATE = "1000gbit"
"""Rate of a practically unlimited bottleneck in simulations."""

RATE_TOLERANCE = 1.001
"""Relative accuracy of the minimum rate."""

MIN_LOSS, START_LOSS, MAX_LOSS = 1e-8, 0.01, 0.99
"""Limits of the loss in a search, and its first value."""

SHAPER_SHARE = 0.95
"""Share of the line of a shaper that a message proposes."""

MAX_SHAPER_FACTOR = 32
"""Largest ratio of a shaper's rate to its first value, and of the first value to its rate."""

MIN_TARGET_S, MAX_TARGET_S = 1e-4, 10.0
"""Limits of the target of an AQM."""

_KEYS_BY_KIND = {
    "on-off": ("sources", "traffic.sources"),
    "bulk": ("flows", "traffic.flows"),
    "transfers": ("traffic.arrivals.rate", "traffic.arrivals.rate"),
}
"""By kind of traffic: key of the number of senders in a class, and without classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """The varied quantity of one scenario.

    Attributes
    ----------
    make_changes
        Function that returns the changed keys for a value.
    start, minimum, maximum
        First value of a search, and its limits.
    easiest
        A value at which the target is easiest to meet, and its name in messages. It is simulated
        first, so that an unreachable target is reported early.
    name, text, column, unit, axis, integer
        Name of the varied key in messages; otherwise as in a question.
    notes
        Explanations of what is varied.
    counts
        Number of senders per varied class.
    scenario
        The scenario in which the keys are changed.
    """

    make_changes: Callable[[float], dict[str, Any]]
    start: float
    minimum: float = 1.0
    maximum: float = math.inf
    easiest: tuple[float, str] | None = None
    name: str
    text: str
    column: str
    unit: str
    axis: str
    integer: bool
    notes: tuple[str, ...] = ()
    counts: Mapping[str, float]
    scenario: Scenario

    def split_text(self, total: float) -> str:
        """Return the number of senders of each class as a sentence, "" for one class."""
        if len(self.counts) < 2:
            return ""
        split = split_in_proportion(self.counts, total, integer=self.integer)
        each = ", ".join(f"{count:,.6g} of {name}" for name, count in split.items())
        return f"{total:,.6g} {self.unit} are {each}."


def vary(question: Question, scenario: Scenario, engine: str, class_name: str | None) -> Varied:
    """Return the varied quantity of a question in a scenario.

    Raises
    ------
    NotApplicable
        The scenario has nothing to vary: no senders of the right kind, no link rate or no queue.
    DomainError
        The class does not exist, or cannot be varied.
    """
    make = {
        "buffer": _vary_buffer,
        "users": _vary_senders,
        "rate": _vary_rate,
        "streams": _vary_senders,
        "max-loss": _vary_loss,
        "shaper": _vary_shaper,
        "aqm": _vary_aqm_target,
    }[question.name]
    return make(question, scenario, engine, class_name)


def _of_question(question: Question, **changes: Any) -> Any:
    """Return a varied quantity with the names of its question."""
    names = ("text", "column", "unit", "axis", "integer")
    facts = {name: getattr(question, name) for name in names}
    return Varied(**{"name": question.key, "counts": {}, **facts, **changes})


def _vary_buffer(question: Question, scenario: Scenario, _: str, __: str | None) -> Varied:
    """Vary the buffer of the bottleneck, or the burst of a policer."""
    require_link_rate(question, scenario)
    link, packet_bytes = scenario.bottleneck, scenario.network.packet_bytes
    bdp = bdp_pkts(scenario)
    if link.is_policer:
        key = "network.bottleneck.rate.burst"
        start = max(math.ceil(bdp * packet_bytes), 2 * packet_bytes)
        return _of_question(  # type: ignore[no-any-return]
            question,
            name=key,
            text="smallest burst",
            column="burst_bytes",
            unit="byte",
            axis="burst",
            make_changes=lambda value: {key: f"{value:.0f}B"},
            start=start,
            minimum=packet_bytes,
            maximum=MAX_BUFFER_MULTIPLE * start,
            notes=("A policer has no buffer: the plan varies the burst of its token bucket.",),
            scenario=scenario,
        )
    start = max(round(bdp), 1)
    return _of_question(  # type: ignore[no-any-return]
        question,
        make_changes=lambda value: {question.key: f"{value:.0f}pkt"},
        start=start,
        maximum=MAX_BUFFER_MULTIPLE * max(start, scenario.senders),
        scenario=scenario,
    )


def bdp_pkts(scenario: Scenario) -> float:
    """Return the bandwidth-delay product in packets, for the mean RTT of the senders."""
    groups, network = scenario.populations, scenario.network
    # Arriving transfers have no number of senders.
    weights = [group.count if scenario.senders else 1 for group in groups]
    rtt_s = fmean((group.rtt_s for group in groups), weights)
    return rtt_s * scenario.bottleneck.rate_bps / (8 * network.packet_bytes)


def _vary_senders(
    question: Question, scenario: Scenario, engine: str, class_name: str | None
) -> Varied:
    """Vary the number of users or flows, or the rate of arriving transfers, of some classes."""
    kinds = ("bulk",) if question.name == "streams" else ("on-off", "transfers")
    people = [each for each in scenario.populations if not scenario.isolated_transfers]
    kind = next((k for k in kinds if any(each.traffic.kind == k for each in people)), "")
    if not kind:
        classes: dict[str, list[str]] = {}
        for each in scenario.populations:
            classes.setdefault(units.quote(each.traffic.kind), []).append(each.name)
        is_divided = len(scenario.populations) > 1
        present = [
            f"{kind} ({', '.join(names)})" if is_divided else kind
            for kind, names in classes.items()
        ]
        raise NotApplicable(
            f"plan {question.name} requires traffic of kind "
            f"{units.quote(kinds[0])}{', or traffic.arrivals' if len(kinds) > 1 else ''}, but "
            f"the traffic of the scenario is {', '.join(present)}"
        )
    require_link_rate(question, scenario)
    arriving = kind == "transfers"
    counts: dict[str, float] = {
        each.name: each.traffic.arrivals.rate if arriving else each.count  # type: ignore[union-attr]
        for each in people
        if each.traffic.kind == kind
    }
    if class_name is not None:
        check_class(scenario, class_name, counts)
        counts = {class_name: counts[class_name]}
    of_class, alone = _KEYS_BY_KIND[kind]
    keys = {name: f"class.{name}.{of_class}" if scenario.classes else alone for name in counts}
    homes = dict.fromkeys(e.site for e in scenario.classes if e.site and e.name in counts)
    of_sites = bool(homes) and not arriving
    if of_sites:  # the number of homes grows, not that of the sources of each
        keys = {name: f"site.{name}.count" for name in homes}
        counts = {name: scenario.sites[name].count for name in homes}
    write: Callable[[float], Any] = _write_arrivals if arriving else int
    maximum = MAX_FLOWS if kind == "bulk" else MAX_SOURCES
    if engine == "packet":
        maximum = min(maximum, MAX_EXACT_SOURCES)

    def make_changes(total: float) -> dict[str, Any]:
        split = split_in_proportion(counts, total, integer=not arriving)
        return {keys[name]: write(count) for name, count in split.items()}

    total, least = sum(counts.values()), float(len(counts))
    more: dict[str, Any] = {}
    if arriving:
        least = 1e-6 * total
        more = {
            "text": "largest arrival rate",
            "unit": "transfers/s",
            "column": "arrivals_per_s",
            "axis": "arriving transfers per second",
            "integer": False,
        }
    elif kind == "on-off":
        smallest = "one source" + (" of each class" if len(counts) > 1 else "")
        more = {"easiest": (least, f"with {smallest}")}
        if homes:
            members = " and ".join(filter(None, homes))
            more = {
                "easiest": (least, f"with one member of {members}"),
                "text": f"largest number of members of site {members}",
                "unit": "members",
                "column": "members",
                "axis": f"members of site {members}",
            }
    return _of_question(  # type: ignore[no-any-return]
        question,
        name=next(iter(keys.values())) if len(keys) == 1 else f"the {question.key} of all classes",
        make_changes=make_changes,
        start=max(min(total, maximum), least) if question.name == "users" else least,
        minimum=least,
        maximum=maximum,
        notes=tuple(_growth_notes(scenario, counts, of_sites=of_sites)),
        counts=counts,
        scenario=scenario,
        **more,
    )


def _write_arrivals(rate: float) -> str:
    return units.format_per_second(float(f"{rate:.9g}"))


def check_class(scenario: Scenario, name: str, known: Mapping[str, Any]) -> None:
    """Raise OptionError unless a class exists and is a key of ``known``."""
    if not scenario.classes:
        raise OptionError(
            "--class", "requires [[class]] tables in the scenario; add them, or omit --class"
        )
    if name not in known:
        written = " or ".join(map(units.quote, known))
        raise OptionError("--class", f"must be {written}, not {units.quote(name)}")


def _growth_notes(scenario: Scenario, counts: Mapping[str, float], *, of_sites: bool) -> list[str]:
    """Return a note about the growing and the constant classes, if there are several classes.

    ``counts`` has numbers of classes, or numbers of members of sites.
    """
    if len(scenario.populations) == 1:
        return []
    growing = [e.name for e in scenario.classes if e.site in counts] if of_sites else [*counts]
    others = [each.name for each in scenario.populations if each.name not in growing]
    if of_sites:
        text = f"All classes of site {' and '.join(counts)} grow ({', '.join(growing)})"
    elif len(counts) == 1:
        text = f"Only class {next(iter(counts))} grows"
    else:
        each = ", ".join(f"{name} {count:,.6g}" for name, count in counts.items())
        text = f"The classes grow in proportion ({each}); {name_of('--class')} selects one of them"
    unchanged = f"; unchanged: {', '.join(others)}" if others else ""
    return [f"{text}{unchanged}."]


def split_in_proportion(
    counts: Mapping[str, float], total: float, *, integer: bool
) -> dict[str, float]:
    """Split a total among classes in the given proportion; whole numbers are at least 1."""
    whole = sum(counts.values())
    exact = {name: total * count / whole for name, count in counts.items()}
    if not integer:
        return exact
    split: dict[str, float] = {n: max(1, math.floor(part + 1e-9)) for n, part in exact.items()}
    while (left := int(total) - sum(split.values())) != 0:
        sign = 1 if left > 0 else -1
        may = [name for name in split if sign > 0 or split[name] > 1]
        best = max(may, key=lambda name: sign * (exact[name] - split[name]))
        split[best] += sign
    return split


def _vary_rate(question: Question, scenario: Scenario, _: str, class_name: str | None) -> Varied:
    """Vary the rate of the bottleneck, or of its token bucket."""
    if class_name is not None:
        check_class(scenario, class_name, {each.name: each for each in scenario.populations})
    start, key = scenario.bottleneck.rate_bps, question.key
    if math.isinf(start):
        scenario = scenario.with_changes({key: UNLIMITED_RATE})
        start = units.parse_rate("10mbit")
    elif (varying := scenario.bottleneck.varying) is not None:
        if not isinstance(varying, TokenBucket):
            raise NotApplicable(
                "plan rate requires a constant rate, but the rate of the bottleneck is a "
                f"{varying.kind}"
            )
        key += ".bucket"
    # The slowest bottleneck whose transmission time fits into the round-trip times.
    low, high = 1.0, start
    while high > low * RATE_TOLERANCE:
        middle = math.sqrt(low * high)
        try:
            scenario.with_changes({key: units.format_rate(middle)})
            high = middle
        except ScenarioError:
            low = middle
    return _of_question(  # type: ignore[no-any-return]
        question,
        name=key,
        make_changes=lambda value: {key: units.format_rate(value)},
        start=start,
        minimum=math.ceil(high),
        maximum=units.parse_rate(UNLIMITED_RATE),
        easiest=(units.parse_rate(UNLIMITED_RATE), "with an unlimited bottleneck"),
        scenario=scenario,
    )


def _vary_loss(question: Question, scenario: Scenario, _: str, __: str | None) -> Varied:
    """Vary the random loss of the bottleneck."""
    easiest: tuple[float, str] | None = (0.0, "without random loss")
    try:
        scenario.with_changes({question.key: "0%"})
    except ScenarioError:  # only the loss limits the flows
        easiest = None
    return _of_question(  # type: ignore[no-any-return]
        question,
        make_changes=lambda value: {question.key: units.format_ratio(value)},
        start=START_LOSS,
        minimum=MIN_LOSS,
        maximum=MAX_LOSS,
        easiest=easiest,
        scenario=scenario,
    )


def _vary_shaper(question: Question, scenario: Scenario, _: str, class_name: str | None) -> Varied:
    """Vary the rate of the shaper of a link: CAKE, or a token bucket."""
    name, link = _link_for_delay(question, scenario, class_name)
    cake_bps, most_bps = getattr(link.queue, "shaper", None), math.inf
    if cake_bps is not None:
        key, start, most_bps = f"link.{name}.queue.rate", cake_bps, link.rate_bps
    elif isinstance(link.varying, TokenBucket):
        key, start = f"link.{name}.rate.bucket", link.varying.bucket
    else:
        example = units.format_rate(float(f"{SHAPER_SHARE * link.rate_bps:.3g}"))
        raise NotApplicable(
            f"plan shaper requires a shaper, but link {name} has none; use {name_of('--link')}, or "
            f'link.{name}.queue = {{ kind = "cake", rate = "{example}" }}, for example'
        )
    return _of_question(  # type: ignore[no-any-return]
        question,
        name=key,
        make_changes=lambda value: {key: units.format_rate(float(f"{value:.6g}"))},
        start=start,
        minimum=start / MAX_SHAPER_FACTOR,
        maximum=min(start * MAX_SHAPER_FACTOR, most_bps),
        scenario=scenario,
    )


def _vary_aqm_target(
    question: Question, scenario: Scenario, _: str, class_name: str | None
) -> Varied:
    """Vary the target of a link's queue discipline."""
    name, link = _link_for_delay(question, scenario, class_name)
    start = getattr(link.queue, "target", None)
    if start is None:
        raise NotApplicable(
            f"plan aqm requires a queue with a target, but link {name} has none; use "
            f'{name_of("--link")}, or link.{name}.queue = "fq_codel", for example'
        )
    key = f"link.{name}.queue"
    # The queue may be a name, without a table.
    queue = scenario.resolved()["link"][name]["queue"]
    # CoDel requires a target below its interval.
    most = 0.99 * getattr(link.queue, "interval", MAX_TARGET_S)
    return _of_question(  # type: ignore[no-any-return]
        question,
        name=f"{key}.target",
        make_changes=lambda value: {
            key: queue | {"target": units.format_duration(float(f"{value:.6g}"))}
        },
        start=start,
        minimum=MIN_TARGET_S,
        maximum=most,
        scenario=scenario,
    )


def _link_for_delay(
    question: Question, scenario: Scenario, class_name: str | None
) -> tuple[str, NetworkLink]:
    """Return the chosen link of a network, in which a class must have a delay."""
    if not scenario.links:
        raise NotApplicable(
            f"plan {question.name} requires a network of links; see `tcpcast home --print-scenario`"
        )
    timed = {e.name: e for e in scenario.populations if e.traffic.kind in ("messages", "ping")}
    if not timed:
        raise NotApplicable(
            f"plan {question.name} requires a class of kind messages or ping, whose delay is the "
            "target"
        )
    if class_name is not None:
        check_class(scenario, class_name, timed)
    return scenario.headline, scenario.links[scenario.headline]


def require_link_rate(question: Question, scenario: Scenario) -> None:
    """Raise NotApplicable unless the bottleneck has a rate."""
    if math.isinf(scenario.bottleneck.rate_bps):
        raise NotApplicable(
            f"plan {question.name} requires a link with a rate; use network.bottleneck.rate = "
            '"10mbit", for example'
        )
