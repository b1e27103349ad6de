"""Parts of scenarios that several sets share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.scenario.modern_stacks import rules_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer

FRAME_BYTES = 1514
"""Bytes of a full packet that ``htb`` and ``bfifo`` count: 1500 B and the Ethernet header."""

MAX_BURST_BYTES = 45 * 1500
"""Bytes of the largest burst of segmentation offload."""

ACK_BYTES = 52


def link(
    rate_mbit: float, limit_bytes: float | None = None, *, bursts: bool = False, **more: Any
) -> dict[str, Any]:
    """Return a link that Linux's ``htb`` shapes; both ``htb`` and ``bfifo`` count Ethernet frames.

    Parameters
    ----------
    rate_mbit
        Rate of ``htb``, Mbit/s.
    limit_bytes
        Limit of ``bfifo``, which does not count the packet in transmission; None for no limit.
    bursts
        Whether the packet in transmission is a burst of segmentation offload: the data of 1 ms.
    more
        Further keys of the link.
    """
    share = 1500 / FRAME_BYTES
    table: dict[str, Any] = {"rate": f"{rate_mbit * 1e6 * share:.0f}bit"}
    if limit_bytes is not None:
        burst = min(max(2 * 1500, rate_mbit * 125 * share), MAX_BURST_BYTES) if bursts else 1500
        table["buffer"] = f"{limit_bytes * share + burst:.0f}B"
    return table | more


HTB_BURST_BYTES = 1600
"""Default ``burst`` of a class of ``htb`` at rates of some Mbit/s, as ``tc`` sets it."""


def shaped_rate(rate_mbit: float, unit_packets: int) -> dict[str, str]:
    """Return the rate of ``htb`` as the token bucket that it is.

    ``htb`` sends while its tokens are not negative, so that one more unit of ``unit_packets``
    packets (a burst of segmentation offload) follows a full bucket. A link with a constant rate
    differs in two ways: it delays each packet by its own transmission, and never delivers a unit
    more than its rate in a round-trip time.
    """
    share = 1500 / FRAME_BYTES
    depth = (HTB_BURST_BYTES + unit_packets * FRAME_BYTES) * share
    return {"bucket": f"{rate_mbit * 1e6 * share:.0f}bit", "burst": f"{depth:.0f}B"}


def flows(
    name: str, stack: str, count: int = 1, *, kernel: str = "", **more: Any
) -> dict[str, Any]:
    """Return a class of bulk flows over ``[link.bottleneck]``, with the buffers of Linux 5.15.

    Parameters
    ----------
    name, stack, count
        Name of the class, stack and number of flows.
    kernel
        Version of Linux of the measured hosts; "" for the default rules.
    more
        Further keys of the class.
    """
    tcp: dict[str, Any] = {"stack": stack, "socket_buffers": "linux-5.15"}
    if kernel:
        tcp["kernel"] = rules_of(kernel)
    tcp |= more.pop("tcp", {})
    return {"name": name, "flows": count, "route": ["bottleneck"], "tcp": tcp} | more


def network(  # noqa: PLR0913 - one parameter per property of the runs
    bottleneck: dict[str, Any],
    classes: Sequence[dict[str, Any]],
    *,
    warmup_s: float = 0.0,
    duration_s: float,
    start_s: float = 0.0,
    iperf3: bool = False,
) -> dict[str, Any]:
    """Return a scenario of bulk flows that start within ``start_s`` seconds, or as with iperf3."""
    start: Any = {"distribution": "constant", "value": "0s"}
    if start_s:
        start = {"distribution": "uniform", "low": "0s", "high": f"{start_s:g}s"}
    if iperf3:
        start = "iperf3"
    return {
        "network": {"packet": "1500B", "ack": f"{ACK_BYTES}B"},
        "link": {"bottleneck": bottleneck},
        "class": list(classes),
        "traffic": {"kind": "bulk", "start": start},
        "run": {"warmup": f"{warmup_s:g}s", "duration": f"{duration_s:g}s"},
    }


def packets(rate_mbit: float, duration_s: float) -> float:
    """Return the number of full packets that a link sends."""
    return rate_mbit * 1e6 * duration_s / (8 * 1500)


def share_percent(answer: Answer) -> float:
    """Return the share of the first class in the goodput, %."""
    rates = answer.tables["by_class"]["goodput_bps"]
    return 100.0 * float(rates[0]) / float(sum(rates))
