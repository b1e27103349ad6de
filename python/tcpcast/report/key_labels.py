"""Axis labels for the keys of a scenario."""

from __future__ import annotations

_LABELS = {
    "network.rtt": "round-trip time",
    "network.bottleneck.rate": "rate of the link",
    "network.bottleneck.rate.burst": "burst size",
    "network.bottleneck.buffer": "buffer",
    "network.bottleneck.loss": "loss",
    "network.bottleneck.queue": "queue discipline",
    "network.ack_loss": "loss of acks",
    "traffic.sources": "number of users",
    "traffic.flows": "number of flows",
    "traffic.count": "number of transfers",
    "traffic.sizes": "size of a transfer",
    "tcp.stack": "TCP stack",
    "tcp.receiver_window": "receiver window",
    "run.seed": "seed",
}


def key_label(key: str) -> str:
    """Return the axis label of a key, by default the last part of its name."""
    return _LABELS.get(key) or key.rpartition(".")[2].replace("_", " ")
