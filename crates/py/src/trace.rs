//! Analysis of captures: from a file to columns, with one row per direction that carries data.

mod capture_source;
mod failed_connections;
mod requests;
mod row_limit;
mod second_tap;
mod sequence_plot;
mod unlisted_counters;

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use tcpcast_trace::{
    CaptureReader, ConnectionEnd, ConnectionReport, Connections, DirectionBetweenTaps,
    DirectionReport, Endpoint, HostNames, IndicationKind, IntervalCounts, MemoryLimits,
    ReadSummary, RetransCause, Round, TapComparison, TransferLimit, credible_rtt_s,
};

pub(crate) use capture_source::CaptureSource;
use capture_source::{CaptureError, InterruptibleReader, is_interrupted, open_source};
use failed_connections::FailedConnections;
use requests::{Interruptions, RequestTables};
use second_tap::{SecondTapResults, second_tap_columns};
use sequence_plot::plot_points_table;
use unlisted_counters::UnlistedCounters;

/// Segments between two checks of signals, in case blocks are read rarely (well-compressed files).
const SIGNAL_CHECK_INTERVAL: u64 = 1 << 20;
/// Maximum number of loss indications and retransmissions listed over all connections.
const MAX_EVENTS: usize = 1 << 20;
/// Maximum length of a text on standard input, one byte more than a log may have.
const MAX_TEXT_BYTES: u64 = (1 << 26) + 1;
/// Maximum number of rounds listed over all connections.
const MAX_ROUNDS: usize = 1 << 19;

/// A direction that carries data, with properties of its connection.
struct DirectionRow {
    number: u64,
    /// Index of the direction in its connection.
    index: usize,
    first_frame: u64,
    syn_captured: bool,
    end: ConnectionEnd,
    handshake_rtt_s: Option<f64>,
    direction: DirectionReport,
    passage: Option<DirectionBetweenTaps>,
}

/// Results of a capture.
#[derive(Default)]
struct CaptureResult {
    rows: Vec<DirectionRow>,
    summary: ReadSummary,
    names: HostNames,
    connections: u64,
    /// Times of the first and the last segment.
    first: Option<u64>,
    last: u64,
    unlisted: UnlistedCounters,
    failed: FailedConnections,
    requests: RequestTables,
    interruptions: Interruptions,
    events: usize,
    rounds: usize,
    omitted: u64,
    points: usize,
    /// Number of directions without a time-sequence plot.
    without_trail: u64,
    second_tap: Option<SecondTapResults>,
    omitted_rounds: u64,
}

impl CaptureResult {
    fn add_report(&mut self, mut report: ConnectionReport) {
        self.first = Some(self.first.map_or(report.first, |first| first.min(report.first)));
        self.last = self.last.max(report.last);
        self.unlisted.add_connection_totals(&report);
        self.failed.add_if_failed(&report);
        self.interruptions.add_report(&report);
        self.requests.move_requests_from_report(&mut report);
        for (index, mut direction) in report.directions.into_iter().enumerate() {
            if direction.counts.data_packets == 0 {
                continue;
            }
            self.omit_plot_beyond_limit(&mut direction);
            let events = direction.loss_times.len() + direction.retransmitted.len();
            self.omitted += direction.omitted;
            if self.events + events > MAX_EVENTS {
                self.omitted += events as u64;
                direction.loss_times = Vec::new();
                direction.retransmitted = Vec::new();
            } else {
                self.events += events;
            }
            self.omit_rounds_beyond_limit(&mut direction);
            self.add_row_within_limit(DirectionRow {
                number: report.number,
                index,
                first_frame: report.first_frame,
                syn_captured: report.syn_captured,
                end: report.end,
                handshake_rtt_s: report.handshake_rtt_s,
                direction,
                passage: None,
            });
        }
    }

    /// Omits the rounds of a direction if the limit is exceeded.
    fn omit_rounds_beyond_limit(&mut self, direction: &mut DirectionReport) {
        if self.rounds + direction.rounds.len() > MAX_ROUNDS {
            self.omitted_rounds += direction.rounds.len() as u64;
            direction.rounds = Vec::new();
        }
        direction.rounds.shrink_to_fit();
        self.rounds += direction.rounds.len();
    }
}

/// Reads a capture until its end, damaged data or an interrupt; `after` is the capture of a second
/// tap.
fn analyze_capture(
    stream: Box<dyn Read + '_>,
    after: Option<Box<dyn Read + '_>>,
    limits: MemoryLimits,
    interrupted: &AtomicBool,
) -> Result<CaptureResult, CaptureError> {
    let mut reader = CaptureReader::new(InterruptibleReader { stream, interrupted })
        .map_err(CaptureError::Before)?;
    let other = after.map(|stream| CaptureReader::new(InterruptibleReader { stream, interrupted }));
    let mut between = other.transpose().map_err(CaptureError::After)?.map(TapComparison::new);
    let mut connections = Connections::new(limits);
    let mut result = CaptureResult::default();
    let mut segments = 0_u64;
    while let Some(segment) = reader.next_segment() {
        match &mut between {
            Some(between) => between.push_first_tap(segment, connections.push_and_number(segment)),
            None => connections.push_segment(segment),
        }
        segments += 1;
        if segments % 1024 == 0 {
            connections.take_finished().into_iter().for_each(|report| result.add_report(report));
            if segments % SIGNAL_CHECK_INTERVAL == 0 && is_interrupted(interrupted) {
                break;
            }
        }
    }
    result.connections = connections.connection_count();
    for report in connections.into_remaining_reports() {
        result.add_report(report);
    }
    result.summary = reader.summary().clone();
    result.names = reader.names().clone();
    result.limit_and_sort_rows();
    if let Some(between) = between {
        let (between, summary) = between.finish_comparison(interrupted.load(Ordering::Relaxed));
        result.add_second_tap(SecondTapResults { summary, between });
    }
    Ok(result)
}

/// Read a capture and analyse TCP in each direction that carries data.
///
/// Without `source`, read standard input. `after` is a capture of the same packets at a second tap.
/// `trail_points` is the approximate number of points per time-sequence plot, and `max_connections`
/// the maximum number of simultaneously tracked connections. Raise OSError if a capture cannot be
/// read, and ValueError if a file is not a capture.
#[pyfunction]
#[pyo3(signature = (source=None, after=None, trail_points=0, max_connections=None))]
pub(crate) fn read_trace(
    py: Python<'_>,
    source: Option<CaptureSource>,
    after: Option<CaptureSource>,
    trail_points: usize,
    max_connections: Option<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let interrupted = AtomicBool::new(false);
    let defaults = MemoryLimits::default();
    let max_connections = max_connections.unwrap_or(defaults.connections);
    let limits = MemoryLimits { connections: max_connections, points: trail_points, ..defaults };
    let mut head = Vec::new();
    if source.is_none() {
        let text = py.detach(|| read_text_or_head(&mut io::stdin().lock(), &mut head))?;
        if text {
            let dict = PyDict::new(py);
            dict.set_item("text", PyBytes::new(py, &head))?;
            return Ok(dict);
        }
    }
    let result = py.detach(|| {
        let stream = match &source {
            None => Box::new(io::Cursor::new(head).chain(io::stdin().lock())),
            Some(source) => open_source(source).map_err(CaptureError::Before)?,
        };
        let after = after.as_ref().map(open_source).transpose().map_err(CaptureError::After)?;
        analyze_capture(stream, after, limits, &interrupted)
    });
    let mut result = result.map_err(|error| error.into_py(py))?;
    let (failed, [talks, requests]) =
        (result.failed.failures_table(py)?, result.requests.tables_to_py(py)?);
    let interruptions = result.interruptions.interruptions_table(py)?;
    let rows = &result.rows;
    let dict = PyDict::new(py);
    dict.set_item("connections", directions_table(py, rows)?)?;
    dict.set_item("intervals", intervals_table(py, rows)?)?;
    dict.set_item("retransmissions", retransmissions_table(py, rows)?)?;
    dict.set_item("loss_indications", loss_indications_table(py, rows)?)?;
    dict.set_item("trail", plot_points_table(py, rows)?)?;
    dict.set_item("without_trail", if trail_points > 0 { result.without_trail } else { 0 })?;
    dict.set_item("rounds", rounds_table(py, rows)?)?;
    dict.set_item("limits", TransferLimit::ALL.map(TransferLimit::name))?;
    let summary = &result.summary;
    dict.set_item("frames", summary.frames)?;
    dict.set_item("segments", summary.segments)?;
    dict.set_item("first_ns", clamp_i64(result.first.unwrap_or(0)))?;
    dict.set_item("last_ns", clamp_i64(result.last))?;
    dict.set_item("connection_count", result.connections)?;
    let unlisted = result.unlisted.to_py(py)?;
    for (name, count) in result.failed.counts_by_kind() {
        unlisted.set_item(name, count)?;
    }
    dict.set_item("rest", unlisted)?;
    dict.set_item("failed", failed)?;
    dict.set_item("names", names_table(py, &result.names)?)?;
    dict.set_item("interruptions", interruptions)?;
    dict.set_item("talks", talks)?;
    dict.set_item("requests", requests)?;
    dict.set_item("omitted_requests", result.requests.omitted)?;
    dict.set_item("omitted_failures", result.failed.omitted())?;
    dict.set_item("omitted_interruptions", result.interruptions.omitted)?;
    dict.set_item("max_connections", max_connections)?;
    dict.set_item("omitted_events", result.omitted)?;
    dict.set_item("omitted_rounds", result.omitted_rounds)?;
    dict.set_item("warnings", summary.warnings())?;
    dict.set_item("damaged", summary.is_damaged())?;
    dict.set_item("interrupted", interrupted.load(Ordering::Relaxed))?;
    if let Some(second_tap) = &result.second_tap {
        dict.set_item("between", second_tap_columns(py, rows, second_tap)?)?;
    }
    Ok(dict)
}

/// Reads the first four bytes into `head`. If they are text, which no capture begins with, reads
/// the rest up to the limit, and returns true.
fn read_text_or_head(stream: &mut impl Read, head: &mut Vec<u8>) -> io::Result<bool> {
    const PCAPNG: &[u8] = b"\n\r\r\n";
    stream.take(4).read_to_end(head)?;
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let text = head.len() == 4 && head != PCAPNG && head.iter().all(is_text);
    if text {
        stream.take(MAX_TEXT_BYTES).read_to_end(head)?;
    }
    Ok(text)
}

/// Names of servers: per connection, and per address by DNS.
fn names_table<'py>(py: Python<'py>, names: &HostNames) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let end = |end: Endpoint| (end.address.to_string(), end.port);
    let servers: Vec<_> = names
        .servers()
        .iter()
        .map(|named| (end(named.client), end(named.server), named.name.to_string()))
        .collect();
    dict.set_item("servers", servers)?;
    let addresses: Vec<_> =
        names.addresses().map(|(address, name)| (address.to_string(), name.to_owned())).collect();
    dict.set_item("addresses", addresses)?;
    Ok(dict)
}

/// A column: its name and its value for a row.
type NamedColumn<R, T> = (&'static str, fn(&R) -> T);

const COUNTS: &[NamedColumn<DirectionRow, u64>] = &[
    ("connection", |row| row.number),
    ("first_frame", |row| row.first_frame),
    ("start_ns", |row| row.direction.first_data.unwrap_or(0)),
    ("packets", |row| row.direction.counts.packets),
    ("data_packets", |row| row.direction.counts.data_packets),
    ("ip_bytes", |row| row.direction.counts.ip_bytes),
    ("bytes", |row| row.direction.counts.bytes),
    ("unique_bytes", |row| row.direction.counts.unique_bytes),
    ("retransmissions", |row| row.direction.counts.retransmissions),
    ("retransmitted_bytes", |row| row.direction.counts.retransmitted_bytes),
    ("syn_retransmissions", |row| row.direction.counts.syn_retransmissions),
    ("fin_retransmissions", |row| row.direction.counts.fin_retransmissions),
    ("out_of_order", |row| row.direction.counts.out_of_order),
    ("late_packets", |row| row.direction.counts.late_packets),
    ("zero_window_probes", |row| row.direction.counts.zero_window_probes),
    ("keep_alives", |row| row.direction.counts.keep_alives),
    ("keep_alives_unanswered", |row| row.direction.counts.keep_alives_unanswered),
    ("capture_duplicates", |row| row.direction.counts.capture_duplicates),
    ("missing_bytes", |row| row.direction.counts.missing_bytes),
    ("super_segments", |row| row.direction.counts.super_segments),
    ("fragments", |row| row.direction.counts.fragments),
    ("ce_marks", |row| row.direction.counts.ce_marks),
    ("ce_bytes", |row| row.direction.counts.ce_bytes),
    ("reported_ce_packets", |row| row.direction.counts.reported_ce_packets),
    ("reported_ce_bytes", |row| row.direction.counts.reported_ce_bytes),
    ("ecn_echoes", |row| row.direction.counts.ecn_echoes),
    ("window_reductions", |row| row.direction.counts.window_reductions),
    ("acks", |row| row.direction.counts.acks),
    ("acknowledged_packets", |row| row.direction.counts.acknowledged_packets),
    ("duplicate_acks", |row| row.direction.counts.duplicate_acks),
    ("zero_windows", |row| row.direction.counts.zero_windows),
    ("window_updates", |row| row.direction.counts.window_updates),
    ("unprompted_bytes", |row| row.direction.evidence.unprompted_bytes),
    ("short_segments", |row| row.direction.evidence.short_segments),
    ("pacing_gaps", |row| row.direction.evidence.pacing_gaps),
    ("by_duplicates", |row| row.direction.causes.duplicates),
    ("by_sack", |row| row.direction.causes.sack),
    ("by_rack", |row| row.direction.causes.rack),
    ("by_timeout", |row| row.direction.causes.timeout),
    ("after_timeout", |row| row.direction.causes.after_timeout),
    ("tail_loss_probes", |row| row.direction.causes.tail_loss_probe),
    ("unexplained", |row| row.direction.causes.unexplained),
    ("spurious_dsack", |row| row.direction.spurious.dsack),
    ("spurious_eifel", |row| row.direction.spurious.eifel),
    ("dsack_unexplained", |row| row.direction.spurious.unexplained_dsack),
    ("td", |row| row.direction.indications.td),
    ("to", |row| row.direction.indications.timeout_count()),
    ("td_paper", |row| row.direction.indications.td_paper),
    ("to_paper", |row| row.direction.indications.to_paper),
    ("timeouts", |row| row.direction.indications.timeouts),
    ("to_depth_1", |row| row.direction.indications.by_depth[0]),
    ("to_depth_2", |row| row.direction.indications.by_depth[1]),
    ("to_depth_3", |row| row.direction.indications.by_depth[2]),
    ("to_depth_4", |row| row.direction.indications.by_depth[3]),
    ("to_depth_5", |row| row.direction.indications.by_depth[4]),
    ("to_depth_6", |row| row.direction.indications.by_depth[5]),
    ("max_backoff", max_successive_timeouts),
    ("rtt_samples", |row| row.direction.rtt.sender.map_or(0, |rtt| rtt.samples)),
    ("rtt_round_samples", |row| row.direction.rtt.round_samples),
    ("segment_bytes", |row| u64::from(row.direction.segment_bytes)),
    ("flight_max_bytes", |row| row.direction.flight_max_bytes),
    ("window_max_bytes", |row| row.direction.window_max_bytes),
    ("window_last_bytes", |row| row.direction.window_last_bytes),
    ("out_of_window", |row| row.direction.counts.out_of_window),
    ("untranslated_sacks", |row| row.direction.counts.untranslated_sacks),
];

/// Columns whose values may be unknown; unknown values are NaN.
const MEASURES: &[NamedColumn<DirectionRow, Option<f64>>] = &[
    ("duration_s", |row| row.direction.duration_s()),
    ("throughput_bps", |row| row.direction.throughput_bps()),
    ("goodput_bps", |row| row.direction.goodput_bps()),
    ("t0_s", |row| row.direction.t0_s),
    ("handshake_rtt_s", |row| row.handshake_rtt_s),
    ("tap_to_sender_s", |row| row.direction.rtt.tap_to_sender_s),
    ("rtt_over_time_s", |row| row.direction.rtt.over_time_s),
    ("rtt_sample_mean_s", |row| {
        row.direction.rtt.sender.and_then(|rtt| credible_rtt_s(rtt.mean_s))
    }),
    ("rtt_min_s", |row| row.direction.rtt.sender.and_then(|rtt| credible_rtt_s(rtt.min_s))),
    ("rtt_p50_s", |row| row.direction.rtt.sender.and_then(|rtt| credible_rtt_s(rtt.p50_s))),
    ("rtt_p95_s", |row| row.direction.rtt.sender.and_then(|rtt| credible_rtt_s(rtt.p95_s))),
    ("rtt_p99_s", |row| row.direction.rtt.sender.and_then(|rtt| credible_rtt_s(rtt.p99_s))),
    ("rtt_max_s", |row| row.direction.rtt.sender.and_then(|rtt| credible_rtt_s(rtt.max_s))),
    ("rtt_karn_mean_s", |row| row.direction.rtt.karn.and_then(|rtt| credible_rtt_s(rtt.mean_s))),
    ("rtt_karn_p50_s", |row| row.direction.rtt.karn.and_then(|rtt| credible_rtt_s(rtt.p50_s))),
    ("rtt_karn_p99_s", |row| row.direction.rtt.karn.and_then(|rtt| credible_rtt_s(rtt.p99_s))),
    ("rtt_round_mean_s", |row| row.direction.rtt.round_mean_s),
    ("rtt_undelayed_max_s", |row| row.direction.rtt.undelayed_max_s),
    ("rtt_timestamps_mean_s", |row| {
        row.direction.rtt.timestamps.and_then(|rtt| credible_rtt_s(rtt.mean_s))
    }),
    ("rtt_flight_correlation", |row| row.direction.rtt.flight_correlation),
    ("w_max_pkts", |row| row.direction.w_max_packets()),
    ("packets_per_ack", |row| row.direction.packets_per_ack()),
    ("start_growth", |row| row.direction.slow_start_bytes_per_acked_byte()),
    ("start_acks", |row| row.direction.slow_start_acks_per_segment()),
    ("initial_window_pkts", |row| row.direction.initial_window_packets.map(|n| n as f64)),
    ("flight_mean_bytes", |row| row.direction.flight_mean_bytes),
    ("mss_bytes", |row| row.direction.options.mss.map(f64::from)),
    ("window_scale", |row| row.direction.options.window_scale.map(f64::from)),
    ("idle_s", |row| row.direction.limitation.idle_s),
    ("application_limited_s", |row| row.direction.limitation.application_limited_s),
    ("bottleneck_rate_bps", |row| row.direction.limitation.bottleneck_rate_bps),
    ("window_reduction", |row| row.direction.limitation.window_reduction),
    ("receiver_silence_s", |row| row.direction.receiver_silence.map(|time| time as f64 / 1e9)),
    ("window_closed_s", |row| Some(row.direction.limitation.window_closed_s)),
    ("pacing_variation", |row| row.direction.evidence.pacing_variation),
    ("queue_delay_s", |row| row.direction.evidence.queue_s),
    ("clock_error_s", |row| row.direction.evidence.clock_error_s),
    ("missing_acks", |row| row.direction.missing_answers.map(|count| count as f64)),
];

const FLAGS: &[NamedColumn<DirectionRow, bool>] = &[
    ("syn_captured", |row| row.syn_captured),
    ("sack", |row| row.direction.options.sack),
    ("timestamps", |row| row.direction.options.timestamps),
    ("ecn", |row| row.direction.options.ecn),
    ("accurate_ecn", |row| row.direction.options.accurate_ecn),
    ("rtt_withheld", |row| row.direction.rtt.withheld),
    ("rtt_too_short", |row| row.direction.rtt.too_short),
];

/// Maximum number of successive timeouts. If some retransmissions are not listed, this is a lower
/// bound, because the counters distinguish only a few numbers of successive timeouts.
fn max_successive_timeouts(row: &DirectionRow) -> u64 {
    let kept = row
        .direction
        .retransmitted
        .iter()
        .map(|packet| successive_timeouts_before(packet.cause))
        .max();
    let class = row.direction.indications.by_depth.iter().rposition(|count| *count > 0);
    kept.unwrap_or(0).max(class.map_or(0, |index| index as u64 + 1))
}

/// Name of a cause in columns.
fn cause_name(cause: RetransCause) -> &'static str {
    match cause {
        RetransCause::Duplicates => "duplicates",
        RetransCause::Sack => "sack",
        RetransCause::Rack => "rack",
        RetransCause::Timeout { .. } => "timeout",
        RetransCause::AfterTimeout => "after-timeout",
        RetransCause::TailLossProbe => "tail-loss-probe",
        RetransCause::Unexplained => "unexplained",
    }
}

/// Number of successive timeouts before a retransmission.
fn successive_timeouts_before(cause: RetransCause) -> u64 {
    match cause {
        RetransCause::Timeout { depth } => u64::from(depth),
        _ => 0,
    }
}

/// Flattens lists per direction into pairs of the row of the direction and an item.
fn flatten_direction_lists<T>(
    rows: &[DirectionRow],
    of: fn(&DirectionReport) -> &Vec<T>,
) -> Vec<(usize, &T)> {
    let indexed = rows.iter().enumerate();
    indexed.flat_map(|(index, row)| of(&row.direction).iter().map(move |x| (index, x))).collect()
}

fn numpy_column<'py, R, T: Element>(
    py: Python<'py>,
    rows: &[R],
    of: impl Fn(&R) -> T,
) -> Bound<'py, PyArray1<T>> {
    PyArray1::from_iter(py, rows.iter().map(of))
}

/// Converts a count to a signed integer, so that differences can be negative in Python.
fn clamp_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Table of directions.
fn directions_table<'py>(py: Python<'py>, rows: &[DirectionRow]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let ends: Vec<_> =
        rows.iter().map(|row| (row.direction.source, row.direction.destination)).collect();
    let sources: Vec<_> =
        ends.iter().map(|ends| (ends.0.address.to_string(), ends.0.port)).collect();
    let others: Vec<_> =
        ends.iter().map(|ends| (ends.1.address.to_string(), ends.1.port)).collect();
    dict.set_item("src", sources)?;
    dict.set_item("dst", others)?;
    dict.set_item(
        "tap_side",
        rows.iter().map(|row| row.direction.side.name()).collect::<Vec<_>>(),
    )?;
    dict.set_item("end", rows.iter().map(|row| row.end.name()).collect::<Vec<_>>())?;
    for (name, of) in COUNTS {
        dict.set_item(name, numpy_column(py, rows, |row| clamp_i64(of(row))))?;
    }
    for (name, of) in MEASURES {
        dict.set_item(name, numpy_column(py, rows, |row| of(row).unwrap_or(f64::NAN)))?;
    }
    for (name, of) in FLAGS {
        dict.set_item(name, numpy_column(py, rows, of))?;
    }
    dict.set_item(
        "limited_by",
        numpy_column(py, rows, |row| row.direction.limitation.limited_by as u8),
    )?;
    for (index, one) in TransferLimit::ALL.into_iter().enumerate() {
        let share =
            |row: &DirectionRow| row.direction.limitation.shares.map_or(f64::NAN, |all| all[index]);
        dict.set_item(format!("share_{}", one.name()), numpy_column(py, rows, share))?;
    }
    Ok(dict)
}

/// Table of 100-second intervals; `direction` is a row of the table of directions.
fn intervals_table<'py>(py: Python<'py>, rows: &[DirectionRow]) -> PyResult<Bound<'py, PyDict>> {
    let all = flatten_direction_lists(rows, |direction| &direction.intervals);
    let dict = PyDict::new(py);
    let count = |name: &str, of: fn(&IntervalCounts) -> u64| {
        dict.set_item(name, numpy_column(py, &all, |(_, interval)| clamp_i64(of(interval))))
    };
    count("index", |interval| interval.index)?;
    count("data_packets", |interval| interval.data_packets)?;
    count("bytes", |interval| interval.bytes)?;
    count("retransmissions", |interval| interval.retransmissions)?;
    count("td", |interval| interval.indications.td)?;
    count("to", |interval| interval.indications.timeout_count())?;
    count("td_paper", |interval| interval.indications.td_paper)?;
    count("to_paper", |interval| interval.indications.to_paper)?;
    count("timeouts", |interval| interval.indications.timeouts)?;
    count("rtt_samples", |interval| interval.rtt_samples)?;
    count("flight_max_bytes", |interval| interval.flight_max_bytes)?;
    count("window_max_bytes", |interval| interval.window_max_bytes)?;
    dict.set_item("direction", numpy_column(py, &all, |(row, _)| clamp_i64(*row as u64)))?;
    let rtt = |(_, interval): &(usize, &IntervalCounts)| interval.rtt_mean_s().unwrap_or(f64::NAN);
    dict.set_item("rtt_sample_mean_s", numpy_column(py, &all, rtt))?;
    Ok(dict)
}

/// Table of listed retransmissions.
fn retransmissions_table<'py>(
    py: Python<'py>,
    rows: &[DirectionRow],
) -> PyResult<Bound<'py, PyDict>> {
    let all = flatten_direction_lists(rows, |direction| &direction.retransmitted);
    let dict = PyDict::new(py);
    dict.set_item("direction", numpy_column(py, &all, |(row, _)| clamp_i64(*row as u64)))?;
    dict.set_item("time_ns", numpy_column(py, &all, |(_, packet)| clamp_i64(packet.time)))?;
    dict.set_item("offset_bytes", numpy_column(py, &all, |(_, packet)| clamp_i64(packet.offset)))?;
    dict.set_item("bytes", numpy_column(py, &all, |(_, packet)| i64::from(packet.bytes)))?;
    dict.set_item(
        "cause",
        all.iter().map(|(_, packet)| cause_name(packet.cause)).collect::<Vec<_>>(),
    )?;
    dict.set_item(
        "backoff",
        numpy_column(py, &all, |(_, packet)| clamp_i64(successive_timeouts_before(packet.cause))),
    )?;
    dict.set_item("spurious", numpy_column(py, &all, |(_, packet)| packet.spurious))?;
    Ok(dict)
}

/// Table of listed loss indications.
fn loss_indications_table<'py>(
    py: Python<'py>,
    rows: &[DirectionRow],
) -> PyResult<Bound<'py, PyDict>> {
    let all = flatten_direction_lists(rows, |direction| &direction.loss_times);
    let kind = |kind| match kind {
        IndicationKind::Td => "td",
        IndicationKind::To => "to",
    };
    let dict = PyDict::new(py);
    dict.set_item("direction", numpy_column(py, &all, |(row, _)| clamp_i64(*row as u64)))?;
    dict.set_item("time_ns", numpy_column(py, &all, |(_, loss)| clamp_i64(loss.time)))?;
    dict.set_item("kind", all.iter().map(|(_, loss)| kind(loss.kind)).collect::<Vec<_>>())?;
    Ok(dict)
}

/// Table of listed rounds; `limited_by` is an index into `limits`.
fn rounds_table<'py>(py: Python<'py>, rows: &[DirectionRow]) -> PyResult<Bound<'py, PyDict>> {
    let all = flatten_direction_lists(rows, |direction| &direction.rounds);
    let dict = PyDict::new(py);
    let count = |name: &str, of: fn(&Round) -> u64| {
        dict.set_item(name, numpy_column(py, &all, |(_, round)| clamp_i64(of(round))))
    };
    count("time_ns", |round| round.time)?;
    dict.set_item("direction", numpy_column(py, &all, |(row, _)| clamp_i64(*row as u64)))?;
    dict.set_item("duration_s", numpy_column(py, &all, |(_, round)| round.duration_s()))?;
    dict.set_item("rtt_s", numpy_column(py, &all, |(_, round)| round.rtt_s().unwrap_or(f64::NAN)))?;
    count("flight_bytes", |round| u64::from(round.flight_bytes))?;
    count("window_bytes", |round| u64::from(round.window_bytes))?;
    count("sent_bytes", |round| round.sent_bytes)?;
    count("acked_bytes", |round| round.acked_bytes)?;
    count("retransmissions", |round| u64::from(round.retransmissions))?;
    dict.set_item("limited_by", numpy_column(py, &all, |(_, round)| round.limited_by as u8))?;
    Ok(dict)
}
