"""The detailed report on one direction, for captures with one connection."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.captures.advice import REMEDIES_BY_LIMIT
from tcpcast.captures.congestion_control import BBR, CUBIC, UNKNOWN
from tcpcast.captures.quantity_text import format_rate, format_time, format_volume
from tcpcast.limit_names import LIMIT_NAMES
from tcpcast.readable_units import count_text
from tcpcast.report.document import Paragraph, ShareBar
from tcpcast.report.trace_cells import number_text

if TYPE_CHECKING:
    from tcpcast.report.document import Part

    Row = dict[str, Any]

LABEL_WIDTH = 14
MIN_BAR_SHARE = 0.01
"""Minimum share of the time with a bar."""
RETRANSMISSION_CAUSES = {
    "by_duplicates": "by fast retransmit",
    "by_sack": "by SACK",
    "by_rack": "by RACK",
    "by_timeout": "by RTO",
    "after_timeout": "after an RTO",
    "tail_loss_probes": "as tail loss probes",
    "unexplained": "unexplained",
}
CONNECTION_END_TEXTS = {
    "open": "still open at the end",
    "closed": "closed at the end",
    "reset": "reset at the end",
    "evicted": "evicted: too many connections were active",
}


def detail_parts(row: Row, advice: str) -> list[Part]:
    """Return one paragraph per subject of a row of ``connections``, bars, and the advice."""
    texts = {
        "tap": _tap_text(row),
        "sent": _sent_text(row),
        "retrans": _retransmission_text(row),
        "loss": _loss_text(row),
        "RTT": _rtt_text(row),
        "windows": _window_text(row),
        "options": _tcp_options_text(row),
        "models": _model_rates_text(row),
    }
    parts: list[Part] = [_labelled_line(label, text) for label, text in texts.items() if text]
    parts += _limit_bars(row)
    if advice:
        parts.append(_labelled_line("why", advice))
    return parts


def log_detail_parts(row: Row, advice: str) -> list[Part]:
    """Return the parts of :func:`detail_parts` for a row that a program measured."""
    again = row["retransmissions"]
    rtts = {"mean": row["rtt_mean_s"], "min": row["rtt_min_s"]}
    window, flight = row["window_max_bytes"], row["flight_mean_bytes"]
    texts = {
        "measured": f"by the {row['tap_side']}",
        "sent": _sent_text(row),
        "retrans": f"{again:,.0f}" if _is_known(again) else "unknown",
        "RTT": "; ".join(f"{k} {_in_ms(v)} ms" for k, v in rtts.items() if _is_known(v)),
        "windows": "; ".join(
            f"{name} {format_volume(value)}"
            for name, value in {"receive window": window, "in flight": flight}.items()
            if _is_known(value) and value > 0
        ),
        "models": _model_rates_text(row),
    }
    parts: list[Part] = [_labelled_line(label, text) for label, text in texts.items() if text]
    return [*parts, *_limit_bars(row), _labelled_line("why", advice)]


def _labelled_line(label: str, text: str) -> Paragraph:
    return Paragraph(text, "", f" {label}".ljust(LABEL_WIDTH))


def _is_known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _in_ms(seconds: float) -> str:
    return number_text(seconds * 1e3)


def _tap_text(row: Row) -> str:
    side = {
        "sender": "at the sender",
        "receiver": "at the receiver",
        "middle": "between sender and receiver",
    }.get(row["tap_side"], "position unknown")
    start = "" if row["syn_captured"] else "; capture begins after the handshake"
    return f"{side}{start}; {CONNECTION_END_TEXTS[row['end']]}"


def _sent_text(row: Row) -> str:
    text = f"{count_text(row['data_packets'], 'data packet')}, {format_volume(row['bytes'])}"
    if not _is_known(row["throughput_bps"]):
        return text
    return (
        f"{text} in {format_time(row['duration_s'])}: throughput "
        f"{format_rate(row['throughput_bps'])}, goodput "
        f"{format_rate(row['goodput_bps'])}"
    )


def _retransmission_text(row: Row) -> str:
    if not row["retransmissions"]:
        return "none"
    by = ", ".join(
        f"{row[name]:,} {cause}" for name, cause in RETRANSMISSION_CAUSES.items() if row[name]
    )
    needless = row["spurious_dsack"] + row["spurious_eifel"]
    more = f"; {needless:,} of them unnecessary" if needless else ""
    return f"{row['retransmissions']:,}: {by}{more}"


def _loss_text(row: Row) -> str:
    if not row["td"] + row["to"] + row["td_paper"] + row["to_paper"]:
        return "no indication"
    text = (
        f"{row['td']:,} TD, {row['to']:,} TO (by PFTK's rule: {row['td_paper']:,} TD, "
        f"{row['to_paper']:,} TO), p = {number_text(100 * row['loss_indication_ratio'])} %"
    )
    if row["timeouts"]:
        text += f"; {count_text(row['timeouts'], 'timeout')}"
        text += f", up to {row['max_backoff']} consecutive" if row["max_backoff"] > 1 else ""
        text += f", T0 = {format_time(row['t0_s'])}" if _is_known(row["t0_s"]) else ""
    return text


def _rtt_text(row: Row) -> str:
    bound = "at least " if row["rtt_lower_bound"] else ""
    parts = [f"mean {bound}{_in_ms(row['rtt_mean_s'])} ms"] if _is_known(row["rtt_mean_s"]) else []
    names = {"min": "min", "p50": "median", "p95": "95 %", "p99": "99 %", "max": "max"}
    from_tap = [
        f"{name} {_in_ms(row[f'rtt_{key}_s'])}"
        for key, name in names.items()
        if _is_known(row[f"rtt_{key}_s"])
    ]
    if from_tap:
        parts.append(f"from the tap: {', '.join(from_tap)}")
    if row["rtt_withheld"]:
        parts.append("no mean RTT: the capture contains no pure acks")
    if row["rtt_too_short"]:
        parts.append("times below 10 µs are unknown")
    if _is_known(row["handshake_rtt_s"]):
        parts.append(f"handshake {_in_ms(row['handshake_rtt_s'])}")
    return "; ".join(parts)


def _window_text(row: Row) -> str:
    parts = []
    if _is_known(row["w_max_pkts"]):
        window = (
            f"{number_text(row['w_max_pkts'])} packets, {format_volume(row['window_max_bytes'])}"
        )
        parts.append(f"W_max {window}")
    if _is_known(row["flight_mean_bytes"]):
        mean, maximum = row["flight_mean_bytes"], row["flight_max_bytes"]
        parts.append(f"in flight {format_volume(mean)} mean, {format_volume(maximum)} max")
    if _is_known(row["initial_window_pkts"]):
        parts.append(f"initial {count_text(int(row['initial_window_pkts']), 'packet')}")
    if _is_known(row["packets_per_ack"]):
        parts.append(
            f"{number_text(row['packets_per_ack'])} packets per ack{_packets_per_growth_text(row)}"
        )
    if row.get("looks_like", UNKNOWN) != UNKNOWN:
        parts.append(_control_text(row))
    return "; ".join(parts)


def _control_text(row: Row) -> str:
    """Return the probable congestion control and the matching model."""
    control, factor = row["looks_like"], row["window_reduction"]
    if control == BBR:
        return (
            "behaves like BBR (losses do not reduce the data in flight); matching model: bbr_bound"
        )
    name, model = ("CUBIC", "cubic") if control == CUBIC else ("Reno", "pftk")
    return (
        f"behaves like {name} (a loss reduces the window to {number_text(factor)} of its "
        f"size); matching model: {model}"
    )


def _packets_per_growth_text(row: Row) -> str:
    """Return the text on PFTK's input b; it explains a b that differs from the packets per ACK."""
    if row["window_grows_by"] == "packets" and row["packets_per_ack"] > 1:
        return ", but the window grows per acked packet (b = 1)"
    return f" (b = {number_text(max(row['packets_per_ack'], 1.0))})"


def _tcp_options_text(row: Row) -> str:
    if not row["syn_captured"]:
        return ""
    parts = [f"MSS {row['mss_bytes']:.0f} B"] if _is_known(row["mss_bytes"]) else []
    scale = row["window_scale"]
    if _is_known(scale) or _is_known(row["w_max_pkts"]):
        parts.append(f"window scale {scale:.0f}" if _is_known(scale) else "no window scaling")
    named = {"sack": "SACK", "timestamps": "timestamps", "ecn": "ECN"}
    return ", ".join(parts + [("" if row[key] else "no ") + name for key, name in named.items()])


def _model_rates_text(row: Row) -> str:
    # The rate is unknown if the clock of the capture stepped back during the transfer.
    if not (_is_known(row["pftk_pps"]) and _is_known(row["send_rate_pps"])):
        return ""
    packet = row["throughput_bps"] / row["send_rate_pps"]
    return (
        f"PFTK {format_rate(row['pftk_pps'] * packet)}, "
        f"square-root formula {format_rate(row['mathis_pps'] * packet)}"
    )


def _limit_bars(row: Row) -> list[ShareBar]:
    """Return one bar per limit of the direction, the longest first."""
    if "limited_by" not in row:
        return []
    all_shares = [(row[f"share_{name}"], LIMIT_NAMES[name]) for name in REMEDIES_BY_LIMIT]
    known = sorted(((value, name) for value, name in all_shares if _is_known(value)), reverse=True)
    shown = [(value, name) for value, name in known if value >= MIN_BAR_SHARE]
    return [
        ShareBar(name, value, (" limited by" if index == 0 else "").ljust(LABEL_WIDTH))
        for index, (value, name) in enumerate(shown)
    ]
