"""Fast recovery of NewReno (RFC 6582) in :mod:`tcpcast.models.pftk.chain`.

A triple duplicate with a window of w, after which d packets arrive and w - d are lost, is followed
by w - d rounds of recovery. With h = w/2, rounded down:

- Each round retransmits one packet. A retransmission is lost with probability p, and then the
  recovery ends in a timeout.
- The window is h plus the duplicates. Round i therefore also sends max(0, d - w + h + i - 1) new
  packets. They count among the packets of the next period. If one of them is lost, the period ends
  with the recovery, at a window of h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tcpcast.array_types import Floats

DUPLICATE_THRESHOLD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Probabilities and means of a loss at each window; index 0 is a window of 1.

    All values include losses that end in a timeout immediately, for which they are 0.
    """

    failed: Floats
    """Probability that a retransmission is lost."""
    lost_new: Floats
    """Probability that all retransmissions arrive, but a new packet of the recovery is lost."""
    rounds: Floats
    """Mean number of complete rounds, each of which delivers one retransmission."""
    retransmitted: Floats
    """Mean number of retransmissions sent."""


def no_recovery(largest: int) -> Recovery:
    """Return the recovery of the paper's model, which takes no time."""
    nothing = np.zeros(largest)
    return Recovery(failed=nothing, lost_new=nothing, rounds=nothing, retransmitted=nothing)


def newreno_recovery(largest: int, p: float, later: float | None) -> Recovery:
    """Return NewReno's recovery for windows up to ``largest``.

    ``later`` is the loss probability of each packet after the first lost one; None if all later
    packets of the round are lost.
    """
    q, rows = 1 - p, []
    for w, delivered in enumerate(_delivered_distributions(largest, p, later), start=1):
        d = np.arange(DUPLICATE_THRESHOLD, w)
        at = delivered[DUPLICATE_THRESHOLD:]
        h, first = w // 2, np.maximum(d - w + w // 2, 0)
        new = (h * (h - 1) - first * (first - 1)) / 2
        repaired = q ** (w - d)
        sent = (1 - repaired) / p
        rows.append([at @ (1 - repaired), at @ (repaired * (1 - q**new)), at @ sent])
    failed, lost_new, sent = np.array(rows).T
    return Recovery(failed=failed, lost_new=lost_new, rounds=q * sent, retransmitted=sent)


def _delivered_distributions(largest: int, p: float, later: float | None) -> Iterator[Floats]:
    """Yield, for windows of 1, 2, ..., the distribution of d = 0, 1, ..., w - 1."""
    row = np.ones(1)
    for w in range(1, largest + 1):
        if later is None:
            # At least d packets precede the loss in its round, and d arrive in the next round.
            kept = (1 - p) ** np.arange(w + 1.0)
            yield -np.diff(kept * (kept - kept[-1]) / (1 - kept[-1]))
        else:
            yield row
            row = later * np.append(row, 0.0) + (1 - later) * np.append(0.0, row)
