"""Engine ``mean-field``: any number of on/off sources at the cost of a few thousand.

R of N sources are simulated at packet level, and each represents k = N/R sources. Shared links have
1/k of the rate and the buffer; links of single sources are unchanged. This preserves means, but not
fluctuations: R sources fluctuate more, and near saturation fluctuations determine the queues.
Therefore the simulator draws the random inputs for the population of N sources: every k-th end of
an OFF time, file sizes that are as regular (``crates/sim/src/population``), and every k-th cross
packet. Bursts, windows and queues are then nearly as regular as with N sources.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer.metrics import METRICS
from tcpcast.engines.packet import simulate_with_configuration
from tcpcast.engines.packet.configuration import extra_byte_ns, make_configuration
from tcpcast.engines.packet.memory import check_memory
from tcpcast.engines.packet.network_scale import NetworkScale
from tcpcast.engines.registry import changes_to_set_stack
from tcpcast.process.errors import NotApplicable, Suggestion
from tcpcast.quantity.readable_units import time_text
from tcpcast.scenario.aqm import ManagedQueue
from tcpcast.scenario.cross_checks import find_stream_hop, get_stream_hops
from tcpcast.scenario.mean_field import MeanField
from tcpcast.scenario.queue import FairQueue, Red
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tcpcast.answer import Answer
    from tcpcast.array_types import Table
    from tcpcast.engines.options import RunOptions
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.return_path import ReturnLink

MIN_CLASS_SOURCES = 100
"""A class with fewer simulated sources causes a warning, because their number is rounded."""

MIN_SOURCES = 2500
"""With fewer simulated sources the RTT has an error of more than 10 % near saturation."""

MIN_SOURCES_IN_SERIES = 5000
"""As :data:`MIN_SOURCES`, for hops in series."""

MIN_SOURCES_FOR_GOODPUT = 10_000
"""With fewer simulated sources, goodput has an error of more than 5 % near saturation, for a
drop-tail queue or with cross traffic."""

MAX_CROSS_LOSS = 0.01
"""Largest loss ratio of cross packets in a drop-tail queue without a warning."""

MAX_EXCESS_SHARE = 0.005
"""Largest excess delay of the idle path, relative to the RTT, without a warning."""


def mean_field(scenario: Scenario, options: RunOptions) -> Answer:
    """Simulate a population in which some sources represent all.

    Parameters
    ----------
    scenario
        On/off sources, of one class or several, on drop-tail or fair queues, with or without cross
        traffic; its table ``[mean_field]`` contains the number of simulated sources. If the
        scenario has at most this number of sources, the answer equals the answer of ``packet``.
    options
        Threads and progress; they do not change results.

    Returns
    -------
    Answer
        The metrics of ``packet`` with 95 % intervals, for the full population. The intervals cover
        the noise of the simulation, not the error of the scaling (docs/background/mean-field.md).
        ``provenance`` contains ``flows``, the number of simulated sources, and ``each``, the number
        of sources per simulated source.

    Raises
    ------
    NotApplicable
        Traffic other than on/off sources, RED, or probes of single flows.

    Notes
    -----
    The idea of a population in a random environment is from Baccelli, Hong and Liu, INRIA report
    4154 (2001), section 5; the random draws for the population are a development of this project.
    """
    raise_if_unsupported(scenario)
    small, scale = _scale_scenario(scenario)
    answer = simulate_with_configuration(
        small, options, functools.partial(make_configuration, scale=scale)
    )
    answer.engine = "mean-field"
    answer.provenance |= {
        "scenario": scenario.digest(),
        "flows": sum(scale.scale_source_count(group.count) for group in scenario.populations),
        "each": scale.factor,
    }
    if scale.factor > 1:
        metrics = {n: m for n, m in answer.metrics.items() if not METRICS[n].needs_all_flows}
        for name, metric in metrics.items():
            if METRICS[name].is_extensive:
                low, high = (
                    None if end is None else end * scale.factor for end in (metric.low, metric.high)
                )
                metrics[name] = replace(
                    metric, value=metric.value * scale.factor, low=low, high=high
                )
        answer.metrics = metrics
        tables = {name: table for name, table in answer.tables.items() if name in SCALED_TABLES}
        if "by_class" in tables:
            tables["by_class"] = _scale_columns(tables["by_class"], scale.factor) | {
                "sources": np.array([group.count for group in scenario.populations])
            }
        if "by_link" in tables:
            # `instances` counts the links of all sources, most of which are not simulated, so that
            # the mean queue of a source's link is extensive as that of a shared link.
            for name in ("by_link", "by_link_class"):
                tables[name] = _scale_columns(tables[name], scale.factor)
                tables[name]["packets"] = np.round(tables[name]["packets"]).astype(np.int64)
        if "cross" in tables:  # a hop of a single source keeps its values
            places = (find_stream_hop(scenario.network, stream) for stream in scenario.cross)
            times = [scale.factor if place is None or place.shared else 1.0 for place in places]
            tables["cross"] = {
                name: column * np.array(times) if name in SCALED_STREAM_COLUMNS else column
                for name, column in tables["cross"].items()
            }
        if "queue" in tables:
            tables["queue"] |= {
                "queue_pkts": np.round(tables["queue"]["queue_pkts"] * scale.factor)
            }
        if "by_size" in tables:
            tables["by_size"] = _scale_columns(tables["by_size"], scale.factor)
        if "percentiles" in tables:  # the unit of the row of the queue is packets
            of_row = np.where(tables["percentiles"]["quantity"] == "queue", scale.factor, 1.0)
            tables["percentiles"] = {
                name: column * of_row if name.startswith("p") else column
                for name, column in tables["percentiles"].items()
            }
        answer.tables = tables
        warnings = []
        simulated = sum(scale.scale_source_count(group.count) for group in scenario.populations)
        crossed = (find_stream_hop(scenario.network, stream) for stream in scenario.cross)
        drop_tail = any(link.queue == "droptail" for link in _get_shared_links(scenario))
        if drop_tail or any(place is not None and place.shared for place in crossed):
            enough, why = MIN_SOURCES_FOR_GOODPUT, "the error of the goodput exceeds 5 %"
        else:
            least = MIN_SOURCES_IN_SERIES if len(scenario.network.hops) > 1 else MIN_SOURCES
            enough, why = least, "the error of the RTT exceeds 10 %"
        if simulated < enough:
            warnings.append(
                f"{simulated} simulated sources are too few: near saturation, {why}; use "
                f"mean_field.flows = {enough} or more"
            )
        small_classes = [
            group.name
            for group in scenario.populations
            if group.count != scale.scale_source_count(group.count) * scale.factor
            and scale.scale_source_count(group.count) < MIN_CLASS_SOURCES
        ]
        if small_classes:
            warnings.append(
                f"fewer than {MIN_CLASS_SOURCES} sources of class {', '.join(small_classes)} are "
                "simulated, so the rounding of this number causes a large error; use a larger "
                "mean_field.flows"
            )
        queues = [link.queue for link in _get_shared_links(scenario)]
        if (
            any(
                isinstance(queue, FairQueue)
                and (queue.buffers == "individual" or queue.head_of_line == "in service")
                for queue in queues
            )
            or scenario.has_random_loss
        ):
            warnings.append(
                "a scaled population with random loss, per-flow buffers or head_of_line = "
                '"in service" has not been validated against exact simulation; '
                "compare a smaller population of this scenario with the packet engine"
            )
        longer_s = max_excess_delay_s(scenario, scale)
        if longer_s > MAX_EXCESS_SHARE * min(group.rtt_s for group in scenario.populations):
            warnings.append(
                f"the base RTT is {time_text(longer_s)} longer than in the scenario, because a "
                "simulated packet represents several packets, and its transmission takes longer "
                "than the propagation delay can compensate for; use a larger mean_field.flows"
            )
        # Losses depend on the order of single packets, which differs in the scaled queue.
        lost = answer.tables["cross"]["loss_ratio"] if "cross" in answer.tables else ()
        full = {
            place.name
            for stream, ratio in zip(scenario.cross, lost, strict=False)
            if (place := find_stream_hop(scenario.network, stream)) is not None
            and place.shared
            and place.link.queue == "droptail"
            and ratio > MAX_CROSS_LOSS
        }
        if full:
            warnings.append(
                f"a full drop-tail queue ({', '.join(sorted(full))}) drops packets of the sources "
                "and of the cross traffic. The engine does not predict how these losses are "
                "shared, and overestimates loss ratios by up to a factor of 2. Use queue = "
                '"fq" at this hop, or check a smaller population with the packet engine'
            )
        answer.warn(*warnings)
    else:
        answer.warn(
            "the scenario has at most as many sources as mean_field.flows "
            f"({_max_exactly_simulated_sources(scenario):,}), so the mean-field engine simulates "
            "each source, as the packet engine does; to simulate a scaled population, use a "
            "smaller mean_field.flows",
            kind="remark",
        )
    return answer


_SUGGEST_PACKET = Suggestion(engine="packet")


def raise_if_unsupported(scenario: Scenario) -> None:
    """Raise NotApplicable unless some sources of a scenario can represent all."""
    others = [group for group in scenario.populations if not isinstance(group.traffic, OnOff)]
    if others:
        who = f"; class {others[0].name} sends other traffic" if scenario.classes else ""
        raise NotApplicable(f"mean-field requires a population of on/off sources{who}")
    if scenario.is_modern:
        raise NotApplicable(
            "a scaled population has not been validated for modern TCP",
            _SUGGEST_PACKET,
            Suggestion(changes_to_set_stack(scenario, "rfc-newreno")),
        )
    for reason, changes in _find_unsupported_features(scenario):
        raise NotApplicable(reason, _SUGGEST_PACKET, Suggestion(changes))
    small, scale = _scale_scenario(scenario)
    check_memory(small, make_configuration(small, 0.0, scale))


def _scale_scenario(scenario: Scenario) -> tuple[Scenario, NetworkScale]:
    """Return the scenario of the simulated sources, and the scale of its network."""
    factor = max(1.0, scenario.senders / _max_exactly_simulated_sources(scenario))
    if scenario.run.transfers is None or factor == 1:
        return scenario, NetworkScale(factor)
    transfers = math.ceil(scenario.run.transfers / factor)
    return scenario.with_changes({"run.transfers": transfers}), NetworkScale(factor)


def _max_exactly_simulated_sources(scenario: Scenario) -> int:
    """Return the number of sources up to which all are simulated."""
    return (scenario.mean_field or MeanField()).flows


def _find_unsupported_features(scenario: Scenario) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield unsupported features of the network and the probes, with changes that remove them."""
    network = scenario.network
    for place in get_stream_hops(network):
        key = f"network.{'hop.' if network.hops and place.link in network.hops else ''}{place.name}"
        queue, varying = place.link.queue, place.link.varying
        if not place.shared:
            continue
        if isinstance(queue, Red):
            reason = (
                "RED updates its mean queue length at each packet, but in a scaled population, "
                "one simulated packet represents many packets"
            )
            yield reason, {f"{key}.queue": "fq"}
        if isinstance(queue, ManagedQueue):
            reason = f"{queue.kind} in a scaled population has not been validated"
            yield reason, {f"{key}.queue": "fq"}
        if varying:
            reason = f"a scaled population behind a {varying.kind} has not been validated"
            yield reason, {f"{key}.rate": "10mbit"}
    if network.jitter is not None:
        yield "jitter in a scaled population has not been validated", {"network.jitter": None}
    if network.has_return:
        reason = "queueing and loss of ACKs in a scaled population have not been validated"
        yield reason, {"network.return": None, "network.ack_loss": None}
    if scenario.probes.flows or scenario.probes.pcap:
        reason = "single sources cannot be traced, because mean-field simulates a scaled population"
        yield reason, {"probes.flows": None, "probes.pcap": None}


def max_excess_delay_s(scenario: Scenario, scale: NetworkScale) -> float:
    """Return the excess delay of the idle path in seconds, for the class with the largest excess.

    A packet takes longer on a scaled link, and a path with too little propagation delay cannot be
    shortened by as much.
    """
    config = make_configuration(scenario, 0.0)
    longer = extra_byte_ns(scenario, scale)
    lacking = [
        longer * group["packet_bytes"] - group["delay_ns"] - group["back_delay_ns"]
        for group in config["classes"]
    ]
    return max(0.0, 1e-9 * float(max(lacking)))


def _get_shared_links(scenario: Scenario) -> list[Link | ReturnLink]:
    return [place.link for place in get_stream_hops(scenario.network) if place.shared]


EXTENSIVE_COLUMNS = {
    *(name for name, row in METRICS.items() if row.is_extensive),
    *("packets", "drops", "queue_seen_mean_pkts", "rate_bps"),
}
"""Columns of tables that are sums over the sources."""

SCALED_STREAM_COLUMNS = ("offered_bps", "carried_bps", "rate_mean_bps", "rate_sd_bps")
"""Columns of the table of cross traffic that are counted, and hence scaled."""

SCALED_TABLES = {
    *("by_class", "by_link", "by_link_class", "cross", "queue", "by_size", "percentiles"),
    *("file_goodput", "file_goodput_by_size", "file_goodput_tail"),
}
"""Tables of an answer; file goodput is the same in the population."""


def _scale_columns(table: Mapping[str, NDArray[Any]], scale_factor: float) -> Table:
    """Scale the columns that are sums over sources, with their intervals."""

    def is_of_all(name: str) -> bool:
        return name.removesuffix("_low").removesuffix("_high") in EXTENSIVE_COLUMNS

    return {
        name: column * scale_factor if is_of_all(name) else column for name, column in table.items()
    }
