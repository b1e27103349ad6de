"""What the tables of losses owe to the phase of the loop: Tables 7 to 9 with a shorter RTT."""

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
"""Least timeouts that end just before a departure, these being 1.2 ms apart, and not with one."""

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
    """Return the setting of Table 7 at 50 ms, with other timeouts, and with the shorter loop."""
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
    """Ask for Tables 8 and 9 with a shorter loop, and for Table 7 with a later timeout."""
    settings = [
        _lossy(buffer, distribution) for distribution in _DISTRIBUTIONS for buffer in BUFFERS_PKTS
    ]
    runs.request(settings, checked=True)
    runs.request(map(shorter_loop, settings), checked=True)
    runs.request(_phases().values(), checked=True)


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return Tables 7 and 9 at the phases."""
    section = Section("The phase of the loop", ("loop", "distribution", "B", "quantity"))
    for name, each in _phases().items():
        own = recovery_figures(runs[each])
        for quantity in _QUANTITIES:
            line = published.table(7).one(quantity=quantity)
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
        "With equal round-trip times every packet that an ack releases comes to the full buffer at "
        "one phase between two departures, which are 1.2 ms apart: at 50 ms, 0.8 ms after the one "
        "before. A retransmission 1 s after the last sending is 0.4 ms further on: it comes at the "
        "very instant of a departure. The departure goes first, in the paper as here, and so the "
        f"retransmission is hardly ever lost: {exact} % TOTO. With a timeout shorter by a "
        f"nanosecond it finds the buffer full, and timeouts follow timeouts: {sooner} %; longer by "
        f"1.1 ms: {later} %; with a loop shorter by the {ACKS_MS:.3f} ms that the acks take to be "
        f"sent: {shorter} %; in print: {published.table(7).one(quantity='TOTO per TO')['measured']}"
        " %. The last bit of a clock in floating point is enough to undo such a tie.",
        "A lost retransmission stalls its file for 2 s more, most often a small one, and leaves "
        "room to the large: with the shorter loop small files lose more packets, large ones fewer. "
        "The paper's rates of size intervals lie between the two loops or near the shorter one, "
        "and under heavy loss mean no more than this. The setting stays as the paper gives it; a "
        "rate of Tables 8 and 9 outside its tolerance is called explained if it lies between the "
        "two loops, or within the tolerance of that.",
    ]


def _rates(runs: Runs, wanted: Setting) -> list[Row]:
    """Return the rates of a setting's size intervals, at 50 ms and with the shorter loop."""
    rows = []
    for line in published.table(9).where(
        distribution=wanted.distribution, buffer_pkts=wanted.buffer_pkts
    ):
        low = int(line["low_pkts"])
        quantity = f"rate of {interval_text(low, line.whole('high_pkts'))}"
        for each in (wanted, shorter_loop(wanted)):
            label = (_loop(each), line["distribution"], line["buffer_pkts"], quantity)
            rate = interval_rate(interval_cells(runs[each], low))
            rows.append(Row.of(label, "kbit/s", line.printed("rate_kbps"), rate))
    return rows
