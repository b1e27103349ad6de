"""Sections 3.1 to 5: one lost packet, long flows, larger windows, and the network load."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from tcpcast.answer import Metric

from tcpcast_papers.reproduction import scale_metric
from tcpcast_papers.section_definition import Quantity, SectionDefinition
from tcpcast_papers.short.methods import MODEL, PACKETS, latency_by_method
from tcpcast_papers.short.published import HEADER_BYTES, LOSS, MSS_BYTES
from tcpcast_papers.short.runs import Job, SharedJob
from tcpcast_papers.short.settings import (
    LIMITED_TRANSMIT,
    NEWRENO,
    NEWRENO_W3,
    NEWRENO_W4,
    PROPOSAL,
    RATE_MBIT,
    RFC_3042,
    SHARED_RATE_MBIT,
    Setting,
)
from tcpcast_papers.short.timeouts import RARE_LOSS, SIZE_PKTS, measured_packets

if TYPE_CHECKING:
    from tcpcast_papers.short.runs import Runs

ONE_LOSS_SETTINGS = (
    NEWRENO,
    LIMITED_TRANSMIT,
    *(
        Setting(
            f"proposal {b} {window}",
            "the proposal",
            replace(PROPOSAL.transfer, acked_packets=b, initial_window_pkts=window),
        )
        for b, window in ((1, 1), (1, 2), (1, 4), (2, 2))
    ),
)


def _one_loss_job(runs: Runs, setting: Setting) -> Job:
    return Job(setting, (SIZE_PKTS,), runs.sample_sizes.table_transfers, RARE_LOSS)


ONE_LOSS_SECTION: SectionDefinition[Runs, Setting] = SectionDefinition(
    "Section 3.1. Packets whose loss causes a timeout",
    ("sender",),
    "packets",
    lambda setting: (setting.description,),
    lambda _: ONE_LOSS_SETTINGS,
    (
        Quantity(
            (),
            lambda runs, setting: measured_packets(runs[_one_loss_job(runs, setting)], 0),
        ),
    ),
    notes=lambda _: [
        f"The values are for files of {SIZE_PKTS} packets with one loss: the share of files with a "
        "timeout, times the number of packets. According to the paper the result is 1, the last "
        "packet, for the proposal with an initial window of at least 2."
    ],
    request=lambda runs: [
        runs.request(_one_loss_job(runs, setting)) for setting in ONE_LOSS_SETTINGS
    ],
)

LongCase = tuple[Setting, float]
"""A sender and a loss."""
LONG_FLOW_CASES: tuple[LongCase, ...] = tuple(
    product((NEWRENO, LIMITED_TRANSMIT, RFC_3042), (0.01, 0.05, 0.1))
)


LONG_FLOW_SECTION: SectionDefinition[Runs, LongCase] = SectionDefinition(
    "Section 4.2. Share of timeouts of a long flow",
    ("sender", "loss"),
    "%",
    lambda case: (case[0].sender, f"{100 * case[1]:g} %"),
    lambda _: LONG_FLOW_CASES,
    (
        Quantity(
            (),
            lambda runs, case: scale_metric(
                runs[runs.long_flow_job(*case)].metrics["timeout_share"], 100
            ),
        ),
    ),
    notes=lambda _: [
        "The values are timeouts in percent of the loss indications of one long flow. The paper's "
        "limited transmit sends two packets on the second duplicate ack; RFC 3042 sends one packet "
        "on each of the first two duplicate acks."
    ],
    request=lambda runs: [runs.request(runs.long_flow_job(*case)) for case in LONG_FLOW_CASES],
)

COMPARED_SETTINGS = (LIMITED_TRANSMIT, NEWRENO_W3, NEWRENO_W4)


def _latency_reduction_quantity(method: str) -> Quantity[Runs, Setting]:
    def computed(runs: Runs, setting: Setting) -> Metric:
        base, changed = (
            latency_by_method(runs, each, method).expected for each in (NEWRENO, setting)
        )
        ratio = changed[0] / base[0]
        return Metric(100 * float(1 - ratio.mean()))

    return Quantity((method,), computed)


WINDOW_SECTION: SectionDefinition[Runs, Setting] = SectionDefinition(
    "Section 4.1. Limited transmit compared with a larger initial window",
    ("sender", "by"),
    "%",
    lambda setting: (setting.description,),
    lambda _: COMPARED_SETTINGS,
    tuple(map(_latency_reduction_quantity, (PACKETS, MODEL))),
    notes=lambda _: [
        "The values are reductions of the expected latency relative to NewReno with W0 = 2, "
        "averaged over files of 1 to 30 packets."
    ],
    request=lambda runs: [
        runs.request(runs.figure_job(setting)) for setting in (NEWRENO, *COMPARED_SETTINGS)
    ],
)

LoadCase = tuple[Setting, float, float]
"""A sender, a loss, and the mean of an exponential delay that reorders packets, in seconds."""
SHORT_PKTS = tuple(range(2, 21))
"""Sizes to which the proposal applies; a single packet has no duplicates."""
JITTERS_S = (0.0, 10e-6, 20e-6, 50e-6)
LOAD_CASES: tuple[LoadCase, ...] = tuple(
    product((NEWRENO, LIMITED_TRANSMIT, PROPOSAL), (0.0, LOSS), JITTERS_S)
)


def swapped_share(jitter_s: float) -> float:
    """Return the share of back-to-back packets that overtake each other with this mean delay."""
    gap_s = 8e-6 * (MSS_BYTES + HEADER_BYTES) / RATE_MBIT
    return 0.5 * math.exp(-gap_s / jitter_s) if jitter_s else 0.0


def _load_job(runs: Runs, case: LoadCase) -> Job:
    setting, loss, jitter_s = case
    sender = replace(setting, jitter_s=jitter_s)
    return Job(sender, SHORT_PKTS, runs.sample_sizes.figure_transfers, loss)


LOAD_SECTION: SectionDefinition[Runs, LoadCase] = SectionDefinition(
    "Section 5. Network load and reordering",
    ("sender", "loss", "reordered"),
    "%",
    lambda case: (
        case[0].sender,
        f"{100 * case[1]:g} %",
        f"{100 * swapped_share(case[2]):.1f} %",
    ),
    lambda _: LOAD_CASES,
    (
        Quantity(
            (),
            lambda runs, case: Metric(
                100 * runs[_load_job(runs, case)].metrics["retransmit_ratio"].value
            ),
            note=lambda runs, case: (
                "mean latency "
                f"{runs[_load_job(runs, case)].metrics['completion_time_s'].value:.3f} s"
            ),
        ),
    ),
    notes=lambda _: [
        f"The values are retransmissions in percent of all packets, for files of {SHORT_PKTS[0]} "
        f"to {SHORT_PKTS[-1]} packets. An exponential delay behind the link reorders packets; the "
        "column *reordered* is the share of adjacent packets that overtake each other. Without "
        "reordering the proposal has slightly fewer retransmissions than the other senders, "
        "because its fewer timeouts retransmit fewer packets that have arrived. With reordering, "
        "its threshold of one duplicate ack causes needless retransmissions."
    ],
    request=lambda runs: [runs.request(_load_job(runs, case)) for case in LOAD_CASES],
)

SharedCase = tuple[int, Setting]
"""A number of users, and their sender."""
SHARED_CASES: tuple[SharedCase, ...] = tuple(
    product((120, 200), (NEWRENO, LIMITED_TRANSMIT, PROPOSAL))
)


def _shared_job(runs: Runs, case: SharedCase) -> SharedJob:
    users, setting = case
    return SharedJob(setting, users, 4 * runs.sample_sizes.figure_transfers)


def _shared_quantity(name: str, unit: str, metric: str, scale: float) -> Quantity[Runs, SharedCase]:
    def computed(runs: Runs, case: SharedCase) -> Metric:
        return scale_metric(runs[_shared_job(runs, case)].metrics[metric], scale)

    return Quantity((name,), computed, unit=unit)


SHARED_SECTION: SectionDefinition[Runs, SharedCase] = SectionDefinition(
    "Section 6. The proposal on a shared network",
    ("users", "sender", "quantity"),
    "%",
    lambda case: (str(case[0]), case[1].sender),
    lambda _: SHARED_CASES,
    (
        _shared_quantity("loss", "%", "loss_ratio", 100),
        _shared_quantity("ON time", "s", "on_time_s", 1),
        _shared_quantity("timeouts per packet", "%", "timeout_ratio", 100),
    ),
    notes=lambda _: [
        "The paper leaves the effect on the performance of the network for future research. Here "
        f"all users share a link of {SHARED_RATE_MBIT} Mbit/s with a buffer of 50 packets, and "
        "cause all losses themselves; files have 2 to 20 packets, OFF times a mean of 1 s. With "
        "120 users, who hardly fill the link, the proposal saves about 2 % of the time. With 200 "
        "users, it saves nothing: the rate of the full link determines the ON time, and fewer "
        "timeouts only raise the loss."
    ],
    request=lambda runs: [runs.request(_shared_job(runs, case)) for case in SHARED_CASES],
)

SECTION_DEFINITIONS = (
    ONE_LOSS_SECTION,
    WINDOW_SECTION,
    LONG_FLOW_SECTION,
    LOAD_SECTION,
    SHARED_SECTION,
)
