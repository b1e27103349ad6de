"""What a single path needs: window, socket buffers and flows that fill its link, and times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.engines.formula.path_requirements import (
    DEFAULT_AMOUNT_BYTES,
    compute_path_requirements,
    flows_to_fill_text,
    lossy_buffer_text,
    path_requirement_texts,
    time_for_amount_s,
    time_for_amount_text,
)

if TYPE_CHECKING:
    from tcpcast.comparison.compare import ComparedAnswers
    from tcpcast.engines.formula.path_requirements import PathRequirements
    from tcpcast.scenario import Scenario


def path_advice(
    compared: ComparedAnswers, scenario: Scenario | None, amount_bytes: float | None = None
) -> list[str]:
    """Return sentences on a single path; empty for other scenarios.

    ``amount_bytes`` is an amount of data whose time at the rate of endless flows is stated.
    """
    if scenario is None or not _is_single_path(scenario):
        return []
    goodput_bps, sizing = _goodput_bps(compared), compute_path_requirements(scenario)
    texts = []
    if scenario.isolated_transfers is None:
        amount = DEFAULT_AMOUNT_BYTES if amount_bytes is None else amount_bytes
        if not _exceeds_run_with_start(scenario, amount, goodput_bps):
            texts = [time_for_amount_text(scenario, amount, goodput_bps)]
    if sizing is not None:
        needs, buffers = path_requirement_texts(sizing)
        texts += [needs, lossy_buffer_text(sizing, scenario, goodput_bps) or buffers]
        texts += [flows_to_fill_text(sizing)] * scenario.has_random_loss
    return list(filter(None, texts))


def path_sizing(
    compared: ComparedAnswers, scenario: Scenario, amount_bytes: float | None = None
) -> dict[str, Any]:
    """Return the values of :func:`path_advice` as JSON data; empty without a link with a rate."""
    sizing: PathRequirements | None = None
    if _is_single_path(scenario):
        sizing = compute_path_requirements(scenario)
    if sizing is None:
        return {}
    amount = DEFAULT_AMOUNT_BYTES if amount_bytes is None else amount_bytes
    goodput_bps = _goodput_bps(compared)
    seconds = time_for_amount_s(scenario, amount, goodput_bps)
    known = math.isfinite(seconds) and not _exceeds_run_with_start(scenario, amount, goodput_bps)
    time = seconds if known else None
    return {"sizing": sizing.to_json() | {"amount_bytes": amount, "amount_s": time}}


def _exceeds_run_with_start(scenario: Scenario, amount_bytes: float, goodput_bps: float) -> bool:
    """Return True for an amount that takes longer than a run whose goodput includes its start.

    For example, all of a run of 1 s can be slow start; the rate of a longer transfer is another.
    """
    run = scenario.run
    return (
        run.warmup_s == 0
        and run.duration_s is not None
        and 8 * amount_bytes > goodput_bps * run.duration_s
    )


def _is_single_path(scenario: Scenario) -> bool:
    """Return True for endless flows or single transfers of one class over one link."""
    if len(scenario.populations) > 1 or scenario.cross:
        return False
    network, traffic = scenario.network, scenario.populations[0].traffic
    link = scenario.bottleneck
    is_plain = len(network.hops) <= 1 and link.varying is None and network.return_link is None
    return is_plain and (traffic.kind == "bulk" or scenario.isolated_transfers is not None)


def _goodput_bps(compared: ComparedAnswers) -> float:
    """Return the goodput of the reference, or else of the first trusted answer; NaN without one."""
    for row in compared.overall.rows:
        if row.metric == "goodput_bps":
            first = row.metrics[compared.overall.reference or 0]
            return next((m.value for m in (first, *row.metrics) if m and m.trusted), math.nan)
    return math.nan
