"""Inputs of formulas for a capture: the measurements of engine ``trace``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.formula.input_types import (
    PathInputs,
    delivered_bits_per_sent_packet,
    get_positive_metric,
    make_path_inputs,
    make_step,
)
from tcpcast.errors import NotApplicable
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from tcpcast.answer import Answer, CaptureInputs, Step

T0_SOURCE_WITHOUT_TIMEOUT = "capture: no timeout; RTT + 200 ms, as in Linux"


def require_trace_answer(measured: Answer | None) -> Answer:
    """Return the ``trace`` answer, which formulas of a capture require.

    Raises
    ------
    NotApplicable
        There is no such answer.
    """
    _require_capture_inputs(measured)
    assert measured is not None
    return measured


def _require_capture_inputs(measured: Answer | None) -> CaptureInputs:
    if measured is None or measured.captured is None:
        raise NotApplicable(
            "for a capture, formulas need an answer of engine trace, but there is none"
        )
    return measured.captured


def get_capture_value(measured: Answer, name: str) -> float | None:
    """Return an input measured by ``trace``, by name; None if the capture does not show it."""
    return _require_capture_inputs(measured).fed[name]


def path_inputs_of_capture(model: str, measured: Answer | None) -> PathInputs:
    """Return the inputs of path formulas for a capture.

    Parameters
    ----------
    model
        Name of the formula for error messages.
    measured
        The ``trace`` answer.

    Raises
    ------
    NotApplicable
        No loss indication in the capture, or no RTT.
    """
    trace = require_trace_answer(measured)
    loss = get_positive_metric(trace, "loss_indication_ratio")
    if loss is None or not loss < 1:
        raise NotApplicable(
            f"{model} needs a loss ratio, but the capture contains no loss indication"
        )
    steps = [
        make_step("p", loss, "1", "capture: loss_indication_ratio"),
        *rtt_and_t0_steps_of_capture(model, trace),
    ]
    window = get_capture_value(trace, "w_max_pkts")
    limit = "largest window announced" if window is not None else "not announced: unlimited"
    max_window = math.inf if window is None else max(window, 1.0)
    steps += [
        make_step(
            "b",
            get_capture_value(trace, "packets_per_ack") or 1.0,
            "packet",
            "capture: packets per ACK",
        ),
        make_step("W_max", max_window, "packet", f"capture: {limit}"),
        make_step(
            "n",
            get_capture_value(trace, "flows") or 1,
            "1",
            "capture: flows active at the same time",
        ),
    ]
    delivered_bits = delivered_bits_per_sent_packet(trace)
    return make_path_inputs(steps, window_pkts=max_window, delivered_bits=delivered_bits)


def rtt_and_t0_steps_of_capture(model: str, measured: Answer) -> list[Step]:
    """Return the derivation steps of RTT and T0."""
    rtt, t0 = get_positive_metric(measured, "rtt_mean_s"), get_positive_metric(measured, "t0_s")
    if rtt is None:
        raise NotApplicable(f"{model} needs an RTT, but the capture does not show one")
    first = (
        (t0, "capture: t0_s")
        if t0
        else (get_capture_value(measured, "t0_s") or rtt, T0_SOURCE_WITHOUT_TIMEOUT)
    )
    return [
        make_step("RTT", rtt, "s", "capture: rtt_mean_s"),
        make_step("T0", first[0], "s", first[1]),
    ]


def transfer_scenario_of_capture(
    model: str, scenario: Scenario, measured: Answer | None
) -> Scenario:
    """Return the transfers in a capture as a scenario; other scenarios are returned unchanged.

    Raises
    ------
    NotApplicable
        The capture is not of one short transfer, from its handshake to its end.
    """
    if scenario.captured is None:
        return scenario
    tables = _require_capture_inputs(measured).replay
    if not tables or tables["traffic"]["kind"] != "transfers":
        raise NotApplicable(
            f"{model} needs a capture of exactly one short transfer, from its handshake to its end"
        )
    return Scenario.from_dict(tables)


def path_scenario_of_capture(model: str, scenario: Scenario, measured: Answer | None) -> Scenario:
    """Return the path and link in a capture as a scenario; other scenarios are returned unchanged.

    Raises
    ------
    NotApplicable
        The capture does not show the rate of a link.
    """
    if scenario.captured is None:
        return scenario
    tables = _require_capture_inputs(measured).replay
    if not tables or get_capture_value(require_trace_answer(measured), "bottleneck_pps") is None:
        raise NotApplicable(
            f"{model} needs the rate of the link, but the capture does not show it: the captured "
            "flows never fill the path"
        )
    return Scenario.from_dict(tables)


def transfer_steps_of_capture(measured: Answer) -> list[Step]:
    """Return the derivation steps of p, RTT and T0 of a transfer; p may be 0."""
    lost = get_capture_value(measured, "loss_ratio") or 0.0
    source = "capture: necessary retransmissions per packet"
    return [make_step("p", lost, "1", source), *rtt_and_t0_steps_of_capture("the model", measured)]
