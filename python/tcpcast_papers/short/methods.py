"""Methods whose latencies the figures compare: variants of the model, and packets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric
from tcpcast.models.short import conditional_latency_s, expected_latency_s

from tcpcast_papers.short.published import LOSS
from tcpcast_papers.short.runs import BACKOFF_UNTIL_ACK, DEFAULT_RULES
from tcpcast_papers.short.settings import SIZES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tcpcast.models.short import ShortTransfer

    from tcpcast_papers.short.runs import LatencyCurves, Runs
    from tcpcast_papers.short.settings import Setting

    Floats = NDArray[np.float64]

AS_PRINTED, MODEL, REFINED = "as printed, d = 0", "d = 1", "refined"
VARIANTS = (AS_PRINTED, MODEL, REFINED)
"""Variants of the model: without, and with, a round trip for duplicate acks; and with shared
recovery, backoff and the ack timer."""

PACKETS, PACKETS_RESET_BY_ACKS = "packets", "packets, doubling ends at any ack"
RULES = {PACKETS: DEFAULT_RULES, PACKETS_RESET_BY_ACKS: BACKOFF_UNTIL_ACK}

MAX_LOSSES = 3


@dataclass(frozen=True)
class ModelLatency:
    """Latency curves of the model, as in :class:`.LatencyCurves` but without half-widths."""

    transfer: ShortTransfer

    @cached_property
    def given(self) -> Floats:
        """Latency for each number of losses, shape (4, 1, sizes)."""
        return conditional_latency_s(self.transfer, SIZES, max_losses=MAX_LOSSES)[:, None]

    @cached_property
    def given_loss(self) -> Floats:
        """Latency of transfers with at least one loss."""
        return expected_latency_s(self.transfer, SIZES, loss=LOSS, given_loss=True)[None]

    @cached_property
    def expected(self) -> Floats:
        """Latency of all transfers."""
        return expected_latency_s(self.transfer, SIZES, loss=LOSS)[None]


@cache
def model_latency(setting: Setting, variant: str) -> ModelLatency:
    """Return the curves of a variant of the model."""
    transfers = (setting.as_printed, setting.transfer, setting.refined)
    return ModelLatency(transfers[VARIANTS.index(variant)])


def latency_by_method(runs: Runs, setting: Setting, method: str) -> LatencyCurves | ModelLatency:
    """Return the curves of a setting for a variant of the model or for packets."""
    if method in VARIANTS:
        return model_latency(setting, method)
    return runs.latency_curves(runs.figure_job(setting, RULES[method]))


def mean_error(model: Floats, packets: Floats) -> Metric:
    """Return the mean distance of a model's curve from the curve of packets, in percent.

    Sizes without a mean for packets are left out.
    """
    known = np.isfinite(packets[0])
    mean, half = packets[:, known]
    ratio = model[0, known] / mean
    error, spread = np.mean(np.abs(ratio - 1)), np.sqrt(np.sum((ratio * half / mean) ** 2))
    result = (error, max(error - spread / known.sum(), 0.0), error + spread / known.sum())
    value, low, high = (100 * float(each) for each in result)
    return Metric(value, low, high)
