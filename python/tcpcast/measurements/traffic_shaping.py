"""Settings of Linux's ``tc`` as links of a scenario."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import ScenarioError, UnitError
from tcpcast.quantity import units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ETHERNET_BYTES = 14
HTB_BURST = "1600B"
"""Burst of HTB by default: one frame and the tokens of one tick of its clock."""

LIMITS = {"fq_codel": "10240pkt", "codel": "1000pkt", "pie": "1000pkt"}
"""Default limits of Linux; CAKE has its own."""

LINK_RATE = "1gbit"
"""Rate of the line below CAKE's shaper, and of a direction without a shaper."""

_SHAPERS = ("cake", "htb", "tbf", "netem")
_CAKE_WORDS = {
    "flows": (
        *("flowblind", "srchost", "dsthost", "hosts", "flows"),
        *("dual-srchost", "dual-dsthost", "triple-isolate"),
    ),
    "tins": ("besteffort", "diffserv3", "diffserv4"),
}
_ACK_FILTERS = {"ack-filter": "on", "ack-filter-aggressive": "aggressive"}
_VALUE = re.compile(r"\d[\w.%]*", re.ASCII)
MAX_WORDS = 200
"""Most words of a line of ``tc`` that are read."""


@dataclass(frozen=True, slots=True)
class Qdisc:
    """A queue discipline or a class, as a line of ``tc`` shows it.

    ``handle`` names it; ``parent`` is the handle above, "" for the root. ``words`` follow.
    """

    kind: str
    handle: str
    parent: str
    words: tuple[str, ...] = field(default=())

    def value(self, name: str) -> str:
        """Return the word after a name; "" if the name is missing or nothing like a value."""
        for word, after in zip(self.words, self.words[1:], strict=False):
            if word == name and _VALUE.fullmatch(after):
                return after
        return ""


def parse_qdiscs(lines: Iterable[str]) -> list[Qdisc]:
    """Return the disciplines of lines such as ``qdisc codel 2: parent 1:1 limit 1000p``.

    Parameters
    ----------
    lines
        Lines of ``tc qdisc show``; others are left out.
    """
    found = []
    for line in lines:
        words = line.split(None, MAX_WORDS)[:MAX_WORDS]
        if len(words) < 4 or words[0] != "qdisc":
            continue
        is_root = words[3] == "root"
        rest = words[4:] if is_root else words[5:]
        found.append(Qdisc(words[1], words[2], "" if is_root else words[4], tuple(rest)))
    return found


def shaped_link(qdiscs: Sequence[Qdisc], classes: Sequence[Qdisc] = ()) -> dict[str, Any] | None:
    """Return the link of an interface with a shaper; None without a shaper.

    Parameters
    ----------
    qdiscs
        The disciplines of the interface.
    classes
        The classes of HTB.

    Raises
    ------
    ScenarioError
        The discipline below the shaper is not simulated.
    """
    for qdisc in qdiscs:
        rate = _shaper_rate(qdisc, qdiscs, classes)
        if not rate:
            continue
        loss = {"loss": qdisc.value("loss")} if qdisc.value("loss") else {}
        if qdisc.kind == "cake":
            return {"rate": LINK_RATE, "buffer": "unlimited", "queue": cake_table(qdisc, rate)}
        below = _queue_below(qdisc, qdiscs)
        if qdisc.kind == "netem":
            own = below or {"buffer": _packets(qdisc.value("limit")) or "1000pkt"}
            return {"rate": rate} | own | loss
        burst = _bytes(qdisc.value("burst")) or HTB_BURST
        shaper = {"bucket": rate, "burst": burst, "overhead": ETHERNET_BYTES}
        return {"rate": shaper} | (below or _own_buffer(qdisc, rate))
    return None


def _shaper_rate(qdisc: Qdisc, qdiscs: Sequence[Qdisc], classes: Sequence[Qdisc]) -> str:
    """Return the rate of a shaper as a scenario has it, "" if it does not shape."""
    if qdisc.kind not in _SHAPERS:
        return ""
    if qdisc.kind == "cake":
        return _rate(qdisc.value("bandwidth"))
    if qdisc.kind != "htb":
        return _rate(qdisc.value("rate"))
    # The class of a leaf may borrow up to its ceiling, and the classes above it limit it as well.
    by_handle = {each.handle: each for each in classes if each.kind == "htb"}
    leaf = next((each.parent for each in qdiscs if each.parent in by_handle), "")
    at = by_handle.get(leaf) or next(iter(by_handle.values()), None)
    slowest = ""
    for _ in range(len(by_handle)):
        if at is None:
            break
        rate = _rate(at.value("ceil") or at.value("rate"))
        if rate and (not slowest or units.parse_rate(rate) < units.parse_rate(slowest)):
            slowest = rate
        at = by_handle.get(at.parent)
    return slowest


def _queue_below(shaper: Qdisc, qdiscs: Sequence[Qdisc]) -> dict[str, Any] | None:
    """Return buffer and queue of the discipline below a shaper, None if it has none."""
    major = shaper.handle.partition(":")[0]
    for qdisc in qdiscs:
        if qdisc is not shaper and qdisc.parent.partition(":")[0] == major:
            return queue_tables(qdisc)
    return None


def _own_buffer(shaper: Qdisc, rate: str) -> dict[str, Any]:
    """Return the buffer of a shaper without a discipline: that of TBF, or 1000 packets."""
    latency = shaper.value("lat")
    if limit := _bytes(shaper.value("limit")):
        return {"buffer": limit}
    try:
        held = units.parse_duration(latency) * units.parse_rate(rate) / 8 if latency else 0.0
    except UnitError:
        held = 0.0
    return {"buffer": f"{held:.0f}B"} if held else {"buffer": "1000pkt"}


def queue_tables(qdisc: Qdisc) -> dict[str, Any]:
    """Return the buffer and queue of a link that model a Linux qdisc.

    Raises
    ------
    ScenarioError
        The discipline is not simulated.
    """
    kind = qdisc.kind
    limit = qdisc.value("limit")
    if kind == "cake":
        return {"buffer": "unlimited", "queue": cake_table(qdisc, "")}
    if kind in ("pfifo", "pfifo_fast"):
        return {"buffer": _packets(limit) or "1000pkt"}
    if kind == "bfifo":
        return {"buffer": ip_bytes(units.parse_bytes(_bytes(limit) or "1514B"))}
    if kind not in LIMITS:
        raise ScenarioError(
            f"queue discipline {units.quote(kind)} is not simulated; use --queue, for example "
            "--queue fq_codel"
        )
    queue: dict[str, Any] = {"kind": kind, "rules": "linux"}
    for name in ("target", "interval"):
        if (time := _time(qdisc.value(name))) and not (kind == "pie" and name == "interval"):
            queue[name] = time
    if kind == "pie" and (update := _time(qdisc.value("tupdate"))):
        queue["update"] = update
    if "ecn" not in qdisc.words:
        queue["ecn"] = False
    return {"buffer": _packets(limit) or LIMITS[kind], "queue": queue}


def ip_bytes(frame_bytes: float) -> str:
    """Return a buffer that counts Ethernet frames as one that counts IP packets."""
    return f"{max(1500, round(frame_bytes * 1500 / (1500 + ETHERNET_BYTES)))}B"


def cake_table(qdisc: Qdisc, rate: str) -> dict[str, Any]:
    """Return the queue of CAKE with the settings that its words name."""
    table: dict[str, Any] = {"kind": "cake"} | ({"rate": rate} if rate else {})
    for key, names in _CAKE_WORDS.items():
        for word in qdisc.words:
            if word in names:
                table[key] = word
    for word, value in _ACK_FILTERS.items():
        if word in qdisc.words:
            table["ack_filter"] = value
    if "ingress" in qdisc.words:
        table["ingress"] = True
    if "no-split-gso" in qdisc.words:
        table["split_gso"] = False
    if (overhead := qdisc.value("overhead")).isdecimal():
        table["overhead"] = int(overhead)
    if rtt := _time(qdisc.value("rtt")):
        table["rtt"] = rtt
    return table


def _rate(text: str) -> str:
    """Return a rate of tc as a scenario has it, "" for none or an unlimited one."""
    return _converted(text.lower(), units.parse_rate)


def _time(text: str) -> str:
    return _converted(text, units.parse_duration)


def _bytes(text: str) -> str:
    """Return a size of tc (``15140b``, ``64Kb``, which are bytes) as a scenario has it."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)b?", text, re.ASCII)
    if match is None:
        return ""
    factor = {"": 0, "K": 1, "M": 2, "G": 3}[match[2]]
    return f"{float(match[1]) * 1024**factor:.0f}B"


def _packets(text: str) -> str:
    number = text.removesuffix("p")
    return f"{number}pkt" if number.isdecimal() and number != "0" else ""


def _converted(text: str, parse: Callable[[str], float]) -> str:
    if not text:
        return ""
    try:
        value = parse(text)
    except UnitError:
        return ""
    return text if 0 < value < float("inf") else ""
