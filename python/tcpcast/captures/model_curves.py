"""Curves of models over loss for the path of a capture, for figures with measured points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.model_rates import model_inputs
from tcpcast.captures.table import INTERVAL_S, select_rows
from tcpcast.models.pftk import approximate_rate_pps, td_only_leading_rate_pps, throughput

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Counts = np.ndarray[Any, np.dtype[np.int64]]

PFTK_LABEL = "PFTK (31)"


def mean_model_inputs(connections: Table, rows: Counts) -> dict[str, float] | None:
    """Return the inputs of models: means over the directions ``rows``, weighted by packets sent.

    None if no direction has both a round-trip time and a window.
    """
    table = select_rows(connections, rows)
    path, weight = model_inputs(table), table["data_packets"].astype(float)
    known = np.isfinite(path["rtt_s"]) & (path["rtt_s"] > 0) & (weight > 0)
    known &= path["receiver_window_pkts"] >= 1
    if not known.any():
        return None
    return {
        name: float(np.average(column[known], weights=weight[known]))
        for name, column in path.items()
    }


def model_curves(loss: Floats, path: dict[str, float]) -> dict[str, Floats]:
    """Return the packets per interval of each model against loss, by the name of the model.

    Parameters
    ----------
    loss
        Loss indications per packet, above 0 and below 1, any shape.
    path
        Inputs as returned by :func:`mean_model_inputs`.
    """
    given: dict[str, Any] = path | {"loss_indication_ratio": loss}
    of_loss = {name: given[name] for name in given if name not in {"t0_s", "receiver_window_pkts"}}
    rates = {
        PFTK_LABEL: throughput(**given).rate_pps,
        "PFTK, approximate (32)": approximate_rate_pps(**given),
        "TD only (20)": td_only_leading_rate_pps(**of_loss),
    }
    return {name: np.asarray(rate) * INTERVAL_S for name, rate in rates.items()}
