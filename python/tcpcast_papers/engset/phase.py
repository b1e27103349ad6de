"""Effect of the phase of the loop on losses: Tables 7 to 9 with a shorter RTT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast_papers.engset import published
from tcpcast_papers.engset.file_sizes import interval_text
from tcpcast_papers.engset.losses import WIDE, recovery_figures
from tcpcast_papers.engset.shorter_loop import ACKS_MS, BUFFERS_PKTS, shorter_loop
from tcpcast_papers.engset.side_by_side import interval_cells, interval_rate
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting

RTO_MS = {"1 ns shorter": 999.999_999, "1.1 ms longer": 1001.1}
"""Minimum timeouts that expire just before a departure instead of at the same time; departures are
1.2 ms apart."""

_QUANTITIES = (
    "TO per dropped packet",
    "TOTO per TO",
    "TDTO per TO",
    "TObeg per TO",
    "TOend per TO",
    "TOother per TO",
    "time TO per TO",
    "time TO per connection",
)
_DISTRIBUTIONS = ("EE(7)", "EP")


def _lossy(buffer_pkts: int, distribution: str) -> Setting:
    return replace(WIDE, buffer_pkts=buffer_pkts, distribution=distribution)


def _phases() -> dict[str, Setting]:
    """Return the setting of Table 7 at 50 ms, with other timeouts and with the shorter RTT."""
    shorter = shorter_loop(WIDE)
    others = {name: replace(WIDE, min_rto_ms=least) for name, least in RTO_MS.items()}
    return {
        _loop(WIDE): WIDE,
        **{f"{_loop(WIDE)}, RTO {name}": each for name, each in others.items()},
        _loop(shorter): shorter,
    }


def _loop(each: Setting) -> str:
    return f"RTT {each.rtt_ms:g} ms"


def request(runs: Runs) -> None:
    """Request Tables 8 and 9 with a shorter RTT, and Table 7 with a later timeout."""
    settings = [
        _lossy(buffer, distribution) for distribution in _DISTRIBUTIONS for buffer in BUFFERS_PKTS
    ]
    runs.request(settings, checked=True)
    runs.request(map(shorter_loop, settings), checked=True)
    runs.request(_phases().values(), checked=True)


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return Tables 7 and 9 at these phases."""
    section = Section("The phase of the loop", ("loop", "distribution", "B", "quantity"))
    for name, each in _phases().items():
        own = recovery_figures(runs[each])
        for quantity in _QUANTITIES:
            line = published.table(7).line_with(quantity=quantity)
            label = (name, each.distribution, str(each.buffer_pkts), quantity)
            section.rows.append(Row(label, line["unit"], line.printed("measured"), own[quantity]))
    for distribution in _DISTRIBUTIONS:
        for buffer in BUFFERS_PKTS:
            section.rows += _rates(runs, _lossy(buffer, distribution))
    section.remarks = _remarks(runs)
    return [section]


def _remarks(runs: Runs) -> list[str]:
    repeated = [recovery_figures(runs[each])["TOTO per TO"] for each in _phases().values()]
    exact, sooner, later, shorter = (f"{share:.1f}" for share in repeated)
    return [
        "With equal round-trip times each packet that an ack releases reaches the full buffer at "
        "the same phase between two departures, which are 1.2 ms apart: at 50 ms, 0.8 ms after the "
        "previous one. A retransmission after 1 s arrives 0.4 ms later, at the very instant of a "
        "departure. The departure is processed first, in the paper as here, so the "
        f"retransmission is hardly ever lost: {exact} % TOTO. If the timeout is shorter by a "
        f"nanosecond, the buffer is still full, and repeated timeouts are frequent: {sooner} %. "
        f"A timeout longer by 1.1 ms gives {later} %; a loop shorter by the {ACKS_MS:.3f} ms of "
        f"ack transmission gives {shorter} %; the printed value is "
        f"{published.table(7).line_with(quantity='TOTO per TO')['measured']} %. The last bit of a "
        "floating-point clock is enough to break such a tie.",
        "A lost retransmission stalls its file for another 2 s. It usually belongs to a small "
        "file, and large files get its share of the buffer: with the shorter loop small files lose "
        "more packets, large ones fewer. The paper's rates of size intervals are between those of "
        "the two loops or close to the shorter one, and under heavy loss have no higher precision. "
        "The setting stays as the paper gives it. A rate of Tables 8 and 9 outside its tolerance "
        "is called explained if it is between the rates of the two loops, or within the tolerance "
        "of that range.",
    ]


def _rates(runs: Runs, wanted: Setting) -> list[Row]:
    """Return the rates of a setting's size intervals, at 50 ms and with the shorter RTT."""
    rows = []
    for line in published.table(9).lines_with(
        distribution=wanted.distribution, buffer_pkts=wanted.buffer_pkts
    ):
        low = int(line["low_pkts"])
        quantity = f"rate of {interval_text(low, line.whole('high_pkts'))}"
        for each in (wanted, shorter_loop(wanted)):
            label = (_loop(each), line["distribution"], line["buffer_pkts"], quantity)
            rate = interval_rate(interval_cells(runs[each], low))
            rows.append(Row.of(label, "kbit/s", line.printed("rate_kbps"), rate))
    return rows
