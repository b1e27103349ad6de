"""Reads results of flent: ``NAME.flent.gz``, versions 3 and 4 of its format."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tcpcast.measurements.line_test import (
    DOWN,
    STACKS,
    STAND_INS,
    UP,
    FlowGroup,
    LineTest,
    group_of_series,
)
from tcpcast.measurements.traffic_shaping import Qdisc, parse_qdiscs, shaped_link
from tcpcast.process.errors import CaptureError
from tcpcast.process.json_file import number, read_json, rows, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSIONS = (3, 4)
MAX_FLOWS = 2000
MAX_LINE = 2000
"""Most characters of a line of ``tc`` that are read."""

_FLOW = re.compile(r"TCP (upload|download)(?![a-z])(.*)", re.ASCII)
_COMBINED = re.compile(r"\s(?:avg|sum|fairness)\b")
_TCP_EXTRAS = re.compile(r"::[a-z]\w*$", re.ASCII)
MAX_LENGTH_S = 1_000_000
"""Longest test; more is a damaged time."""
MAX_RTT_S = 1000.0
"""Largest RTT of a ping that counts."""

WARMUP_SHARE = 1 / 3
"""Share of the load that is left out: its ssthresh may come from earlier tests (tcp_metrics)."""

_INFORMATIVE = ("Ping", "TCP", "cpu_stats", "qdisc_stats", "wifi_stats", "iface_stats")


def read_series_rates(path: Path) -> dict[str, float]:
    """Return the rate of each flow after the warm-up by its name, in bit/s.

    Raises
    ------
    CaptureError
        As for :func:`read_flent`.
    """
    return _open(path).rates_bps()


def read_flent(path: Path) -> LineTest:
    """Return the test of a file of flent.

    Raises
    ------
    CaptureError
        The file is damaged, too large, of another version or without flows of TCP.
    """
    return _open(path).read()


def _open(path: Path) -> _Reader:
    document = read_json(path, "flent")
    file = str(path)
    metadata, results = table(document.get("metadata")), table(document.get("results"))
    if not metadata or not results:
        raise CaptureError(
            "the JSON is not from flent: metadata and results are missing", file=file
        )
    version = document.get("version")
    if version not in VERSIONS:
        shown = version if isinstance(version, int) else "of this file"
        raise CaptureError(
            f"version {shown} of flent's format is not supported; use a file of flent 0.12 or "
            "later (versions 3 and 4)",
            file=file,
        )
    return _Reader(document, metadata, results, file)


class _Reader:
    """The parts of a document; values of unexpected type or range count as unknown."""

    def __init__(
        self, document: dict[str, Any], metadata: dict[str, Any], results: dict[str, Any], file: str
    ) -> None:
        self.metadata, self.results, self.file = metadata, results, file
        self.raw = table(document.get("raw_values"))
        self.series = table(metadata.get("SERIES_META"))
        self.x = [number(x) for x in rows(document.get("x_values"))]
        self.remote = [table(each) for each in table(metadata.get("REMOTE_METADATA")).values()]
        self.notes: list[str] = []
        self.begin = _unix_time(metadata.get("T0"))
        self.flow_samples = self._read_flow_samples()
        times = [each for samples in self.flow_samples.values() for each in samples]
        self.start_s = min((begin for begin, _, _ in times), default=0.0)
        self.end_s = max((end for _, end, _ in times), default=0.0)
        if self.end_s - self.start_s > MAX_LENGTH_S:
            raise CaptureError(
                f"the times of the flows span {self.end_s - self.start_s:.3g} s, but a test takes "
                f"at most {MAX_LENGTH_S} s; repeat the test",
                file=file,
            )
        self.warmed_s = self.start_s + WARMUP_SHARE * (self.end_s - self.start_s)

    def read(self) -> LineTest:
        """Return the test."""
        rates = self.rates_bps()
        if not any(rate > 0 for rate in rates.values()):
            raise CaptureError(
                "no TCP flow has a rate above 0 (null and NaN do not count); use a test such as "
                "rrul or tcp_nup",
                file=self.file,
            )
        test = text(self.metadata.get("NAME"), 60)
        title = text(self.metadata.get("TITLE"), 120)
        idle_s, loaded = self._pings()
        flows = self._groups(rates)
        others = sorted(
            {name.split("::")[0] for name in self.results if not name.startswith(_INFORMATIVE)}
        )
        if others:
            listed = ", ".join(text(name, 30) for name in others[:3])
            self.notes.append(f"tcpcast does not simulate this traffic: {listed}")
        return LineTest(
            "flent",
            " ".join(filter(None, (test, title))),
            self.end_s - self.start_s,
            flows,
            loaded,
            idle_s,
            warmup_s=self.warmed_s - self.start_s,
            links=self._links(),
            ecn=number(table(self.metadata.get("SYSCTLS")).get("net.ipv4.tcp_ecn")) == 1,
            paced=self._paced(),
            kernels=self._kernels(),
            offloads=self._has_offloads(),
            notes=self.notes,
        )

    def rates_bps(self) -> dict[str, float]:
        """Return the rate of each flow after the warm-up by its name.

        The mean of flent's plotted series differs, because it gives each sample the same weight,
        however long it lasts. It can therefore exceed the link rate.
        """
        return {name: self._rate_bps(name) for name, _ in self.flow_names()}

    def _rate_bps(self, name: str) -> float:
        samples = self.flow_samples.get(name, [])
        amount = math.fsum(
            rate * max(0.0, end - max(begin, self.warmed_s)) for begin, end, rate in samples
        )
        # The sender stops a little before or after the others.
        last = max((end for _, end, _ in samples), default=self.warmed_s)
        seconds = last - max(self.warmed_s, min((begin for begin, _, _ in samples), default=last))
        return amount / seconds if seconds > 0 else 0.0

    def _read_flow_samples(self) -> dict[str, list[tuple[float, float, float]]]:
        """Return begin and end of each sample of each flow in seconds, and its rate in bit/s."""
        found = {}
        for name, _ in self.flow_names():
            samples = []
            for sample in map(table, rows(self.raw.get(name))):
                end, lasted = number(sample.get("t")) - self.begin, number(sample.get("dur"))
                rate = 1e6 * number(sample.get("val"))
                if lasted > 0 and rate >= 0 and not math.isnan(end):
                    samples.append((end - lasted, end, rate))
            found[name] = samples or list(self._plotted_samples(name))
        return found

    def _plotted_samples(self, name: str) -> Iterator[tuple[float, float, float]]:
        """Yield the values of the plot as samples, for files without the samples themselves."""
        previous = math.nan
        for x, value in zip(self.x, map(number, rows(self.results.get(name))), strict=False):
            if value >= 0 and x > previous:
                yield previous, x, 1e6 * value
            previous = x

    def _groups(self, rates: dict[str, float]) -> dict[FlowGroup, list[float]]:
        """Return the rates of the flows by group, and note what is not simulated."""
        flows: dict[FlowGroup, list[float]] = {}
        silent, others = 0, set()
        for name, match in self.flow_names():
            if not rates[name] > 0:
                silent += 1
                continue
            stated = text(table(self.series.get(name)).get("CONG_CONTROL"), 16)
            control = stated or self._default_control(match[1])
            group = group_of_series(match[1], match[2], control.lower())
            if group.control not in STACKS:
                others.add(group.control)
            flows.setdefault(group, []).append(rates[name])
        if silent:
            self.notes.append(
                f"tcpcast omits {silent} of {len(rates)} TCP flows, because they carry no data"
            )
        self.notes += (
            f"tcpcast simulates the congestion control {each} as CUBIC" for each in sorted(others)
        )
        if stand_ins := sorted({group.control for group in flows} & set(STAND_INS)):
            self.notes.append(
                f"tcpcast simulates the congestion control {' and '.join(stand_ins)} as Reno"
            )
        return flows

    def flow_names(self) -> list[tuple[str, re.Match[str]]]:
        """Return the names of flows of TCP, with direction and further words."""
        names = [
            (name, match)
            for name in self.results
            if (match := _FLOW.fullmatch(name))
            and not _COMBINED.search(name)
            and not _TCP_EXTRAS.search(name)
        ]
        if len(names) > MAX_FLOWS:
            raise CaptureError(f"the file contains more than {MAX_FLOWS} TCP flows", file=self.file)
        return names

    def _default_control(self, direction: str) -> str:
        """Return the congestion control of the sending host."""
        host = self.metadata if direction == UP else self._server()
        name = "net.ipv4.tcp_congestion_control"
        return text(table(host.get("SYSCTLS")).get(name), 16) or "cubic"

    def _server(self) -> dict[str, Any]:
        """Return the metadata of the other end of the flows, if it is known."""
        host = self.metadata.get("HOST")
        by_name = table(self.metadata.get("REMOTE_METADATA"))
        for name, each in by_name.items():
            if isinstance(host, str) and host and host in name:
                return table(each)
        return self.remote[0] if len(self.remote) == 1 else {}

    def _pings(self) -> tuple[float, list[float]]:
        """Return the smallest RTT, and the RTTs after the warm-up, of the first ping."""
        names = sorted(
            (name for name in self.results if name.startswith("Ping") and " avg" not in name),
            key=lambda name: ("ICMP" not in name, name),
        )
        for name in names:
            if "::" in name:
                continue
            samples = self._samples(name)
            loaded = [value for x, value in samples if self.warmed_s <= x <= self.end_s]
            if not loaded:
                continue
            before = [value for x, value in samples if x < self.start_s]
            return min(before or [value for _, value in samples]), loaded
        return math.nan, []

    def _samples(self, name: str) -> list[tuple[float, float]]:
        """Return times and RTTs in seconds: each ping, or else the values of the plot."""
        each = [
            (number(sample.get("t")) - self.begin, number(sample.get("val")) / 1e3)
            for sample in map(table, rows(self.raw.get(name)))
            if "seq" in sample
        ]
        values = rows(self.results.get(name))
        plotted = [(x, number(value) / 1e3) for x, value in zip(self.x, values, strict=False)]
        for found in (each, plotted):
            known = [
                (x, value) for x, value in found if 0 < value <= MAX_RTT_S and not math.isnan(x)
            ]
            if known:
                return known
        return []

    def _links(self) -> dict[str, dict[str, Any]]:
        """Return the links of directions with a shaper."""
        ends = [(UP, table(host.get("EGRESS_INFO"))) for host in (self.metadata, *self.remote)] + [
            (DOWN, table(host.get("INGRESS_INFO"))) for host in self.remote
        ]
        links: dict[str, dict[str, Any]] = {}
        for direction, interface in ends:
            link = shaped_link(_qdiscs(interface), _classes(interface))
            if link is not None:
                links.setdefault(direction, link)
        return links

    def _paced(self) -> frozenset[str]:
        """Return the directions whose sender has ``fq`` on its interface."""
        ends = {UP: table(self.metadata.get("EGRESS_INFO"))}
        if server := self._server():
            ends[DOWN] = table(server.get("INGRESS_INFO"))
        return frozenset(
            direction
            for direction, interface in ends.items()
            if any(qdisc.kind == "fq" for qdisc in _qdiscs(interface))
        )

    def _kernels(self) -> dict[str, str]:
        """Return the versions of Linux of the senders, by direction."""
        hosts = {UP: self.metadata, DOWN: self._server()}
        return {
            direction: text(host.get("KERNEL_RELEASE"), 60)
            for direction, host in hosts.items()
            if host.get("KERNEL_NAME") == "Linux" and text(host.get("KERNEL_RELEASE"))[:1].isdigit()
        }

    def _has_offloads(self) -> bool:
        """Return True if the host with the shaper merges packets of a flow."""
        shapers = [
            table(interface.get("offloads"))
            for host in (self.metadata, *self.remote)
            for interface in (table(host.get("EGRESS_INFO")), table(host.get("INGRESS_INFO")))
            if shaped_link(_qdiscs(interface), _classes(interface)) is not None
        ]
        return any(each.get("generic-receive-offload") is True for each in shapers)


def _qdiscs(interface: dict[str, Any]) -> list[Qdisc]:
    """Return the disciplines of an interface, as tc printed them before or after the test."""
    for name in ("tc_stats_pre", "tc_stats_post"):
        lines = (
            each[:MAX_LINE].partition("\n")[0]
            for each in rows(interface.get(name))
            if isinstance(each, str)
        )
        if found := parse_qdiscs(lines):
            return found
    return _parsed(interface.get("qdiscs"))


def _classes(interface: dict[str, Any]) -> list[Qdisc]:
    return _parsed(interface.get("classes"))


def _parsed(values: object) -> list[Qdisc]:
    """Return disciplines or classes whose words flent has stored as pairs, in another order."""
    found = []
    for each in map(table, rows(values)):
        words = (word for pair in table(each.get("params")).items() for word in pair)
        name, handle, parent = (text(each.get(key), 40) for key in ("name", "id", "parent"))
        shown = tuple(filter(None, (text(word, 40) for word in words)))
        found.append(Qdisc(name, handle, parent.removeprefix("root"), shown))
    return found


def _unix_time(value: object) -> float:
    """Return the seconds since 1970 of a time such as ``2016-04-16T18:23:47.473408Z``."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        time = None
    if time is None:
        return 0.0
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
