"""Cells as scenarios of engine ``packet``.

The measurements' RTT is the propagation delay. The link adds the transmission times of a packet and
of its ack, and 0.07 ms in each direction. Its buffer B does not count the packet in service. Long
flows have the realised random loss, which in a few runs differs from the configured one by up to 10
%.

The links of both series drop packets behind the queue. The description of the second series states
this. In the first series, a BBR flow with a loss of p = .1 sends 0.9 of the link's rate (series B,
20 Mbit/s): BBR estimates the bandwidth as the largest delivery rate, (1-p) times the rate. If
losses were before the queue, delivered packets could fill the link, and BBR would send more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast_papers.kernel.cells import ON_OFF, STARTUP, TRANSFERS
from tcpcast_papers.simulations import seed_of_cell

if TYPE_CHECKING:
    from tcpcast_papers.kernel.cells import Cell
    from tcpcast_papers.kernel.runs import SampleSizes

LINK_DELAY_S = 0.00014
"""Delay that the link adds to a round trip (its tick of 0.1 ms, in both directions)."""

PACKET_BITS = 8 * 1500
ACK_BYTES, ACK_BYTES_NO_TIMESTAMPS = 52, 40
"""Size of acks with and without timestamps."""


def scenario_tables(cell: Cell, sample_sizes: SampleSizes) -> dict[str, Any]:
    """Return the tables of a scenario with the conditions of a cell."""
    first = cell.groups[0]
    network = network_table(
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
        "traffic": _traffic_table(cell, sample_sizes),
        "tcp": _tcp_table(cell, first.stack),
        "run": _run_table(cell, sample_sizes),
    }
    if len(cell.groups) > 1:
        requested["class"] = [
            {
                "name": f"group-{index + 1}",
                "flows": group.count,
                "rtt": f"{_idle_rtt_ms(cell.rate_bps, group.rtt_ms):.6f}ms",
                "tcp": _tcp_table(cell, group.stack),
            }
            for index, group in enumerate(cell.groups)
        ]
        requested["traffic"].pop("flows")
        requested.pop("tcp")
    return requested


def network_table(
    rate_bps: float,
    rtt_ms: float,
    waiting_pkts: int,
    loss: float = 0.0,
    *,
    timestamps: bool = True,
) -> dict[str, Any]:
    """Return ``[network]`` of a path with a propagation RTT of ``rtt_ms``.

    Parameters
    ----------
    rate_bps
        Rate of the bottleneck, bit/s, above 0.
    rtt_ms
        Propagation in both directions, ms.
    waiting_pkts
        Maximum number of waiting packets, without the packet in service.
    loss
        Random loss per packet behind the queue, at least 0 and below 1.
    timestamps
        Whether acks carry timestamps, which take 12 bytes.
    """
    ack_bytes = ACK_BYTES if timestamps else ACK_BYTES_NO_TIMESTAMPS
    return {
        "rtt": f"{_idle_rtt_ms(rate_bps, rtt_ms, ack_bytes):.6f}ms",
        "ack": f"{ack_bytes}B",
        "bottleneck": {
            "rate": f"{rate_bps:.0f}bit",
            "buffer": f"{waiting_pkts + 1}pkt",
            "loss": f"{100 * loss:.12g}%",
            "loss_at": "behind",
        },
    }


def _idle_rtt_ms(rate_bps: float, rtt_ms: float, ack_bytes: int = ACK_BYTES) -> float:
    transmission_s = (PACKET_BITS + 8 * ack_bytes) / rate_bps
    return rtt_ms + 1e3 * (LINK_DELAY_S + transmission_s)


def _tcp_table(cell: Cell, stack: str) -> dict[str, Any]:
    keys = {"stack": stack, **dict(cell.tcp)}
    if cell.ecn:
        keys["ecn"] = True
    if cell.kind == ON_OFF:
        # Each file has its own connection, whose handshake loads the link.
        keys["handshake"] = "tcp"
    return keys


def _traffic_table(cell: Cell, sample_sizes: SampleSizes) -> dict[str, Any]:
    if cell.kind == TRANSFERS:
        return {"kind": "transfers", "count": sample_sizes.transfers, **dict(cell.traffic)}
    if cell.kind == ON_OFF:
        return {"kind": "on-off", "sources": cell.flows, **dict(cell.traffic)}
    bulk: dict[str, Any] = {"kind": "bulk", "flows": cell.flows}
    if cell.start_interval_s:
        bulk["start"] = {
            "distribution": "uniform",
            "low": "0s",
            "high": f"{cell.start_interval_s:g}s",
        }
    return bulk


def _run_table(cell: Cell, sample_sizes: SampleSizes) -> dict[str, Any]:
    if cell.kind == TRANSFERS:
        return {"seed": seed_of_cell(cell.series, cell.name)}
    run = {
        "warmup": f"{cell.warmup_s:g}s",
        "duration": f"{cell.warmup_s + cell.duration_s:g}s",
        "replications": sample_sizes.replications(cell),
        "seed": seed_of_cell(cell.series, cell.name),
    }
    if cell.kind == STARTUP:
        run["report_at"] = [f"{time:g}s" for time in startup_times_s(cell)]
    return run


def startup_times_s(cell: Cell) -> list[float]:
    """Return the times after the accept at which a start-up was measured."""
    return [
        float(name.rpartition("_")[2].removesuffix("s"))
        for name in cell.measured
        if name.startswith("delivered_by_")
    ]
