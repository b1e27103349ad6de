"""Counters of an emulated link after its programs have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionCounts:
    """Packets, IP bytes and times in nanoseconds of one direction.

    ``entered`` = ``delivered`` + ``full_drops`` + ``early_drops`` + ``random_drops`` +
    ``machinery_drops`` + ``in_transit``. For delivered packets, ``wait_*`` is the time before
    transmission, and ``late_*`` the delay of the delivery beyond the emulated time.
    ``program_bytes`` are the IP bytes delivered until the program ended.
    """

    entered: int
    entered_bytes: int
    delivered: int
    delivered_bytes: int
    program_bytes: int
    full_drops: int
    early_drops: int
    random_drops: int
    machinery_drops: int
    misaddressed: int
    marked: int
    in_transit: int
    wait_mean_ns: int
    wait_p95_ns: int
    wait_max_ns: int
    late_mean_ns: int
    late_p50_ns: int
    late_p99_ns: int
    late_max_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOutcome:
    """Results of a link and of the program at its near end.

    ``near_to_far`` and ``far_to_near`` are the counters of both directions. ``distortion`` is the
    reason not to trust the counters, or None. ``program_ns`` is the time of the program in
    nanoseconds, ``elapsed_ns`` that of the link, which also waits for the program at the far end to
    listen and to end, and ``away_ns`` the time for which the clock of the link was paused.
    """

    status: int
    device: str
    program_ns: int
    elapsed_ns: int
    away_ns: int
    pauses: int
    longest_pause_ns: int
    missed: int
    cpu_ns: int
    near_to_far: DirectionCounts
    far_to_near: DirectionCounts
    distortion: str | None
    capture_fault: str | None

    @classmethod
    def from_lines(cls, messages: Mapping[str, str]) -> LinkOutcome:
        """Create the outcome from the messages of the link's process, by key."""
        return cls(
            **{each.name: int(messages[each.name]) for each in fields(cls) if each.type == "int"},
            device=messages["way"],
            near_to_far=_read_direction_counts(messages, "forward"),
            far_to_near=_read_direction_counts(messages, "back"),
            distortion=messages.get("distortion"),
            capture_fault=messages.get("capture_fault"),
        )


def _read_direction_counts(messages: Mapping[str, str], name: str) -> DirectionCounts:
    keys = [field.name for field in fields(DirectionCounts)]
    return DirectionCounts(**{key: int(messages[f"{name}.{key}"]) for key in keys})
