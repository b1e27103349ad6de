"""Engine ``engset`` for several classes of on/off sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.engines.formula.engset import (
    MAX_TRUSTED_LOSS,
    long_tail_and_own_link_warnings,
    loss_and_queue_warnings,
    mean_queue_exceeds_buffer,
    queue_table_positions,
)
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.models.engset import engset_classes, time_above
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Floats, Table
    from tcpcast.engines.formula.engset import EngsetInputs
    from tcpcast.models.engset import ClassesResult
    from tcpcast.scenario import Scenario

MAX_TRUSTED_SIZE_RATIO = 3.0
"""Largest ratio of the mean file sizes of two classes for which rates are trusted."""


def engset_of_classes(scenario: Scenario, inputs: Sequence[EngsetInputs]) -> Answer:
    """Predict by TCP-Engset for several classes (:func:`tcpcast.models.engset.engset_classes`).

    The metrics are the same as for one class, with rate and ON time over all files. Table
    ``by_class`` has the values of each class, ``states`` has the distribution of the total number
    of active sources, and ``queue`` has the distribution of the queue.

    Raises
    ------
    NotApplicable
        Packets of different sizes, or too many states.
    """
    try:
        result = engset_classes(inputs, buffer_pkts=inputs[0].buffer_pkts)
    except DomainError as error:
        raise NotApplicable(f"TCP-Engset does not cover these classes: {error}") from error
    active = result.active_probability
    return Answer(
        engine="engset",
        metrics=_metrics_of_all_classes(result),
        tables={
            "by_class": _class_table(scenario, result),
            "states": {"active": np.arange(active.size), "probability": active},
            "queue": _queue_table(result),
        },
        notes=texts_to_notes(_make_warnings(scenario, result)),
        provenance={"intermediates": _symbol_values(result)},
    )


def _metrics_of_all_classes(result: ClassesResult) -> dict[str, Metric]:
    per_s = result.transfers_per_s / result.transfers_per_s.sum()
    bits = np.array([each.file_bits for each in result.classes])
    rate_bps = float(per_s @ bits) / float(per_s @ (bits / result.rate_bps))
    on_time_s, sizes = float(per_s @ result.on_time_s), _mean_sizes_pkts(result)
    sizes_alike = sizes.max() <= MAX_TRUSTED_SIZE_RATIO * sizes.min()
    queue = sizes_alike and not mean_queue_exceeds_buffer(result)
    metrics = {
        "connection_rate_bps": Metric(rate_bps, trusted=sizes_alike),
        "on_time_s": Metric(on_time_s, trusted=sizes_alike),
        "offered_load": Metric(result.offered_load),
        "utilisation": Metric(result.utilisation),
        "queue_mean_pkts": Metric(result.queue_mean_pkts, trusted=queue),
        "rtt_mean_s": Metric(float(per_s @ result.rtt_s), trusted=queue),
        "mean_size_pkts": Metric(float(per_s @ sizes)),
    }
    if result.loss_ratio is not None:
        trusted = queue and result.loss_ratio <= MAX_TRUSTED_LOSS
        metrics["loss_ratio"] = Metric(result.loss_ratio, trusted=trusted)
    return metrics


def _mean_sizes_pkts(result: ClassesResult) -> Floats:
    return np.array([each.mean_size_pkts for each in result.classes])


def _class_table(scenario: Scenario, result: ClassesResult) -> Table:
    return {
        "name": np.array([group.name for group in scenario.populations]),
        "sources": np.array([each.sources for each in result.classes]),
        "connection_rate_bps": result.rate_bps,
        "on_time_s": result.on_time_s,
        "mean_size_pkts": _mean_sizes_pkts(result),
        "rtt_mean_s": result.rtt_s,
    }


def _queue_table(result: ClassesResult) -> Table:
    load, mean = result.closed_loop_load, result.queue_mean_pkts
    # Without a buffer limit, the table ends at the queue that is exceeded for 1e-9 of the time.
    end = result.buffer_pkts or max(mean / load * np.log(max(load, 1e-9) / 1e-9), 1.0)
    queue = queue_table_positions(end)
    above = time_above(queue_pkts=queue, queue_mean_pkts=mean, load=load)
    return {"queue_pkts": queue, "time_above": above}


def _make_warnings(scenario: Scenario, result: ClassesResult) -> list[str]:
    warnings, sizes = [], _mean_sizes_pkts(result)
    if not result.can_overload_link:
        warnings.append(
            "even the sources of all classes never fill the link. The values are for isolated "
            "connections, without queueing and loss"
        )
    if sizes.max() > MAX_TRUSTED_SIZE_RATIO * sizes.min():
        warnings.append(
            f"the mean file sizes of the classes range from {digits(sizes.min())} to "
            f"{digits(sizes.max())} packets. The model underestimates the queue that large files "
            "cause, and overestimates the rate of the class with small files. It was compared "
            "with simulations only for mean sizes that differ by at most a factor of "
            f"{MAX_TRUSTED_SIZE_RATIO:g}"
        )
    warnings += loss_and_queue_warnings(result)
    for group, each, one in zip(scenario.populations, result.classes, result.isolated, strict=True):
        texts = long_tail_and_own_link_warnings(group, each.path, one)
        warnings += [f"class {group.name}: {text}" for text in texts]
    return warnings


def _symbol_values(result: ClassesResult) -> dict[str, Any]:
    """Return the model's symbols, one value per class for lists."""
    return {
        "m": [one.rounds for one in result.isolated],
        "m_queue": [one.queue_rounds for one in result.isolated],
        "on0_s": [one.on_time_s for one in result.isolated],
        "h0_bps": [one.rate_bps for one in result.isolated],
        "u2": result.closed_loop_load,
    }
