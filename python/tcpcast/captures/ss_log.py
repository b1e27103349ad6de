"""Reads the output of ``ss -tin``, once or repeatedly.

Linux counts how long each limit applied (``tcp_chrono``): ``busy`` is the time with data to send or
not acknowledged, ``rwnd_limited`` the part of it in which the receive window was full, and
``sndbuf_limited`` the part in which the send buffer was full. The rest of ``busy`` is the time in
which the congestion window or the link was the limit, and the rest of the time the application.
"""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from tcpcast.captures.flow_log import (
    MAX_FLOWS,
    LoggedFlow,
    limit_of_full_window,
    rate_to_loss_models,
)
from tcpcast.process.errors import CaptureError

MAX_SNAPSHOTS = 100_000
MIN_APP_LIMITED_SHARE = 0.5
"""Minimum share of the snapshots with the mark ``app_limited`` and room in the congestion window,
for the application to be the limit of the time in which no window was full."""
MAX_USED_WINDOW_SHARE = 0.8
"""Maximum ratio of the packets in flight to the congestion window for room in it."""
DEFAULT_SEGMENT_BYTES = 1448
REMARK = (
    "p is the ratio of retransmissions, because ss reports no loss indications; p exceeds the "
    "ratio of loss indications if several packets of a window are lost"
)
NO_TIME = (
    "the log does not show the time between snapshots, so rates and shares refer to the time in "
    "which the connection was busy; print the time before each snapshot: date +%s.%N; ss -tin"
)
ONE_SNAPSHOT = (
    "the log contains only one snapshot of a connection, so the values are totals since its start; "
    "repeat ss during the transfer to see what limits the rate"
)

HEADER = re.compile(rb"^\s*(Netid|State|Recv-Q)\s")
_ENDPOINT = re.compile(r"^(\[[0-9a-fA-F:.%\w]+\]|[0-9a-fA-F:.]+(?:%[\w.-]+)?|\*):(\d{1,5}|\*)$")
_NUMBER = re.compile(r"^(\d{1,20}(?:\.\d{1,20})?)")
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE = re.compile(r"^(\d{1,20}(?:\.\d{1,20})?)([KMGT]?)bps$")
_CONTROL = re.compile(r"^[a-z][a-z0-9_-]{1,15}$")
_WORDS = {"ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited", "send", "pacing_rate"}
_WORDS |= {"delivery_rate", "dctcp-fallback", "tcp"}
_PLAIN = (
    "mss", "cwnd", "ssthresh", "bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received",
    "data_segs_out", "lastsnd", "lastrcv", "unacked", "notsent", "minrtt", "snd_wnd",
)  # fmt: skip
"""Keys with a number."""
_FIRST_PART = ("rtt", "retrans", "busy", "rwnd_limited", "sndbuf_limited")
"""Keys with several parts; see :func:`_values_of_line`."""


@dataclass(slots=True)
class _Socket:
    """One socket in one snapshot: numbers by the keys of ss; times in ms as ss prints them."""

    values: dict[str, float]
    control: str
    is_app_limited: bool

    def get(self, name: str, default: float = 0.0) -> float:
        return self.values.get(name, default)


@dataclass(slots=True)
class _Snapshot:
    time_s: float | None = None
    sockets: dict[tuple[str, str], _Socket] = field(default_factory=dict)


def read_ss(text: str, file: str) -> tuple[list[LoggedFlow], list[str]]:
    """Return the flows of a log, and warnings.

    Parameters
    ----------
    text
        One or more outputs of ``ss -tin``, with any further options of ss; a line with the seconds
        since 1970 or a time by ISO 8601 before a snapshot is its time.
    file
        Its name, for errors.

    Raises
    ------
    CaptureError
        A value is not a number, or no socket with information on TCP is listed.
    """
    snapshots = _snapshots(text, file)
    elapsed = _elapsed_s(snapshots)
    histories: dict[tuple[str, str], list[tuple[int, _Socket]]] = {}
    for at, snapshot in enumerate(snapshots):
        for ends, socket in snapshot.sockets.items():
            history = histories.setdefault(ends, [])
            if history and socket.get("bytes_sent") < history[-1][1].get("bytes_sent"):
                history.clear()  # another connection with the same ports
            history.append((at, socket))
            if len(histories) > MAX_FLOWS:
                raise CaptureError(
                    f"the log contains more than {MAX_FLOWS:,} connections; split it", file=file
                )
    warnings: list[str] = []
    flows = [
        flow
        for ends, history in histories.items()
        if (flow := _flow(ends, history, elapsed, warnings)) is not None
    ]
    if not flows:
        raise CaptureError(
            "no connection has sent or received data; run ss -tin during the transfer, and check "
            "that it prints lines with cwnd: and rtt:",
            file=file,
        )
    return flows, list(dict.fromkeys([*warnings, REMARK]))


def _snapshots(text: str, file: str) -> list[_Snapshot]:
    snapshots = [_Snapshot()]
    ends: tuple[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        time = _time_of_line(line)
        if time is not None or HEADER.match(line[:200].encode()):
            if snapshots[-1].sockets:
                snapshots.append(_Snapshot())
                ends = None
            if time is not None:
                snapshots[-1].time_s = time
            continue
        words = line.split()
        found = [word for word in words[:8] if _ENDPOINT.match(word)]
        if len(found) >= 2 and not line[:1].isspace():
            ends = found[0], found[1]
        if ends is None or not any(word.startswith(("cwnd:", "rtt:")) for word in words):
            continue
        if ends in snapshots[-1].sockets:  # without a header, the list begins again
            snapshots.append(_Snapshot())
        if len(snapshots) > MAX_SNAPSHOTS:
            raise CaptureError(
                f"the log contains more than {MAX_SNAPSHOTS:,} snapshots; split it", file=file
            )
        snapshots[-1].sockets[ends] = _values_of_line(words, f"{file}:{number}")
        ends = None
    return [snapshot for snapshot in snapshots if snapshot.sockets]


def _time_of_line(line: str) -> float | None:
    """Return the time that a line consists of, in seconds since 1970."""
    text = line.strip()
    if not 8 <= len(text) <= 40 or not text[:4].isdigit():
        return None
    if re.fullmatch(r"\d{9,10}(\.\d{1,9})?", text):
        return float(text)
    try:
        return datetime.fromisoformat(text.replace(",", ".")).timestamp()
    except (ValueError, OverflowError):
        return None


def _values_of_line(words: list[str], place: str) -> _Socket:
    """Return the values of one socket; ``place`` is the line for errors."""
    values: dict[str, float] = {}
    control = ""
    for at, word in enumerate(words):
        name, colon, text = word.partition(":")
        if not colon:
            follows = words[at + 1] if at + 1 < len(words) else ""
            rate = (
                _RATE.match(follows) if word in ("send", "pacing_rate", "delivery_rate") else None
            )
            if rate:
                values[word] = float(rate[1]) * _SCALES[rate[2]]
            elif not control and word not in _WORDS and _CONTROL.match(word):
                control = word
        elif name in _PLAIN:
            values[name] = _number(name, text, place)
        elif name in _FIRST_PART:
            first, _, second = text.partition("/")
            # retrans:0/15 is the present and the total number; rtt:41.9/1.5 mean and deviation.
            values[name] = _number(name, second if name == "retrans" and second else first, place)
        elif name == "bbr" and (found := re.search(r"bw:(\S+?bps)", text)):
            rate = _RATE.match(found[1])
            if rate:
                values["bbr_bw"] = float(rate[1]) * _SCALES[rate[2]]
    return _Socket(values, control, "app_limited" in words)


def _number(name: str, text: str, place: str) -> float:
    found = _NUMBER.match(text)
    if found is None:
        shown = "".join(c for c in text[:40] if c.isprintable())
        raise CaptureError(f"{name}:{shown} is not a number", file=place)
    return float(found[1])


def _elapsed_s(snapshots: list[_Snapshot]) -> list[float]:
    """Return the time of each snapshot in seconds after the first; NaN from the first unknown time.

    Without times in the log, a socket that sent or received nothing between two snapshots shows the
    time by ``lastsnd`` or ``lastrcv``, which both count up.
    """
    result = [0.0]
    for before, after in pairwise(snapshots):
        step = math.nan
        if before.time_s is not None and after.time_s is not None:
            step = after.time_s - before.time_s
        else:
            steps = [
                value - old.get(last)
                for ends, new in after.sockets.items()
                if (old := before.sockets.get(ends)) is not None
                for last, counter in (("lastsnd", "bytes_sent"), ("lastrcv", "bytes_received"))
                if new.get(counter) == old.get(counter) and (value := new.get(last)) > old.get(last)
            ]
            step = statistics.median(steps) / 1e3 if steps else math.nan
        result.append(result[-1] + (step if step > 0 else math.nan))
    return result


def _flow(
    ends: tuple[str, str],
    history: list[tuple[int, _Socket]],
    elapsed: list[float],
    warnings: list[str],
) -> LoggedFlow | None:
    """Return the flow of one socket from its first to its last snapshot; None without data."""
    (first_at, first), (last_at, last) = history[0], history[-1]
    sockets = [socket for _, socket in history]

    def more(name: str) -> float:
        return max(last.get(name) - (first.get(name) if len(history) > 1 else 0.0), 0.0)

    seconds = elapsed[last_at] - elapsed[first_at] if len(history) > 1 else math.nan
    if len(history) == 1:
        warnings.append(ONE_SNAPSHOT)
        if not last.get("bytes_received") and last.get("lastrcv"):
            seconds = last.get("lastrcv") / 1e3  # since the handshake
    acked = more("bytes_acked") or max(more("bytes_sent") - more("bytes_retrans"), 0.0)
    received = more("bytes_received")
    if not acked and not received:
        return None
    segment = last.get("mss", DEFAULT_SEGMENT_BYTES)
    if received > acked:
        if math.isnan(seconds):
            warnings.append(NO_TIME)
        return LoggedFlow(ends[1], ends[0], seconds, received, last.get("rcvmss", segment), False)
    busy, window, buffer = (more(name) / 1e3 for name in ("busy", "rwnd_limited", "sndbuf_limited"))
    if math.isnan(seconds):
        warnings.append(NO_TIME)
        seconds = busy
    rtts = [socket.get("rtt") * 1e-3 for socket in sockets if socket.get("rtt") > 0]
    least = min((s.get("minrtt") * 1e-3 for s in sockets if s.get("minrtt") > 0), default=math.nan)
    rtt = statistics.fmean(rtts) if rtts else math.nan
    # The largest receive window in bytes; NaN if unknown. Older versions of ss print no
    # `snd_wnd`. If the window was full at times (`limited_s`), it is the largest amount of data
    # in flight.
    largest = max(socket.get("snd_wnd") for socket in sockets)
    if not largest and window > 0:
        largest = segment * max(socket.get("unacked") for socket in sockets)
    flow = LoggedFlow(
        ends[0],
        ends[1],
        seconds,
        acked,
        segment,
        is_measured_by_sender=True,
        retransmissions=more("retrans"),
        packets=more("data_segs_out") or math.nan,
        rtt_s=rtt,
        rtt_min_s=least if least <= rtt else rtt,
        window_bytes=largest or math.nan,
        flight_bytes=statistics.fmean(s.get("unacked") for s in sockets) * segment,
        control=last.control,
    )
    rest = _limit_without_full_window(flow, sockets)
    spent = {
        "application": max(flow.seconds - busy, 0.0),
        "receiver_window": window,
        "send_buffer": buffer,
    }
    spent[rest] = spent.get(rest, 0.0) + max(busy - window - buffer, 0.0)
    total = sum(spent.values())
    if total > 0:
        flow.shares = {name: value / total for name, value in spent.items()}
        flow.limited_by = max(flow.shares, key=lambda name: flow.shares[name])
    if rest == "bottleneck":
        rates = [socket.get("bbr_bw") or socket.get("delivery_rate") for socket in sockets]
        flow.link_bps = max(rates) or math.nan
    return flow


def _limit_without_full_window(flow: LoggedFlow, sockets: list[_Socket]) -> str:
    """Return the limit of the time in which neither the receive window nor the buffer was full."""
    idle = sum(
        socket.is_app_limited
        and not socket.get("notsent")
        and socket.get("unacked") < MAX_USED_WINDOW_SHARE * socket.get("cwnd", 1.0)
        for socket in sockets
    )
    if idle > MIN_APP_LIMITED_SHARE * len(sockets):
        return "application"
    last = sockets[-1]
    if (
        not flow.retransmissions
        and "ssthresh" not in last.values
        and last.control
        in (
            "cubic",
            "reno",
        )
    ):
        return "slow_start"
    return limit_of_full_window(
        control=flow.control,
        rtt_s=flow.rtt_s,
        rtt_min_s=flow.rtt_min_s,
        retransmissions=flow.retransmissions,
        rate_to_loss_models=rate_to_loss_models(flow),
    )
