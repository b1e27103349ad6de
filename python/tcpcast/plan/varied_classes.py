"""Classes of users that a plan varies: one class, or all in proportion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.engines.registry import check_packet_sizes_are_equal
from tcpcast.errors import DomainError, NotApplicable

if TYPE_CHECKING:
    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

RATE_METRIC = "connection_rate_bps"


@dataclass(frozen=True, slots=True)
class VariedClasses:
    """Number of sources of each class that a plan varies, in the scenario.

    ``others`` has the number of senders of all other classes by name.
    """

    counts: dict[str, int]
    others: dict[str, int]
    has_classes: bool

    @property
    def key(self) -> str:
        """Varied key of the scenario, for messages."""
        if not self.has_classes:
            return "traffic.sources"
        names = list(self.counts)
        return f"class.{names[0]}.sources" if len(names) == 1 else "the sources of all classes"

    @property
    def total(self) -> int:
        """Total number of sources of these classes in the scenario."""
        return sum(self.counts.values())

    def split(self, total: float) -> dict[str, int]:
        """Return the number of sources of each class, in the scenario's proportion, at least 1."""
        exact = {name: total * count / self.total for name, count in self.counts.items()}
        counts = {name: max(1, math.floor(share + 1e-9)) for name, share in exact.items()}
        while (left := int(total) - sum(counts.values())) != 0:
            sign = 1 if left > 0 else -1
            may = [name for name in counts if sign > 0 or counts[name] > 1]
            best = max(may, key=lambda name: sign * (exact[name] - counts[name]))
            counts[best] += sign
        return counts

    def changes(self, total: float) -> dict[str, Any]:
        """Return the changes that set the total number of sources."""
        if not self.has_classes:
            return {self.key: int(total)}
        return {f"class.{name}.sources": count for name, count in self.split(total).items()}

    @property
    def smallest_population_text(self) -> str:
        """Description of the smallest population."""
        if len(self.counts) > 1:
            return "one source of each class"
        name = next(iter(self.counts))
        return f"one source of {name}" if self.others else "a single source"

    def population_text(self, target: str) -> str:
        """Return the question of the largest population that meets a target in each class."""
        if not self.has_several_classes:
            return f"largest population with {target}"
        what = "population"
        if len(self.counts) == 1:
            what = f"number of sources of class {next(iter(self.counts))}"
        return f"largest {what} with {target} in each class"

    @property
    def has_several_classes(self) -> bool:
        """Return True if the scenario has more than one class."""
        return len(self.counts) + len(self.others) > 1

    def notes(self, quantity: str) -> list[str]:
        """Return notes about the growing classes and the class that has to meet the target."""
        if not self.has_several_classes:
            return []
        each = [f"{name} {count:,}" for name, count in self.counts.items()]
        grows = f"Only class {next(iter(self.counts))} grows"
        if len(each) > 1:
            grows = (
                f"All on/off classes grow in proportion ({', '.join(each)}); --class selects a "
                "single class"
            )
        stay = ", ".join(
            f"class {name} keeps {count:,} senders" for name, count in self.others.items()
        )
        return [f"{'; '.join(filter(None, [grows, stay]))}. {_slowest_class_note(quantity)}"]

    def text(self, total: float) -> str:
        """Return the number of sources of each class as a sentence, "" for one class."""
        if len(self.counts) == 1:
            return ""
        each = ", ".join(f"{count:,} of {name}" for name, count in self.split(total).items())
        return f"{total:,.0f} sources are {each}."


def select_varied_classes(scenario: Scenario, name: str | None, plan: str) -> VariedClasses:
    """Return the classes that a plan varies: the named one, or all with on/off sources.

    Raises
    ------
    NotApplicable
        No class has on/off sources.
    DomainError
        The class does not exist or has other traffic.
    """
    check_packet_sizes_are_equal(plan, scenario)
    people = scenario.populations
    counts = {each.name: each.count for each in people if each.traffic.kind == "on-off"}
    if not counts:
        raise NotApplicable(
            f'{plan} needs traffic of kind "on-off", but the scenario has '
            f'"{people[0].traffic.kind}"'
        )
    if name is not None and not scenario.classes:
        raise DomainError("--class: the scenario has no classes; omit the option")
    if name is not None and name not in counts:
        known = " or ".join(f'"{each}"' for each in counts)
        raise DomainError(f'--class: no class "{name}" with on/off sources; write {known}')
    grown = counts if name is None else {name: counts[name]}
    others = {each.name: each.count for each in people if each.name not in grown}
    return VariedClasses(grown, others, bool(scenario.classes))


def slowest_class_text(scenario: Scenario, of_class: str | None = None) -> str:
    """Return the class whose rate is compared with a target, "" if there is only one."""
    if of_class is not None:
        return f"class {of_class}"
    return "the slowest class" if len(scenario.populations) > 1 else ""


def each_class_text(scenario: Scenario, of_class: str | None) -> str:
    """Return the class that has to reach the target of a rate, "" if there is only one."""
    if of_class is not None:
        return f" in class {of_class}"
    return " in each class" if len(scenario.populations) > 1 else ""


def target_class_notes(scenario: Scenario, quantity: str, of_class: str | None) -> list[str]:
    """Return a note about the class that has to meet a target, [] if there is only one."""
    if of_class is not None:
        return [f"The target applies to the {quantity} of class {of_class}."]
    return [_slowest_class_note(quantity)] if len(scenario.populations) > 1 else []


def _slowest_class_note(quantity: str) -> str:
    return f"The target applies to the class with the lowest {quantity}."


def lowest_mean_rate(answer: Answer, name: str | None = None) -> Metric | None:
    """Return the mean connection rate of a class, or the lowest rate of all classes.

    None if the answer contains no such rate.
    """
    table = answer.tables.get("by_class")
    if answer.withheld or table is None or RATE_METRIC not in table:
        return answer.metrics.get(RATE_METRIC)
    rates = table[RATE_METRIC]
    if name is not None:
        rates = np.where(table["name"] == name, rates, math.nan)
    if not np.isfinite(rates).any():
        return None
    index = int(np.nanargmin(rates))
    ends = [float(table[f"{RATE_METRIC}_{end}"][index]) for end in ("low", "high")]
    return Metric(float(rates[index]), *(ends if all(map(math.isfinite, ends)) else ()))
