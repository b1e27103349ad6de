"""Comparison of PFTK's closed form with the Markov chain that it approximates by means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.pftk.chain import window_chain
from tcpcast.models.pftk.closed_form import throughput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats
    from tcpcast.models.pftk.chain import AfterTimeout, LaterLosses


LOSS_PROBABILITIES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
RTTS_S = (0.02, 0.05, 0.1, 0.2)
PACKETS_PER_ACK = (1, 2)
WINDOWS_PKTS = (8.0, 32.0, np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedFormError:
    """Rates over a grid; arrays of the shape (losses, RTTs, packets per ack, windows).

    Attributes
    ----------
    loss_probability, rtt_s, packets_per_ack, receiver_window_pkts
        The axes, one-dimensional.
    t0_s
        T0 in seconds, the same in the entire grid.
    closed_form_pps
        B(p) of (31).
    chain_pps
        Rate of the chain.
    unbroken_chain_pps
        Rate of the chain if a timeout halves the window like a triple duplicate.
    """

    loss_probability: Floats
    rtt_s: Floats
    packets_per_ack: NDArray[np.int64]
    receiver_window_pkts: Floats
    t0_s: float
    closed_form_pps: Floats
    chain_pps: Floats
    unbroken_chain_pps: Floats

    @property
    def error(self) -> Floats:
        """Overestimate of the closed form, relative to the chain's rate."""
        return self.closed_form_pps / self.chain_pps - 1

    @property
    def restart_error(self) -> Floats:
        """Part of ``error`` because a period after a timeout starts from W/2 instead of 1."""
        return self.unbroken_chain_pps / self.chain_pps - 1

    @property
    def means_error(self) -> Floats:
        """Part of ``error`` because means and real numbers replace distributions of integers.

        1 + ``error`` is the product of 1 + this and 1 + ``restart_error``.
        """
        return self.closed_form_pps / self.unbroken_chain_pps - 1


def closed_form_error(
    *,
    loss_probability: Sequence[float] = LOSS_PROBABILITIES,
    rtt_s: Sequence[float] = RTTS_S,
    t0_s: float = 1.0,
    packets_per_ack: Sequence[int] = PACKETS_PER_ACK,
    receiver_window_pkts: Sequence[float] = WINDOWS_PKTS,
    losses: LaterLosses = "rest-of-round",
    continuous: bool = False,
) -> ClosedFormError:
    """Return the closed form (31) and the chain over a grid.

    Parameters
    ----------
    loss_probability, rtt_s, packets_per_ack, receiver_window_pkts
        The axes: sequences of the arguments of :func:`throughput` and :func:`window_chain`. W_max
        in integer packets.
    t0_s
        T0 in seconds.
    losses
        Losses of the chain within a round, as in :func:`window_chain`.
    continuous
        As in :func:`throughput`.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    p, rtt, most = (
        np.asarray(axis, dtype=np.float64)
        for axis in (loss_probability, rtt_s, receiver_window_pkts)
    )
    acked = np.asarray(packets_per_ack, dtype=np.int64)
    closed = throughput(
        rtt_s=rtt[:, None, None],
        t0_s=t0_s,
        loss_indication_ratio=p[:, None, None, None],
        packets_per_ack=acked[:, None],
        receiver_window_pkts=most,
        continuous=continuous,
    ).rate_pps
    chain, unbroken = np.empty_like(closed), np.empty_like(closed)
    restarts: tuple[tuple[AfterTimeout, Floats], ...] = ("one", chain), ("half", unbroken)
    for i, j, k in np.ndindex(p.size, acked.size, most.size):
        for after_timeout, rates in restarts:
            rates[i, :, j, k] = window_chain(
                loss_probability=float(p[i]),
                packets_per_ack=int(acked[j]),
                receiver_window_pkts=float(most[k]),
                losses=losses,
                after_timeout=after_timeout,
            ).rate_pps(rtt_s=rtt, t0_s=t0_s)
    return ClosedFormError(
        loss_probability=p,
        rtt_s=rtt,
        packets_per_ack=acked,
        receiver_window_pkts=most,
        t0_s=t0_s,
        closed_form_pps=closed,
        chain_pps=chain,
        unbroken_chain_pps=unbroken,
    )
