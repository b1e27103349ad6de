"""Reads the output of ``iperf3 -J``."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.flow_log import (
    MAX_FLOWS,
    LoggedFlow,
    fills_window,
    limit_of_full_window,
    rate_to_loss_models,
)
from tcpcast.captures.table import endpoint_text
from tcpcast.process.errors import CaptureError
from tcpcast.process.json_file import number, rows, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator

MIN_TARGET_SHARE = 0.9
"""Minimum ratio of the rate to the target of ``-b`` for the sender to be limited by it."""
MAX_USED_WINDOW_SHARE = 0.5
"""Ratio of the bytes per RTT to the windows below which the sender had too few data."""
MAX_STEADY_VARIATION = 0.2
"""Maximum coefficient of variation of the rates of intervals for a steady rate. Full
links have 0.03 to 0.12."""
MAX_NAME_LENGTH = 255
DEFAULT_SEGMENT_BYTES = 1448
REMARK = (
    "p is the ratio of retransmissions, because iperf3 reports no loss indications; p exceeds "
    "the ratio of loss indications if several packets of a window are lost. tcpcast infers the "
    "limit from rate, RTT and windows; ss -tin on the sender also shows how long each limit "
    "applied"
)


def read_iperf3(content: str, file: str) -> tuple[list[LoggedFlow], list[str]]:
    """Return the flows of a test, and warnings.

    Parameters
    ----------
    content
        The output of ``iperf3 -J``, of the client or of the server, with one or more tests.
    file
        Its name, for errors.

    Raises
    ------
    CaptureError
        The text is not valid JSON, not from iperf3, or the test has no TCP data.
    """
    flows: list[LoggedFlow] = []
    warnings: list[str] = []
    for document in _documents(content, file):
        flows += _Test(document, file).flows(warnings)
        if len(flows) > MAX_FLOWS:
            raise CaptureError(
                f"the log contains more than {MAX_FLOWS:,} streams; split it", file=file
            )
    return flows, list(dict.fromkeys([*warnings, REMARK]))


def _documents(content: str, file: str) -> Iterator[Any]:
    """Yield the JSON documents, one per test; a server prints several."""
    decoder, at = json.JSONDecoder(), 0
    streamed: list[dict[str, Any]] = []
    while at < len(content):
        try:
            document, at = decoder.raw_decode(content, at)
        except json.JSONDecodeError as error:
            raise CaptureError(
                f"this is not valid JSON: {error.msg} in line {error.lineno}; check that the "
                "output of iperf3 -J is complete",
                file=file,
            ) from None
        except (RecursionError, ValueError):
            raise CaptureError(
                "the JSON is nested too deeply, or a number is too long", file=file
            ) from None
        if isinstance(document, dict) and "event" in document:
            # Add a line of ``iperf3 --json-stream`` to the tests.
            name, data = document["event"], document.get("data")
            if name == "start" or not streamed:
                streamed.append({"start": {}, "intervals": [], "end": {}})
            if name == "interval":
                streamed[-1]["intervals"].append(data)
            elif name in ("start", "end", "error"):
                streamed[-1][name] = data
        elif isinstance(document, dict) and "start" in document:
            yield document
        else:
            raise CaptureError(
                "this is JSON, but not from iperf3 -J: the key start is missing", file=file
            )
        while at < len(content) and content[at].isspace():
            at += 1
    yield from streamed


class _Test:
    """One test; values of unexpected type or range count as unknown."""

    def __init__(self, document: dict[str, Any], file: str) -> None:
        self.file = file
        self.start = table(document.get("start"))
        self.setup = table(self.start.get("test_start"))
        self.end = table(document.get("end"))
        self.intervals = [table(each) for each in rows(document.get("intervals"))]
        self.error = document.get("error")

    def flows(self, warnings: list[str]) -> list[LoggedFlow]:
        """Return one flow per stream."""
        protocol = self.setup.get("protocol", "TCP")
        if protocol != "TCP":
            raise CaptureError(
                f"a test of {str(protocol)[:20]}, not of TCP; run iperf3 without -u",
                file=self.file,
            )
        by_socket: dict[Any, list[dict[str, Any]]] = {}
        for interval in self.intervals:
            for stream in map(table, rows(interval.get("streams"))):
                if stream.get("omitted") is not True and isinstance(stream.get("socket"), int):
                    by_socket.setdefault(stream["socket"], []).append(stream)
        totals = {}
        for total in map(table, rows(self.end.get("streams"))):
            ends = [table(total.get(name)) for name in ("sender", "receiver")]
            socket = next((e["socket"] for e in ends if isinstance(e.get("socket"), int)), None)
            totals[socket] = ends
        found = [
            self._flow(socket, streams, *totals.get(socket, ({}, {})))
            for socket, streams in by_socket.items()
        ]
        flows = [flow for flow in found if flow.unique_bytes > 0]
        if not flows:
            raise CaptureError(
                f"iperf3 failed{self._error_text()}; repeat the test"
                if self.error is not None
                else "the test of iperf3 contains no interval with data; repeat the test",
                file=self.file,
            )
        if self.error is not None or not totals:
            warnings.append(f"the test did not end normally{self._error_text()}")
        if not all(flow.is_measured_by_sender for flow in flows):
            warnings.append(
                "the receiver wrote the log of some streams, so their RTT and windows are unknown; "
                "use the log of the sender (iperf3 -s -J at the server)"
            )
        return flows

    def _error_text(self) -> str:
        reason = text(self.error)
        return f" ({reason})" if reason else ""

    def _flow(
        self,
        socket: int,
        streams: list[dict[str, Any]],
        sender: dict[str, Any],
        receiver: dict[str, Any],
    ) -> LoggedFlow:
        is_sender = any(stream.get("sender") is True for stream in streams)
        rates = np.array([number(stream.get("bytes")) for stream in streams])
        times = np.array([number(stream.get("seconds")) for stream in streams])
        received = number(receiver.get("bytes"))
        total = received if received > 0 else float(np.nansum(rates))
        seconds = number((sender if is_sender else receiver).get("seconds"))
        seconds = seconds if seconds > 0 and (received > 0) else float(np.nansum(times))
        lost = [number(stream.get("retransmits")) for stream in streams]
        retransmissions = float(np.nansum(lost)) if is_sender else number(sender.get("retransmits"))
        rtt = np.array([number(stream.get("rtt")) for stream in streams]) * 1e-6
        rtt = rtt[rtt > 0]
        window = np.array([number(stream.get("snd_wnd")) for stream in streams])
        congestion = np.array([number(stream.get("snd_cwnd")) for stream in streams])
        ends = self._ends(socket)
        control = self.end.get("sender_tcp_congestion")
        flow = LoggedFlow(
            *(ends if is_sender else ends[::-1]),
            seconds=seconds,
            unique_bytes=total,
            segment_bytes=number(self.start.get("tcp_mss_default")) or DEFAULT_SEGMENT_BYTES,
            is_measured_by_sender=is_sender,
            start_ns=self._start_ns(),
            retransmissions=retransmissions,
            rtt_s=float(rtt.mean()) if rtt.size else math.nan,
            rtt_min_s=float(rtt.min()) if rtt.size else math.nan,
            window_bytes=float(np.nanmax(window)) if (window > 0).any() else math.nan,
            control=control if isinstance(control, str) else "",
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            bps = 8 * rates / times
        flow.limited_by = self._limit(flow, bps[np.isfinite(bps)], congestion[congestion > 0])
        if flow.rtt_s > 0 and seconds > 0:
            flow.flight_bytes = total / seconds * flow.rtt_s
        if flow.limited_by == "bottleneck":
            flow.link_bps = 8 * total / seconds
        return flow

    def _limit(self, flow: LoggedFlow, bps: Any, congestion: Any) -> str:
        """Return the limit of a stream by its rate, RTT and windows."""
        if not bps.size or not flow.seconds > 0:
            return "unknown"
        rate = 8 * flow.unique_bytes / flow.seconds
        target = number(self.setup.get("target_bitrate"))
        if target > 0 and rate >= MIN_TARGET_SHARE * target:
            return "application"
        if not flow.rtt_s > 0 or not congestion.size:
            return "unknown"
        per_rtt, window = rate / 8 * flow.rtt_s, flow.window_bytes
        largest = float(congestion.max())
        if window <= largest and fills_window(per_rtt, window):
            return "receiver_window"
        mean = float(congestion.mean())
        is_small = per_rtt < MAX_USED_WINDOW_SHARE * min(mean, window if window > 0 else math.inf)
        if is_small:
            return "send_buffer" if number(self.start.get("sock_bufsize")) > 0 else "application"
        later = bps[1:]  # without slow start
        steady = later.size > 1 and float(later.std()) <= MAX_STEADY_VARIATION * float(later.mean())
        return limit_of_full_window(
            control=flow.control,
            rtt_s=flow.rtt_s,
            rtt_min_s=flow.rtt_min_s,
            retransmissions=flow.retransmissions,
            is_steady=steady,
            rate_to_loss_models=rate_to_loss_models(flow),
        )

    def _ends(self, socket: int) -> tuple[str, str]:
        """Return the local and the remote end point of a stream."""
        for each in map(table, rows(self.start.get("connected"))):
            if each.get("socket") == socket:
                return _end(each, "local"), _end(each, "remote")
        return "this host", f"stream {socket}"

    def _start_ns(self) -> int | None:
        seconds = number(table(self.start.get("timestamp")).get("timesecs"))
        return int(seconds) * 1_000_000_000 if 0 < seconds < 9e9 else None


def _end(connected: dict[str, Any], which: str) -> str:
    port = connected.get(f"{which}_port")
    name = text(connected.get(f"{which}_host"), MAX_NAME_LENGTH)
    return endpoint_text(name, port if isinstance(port, int) and 0 <= port < 1 << 16 else 0)
