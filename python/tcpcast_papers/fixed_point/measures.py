"""Quantities of the paper's tables, computed from answers in the paper's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric

from tcpcast_papers.fixed_point.published import (
    BUFFER_PKTS,
    IDLE_RTT_S,
    LEVEL_STEP_KBIT,
    LINK_PPS,
)
from tcpcast_papers.reproduction import Cause, Row, Tolerance, scale_metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.answer import Answer

    from tcpcast_papers.reproduction import Printed

QUANTITY_LABELS: dict[str, tuple[str, str]] = {
    "loss": ("loss", "%"),
    "timeouts": ("timeouts per packet", "%"),
    "rtt": ("RTT", "s"),
    "goodput": ("goodput", "kbit/s"),
    "send_rate": ("send rate", "kbit/s"),
    "goodput_each": ("goodput", "packets/s"),
    "send_rate_each": ("send rate", "packets/s"),
    "g_95": ("g_95", "kbit/s"),
    "g_90": ("g_90", "kbit/s"),
    "g_80": ("g_80", "kbit/s"),
    "g_50": ("g_50", "kbit/s"),
    "idleness": ("idleness", "%"),
}
"""Description and unit of each quantity, by its name in the CSV files."""

GOODPUT_LEVELS = {"g_95": 0.95, "g_90": 0.9, "g_80": 0.8, "g_50": 0.5}
"""Share of the files whose goodput exceeds the level, by the name of the level."""

MAX_RTT_S = BUFFER_PKTS / LINK_PPS + IDLE_RTT_S
"""Maximum RTT by Little's law: a full buffer, served at the link's rate, and the idle path."""

WITHOUT_OWN_LINK = "an RTT without the wait at the source's own link"


def measure_quantity(quantity: str, result: Answer, flows: int) -> Metric | None:
    """Return a quantity of :data:`QUANTITY_LABELS` in its unit, or None if it is missing.

    The send rate of an active flow is its goodput times packets sent per packet delivered.
    """
    if quantity in GOODPUT_LEVELS:
        share = GOODPUT_LEVELS[quantity]
        table = result.tables.get("file_goodput")
        if table is None:
            return None
        places = np.flatnonzero(np.isclose(table["share"], share))
        if places.size != 1:
            return None
        figure, low, high = (float(table[n][places[0]]) for n in ("goodput_bps", "low", "high"))
        return scale_metric(metric_with_ends(figure, low, high), 1e-3)
    links = result.tables.get("by_link", {})
    if quantity == "loss" and "backbone" in links.get("link", ()):
        # The packets lost at any router, in percent of packets that arrived at the first router.
        drops = float((links["packets"] * np.nan_to_num(links["loss_ratio"])).sum())
        lost = 100.0 * drops / float(links["packets"][links["link"] == "backbone"][0])
        return Metric(lost, interval_warning="the loss is a sum over two routers")
    names = {
        "loss": ("loss_ratio", 100.0),
        "timeouts": ("timeout_ratio", 100.0),
        "idleness": ("idle_restart_ratio", 100.0),
        "rtt": ("rtt_mean_s", 1.0),
        "goodput": ("connection_rate_bps", 1e-3),
        "send_rate": ("connection_rate_bps", 1e-3),
        "goodput_each": ("goodput_pps", 1 / flows),
        "send_rate_each": ("send_rate_pps", 1 / flows),
    }
    name, scale = names[quantity]
    if quantity == "send_rate":
        sent, delivered = (result.metrics.get(f"{n}_pps") for n in ("send_rate", "goodput"))
        if sent is None or delivered is None or not delivered.value:
            return None
        scale *= sent.value / delivered.value
    metric = result.metrics.get(name)
    return None if metric is None else scale_metric(metric, scale)


def value_or_none(metric: Metric | None) -> float | None:
    """Return the value of a metric, or None if there is none."""
    return None if metric is None else metric.value


def metric_with_ends(value: float, low: float, high: float) -> Metric:
    """Return a simulated metric whose interval is missing if an end is nan."""
    if np.isfinite(low) and np.isfinite(high):
        return Metric(value, low, high)
    return Metric(value, interval_warning="too few observations")


def queueing_rtt_s(result: Answer) -> float | None:
    """Return the RTT by Little's law: the wait in the shared queue plus the idle path.

    Like the paper's RTT, it excludes the wait at the source's own link.
    """
    queue, rate = (result.metrics.get(name) for name in ("queue_mean_pkts", "goodput_pps"))
    if queue is None or rate is None or not rate.value:
        return None
    return queue.value / rate.value + IDLE_RTT_S


def tolerance_of_value(quantity: str, printed: Printed, relative: float) -> Tolerance:
    """Return the tolerance of a printed value: a share of it, or its rounding.

    The paper rounds goodput levels up to multiples of 10 kbit/s. Exactly the values in the step
    below a printed level agree with it.
    """
    if quantity in GOODPUT_LEVELS:
        return Tolerance(between=(max(printed.value - LEVEL_STEP_KBIT, 0.0), printed.value))
    return Tolerance(relative=relative, printed_digits=True)


@dataclass(frozen=True, slots=True)
class SettingAnswers:
    """Answers to one setting, from which rows are computed.

    Attributes
    ----------
    exact
        Answer with every flow.
    flows
        Number of flows.
    others
        Answers for the section's further columns.
    has_one_queue
        Whether the path has no queue except the shared router's and the source's own.
    """

    exact: Answer
    flows: int
    others: tuple[Answer, ...] = ()
    has_one_queue: bool = False

    def row(
        self,
        quantity: str,
        label: tuple[str, ...],
        printed: Printed | None,
        *,
        relative: float | None,
    ) -> Row:
        """Return the row of a quantity; with ``relative`` None it has no verdict."""
        own = measure_quantity(quantity, self.exact, self.flows)
        others = tuple(
            value_or_none(measure_quantity(quantity, each, self.flows)) for each in self.others
        )
        tolerance = None
        if printed is not None and relative is not None and own is not None:
            tolerance = tolerance_of_value(quantity, printed, relative)
        return Row.from_metric(
            (QUANTITY_LABELS[quantity][0], *label),
            QUANTITY_LABELS[quantity][1],
            printed,
            own,
            tolerance=tolerance,
            explained_by=self._own_link_wait_cause(quantity),
            others=others,
            withheld=tuple(each.incomplete_reason is not None for each in self.others),
        )

    def _own_link_wait_cause(self, quantity: str) -> Cause | None:
        """Return the RTT without the wait at the source's own link."""
        if quantity != "rtt" or not self.has_one_queue:
            return None
        without = queueing_rtt_s(self.exact)
        return None if without is None else Cause(WITHOUT_OWN_LINK, without)


def failed_test_remarks(answers: Mapping[str, Mapping[str, Answer]]) -> list[str]:
    """Return the failed tests of the fixed points, by scheme and by setting."""
    failures = [
        f"{scheme}: {'; '.join(off)}."
        for scheme, result in answers.items()
        if (
            off := [
                f"{where}: {_failed_tests_text(each)}"
                for where, each in result.items()
                if each.incomplete_reason
            ]
        )
    ]
    if not failures:
        return []
    return [
        "Values in brackets are withheld: the fixed point failed its own tests, or the load is "
        f"above the threshold. Failed tests: {' '.join(failures)}"
    ]


def _failed_tests_text(result: Answer) -> str:
    table = result.tables.get("convergence")
    if table is None:
        return f"{result.incomplete_reason}"
    return ", ".join(dict.fromkeys(table["what"][~table["passed"]].tolist())) or "none"
