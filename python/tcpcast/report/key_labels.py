"""Axis labels for the keys of a scenario."""

from __future__ import annotations

_LABELS = {
    "network.rtt": "round-trip time",
    "network.bottleneck.rate": "rate of the link",
    "network.bottleneck.rate.burst": "burst size",
    "network.bottleneck.buffer": "buffer",
    "network.bottleneck.loss": "loss",
    "network.bottleneck.loss.rate": "loss rate",
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
    """Return the axis label of a key, by default the last part of its name.

    >>> key_label("class.new.tcp.stack")
    'TCP stack of new'
    """
    table, *name_and_key = key.split(".", 2)
    if table == "class" and len(name_and_key) == 2:
        name, of_class = name_and_key
        return f"{key_label(of_class)} of {name}"
    return _LABELS.get(key) or key.rpartition(".")[2].replace("_", " ")
