"""Checks for contradictions between valid tables, and warnings about the results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast import units
from tcpcast.scenario.aqm import ManagedQueue
from tcpcast.scenario.classes import COUNT_KEYS, find_class_errors
from tcpcast.scenario.cross_checks import find_cross_traffic_errors
from tcpcast.scenario.return_path import RETURN
from tcpcast.scenario.table import make_error_at, prepend_location
from tcpcast.scenario.traffic import MAX_SOURCES, Bulk, OnOff, Transfers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.model import Scenario


def find_errors_in_classes(scenario: Scenario) -> list[InitErrorDetails]:
    """Return the errors of each class, and names that are used twice."""
    errors = []
    seen: set[str] = set()
    for index, entry in enumerate(scenario.classes):
        below = find_class_errors(entry, scenario.network)
        if entry.name in seen:
            below.append(
                make_error_at(
                    f'"{entry.name}" is the name of another class; write another name', "name"
                )
            )
        seen.add(entry.name)
        errors += [prepend_location(f, "class", index) for f in below]
    return errors


def find_cross_table_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Return contradictions between tables that are valid on their own."""
    errors = []
    traffic = scenario.traffic
    if not scenario.classes and not isinstance(traffic, Transfers) and traffic.declared is None:
        key = COUNT_KEYS[traffic.kind]
        errors.append(
            make_error_at(f"missing; write {key} = 100, or [[class]] tables", "traffic", key)
        )
        return errors
    groups = scenario.populations
    if scenario.senders > MAX_SOURCES:
        message = f"{scenario.senders} senders in all classes; write at most {MAX_SOURCES} in total"
        errors.append(make_error_at(message, "class"))
    if scenario.run.transfers is not None and all(isinstance(p.traffic, Bulk) for p in groups):
        message = 'bulk flows never complete; write duration = "300s" instead'
        errors.append(make_error_at(message, "run", "transfers"))
    for index, group in enumerate(groups):
        above: tuple[str | int, ...] = ("class", index) if scenario.classes else ()
        errors += [
            make_error_at(text, *above, *where) for where, text in _find_population_errors(group)
        ]
    errors += [*find_cross_traffic_errors(scenario), *_find_late_class_starts(scenario)]
    errors += _find_unlimited_paths(scenario)
    for index, flow in enumerate(scenario.probes.flows):
        if flow >= scenario.senders:
            last = scenario.senders - 1
            numbers = f"a number from 0 to {last}" if last else "0"
            message = f"there is no flow {flow}; write {numbers}"
            if last < 0:
                message = (
                    f"flow {flow} cannot be traced, because each transfer is a new "
                    "flow; leave this number out"
                )
            errors.append(make_error_at(message, "probes", "flows", index))
    errors += _find_report_at_errors(scenario)
    errors += _find_mixed_stack_errors(groups)
    errors += _find_aqm_errors(scenario)
    errors += _find_return_path_errors(scenario)
    errors += _find_payload_errors(scenario)
    instant = next((group.tcp for group in groups if group.tcp.has_loss_feedback), None)
    if scenario.probes.pcap and instant is not None:
        message = (
            f"{instant.stack} acknowledges every single packet and retransmits nothing, so a "
            "capture would not show TCP; leave probes.pcap out, or write stack = "
            '"rfc-newreno"'
        )
        errors.append(make_error_at(message, "probes", "pcap"))
    return errors


def _find_unlimited_paths(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Find paths on which packets take no time, and flows that nothing limits."""
    network = scenario.network
    measured = ("hop", network.measured_index) if network.hops else ("bottleneck",)
    if any(group.rtt_s == 0 for group in scenario.populations):
        message = (
            "the round-trip time is 0, because no link of the path has a rate or a delay; write a "
            'delay above 0, such as delay = "10ms"'
        )
        yield make_error_at(message, "network", *measured, "delay")
    if _has_unlimited_window_growth(scenario):
        message = "nothing limits the flows; write a rate or a loss, or tcp.receiver_window = 44"
        yield make_error_at(message, "network", *measured, "rate")


def _find_late_class_starts(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Find classes that start after the end of the run."""
    end = scenario.run.duration_s or math.inf
    for index, group in enumerate(scenario.classes):
        if group.start is not None and group.start >= end:
            longer = units.format_duration(math.ceil(group.start) + 60)
            message = (
                f'is after the end of the run; write an earlier time, or run.duration = "{longer}"'
            )
            yield make_error_at(message, "class", index, "start")


def _find_report_at_errors(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Find times of ``report_at`` for which a run cannot report the delivered bytes."""
    times = scenario.run.report_at
    if times is None:
        return
    if not any(isinstance(group.traffic, Bulk) for group in scenario.populations):
        message = 'is only for flows that never end; leave it out, or write traffic.kind = "bulk"'
        yield make_error_at(message, "run", "report_at")
    elif scenario.has_loss_feedback:
        message = (
            "counts bytes delivered in order, but the receiver of max-plus-reno does not sort "
            'packets; leave it out, or write tcp.stack = "rfc-newreno"'
        )
        yield make_error_at(message, "run", "report_at")
    elif times[-1] >= (scenario.run.duration_s or math.inf):
        last, longer = (units.format_duration(s) for s in (times[-1], math.ceil(times[-1]) + 1))
        message = f'{last} is after the end of the run; write duration = "{longer}"'
        yield make_error_at(message, "run", "report_at", len(times) - 1)


def _find_mixed_stack_errors(groups: list[Population]) -> list[InitErrorDetails]:
    """Find classes with senders that cannot be combined with the senders of the first class."""
    first, errors = groups[0].tcp, []
    # In runs with modern TCP, each source has a receiver of the matching kind.
    alike = any(group.tcp.is_modern for group in groups)
    for index, group in enumerate(groups):
        units = group.tcp.rules.window_unit, first.rules.window_unit
        for key, (own, other), differs in (
            (
                ("stack",),
                (group.tcp.stack, first.stack),
                group.tcp.has_loss_feedback != first.has_loss_feedback,
            ),
            (("rules", "window_unit"), units, not alike and units[0] != units[1]),
        ):
            if differs:
                message = (
                    f'"{own}" cannot be combined with "{other}" of class {groups[0].name}; '
                    "write one value for all classes, or one scenario per class"
                )
                errors.append(make_error_at(message, "class", index, "tcp", *key))
    return errors


def _find_aqm_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Find queues with AQM whose senders retransmit each dropped packet immediately."""
    instant = next((g.tcp.stack for g in scenario.populations if g.tcp.has_loss_feedback), None)
    network, errors = scenario.network, []
    links: list[tuple[tuple[str | int, ...], Link]] = [(("bottleneck",), network.bottleneck_link)]
    if network.hops:
        links = [(("hop", index), hop) for index, hop in enumerate(network.hops)]
    for key, link in links:
        if instant is not None and isinstance(link.queue, ManagedQueue):
            message = (
                f"{link.queue.kind} controls senders by its drops, and {instant} replaces each "
                'dropped packet immediately; write "droptail" or "fq" here, or tcp.stack = '
                '"rfc-newreno"'
            )
            errors.append(make_error_at(message, "network", *key, "queue"))
    return errors


def _find_return_path_errors(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Find ACK delays or ACK losses with senders that have no timer to recover from a lost ACK."""
    instant = next((g.tcp.stack for g in scenario.populations if g.tcp.has_loss_feedback), None)
    network = scenario.network
    values = {RETURN: network.return_link, "ack_loss": network.ack_loss}
    for key in values if instant is not None else ():
        if values[key] is not None:
            message = (
                f"{instant} needs every ack, because this stack has no retransmission timer; "
                'leave the key out, or write tcp.stack = "rfc-newreno"'
            )
            yield make_error_at(message, "network", key)


def _find_payload_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Find packets without room for payload after the headers, including TCP timestamps."""
    errors: dict[tuple[str | int, ...], InitErrorDetails] = {}
    for index, group in sorted(
        enumerate(scenario.populations), key=lambda each: each[1].tcp.header_bytes
    ):
        packet, headers = group.packet_bytes, group.tcp.header_bytes
        if packet <= headers:
            is_own = scenario.classes and scenario.classes[index].packet is not None
            key = ("class", index, "packet") if is_own else ("network", "packet")
            text = (
                f"{packet} B are too few for {headers} B of headers and some payload; "
                f'write at least "{headers + 1}B"'
            )
            errors[key] = make_error_at(text, *key)
    return list(errors.values())


def _find_population_errors(group: Population) -> list[tuple[tuple[str, ...], str]]:
    start = group.traffic.start if isinstance(group.traffic, Bulk) else None
    if isinstance(start, list) and len(start) != group.count:
        text = f"{len(start)} start times for {group.count} flows; write one time per flow"
        return [(("traffic", "start"), text)]
    return []


def _has_unlimited_window_growth(scenario: Scenario) -> bool:
    """Return True if the window of a bulk flow could grow without limit."""
    network = scenario.network
    return any(
        isinstance(group.traffic, Bulk)
        and math.isinf(group.tcp.receiver_window)
        and all(math.isinf(on.link.rate) and on.link.loss is None for on in group.links(network))
        for group in scenario.populations
    )


def warn_about_idle_red(scenario: Scenario) -> list[str]:
    """Warn if RED never drops early because its average queue stays below the minimum threshold."""
    red, waiting = scenario.network.red_parameters(), scenario.buffer_pkts - 1
    if red is None or waiting > red.min_threshold_pkts:
        return []
    return [
        f"RED drops nothing early: at most {waiting:,.0f} packets can queue, fewer than "
        f"min_threshold ({red.min_threshold_pkts:.4g} packets); write a larger buffer or a "
        "lower threshold"
    ]


LARGE_NOISE = 0.1
"""Share of the round-trip time above which the mean of ``tcp.host_noise`` affects results."""


def warn_about_phase_effects(scenario: Scenario) -> list[str]:
    """Warn if phase effects determine the shares of the link because hosts have no noise."""
    network, groups = scenario.network, scenario.populations
    endless = [group for group in groups if isinstance(group.traffic, Bulk)]
    exact = [
        group for group in endless if not group.tcp.host_noise and not group.tcp.has_loss_feedback
    ]
    steady = network.jitter is None and not scenario.cross and not scenario.has_random_loss
    if (
        not exact
        or len({group.rtt_s for group in endless}) < 2
        or not steady
        or network.bottleneck.queue != "droptail"
        or math.isinf(scenario.buffer_pkts)
    ):
        return []
    return [
        f"hosts of {', '.join(group.name for group in exact)} send without random delay, so "
        "small changes of the RTT decide which flow loses packets at a drop-tail queue "
        '(phase effect); write tcp.host_noise = "0.1ms", a typical value of real hosts'
    ]


def warn_about_population(scenario: Scenario, group: Population) -> list[str]:
    """Return warnings about one class."""
    tcp, network = group.tcp, scenario.network
    texts = []
    if isinstance(group.traffic, OnOff) and not group.traffic.size.has_finite_variance():
        texts.append(
            "traffic.size has no finite variance: means converge slowly, and intervals are too "
            "narrow"
        )
    if isinstance(group.traffic, OnOff) and not group.traffic.off.has_finite_variance():
        texts.append(
            "traffic.off has no finite variance: means converge slowly, and intervals are too "
            "narrow"
        )
    links = [on.link for on in group.links(network)]
    endless = isinstance(group.traffic, Bulk) and math.isinf(tcp.receiver_window)
    if (
        endless
        and network.bottleneck.queue == "droptail"
        and all(link.loss is None and math.isinf(network.buffer_pkts(link)) for link in links)
    ):
        texts.append(
            "bulk flows with an unlimited window into unlimited buffers: "
            "the queue grows as long as the run lasts"
        )
    if tcp.host_noise > LARGE_NOISE * group.rtt_s:
        texts.append(
            "the hosts' mean processing delay (tcp.host_noise) is "
            f"{units.format_duration(tcp.host_noise)}, compared with a round-trip time of "
            f"{units.digits(group.rtt_s * 1e3)} ms, so the answer depends on the hosts; write "
            'the delay of your hosts, or "0s"'
        )
    if tcp.initial_rto < group.rtt_s:
        texts.append(
            "tcp.initial_rto is below the round-trip time of "
            f"{units.digits(group.rtt_s * 1e3)} ms: every connection starts with a spurious timeout"
        )
    if tcp.initial_window > tcp.receiver_window:
        texts.append(
            "tcp.initial_window is above tcp.receiver_window, which therefore "
            "limits the initial window"
        )
    return texts
