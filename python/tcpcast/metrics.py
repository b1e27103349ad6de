"""The metrics that engines share: the unit and the meaning of each, in the order of the report."""

from __future__ import annotations

import math
from typing import NamedTuple


class Described(NamedTuple):
    """A metric in words: its unit as answers name it, and what it is.

    A ratio is a share, at most 1, unless it ``exceeds_one``.
    """

    unit: str
    meaning: str
    exceeds_one: bool = False

    @property
    def most(self) -> float:
        """The largest possible value."""
        return 1.0 if self.unit == "1" and not self.exceeds_one else math.inf


METRICS: dict[str, Described] = {
    "connection_rate_bps": Described(
        "bit/s",
        "packets of all transfers x packet size / sum of their ON times: the rate of a user "
        "during a transfer",
    ),
    "on_time_s": Described(
        "s",
        "first data packet sent to last ack received, mean over on/off transfers",
    ),
    "completion_time_s": Described(
        "s", "first data packet sent to last ack received, mean over single transfers"
    ),
    "delivery_time_s": Described(
        "s",
        "first data packet sent to last byte at the receiver, mean over single transfers",
    ),
    "total_time_s": Described(
        "s",
        "SYN sent to last byte at the receiver, mean over transfers that open a connection "
        "(`tcp.handshake`)",
    ),
    "offered_load": Described(
        "1",
        "the sources' rate if the shared link were infinitely fast, over its rate; the rate "
        "of arriving transfers over it; of `fair-share` and `overload-bound` N B/(C I), for "
        "which files take no time",
        exceeds_one=True,
    ),
    "utilisation": Described(
        "1",
        "busy share of the bottleneck; where its rate varies, what it carried over what it "
        "could have",
    ),
    "loss_ratio": Described(
        "1",
        "packets dropped / packets arrived at the bottleneck, queue and random together",
    ),
    "queue_loss_ratio": Described(
        "1",
        "drops at a full buffer and early drops of RED and of active queue management / packets "
        "arrived at the bottleneck",
    ),
    "random_loss_ratio": Described(
        "1", "packets lost at random / packets arrived at the bottleneck"
    ),
    "other_loss_ratio": Described(
        "1",
        "of hops in series: packets dropped at hops other than the bottleneck / data packets sent",
    ),
    "return_utilisation": Described("1", "busy share of the return link"),
    "return_loss_ratio": Described(
        "1",
        "acks dropped / acks arrived at the return link, queue and random together",
    ),
    "return_queue_delay_mean_s": Described(
        "s",
        "wait before transmission on the return link, mean over acks that got through",
    ),
    "timeout_ratio": Described("1", "timeouts per data packet sent"),
    "idle_restart_ratio": Described(
        "1",
        "windows restarted after an idle time (`tcp.idle_restart`), per data packet sent by "
        "sources whose files share a connection",
    ),
    "queue_mean_pkts": Described(
        "packet",
        "time average of the queue at the bottleneck, the packet in transmission included",
    ),
    "queue_max_pkts": Described("packet", "maximum of the queue at the bottleneck"),
    "queue_delay_mean_s": Described(
        "s",
        "wait before transmission, mean over packets that got through the bottleneck; of "
        "drop-tail and RED with today's stacks, of active queue management and rates that "
        "vary with every stack",
    ),
    "queue_delay_p95_s": Described("s", "95th percentile of that wait, to 0.8 %"),
    "queue_delay_p99_s": Described("s", "99th percentile of that wait, to 0.8 %"),
    "ecn_mark_ratio": Described(
        "1",
        "data packets marked / data packets that left the bottleneck, where a queue marks and "
        "a stack has `tcp.ecn = true`",
    ),
    "rtt_mean_s": Described(
        "s",
        "mean of TCP's own samples: one packet per window, none that was retransmitted, from "
        "the time at which TCP hands it to its own link",
    ),
    "rtt_packet_mean_s": Described(
        "s",
        "mean over all packets acked, of the time from a packet's first sending to the ack "
        "that covers it",
    ),
    "send_rate_pps": Described(
        "packet/s",
        "data packets sent, retransmissions included, all senders together",
    ),
    "goodput_pps": Described("packet/s", "distinct data packets delivered"),
    "goodput_bps": Described(
        "bit/s",
        "application payload delivered: that of distinct packets, less headers",
    ),
    "loss_indication_ratio": Described(
        "1",
        "fast-recovery episodes plus timeout sequences, per data packet sent",
    ),
    "loss_event_ratio_cumulative": Described(
        "1",
        "indications of any flow, at most one per round trip, per packet sent: the rule is below",
    ),
    "td_indications": Described("count", "fast-recovery episodes, mean over replications"),
    "to_indications": Described("count", "timeout sequences, mean over replications"),
    "timeouts": Described("count", "timeouts, mean over replications"),
    "tail_loss_probes": Described(
        "count",
        "tail loss probes, mean over replications; this and the next three with today's stacks",
    ),
    "spurious_recoveries": Described("count", "fast recoveries that were undone as unnecessary"),
    "spurious_timeouts": Described("count", "timeouts whose reduction was undone as unnecessary"),
    "spurious_retransmissions": Described("count", "retransmissions of data that the receiver had"),
    "timeout_share": Described("1", "timeout sequences among indications"),
    "t0_s": Described("s", "first timeout of a sequence"),
    "w_at_loss_mean_pkts": Described("packet", "window at a loss indication"),
    "retransmit_ratio": Described("1", "retransmitted / sent"),
    "jain_index": Described("1", "fairness of bulk flows' goodput: 1 if all are equal"),
    "mean_size_pkts": Described("packet", "mean size of the transfers completed"),
    "transfers": Described("count", "transfers completed, mean over replications"),
    "unfinished_transfers": Described(
        "count", "transfers in progress at the end of the run, mean over replications"
    ),
}
"""Every metric an engine may give, in the order of the report; ratios are of unit 1."""

HEADLINE = (
    "connection_rate_bps",
    "completion_time_s",
    "goodput_bps",
    "send_rate_pps",
    "loss_ratio",
    "queue_delay_mean_s",
    "utilisation",
)
"""Metrics that the table and the figures of a sweep show."""
