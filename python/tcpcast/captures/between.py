"""A second tap: which packets of a direction passed from one tap to the other, and how fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

COUNTS = ("packets_seen_before", "packets_seen_after", "lost_between", "under_way", "seen_at_both")
FEW = 0.5
"""Share of packets seen at both taps below which the captures hardly show the same packets."""


def passed(found: Mapping[str, Any]) -> Table:
    """Return what a second tap adds to the table of directions.

    ``packets_seen_before`` and ``packets_seen_after`` count packets (acks, too) at the two taps
    where both captures cover them; ``lost_between`` those seen at the tap that the direction passes
    first and never at the other, ``under_way`` those in flight when the other capture ended;
    ``loss_ratio_between`` is p_r: those lost over all that were not in flight at the end. Transit
    times are by the taps' clocks, s. ``passes`` says which tap comes first.
    """
    raw = found["columns"]
    columns: Table = {name: raw[name] for name in COUNTS}
    columns["passes"] = np.where(raw["forward"], "before-after", "after-before")
    seen = raw["seen_at_both"] > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(seen, raw["lost_between"] / compared(columns), np.nan)
    transit = {name: raw[name] for name in ("transit_min_s", "transit_mean_s", "transit_max_s")}
    passes = columns.pop("passes")
    return columns | {"loss_ratio_between": ratio} | transit | {"passes": passes}


def compared(columns: Table) -> Column:
    """Return the packets of each direction that p_r is of.

    Those at the tap that it passes first, without those in flight at the end; none of a direction
    that the other tap does not show.
    """
    forward = columns["passes"] == "before-after"
    first = np.where(forward, columns["packets_seen_before"], columns["packets_seen_after"])
    return np.where(columns["seen_at_both"] > 0, first - columns["under_way"], 0)


def overall(columns: Table) -> Table:
    """Return the same over all directions seen at both taps: one row for each order of the taps."""
    table: dict[str, list[Any]] = {}
    for order in ("before-after", "after-before"):
        these = (columns["passes"] == order) & (columns["seen_at_both"] > 0)
        if not these.any():
            continue
        sums = {name: int(columns[name][these].sum()) for name in COUNTS}
        known = int(compared(columns)[these].sum())
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


def doubts(found: Mapping[str, Any]) -> list[str]:
    """Say what to check before trusting the comparison."""
    raw = found["columns"]
    first = np.where(raw["forward"], raw["packets_seen_before"], raw["packets_seen_after"])
    lines = [f"second tap: {warning}" for warning in found["warnings"]]

    def say(count: int, one: str) -> None:
        if count:
            lines.append(f"{count:,} {one}")

    if not raw["seen_at_both"].any():
        say(
            first.size,
            "directions have no packet at the second tap: does it capture the same packets at the "
            "same "
            "time, without NAT and without segmentation between the taps?",
        )
        return lines
    if not raw["transit_max_s"][raw["seen_at_both"] > 0].any():
        lines.append(
            "every packet has the same time at both taps: are they two copies of one capture?"
        )
    unseen = raw["seen_at_both"] == 0
    say(int(unseen.sum()), "directions missing at the second tap: not counted as lost")
    say(found["only_after"], "directions seen at the second tap only: left out")
    say(
        int(raw["seen_apart"].sum()),
        "packets captured before the other capture began: not compared",
    )
    if raw["seen_at_both"].sum() < FEW * first[~unseen].sum():
        lines.append(
            "less than half of the packets are at both taps: packets cut or joined by a network "
            "card (TSO, GRO) cannot be matched; capture with these offloads turned off"
        )
    say(
        found["forgotten"],
        "packets no longer looked for after half a million others: if they came later, they count "
        "as lost",
    )
    say(
        found["dropped"],
        "directions of few packets were not compared: more than 131,072 were there",
    )
    return [*lines, *_clocks(found["clock_least_s"], found["clock_most_s"])]


def _clocks(least_s: float | None, most_s: float | None) -> list[str]:
    """Say by how much the second clock must be ahead of the first, or behind it."""
    if least_s is not None and least_s > 0:
        ahead, sign = least_s, "ahead of"
    elif most_s is not None and most_s < 0:
        ahead, sign = -most_s, "behind"
    else:
        return []
    return [
        f"the second tap's clock is at least {ahead:.6g} s {sign} the first's: transit times "
        "are wrong by that"
    ]
