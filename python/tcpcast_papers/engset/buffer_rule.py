"""Table 5 and section 5.4.1: the rules for the size of a buffer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.models.engset import (
    Path,
    buffer_for_loss,
    engset,
    isolated_connection,
    simplified_buffer_for_loss,
)

from tcpcast_papers.engset import published
from tcpcast_papers.reproduction import PRINTED_DIGITS, Row

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

    from tcpcast.models.engset import EngsetResult

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.printed import Line
    from tcpcast_papers.reproduction import Section

SIZES_PKTS = (5, 12, 22, 36, 80, 120, 500, 1000)
RTTS_S = (0.050, 0.300)
LOSS = 0.01
WINDOW_PKTS = 44
PACKET_BYTES = 1500

_RULE_DELAYS_S = {"600ms": 0.6, "BDP": 0.3}


def engset_rule_pkts(rate_bps: float, size_pkts: int, rtt_s: float) -> float:
    """Return the buffer of the TCP-Engset rule for one mean size and RTT (section 5.4.1).

    Parameters
    ----------
    rate_bps, size_pkts, rtt_s
        Rate of the link, mean file size F and RTT0.

    Returns
    -------
    float
        Packets, for a loss of 1 %, WR = 44 and the smallest number of sources with an open-loop
        load of at least 100 %.
    """
    result = _model_at_full_load(rate_bps, size_pkts, rtt_s)
    if not result.can_overload_link:
        return 0.0
    return float(
        simplified_buffer_for_loss(
            loss_ratio=LOSS, queue_mean_pkts=result.queue_mean_pkts, utilisation=result.utilisation
        )
    )


def buffer_by_second_method_pkts(rate_bps: float, size_pkts: int, rtt_s: float) -> float:
    """Return the buffer by eq. 13 with the queue and the load of the second method (ON2, U2)."""
    result = _model_at_full_load(rate_bps, size_pkts, rtt_s)
    sharing, idle_s = result.sharing, result.isolated.on_time_s
    if sharing.on_time2_s is None:
        return 0.0
    longer = (sharing.on_time2_s - idle_s) / (sharing.on_time_s - idle_s)
    return float(
        buffer_for_loss(
            loss_ratio=LOSS,
            queue_mean_pkts=result.queue_mean_pkts * longer,
            load=sharing.closed_loop_load,
        )
    )


def _model_at_full_load(rate_bps: float, size_pkts: int, rtt_s: float) -> EngsetResult:
    path = Path(rtt0_s=rtt_s, packet_bytes=PACKET_BYTES, bottleneck_bps=rate_bps, ingress_bps=100e6)
    one = isolated_connection(path=path, size_pkts=size_pkts, receiver_window_pkts=WINDOW_PKTS)
    sources = math.ceil((1 + one.on_time_s) * rate_bps / (size_pkts * path.packet_bits))
    return engset(
        path=path,
        sources=sources,
        mean_off_s=1.0,
        mean_size_pkts=size_pkts,
        receiver_window_pkts=WINDOW_PKTS,
    )


def largest_buffer_on_grid(
    rule: Callable[[float, int, float], float], rate_bps: float
) -> tuple[float, int, float]:
    """Return the largest buffer by a rule over the grid, with its size and RTT."""
    return max((rule(rate_bps, size, rtt), size, rtt) for size in SIZES_PKTS for rtt in RTTS_S)


def _rule_row(label: tuple[str, ...], rate_bps: float, line: Line) -> Row:
    """Return the row of the largest buffer, rounded up to tens unless the print is inconsistent."""
    printed = line.printed("buffer_pkts")
    own, size, rtt = largest_buffer_on_grid(
        _RULES_OF_TEXT.get(int(1e-6 * rate_bps), engset_rule_pkts), rate_bps
    )
    note = f"largest at F = {size}, RTT = {1e3 * rtt:.0f} ms: {own:.1f}"
    if line.misprint or printed is None:
        note = "; ".join(filter(None, (note, line.note)))
        return Row(label, "packets", printed, own, note=note, fixed_verdict=line.fixed_verdict)
    return Row(
        label, "packets", printed, 10.0 * math.ceil(own / 10), tolerance=PRINTED_DIGITS, note=note
    )


def _section(runs: Runs, _: pathlib.Path) -> Section:
    section = runs.section(published.published_table(5).title, ("C", "rule"))
    for line in published.published_table(5):
        rate = 1e6 * line.value("rate_mbps")
        label = (f"{line['rate_mbps']}M", f"{line['rule']}-rule")
        if line["rule"] in _RULE_DELAYS_S:
            own = _RULE_DELAYS_S[line["rule"]] * rate / (8 * PACKET_BYTES)
            row = Row(label, "packets", line.printed("buffer_pkts"), own, tolerance=PRINTED_DIGITS)
        else:
            row = _rule_row(label, rate, line)
        section.rows.append(row)
    section.rows += [
        Row(
            (f"{rate_mbps}M", "TCP-Engset-rule, F = 500, RTT = 50 ms"),
            "packets",
            published.value_printed_in_text(f"rule_{rate_mbps}"),
            rule(1e6 * rate_mbps, *_TEXT_SIZE_AND_RTT),
            tolerance=PRINTED_DIGITS,
            note="eq. (13) with ON2 and U2" if rule is buffer_by_second_method_pkts else "",
        )
        for rate_mbps, rule in _RULES_OF_TEXT.items()
    ]
    section.remarks = [
        "N is the smallest number of sources with an open-loop load of 100 % or more. The text "
        "prints 202 packets at 10 Mbit/s, which follow from B = Q ln(U/L), and 417 packets at 50 "
        "Mbit/s, which follow from eq. (13) with the queue and the load of the paper's second "
        "method (ON2, U2). The second method gives "
        f"{buffer_by_second_method_pkts(10e6, *_TEXT_SIZE_AND_RTT):.0f} packets at 10 Mbit/s, so "
        "the paper "
        "mixes two methods.",
    ]
    return section


_TEXT_SIZE_AND_RTT = (500, 0.050)
_RULES_OF_TEXT = {10: engset_rule_pkts, 50: buffer_by_second_method_pkts}
"""The rule that gives the value in the text, by link rate in Mbit/s."""


SECTIONS = (_section,)
