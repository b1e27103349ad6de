"""Derivation steps of TCP-Engset; numbers in parentheses are those of the paper's equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines.formula.input_types import make_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Step
    from tcpcast.models.engset import (
        ClassesResult,
        EngsetClass,
        EngsetResult,
        IsolatedConnection,
        Path,
    )


def link_steps(path: Path, buffer_pkts: float | None) -> list[Step]:
    """Return the steps of the shared link."""
    steps = [
        make_step("P", path.packet_bytes, "B", "network.packet"),
        make_step("C", path.bottleneck_bps, "bit/s", "rate of the shared link"),
        make_step("Delta", path.delta_s, "s", "8 P/C"),
    ]
    if buffer_pkts is not None:
        steps.append(make_step("B", buffer_pkts, "packet", "buffer of the shared link"))
    return steps


def path_steps(path: Path, window_pkts: float, name: str = "") -> list[Step]:
    """Return the steps of the path of a class, whose name follows the symbols."""
    return _with_name(
        name,
        make_step("RTT0", path.rtt0_s, "s", "RTT of the idle path"),
        make_step("Delta*", path.slowest_delta_s, "s", "8 P/rate of the slowest link"),
        make_step("WR", window_pkts, "packet", "tcp.receiver_window"),
    )


def source_steps(inputs: EngsetClass, name: str = "") -> list[Step]:
    """Return the steps of the inputs of a class, whose name follows the symbols."""
    return _with_name(
        name,
        make_step("N", inputs.sources, "1", "number of sources"),
        make_step("OFF", inputs.mean_off_s, "s", "mean of traffic.off"),
        make_step("F", inputs.mean_size_pkts, "packet", "mean of traffic.size"),
    ) + path_steps(inputs.path, inputs.receiver_window_pkts, name)


def engset_steps(inputs: EngsetClass, result: EngsetResult) -> list[Step]:
    """Return the steps of the model for one class."""
    isolated, sharing = result.isolated, result.sharing
    steps = [
        *link_steps(result.path, result.buffer_pkts),
        *source_steps(inputs),
        *_isolated_steps(isolated),
        make_step("a0", result.offered_load, "1", "N 8 F P/((OFF + ON0) C), (5)"),
        make_step("J", sharing.mean_active, "1", "sum over j of j P_j, mean active sources, (6)"),
        make_step("T", sharing.throughput_bps, "bit/s", "sum over j of P_j min(j h0, C), (6)"),
        make_step("h1", sharing.rate1_bps, "bit/s", "T/J, (7)"),
        make_step("ON1", sharing.on_time1_s, "s", "8 F P/h1, (7)"),
        make_step("U1", sharing.utilisation1, "1", "T/C, (7)"),
    ]
    if sharing.overload_active is None:
        mean, both = "{} for N at most s, without sharing, (10)", ("h1", "ON1", "U1")
        queue = "0 for N at most s, (11)"
    else:
        assert sharing.rate2_bps is not None
        assert sharing.on_time2_s is not None
        assert sharing.utilisation2 is not None
        steps += [
            make_step("Jo", sharing.overload_active, "1", "mean of j over the states j > s, (8)"),
            make_step("h2", sharing.rate2_bps, "bit/s", "C/Jo, (8)"),
            make_step("ON2", sharing.on_time2_s, "s", "8 F P/h2, (8)"),
            make_step("U2", sharing.utilisation2, "1", "N 8 F P/((OFF + ON2) C), (9)"),
        ]
        mean, both = "mean of {}, (10)", ("h1 and h2", "ON1 and ON2", "U1 and U2")
        queue = "(ON - ON0)/(m' Delta), (11)"
    steps += [
        make_step("h", result.rate_bps, "bit/s", mean.format(both[0])),
        make_step("ON", result.on_time_s, "s", mean.format(both[1])),
        make_step("U", result.utilisation, "1", mean.format(both[2])),
        make_step("Q", result.queue_mean_pkts, "packet", queue),
    ]
    return steps + _loss_steps(result)


def classes_steps(result: ClassesResult, names: Sequence[str]) -> list[Step]:
    """Return the steps of the model for several classes with these names."""
    load, mean = "load by the overloaded states, (8) and (9)", "mean of U1 and U2, (10)"
    queue = "mean of the queues with sum over k of N_k 8 F_k P/(OFF_k + ON_k) = U1 C and U2 C"
    if not result.can_overload_link:
        load, mean = "U1, because no state overloads the link, (7)", "U1, (10)"
        queue = "0, because no state overloads the link"
    steps = link_steps(result.classes[0].path, result.buffer_pkts)
    for name, inputs, isolated in zip(names, result.classes, result.isolated, strict=True):
        steps += [*source_steps(inputs, name), *_isolated_steps(isolated, name)]
    steps += [
        make_step("a0", result.offered_load, "1", "sum over k of N_k 8 F_k P/((OFF_k + ON0_k) C)"),
        make_step("U2", result.closed_loop_load, "1", load),
        make_step("U", result.utilisation, "1", mean),
        make_step("Q", result.queue_mean_pkts, "packet", queue),
    ]
    for name, on_s, rate_bps in zip(names, result.on_time_s, result.rate_bps, strict=True):
        steps += _with_name(
            name,
            make_step("ON", on_s, "s", "ON0 + m' Q Delta, (11)"),
            make_step("h", rate_bps, "bit/s", "mean of 8 F P/ON by both methods, (10)"),
        )
    return steps + _loss_steps(result)


def _isolated_steps(isolated: IsolatedConnection, name: str = "") -> list[Step]:
    return _with_name(
        name,
        make_step("m", isolated.rounds, "1", "round trips of a file on the idle path, (2)"),
        make_step("n", isolated.tail_pkts, "packet", "packets after these round trips, (2)"),
        make_step("ON0", isolated.on_time_s, "s", "m RTT0 + n Delta*, (2)"),
        make_step("h0", isolated.rate_bps, "bit/s", "8 F P/ON0, (3)"),
        make_step("s", isolated.servers, "1", "C/h0, (4)"),
        make_step("m'", isolated.queue_rounds, "1", "m with n' Delta* below RTT0"),
    )


def _loss_steps(result: EngsetResult | ClassesResult) -> list[Step]:
    if result.loss_ratio is None:
        return []
    return [make_step("L", result.loss_ratio, "1", "P(Q > B) = U2 exp(-B U2/Q), (12)")]


def _with_name(name: str, *steps: Step) -> list[Step]:
    """Return steps whose symbols are followed by the name of a class."""
    if name:
        for step in steps:
            step["symbol"] += f" {name}"
    return list(steps)
