"""Notes on intervals that are withheld or need a check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from tcpcast.engines.packet.metric_estimates import Estimates, Snapshot


def make_interval_notes(
    estimates: Estimates, snapshot: Snapshot, by_class: Mapping[str, NDArray[Any]]
) -> list[Note]:
    """Return notes on intervals that are withheld or need a check, and on missing metrics.

    Parameters
    ----------
    estimates, seen
        The estimates over all classes, and the counters of the run.
    by_class
        The table of the classes; empty if there is none.
    """
    known = {name: e for name, e in estimates.items() if e is not None}
    warned = {name: e for name, e in known.items() if e.interval_warning is not None}
    with_interval = sum(e.low is not None for e in known.values())
    reasons: dict[tuple[str, bool], list[str]] = {}
    for name, e in warned.items():
        reasons.setdefault((str(e.interval_warning), e.low is None), []).append(name)
    listed: list[Note] = []
    for (warning, withheld), names in reasons.items():
        if len(names) == (len(warned) + with_interval if withheld else with_interval):
            what = "no metric has an interval" if withheld else "check every interval"
            listed.append(Note(f"{warning}; {what}", kind="withheld" if withheld else "run"))
        else:
            listed.append(_make_note_on_intervals(warning, names, withheld=withheld))
    listed += _make_class_notes(by_class, {warning for warning, _ in reasons})
    if snapshot.loss_events is None:
        listed.append(
            Note(
                "loss_event_ratio_cumulative is omitted, because a replication has more than "
                "4,194,304 loss indications; use more replications, and shorter ones",
                ("loss_event_ratio_cumulative",),
                kind="withheld",
            )
        )
    return listed


def _make_class_notes(table: Mapping[str, NDArray[Any]], known: Collection[str]) -> list[Note]:
    """Return a note for each warning about values of classes.

    Parameters
    ----------
    table
        The table ``by_class``.
    known
        Warnings about the values over all classes, which already have a note.
    """
    groups: dict[tuple[str, bool], tuple[dict[str, None], set[str]]] = {}
    for column in (name for name in table if name.endswith("_interval_warning")):
        metric = column.removesuffix("_interval_warning")
        for name, warning, low in zip(
            table["name"], table[column], table[f"{metric}_low"], strict=True
        ):
            if warning and warning not in known:
                classes, metrics = groups.setdefault((str(warning), math.isnan(low)), ({}, set()))
                classes[str(name)] = None
                metrics.add(metric)
    return [
        _make_note_on_intervals(
            f"class {', '.join(classes)}: {warning}", metrics, withheld=withheld
        )
        for (warning, withheld), (classes, metrics) in groups.items()
    ]


def _make_note_on_intervals(warning: str, metrics: Iterable[str], *, withheld: bool) -> Note:
    """Return the note that the intervals of metrics are withheld or need a check."""
    names = tuple(sorted(metrics))
    if withheld:
        return Note(f"{warning}; no interval for ", names, kind="withheld", named=True)
    return Note(f"{warning}; check the intervals of ", names, kind="check", named=True)
