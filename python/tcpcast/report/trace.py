"""Captures as parts of a report, as CSV and as JSON, one row per direction with data."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer.limit_names import LIMIT_NAMES
from tcpcast.captures.advice import (
    REMEDIES_BY_LIMIT,
    advise_each_direction,
    cause_or_limit_keys,
    share_of_main_limit,
)
from tcpcast.captures.capture import (
    capture_json_before_tables,
    iter_plain_rows,
    iter_rows_with_advice,
)
from tcpcast.captures.capture_tables import tables_by_name
from tcpcast.captures.congestion_control import BBR, CUBIC, UNKNOWN
from tcpcast.captures.failed_connections import (
    OLD_CONNECTION,
    count_failures_with_loss,
    failure_sentences,
    failure_summary,
    have_failures_one_kind,
    keepalive_sentence,
)
from tcpcast.captures.groups import ANY_HOST, have_many_flows_in_rto
from tcpcast.captures.interruptions import interruption_sentences
from tcpcast.captures.names import service_label
from tcpcast.captures.quantity_text import (
    format_percent,
    format_rate,
    format_time,
    format_volume,
    sentence_case,
)
from tcpcast.captures.service_advice import (
    COMPONENT_PHRASES,
    MIN_COMPONENT_SHARE,
    TAP_LIMITATIONS,
    service_verdicts,
)
from tcpcast.captures.subject import (
    TRANSFER_KINDS,
    Subject,
    bytes_by_limit,
    capture_subject,
    minor_services,
    relevant_failure_counts,
    relevant_failures,
)
from tcpcast.captures.table import select_rows
from tcpcast.captures.verdict import (
    capture_findings,
    captures_findings,
    directions_without_service,
)
from tcpcast.quantity.readable_units import count_text
from tcpcast.report import csv
from tcpcast.report.document import ARROW, BLANK_LINE, Column, Paragraph, ShareBar
from tcpcast.report.document import Table as Columns
from tcpcast.report.trace_cells import (
    integer_texts,
    number_text,
    omitted_rows_parts,
    rate_scale,
    scaled_number_texts,
)
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures import Capture
    from tcpcast.report.document import Part
    from tcpcast.report.trace_cells import Array

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
    side = {
        "sender": "at the sender",
        "receiver": "at the receiver",
        "middle": "between sender and receiver",
    }.get(row["tap_side"], "position unknown")
    start = "" if row["syn_captured"] else "; capture begins after the handshake"
    texts = {
        "tap": f"{side}{start}; {CONNECTION_END_TEXTS[row['end']]}",
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
    ecn = "accurate ECN" if row["accurate_ecn"] else "ECN"
    named = {"sack": "SACK", "timestamps": "timestamps", "ecn": ecn}
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


MAX_NAMES = 3
"""Maximum number of groups that a warning names."""
ESTIMATED_MARK = "~"
"""Mark of a p_r (loss probability within a loss event) that is only estimated."""
MODEL_COLUMNS = {
    "alg. 1": "parallel",
    "alg. 2": "parallel_cumulative",
    "n × PFTK": "multiplied_pftk",
}


def group_parts(groups: Table, max_rows: int | None = None) -> list[Part]:
    """Return a table of groups, sorted by the number of loss events, and explanations."""
    order = np.lexsort((-groups["bytes"], -groups["td"] - groups["to"]))[:max_rows]
    shown = select_rows(groups, order)
    rates = _model_rate_columns(shown)
    scale = rate_scale(np.concatenate([shown["throughput_bps"], *rates.values()]))
    exact = np.isfinite(shown["loss_ratio"])
    lost = np.where(exact, shown["loss_ratio"], shown["loss_ratio_estimate"])
    marked = [
        ("" if known else ESTIMATED_MARK) + number_text(100 * value)
        for known, value in zip(exact.tolist(), lost.tolist(), strict=True)
    ]
    parts: list[Part] = [
        Columns(
            [
                Column("\nflows", integer_texts(shown["flows"])),
                Column(
                    "parallel\nflows", scaled_number_texts(shown["parallel_flows"]), drop_order=2
                ),
                Column("data\npkts", integer_texts(shown["packets_sent"]), drop_order=3),
                Column("p\n%", scaled_number_texts(shown["loss_indication_ratio"], 100)),
                Column("p_e\n%", scaled_number_texts(shown["loss_event_ratio_cumulative"], 100)),
                Column("p_r\n%", marked),
                Column("RTT\nms", scaled_number_texts(shown["rtt_mean_s"], 1e3)),
                Column(
                    f"rate\n{scale.unit}",
                    scaled_number_texts(shown["throughput_bps"], 1 / scale.factor),
                ),
                *(
                    Column(
                        f"{name}\n{scale.unit}",
                        scaled_number_texts(rate, 1 / scale.factor),
                        drop_order=4 if name.startswith("n ") else 0,
                    )
                    for name, rate in rates.items()
                ),
                Column("\nJain", scaled_number_texts(shown["jain_index"]), drop_order=1),
            ],
            ends=_group_ends(shown),
        )
    ]
    parts += omitted_rows_parts(groups["src"].size, order.size)
    return [*parts, BLANK_LINE, *_note_paragraphs(shown)]


def _group_ends(shown: Table) -> list[tuple[str, str]]:
    return [
        (host_text(source), "" if source == destination == ANY_HOST else host_text(destination))
        for source, destination in zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True)
    ]


def host_text(host: str) -> str:
    """Return a host, or ``all`` if the group includes all hosts."""
    return "all" if host == ANY_HOST else host


def _model_rate_columns(shown: Table) -> dict[str, Array]:
    """Return the rates by models in bit/s of payload, using the mean packet size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        packet = shown["throughput_bps"] / shown["send_rate_pps"]
        return {name: shown[f"{model}_pps"] * packet for name, model in MODEL_COLUMNS.items()}


def _note_paragraphs(shown: Table) -> list[Paragraph]:
    notes = [
        Paragraph(
            "p: loss indications of all flows per packet; p_e: loss events of the group per "
            "packet, at most one event per RTT; p_r: share of packets lost. Rates are means over "
            "the time in which at least one flow was active. alg. 1, alg. 2: Damjanovic et al. "
            "(2008), for the mean number of parallel flows.",
        )
    ]
    if np.isnan(shown["loss_ratio"]).any():
        notes.append(Paragraph("p_r is estimated as the share of retransmitted packets", "", "~ "))
    waiting = select_rows(shown, np.flatnonzero(have_many_flows_in_rto(shown)))
    if waiting["src"].size:
        names = [f"{src} > {dst}" if dst else f"{src} flows" for src, dst in _group_ends(waiting)]
        others = len(names) - MAX_NAMES
        more = f" and {count_text(others, 'more group')}" if others > 0 else ""
        named = ", ".join(names[:MAX_NAMES]) + more
        notes.append(
            Paragraph(
                f"algorithm 1 underestimates the rate of {named}: it predicts that "
                f"up to {format_percent(waiting['waiting_share'].max())} of the flows are in RTO "
                "at the same time, but assumes few flows in RTO",
                "warning",
                "check: ",
            )
        )
    return notes


MAX_EXPLAINED_SERVICES = 3
"""Number of services with a verdict."""


def service_parts(services: Table, max_rows: int | None, minor: Array) -> list[Part]:
    """Return a table of services, and verdicts on the busiest services, except for minor ones."""
    count = services["server"].size
    if not count:
        return []
    parts: list[Part] = [
        BLANK_LINE,
        Columns(_service_columns(select_rows(services, slice(max_rows))), title=""),
    ]
    parts += omitted_rows_parts(count, count if max_rows is None else max_rows, " services")
    explained = select_rows(services, np.flatnonzero(~minor)[:MAX_EXPLAINED_SERVICES])
    for index, verdict in enumerate(service_verdicts(explained)):
        row = select_rows(explained, index)
        parts += [BLANK_LINE, Paragraph(f"service {service_label(row)}", "heading")]
        texts = (_latency_text(row), verdict, TAP_LIMITATIONS[str(row["tap"])])
        parts += [Paragraph(text, "", "  ") for text in texts if text]
    return parts


def _service_columns(shown: Table) -> list[Column]:
    def ms(name: str) -> list[str]:
        return scaled_number_texts(shown[name], 1e3)

    return [
        Column(
            "\nservice",
            [service_label(select_rows(shown, at)) for at in range(shown["server"].size)],
            right=False,
        ),
        Column("\nconns", integer_texts(shown["connections"])),
        Column("reqs", integer_texts(shown["requests"])),
        Column("first byte\n50 % ms", ms("first_byte_p50_s")),
        Column("\n95 %", ms("first_byte_p95_s"), drop_order=2),
        Column("\n99 %", ms("first_byte_p99_s"), drop_order=1),
        Column("last byte\n50 % ms", ms("last_byte_p50_s")),
        Column("\n95 %", ms("last_byte_p95_s")),
        Column("\n99 %", ms("last_byte_p99_s")),
    ]


def _latency_text(row: Table) -> str:
    """Return a sentence with the components of the mean latency, and the excluded requests."""
    mean = float(row["mean_s"])
    components = []
    for part, name in COMPONENT_PHRASES.items():
        value = float(row[f"{part}_s"])
        if value > 0 and value >= MIN_COMPONENT_SHARE * mean:
            components.append(f"{name} {format_time(value)} ({format_percent(value / mean)})")
    text = f"Mean latency {format_time(mean)}: {', '.join(components)}." if components else ""
    rtt = float(row["rtt_s"])
    text += f" Shortest RTT {format_time(rtt)}." if rtt > 0 else ""
    unanswered = int(row["unanswered"])
    overlapping = int(row["not_separable"]) - unanswered
    included = int(row["measured"] - row["separable"])
    if unanswered:
        have = "request has" if unanswered == 1 else "requests have"
        text += f" {unanswered:,} {have} no response in the capture"
        text += "; the percentiles do not include them."
    if overlapping:
        overlap = "request that overlaps" if overlapping == 1 else "requests that overlap"
        text += (
            f" {'Included' if included else 'Not included'}: {overlapping:,} {overlap} with others"
            f" on the same connection (pipelining, several streams, or losses)"
        )
        text += "; most of the waiting time belongs to them." if included else "."
    return text.strip()


DIRECTION_TEXTS = {
    "before-after": "towards the second tap",
    "after-before": "back to the first tap",
}


def tap_comparison_parts(between: Table) -> list[Paragraph]:
    """Return one paragraph per direction between the two capture points."""
    parts = []
    for row in iter_plain_rows(between):
        first = "before" if row["passes"] == "before-after" else "after"
        ratio = row["loss_ratio_between"]
        in_flight = f", {row['under_way']:,} in flight at the end" if row["under_way"] else ""
        lost = "" if ratio is None else f", {row['lost_between']:,.0f} lost, p_r = {ratio:.4%}"
        parts.append(
            Paragraph(
                f"{DIRECTION_TEXTS[row['passes']]}: {row[f'packets_seen_{first}']:,} packets"
                f"{lost}{in_flight}; transit time "
                f"{row['transit_min_s'] * 1e3:.3f} to {row['transit_max_s'] * 1e3:.3f} ms, "
                f"{row['transit_mean_s'] * 1e3:.3f} ms on average",
                mark="between: ",
            )
        )
    return parts


SORT_COLUMNS = ("timeouts", "retransmissions", "zero_windows", "bytes")
"""Sort keys for the worst directions first: these columns, in descending order."""
MAX_EXPLAINED_DIRECTIONS = 3
"""Number of directions with advice on why they were slow."""
MIN_LIMIT_COLUMN_WIDTH = 11
"""Minimum width of the column of limits; the longest name fits in two lines of this width."""
MIN_TRANSFERS_FOR_BARS = 3
"""Minimum number of transfers for bars of bytes per limit."""
MIN_DETAIL_BYTE_SHARE = 0.1
"""Minimum share of the bytes of the larger direction for a detailed report."""


def capture_parts(
    capture: Capture,
    *,
    max_rows: int | None = None,
    groups: Table | None = None,
    verdict: bool = True,
) -> list[Part]:
    """Return the report on a capture: verdict, contents, table, reasons for slowness, and warnings.

    At most ``max_rows`` rows are shown (None: all). The table shows the groups of flows in
    ``groups``, if given, instead of directions. ``verdict`` is False if another part shows the
    verdict.
    """
    findings = capture_findings(capture, groups) if verdict else []
    parts: list[Part] = [Paragraph(verdict_text(findings), "heading")] if findings else []
    subject = capture_subject(capture, groups)
    parts += [BLANK_LINE, Paragraph(_capture_size_text(capture)), *_failure_parts(capture, subject)]
    parts += [
        Paragraph(f"{sentence_case(text)}.", "warning", "! ")
        for text in interruption_sentences(capture.interruptions)
    ]
    services = (
        []
        if groups is not None
        else service_parts(capture.services, max_rows, minor_services(capture, subject))
    )
    if subject.kind not in TRANSFER_KINDS:
        parts += services
    if capture.connections["src"].size:
        if groups is not None:
            parts += [BLANK_LINE, *group_parts(groups, max_rows)]
        else:
            parts += [
                BLANK_LINE,
                *direction_table_parts(capture.connections, max_rows),
                *_omitted_paragraphs(capture.rest),
            ]
            parts += limit_bar_parts(directions_without_service(capture.connections))
            parts += _advice_or_detail_parts(capture, subject, MAX_EXPLAINED_DIRECTIONS)
    if subject.kind in TRANSFER_KINDS:
        parts += services
    if capture.between:
        parts += [BLANK_LINE, *tap_comparison_parts(capture.between)]
    if capture.damaged or capture.interrupted:
        reason = "interrupted" if capture.interrupted else "the file is damaged"
        text = f"{reason}; the results cover only the packets read until then"
        parts += [BLANK_LINE, Paragraph(text, "warning", "partial: ")]
    if capture.warnings:
        parts.append(BLANK_LINE)
        parts += [Paragraph(warning, "warning", "check: ") for warning in capture.warnings]
    return parts


def csv_lines(
    captures: Sequence[Capture],
    table_name: str = "connections",
    groups: Sequence[Table] | None = None,
    *,
    max_rows: int | None = None,
) -> Iterator[str]:
    """Yield a header and one line per row with all columns of a table; unknown values are empty.

    ``groups``, if given, holds one table of flow groups per capture, used instead of
    ``table_name``. ``max_rows`` is as for :func:`json_lines`.
    """
    shown = [select_rows(table, slice(max_rows)) for table in groups or ()]
    shown = shown or [
        _worst_rows(tables_by_name(capture)[table_name], max_rows) for capture in captures
    ]
    advised = table_name == "connections" and groups is None
    for index, (capture, table) in enumerate(zip(captures, shown, strict=True)):
        if index == 0:
            yield csv.csv_line(["file", *table, *(["advice"] if advised else [])])
        for row in (
            iter_rows_with_advice(table, capture.services) if advised else iter_plain_rows(table)
        ):
            yield csv.csv_line([capture.file, *row.values()])


def json_lines(
    captures: Sequence[Capture],
    table_name: str = "connections",
    groups: Sequence[Table] | None = None,
    models: Sequence[Mapping[str, Table]] | None = None,
    *,
    max_rows: int | None = None,
) -> Iterator[str]:
    """Yield a table as lines of one JSON document, one line per row.

    ``groups`` (one table of flow groups per capture) and the tables of ``models`` follow. With
    ``max_rows``, each table contains at most this number of rows, worst directions first, and
    ``omitted`` contains the number of omitted rows per table.
    """
    verdict = json.dumps(verdict_text(captures_findings(captures, groups)))
    yield f'{{"verdict": {verdict}, "captures": ['
    for index, capture in enumerate(captures):
        first = capture_json_before_tables(capture, None if groups is None else groups[index])
        table = tables_by_name(capture)[table_name]
        lists = {
            "services": capture.services,
            "failed": capture.failed,
            "interruptions": capture.interruptions,
        }
        if table_name == "connections":
            for each, rows in lists.items():
                first[each] = list(iter_plain_rows(select_rows(rows, slice(max_rows))))
        if max_rows is not None:
            lists |= {table_name: table} | ({} if groups is None else {"groups": groups[index]})
            first["omitted"] = {
                each: max(0, next(iter(lists[each].values())).size - max_rows) for each in lists
            }
        yield f'{json.dumps(first)[:-1]}, "{table_name}": ['
        table = _worst_rows(table, max_rows)
        advised = table_name == "connections"
        yield from _json_objects(
            iter_rows_with_advice(table, capture.services) if advised else iter_plain_rows(table)
        )
        if groups is not None:
            yield '], "groups": ['
            yield from _json_objects(iter_plain_rows(select_rows(groups[index], slice(max_rows))))
        for title, more in ({} if models is None else models[index]).items():
            yield f'], "{title}": ['
            yield from _json_objects(iter_plain_rows(more))
        yield "]}" + ("" if capture is captures[-1] else ",")
    yield "]}"


def _json_objects(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield one line per object, separated by commas."""
    line = None
    for row in objects:
        if line is not None:
            yield line + ","
        line = json.dumps(row, allow_nan=False)
    if line is not None:
        yield line


def _worst_rows(connections: Table, max_rows: int | None) -> Table:
    """Return the ``max_rows`` worst directions, worst first; None: all, in the capture's order."""
    if max_rows is None:
        return connections
    order = worst_first_order(connections)[:max_rows]
    return select_rows(connections, order)


def worst_first_order(connections: Table) -> Array:
    """Return the row indices of a table of directions, worst direction first."""
    keys = [-connections[name] for name in reversed(SORT_COLUMNS)]
    return np.lexsort(keys)


def _capture_size_text(capture: Capture) -> str:
    count = capture.connection_count
    if capture.program:
        return f"{capture.file}: log of {capture.program}, {count_text(count, 'connection')}"
    segments = count_text(capture.segments, "TCP segment")
    part = "the shown directions of " if capture.is_restricted else ""
    text = f"{capture.file}: {segments} in {part}{count_text(count, 'connection')}"
    empty = capture.rest.get("empty_connections", 0)
    return text + (f" ({empty:,} without data)" if empty > 0 else "")


def _failure_parts(capture: Capture, subject: Subject) -> list[Part]:
    """Return sentences on failed connections in total, per kind of failure, and on keepalives.

    The sentence on the total is omitted if the verdict contains it.
    """
    counts = relevant_failure_counts(capture)
    leads = subject.kind in {"failures", "old_connection"}
    parts = [] if leads and have_failures_one_kind(counts) else failure_total_parts(capture)
    lines = failure_sentences(relevant_failures(capture))
    parts += [Paragraph(f"{line}.", "", "  ") for line in lines]
    alive = [Paragraph(f"{line}.", "", "  ") for line in keepalive_sentence(capture.rest)]
    return [*parts, *alive]


def failure_total_parts(capture: Capture, file: str = "") -> list[Part]:
    """Return a sentence on the failed connections of a capture, with a mark unless harmless."""
    counts = relevant_failure_counts(capture)
    text = failure_summary(counts, capture.connection_count)
    if not text:
        return []
    is_harmless = not (count_failures_with_loss(counts) or counts.get(OLD_CONNECTION))
    return [Paragraph(f"{file}{text}.", *(("", "  ") if is_harmless else ("warning", "! ")))]


def direction_table_parts(connections: Table, max_rows: int | None) -> list[Part]:
    """Return the worst directions as a table, with a column ``file`` if there are several files."""
    order = worst_first_order(connections)[:max_rows]
    shown = select_rows(connections, order)
    ends = list(zip(shown["src"].tolist(), shown["dst"].tolist(), strict=True))
    files = shown["file"].tolist() if "file" in shown else []
    named = [Column("capture", files, right=False)] if len(set(files)) > 1 else []
    parts: list[Part] = [Columns([*named, *direction_columns(shown)], ends=ends)]
    return [*parts, *omitted_rows_parts(connections["src"].size, order.size)]


def limit_bar_parts(table: Table) -> list[Part]:
    """Return one bar per limit: its share of the bytes of all transfers, if there are several."""
    count = table["src"].size
    if count < MIN_TRANSFERS_FOR_BARS:
        return []
    found = bytes_by_limit(table)
    title = (
        f"Share of the bytes by limit ({count:,} transfers, "
        f"{format_volume(float(table['bytes'].sum()))}):"
    )
    shares = zip(found["limit"].tolist(), found["byte_share"].tolist(), strict=True)
    bars = [
        ShareBar(LIMIT_NAMES[limit], share, "  ")
        for limit, share in shares
        if share >= MIN_BAR_SHARE
    ]
    return [BLANK_LINE, Paragraph(title), *bars]


def _omitted_paragraphs(rest: dict[str, int]) -> list[Paragraph]:
    """Return a paragraph with totals of the directions that the table omits."""
    lines = []
    if rest.get("directions"):
        lines.append(
            Paragraph(
                f"… and {rest['directions']:,} directions with less data. In total, they carry "
                f"{rest['data_packets']:,} data packets, {rest['bytes']:,} bytes, "
                f"{rest['retransmissions']:,} retransmissions, {rest['td']:,} TD and "
                f"{rest['to']:,} TO.",
                mark=" ",
            )
        )
    if rest.get("empty_connections"):
        lines.append(
            Paragraph(
                f"… and {rest['empty_directions']:,} directions without data: "
                f"{rest['empty_packets']:,} packets",
                mark=" ",
            )
        )
    return lines


def direction_columns(shown: Table) -> list[Column]:
    """Return the columns of a table of directions, except source and destination."""
    rate, model = shown["throughput_bps"], _pftk_bps(shown)
    scale = rate_scale(np.concatenate([rate, model]))
    columns = [
        Column("data\npkts", integer_texts(shown["data_packets"])),
        Column("\nretrans", integer_texts(shown["retransmissions"])),
        Column("\nTD", integer_texts(shown["td"]), drop_order=3),
        Column("\nTO", integer_texts(shown["to"]), drop_order=4),
        Column("RTT\nms", scaled_number_texts(shown["rtt_mean_s"], 1e3), drop_order=2),
        Column(f"rate\n{scale.unit}", scaled_number_texts(rate, 1 / scale.factor)),
        Column(f"PFTK\n{scale.unit}", scaled_number_texts(model, 1 / scale.factor), drop_order=1),
    ]
    if "limited_by" in shown:
        states = shown["limited_by"].tolist()
        limits = zip(
            cause_or_limit_keys(shown).tolist(),
            states,
            share_of_main_limit(shown).tolist(),
            strict=True,
        )
        columns.append(
            Column(
                "limited\nby",
                [
                    LIMIT_NAMES[limit]
                    + (f" {100 * part:.0f}%" if _has_time_share(limit, state, part) else "")
                    for limit, state, part in limits
                ],
                right=False,
                min_width=MIN_LIMIT_COLUMN_WIDTH,
            )
        )
    return columns


def _has_time_share(limit: str, state: str, share: float) -> bool:
    """Return True if the limit is a state of the sender with a known share of the time."""
    same = LIMIT_NAMES[limit] == LIMIT_NAMES[state]
    return same and state != "unknown" and math.isfinite(share)


def _advice_or_detail_parts(capture: Capture, subject: Subject, max_rows: int) -> list[Part]:
    """Return all details of a single connection, or advice on the subject and the worst rows."""
    connections = capture.connections
    order = worst_first_order(connections)
    if subject.kind in TRANSFER_KINDS:
        is_subject = np.isin(order, subject.directions)
        order = np.concatenate([order[is_subject], order[~is_subject]])
    detail = log_detail_parts if capture.program else detail_parts
    is_single = capture.connection_count == 1 or bool(capture.program)
    if not is_single:
        order = order[~_is_explained_elsewhere(capture)[order]]
    if is_single:
        large = connections["bytes"] >= MIN_DETAIL_BYTE_SHARE * connections["bytes"].max()
        order = order[large[order]]
    part = select_rows(connections, order[:max_rows])
    parts: list[Part] = []
    for row, text in zip(
        iter_plain_rows(part), advise_each_direction(part, capture.services).tolist(), strict=True
    ):
        title = Paragraph(row["src"] + ARROW + row["dst"], "heading")
        if is_single:
            parts += [BLANK_LINE, *([title] if order.size > 1 else []), *detail(row, text)]
        elif text:
            parts += [BLANK_LINE, title, Paragraph(text, "", "  ")]
    return parts


def _is_explained_elsewhere(capture: Capture) -> Array:
    """Return a mask of directions in services, and of those that failed after one data packet."""
    connections = capture.connections
    failed = np.isin(connections["connection"], capture.failed["connection"])
    few: Array = failed & (connections["data_packets"] == 1)
    return (connections["service"] >= 0) | few


def _pftk_bps(shown: Table) -> Array:
    """Return PFTK's rate in bit/s of payload, using the mean packet size of the direction."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model: Array = shown["pftk_pps"] * shown["throughput_bps"] / shown["send_rate_pps"]
    return model
