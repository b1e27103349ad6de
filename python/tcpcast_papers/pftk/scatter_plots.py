"""Pieces of traces compared with the models: errors, and the paper's scatter plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.pftk.predictions import (
    APPROXIMATE,
    FULL,
    MODELS,
    TD_ONLY,
    Inputs,
    relative_errors,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from tcpcast_papers.pftk.paths import Path
    from tcpcast_papers.pftk.simulated_traces import TracePieces

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

TIMEOUT_CLASSES = ("TD", "T0", "T1", "T2", "T3 and more")
"""Classes of pieces: no timeout, at most a single one, a double one, ... (section 3)."""

LINE_STYLES = {FULL: "-", APPROXIMATE: "--", TD_ONLY: ":"}
"""Plot styles of the models."""


def has_prediction(seen: TracePieces) -> Flags:
    """Return which pieces a model can predict: 0 < p < 1, ``[replications, pieces]``."""
    p = seen.loss_indication_ratio
    return np.asarray((p > 0) & (p < 1))


def piece_errors(
    path: Path, seen: TracePieces, model: str, *, per_piece_inputs: bool = False
) -> Floats:
    """Return a model's error for every piece, nan for pieces without loss.

    Parameters
    ----------
    path
        The simulated path, for its W_max.
    seen
        The trace in pieces.
    model
        A key of :data:`~tcpcast_papers.pftk.predictions.MODELS`.
    per_piece_inputs
        True for RTT and T0 of each piece, as in the paper for traces of 100 s; False for RTT and T0
        of the whole trace, as in the paper for hours.

    Returns
    -------
    ndarray
        |predicted - sent| / sent, ``[replications, pieces]``.
    """
    rtt = seen.rtt_s if per_piece_inputs else seen.trace_rtt_s
    t0 = seen.t0_s if per_piece_inputs else seen.trace_t0_s
    # If no timer expired, T0 is unknown; use its minimum.
    t0 = np.where(np.isnan(t0), path.t0_s, t0)
    known = has_prediction(seen) & np.isfinite(rtt)
    given = Inputs(
        rtt_s=np.broadcast_to(rtt, known.shape)[known],
        t0_s=np.broadcast_to(t0, known.shape)[known],
        loss_indication_ratio=seen.loss_indication_ratio[known],
        window_pkts=path.window_pkts,
    )
    result = np.full(known.shape, np.nan)
    result[known] = relative_errors(MODELS[model](given) * seen.piece_s, seen.sent[known])
    return result


def draw_scatter(
    axes: Axes,
    path: Path,
    pieces: TracePieces,
    models: Sequence[str] = (FULL, TD_ONLY),
    *,
    replications: int = 1,
) -> None:
    """Plot packets sent against p, one point per piece, coloured by class, with model curves.

    Parameters
    ----------
    axes
        Panel to draw in.
    path, pieces
        The simulated path and its trace; only the first ``replications`` are plotted.
    models
        Keys of :data:`LINE_STYLES`.
    """
    shown = has_prediction(pieces)[:replications]
    p = pieces.loss_indication_ratio[:replications][shown]
    sent, deepest = pieces.sent[:replications][shown], pieces.deepest[:replications][shown]
    for number, (name, style) in enumerate(
        zip(TIMEOUT_CLASSES, drawing.series_styles(), strict=False)
    ):
        of_class = np.minimum(deepest, len(TIMEOUT_CLASSES) - 1) == number
        if of_class.any():
            axes.plot(
                p[of_class],
                sent[of_class],
                linestyle="none",
                markersize=3.6,
                alpha=0.8,
                label=name,
                **style,
            )
    low, high = float(p.min(initial=0.5)), float(p.max(initial=1e-3))
    across = np.geomspace(low / 3, min(0.7, 3 * high), 200)
    given = Inputs(
        rtt_s=float(np.nanmean(pieces.trace_rtt_s[:replications])),
        t0_s=float(_mean_or_default(pieces.trace_t0_s[:replications], path.t0_s)),
        loss_indication_ratio=across,
        window_pkts=path.window_pkts,
    )
    for model in models:
        packets = MODELS[model](given) * pieces.piece_s
        axes.plot(across, packets, LINE_STYLES[model], color="black", linewidth=1.1, label=model)
    highest = max(float(sent.max(initial=1)), float(MODELS[FULL](given).max()) * pieces.piece_s)
    axes.set(ylim=(0, 1.35 * highest), ylabel=f"packets in {pieces.piece_s:.0f} s")
    label = "loss indications per packet, p"
    drawing.set_loss_axis(axes, float(across[0]), float(across[-1]), label)
    axes.legend(fontsize=7, loc="upper right", framealpha=0.9, edgecolor="none")


def _mean_or_default(values: Floats, otherwise: float) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else otherwise


def draw_error_panels(
    panels: Sequence[Axes], names: Sequence[str], by_loss: dict[str, dict[str, Floats]]
) -> None:
    """Draw the errors with each kind of loss, one panel each, on one scale.

    Parameters
    ----------
    panels
        Panels to draw in.
    names
        The traces.
    by_loss
        For each kind of loss, the relative errors of each model, ``[traces, replications]``.
    """
    means = {
        loss: {model: each.mean(axis=1) for model, each in result.items()}
        for loss, result in by_loss.items()
    }
    every = np.concatenate([each for result in means.values() for each in result.values()])
    ticks = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]
    for axes, (loss, result) in zip(panels, means.items(), strict=True):
        order = np.argsort(result[TD_ONLY], kind="stable")
        places = np.arange(len(names))
        width = 0.8 / len(result)
        for number, (drawn, errors) in enumerate(result.items()):
            shift = (number - (len(result) - 1) / 2) * width
            axes.bar(
                places + shift, errors[order], width, label=drawn, color=drawing.COLOURS[number]
            )
        axes.set_xticks(
            places,
            [names[index].replace(" to ", " – ") for index in order],
            rotation=45,
            ha="right",
            rotation_mode="anchor",
            fontsize=7,
        )
        axes.set_xlim(-0.7, len(names) - 0.3)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("average error")
        axes.set_title(f"loss: {loss}", fontsize=10)
        axes.set_yscale("log")
        axes.set_yticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(0.7 * float(every.min()), 1.5 * float(every.max()))
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
