"""Predictions of all formulas, and optionally of the simulation, for one set of path options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.engines import REGISTRY, RunOptions, answer
from tcpcast.engines.formula import FORMULAS
from tcpcast.engines.formula.path_requirements import compute_path_requirements
from tcpcast.engines.registry import PATH_FAMILY, TRANSFERS_FAMILY
from tcpcast.errors import NotApplicable
from tcpcast.path.options import (
    PathOptions,
    has_default_buffer,
    has_no_rate_limit,
    make_bulk_scenario,
    make_transfer_scenario,
    read_transfer_size_pkts,
)
from tcpcast.path.run_size import (
    MAX_SIMULATED_PKTS,
    MAX_WALL,
    can_afford_other_buffers,
    choose_simulated_s,
    choose_transfer_count,
)
from tcpcast.report.answers import Answers
from tcpcast.report.prediction import SIMULATION, Prediction, leading_formula
from tcpcast.scenario.traffic import MAX_SIZE_PKTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario


OTHER_BUFFERS = ("0.25bdp", "4bdp")
"""Buffers for repeated simulations if no option sets the buffer."""


def predict_point(
    options: PathOptions,
    point: Mapping[str, str],
    *,
    packet: bool = False,
    run_options: RunOptions | None = None,
) -> Prediction:
    """Run all formulas, and optionally a simulation, for one set of values.

    After an interrupted simulation, no further simulation runs. Without ranges, a simulation with
    the default buffer is repeated with :data:`OTHER_BUFFERS`. A transfer that only its size limits
    has no long-term rate. If a transfer has more packets than scenarios support, its time is
    computed from the long-term rate.
    """
    run_options = run_options or RunOptions()
    simulated = ["packet"] if packet else []
    size = read_transfer_size_pkts(options, point)
    is_one = size is not None and size <= MAX_SIZE_PKTS
    if is_one and has_no_rate_limit(options, point):
        steady = Answers([], make_transfer_scenario(options, point))
    else:
        bulk = make_bulk_scenario(options, point)
        steady = _run_engines(bulk, select_path_formulas("bulk") + simulated, run_options)
    transfer = None
    too_long = packet and size is not None and size > MAX_SIMULATED_PKTS
    if is_one:
        if too_long or any(answer.interrupted for answer in steady):
            simulated = []
        names = select_path_formulas("transfers") + simulated
        transfer = _run_engines(make_transfer_scenario(options, point), names, run_options)
    shown = {name: point[name] for name in options.ranges}
    sizing = compute_path_requirements(steady.scenario) if steady else None
    fed = _run_formula_with_measured_inputs(steady)
    prediction = Prediction(
        steady, transfer, shown, fed, sizing, size, too_long, has_default_buffer(options, point)
    )
    if packet and prediction.is_buffer_assumed and not options.ranges:
        packets = _count_simulated_packets(
            options, point, size if prediction.has_simulated_transfer else None
        )
        if can_afford_other_buffers(packets):
            prediction = replace(
                prediction, other_buffers=_simulate_other_buffers(prediction, run_options.progress)
            )
    return prediction


def _count_simulated_packets(
    options: PathOptions, point: Mapping[str, str], size_pkts: float | None
) -> float:
    """Return the number of packets in a simulation, over all replications."""
    if size_pkts is not None:
        return size_pkts * choose_transfer_count(size_pkts)
    path = options.path(point)
    return path.send_rate_pps * choose_simulated_s(path)


def _simulate_other_buffers(
    prediction: Prediction, progress: Callable[[float], None] | None
) -> dict[str, Answer]:
    """Return simulations with other buffers, by buffer; the last one may be interrupted."""
    answers = prediction.transfer if prediction.has_simulated_transfer else prediction.steady
    assert answers is not None
    if any(answer.incomplete_reason for answer in answers):
        return {}
    repeated, run_options = {}, RunOptions(progress=progress, tables=False)
    for buffer in OTHER_BUFFERS:
        changes = {"network.bottleneck.buffer": buffer, "run.max_wall": MAX_WALL}
        scenario = answers.scenario.with_changes(changes)
        (repeated[buffer],) = _run_engines(scenario, [SIMULATION], run_options)
        if repeated[buffer].interrupted:
            break
    return repeated


def _run_formula_with_measured_inputs(steady: Answers) -> Answer | None:
    """Return the leading formula with inputs from the simulation; None without a simulation."""
    name = leading_formula(steady.scenario)
    simulation = next((each for each in steady if each.engine == SIMULATION), None)
    if simulation is None or not simulation.metrics or not name:
        return None
    try:
        return REGISTRY[name].run(steady.scenario, RunOptions(), simulation)
    except NotApplicable:
        return None


def select_path_formulas(kind: str) -> list[str]:
    """Return the formulas for a kind of traffic on one path, in the order of the registry."""
    family = {"bulk": PATH_FAMILY, "transfers": TRANSFERS_FAMILY}[kind]
    return [name for name, row in FORMULAS.items() if row.family == family]


def _run_engines(scenario: Scenario, names: Sequence[str], options: RunOptions) -> Answers:
    return Answers(answer(scenario, names, options), scenario)
