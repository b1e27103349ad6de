"""Base RTT of the simulations, whose last microsecond decides the order of events under overload.

If the buffer is full, a packet of a source arrives at a fixed time after a departure: the RTT plus
the transmission time of a packet, modulo the transmission time of 1.2 ms. With an RTT of 50 ms, a
retransmission 1 s later arrives exactly at a departure. The simulator processes the departure
first, which frees a slot, so the retransmission is hardly ever lost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers.engset import published
from tcpcast_papers.engset.comparison_rows import AVERAGES, interval_rate_reader
from tcpcast_papers.engset.losses import TABLE7_READERS, WINDOW_44
from tcpcast_papers.reproduction import Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.sample import Read, Sample
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.reproduction import Section

OTHER_RTTS_MS = (50.0, 49.999)
"""RTT0, with which retransmissions after 1 s meet departures, and an RTT that is 1 us shorter."""

_TABLE7_QUANTITIES = (
    "TO per dropped packet",
    "TOTO per TO",
    "time TO per TO",
    "TD per dropped packet",
)
_LOSSY_BUFFERS_PKTS = (50, 75, 100, 150)
_LONGEST_FILE_PKTS = 256
"""Longest files whose rates count in the rms difference; few files are longer."""


def _lossy_setting(distribution: str, buffer_pkts: int) -> Setting:
    return replace(WINDOW_44, buffer_pkts=buffer_pkts, distribution=distribution)


_RATE_SETTINGS = tuple(_lossy_setting(name, b) for name in ("EE(7)", "EP") for b in (50, 150))
"""Settings of Tables 8 and 9 with losses."""
_LOSS_SETTINGS = tuple(_lossy_setting(d, b) for d in ("EE(7)", "E") for b in _LOSSY_BUFFERS_PKTS)
"""Settings of Table 10 with a loss of more than 3 %."""


def request(runs: Runs) -> None:
    """Request Tables 7 to 10 with the other RTTs."""
    settings = {*_RATE_SETTINGS, *_LOSS_SETTINGS}
    runs.request(settings, checked=True, plotted=False)
    for rtt_ms in OTHER_RTTS_MS:
        changed = (replace(each, base_rtt_ms=rtt_ms) for each in settings)
        runs.request(changed, checked=True, plotted=False)


def _section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "The base RTT of 10M2M",
        ("table", "quantity"),
        others=tuple(f"{rtt:g} ms" for rtt in OTHER_RTTS_MS),
    )
    for quantity in _TABLE7_QUANTITIES:
        section.rows += runs.row(("7", quantity), _table7_row, runs, quantity)
    for each in _RATE_SETTINGS:
        name = f"{each.distribution}, B = {each.buffer_pkts}"
        text = f"{name}: rms difference of the rates, files up to {_LONGEST_FILE_PKTS} packets"
        cells = {"distribution": each.distribution, "buffer_pkts": each.buffer_pkts}
        make = partial(
            _rms_difference_row,
            runs,
            ("9", text),
            [
                (each, interval_rate_reader(int(line["low_pkts"])), line.value("rate_kbps"))
                for line in published.published_table(9).lines_with(**cells)
                if (line.integer("high_pkts") or _LONGEST_FILE_PKTS + 1) <= _LONGEST_FILE_PKTS
            ],
        )
        section.rows += runs.row(("9", text), make)
    text = f"rms difference of the losses, B up to {_LOSSY_BUFFERS_PKTS[-1]} packets"
    make = partial(_rms_difference_row, runs, ("10", text), _printed_losses())
    section.rows += runs.row(("10", text), make)
    section.remarks = [
        f"All tables use {WINDOW_44.simulated_rtt_ms:g} ms, the RTT0 of 50 ms without the "
        "transmission times of acks. The paper's text adds up the transmission times of data "
        "packets, and does not state whether its simulator transmits acks.",
        "Departures from the full buffer are 1.2 ms apart. With an RTT of exactly 50 ms, a "
        "retransmission after 1 s arrives at the instant of a departure, after which a slot is "
        "free, so repeated timeouts (TOTO) are rare. With an RTT that is one microsecond shorter, "
        "the retransmission arrives before the departure. The last bit of a floating-point clock "
        "can have the same effect. A lost retransmission stalls its file for another 2 s. Most "
        "stalled files are small, so large files occupy more of the buffer.",
        "The packaged scenario web-10mbit has an RTT of exactly 50 ms, so its retransmissions "
        "arrive at the instants of departures.",
    ]
    return section


def _table7_row(runs: Runs, quantity: str) -> Row:
    line = published.published_table(7).line_with(quantity=quantity)
    own, *others = (
        sample.mean(TABLE7_READERS[quantity]) for sample in _samples_by_rtt(runs, WINDOW_44)
    )
    note = f"published: {line['measured']}"
    return Row(("7", quantity), line["unit"], None, own, note=note, others=tuple(others))


def _samples_by_rtt(runs: Runs, each: Setting) -> Iterator[Sample]:
    for rtt_ms in (None, *OTHER_RTTS_MS):
        yield runs.sample(replace(each, base_rtt_ms=rtt_ms))


_PrintedValues = list[tuple["Setting", "Read", float]]
"""Settings, how to read a value from an answer, and the printed value."""


def _printed_losses() -> _PrintedValues:
    column, _, read = AVERAGES["loss"]
    return [
        (each, read, line.value(column))
        for each in _LOSS_SETTINGS
        for line in published.published_table(10).lines_with(
            distribution=each.distribution, buffer_pkts=each.buffer_pkts
        )
    ]


def _rms_difference_row(runs: Runs, label: tuple[str, str], values: _PrintedValues) -> Row:
    """Return the root mean square relative difference from printed values, in %, for each RTT."""
    gaps = [
        [sample.mean(read) / printed - 1 for sample in _samples_by_rtt(runs, each)]
        for each, read, printed in values
    ]
    own, *others = 100 * np.sqrt(np.mean(np.square(gaps), axis=0))
    return Row(label, "%", None, float(own), others=tuple(map(float, others)))


SECTIONS = (_section,)
