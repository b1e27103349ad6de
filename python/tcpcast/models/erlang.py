"""Processor sharing with a rate limit per flow, for Poisson arrivals: TCP-Erlang.

TCP-Engset with infinitely many sources: flows arrive at random, and j active flows get min(h0, C/j)
each. The number of active flows is that of Erlang's delay system with s = C/h0 servers (A. K.
Erlang, *Solution of some problems in the theory of probabilities of significance in automatic
telephone exchanges*, 1917). The mean number does not depend on the distribution of sizes
(insensitivity). For integer s, the slowdown is that of the M/G/R-PS model (A. Riedl, T. Bauschert,
M. Perske, A. Probst, *Investigation of the M/G/R processor sharing model for dimensioning of IP
access networks with elastic traffic*, 2000), for s up to 1 that of M/G/1-PS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tcpcast.array_types import Floats

MAX_SERVERS = 1e6
"""Maximum s, which limits the time of the recursion."""


def erlang_slowdown(*, load: ArrayLike, servers: ArrayLike) -> Floats:
    """Return the mean time of a flow relative to its time on the idle link.

    With S = floor(s) and a = s rho, and B(S) by Erlang's recursion 1/B(k) = 1 + k/(a B(k - 1)),

        slowdown = (a (1 - B) + B (S rho/(1 - rho) + rho/(1 - rho)^2)) / (a (1 + B rho/(1 - rho))).

    Parameters
    ----------
    load
        rho = lambda sigma/C, from 0 and below 1: arrivals per second times mean size, relative to
        the link rate.
    servers
        s = C/h0, above 0 and at most :data:`MAX_SERVERS`: flows that the link carries at their rate
        on the idle path. The two arrays are broadcast.

    Returns
    -------
    ndarray
        At least 1, or 1/s for s below 1, in the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside the domain above.

    Examples
    --------
    >>> erlang_slowdown(load=0.5, servers=[1, 4, 20]).round(3).tolist()
    [2.0, 1.087, 1.0]
    """
    rho, s = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (load, servers)))
    if not np.all((rho >= 0) & (rho < 1)):
        raise DomainError("load must be at least 0 and below 1")
    if not np.all((s > 0) & (s <= MAX_SERVERS)):
        raise DomainError(f"servers must be above 0 and at most {MAX_SERVERS:g}")
    offered = np.maximum(rho * s, 1e-300)
    whole = np.floor(s * (1 + 1e-9))
    inverse = np.ones(rho.shape)
    for k in range(1, int(whole.max(initial=0)) + 1):
        with np.errstate(over="ignore"):
            inverse = np.where(k <= whole, 1 + inverse * k / offered, inverse)
    blocked = 1 / inverse
    shared = rho / (1 - rho)
    active = offered * (1 - blocked) + blocked * (whole * shared + shared / (1 - rho))
    return np.asarray(active / (offered * (1 + blocked * shared)))
