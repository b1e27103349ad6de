"""Statements for which the paper has no table: pacing by the ingress link, short bursts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast_papers.engset.losses import WINDOW_44, drop_share
from tcpcast_papers.engset.rates import setting_with_window_and_load
from tcpcast_papers.engset.sample import interval_reader, metric_reader
from tcpcast_papers.engset.settings import read_setting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.reproduction import Row, Section

BURST_PKTS = 2
_SMALL_FILES_LOW_PKTS = 3
"""Start of the interval of small files."""


def paced_setting(each: Setting) -> Setting:
    """Return the setting with the rates of 2M10M100M: the ingress link paces the packets."""
    return replace(each, ingress="2mbit", egress="100mbit")


def _figure13_settings() -> Iterator[Setting]:
    for sources in (66, 98):
        for tail in ("E-W44", "EE(7)-W44", "EE(7)-W12"):
            yield read_setting(f"F12-N{sources}-10M2M-R50-{tail}-B200")


def _window_pairs() -> Iterator[tuple[Setting, Setting]]:
    """Yield the setting of Table 4 with slow egress or ingress links, with both windows."""
    wide = replace(setting_with_window_and_load(12, "EE(7)", 44, 1.0), egress="2mbit")
    for each in (wide, paced_setting(wide)):
        yield each, replace(each, receiver_window_pkts=12)


def request(runs: Runs) -> None:
    """Request the changed settings, and the settings with which they are compared."""
    settings = [WINDOW_44, paced_setting(WINDOW_44), replace(WINDOW_44, max_burst_pkts=BURST_PKTS)]
    settings += [each for pair in _window_pairs() for each in pair]
    settings += [each for base in _figure13_settings() for each in (base, paced_setting(base))]
    runs.request(settings, checked=True, plotted=False)


def _pacing_section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "Packets paced by the ingress link: 2M10M100M-R50", ("setting", "quantity")
    )
    for each in (WINDOW_44, paced_setting(WINDOW_44)):
        section.rows += runs.sample(each).rows(
            (each.name, "drops of packet 2 per drop of packet 1"),
            "1",
            None,
            lambda answer: drop_share(answer, 2) / drop_share(answer, 1),
        )
    section.rows += _change_rows(runs, WINDOW_44, paced_setting(WINDOW_44))
    for each in _figure13_settings():
        change = runs.sample(paced_setting(each)).paired(runs.sample(each))
        label = (paced_setting(each).name, "change of the mean queue")
        section.rows += change.rows(label, "%", None, metric_reader("queue_mean_pkts"))
    for wide, narrow in _window_pairs():
        change = runs.sample(wide).paired(runs.sample(narrow))
        label = (wide.name, "3-6: change of the ON time from WR = 12 to 44")
        read = interval_reader(_SMALL_FILES_LOW_PKTS, "on_time_s")
        section.rows += change.rows(label, "%", None, read)
    section.remarks = [
        "The paper prints no numbers for this setting. It states that queues are almost "
        "indiscernible from those of 10M2M, that loss and rate are similar, and that the second "
        "packet is not dropped more often than the first (sections 5.2, 5.4.2 and 5.4.3). Changes "
        "are relative to 10M2M.",
    ]
    return section


def _burst_section(runs: Runs, _: Path) -> Section:
    section = runs.section(f"Bursts of at most {BURST_PKTS} packets", ("setting", "quantity"))
    section.rows = _change_rows(runs, WINDOW_44, replace(WINDOW_44, max_burst_pkts=BURST_PKTS))
    section.remarks = [
        f"{WINDOW_44.name} with tcp.rules.max_burst = {BURST_PKTS}. According to section 5.4.3, "
        "the limit does not improve the performance significantly.",
    ]
    return section


def _change_rows(runs: Runs, base: Setting, changed: Setting) -> list[Row]:
    """Return the changes of loss, rate and ON time in %."""
    change = runs.sample(changed).paired(runs.sample(base))
    return [
        row
        for name, key in (
            ("loss", "loss_ratio"),
            ("rate", "connection_rate_bps"),
            ("ON time", "on_time_s"),
        )
        for row in change.rows(
            (changed.name, f"change of the {name}"), "%", None, metric_reader(key)
        )
    ]


SECTIONS = (_pacing_section, _burst_section)
