"""The phase of the loop: Tables 7 to 9 with other round-trip times.

With equal round-trip times, each packet that an ack releases arrives at the full buffer at the same
phase: the same time after the last departure from the bottleneck. The phase is RTT0 minus the
transmission time of a packet, modulo the transmission time of 1.2 ms. With RTT0 = 50 ms the phase
is 0.8 ms, and a retransmission 1 s later arrives exactly at a departure. The simulator processes
the departure first, which frees a slot. In the paper's simulator, rounding of the clock may change
the order of the two events. Runs with other RTTs show how much the results depend on the phase.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers.engset import published
from tcpcast_papers.engset.comparison_rows import (
    LOSSY_BUFFERS_PKTS,
    TRIED_RTTS_MS,
    interval_rate_reader,
    with_rtt,
)
from tcpcast_papers.engset.losses import TABLE7_READERS, WINDOW_44
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.engset.runs import Runs, SampleSizes
    from tcpcast_papers.engset.sample import Sample
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.published import Line

SCANNED_RTTS_MS = (49.1, 49.2, 49.4, 49.6, 49.7, 49.8048, 49.9, 49.95, 50)
"""RTTs of the scan. They cover most phases: phases repeat every 1.2 ms of RTT."""

MIN_RTOS_MS = {"1 ns shorter": 999.999_999, "1.1 ms longer": 1001.1}
"""Minimum RTOs that expire shortly before a departure instead of at the same time; departures are
1.2 ms apart."""

_QUANTITIES = ("TO per dropped packet", "TOTO per TO", "time TO per TO", "TD per dropped packet")
_LONGEST_FILE_PKTS = 256
"""Longest files whose rates count in the mean difference; few files are longer."""


def _lossy_setting(buffer_pkts: int, distribution: str) -> Setting:
    return replace(WINDOW_44, buffer_pkts=buffer_pkts, distribution=distribution)


_SETTINGS = tuple(
    _lossy_setting(buffer, name) for name in ("EE(7)", "EP") for buffer in LOSSY_BUFFERS_PKTS
)


def _scanned_rtts_ms(sizes: SampleSizes) -> tuple[float, ...]:
    return (*sorted(TRIED_RTTS_MS), 50) if sizes.sparse else SCANNED_RTTS_MS


def _settings_by_phase(sizes: SampleSizes) -> dict[str, Setting]:
    """Return the setting of Table 7 at each phase, and at 50 ms with other timeouts."""
    return {f"RTT {rtt:g} ms": with_rtt(WINDOW_44, rtt) for rtt in _scanned_rtts_ms(sizes)} | {
        f"RTT 50 ms, RTO {name}": replace(WINDOW_44, min_rto_ms=least)
        for name, least in MIN_RTOS_MS.items()
    }


def request(runs: Runs) -> None:
    """Request Tables 8 and 9 at other phases, and Table 7 with other timeouts."""
    runs.request(_settings_by_phase(runs.sample_sizes).values(), checked=True, plotted=False)
    for rtt_ms in {*_scanned_rtts_ms(runs.sample_sizes), *TRIED_RTTS_MS}:
        runs.request((with_rtt(each, rtt_ms) for each in _SETTINGS), checked=True, plotted=False)


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return the scan of the phase."""
    section = Section("The phase of the loop", ("loop", "table", "quantity"))
    for loop, each in _settings_by_phase(runs.sample_sizes).items():
        for quantity in _QUANTITIES:
            unit = published.published_table(7).line_with(quantity=quantity)["unit"]
            section.rows.append(
                runs.sample(each).row((loop, "7", quantity), unit, None, TABLE7_READERS[quantity])
            )
    for rtt_ms in _scanned_rtts_ms(runs.sample_sizes):
        section.rows += _rms_difference_rows(runs, rtt_ms)
    section.remarks = _repeated_timeout_remarks(runs)
    return [section]


def _rms_difference_rows(runs: Runs, rtt_ms: float) -> list[Row]:
    """Return the root mean square difference in % between printed rates and rates at a phase."""
    loop = f"RTT {rtt_ms:g} ms"
    what = f"rms difference of the rates, files up to {_LONGEST_FILE_PKTS} packets"
    rows = []
    for each in _SETTINGS:
        sample = runs.sample(with_rtt(each, rtt_ms))
        cells = {"distribution": each.distribution, "buffer_pkts": each.buffer_pkts}
        tables = {"9": published.published_table(9).lines_with(**cells)}
        if each == WINDOW_44:
            tables = {"8": published.published_table(8).lines, **tables}
        for number, lines in tables.items():
            name = f"{each.distribution}, B = {each.buffer_pkts}: {what}"
            rows.append(
                Row((loop, number, name), "%", None, _rms_difference_percent(sample, lines))
            )
    return rows


def _rms_difference_percent(sample: Sample, lines: tuple[Line, ...]) -> float:
    gaps = [
        sample.mean(interval_rate_reader(int(line["low_pkts"]))) / line.value("rate_kbps") - 1
        for line in lines
        if line["low_pkts"]
        and (line.integer("high_pkts") or _LONGEST_FILE_PKTS + 1) <= _LONGEST_FILE_PKTS
    ]
    return 100 * float(np.sqrt(np.mean(np.square(gaps))))


def _repeated_timeout_remarks(runs: Runs) -> list[str]:
    read = TABLE7_READERS["TOTO per TO"]
    repeated = {
        loop: f"{runs.sample(each).mean(read):.1f}"
        for loop, each in _settings_by_phase(runs.sample_sizes).items()
    }
    sooner, later = (repeated[f"RTT 50 ms, RTO {name}"] for name in MIN_RTOS_MS)
    return [
        "Departures from the full buffer are 1.2 ms apart. With equal RTTs, each packet that an "
        "ack releases reaches the buffer at the same phase, the time since the last departure. The "
        "phase is 0.8 ms for an RTT of 50 ms. A retransmission after 1 s arrives at the instant of "
        "a departure. The simulator processes the departure first, so the retransmission is hardly "
        f"ever lost: {repeated['RTT 50 ms']} % TOTO. If the timeout is one nanosecond shorter, "
        f"repeated timeouts (TOTO) are frequent: {sooner} %. A timeout longer by 1.1 ms gives "
        f"{later} %, an RTT without the acks' transmission (49.8048 ms) "
        f"{repeated['RTT 49.8048 ms']} %; the printed value is 9.9 %. The last bit of a "
        "floating-point clock can change the order of the two events.",
        "A lost retransmission stalls its file for another 2 s. Most such files are small, and "
        "large files get their share of the buffer. At RTTs near 49.7 ms the rates of Tables 8 and "
        "9 are closest to the printed ones. No single RTT gives all values of Table 7, so the "
        "tables keep the paper's RTT of 50 ms. A value outside its tolerance is called explained "
        "if it is between those at 50 ms and at one of "
        f"{', '.join(f'{rtt:g}' for rtt in TRIED_RTTS_MS)} ms, or within the tolerance of that "
        "range.",
        "The packaged scenario web-10mbit has the same RTT, rates and minimum RTO, so its "
        "retransmissions also arrive at the instants of departures.",
    ]
