"""Loss and delay between two capture points, one paragraph per direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.captures import iter_plain_rows
from tcpcast.report.document import Paragraph

if TYPE_CHECKING:
    from tcpcast.array_types import Table

DIRECTION_TEXTS = {
    "before-after": "towards the second tap",
    "after-before": "back to the first tap",
}


def tap_comparison_parts(between: Table) -> list[Paragraph]:
    """Return one paragraph per direction between the two capture points."""
    parts = []
    for row in iter_plain_rows(between):
        first = "before" if row["passes"] == "before-after" else "after"
        ratio = row["loss_ratio_between"]
        in_flight = f", {row['under_way']:,} in flight at the end" if row["under_way"] else ""
        lost = "" if ratio is None else f", {row['lost_between']:,.0f} lost, p_r = {ratio:.4%}"
        parts.append(
            Paragraph(
                f"{DIRECTION_TEXTS[row['passes']]}: {row[f'packets_seen_{first}']:,} packets"
                f"{lost}{in_flight}; transit time "
                f"{row['transit_min_s'] * 1e3:.3f} to {row['transit_max_s'] * 1e3:.3f} ms, "
                f"{row['transit_mean_s'] * 1e3:.3f} ms on average",
                mark="between: ",
            )
        )
    return parts
