"""Section 5.4.3: Table 7, Table 8 and Figures 14 to 16: effects of drops under a high load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.engset import published
from tcpcast_papers.engset.settings import setting
from tcpcast_papers.engset.shorter_loop import phase_of_the_loop
from tcpcast_papers.engset.side_by_side import (
    interval_cells,
    interval_rate,
    interval_tolerance,
    loss_row,
    on_per_packet_row,
    rate_row,
)
from tcpcast_papers.engset.theory import model
from tcpcast_papers.reproduction import PRINTED_DIGITS, Printed, Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.published import Line

WIDE = setting("F12-N134-10M2M-R50-EE(7)-W44-B150")
NARROW = setting("F12-N134-10M2M-R50-EE(7)-W12-B150")
EXPONENTIAL = setting("F12-N134-10M2M-R50-E-W44-B150")
_LAST_SHOWN = 140
_FEWEST_SENT = 200


def request(runs: Runs) -> None:
    """Request the setting with high loss, also with a small window and with exponential sizes."""
    runs.request([WIDE, NARROW, EXPONENTIAL], checked=True)


def sections(runs: Runs, folder: Path) -> list[Section]:
    """Return Figure 14, Table 7, Figures 15 and 16 and Table 8."""
    return [
        _figure14(runs, folder),
        _table7(runs),
        _figure15(runs, folder),
        _figure16(runs, folder),
        _table8(runs),
    ]


def _name(each: Setting) -> str:
    return f"{each.distribution}, WR = {each.receiver_window_pkts}"


def _figure14(runs: Runs, folder: Path) -> Section:
    section = Section(
        "Figure 14. Proportion of dropped packets per sequence number", ("WR", "quantity")
    )
    figure, panels = drawing.panels(2, width=5.0, share_y=True)
    for axes, each in zip(panels, (WIDE, NARROW), strict=True):
        table = runs[each].tables["drops_by_sequence"]
        seen = (table["packets"] >= _FEWEST_SENT) & (table["sequence"] <= _LAST_SHOWN)
        share = 100 * table["drops"][seen] / table["packets"][seen]
        axes.bar(table["sequence"][seen], share, width=1.0, color=drawing.COLOURS[0])
        last = 2 * each.receiver_window_pkts - 2
        axes.axvline(last + 0.5, color=drawing.MUTED, linewidth=1, linestyle=":")
        axes.annotate(
            f"packet {last}: last\nin slow start",
            (last + 1.5, 0.92),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            color=drawing.MUTED,
            va="top",
        )
        axes.set_title(f"{_name(each)}: loss {100 * runs[each]['loss_ratio']:.1f} %", fontsize=10)
        axes.set_xlabel("sequence number")
    panels[0].set_ylabel("dropped, % of those sent")
    section.figures.append(drawing.Plot(figure, folder / "figure14.png"))
    for each in (WIDE, NARROW):
        window = each.receiver_window_pkts
        line = published.text().line_with(key=f"loss_w{window}")
        printed = Printed(line["value"])
        section.rows.append(loss_row((str(window),), printed, runs[each]))
        first, second = _dropped(runs[each], 1), _dropped(runs[each], 2)
        label = (str(window), "drops of packet 2 per drop of packet 1")
        section.rows.append(Row(label, "1", None, second / first))
    section.remarks = [
        "In slow start the second packet of a pair is dropped far more often than the first, "
        "because both arrive back to back from a 100 Mbit/s link. Later packets of a file all have "
        "about the same loss.",
    ]
    return section


def _dropped(answer: Answer, sequence: int) -> float:
    table = answer.tables["drops_by_sequence"]
    (row,) = np.nonzero(table["sequence"] == sequence)[0]
    return float(table["drops"][row] / table["packets"][row])


TABLE7 = {
    "TO per dropped packet": "timeouts_per_drop",
    "TOTO per TO": "TOTO_per_timeout",
    "TDTO per TO": "TDTO_per_timeout",
    "TObeg per TO": "TObeg_per_timeout",
    "TOend per TO": "TOend_per_timeout",
    "TOother per TO": "other_per_timeout",
    "time TO per TO": "time_per_timeout",
    "time TO per connection": "timeout_time_per_transfer",
    "TD per dropped packet": "fast_retransmits_per_drop",
    "FR per TD": "recoveries_per_fast_retransmit",
    "packets sent TDFR per FR": "sent_per_recovery",
    "packets sent on FR per FR": "sent_on_exit_per_recovery",
    "time TDFR per FR": "time_per_recovery",
    "time TDFR per connection": "recovery_time_per_transfer",
    "rate TDFR per FR": "rate_in_recovery",
    "send rate": "send_rate",
}
"""The paper's quantities and their names in the simulator's table ``loss_recovery``."""

_FACTORS = {"%": 100.0, "ms": 1e3, "kbit/s": 1e-3, "packets": 1.0}


def recovery_figures(answer: Answer) -> dict[str, float]:
    """Return the simulator's table ``loss_recovery`` as quantities and units of Table 7."""
    recovery = answer.tables["loss_recovery"]
    own = dict(zip(recovery["quantity"].tolist(), recovery["value"].tolist(), strict=True))
    units = {line["quantity"]: line["unit"] for line in published.table(7)}
    return {quantity: _FACTORS[units[quantity]] * own[name] for quantity, name in TABLE7.items()}


def _table7(runs: Runs) -> Section:
    section = Section(published.table(7).title, ("quantity",))
    answer = runs[WIDE]
    own = recovery_figures(answer)
    for line in published.table(7):
        quantity, unit = line["quantity"], line["unit"]
        if quantity in own:
            printed = line.printed("measured")
            section.rows.append(Row((quantity,), unit, printed, own[quantity], note=line.note))
    section.rows += _averages(answer)
    section.remarks = [
        f"{WIDE.name}. Only rate, ON time per packet and loss are checked.",
        "A timeout of one of the last three packets counts as TOend if the whole file has been "
        "sent; otherwise a timeout of packet 1 or 2 counts as TObeg. In files of 3 and 4 packets, "
        "which are nearly all here, many packets qualify for both, and the paper does not state "
        f"its choice. With these rules TObeg is {own['TObeg per TO']:.1f} % and TOend "
        f"{own['TOend per TO']:.1f} %.",
        f"TOTO is {own['TOTO per TO']:.1f} % because of a tie: in this setting a retransmission "
        "after 1 s reaches the queue at the instant of a departure. Without the tie it is close to "
        'the printed value, see "The phase of the loop". The tie also explains part of the '
        "difference in TOother; the rest is not explained.",
        "The paper's send rate cannot be packets sent per ON time: 154.5 kbit/s and 6.3 % of "
        "losses give 165 kbit/s.",
    ]
    return section


def _averages(answer: Answer) -> list[Row]:
    """Return Table 7's averages over all connections; the model also computes two of them."""
    line = {each["quantity"]: each for each in published.table(7)}
    size, rtt = line["file size"], line["RTT measured by TCP"]
    on_time = line["ON time"].value("measured"), size.value("measured")
    result = model(WIDE)
    theory = (
        ("theory: connection rate", "kbit/s", line["connection rate"], 1e-3 * result.rate_bps),
        ("theory: ON time", "ms", line["ON time"], 1e3 * result.on_time_s),
    )
    return [
        loss_row((), line["packet drops"].printed("measured"), answer),
        rate_row((), line["connection rate"].printed("measured"), answer),
        on_per_packet_row((), on_time, answer),
        Row.of(
            ("file size",),
            "packets",
            size.printed("measured"),
            answer.metrics["mean_size_pkts"],
            note=size.note,
        ),
        Row.of(
            ("RTT measured by TCP",),
            "ms",
            rtt.printed("measured"),
            answer.metrics["rtt_mean_s"],
            1e3,
            note=rtt.note,
        ),
        *(
            Row((name,), unit, each.printed("theory"), value, tolerance=PRINTED_DIGITS)
            for name, unit, each, value in theory
        ),
    ]


def _figure15(runs: Runs, folder: Path) -> Section:
    section = Section(
        "Figure 15. Retransmissions in a recovery, and packets sent at its end", ("WR", "quantity")
    )
    figure, panels = drawing.panels(2, width=5.0)
    shown = (
        ("recovery_retransmissions", "retransmissions in a recovery"),
        ("recovery_sent", "packets sent at the end of a recovery"),
    )
    for axes, (name, x) in zip(panels, shown, strict=True):
        for shift, (each, colour) in enumerate(zip((WIDE, NARROW), drawing.COLOURS, strict=False)):
            count, share = _distribution(runs[each], name)
            kept = count <= 20
            index = count[kept] + 0.4 * shift - 0.2
            axes.bar(index, share[kept], width=0.4, color=colour, label=_name(each))
        axes.set_xlabel(x)
        axes.set_xlim(-0.6, 20.6)
        axes.set_xticks(range(0, 21, 2))
        axes.legend(frameon=False)
    panels[0].set_ylabel("share of recoveries (%)")
    section.figures.append(drawing.Plot(figure, folder / "figure15.png"))
    for each, bursts in (
        (WIDE, {1: "", 2: "burst_2_w44", 3: "burst_3_w44"}),
        (NARROW, {7: "burst_7_w12"}),
    ):
        count, share = _distribution(runs[each], "recovery_sent")
        sending = share[count > 0].sum()
        for packets, key in bursts.items():
            printed = Printed(published.text().line_with(key=key)["value"]) if key else None
            own = 100 * float(share[count == packets].sum() / sending)
            label = (
                str(each.receiver_window_pkts),
                f"bursts of {packets} packets, share of all bursts",
            )
            section.rows.append(Row(label, "%", printed, own))
    section.remarks = [
        "In the most frequent recovery, of one packet, the final ack leaves one packet fewer than "
        "ssthresh outstanding. The sender then sends one packet if the window becomes ssthresh, "
        "or two if this ack counts as slow start. RFC 5681 allows both if cwnd = ssthresh. The "
        "paper's 82.8 % of two packets show that its TCP uses slow start, as the own one does.",
    ]
    return section


def _distribution(answer: Answer, name: str) -> tuple[np.ndarray, np.ndarray]:
    table = answer.tables[name]
    return table["count"], 100 * table["recoveries"] / table["recoveries"].sum()


def _figure16(runs: Runs, folder: Path) -> Section:
    section = Section(
        "Figure 16. Timeouts in slow start by the window at which they occur",
        ("distribution", "quantity"),
    )
    figure, panels = drawing.panels(2, width=5.0, share_y=True)
    for axes, each in zip(panels, (WIDE, EXPONENTIAL), strict=True):
        table = runs[each].tables["timeouts_by_window"]
        share = 100 * table["timeouts"] / table["timeouts"].sum()
        kept = table["window_pkts"] <= 20
        axes.bar(table["window_pkts"][kept], share[kept], width=0.8, color=drawing.COLOURS[0])
        axes.set_title(_name(each), fontsize=10)
        axes.set_xlabel("window (packets)")
        axes.set_xticks(range(1, 21, 1))
        axes.tick_params(axis="x", labelsize=7)
        for window in (1, 2, 3, 4):
            own = float(share[table["window_pkts"] == window].sum())
            section.rows.append(Row((each.distribution, f"at W = {window}"), "%", None, own))
    panels[0].set_ylabel("share of timeouts in slow start (%)")
    section.figures.append(drawing.Plot(figure, folder / "figure16.png"))
    section.remarks = [
        "W = 1: the retransmission after a timeout was also lost. W = 2: packet 1 was dropped. "
        "W = 3: only packet 2 was dropped. The paper prints no numbers.",
    ]
    return section


def _table8(runs: Runs) -> Section:
    section = Section(published.table(8).title, ("interval", "quantity"))
    answer = runs[WIDE]
    for line in published.table(8):
        if line["low_pkts"]:
            section.rows += _interval_rates(line, runs)
        else:
            section.rows += _heading_rows(line, answer)
    section.remarks = [
        f"{WIDE.name}. The tolerance is 5 % for intervals with at least 1 % of the files; for "
        "rarer sizes, it is 10 % or the range between the values of Tables 8 and 9.",
    ]
    return section


def _heading_rows(line: Line, answer: Answer) -> list[Row]:
    label = ("all",)
    size = line.value("mean_size_pkts")
    on_time_ms = 8 * WIDE.packet_bytes * size / line.value("rate_kbps")
    return [
        rate_row(label, line.printed("rate_kbps"), answer),
        on_per_packet_row(label, (round(on_time_ms, 1), size), answer),
        Row.of(
            (*label, "mean queue"),
            "packets",
            line.printed("queue_seen_pkts"),
            answer.metrics["queue_mean_pkts"],
        ),
    ]


def _interval_rates(line: Line, runs: Runs) -> list[Row]:
    low = int(line["low_pkts"])
    cells = interval_cells(runs[WIDE], low)
    other = published.table(9).line_with(
        distribution="EE(7)", buffer_pkts=150, low_pkts=line["low_pkts"]
    )
    interval = f"{line['low_pkts']}-{line['high_pkts']}"
    tolerance = interval_tolerance(
        line.value("files_percent"), printed=(line.value("rate_kbps"), other.value("rate_kbps"))
    )
    rate = Row.of(
        (interval, "rate"),
        "kbit/s",
        line.printed("rate_kbps"),
        interval_rate(cells),
        tolerance=tolerance,
        note=f"Table 9: {other['rate_kbps']}",
        explained_by=phase_of_the_loop(runs, WIDE, low),
    )
    shown = (
        ("files", "%", "files_percent", 100 * cells["share"]),
        ("mean size", "packets", "mean_size_pkts", cells["mean_size_pkts"]),
        ("queue seen", "packets", "queue_seen_pkts", cells["queue_seen_mean_pkts"]),
        ("TO per drop", "%", "to_per_drop_percent", 100 * cells["timeouts_per_drop"]),
        (
            "recovered per drop",
            "%",
            "recovered_per_drop_percent",
            100 * cells["recovered_per_drop"],
        ),
    )
    rows = [
        Row((interval, name), unit, line.printed(column), own) for name, unit, column, own in shown
    ]
    return [rate, *rows]
