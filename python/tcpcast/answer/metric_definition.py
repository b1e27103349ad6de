"""Definition of a metric: the fields of the rows of :data:`tcpcast.answer.metrics.METRICS`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Counters = tuple[str, ...]
"""Names of counters of the simulator, whose sum is used."""

ANY_TRAFFIC = ("path",)
"""Value of ``headline_of`` for metrics of the path, which reports show with any traffic."""

ScenarioFeature = Literal[
    "link rate",
    "queue",
    "queue drops",
    "random loss",
    "ECN marks",
    "several hops",
    "return link",
    "return rate",
    "modern stack",
]
"""Features of a scenario; ``engines/packet/scenario_features.py`` tests them."""

ClassColumnGroup = Literal["transfers", "bottleneck", "sender", "times"]
"""Groups of columns of table ``by_class``, in their order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricDefinition:
    """Definition of one metric.

    Parameters
    ----------
    unit, meaning
        The unit as in answers, and the definition in words.
    label
        The name in reports, if it is not derived from the metric's name.
    exceeds_one
        Whether a ratio can exceed 1.
    is_index
        Whether a metric of unit "1" is not shown as a percentage.
    ratio_of
        Counters of the numerator and of the denominator; ``time_ns`` is the time in which flows are
        active.
    count_of
        Counters whose sum per replication is the value.
    class_columns
        Group of columns of table ``by_class`` in which single classes of sources have the metric.
    needs
        Feature of the scenario without which the metric does not exist.
    events_need
        Feature of the scenario without which the counted events cannot occur: a value of 0 is then
        exact.
    counts_events
        Whether the numerator counts events; the interval then needs a minimum number of events.
    can_be_constant
        Whether batches of a run may be equal although the metric varies.
    bursts
        Counters of the events that a full queue causes in bursts; the interval needs several
        bursts.
    file_kinds
        Kinds of traffic whose finished files or transfers enter the mean.
    has_lower_bound
        Whether the ages of unfinished transfers give a lower bound of the mean, because the
        measured times end at the last acknowledgement, as the ages do.
    has_isolated_value
        Whether isolated transfers have a value that does not depend on the list of sizes or on the
        pauses between transfers.
    headline_of
        Kinds of traffic whose report begins with the metric, or :data:`ANY_TRAFFIC`.
    has_precision
        Whether a precision can be requested.
    precision_of
        Kind of traffic for which a precision without the name of a metric refers to this metric.
    is_one_per_replication
        Whether a replication has one value, so that intervals need several replications.
    is_extensive
        Whether the value is a sum over sources, and grows with the population.
    needs_all_flows
        Whether the metric has no value if only some of the flows are simulated.
    """

    unit: str
    meaning: str
    label: str = ""
    exceeds_one: bool = False
    is_index: bool = False
    ratio_of: tuple[Counters, Counters] = ((), ())
    count_of: Counters = ()
    class_columns: ClassColumnGroup | None = None
    needs: ScenarioFeature | None = None
    events_need: ScenarioFeature | None = None
    counts_events: bool = False
    can_be_constant: bool = False
    bursts: Counters = ()
    file_kinds: tuple[str, ...] = ()
    has_lower_bound: bool = False
    has_isolated_value: bool = True
    headline_of: tuple[str, ...] = ()
    has_precision: bool = False
    precision_of: str = ""
    is_one_per_replication: bool = False
    is_extensive: bool = False
    needs_all_flows: bool = False

    @property
    def maximum(self) -> float:
        """The largest possible value."""
        return 1.0 if self.unit == "1" and not self.exceeds_one else math.inf

    @property
    def is_percentage(self) -> bool:
        """Whether the value is shown as a percentage."""
        return self.unit == "1" and not self.is_index

    @property
    def counters(self) -> frozenset[str]:
        """The counters of the ratio or of the number."""
        numerator, denominator = self.ratio_of
        return frozenset((*numerator, *denominator, *self.count_of))
