"""What the paper's tables are about, taken from answers in the paper's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric

from tcpcast_papers.fixed_point.published import (
    BUFFER_PKTS,
    GRANULARITY_KBIT,
    LINK_PPS,
    PATH_S,
)
from tcpcast_papers.reproduction import Cause, Row, Tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.answer import Answer

    from tcpcast_papers.reproduction import Printed

WORDS: dict[str, tuple[str, str]] = {
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
"""Each quantity of the tables: in words, and its unit."""

SHARES = {"g_95": 0.95, "g_90": 0.9, "g_80": 0.8, "g_50": 0.5}
"""What share of the files exceeds each level."""

RTT_CEILING_S = BUFFER_PKTS / LINK_PPS + PATH_S
"""Little's law: a full buffer, served at the link's rate, and the empty path."""

OWN_LINK = "the wait for the source's own link left out of the RTT"


def measure(quantity: str, result: Answer, flows: int) -> Metric | None:
    """Return a quantity of :data:`WORDS` in its unit, None where an answer does not tell it.

    The send rate while on is the goodput while on, times packets sent per packet delivered.
    """
    if quantity in SHARES:
        return _level(result, SHARES[quantity])
    if quantity == "loss" and "by_hop" in result.tables:
        return _loss_on_the_way(result)
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
    return None if metric is None else _scaled(metric, scale)


def value(metric: Metric | None) -> float | None:
    """Return the figure of a metric, None where there is none."""
    return None if metric is None else metric.value


def _scaled(metric: Metric, scale: float) -> Metric:
    low, high = (None if end is None else scale * end for end in (metric.low, metric.high))
    return Metric(scale * metric.value, low, high)


def _loss_on_the_way(result: Answer) -> Metric:
    """Return packets lost at any hop, in percent of those that came to the first."""
    hops = result.tables["by_hop"]
    return Metric(100.0 * float(hops["drops"].sum()) / float(hops["arrived"][0]))


def _level(result: Answer, share: float) -> Metric | None:
    table = result.tables.get("file_goodput")
    if table is None:
        return None
    places = np.flatnonzero(np.isclose(table["share"], share))
    if places.size != 1:
        return None
    figure, low, high = (float(table[n][places[0]]) for n in ("goodput_bps", "low", "high"))
    ends = (low, high) if np.isfinite(low) and np.isfinite(high) else (None, None)
    return _scaled(Metric(figure, *ends), 1e-3)


def queueing_rtt_s(result: Answer) -> float | None:
    """Return the RTT by Little's law: what waits in the shared queue, and the empty path.

    It holds no wait for a source's own link, as the paper's, which runs from there.
    """
    queue, rate = (result.metrics.get(name) for name in ("queue_mean_pkts", "goodput_pps"))
    if queue is None or rate is None or not rate.value:
        return None
    return queue.value / rate.value + PATH_S


def agreement(quantity: str, printed: Printed, relative: float) -> Tolerance:
    """Return what counts as agreement with a printed figure: a share of it, or its rounding.

    Levels are rounded up to 10 kbit/s in print, so that anything in the step below agrees.
    """
    if quantity in SHARES:
        lowest = (1 - relative) * max(printed.value - GRANULARITY_KBIT, 0.0)
        return Tolerance(relative=relative, between=(lowest, printed.value))
    return Tolerance(relative=relative, printed_digits=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """Answers to one setting, of which rows are made.

    Attributes
    ----------
    exact
        Every flow.
    flows
        How many these are.
    beside
        Answers for the section's further columns.
    one_queue
        Whether the shared router's is the only queue on the way but for the source's own.
    """

    exact: Answer
    flows: int
    others: tuple[Answer, ...] = ()
    one_queue: bool = False

    def row(
        self,
        quantity: str,
        label: tuple[str, ...],
        printed: Printed | None,
        *,
        relative: float | None,
    ) -> Row:
        """Return the row of a quantity; ``relative`` None for one that is only shown."""
        own = measure(quantity, self.exact, self.flows)
        others = tuple(value(measure(quantity, each, self.flows)) for each in self.others)
        tolerance = None
        if printed is not None and relative is not None and own is not None:
            tolerance = agreement(quantity, printed, relative)
        return Row.of(
            (WORDS[quantity][0], *label),
            WORDS[quantity][1],
            printed,
            own,
            tolerance=tolerance,
            explained_by=self._cause(quantity, printed, tolerance),
            others=others,
            withheld=tuple(each.incomplete_reason is not None for each in self.others),
        )

    def _cause(
        self,
        quantity: str,
        printed: Printed | None,
        tolerance: Tolerance | None,
    ) -> Cause | None:
        """Return the RTT without the wait for the source's own link, where that is as printed.

        A cause has to give the figure, not only one that lies on its side.
        """
        if quantity != "rtt" or not self.one_queue or printed is None or tolerance is None:
            return None
        without = queueing_rtt_s(self.exact)
        if without is None or not tolerance.admits(without, printed):
            return None
        return Cause(OWN_LINK, without)


def missing(*answers: Answer) -> list[str]:
    """Say what is left out of a section and why, once for each reason."""
    reasons = dict.fromkeys(
        f"Left out, engine {each.engine}: {each.not_applicable}"
        for each in answers
        if each.not_applicable is not None
    )
    return [reason.replace("\n", "; ") for reason in reasons]


def failed(answers: Mapping[str, Mapping[str, Answer]]) -> list[str]:
    """Say which fixed points, by scheme and by setting, did not pass which of their own tests."""
    told = [
        f"{scheme}: {'; '.join(off)}."
        for scheme, result in answers.items()
        if (
            off := [
                f"{where}: {_tests(each)}"
                for where, each in result.items()
                if each.incomplete_reason
            ]
        )
    ]
    if not told:
        return []
    return [
        "In brackets is what the fixed point withholds because it did not pass its own tests, or "
        f"because the load is above the threshold. These tests fail. {' '.join(told)}"
    ]


def _tests(result: Answer) -> str:
    table = result.tables.get("convergence")
    if table is None:
        return f"{result.incomplete_reason}"
    return ", ".join(dict.fromkeys(table["what"][~table["passed"]].tolist())) or "none"
