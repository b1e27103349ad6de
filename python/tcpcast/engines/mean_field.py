"""Engine ``mean-field``: any number of on/off sources at the cost of a few thousand.

Of N sources R are simulated, packet by packet, and each stands for k = N/R: on a link of 1/k of the
rate with 1/k of the buffer. That alone keeps means and spoils fluctuations, which would be those of
R sources: near saturation, where queues are what fluctuations make them, every figure would be
wrong. So silences end as every k-th of the N sources' does, and files vary in size as theirs do
(``crates/sim/src/mean_field``); what follows of bursts, windows and queues is then nearly as
regular as that of N.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines.packet import simulated
from tcpcast.engines.packet.configuration import configuration
from tcpcast.errors import NotApplicable
from tcpcast.scenario.mean_field import MeanField
from tcpcast.scenario.queue import FairQueue
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tcpcast.answer import Answer, Metric
    from tcpcast.engines import RunOptions
    from tcpcast.scenario import Scenario

    Table = dict[str, NDArray[Any]]

OF_ALL = frozenset(
    (
        "queue_mean_pkts",
        "queue_max_pkts",
        "send_rate_pps",
        "goodput_pps",
        "goodput_bps",
        "td_indications",
        "to_indications",
        "timeouts",
        "transfers",
    )
)
"""Metrics that are sums over the sources: those of the R times k."""

COLUMNS_OF_ALL = OF_ALL | {"packets", "drops", "queue_seen_mean_pkts"}
"""The same of columns of tables."""

NOT_TOLD = frozenset(("loss_event_ratio_cumulative",))
"""Metrics of all flows as one that those of some do not tell."""

TOLD_TABLES = frozenset(
    (
        "by_class",
        "queue",
        "by_size",
        "percentiles",
        "file_goodput",
        "file_goodput_by_size",
        "file_goodput_tail",
    )
)
"""Tables of files and of the queue; those of single sources and of states are left out."""

FEWEST_OF_CLASS = 100
"""A class of fewer simulated sources is warned of: its size is rounded to a whole one."""

FEWEST_VALIDATED = 2500
"""With fewer simulated sources round trips are off by more than 10 % near saturation."""


def mean_field(scenario: Scenario, options: RunOptions) -> Answer:
    """Answer a scenario by a population of which some sources stand for all.

    Parameters
    ----------
    scenario
        On/off sources, of one class or several, on a drop-tail or fair queue; its table
        ``[mean_field]`` says how many are simulated. Where there are no more than that, the answer
        is that of ``packet``.
    options
        Threads and progress; neither changes a figure.

    Returns
    -------
    Answer
        The metrics of ``packet`` with 95 % intervals, of the whole population; the intervals are of
        the simulation alone and do not hold what the scaling adds (docs/background/mean-field.md).
        ``provenance`` has ``flows``, how many were simulated, and ``each``, how many each stands
        for.

    Raises
    ------
    NotApplicable
        Other traffic, hops and cross traffic, correlated sizes and silences, RED, or probes of
        single flows.

    Notes
    -----
    The idea of a population in a random environment is that of Baccelli, Hong and Liu, INRIA report
    4154 (2001), section 5; what is drawn for the population is our own.
    """
    reason = _refusal(scenario)
    if reason is not None:
        raise NotApplicable(reason)
    flows = (scenario.mean_field or MeanField()).flows
    each = max(1.0, scenario.senders / flows)
    small = _with_fewer_transfers(scenario, each)
    answer = simulated(small, options, functools.partial(scaled_configuration, each=each))
    answer.engine = "mean-field"
    answer.provenance |= {
        "scenario": scenario.digest(),
        "flows": sum(_sources(group.count, each) for group in scenario.populations),
        "each": each,
    }
    if each > 1:
        _tell_of_all(answer, scenario, each)
        answer.warnings += _warnings(scenario, each)
    return answer


def _refusal(scenario: Scenario) -> str | None:
    """Say why a scenario is not one of a population of which some stand for all."""
    kinds = [group.traffic for group in scenario.populations]
    if not all(isinstance(traffic, OnOff) for traffic in kinds):
        return (
            "its population is one of on/off sources that come and go; "
            'ask engine packet, or write traffic.kind = "on-off"'
        )
    if any(isinstance(traffic, OnOff) and traffic.correlation for traffic in kinds):
        return (
            "it draws sizes and silences each for the whole population, not together; "
            "ask engine packet, or leave traffic.correlation out"
        )
    return _refusal_of_network(scenario)


def _refusal_of_network(scenario: Scenario) -> str | None:
    if scenario.network.hops or scenario.cross:
        return (
            "it scales one link that all share, without traffic of others; "
            "ask engine packet, or write [network.bottleneck] and leave [[cross]] out"
        )
    if scenario.network.red_parameters() is not None:
        return (
            "RED goes by the mean of a queue of single packets, which a scaled one has not; "
            'ask engine packet, or write queue = "fq"'
        )
    if scenario.probes.flows or scenario.probes.pcap:
        return (
            "no single source of the scenario is simulated, so none can be watched; "
            "ask engine packet, or leave probes.flows and probes.pcap out"
        )
    return None


def _with_fewer_transfers(scenario: Scenario, each: float) -> Scenario:
    """Ask for as many transfers of those simulated as are the share of all that is asked for."""
    if scenario.run.connections is None or each == 1:
        return scenario
    return scenario.with_changes({"run.connections": math.ceil(scenario.run.connections / each)})


def scaled_configuration(scenario: Scenario, warmup_s: float, *, each: float) -> dict[str, Any]:
    """Return the simulator's configuration of a network of 1/``each`` of the size.

    Parameters
    ----------
    scenario
        The whole.
    warmup_s
        Length of the warm-up in seconds.
    each
        Sources that each simulated one stands for, at least 1; with 1 it is that of ``packet``.
    """
    found = configuration(scenario, warmup_s)
    if each == 1:
        return found
    rate = found["bottleneck_bps"]
    if rate is not None:
        found["bottleneck_bps"] = max(1, round(rate / each))
    if found["buffer_pkts"] is not None and not _has_individual_buffers(scenario):
        found["buffer_pkts"] = max(1, round(found["buffer_pkts"] / each))
    for group in found["classes"]:
        sources = group["sources"]
        group["sources"] = _sources(sources, each)
        group["stands_for"] = max(1.0, sources / group["sources"])
        if rate is not None:
            # A packet takes so much longer on the smaller link: the empty path must not.
            for key, size in (("forward_ns", "packet_bytes"), ("back_ns", "ack_bytes")):
                longer = (each - 1) * 8e9 * found[size] / rate
                group[key] = max(0, group[key] - round(longer))
    return found


def _sources(count: int, each: float) -> int:
    return max(1, round(count / each))


def _has_individual_buffers(scenario: Scenario) -> bool:
    queue = scenario.network.bottleneck.queue
    return isinstance(queue, FairQueue) and queue.buffers == "individual"


def _tell_of_all(answer: Answer, scenario: Scenario, each: float) -> None:
    """Turn the figures of the simulated sources into those of the population."""
    answer.metrics = {
        name: _times(metric, each) if name in OF_ALL else metric
        for name, metric in answer.metrics.items()
        if name not in NOT_TOLD
    }
    tables = {name: table for name, table in answer.tables.items() if name in TOLD_TABLES}
    if "by_class" in tables:
        counts = np.array([group.count for group in scenario.populations])
        tables["by_class"] = _columns_times(tables["by_class"], each) | {"sources": counts}
    if "queue" in tables:
        queue = tables["queue"]
        tables["queue"] = queue | {"queue_pkts": np.round(queue["queue_pkts"] * each)}
    if "by_size" in tables:
        tables["by_size"] = _columns_times(tables["by_size"], each)
    answer.tables = tables


def _times(metric: Metric, each: float) -> Metric:
    ends = (metric.low, metric.high)
    low, high = (None if end is None else end * each for end in ends)
    return replace(metric, value=metric.value * each, low=low, high=high)


def _columns_times(table: Mapping[str, NDArray[Any]], each: float) -> Table:
    """Multiply the columns that are sums over sources, with their intervals."""

    def is_of_all(name: str) -> bool:
        return name.removesuffix("_low").removesuffix("_high") in COLUMNS_OF_ALL

    return {name: column * each if is_of_all(name) else column for name, column in table.items()}


def _warnings(scenario: Scenario, each: float) -> list[str]:
    """Say what is outside of what was compared with exact simulation."""
    found = []
    simulated_sources = sum(_sources(group.count, each) for group in scenario.populations)
    if simulated_sources < FEWEST_VALIDATED:
        found.append(
            f"mean-field: {simulated_sources} simulated sources are few: near saturation "
            "round trips are off by more than 10 %; "
            f"write mean_field.flows = {FEWEST_VALIDATED} or more"
        )
    small = [
        group.name
        for group in scenario.populations
        if group.count != _sources(group.count, each) * each
        and _sources(group.count, each) < FEWEST_OF_CLASS
    ]
    if small:
        found.append(
            f"mean-field: fewer than {FEWEST_OF_CLASS} sources are simulated of class "
            f"{', '.join(small)}, in whole numbers; write a larger mean_field.flows"
        )
    if _has_individual_buffers(scenario) or _loses_at_random(scenario):
        found.append(
            "mean-field was not compared with exact simulation for random loss and individual "
            "buffers; compare a smaller population of this scenario with engine packet"
        )
    return found


def _loses_at_random(scenario: Scenario) -> bool:
    links = [scenario.network.bottleneck]
    for group in scenario.populations:
        links += [group.ingress, group.egress]
    return any(link.loss is not None for link in links)
