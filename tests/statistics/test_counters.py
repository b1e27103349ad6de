"""Cumulative counters of the simulator: integers modulo 2^64, split into batches."""

import numpy as np
from tcpcast.answer.metric_definition import ANY_TRAFFIC
from tcpcast.answer.metrics import HEADLINE_METRICS, METRICS
from tcpcast.comparison.verdict import WAITING_METRICS
from tcpcast.engines.packet.counters import (
    CLASS_COUNTER,
    LINK_COUNTER,
    BatchCounters,
    unwrap_counters,
)
from tcpcast.scenario.traffic import TRAFFIC_KINDS


def test_counter_overflow_is_corrected() -> None:
    # A queue of a million packets for 100 hours, in slots of an hour: 3.6e20 packet nanoseconds.
    slots, hour = 100, 3600 * 10**9
    rows = np.zeros((slots + 2, len(LINK_COUNTER)), dtype=np.uint64)
    ends = [*range(slots + 1), slots]
    rows[:, LINK_COUNTER["time_ns"]] = [hour * end for end in ends]
    rows[:, LINK_COUNTER["queue_integral"]] = [10**6 * hour * end % 2**64 for end in ends]
    assert (np.diff(rows[:, LINK_COUNTER["queue_integral"]].astype(float)) < 0).any()
    units = BatchCounters([rows], 0)
    mean = units.link("queue_integral") / units.link("time_ns")
    np.testing.assert_allclose(mean, 1e6, rtol=1e-12)


def test_counters_without_overflow_are_unchanged() -> None:
    rows = np.array([[0, 5], [7, 5], [2**64 - 1, 4]], dtype=np.uint64)
    assert unwrap_counters(rows) is rows
    floats = np.array([[3.0], [1.0]])
    assert unwrap_counters(floats) is floats


def test_metrics_use_existing_counters_only() -> None:
    for name, row in METRICS.items():
        assert row.counters | set(row.bursts) <= LINK_COUNTER.keys() | CLASS_COUNTER.keys(), name
        assert not LINK_COUNTER.keys() & CLASS_COUNTER.keys()


def test_rows_of_metrics_have_kinds_of_traffic() -> None:
    for name, row in METRICS.items():
        kinds = {*row.file_kinds, *row.headline_of, row.precision_of} - {"", *ANY_TRAFFIC}
        assert kinds <= set(TRAFFIC_KINDS), name
        assert row.has_precision or not row.precision_of, name
        # Percentiles and losses of messages are no ratios of counters.
        is_ratio = any(row.ratio_of) or row.is_index
        assert is_ratio or row.class_columns in (None, "", "times"), name
    # A run cannot stop by the precision of percentiles, stalls, shares and convergence.
    without = {*WAITING_METRICS, "fair_share", "convergence_time_s"}
    assert all(METRICS[name].has_precision for name in HEADLINE_METRICS if name not in without)
