"""Comparison with a second capture: loss and transit times between the two taps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.quantity.readable_units import past_clause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

COUNT_COLUMNS = (
    "packets_seen_before",
    "packets_seen_after",
    "lost_between",
    "under_way",
    "seen_at_both",
)
MIN_COMMON_SHARE = 0.9
"""Minimum share of the packets at the second tap on the path that the first tap also captured.

A packet that only the second tap captured was changed between the taps, and its original would
count as lost. Below this share, the loss is therefore unknown.
"""


def second_tap_columns(native: Mapping[str, Any]) -> Table:
    """Return the columns that a second capture adds to the table of directions.

    ``packets_seen_before`` and ``packets_seen_after`` count packets, including ACKs, at the two
    taps in the time that both captures cover. A frame that merges several packets (TSO, GRO) counts
    as several packets. ``lost_between`` counts packets that only the first tap on the path
    captured, and is NaN if too few packets can be matched. ``under_way`` counts packets that were
    between the taps when the capture at the second tap ended. ``loss_ratio_between`` (p_r) is the
    number of lost packets divided by the number of packets at the first tap, without those under
    way. Transit times are clock differences in seconds. ``passes`` is the order of the taps.
    """
    raw = native["columns"]
    columns: Table = {name: raw[name] for name in COUNT_COLUMNS}
    columns["passes"] = np.where(raw["forward"], "before-after", "after-before")
    last = _packets_at_tap(raw, first=False, is_forward=raw["forward"])
    known = (raw["seen_at_both"] > 0) & (raw["seen_at_both"] >= MIN_COMMON_SHARE * last)
    columns["lost_between"] = np.where(known, raw["lost_between"], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = columns["lost_between"] / loss_denominators(columns)
    transit = {name: raw[name] for name in ("transit_min_s", "transit_mean_s", "transit_max_s")}
    passes = columns.pop("passes")
    return columns | {"loss_ratio_between": ratio} | transit | {"passes": passes}


def loss_denominators(columns: Table) -> Column:
    """Return the denominator of p_r for each direction.

    The denominator is the number of packets at the first tap, without packets in flight at the end.
    It is 0 if the loss of the direction is unknown.
    """
    is_forward = columns["passes"] == "before-after"
    first = _packets_at_tap(columns, first=True, is_forward=is_forward)
    return np.where(np.isfinite(columns["lost_between"]), first - columns["under_way"], 0)


def _packets_at_tap(columns: Table, *, first: bool, is_forward: Column) -> Column:
    """Return the packets at the first or the last tap on the path of each direction."""
    return np.where(
        is_forward == first, columns["packets_seen_before"], columns["packets_seen_after"]
    )


def totals_by_tap_order(columns: Table) -> Table:
    """Return totals over the directions whose loss is known: one row per order of the taps.

    If the loss of all directions is unknown, the row is their total, with a loss of NaN.
    """
    table: dict[str, list[Any]] = {}
    for order in ("before-after", "after-before"):
        these = (columns["passes"] == order) & (columns["seen_at_both"] > 0)
        if not these.any():
            continue
        known_losses = these & np.isfinite(columns["lost_between"])
        these = known_losses if known_losses.any() else these
        sums = {name: columns[name][these].sum() for name in COUNT_COLUMNS}
        known = int(loss_denominators(columns)[these].sum())
        row = {
            "passes": order,
            **sums,
            "loss_ratio_between": sums["lost_between"] / known if known else np.nan,
            "transit_min_s": float(columns["transit_min_s"][these].min()),
            "transit_mean_s": float(
                np.average(columns["transit_mean_s"][these], weights=columns["seen_at_both"][these])
            ),
            "transit_max_s": float(columns["transit_max_s"][these].max()),
        }
        for name, value in row.items():
            table.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in table.items()}


def comparison_warnings(native: Mapping[str, Any]) -> list[str]:
    """Return the warnings about the comparison."""
    raw = native["columns"]
    count = raw["forward"].size
    lines = [f"second tap: {warning}" for warning in native["warnings"]]

    def add(count: int, noun: str, fact: str) -> None:
        if count:
            lines.append(past_clause(count, noun, fact))

    if not raw["seen_at_both"].any():
        add(
            count,
            "direction",
            "were not seen at the second tap; check that both captures are from the same time, "
            "and that there is no NAT between the taps",
        )
        return lines
    if not raw["transit_max_s"][raw["seen_at_both"] > 0].any():
        lines.append(
            "every packet has the same time at both taps; check that the files are not copies of "
            "one capture"
        )
    unseen = raw["seen_at_both"] == 0
    add(
        int(unseen.sum()),
        "direction",
        "were not seen at the second tap; packets of such directions do not count as lost",
    )
    add(
        native["only_after"],
        "direction",
        "were captured only at the second tap; tcpcast ignores such directions",
    )
    add(
        int(raw["seen_apart"].sum()),
        "packet",
        "were captured at one tap before the other capture began; tcpcast ignores such packets",
    )
    add(
        int((np.isnan(second_tap_columns(native)["lost_between"]) & ~unseen).sum()),
        "direction",
        "were left with unknown loss between the taps, because the tap closer to the sender "
        f"captured less than {100 * MIN_COMMON_SHARE:.0f} % of the packets at the other tap. A "
        "device changes the packets, or the capture closer to the sender is incomplete",
    )
    add(
        native["forgotten"],
        "packet",
        "were not among the next 500,000 packets at the second tap; such packets count as lost, "
        "even if they arrived later",
    )
    add(
        native["dropped"],
        "direction",
        "were not compared, because there are more than 131,072 directions; tcpcast compares "
        "those with the most packets",
    )
    return [*lines, *_clock_warnings(native["clock_least_s"], native["clock_most_s"])]


def _clock_warnings(least_s: float | None, most_s: float | None) -> list[str]:
    """Return a warning with the minimum offset between the clocks if the offset is not 0."""
    if least_s is not None and least_s > 0:
        ahead, sign = least_s, "ahead of"
    elif most_s is not None and most_s < 0:
        ahead, sign = -most_s, "behind"
    else:
        return []
    return [
        f"the second tap's clock is at least {ahead:.6g} s {sign} the first tap's clock; transit "
        "times include this error"
    ]
