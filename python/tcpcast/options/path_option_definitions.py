"""Definitions of the options of a single path, for several commands and the web page."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from tcpcast.options.command_option import REQUIRED, FormField, Option, options_by_key


def _option_field(metavar: str, help_text: str, *, default: Any = None, **facts: Any) -> Any:
    """Return a field of :class:`PathOptionValues` with the definition of its option as metadata."""
    row = Option("", metavar, help_text, default=default, **facts)
    metadata = {"row": row}
    if default is REQUIRED:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOptionValues:
    """A path as typed; omitted options are None."""

    rtt: str = _option_field(
        "TIME",
        "RTT of the idle path.",
        default=REQUIRED,
        keys=("network.rtt",),
        example="10ms..200ms",
        form_field=FormField(
            "Round-trip time", "RTT of the idle path, such as 50ms.", "50ms", "1ms", "1s"
        ),
    )
    loss: str | None = _option_field(
        "RATIO",
        "Random loss of data packets.",
        keys=("network.bottleneck.loss",),
        example="0.01%..10%",
        form_field=FormField(
            "Random loss",
            "Share of the data packets that are dropped before the queue, such as 0.1%.",
            "0.1%",
            "0.0001%",
            "20%",
            starts_at_zero=True,
        ),
    )
    rate: str | None = _option_field(
        "RATE",
        "Link rate; default: unlimited.",
        keys=("network.bottleneck.rate",),
        example="1mbit..1gbit",
        form_field=FormField(
            "Rate of the link", "Such as 100mbit, or unlimited.", "100mbit", "1mbit", "10gbit"
        ),
    )
    buffer: str | None = _option_field(
        "SIZE",
        "Buffer of the link; default: 1bdp.",
        keys=("network.bottleneck.buffer",),
        example="0.25bdp..4bdp",
        form_field=FormField(
            "Buffer", "Buffer of the link, such as 64MB, 100pkt or 0.5bdp; if empty, 1bdp."
        ),
    )
    mss: str | None = _option_field(
        "BYTES",
        "Payload of a packet; default: 1500 B minus headers.",
        keys=("network.packet",),
        form_field=FormField(
            "MSS",
            "Payload of a packet in bytes; if empty, packets are 1500 B long, including headers.",
        ),
    )
    rwnd: str | None = _option_field(
        "WINDOW",
        "Receiver window; default: unlimited.",
        keys=("tcp.receiver_window",),
        form_field=FormField("Receiver window", "Such as 64KiB; if empty, unlimited."),
    )
    flows: str = _option_field(
        "N",
        "Flows that share the path.",
        default="1",
        keys=("traffic.flows",),
        example="1..100",
        form_field=FormField("Flows", "Number of flows that share the path.", "1", "1", "1000"),
    )
    size: str | None = _option_field(
        "SIZE",
        "Predict the time of a transfer of this size; with {--flows}, the size is the total of all "
        "flows.",
        keys=("traffic.size",),
        example="10KB..1MB",
        form_field=FormField(
            "Size",
            "Size of one file, or total size of the files of a web page on one connection, such as "
            "2.5MB; if empty, only the rate is predicted.",
            "",
            "1KB",
            "10MB",
        ),
    )
    delayed_acks: bool = _option_field(
        "",
        "Use delayed acks: one ack per two packets.",
        default=False,
        keys=("tcp.delayed_acks",),
    )
    min_rto: str | None = _option_field(
        "TIME",
        "Minimum RTO; the default depends on the stack.",
        keys=("tcp.min_rto",),
        form_field=FormField(
            "Minimum RTO", "Such as 200ms; if empty, the minimum RTO of the stack."
        ),
    )
    iw: str | None = _option_field(
        "PACKETS",
        "Initial window; the default depends on the stack.",
        keys=("tcp.initial_window",),
        form_field=FormField(
            "Initial window", "In packets; if empty, the initial window of the stack."
        ),
    )
    stack: str | None = _option_field(
        "NAME", "TCP stack; default: linux-cubic.", keys=("tcp.stack",)
    )


PATH_OPTIONS = {
    each.name: replace(each.metadata["row"], name=each.name) for each in fields(PathOptionValues)
}
"""Definitions of the options by name, in the order of ``predict --help``."""

OPTIONS_BY_KEY = options_by_key(PATH_OPTIONS.values())
"""Options by key of the scenario, for messages."""
