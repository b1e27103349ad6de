"""Registry of metrics: one definition per metric, in report order.

All tables about metrics derive from these definitions: units and meanings, the estimators of the
packet engine, the warnings about intervals, the first metrics of a report, the metrics for which a
precision can be requested, and the scaling of a population.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from tcpcast.answer.metric_definition import ANY_TRAFFIC, ClassColumnGroup, MetricDefinition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.answer.metric_definition import Counters

LOSS_INDICATIONS: Counters = ("fast_retransmits", "timeout_sequences")

PERCENTAGES = (50, 95, 99)
PERCENTILE_TIMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rtt": ("TCP's RTT samples", ()),
    "delay": ("the one-way delay of messages and the RTT of pings", ("messages", "ping")),
    "latency": (
        "the time of requests, stream segments, or blocks from the write to the read "
        "(`traffic.writes`)",
        ("requests", "stream", "bulk"),
    ),
    "page_time": ("the load time of a page, including all its objects", ("page",)),
    "first_byte": (
        "the time from the start of a page to the first byte of its document",
        ("page",),
    ),
    "first_object": (
        "the time from the start of a page to the last byte of its document",
        ("page",),
    ),
}
"""Times with percentiles: their meaning, and the traffic whose report begins with them."""

PERCENTILES: dict[str, tuple[str, int]] = {
    f"{kind}_p{percent}_s": (kind, percent)
    for kind, (_, of) in PERCENTILE_TIMES.items()
    for percent in ((50, 75, 95, 99) if of == ("page",) else PERCENTAGES)
}
"""Kind and percentage of each percentile of a time; page tools report p75."""

METRICS: dict[str, MetricDefinition] = {
    "connection_rate_bps": MetricDefinition(
        unit="bit/s",
        meaning="rate of a user during a transfer: bytes of all transfers (with headers) / sum "
        "of their ON times",
        ratio_of=(("transfer_packets",), ("on_time_ns",)),
        class_columns="transfers",
        file_kinds=("on-off", "transfers"),
        headline_of=("on-off",),
        precision_of="on-off",
        has_precision=True,
        has_isolated_value=False,
    ),
    "on_time_s": MetricDefinition(
        unit="s",
        meaning="mean time of on/off transfers from the first data packet sent to the last ack "
        "received",
        ratio_of=(("on_time_ns",), ("transfers",)),
        class_columns="transfers",
        file_kinds=("on-off",),
        headline_of=("on-off",),
        has_precision=True,
        has_lower_bound=True,
    ),
    "completion_time_s": MetricDefinition(
        unit="s",
        meaning="mean time of single transfers, measured as `on_time_s`",
        ratio_of=(("on_time_ns",), ("transfers",)),
        class_columns="transfers",
        file_kinds=("transfers",),
        headline_of=("transfers",),
        precision_of="transfers",
        has_precision=True,
        has_lower_bound=True,
    ),
    "delivery_time_s": MetricDefinition(
        unit="s",
        meaning="mean time of single transfers from the first data packet sent to the last "
        "byte at the receiver",
        ratio_of=(("delivery_time_ns",), ("transfers",)),
        class_columns="transfers",
        file_kinds=("transfers",),
        headline_of=("transfers",),
        has_precision=True,
    ),
    "total_time_s": MetricDefinition(
        unit="s",
        meaning="mean time of transfers from the SYN to the last byte at the receiver",
        ratio_of=(("total_time_ns",), ("transfers",)),
        class_columns="transfers",
        file_kinds=("on-off", "transfers"),
        headline_of=("transfers",),
        has_precision=True,
    ),
    "offered_load": MetricDefinition(
        unit="1",
        meaning="(rate of arriving transfers, or of on/off sources on an infinitely fast link) / "
        "link rate; for `fair-share` and `overload-bound`: sources x mean file size / (link "
        "rate x mean OFF time)",
        headline_of=("transfers",),
        exceeds_one=True,
    ),
    "utilisation": MetricDefinition(
        unit="1",
        meaning="share of time in which the bottleneck transmits; with a variable rate, bytes "
        "transmitted / bytes that the rate allows",
        ratio_of=(("busy_ns",), ("time_ns",)),
        needs="link rate",
        headline_of=ANY_TRAFFIC,
        has_precision=True,
        has_isolated_value=False,
        can_be_constant=True,
    ),
    "loss_ratio": MetricDefinition(
        unit="1",
        meaning="packets lost (queue and random) / packets arrived at the bottleneck",
        ratio_of=(("queue_drops", "random_drops"), ("arrived",)),
        class_columns="bottleneck",
        counts_events=True,
        bursts=("queue_drops",),
        headline_of=ANY_TRAFFIC,
        has_precision=True,
    ),
    "queue_loss_ratio": MetricDefinition(
        unit="1",
        meaning="packets dropped by a full buffer, RED or AQM / packets arrived at the bottleneck",
        ratio_of=(("queue_drops",), ("arrived",)),
        events_need="queue drops",
        counts_events=True,
        bursts=("queue_drops",),
        has_precision=True,
    ),
    "random_loss_ratio": MetricDefinition(
        unit="1",
        meaning="random losses / packets arrived at the bottleneck",
        ratio_of=(("random_drops",), ("arrived",)),
        events_need="random loss",
        counts_events=True,
        has_precision=True,
    ),
    "other_loss_ratio": MetricDefinition(
        unit="1",
        meaning="packets lost at hops other than the bottleneck / packets sent",
        ratio_of=(("hop_drops",), ("sent", "control_sent")),
        needs="several hops",
        counts_events=True,
    ),
    "return_utilisation": MetricDefinition(
        unit="1",
        meaning="share of time in which the return link transmits",
        needs="return rate",
        headline_of=ANY_TRAFFIC,
    ),
    "return_loss_ratio": MetricDefinition(
        unit="1",
        meaning="acks lost (queue and random) / acks arrived at the return link",
        needs="return link",
        counts_events=True,
        headline_of=ANY_TRAFFIC,
    ),
    "return_queue_delay_mean_s": MetricDefinition(
        unit="s",
        meaning="mean queueing delay of delivered acks on the return link",
        needs="return rate",
        headline_of=ANY_TRAFFIC,
    ),
    "timeout_ratio": MetricDefinition(
        unit="1",
        meaning="timeouts per data packet sent",
        ratio_of=(("timeouts",), ("sent",)),
        class_columns="sender",
        counts_events=True,
        bursts=("timeouts",),
    ),
    "idle_restart_ratio": MetricDefinition(
        unit="1",
        meaning="restarts after an idle time (`tcp.idle_restart`) / data packets sent",
        ratio_of=(("idle_restarts",), ("sent",)),
        class_columns="sender",
        counts_events=True,
    ),
    "queue_mean_pkts": MetricDefinition(
        unit="packet",
        meaning="time average of the queue at the bottleneck, including the packet in transmission",
        ratio_of=(("queue_integral",), ("time_ns",)),
        needs="queue",
        headline_of=ANY_TRAFFIC,
        has_precision=True,
        has_isolated_value=False,
        can_be_constant=True,
        is_extensive=True,
    ),
    "queue_max_pkts": MetricDefinition(
        unit="packet",
        meaning="maximum of the queue at the bottleneck",
        is_extensive=True,
    ),
    "queue_delay_mean_s": MetricDefinition(
        unit="s",
        meaning="mean queueing delay at the bottleneck before transmission",
        ratio_of=(("waited_ns",), ("passed",)),
        needs="queue",
        class_columns="bottleneck",
        headline_of=ANY_TRAFFIC,
        has_precision=True,
        has_isolated_value=False,
        can_be_constant=True,
    ),
    "queue_delay_p95_s": MetricDefinition(
        unit="s",
        meaning="95th percentile of the queueing delay at the bottleneck, accurate to 0.8 %",
        headline_of=ANY_TRAFFIC,
        has_isolated_value=False,
    ),
    "queue_delay_p99_s": MetricDefinition(
        unit="s",
        meaning="99th percentile of the queueing delay at the bottleneck, accurate to 0.8 %",
        headline_of=ANY_TRAFFIC,
        has_isolated_value=False,
    ),
    "ecn_mark_ratio": MetricDefinition(
        unit="1",
        meaning="data packets marked / data packets that left the bottleneck",
        ratio_of=(("marked",), ("passed",)),
        class_columns="bottleneck",
        needs="ECN marks",
        counts_events=True,
        headline_of=ANY_TRAFFIC,
        has_precision=True,
    ),
    "rtt_mean_s": MetricDefinition(
        unit="s",
        meaning="mean of TCP's RTT samples: one sample per window, never from a retransmitted "
        "packet",
        ratio_of=(("rtt_sum_ns",), ("rtt_samples",)),
        class_columns="sender",
        headline_of=ANY_TRAFFIC,
        has_precision=True,
        can_be_constant=True,
    ),
    "rtt_packet_mean_s": MetricDefinition(
        unit="s",
        meaning="mean time from the first transmission of a packet to the cumulative ack that "
        "covers it; packets behind a lost one wait for its retransmission",
        label="mean RTT of all packets",
        ratio_of=(("in_flight_ns",), ("acked",)),
        class_columns="sender",
        can_be_constant=True,
    ),
    "send_rate_pps": MetricDefinition(
        unit="packet/s",
        meaning="data packets sent, including retransmissions",
        ratio_of=(("sent",), ("time_ns",)),
        class_columns="sender",
        headline_of=("bulk",),
        has_precision=True,
        has_isolated_value=False,
        is_extensive=True,
    ),
    "goodput_pps": MetricDefinition(
        unit="packet/s",
        meaning="distinct data packets delivered",
        ratio_of=(("delivered",), ("time_ns",)),
        class_columns="sender",
        precision_of="bulk",
        has_precision=True,
        has_isolated_value=False,
        is_extensive=True,
    ),
    "goodput_bps": MetricDefinition(
        unit="bit/s",
        meaning="application payload delivered, without retransmissions and headers",
        ratio_of=(("delivered",), ("time_ns",)),
        class_columns="sender",
        headline_of=("bulk",),
        has_precision=True,
        has_isolated_value=False,
        is_extensive=True,
    ),
    "page_time_mean_s": MetricDefinition(
        unit="s",
        meaning="mean load time of a page, including all its objects",
        ratio_of=(("page_time_ns",), ("pages",)),
        class_columns="times",
        headline_of=("page",),
    ),
    **{
        name: MetricDefinition(
            unit="s",
            meaning=f"{percent}th percentile of {PERCENTILE_TIMES[kind][0]}",
            class_columns="times",
            headline_of=PERCENTILE_TIMES[kind][1]
            if not kind.startswith("first") or percent in (50, 95)
            else (),
        )
        for name, (kind, percent) in PERCENTILES.items()
    },
    "message_loss_ratio": MetricDefinition(
        unit="1",
        meaning="messages and pings lost / messages and pings sent, excluding those in transit",
        class_columns="times",
        headline_of=("messages", "ping"),
    ),
    "startup_time_s": MetricDefinition(
        unit="s",
        meaning="mean time from the start of a stream to the start of playback",
        ratio_of=(("startup_ns",), ("startups",)),
        class_columns="times",
        headline_of=("stream",),
    ),
    "stall_ratio": MetricDefinition(
        unit="1",
        meaning="stalled time / (playback time + stalled time) of streams",
        ratio_of=(("stalled_play_ns",), ("stalled_play_ns", "played_ns")),
        class_columns="times",
        headline_of=("stream",),
    ),
    "video_rate_bps": MetricDefinition(
        unit="bit/s",
        meaning="mean bitrate of stream segments, weighted by playback time",
        ratio_of=(("video_bits",), ("video_ns",)),
        class_columns="times",
        can_be_constant=True,
        headline_of=("stream",),
    ),
    "quality_switch_ratio": MetricDefinition(
        unit="1",
        meaning="share of stream segments with another bitrate than the previous segment",
        ratio_of=(("switched_video_ns",), ("video_ns",)),
        class_columns="times",
        can_be_constant=True,
        headline_of=("stream",),
    ),
    "loss_indication_ratio": MetricDefinition(
        unit="1",
        meaning="(fast-recovery episodes + timeout sequences) / data packets sent",
        ratio_of=(LOSS_INDICATIONS, ("sent",)),
        counts_events=True,
        bursts=LOSS_INDICATIONS,
        headline_of=("bulk",),
    ),
    "loss_event_ratio_cumulative": MetricDefinition(
        unit="1",
        meaning="loss events / data packets sent, over all flows",
        bursts=("queue_drops",),
        needs_all_flows=True,
    ),
    "td_indications": MetricDefinition(
        unit="count",
        meaning="fast-recovery episodes",
        count_of=("fast_retransmits",),
        bursts=("fast_retransmits",),
        is_extensive=True,
    ),
    "to_indications": MetricDefinition(
        unit="count",
        meaning="timeout sequences",
        count_of=("timeout_sequences",),
        bursts=("timeout_sequences",),
        is_extensive=True,
    ),
    "timeouts": MetricDefinition(
        unit="count",
        meaning="timeouts",
        count_of=("timeouts",),
        bursts=("timeouts",),
        is_extensive=True,
    ),
    "tail_loss_probes": MetricDefinition(
        unit="count",
        meaning="tail loss probes",
        count_of=("tail_loss_probes",),
        needs="modern stack",
    ),
    "spurious_recoveries": MetricDefinition(
        unit="count",
        meaning="fast recoveries undone as spurious",
        count_of=("spurious_recoveries",),
        needs="modern stack",
    ),
    "spurious_timeouts": MetricDefinition(
        unit="count",
        meaning="timeouts undone as spurious",
        count_of=("spurious_timeouts",),
        needs="modern stack",
    ),
    "spurious_retransmissions": MetricDefinition(
        unit="count",
        meaning="retransmissions of data that the receiver already had",
        count_of=("spurious_retransmissions",),
        needs="modern stack",
    ),
    "timeout_share": MetricDefinition(
        unit="1",
        meaning="timeout sequences / loss indications",
        ratio_of=(("timeout_sequences",), LOSS_INDICATIONS),
        counts_events=True,
        bursts=LOSS_INDICATIONS,
    ),
    "t0_s": MetricDefinition(
        unit="s",
        meaning="mean first timeout of a timeout sequence",
        ratio_of=(("first_timeout_ns",), ("timeout_sequences",)),
        bursts=("timeout_sequences",),
        can_be_constant=True,
    ),
    "w_at_loss_mean_pkts": MetricDefinition(
        unit="packet",
        meaning="mean window at a loss indication",
        ratio_of=(("window_at_loss",), LOSS_INDICATIONS),
        bursts=LOSS_INDICATIONS,
        can_be_constant=True,
    ),
    "retransmit_ratio": MetricDefinition(
        unit="1",
        meaning="retransmissions / data packets sent",
        ratio_of=(("retransmitted",), ("sent",)),
        counts_events=True,
        bursts=("retransmitted",),
    ),
    "rpm": MetricDefinition(
        unit="1",
        meaning="round trips per minute under load (draft-ietf-ippm-responsiveness): half from "
        "pings, half from the RTT samples of flows, both without the largest 5 %",
        label="responsiveness (RPM)",
        exceeds_one=True,
        is_index=True,
        headline_of=("ping",),
        has_isolated_value=False,
    ),
    "jain_index": MetricDefinition(
        unit="1",
        meaning="Jain's fairness index of the goodput of bulk flows; 1 if all are equal",
        headline_of=("bulk",),
        is_index=True,
        is_one_per_replication=True,
        needs_all_flows=True,
    ),
    "fair_share": MetricDefinition(
        unit="1",
        meaning="goodput of a flow of the class / mean goodput of all bulk flows; the overall "
        "value is the smallest of all classes",
        class_columns="sender",
        headline_of=("bulk",),
        is_index=True,
        exceeds_one=True,
    ),
    "convergence_time_s": MetricDefinition(
        unit="s",
        meaning="mean time from the start of the last class of bulk flows until its flows "
        "reach 80 % of their fair share, averaged over 100 round trips",
        headline_of=("bulk",),
        is_one_per_replication=True,
        needs_all_flows=True,
    ),
    "mean_size_pkts": MetricDefinition(
        unit="packet",
        meaning="mean size of completed transfers",
        ratio_of=(("transfer_packets",), ("transfers",)),
        class_columns="transfers",
    ),
    "transfers": MetricDefinition(
        unit="count",
        meaning="transfers completed",
        is_extensive=True,
    ),
    "unfinished_transfers": MetricDefinition(
        unit="count",
        meaning="transfers in progress at the end",
        is_extensive=True,
    ),
}
"""All built-in metrics, in report order; ratios have unit 1."""

CLASS_METRICS = tuple(
    name
    for group in get_args(ClassColumnGroup)
    for name, row in METRICS.items()
    if row.class_columns == group
)
"""Metrics of single classes of sources, in the column order of table ``by_class``."""

HEADLINE_METRICS = (
    "connection_rate_bps",
    "total_time_s",
    "completion_time_s",
    "goodput_bps",
    "send_rate_pps",
    "page_time_p95_s",
    "latency_p95_s",
    "latency_p50_s",
    "delay_p95_s",
    "stall_ratio",
    "fair_share",
    "convergence_time_s",
    "loss_ratio",
    "queue_delay_mean_s",
    "utilisation",
)
"""Metrics in the table and the plots of a sweep, in the order in which a verdict prefers them."""


def sort_metrics(names: Iterable[str]) -> list[str]:
    """Return metrics in report order, then metrics of other packages in the given order."""
    given = dict.fromkeys(names)
    return [*(name for name in METRICS if name in given), *(n for n in given if n not in METRICS)]
