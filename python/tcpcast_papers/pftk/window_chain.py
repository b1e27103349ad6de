"""Section 5, future work of the paper: the window as a Markov chain, compared with NewReno."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from tcpcast import statistics
from tcpcast.answer import Metric
from tcpcast.models.pftk import closed_form_error, throughput, window_chain

from tcpcast_papers import drawing
from tcpcast_papers.pftk.paths import REST_OF_ROUND, Path
from tcpcast_papers.pftk.runs import TraceJob
from tcpcast_papers.reproduction import Row, Section, scale_metric

if TYPE_CHECKING:
    import pathlib

    from tcpcast.models.pftk import FastRecovery

    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace
    from tcpcast_papers.simulations import Job

LOSSES = (0.001, 0.003, 0.01, 0.03, 0.1)
RTTS_S = (0.05, 0.2)
ACK_FREQUENCIES = (1, 2)
T0_S = 1.0

PIECES = 11
"""Pieces of a run; the first contains slow start and is not counted."""

CLOSED_FORM, WINDOW_CHAIN = "closed form (31)", "window chain"
WITH_RECOVERY = "window chain with recovery"
_RECOVERIES: dict[str, FastRecovery] = {WINDOW_CHAIN: "none", WITH_RECOVERY: "newreno"}
"""Recovery of each chain."""


def _closed_form_section(runs: Runs, _: pathlib.Path) -> Section:
    section = runs.section(
        "Section 5. The closed form and the window as a Markov chain", ("p", "b", "quantity")
    )
    grid = closed_form_error()
    for (i, p), (k, b) in product(
        enumerate(grid.loss_probability), enumerate(grid.packets_per_ack)
    ):
        errors = 100 * grid.error[i, :, k]
        parts = 100 * grid.restart_error[i, :, k], 100 * grid.means_error[i, :, k]
        note = (
            f"{errors.min():+.1f} to {errors.max():+.1f} %; {parts[0].mean():+.1f} from restarts "
            f"and {parts[1].mean():+.1f} from means instead of distributions, on average"
        )
        label = (f"{100 * p:g} %", f"{b}", "closed form / chain, minus 1")
        section.rows.append(Row(label, "%", None, float(errors.mean()), note=note))
    largest = float(np.abs(grid.error).max())
    section.remarks = [
        f"Means over RTTs of {_values_text(1e3 * grid.rtt_s)} ms and W_max of "
        f"{_values_text(grid.receiver_window_pkts)}; T0 {grid.t0_s:g} s. Over the whole grid, the "
        f"closed form has a mean error of {100 * np.abs(grid.error).mean():.1f} % and a maximum of "
        f"{100 * largest:.0f} %, and it nearly always overestimates. It assumes half a window at "
        "the start of the period after a timeout, and it uses means instead of distributions.",
    ]
    return section


def _values_text(values: np.ndarray) -> str:
    return ", ".join("no limit" if np.isinf(value) else f"{value:g}" for value in values)


def request(runs: Runs) -> dict[tuple[float, float, int], Job[SimulatedTrace]]:
    """Request and return the runs of NewReno by p, RTT and b."""
    result = {}
    for p, rtt_s, b in product(LOSSES, RTTS_S, ACK_FREQUENCIES):
        path = Path(
            "NewReno",
            rtt_s,
            T0_S,
            np.inf,
            REST_OF_ROUND,
            p,
            recovery="newreno",
            delayed_acks=b == 2,
        )
        pace = runs.sample_sizes.chain_piece_s
        weight = PIECES * pace / (rtt_s * np.sqrt(p))
        result[p, rtt_s, b] = runs.request(TraceJob(path, PIECES, pace, 1, weight))
    return result


def formula_rate_pps(formula: str, p: float, rtt_s: float, b: int) -> float:
    """Return the rate of the closed form or of a chain in packets/s, without W_max."""
    if formula == CLOSED_FORM:
        closed = throughput(rtt_s=rtt_s, t0_s=T0_S, loss_indication_ratio=p, packets_per_ack=b)
        return float(closed.rate_pps)
    chain = window_chain(loss_probability=p, packets_per_ack=b, recovery=_RECOVERIES[formula])
    return float(chain.rate_pps(rtt_s=rtt_s, t0_s=T0_S))


def _newreno_section(runs: Runs, folder: pathlib.Path) -> Section:
    section = runs.section(
        "Section 5. NewReno under the model's own loss", ("p", "RTT", "b", "NewReno's rate over")
    )
    shares: dict[tuple[str, float, int], list[float]] = {}
    for (p, rtt_s, b), job in request(runs).items():
        for formula in (CLOSED_FORM, *_RECOVERIES):
            label = (f"{100 * p:g} %", f"{1e3 * rtt_s:g} ms", f"{b}", formula)
            rows = runs.metric(label, "%", _rate_percent, runs, job, formula, (p, rtt_s, b))
            section.rows += rows
            shares.setdefault((formula, rtt_s, b), []).extend((r.own or 0.0) / 100 for r in rows)
    runs.check_all_rows()
    figure, panels = drawing.create_panels(len(ACK_FREQUENCIES), width=4.8, share_y=True)
    for axes, b in zip(panels, ACK_FREQUENCIES, strict=True):
        for (model, delay_s, acked), ratios in shares.items():
            if acked != b:
                continue
            colour = drawing.COLOURS[RTTS_S.index(delay_s)]
            line = {CLOSED_FORM: "-", WINDOW_CHAIN: "--"}.get(model, ":")
            legend = f"of the {model}, RTT {1e3 * delay_s:g} ms"
            axes.plot(LOSSES, ratios, line, color=colour, marker="o", markersize=4, label=legend)
        axes.set_title(f"b = {b}", fontsize=10)
        legend = "p: loss of a packet if none before it in its round is lost"
        drawing.set_loss_axis(axes, 0.8 * LOSSES[0], 1.25 * LOSSES[-1], legend)
        axes.set_ylabel("NewReno / formula")
        axes.legend(frameon=False, fontsize=8)
        axes.set_ylim(0, 1.1 * max(share for result in shares.values() for share in result))
    section.figures.append(drawing.Plot(figure, folder / "newreno.png"))
    section.remarks = [
        "The simulation has one NewReno flow of the packet engine, with an unlimited window and a "
        f"minimum timeout of {T0_S:g} s. After a lost packet the rest of its round is also lost, "
        "as in the model. The rate includes retransmissions, as in the formulas. NewReno sends "
        f"{_range_text(shares, CLOSED_FORM)} of the closed form and "
        f"{_range_text(shares, WINDOW_CHAIN)} of the chain, because it retransmits one lost packet "
        "per round trip, and PFTK includes no recovery time. It sends "
        f"{_range_text(shares, WITH_RECOVERY)} of the chain with recovery. The ratio is lowest "
        "with frequent losses: the first timeout is then longer than T0, because the timer is "
        "still backed off. The ratios have no verdict.",
    ]
    return section


def _rate_percent(
    runs: Runs, job: Job[SimulatedTrace], formula: str, inputs: tuple[float, float, int]
) -> Metric:
    """Return NewReno's rate in percent of the formula's."""
    seen = runs[job].pieces
    pieces = seen.sent[0, 1:] / seen.piece_s
    estimate = statistics.estimate_mean(pieces)
    low, high = (None, None) if estimate is None else (estimate.low, estimate.high)
    rate = formula_rate_pps(formula, *inputs)
    return scale_metric(Metric(float(pieces.mean()), low, high), 100 / rate)


def _range_text(shares: dict[tuple[str, float, int], list[float]], formula: str) -> str:
    result = [share for key, each in shares.items() if key[0] == formula for share in each]
    return f"{min(result):.2f} to {max(result):.2f}"


SECTIONS = (_closed_form_section, _newreno_section)
