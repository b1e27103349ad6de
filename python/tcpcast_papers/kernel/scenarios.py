"""Cells as scenarios: what engine ``packet`` is asked.

The measurements' RTT is propagation. On top come the transmission of a packet and of its ack, and
0.07 ms of the link each way; their B does not count the packet in service. Long flows have the
random loss that their packets had, which in a few runs is up to a tenth off the configured one.

The links of both series lose packets behind the queue. The description of the second series says
so. In the first series, a flow of BBR at a loss of p = .1 sends 0.9 of the link's rate (series B,
20 Mbit/s): the most that gets through, (1-p) times the rate, is what BBR takes for the bandwidth.
With losses before the queue, packets that get through can fill the link, and BBR sends more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast_papers.kernel.cells import ON_OFF, STARTUP, TRANSFERS

if TYPE_CHECKING:
    from tcpcast_papers.kernel.cells import Cell, Group
    from tcpcast_papers.kernel.runs import SampleSizes

LINK_S = 0.00014
"""What the link added to a round trip (its tick of 0.1 ms, both ways)."""

PACKET_BITS = 8 * 1500
ACK_BYTES, ACK_BYTES_BARE = 52, 40
"""With timestamps, and without."""


def tables(cell: Cell, sample_sizes: SampleSizes) -> dict[str, Any]:
    """Return the tables of the scenario that asks for the conditions of a cell."""
    first = cell.groups[0]
    network = path(
        cell.rate_bps,
        min(group.rtt_ms for group in cell.groups),
        cell.waiting_pkts,
        cell.realised_loss,
        timestamps=dict(cell.tcp).get("timestamps", True),
    )
    if cell.queue != "droptail":
        network["bottleneck"]["queue"] = cell.queue
    requested: dict[str, Any] = {
        "network": network,
        "traffic": _traffic(cell, sample_sizes),
        "tcp": _tcp(cell, first.stack),
        "run": _run(cell, sample_sizes),
    }
    if len(cell.groups) > 1:
        requested["class"] = [_class(cell, index, group) for index, group in enumerate(cell.groups)]
        requested["traffic"].pop("flows")
        requested.pop("tcp")
    return requested


def path(
    rate_bps: float,
    rtt_ms: float,
    waiting_pkts: int,
    loss: float = 0.0,
    *,
    timestamps: bool = True,
) -> dict[str, Any]:
    """Return ``[network]`` of a path whose propagation takes ``rtt_ms``.

    Parameters
    ----------
    rate_bps
        Of the bottleneck, bit/s, above 0.
    rtt_ms
        Propagation both ways, ms.
    waiting_pkts
        Most packets that wait, the one in service not counted.
    loss
        Random loss of each packet behind the queue, at least 0 and below 1.
    timestamps
        Acks are 12 bytes longer with them.
    """
    ack_bytes = ACK_BYTES if timestamps else ACK_BYTES_BARE
    return {
        "rtt": f"{_rtt_ms(rate_bps, rtt_ms, ack_bytes):.6f}ms",
        "ack": f"{ack_bytes}B",
        "bottleneck": {
            "rate": f"{rate_bps:.0f}bit",
            "buffer": f"{waiting_pkts + 1}pkt",
            "loss": f"{100 * loss:.12g}%",
            "loss_at": "behind",
        },
    }


def _rtt_ms(rate_bps: float, rtt_ms: float, ack_bytes: int = ACK_BYTES) -> float:
    transmission_s = (PACKET_BITS + 8 * ack_bytes) / rate_bps
    return rtt_ms + 1e3 * (LINK_S + transmission_s)


def _class(cell: Cell, index: int, group: Group) -> dict[str, Any]:
    return {
        "name": f"group-{index + 1}",
        "flows": group.count,
        "rtt": f"{_rtt_ms(cell.rate_bps, group.rtt_ms):.6f}ms",
        "tcp": _tcp(cell, group.stack),
    }


def _tcp(cell: Cell, stack: str) -> dict[str, Any]:
    keys = {"stack": stack, **dict(cell.tcp)}
    if cell.ecn:
        keys["ecn"] = True
    if cell.kind == ON_OFF:
        # Each file has a connection of its own, and its handshake loads the link.
        keys["handshake"] = "tcp"
    return keys


def _traffic(cell: Cell, sample_sizes: SampleSizes) -> dict[str, Any]:
    if cell.kind == TRANSFERS:
        return {"kind": "transfers", "count": sample_sizes.transfers, **dict(cell.traffic)}
    if cell.kind == ON_OFF:
        return {"kind": "on-off", "sources": cell.flows, **dict(cell.traffic)}
    bulk: dict[str, Any] = {"kind": "bulk", "flows": cell.flows}
    if cell.starts_s:
        bulk["start"] = {"distribution": "uniform", "low": "0s", "high": f"{cell.starts_s:g}s"}
    return bulk


def _run(cell: Cell, sample_sizes: SampleSizes) -> dict[str, Any]:
    if cell.kind == TRANSFERS:
        return {"seed": sample_sizes.seed}
    run = {
        "warmup": f"{cell.warmup_s:g}s",
        "duration": f"{cell.warmup_s + cell.duration_s:g}s",
        "replications": sample_sizes.replications(cell),
        "seed": sample_sizes.seed,
    }
    if cell.kind == STARTUP:
        run["report_at"] = [f"{time:g}s" for time in times_s(cell)]
    return run


def times_s(cell: Cell) -> list[float]:
    """Return the times after the accept at which a start-up was looked at."""
    return [
        float(name.rpartition("_")[2].removesuffix("s"))
        for name in cell.measured
        if name.startswith("delivered_by_")
    ]
