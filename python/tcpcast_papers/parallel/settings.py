"""The set-ups of the figures: points of random loss, of drop-tail queues, and of the real paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.parallel.points import OpenChoice, Point

if TYPE_CHECKING:
    from tcpcast_papers.parallel.runs import SampleSizes

RANDOM_30, RANDOM_100, DROP_TAIL = "random loss, 30 ms", "random loss, 100 ms", "drop-tail, 30 ms"
DROP_TAIL_SPREAD_RTTS = "drop-tail, round trips spread"
IRELAND, TEXAS = "stand-in for Innsbruck - Ireland", "stand-in for Innsbruck - Texas"

DELAYS_S = {RANDOM_30: 0.03, RANDOM_100: 0.1}
RTT_SPREADS = {DROP_TAIL: 0.0, DROP_TAIL_SPREAD_RTTS: 0.1}
"""Relative spread of round trips; in the paper all are equal."""
JITTERS_S = {"drop-tail, jitter 0.5 ms": 0.0005, "drop-tail, jitter 1 ms": 0.001}
"""Mean of a random delay behind the shared link; the paper has none."""
JITTER_FLOWS = (10, 100)

REAL_DELAYS_S = {IRELAND: 0.024, TEXAS: 0.077}
"""Delays of the shared link for the RTTs in the traceroutes of section VI: 52 and 158 ms."""
REAL_RATE_MBIT = 10
"""Rate of the sender's network card, which was reduced to get losses."""
REAL_HOST_TCP = OpenChoice("SACK, delayed acks", (("stack", "rfc-sack"), ("min_rto", "200ms")), 2)
"""Linux of 2006; its BIC is not simulated."""

SETTINGS = (*DELAYS_S, *RTT_SPREADS, *JITTERS_S, *REAL_DELAYS_S)


def points_of_setup(setting: str, sample_sizes: SampleSizes) -> list[Point]:
    """Return the points of a set-up, by n, then by increasing loss."""
    if setting in DELAYS_S:
        return [
            Point(n, loss=loss, delay_s=DELAYS_S[setting])
            for n in sample_sizes.flows
            for loss in sample_sizes.losses
        ]
    if setting in REAL_DELAYS_S:
        return [
            Point(n, rate_mbit=REAL_RATE_MBIT, delay_s=REAL_DELAYS_S[setting], choice=REAL_HOST_TCP)
            for n in sample_sizes.real_flows
        ]
    spread, jitter_s = RTT_SPREADS.get(setting, 0.0), JITTERS_S.get(setting, 0.0)
    return [
        Point(n, rate_mbit=rate, rtt_spread=spread, jitter_s=jitter_s)
        for n in sample_sizes.flows
        for rate in sorted(sample_sizes.rates_mbit)[::-1]
        if (n > 1 or not spread) and (n in JITTER_FLOWS or not jitter_s)
    ]
