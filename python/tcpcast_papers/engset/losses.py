"""Section 5.4.3: Table 7, Table 8 and Figures 14 to 16: effects of drops under a high load."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.engset import interpretations, published
from tcpcast_papers.engset.comparison_rows import (
    AVERAGES,
    interval_rate_reader,
    printed_average_rows,
)
from tcpcast_papers.engset.sample import interval_reader, metric_reader, recovery_reader
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.engset.theory import solve_model
from tcpcast_papers.reproduction import PRINTED_DIGITS, Row

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.sample import Read, Sample
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Section

WINDOW_44 = read_setting("F12-N134-10M2M-R50-EE(7)-W44-B150")
WINDOW_12 = read_setting("F12-N134-10M2M-R50-EE(7)-W12-B150")
EXPONENTIAL_SIZES = read_setting("F12-N134-10M2M-R50-E-W44-B150")
PACKET_MS = 1.2
"""Transmission time of a packet at the bottleneck, in ms."""

_MAX_SEQUENCE_PLOTTED = 140
_MIN_PACKETS_PLOTTED = 200


def request(runs: Runs) -> None:
    """Request the setting with high loss, also with a small window and with exponential sizes."""
    runs.request([WINDOW_44, WINDOW_12, EXPONENTIAL_SIZES], checked=True)


def _figure14(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 14. Proportion of dropped packets per sequence number", ("WR", "quantity")
    )
    for each in (WINDOW_44, WINDOW_12):
        window = each.receiver_window_pkts
        _, unit, read = AVERAGES["loss"]
        label = (str(window), "loss")
        printed = published.value_printed_in_text(f"loss_w{window}")
        section.rows += runs.sample(each).rows(label, unit, printed, read)
        label = (str(window), "drops of packet 2 per drop of packet 1")
        section.rows += runs.value(
            label,
            "1",
            lambda runs, each: drop_share(runs[each], 2) / drop_share(runs[each], 1),
            runs,
            each,
        )
    figure, panels = drawing.create_panels(2, width=5.0, share_y=True)
    for axes, each in zip(panels, (WINDOW_44, WINDOW_12), strict=True):
        table = runs[each].tables["drops_by_sequence"]
        seen = (table["packets"] >= _MIN_PACKETS_PLOTTED) & (
            table["sequence"] <= _MAX_SEQUENCE_PLOTTED
        )
        share = 100 * table["drops"][seen] / table["packets"][seen]
        axes.bar(table["sequence"][seen], share, width=1.0, color=drawing.COLOURS[0])
        last = 2 * each.receiver_window_pkts - 2
        axes.axvline(last + 0.5, color=drawing.REFERENCE_COLOUR, linewidth=1, linestyle=":")
        axes.annotate(
            f"packet {last}: last\nin slow start",
            (last + 1.5, 0.92),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            color=drawing.REFERENCE_COLOUR,
            va="top",
        )
        axes.set_title(
            f"{each.size_and_window}: loss {100 * runs[each]['loss_ratio']:.1f} %", fontsize=10
        )
        axes.set_xlabel("sequence number")
    panels[0].set_ylabel("dropped, % of those sent")
    section.figures.append(drawing.Plot(figure, folder / "figure14.png"))
    section.remarks = [
        "In slow start, packets arrive in pairs, back to back from a 100 Mbit/s link. The second "
        "packet of a pair is dropped far more often than the first. Later packets of a file all "
        "have about the same loss.",
    ]
    return section


def drop_share(answer: Answer, sequence: int) -> float:
    """Return the share of packets with this sequence number that were dropped."""
    table = answer.tables["drops_by_sequence"]
    (row,) = np.nonzero(table["sequence"] == sequence)[0]
    return float(table["drops"][row] / table["packets"][row])


TABLE7_READERS: dict[str, Read] = {
    "packet drops": metric_reader("loss_ratio", 100),
    "TO per dropped packet": recovery_reader("timeouts_per_drop", 100),
    "TOTO per TO": recovery_reader("TOTO_per_timeout", 100),
    "TDTO per TO": recovery_reader("TDTO_per_timeout", 100),
    "TObeg per TO": recovery_reader("TObeg_per_timeout", 100),
    "TOend per TO": recovery_reader("TOend_per_timeout", 100),
    "TOother per TO": recovery_reader("other_per_timeout", 100),
    "time TO per TO": recovery_reader("time_per_timeout", 1e3),
    "time TO per connection": recovery_reader("timeout_time_per_transfer", 1e3),
    "TD per dropped packet": recovery_reader("fast_retransmits_per_drop", 100),
    "FR per TD": recovery_reader("recoveries_per_fast_retransmit", 100),
    "packets sent TDFR per FR": recovery_reader("sent_per_recovery"),
    "packets sent on FR per FR": recovery_reader("sent_on_exit_per_recovery"),
    "time TDFR per FR": recovery_reader("time_per_recovery", 1e3),
    "time TDFR per connection": recovery_reader("recovery_time_per_transfer", 1e3),
    "rate TDFR per FR": recovery_reader("rate_in_recovery", 1e-3),
    "send rate": interpretations.sending_rate_reader(WINDOW_44.simulated_rtt_ms, PACKET_MS),
    "connection rate": metric_reader("connection_rate_bps", 1e-3),
    "ON time": metric_reader("on_time_s", 1e3),
    "file size": metric_reader("mean_size_pkts"),
    "RTT measured by TCP": metric_reader("rtt_mean_s", 1e3),
}
"""The paper's quantities in its units, as the simulator defines them."""


def _table7(runs: Runs, _: Path) -> Section:
    section = runs.section(published.published_table(7).title, ("quantity",))
    waited = {interpretations.SINCE_OWN_TRANSMISSION: interpretations.count_since_last_transmission}
    classes = {
        f"{kind} per TO": {
            name: interpretations.class_share_reader(kind, name)
            for name in interpretations.TIMEOUT_CLASSIFIERS
        }
        for kind in ("TObeg", "TOend", "TOother")
    }
    sent, on_exit = (
        TABLE7_READERS["packets sent TDFR per FR"],
        TABLE7_READERS["packets sent on FR per FR"],
    )
    sample, others = (
        runs.sample(WINDOW_44),
        classes
        | {
            **{
                name: {reason: since(TABLE7_READERS[name]) for reason, since in waited.items()}
                for name in ("time TO per TO", "time TO per connection")
            },
            "packets sent TDFR per FR": {
                "packets sent on FR included": lambda answer: sent(answer) + on_exit(answer)
            },
            "send rate": {"packets sent per ON time": recovery_reader("send_rate", 1e-3)},
        },
    )
    result = solve_model(WINDOW_44)
    theory = {"connection rate": 1e-3 * result.rate_bps, "ON time": 1e3 * result.on_time_s}
    for line in published.published_table(7):
        name, unit = line["quantity"], line["unit"]
        section.rows += sample.rows(
            (name,),
            unit,
            line.printed("measured"),
            TABLE7_READERS[name],
            note=line.note,
            causes=[(reason, sample, read) for reason, read in others.get(name, {}).items()],
        )
        if name in theory:
            label, value = f"theory: {name}", theory[name]
            printed = line.printed("theory")
            section.rows.append(Row((label,), unit, printed, value, tolerance=PRINTED_DIGITS))
        for reading, read in others.get(name, {}).items():
            section.rows += sample.rows((f"{name}: {reading}",), unit, None, read)
    section.remarks = [
        f"{WINDOW_44.name}. A timeout of one of the last three packets counts as TOend if the "
        "whole file has been sent. Otherwise, a timeout of packet 1 or 2 counts as TObeg. Nearly "
        "all files have 3 or 4 packets. Many packets belong to both classes, and the paper does "
        "not state its choice. Rows with a colon show other definitions of the quantity; they "
        "explain a difference if they give the printed value.",
        "The paper's send rate cannot be packets sent per ON time, because 154.5 kbit/s and 6.3 % "
        "of losses give 165 kbit/s. It is F 8P/(ON - last RTT): the mean size divided by the time "
        "until the last packet is sent. With the printed size, ON time and queue of small files "
        "(125.3 packets), this is 197.1 kbit/s.",
    ]
    return section


def _figure15(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 15. Retransmissions in a recovery, and packets sent at its end", ("WR", "quantity")
    )
    for each, bursts in (
        (WINDOW_44, {1: "", 2: "burst_2_w44", 3: "burst_3_w44"}),
        (WINDOW_12, {7: "burst_7_w12"}),
    ):
        for packets, key in bursts.items():
            printed = published.value_printed_in_text(key) if key else None
            label = (str(each.receiver_window_pkts), f"bursts of {packets} packets, share of all")
            section.rows += runs.sample(each).rows(
                label, "%", printed, _burst_share_reader(packets)
            )
    figure, panels = drawing.create_panels(2, width=5.0)
    shown = (
        ("recovery_retransmissions", "retransmissions in a recovery"),
        ("recovery_sent", "packets sent at the end of a recovery"),
    )
    for axes, (name, x) in zip(panels, shown, strict=True):
        for shift, (each, colour) in enumerate(
            zip((WINDOW_44, WINDOW_12), drawing.COLOURS, strict=False)
        ):
            count, share = _recovery_distribution(runs[each], name)
            kept = count <= 20
            index = count[kept] + 0.4 * shift - 0.2
            axes.bar(index, share[kept], width=0.4, color=colour, label=each.size_and_window)
        axes.set(xlabel=x, xlim=(-0.6, 20.6))
        axes.set_xticks(range(0, 21, 2))
        axes.legend(frameon=False)
    panels[0].set_ylabel("share of recoveries (%)")
    section.figures.append(drawing.Plot(figure, folder / "figure15.png"))
    section.remarks = [
        "Most recoveries retransmit one packet. After the final ack of such a recovery, "
        "ssthresh - 1 packets are outstanding. The sender then sends one packet if cwnd becomes "
        "ssthresh, or two packets if it also applies slow start to this ack. RFC 5681 allows both "
        "if cwnd = ssthresh. In the paper 82.8 % of the bursts have two packets, so its TCP "
        "applies slow start, as tcpcast does.",
    ]
    return section


def _burst_share_reader(packets: int) -> Read:
    """Return a function that reads the share of the bursts with this length, in %."""

    def read(answer: Answer) -> float:
        count, share = _recovery_distribution(answer, "recovery_sent")
        return 100 * float(share[count == packets].sum() / share[count > 0].sum())

    return read


def _recovery_distribution(answer: Answer, name: str) -> tuple[np.ndarray, np.ndarray]:
    table = answer.tables[name]
    return table["count"], 100 * table["recoveries"] / table["recoveries"].sum()


def _figure16(runs: Runs, folder: Path) -> Section:
    section = runs.section(
        "Figure 16. Timeouts in slow start by the window at which they occur",
        ("distribution", "quantity"),
    )
    for each, window in product((WINDOW_44, EXPONENTIAL_SIZES), (1, 2, 3, 4)):
        label = (each.distribution, f"at W = {window}")
        section.rows += runs.value(label, "%", _timeouts_at_window, runs, each, window)
    figure, panels = drawing.create_panels(2, width=5.0, share_y=True)
    for axes, each in zip(panels, (WINDOW_44, EXPONENTIAL_SIZES), strict=True):
        windows, share = _timeout_shares(runs[each])
        kept = windows <= 20
        axes.bar(windows[kept], share[kept], width=0.8, color=drawing.COLOURS[0])
        axes.set_title(each.size_and_window, fontsize=10)
        axes.set_xlabel("window (packets)")
        axes.set_xticks(range(1, 21, 1))
        axes.tick_params(axis="x", labelsize=7)
    panels[0].set_ylabel("share of timeouts in slow start (%)")
    section.figures.append(drawing.Plot(figure, folder / "figure16.png"))
    section.remarks = [
        "The window W shows the cause. W = 1: the retransmission after a timeout was also lost. W "
        "= 2: packet 1 was dropped. W = 3: only packet 2 was dropped. The paper prints no numbers.",
    ]
    return section


def _timeouts_at_window(runs: Runs, each: Setting, window: int) -> float:
    windows, share = _timeout_shares(runs[each])
    return float(share[windows == window].sum())


def _timeout_shares(answer: Answer) -> tuple[np.ndarray, np.ndarray]:
    """Return windows in packets, and the share of the timeouts in slow start at each, in %."""
    table = answer.tables["timeouts_by_window"]
    return table["window_pkts"], 100 * table["timeouts"] / table["timeouts"].sum()


def _table8(runs: Runs, _: Path) -> Section:
    section = runs.section(published.published_table(8).title, ("interval", "quantity"))
    sample = runs.sample(WINDOW_44)
    for line in published.published_table(8):
        if line["low_pkts"]:
            section.rows += _interval_rows(line, sample)
            continue
        section.rows += printed_average_rows(("all",), line, runs, WINDOW_44)
        for name, column, read in (
            ("mean size", "mean_size_pkts", metric_reader("mean_size_pkts")),
            ("mean queue", "queue_seen_pkts", metric_reader("queue_mean_pkts")),
        ):
            section.rows += sample.rows(("all", name), "packets", line.printed(column), read)
    section.remarks = [
        f"{WINDOW_44.name}. If Tables 8 and 9 both print a rate, values between the two agree.",
    ]
    return section


_TABLE8_COLUMNS = {
    "files": ("files_percent", "%", "share", 100),
    "mean size": ("mean_size_pkts", "packets", "mean_size_pkts", 1),
    "queue seen": ("queue_seen_pkts", "packets", "queue_seen_mean_pkts", 1),
    "TO per drop": ("to_per_drop_percent", "%", "timeouts_per_drop", 100),
    "recovered per drop": ("recovered_per_drop_percent", "%", "recovered_per_drop", 100),
}
"""Columns of Table 8: its column, unit, and the simulator's column with its factor."""


def _interval_rows(line: Line, sample: Sample) -> list[Row]:
    low = int(line["low_pkts"])
    again = published.published_table(9).line_with(
        distribution="EE(7)", buffer_pkts=150, low_pkts=line["low_pkts"]
    )
    name = published.interval_text(low, line.integer("high_pkts"))
    rows = sample.rows(
        (name, "rate"),
        "kbit/s",
        line.printed("rate_kbps"),
        interval_rate_reader(low),
        between=(line.value("rate_kbps"), again.value("rate_kbps")),
        note=f"Table 9: {again['rate_kbps']}",
    )
    for quantity, (column, unit, own, factor) in _TABLE8_COLUMNS.items():
        read = interval_reader(low, own, factor)
        rows += sample.rows((name, quantity), unit, line.printed(column), read)
    return rows


SECTIONS = (_figure14, _table7, _figure15, _figure16, _table8)
