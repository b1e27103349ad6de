"""Gains predicted by models for a change: a larger window, less loss, or more flows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.model_rates import cubic_pps, has_model_inputs, model_inputs
from tcpcast.captures.table import rtts_to_sender
from tcpcast.models.domain import MAX_RTO_SHARE
from tcpcast.models.parallel import limited_rate_pps, parallel_throughput
from tcpcast.models.pftk import td_only_rate_pps, throughput, unlimited_window_pkts
from tcpcast.models.short import ShortTransfer, lossless_latency_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

CUBIC_REDUCTION_RANGE = (0.6, 0.85)
"""Range of the median ratio of the windows after and before a loss for CUBIC (RFC 9438: 0.7)."""


@dataclass(frozen=True, slots=True)
class GainPredictor:
    """Inputs of models for some directions; methods predict the effect of changed inputs.

    The rate of a model differs from the measured rate, so the predicted gain is the ratio of the
    model's rates after and before the change. It is NaN for rows without loss, RTT or window.

    Parameters
    ----------
    table
        Rows of ``connections``.
    inputs
        RTT, T0, b, W_max and p of each row, by the names of model arguments.
    has_inputs
        Mask of rows with all inputs of a loss model.
    is_cubic
        Mask of rows of CUBIC senders.
    max_rate_bps
        The rate of the bottleneck in bit/s if known, otherwise inf.
    rtt_min_s
        The minimum RTT of the whole path in seconds, regardless of the tap.
    """

    table: Table
    inputs: Table
    has_inputs: Column
    is_cubic: Column
    max_rate_bps: Column
    rtt_min_s: Column

    @classmethod
    def from_table(cls, table: Table) -> GainPredictor:
        """Return the inputs of models for rows of the table of directions."""
        inputs, loss = model_inputs(table), table["loss_indication_ratio"]
        known = has_model_inputs(loss, inputs) & np.isfinite(table["throughput_bps"])
        least, most = CUBIC_REDUCTION_RANGE
        cubic = (table["window_reduction"] > least) & (table["window_reduction"] < most)
        seen = table["bottleneck_rate_bps"]
        return cls(
            table=table,
            inputs=inputs | {"loss_indication_ratio": loss},
            has_inputs=known,
            is_cubic=cubic,
            max_rate_bps=np.where(seen > 0, np.fmax(seen, table["throughput_bps"]), np.inf),
            rtt_min_s=rtts_to_sender(table, table["rtt_min_s"], table["tap_to_sender_s"]),
        )

    @property
    def is_lossless(self) -> Column:
        """Mask of rows without retransmissions and loss indications."""
        table = self.table
        return np.asarray(table["retransmissions"] + table["td"] + table["to"] == 0)

    def pftk_pps(self, **changed: Any) -> Column:
        """Return PFTK's rate (31) with some inputs replaced, in packets/s."""
        return self._model_result_with_changes(
            lambda given: throughput(**given).rate_pps, **changed
        )

    def pftk_gain(self, **changed: Any) -> Column:
        """Return the ratio of PFTK's rates (31) with and without replaced inputs."""
        return np.asarray(self.pftk_pps(**changed) / self.pftk_pps())

    def gain_without_timeouts(self) -> Column:
        """Return the ratio of PFTK's rate with only TD losses (19) to its full rate (31)."""

        def td_only(given: dict[str, Any]) -> Any:
            most = given.pop("receiver_window_pkts") / given["rtt_s"]
            del given["t0_s"]
            return np.minimum(td_only_rate_pps(**given), most)

        return np.asarray(self._model_result_with_changes(td_only) / self.pftk_pps())

    def loss_model_gain(self, **changed: Any) -> Column:
        """Return the rate ratio for changed loss or RTT, by CUBIC's response function or PFTK."""
        by_cubic = self._cubic_pps(**changed) / self._cubic_pps()
        return np.where(self.is_cubic, by_cubic, self.pftk_gain(**changed))

    def measured_to_model_ratio(self) -> Column:
        """Return the measured rate divided by the rate of the model in :meth:`loss_model_gain`."""
        model = np.where(self.is_cubic, self._cubic_pps(), self.pftk_pps())
        return np.asarray(self.table["send_rate_pps"] / model)

    def parallel_flows_gain(self, flows: int) -> tuple[Column, Column]:
        """Return the gain of parallel flows, and a mask of rows that use n times PFTK.

        The other rows use algorithm 1, which assumes few flows in RTO. If its result has more flows
        in RTO, n times PFTK is used, which means a gain of n.
        """

        def gain(given: dict[str, Any]) -> Column:
            given["loss_event_ratio"] = given.pop("loss_indication_ratio")
            many, one = (limited_rate_pps(flows=n, **given) for n in (flows, 1))
            return np.asarray(many / one)

        def flows_in_timeout(given: dict[str, Any]) -> Any:
            given["loss_event_ratio"] = given.pop("loss_indication_ratio")
            del given["receiver_window_pkts"]
            return parallel_throughput(flows=1, **given).flows_in_timeout

        by_n_times = self._model_result_with_changes(flows_in_timeout) > MAX_RTO_SHARE
        return np.where(by_n_times, flows, self._model_result_with_changes(gain)), by_n_times

    def rate_after_gain_bps(self, factor: Column) -> Column:
        """Return the measured rate times a factor, limited by the bottleneck, in payload bit/s."""
        return np.asarray(np.fmin(self.table["throughput_bps"] * factor, self.max_rate_bps))

    def window_for_loss_bytes(self) -> Column:
        """Return E[W_u] (30) in bytes, the window above which loss is the limit."""
        names = ("loss_indication_ratio", "packets_per_ack")
        window = self._model_result_with_changes(
            lambda given: unlimited_window_pkts(**{name: given[name] for name in names})
        )
        return np.asarray(window * self.table["segment_bytes"])

    def window_for_link_bytes(self) -> Column:
        """Return the rate of the bottleneck times the minimum RTT in bytes; NaN if unknown."""
        return np.where(np.isinf(self.max_rate_bps), np.nan, self.max_rate_bps) * self.rtt_min_s / 8

    def _cubic_pps(self, **changed: Any) -> Column:
        return self._model_result_with_changes(
            lambda given: cubic_pps(given["loss_indication_ratio"], given), **changed
        )

    def _model_result_with_changes(
        self, model: Callable[[dict[str, Any]], Any], **changed: Any
    ) -> Column:
        """Return the result of a model with some inputs replaced; NaN for rows without inputs."""
        result, rows = np.full(self.has_inputs.size, np.nan), self.has_inputs
        if rows.any():
            inputs = (self.inputs | changed).items()
            given = {name: np.broadcast_to(value, rows.shape)[rows] for name, value in inputs}
            result[rows] = model(given)
        return result


@lru_cache(maxsize=4096)
def lossless_round_trips(size_pkts: int, initial_window_pkts: int, window_pkts: float) -> int:
    """Return the round trips of a lossless transfer: L_0/RTT of the short-transfer model.

    Parameters
    ----------
    size_pkts, initial_window_pkts
        Transfer size and W_0 in packets, at least 1.
    window_pkts
        The receiver's window in packets, at least 1; ``inf`` for no limit.

    Notes
    -----
    The window grows by one packet per acknowledged packet (RFC 3465).
    """
    sender = ShortTransfer(
        rtt_s=1.0, initial_window_pkts=initial_window_pkts, receiver_window_pkts=window_pkts
    )
    return math.ceil(float(lossless_latency_s(sender, size_pkts)) - 1e-9)
