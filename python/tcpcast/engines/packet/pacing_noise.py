"""Rates that host noise permits: a late timer delays each burst of a paced flow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.readable_units import rate_text, time_text
from tcpcast.scenario.modern_tcp import RATE_BASED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

BURST_S, MAX_BURST_BITS = 1e-3, 8 * 65_536
"""Paced data of a burst, and its maximum (``tcp_tso_autosize``)."""

_MIN_SHARE = 0.95


def max_paced_bps(rate_bps: float, noise_s: float) -> float:
    """Return the rate of a flow that is paced at ``rate_bps``.

    Linux credits a late timer to the next burst, for at most half of its time
    (``tcp_update_skb_after_send``), so that bursts are at least half of their time and the mean
    noise apart.

    Parameters
    ----------
    rate_bps
        Pacing rate, bit/s, above 0.
    noise_s
        Mean delay of a timer, s, at least 0.

    Examples
    --------
    >>> f"{max_paced_bps(10e9, 100e-6) / 1e9:.1f} {max_paced_bps(1e9, 100e-6) / 1e9:.1f}"
    '4.2 1.0'
    """
    burst_bits = min(BURST_S * rate_bps, MAX_BURST_BITS)
    return min(rate_bps, burst_bits / (burst_bits / (2 * rate_bps) + noise_s))


def noise_warnings(scenario: Scenario) -> Iterator[str]:
    """Yield a warning for each class whose rate may be limited by its host noise."""
    for group in scenario.populations:
        share = _fair_share_bps(scenario, group)
        if not (_is_paced(group) and math.isfinite(share)):
            continue
        noise_s = group.tcp.host_noise_s
        rate = float(f"{max_paced_bps(share, noise_s):.2g}")
        if rate < _MIN_SHARE * share:
            where = f"class {group.name}: " if len(scenario.populations) > 1 else ""
            yield (
                f"{where}host noise of {time_text(noise_s)} delays each paced burst, so that one "
                f"flow sends at most about {rate_text(rate)}; Linux on fast hosts is less late "
                "(tcp.host_noise = 10us)"
            )


def _is_paced(group: Population) -> bool:
    tcp = group.tcp
    return tcp.is_modern and (
        tcp.control in RATE_BASED if tcp.pacing == "internal" else tcp.pacing != "off"
    )


def _fair_share_bps(scenario: Scenario, group: Population) -> float:
    """Return the lowest rate of the links of a class, shared links divided by all flows.

    The number of concurrent transfers that arrive is unknown; one of them may have the whole link.
    """
    rates = [
        on.link.rate / (max(1, scenario.senders) if on.shared else 1)
        for on in group.route
        if math.isfinite(on.link.rate)
    ]
    return min([*rates, group.tcp.max_rate_bps])
