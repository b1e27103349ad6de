"""Tables 2 and 3 and sections 4.2 and 4.4: a single connection on the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.models.engset import (
    Path,
    flights,
    isolated_connection,
    lone_queue,
    spurious_timeouts,
    window_saturation,
)

from tcpcast_papers.engset import published
from tcpcast_papers.engset.sample import metric_reader
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.reproduction import PRINTED_DIGITS, Row

if TYPE_CHECKING:
    import pathlib

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Section

SPECIAL_OFF_S = 5.0

PAPER_BETAS = (8.0 + 1 / 3, 16.0 + 2 / 3, 41.0 + 2 / 3, 83.0 + 1 / 3)
"""RTT0/Delta* of the paper's paths: 2 and 10 Mbit/s, RTT 50 and 100 ms."""


def special_case_path() -> Path:
    """Return the special case's path, with RTT0 rounded as in print.

    The paper continues its calculation with 341.83 ms (exact: 341.8346 ms). The exact value would
    change the ON times by some hundredths of a millisecond.
    """
    return Path(
        rtt0_s=0.34183,
        packet_bytes=576,
        bottleneck_bps=1.5e6,
        ingress_bps=100e6,
        egress_bps=128e3,
    )


def _name_exponential_size_setting(window: int) -> str:
    # The rates of bottleneck and egress are exchanged, so that the measured queue belongs to the
    # bottleneck. For a single connection the order of the links makes no other difference.
    return f"F347-N1-128k1.5M-D300-E-W{window}-P576"


def _name_fixed_size_setting(size_pkts: int) -> str:
    return f"F{size_pkts}-N1-1.5M128k-D300-C-W44-P576"


_FIXED_SIZES_PKTS = (53, 54, 106, 107)


def request(runs: Runs) -> None:
    """Request single connections: exponential sizes for the queue, one size for the timeout."""
    runs.request(
        (read_setting(_name_exponential_size_setting(window)) for window in (44, 12)),
        checked=True,
        plotted=False,
    )
    runs.request(
        (read_setting(_name_fixed_size_setting(size)) for size in _FIXED_SIZES_PKTS),
        connections=100,
    )


def _table2(runs: Runs, _: pathlib.Path) -> Section:
    section = runs.section(published.published_table(2).title, ("C", "RTT", "WR", "quantity"))
    for line in published.published_table(2):
        label = (f"{line['rate_mbps']}M", f"{line['rtt_ms']} ms", line["receiver_window_pkts"])
        beta = line.value("rtt_ms") / line.value("delta_ms")
        window = line.value("receiver_window_pkts")
        result = window_saturation(beta=beta, receiver_window_pkts=window)
        own = {
            "beta_pkts": ("beta", "packets", beta),
            "r": ("r", "1", result.ratio),
            "window_over_beta_percent": ("WR/beta", "%", 100 / result.ratio),
            "queue_pkts": ("queue", "packets", result.queue_pkts),
        }
        condition = (
            "saturated" if result.saturated else "onset" if result.onset else "not saturated"
        )
        for column, (quantity, unit, value) in own.items():
            if line[column]:
                row = Row(
                    (*label, quantity),
                    unit,
                    line.printed(column),
                    value,
                    tolerance=PRINTED_DIGITS,
                    note=condition if column == "r" else "",
                )
                section.rows.append(row)
    section.remarks = [
        "The paper uses the integer part of beta: r = floor(beta)/WR and floor(WR/beta).",
    ]
    return section


def example_beta(line: Line) -> float:
    """Return the smallest beta* of the paper's paths to which a row of Table 3 applies."""
    low = line.value("beta_low_pkts")
    high = line.value("beta_high_pkts") if line["beta_high_pkts"] else float("inf")
    return min(beta for beta in PAPER_BETAS if low < beta < high)


def _table3(runs: Runs, _: pathlib.Path) -> Section:
    section = runs.section(published.published_table(3).title, ("F", "condition", "quantity"))
    for line in published.published_table(3):
        window = int(line["window_high_pkts"] or 44)
        beta = example_beta(line)
        result = flights(
            size_pkts=line.value("mean_size_pkts"), receiver_window_pkts=window, slowest_beta=beta
        )
        for name, own in (("m", result.rounds), ("n", result.tail_pkts)):
            corrected = line.printed(f"{name}_corrected")
            wrong = line[name] != line[f"{name}_corrected"]
            note = (
                f"printed {line[name]}: {line.note}"
                if wrong
                else f"{_beta_and_window_text(beta, window)}"
            )
            label = (line["mean_size_pkts"], line["condition"], name)
            section.rows.append(
                Row(label, "1", corrected, float(own), tolerance=PRINTED_DIGITS, note=note)
            )
    section.remarks = [
        "In five printed rows the sizes of the flights do not add up to F. For these rows, the "
        "column *published* contains the corrected value, and the note contains the printed value. "
        "ON0 = m RTT0 + n Delta*.",
    ]
    return section


def _beta_and_window_text(beta: float, window: int) -> str:
    return f"at beta* = {beta:.1f}, WR = {window}"


def _special_case_section(runs: Runs, _: pathlib.Path) -> Section:
    path = special_case_path()
    wide = isolated_connection(path=path, size_pkts=347, receiver_window_pkts=44)
    narrow = isolated_connection(path=path, size_pkts=347, receiver_window_pkts=8)
    again = wide.queue_rounds * path.rtt0_s + wide.queue_tail_pkts * path.slowest_delta_s
    scenario_rtt = read_setting(_name_fixed_size_setting(54)).scenario().populations[0].rtt_s
    section = runs.section("Section 4.2. The special case and its spurious timeouts", ("quantity",))
    own = {
        "special_rtt": 1e3 * scenario_rtt,
        "special_beta": path.beta,
        "special_beta_star": path.slowest_beta,
        "special_on_347": 1e3 * wide.on_time_s,
        "special_rate_347": 1e-3 * wide.rate_bps,
        "special_on_renormalised": 1e3 * again,
        "special_on_347_w8": 1e3 * narrow.on_time_s,
        "special_rate_347_w8": 1e-3 * narrow.rate_bps,
    }
    section.rows = [_row_of_value_in_text(key, value) for key, value in own.items()]
    sizes, packets = spurious_timeouts(path=path, largest_pkts=200, receiver_window_pkts=44)
    hit = dict(zip(sizes.tolist(), packets.tolist(), strict=True))
    for size in (54, 106):
        section.rows.append(_row_of_value_in_text(f"spurious_{size}", hit[size], "simulated"))
        label = (published.values_printed_in_text().line_with(key=f"spurious_{size}")["quantity"],)
        section.rows += runs.row(label, _simulated_timeout_row, runs, size)
    answers = {size: runs[_name_fixed_size_setting(size)] for size in _FIXED_SIZES_PKTS}
    timeouts = ", ".join(
        f"{answer['timeouts'] / answer['transfers']:.3g} timeouts per file of {size}"
        for size, answer in answers.items()
    )
    section.remarks = [
        "ON times and rates are calculated with RTT0 = 341.83 ms, as printed.",
        "With a window of 44 packets up to 35 packets wait at the 128 kbit/s link, for 1260 ms "
        "(printed as 1260 seconds). The timeout still has its minimum of 1 s: the RTT sample of "
        "packet 31 includes a wait behind 23 packets only, and the next RTT sample is from packet "
        f"63. In the simulation, files of {sizes.min()} to {sizes.max()} packets time out. "
        f"Simulated: {timeouts}.",
    ]
    return section


def _simulated_timeout_row(runs: Runs, size: int) -> Row:
    simulated = first_timed_out_packet(runs, size)
    return _row_of_value_in_text(f"spurious_{size}", simulated, "simulated")


def first_timed_out_packet(runs: Runs, size_pkts: int) -> float | None:
    """Return the number of the packet at which files of one size time out, or None.

    The simulated sequence trace contains every retransmission. A single connection on the path has
    no losses, so the spurious timeout causes the first retransmission of a transfer.
    """
    trace = runs[_name_fixed_size_setting(size_pkts)].tables["sequences"]
    again = trace["sequence"][trace["event"] == "timeout"]
    return float(again[0]) if len(again) else None


def _row_of_value_in_text(key: str, own: float | None, note: str = "") -> Row:
    line = published.values_printed_in_text().line_with(key=key)
    return Row(
        (line["quantity"],),
        line["unit"],
        line.printed("value"),
        own,
        tolerance=PRINTED_DIGITS,
        note=note,
    )


def _lone_queue_section(runs: Runs, _: pathlib.Path) -> Section:
    section = runs.section("Section 4.4. The queue of a single connection", ("quantity",))
    text = published.values_printed_in_text()
    for window in (44, 12):
        result = lone_queue(
            path=special_case_path(),
            size_pkts=347,
            mean_off_s=SPECIAL_OFF_S,
            receiver_window_pkts=window,
        )
        if window == 44:
            section.rows.append(_row_of_value_in_text("single_integral_w44", result.rounds[-1]))
        section.rows.append(
            _row_of_value_in_text(f"single_queue_w{window}", result.mean_pkts, "by formula")
        )
        delay = text.line_with(key=f"single_delay_w{window}")
        section.rows.append(
            Row(
                (delay["quantity"],),
                "ms",
                delay.printed("value"),
                1e3 * result.delay_s,
                note=delay.note,
                fixed_verdict=delay.fixed_verdict,
            )
        )
        line = text.line_with(key=f"single_queue_w{window}_measured")
        sample = runs.sample(read_setting(_name_exponential_size_setting(window)))
        section.rows += sample.rows(
            (line["quantity"],),
            "packets",
            line.printed("value"),
            metric_reader("queue_mean_pkts"),
            note="simulated, exponential sizes",
        )
    section.remarks = [
        "The simulations exchange the rates of bottleneck and egress, so that the queue is at the "
        "measured hop. For a single connection, the order of the links makes no other difference.",
    ]
    return section


SECTIONS = (_table2, _table3, _special_case_section, _lone_queue_section)
