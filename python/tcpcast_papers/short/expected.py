"""Figures 9 and 10: expected latency of three senders, and the savings of two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric
from tcpcast.models.cardwell import cardwell_latency
from tcpcast.report.chart import Axis, Chart, Panel, ReferenceLine

from tcpcast_papers import drawing
from tcpcast_papers.reproduction import Tolerance
from tcpcast_papers.section_definition import (
    Quantity,
    SectionDefinition,
    metric_from_half_width,
    read_column,
)
from tcpcast_papers.short.methods import (
    MODEL,
    PACKETS,
    PACKETS_RESET_BY_ACKS,
    REFINED,
    latency_by_method,
    mean_error,
)
from tcpcast_papers.short.published import (
    LARGEST_SHORT_BYTES,
    LOSS,
    MSS_BYTES,
    REDUCTION_BYTES,
    published_reductions,
)
from tcpcast_papers.short.settings import (
    BY_NAME,
    LIMITED_TRANSMIT,
    NEWRENO,
    PROPOSAL,
    SIZES,
    Setting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tcpcast_papers.printed import Line
    from tcpcast_papers.short.methods import ModelLatency
    from tcpcast_papers.short.runs import LatencyCurves, Runs

    Floats = NDArray[np.float64]
    Limit = Callable[[Line], Tolerance] | Tolerance | None

LARGEST_SHORT_PKTS = LARGEST_SHORT_BYTES // MSS_BYTES
REDUCTION_INDEX = SIZES.index(REDUCTION_BYTES // MSS_BYTES)
"""Index of the file of 4 kB in the sizes."""

CARDWELL = "Cardwell et al."
SENDERS = (NEWRENO, LIMITED_TRANSMIT, PROPOSAL)

Case = tuple[Setting, int | None]
"""A sender and a file size in packets, or None for the mean over all sizes."""

X_LABEL, X_MAX = "file size, packets", SIZES[-1] + 1


def cardwell_curve() -> Floats:
    """Return the curve of Cardwell, Savage and Anderson for the NewReno sender."""
    sender = NEWRENO.transfer
    result = cardwell_latency(
        size_pkts=np.array(SIZES),
        rtt_s=sender.rtt_s,
        t0_s=sender.rto_s,
        loss_ratio=LOSS,
        initial_window_pkts=sender.initial_window_pkts,
        packets_per_ack=sender.acked_packets,
        receiver_window_pkts=sender.receiver_window_pkts,
        connection=False,
    )
    return np.asarray(result.latency_s)[None]


def combine_with_proposal(limited: Floats, proposal: Floats) -> Floats:
    """Return the proposal's curve, with limited transmit only above 10 kB."""
    return np.where(np.array(SIZES) <= LARGEST_SHORT_PKTS, proposal, limited)


def expected_latency(runs: Runs, sender: Setting, method: str) -> Floats:
    """Return the curve of expected latencies of a sender of Figure 9."""
    if method == CARDWELL:
        return cardwell_curve()
    own = latency_by_method(runs, sender, method).expected
    if sender is not PROPOSAL:
        return own
    return combine_with_proposal(latency_by_method(runs, LIMITED_TRANSMIT, method).expected, own)


def curve_point_at(curve: Floats, place: int) -> Metric:
    """Return the point of a curve at an index of the sizes."""
    return metric_from_half_width(*curve[:, place].tolist())


def _latency_quantity(method: str) -> Quantity[Runs, Case]:
    def computed(runs: Runs, case: Case) -> Metric:
        sender, size = case
        return curve_point_at(expected_latency(runs, sender, method), SIZES.index(size or 0))

    newreno = method in {PACKETS_RESET_BY_ACKS, CARDWELL}
    return Quantity(
        (method,),
        computed,
        condition=lambda case: case[1] is not None and (not newreno or case[0] is NEWRENO),
    )


def _mean_error_quantity(method: str) -> Quantity[Runs, Case]:
    def error(runs: Runs, sender: Setting, packets: str) -> float:
        return mean_error(
            *(expected_latency(runs, sender, each) for each in (method, packets))
        ).value

    def note(runs: Runs, case: Case) -> str:
        if case[0] is not NEWRENO:
            return ""
        percent = error(runs, NEWRENO, PACKETS_RESET_BY_ACKS)
        return f"{percent:.1f} % compared with {PACKETS_RESET_BY_ACKS}"

    return Quantity(
        (method,),
        lambda runs, case: Metric(error(runs, case[0], PACKETS)),
        condition=lambda case: case[1] is None and (method != CARDWELL or case[0] is NEWRENO),
        note=note,
        unit="%",
    )


def _draw_figure9(runs: Runs, folder: Path) -> drawing.Plot:
    left, right = [], []
    for sender, look in zip(SENDERS, drawing.series_styles(), strict=False):
        packets, model = (expected_latency(runs, sender, method) for method in (PACKETS, MODEL))
        left += [
            drawing.curve_with_intervals(SIZES, packets, sender.sender, look | {"linestyle": ""}),
            drawing.curve_with_intervals(
                SIZES, model, style={"color": look["color"], "linewidth": 1.2}
            ),
        ]
    packets = expected_latency(runs, NEWRENO, PACKETS)[:1]
    look = {"linestyle": "", "marker": "o", "markersize": 3.5, "color": "black"}
    right = [drawing.curve_with_intervals(SIZES, packets, PACKETS, look)]
    for method, label, style in (
        (MODEL, "model, d = 1", "-"),
        (REFINED, "model, refined", "--"),
        (CARDWELL, CARDWELL, "-."),
    ):
        look = {"linestyle": style, "linewidth": 1.4}
        right.append(
            drawing.curve_with_intervals(
                SIZES, expected_latency(runs, NEWRENO, method), label, look
            )
        )
    left.append(ReferenceLine(LARGEST_SHORT_PKTS + 0.5, axis="x"))
    x = Axis(X_LABEL, 0, X_MAX)
    y = Axis("expected latency, s", 0)
    panels = [
        Panel(left, x, y, "points: packets; lines: model, d = 1"),
        Panel(right, x, Axis(low=0), "NewReno"),
    ]
    return _draw_panels(panels, folder / "figure9.png", 3.8)


def _draw_panels(panels: Sequence[Panel], path: Path, height: float) -> drawing.Plot:
    chart = Chart(panels=panels, columns=2, size=(10.8, height), shared_axes="y")
    return drawing.Plot(chart.draw(), path)


FIGURE9: SectionDefinition[Runs, Case] = SectionDefinition(
    "Figure 9. Expected transfer time",
    ("sender", "size", "by"),
    "s",
    lambda case: (case[0].sender, f"{case[1]} packets" if case[1] else "mean error, 1 to 30"),
    lambda _: [
        (sender, size)
        for sizes in ((2, 8, 20, 30), (None,))
        for sender in SENDERS
        for size in sizes
    ],
    (
        *map(_latency_quantity, (PACKETS, MODEL, REFINED, PACKETS_RESET_BY_ACKS, CARDWELL)),
        *map(_mean_error_quantity, (MODEL, REFINED, CARDWELL)),
    ),
    notes=lambda _: [
        f"The proposal is for files of up to {LARGEST_SHORT_PKTS} packets of {MSS_BYTES} bytes; "
        "larger files use only limited transmit.",
        "For more than about twenty packets the latency of the model is too long, because each "
        "loss has its own recovery. The latency of the refined model is too short: its timeouts "
        "double only while the same packet is lost again, but timeouts of a sender without "
        "timestamps stay doubled for the next packets. The formula of Cardwell, Savage and "
        "Anderson applies only to NewReno; its latency is even longer for large files.",
    ],
    figure=_draw_figure9,
)

CONDITIONS: dict[str, Callable[[LatencyCurves | ModelLatency], Floats]] = {
    "one loss": lambda result: result.given[1],
    "a loss": lambda result: result.given_loss,
}


def relative_reduction(base: Floats, changed: Floats) -> Floats:
    """Return the relative reduction from ``base`` to ``changed`` as a curve."""
    ratio = changed[0] / base[0]
    half = ratio * np.hypot(base[1:] / base[0], changed[1:] / changed[0])
    return np.vstack([1 - ratio, half])


def _latency_reduction_percent(runs: Runs, setting: Setting, given: str, method: str) -> Floats:
    base, changed = (
        CONDITIONS[given](latency_by_method(runs, each, method)) for each in (NEWRENO, setting)
    )
    return 100 * relative_reduction(base, changed)


def _reduction_quantity(
    label: str, given: str, method: str, published: str, tolerance: Limit
) -> Quantity[Runs, Line]:
    return Quantity(
        (label, method),
        lambda runs, line: curve_point_at(
            _latency_reduction_percent(runs, BY_NAME[line["setting"]], given, method),
            REDUCTION_INDEX,
        ),
        read_column(published),
        tolerance,
    )


TENS_TOLERANCE = Tolerance(absolute=5.0)
"""Tolerance of the reductions in %: half of the 10 % to which both printed values are rounded."""


def _panel_of_figure10(runs: Runs, given: str, legend: dict[str, object] | None) -> Panel:
    series = []
    for setting, look in zip((LIMITED_TRANSMIT, PROPOSAL), drawing.series_styles(), strict=False):
        points = _latency_reduction_percent(runs, setting, given, PACKETS)
        series.append(
            drawing.curve_with_intervals(SIZES, points, setting.sender, look | {"linestyle": ""})
        )
        for method, style in ((MODEL, "-"), (REFINED, "--")):
            line = {"linestyle": style, "color": look["color"], "linewidth": 1.2}
            rows = _latency_reduction_percent(runs, setting, given, method)
            series.append(drawing.curve_with_intervals(SIZES, rows, style=line))
    y = Axis("" if legend else "reduction from NewReno, %")
    return Panel(series, Axis(X_LABEL, 0, X_MAX), y, f"given {given}", legend)


def _draw_figure10(runs: Runs, folder: Path) -> drawing.Plot:
    key = "points: packets; lines: model, d = 1;\ndashed: refined"
    legends = (None, {"title": key, "title_fontsize": 8})
    panels = [
        _panel_of_figure10(runs, given, legend)
        for given, legend in zip(CONDITIONS, legends, strict=True)
    ]
    return _draw_panels(panels, folder / "figure10.png", 3.6)


FIGURE10: SectionDefinition[Runs, Line] = SectionDefinition(
    "Figure 10. Relative reduction of the latency given a loss",
    ("sender", "given", "by"),
    "%",
    lambda line: (BY_NAME[line["setting"]].sender,),
    lambda _: published_reductions(),
    (
        # The refined model is not the paper's.
        *(
            _reduction_quantity(given, given, method, "percent", tolerance)
            for given in CONDITIONS
            for method, tolerance in (
                (PACKETS, TENS_TOLERANCE),
                (MODEL, TENS_TOLERANCE),
                (REFINED, None),
            )
        ),
        *(
            _reduction_quantity(
                "one loss, independent value",
                "one loss",
                method,
                published,
                Tolerance(absolute=0.5),
            )
            for method, published in ((MODEL, "model_percent"), (PACKETS, "exact_percent"))
        ),
    ),
    notes=lambda _: [
        f"The values are for {REDUCTION_BYTES // MSS_BYTES} packets. The paper states reductions "
        "of 10 % and 40 %, but not whether they are for exactly one loss or for any number of "
        "losses, so the rows compare both. Independent values are for one loss: in simulated "
        "packets, limited transmit saves 1 - 0.875 s/1.000 s = 12.5 %, stated as 13 %.",
    ],
    figure=_draw_figure10,
)
