"""The model as printed, as its text means it, and with what it leaves out, beside packets."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.short import conditional_latency_s
from tcpcast.papers.short.settings import SIZES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.papers.short.runs import Latency
    from tcpcast.papers.short.settings import Setting

    Floats = NDArray[np.float64]

AS_PRINTED, MODEL, REFINED = "as printed, d = 0", "d = 1", "refined"
VARIANTS = (AS_PRINTED, MODEL, REFINED)
"""A round trip for the duplicates to come back, or none; with shared recovery and backoff."""

MOST_LOSSES = 3


@cache
def curves_s(setting: Setting, variant: str) -> Floats:
    """Return L_k over :data:`~tcpcast.papers.short.settings.SIZES`, shape (4, sizes), seconds."""
    transfer = {
        AS_PRINTED: setting.as_printed,
        MODEL: setting.transfer,
        REFINED: setting.refined,
    }[variant]
    return conditional_latency_s(transfer, SIZES, most_losses=MOST_LOSSES)


def mean_error(model_s: Floats, latency: Latency, losses: int) -> tuple[float, float]:
    """Return the mean distance of the model from packets, as a share, and half of its interval.

    Parameters
    ----------
    model_s
        L_k of the model, shape (losses, sizes).
    latency
        Of packets, over the same sizes; those without a mean are left out.
    losses
        k.
    """
    packets_s, half_s = latency.mean_s[losses], latency.half_s[losses]
    known = np.isfinite(packets_s)
    ratio = model_s[losses][known] / packets_s[known]
    spread = ratio * half_s[known] / packets_s[known]
    return float(np.mean(np.abs(ratio - 1))), float(np.sqrt(np.sum(spread**2)) / known.sum())
