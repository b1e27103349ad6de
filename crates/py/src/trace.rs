//! Captures: from a file to columns, one row a direction that carries data.

mod beside;
mod failed;
mod names;
mod requests;
mod rest;
mod source;
mod trail;

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use tcpcast_trace::{
    Cause, ConnectionReport, Connections, DirectionReport, End, Interval, Kind, LIMITS, Limits,
    Passage, Reader, Round, Summary, TapComparison,
};

use beside::{Beside, between};
use failed::Failed;
use names::{cause, end, limit, side};
use requests::Requests;
use rest::Rest;
pub(crate) use source::Source;
use source::{Unread, Watched, look, open};
use trail::trail;

/// Segments between two looks at signals, where blocks come seldom (well-compressed files).
const LOOK_EVERY: u64 = 1 << 20;
/// Loss indications and retransmissions kept one by one, of all connections together.
const MOST_EVENTS: usize = 1 << 20;
/// Rounds kept one by one, of all connections together.
const MOST_ROUNDS: usize = 1 << 19;

/// A direction that carries data, and what its connection says of both.
struct Row {
    number: u64,
    /// The place of the direction in its connection.
    way: usize,
    first_frame: u64,
    syn_captured: bool,
    end: End,
    handshake_rtt_s: Option<f64>,
    direction: DirectionReport,
    passage: Option<Passage>,
}

/// What is found in a capture.
#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    summary: Summary,
    connections: u64,
    rest: Rest,
    failed: Failed,
    requests: Requests,
    events: usize,
    rounds: usize,
    omitted: u64,
    points: usize,
    /// Directions without the trail that was asked for.
    trailless: u64,
    beside: Option<Beside>,
    omitted_rounds: u64,
}

impl Found {
    fn take(&mut self, mut report: ConnectionReport) {
        self.rest.count(&report);
        self.failed.take(&report);
        self.requests.take(&mut report);
        for (way, mut direction) in report.directions.into_iter().enumerate() {
            if direction.counts.data_packets == 0 {
                continue;
            }
            self.take_trail(&mut direction);
            let events = direction.loss_times.len() + direction.retransmitted.len();
            self.omitted += direction.omitted;
            if self.events + events > MOST_EVENTS {
                self.omitted += events as u64;
                direction.loss_times = Vec::new();
                direction.retransmitted = Vec::new();
            } else {
                self.events += events;
            }
            self.thin_out(&mut direction);
            self.keep(Row {
                number: report.number,
                way,
                first_frame: report.first_frame,
                syn_captured: report.syn_captured,
                end: report.end,
                handshake_rtt_s: report.handshake_rtt_s,
                direction,
                passage: None,
            });
        }
    }

    /// Leaves out the rounds for which there is no room any more.
    fn thin_out(&mut self, direction: &mut DirectionReport) {
        if self.rounds + direction.rounds.len() > MOST_ROUNDS {
            self.omitted_rounds += direction.rounds.len() as u64;
            direction.rounds = Vec::new();
        }
        direction.rounds.shrink_to_fit();
        self.rounds += direction.rounds.len();
    }
}

/// Reads a capture to its end, or to its damage, or until somebody interrupts; `after`: that of a second tap.
fn follow(
    stream: Box<dyn Read + '_>,
    after: Option<Box<dyn Read + '_>>,
    limits: Limits,
    interrupted: &AtomicBool,
) -> Result<Found, Unread> {
    let mut reader = Reader::new(Watched { stream, interrupted }).map_err(Unread::Before)?;
    let other = after.map(|stream| Reader::new(Watched { stream, interrupted }));
    let mut between = other.transpose().map_err(Unread::After)?.map(TapComparison::new);
    let mut connections = Connections::new(limits);
    let mut found = Found::default();
    let mut segments = 0_u64;
    while let Some(segment) = reader.next_segment() {
        match &mut between {
            Some(between) => between.before(segment, connections.number(segment)),
            None => connections.push(segment),
        }
        segments += 1;
        if segments % 1024 == 0 {
            connections.finished().into_iter().for_each(|report| found.take(report));
            if segments % LOOK_EVERY == 0 && look(interrupted) {
                break;
            }
        }
    }
    found.connections = connections.count();
    for report in connections.finish() {
        found.take(report);
    }
    found.summary = reader.summary().clone();
    found.settle();
    if let Some(between) = between {
        let (between, summary) = between.finish(interrupted.load(Ordering::Relaxed));
        found.compare(Beside { summary, between });
    }
    Ok(found)
}

/// Read a capture, and tell what TCP did in each direction that carries data.
///
/// Standard input if there is no source. `after` is a capture of the same packets at a second tap;
/// `trail_points` about how many points of a time-sequence plot are kept of a direction; `max_connections` are
/// followed at once. OSError where a capture
/// cannot be read, ValueError where it is none.
#[pyfunction]
#[pyo3(signature = (source=None, after=None, trail_points=0, max_connections=None))]
pub(crate) fn read_trace(
    py: Python<'_>,
    source: Option<Source>,
    after: Option<Source>,
    trail_points: usize,
    max_connections: Option<usize>,
) -> PyResult<Bound<'_, PyDict>> {
    let interrupted = AtomicBool::new(false);
    let most = max_connections.unwrap_or(Limits::default().connections);
    let limits = Limits { connections: most, points: trail_points, ..Limits::default() };
    let found = py.detach(|| {
        let stream = match &source {
            None => Box::new(io::stdin().lock()),
            Some(source) => open(source).map_err(Unread::Before)?,
        };
        let after = after.as_ref().map(open).transpose().map_err(Unread::After)?;
        follow(stream, after, limits, &interrupted)
    });
    let mut found = found.map_err(|unread| unread.into_py(py))?;
    let (failed, [talks, requests]) = (found.failed.table(py)?, found.requests.tables(py)?);
    let rows = &found.rows;
    let dict = PyDict::new(py);
    dict.set_item("connections", directions(py, rows)?)?;
    dict.set_item("intervals", intervals(py, rows)?)?;
    dict.set_item("retransmissions", retransmissions(py, rows)?)?;
    dict.set_item("loss_indications", loss_indications(py, rows)?)?;
    dict.set_item("trail", trail(py, rows)?)?;
    dict.set_item("without_trail", if trail_points > 0 { found.trailless } else { 0 })?;
    dict.set_item("rounds", rounds(py, rows)?)?;
    dict.set_item("limits", LIMITS.map(limit))?;
    let summary = &found.summary;
    dict.set_item("frames", summary.frames)?;
    dict.set_item("segments", summary.segments)?;
    dict.set_item("connection_count", found.connections)?;
    let rest = found.rest.to_py(py)?;
    for (name, count) in found.failed.counts() {
        rest.set_item(name, count)?;
    }
    dict.set_item("rest", rest)?;
    dict.set_item("failed", failed)?;
    dict.set_item("talks", talks)?;
    dict.set_item("requests", requests)?;
    dict.set_item("omitted_requests", found.requests.omitted)?;
    dict.set_item("max_connections", most)?;
    dict.set_item("omitted_events", found.omitted)?;
    dict.set_item("omitted_rounds", found.omitted_rounds)?;
    dict.set_item("warnings", summary.warnings())?;
    dict.set_item("damaged", summary.is_damaged())?;
    dict.set_item("interrupted", interrupted.load(Ordering::Relaxed))?;
    if let Some(beside) = &found.beside {
        dict.set_item("between", between(py, rows, beside)?)?;
    }
    Ok(dict)
}

/// A column: its name, and what it takes from a row.
type Column<R, T> = (&'static str, fn(&R) -> T);

const COUNTS: &[Column<Row, u64>] = &[
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
    ("to", |row| row.direction.indications.to()),
    ("td_paper", |row| row.direction.indications.td_paper),
    ("to_paper", |row| row.direction.indications.to_paper),
    ("timeouts", |row| row.direction.indications.timeouts),
    ("to_depth_1", |row| row.direction.indications.by_depth[0]),
    ("to_depth_2", |row| row.direction.indications.by_depth[1]),
    ("to_depth_3", |row| row.direction.indications.by_depth[2]),
    ("to_depth_4", |row| row.direction.indications.by_depth[3]),
    ("to_depth_5", |row| row.direction.indications.by_depth[4]),
    ("to_depth_6", |row| row.direction.indications.by_depth[5]),
    ("max_backoff", max_backoff),
    ("rtt_samples", |row| row.direction.rtt.sender.map_or(0, |rtt| rtt.samples)),
    ("rtt_round_samples", |row| row.direction.rtt.round_samples),
    ("segment_bytes", |row| u64::from(row.direction.segment_bytes)),
    ("flight_max_bytes", |row| row.direction.flight_max_bytes),
    ("window_max_bytes", |row| row.direction.window_max_bytes),
    ("out_of_window", |row| row.direction.counts.out_of_window),
];

/// What the capture need not say; absent is NaN.
const MEASURES: &[Column<Row, Option<f64>>] = &[
    ("duration_s", |row| row.direction.duration_s()),
    ("throughput_bps", |row| row.direction.throughput_bps()),
    ("goodput_bps", |row| row.direction.goodput_bps()),
    ("t0_s", |row| row.direction.t0_s),
    ("handshake_rtt_s", |row| row.handshake_rtt_s),
    ("tap_to_sender_s", |row| row.direction.rtt.tap_to_sender_s),
    ("rtt_over_time_s", |row| row.direction.rtt.over_time_s),
    ("rtt_sample_mean_s", |row| row.direction.rtt.sender.map(|rtt| rtt.mean_s)),
    ("rtt_min_s", |row| row.direction.rtt.sender.map(|rtt| rtt.min_s)),
    ("rtt_p50_s", |row| row.direction.rtt.sender.map(|rtt| rtt.p50_s)),
    ("rtt_p95_s", |row| row.direction.rtt.sender.map(|rtt| rtt.p95_s)),
    ("rtt_p99_s", |row| row.direction.rtt.sender.map(|rtt| rtt.p99_s)),
    ("rtt_max_s", |row| row.direction.rtt.sender.map(|rtt| rtt.max_s)),
    ("rtt_karn_mean_s", |row| row.direction.rtt.karn.map(|rtt| rtt.mean_s)),
    ("rtt_karn_p50_s", |row| row.direction.rtt.karn.map(|rtt| rtt.p50_s)),
    ("rtt_karn_p99_s", |row| row.direction.rtt.karn.map(|rtt| rtt.p99_s)),
    ("rtt_round_mean_s", |row| row.direction.rtt.round_mean_s),
    ("rtt_undelayed_max_s", |row| row.direction.rtt.undelayed_max_s),
    ("rtt_timestamps_mean_s", |row| row.direction.rtt.timestamps.map(|rtt| rtt.mean_s)),
    ("rtt_flight_correlation", |row| row.direction.rtt.flight_correlation),
    ("w_max_pkts", |row| row.direction.w_max_packets()),
    ("packets_per_ack", |row| row.direction.packets_per_ack()),
    ("start_growth", |row| row.direction.start_growth()),
    ("start_acks", |row| row.direction.start_acks()),
    ("initial_window_pkts", |row| row.direction.initial_window_packets.map(|n| n as f64)),
    ("flight_mean_bytes", |row| row.direction.flight_mean_bytes),
    ("mss_bytes", |row| row.direction.announced.mss.map(f64::from)),
    ("window_scale", |row| row.direction.announced.window_scale.map(f64::from)),
    ("idle_s", |row| row.direction.limitation.idle_s),
    ("application_limited_s", |row| row.direction.limitation.application_limited_s),
    ("bottleneck_rate_bps", |row| row.direction.limitation.bottleneck_rate_bps),
    ("window_reduction", |row| row.direction.limitation.window_reduction),
    ("pacing_variation", |row| row.direction.evidence.pacing_variation),
    ("queue_delay_s", |row| row.direction.evidence.queue_s),
    ("missing_acks", |row| row.direction.missing_answers.map(|count| count as f64)),
];

const FLAGS: &[Column<Row, bool>] = &[
    ("syn_captured", |row| row.syn_captured),
    ("sack", |row| row.direction.announced.sack),
    ("timestamps", |row| row.direction.announced.timestamps),
    ("ecn", |row| row.direction.announced.ecn),
    ("rtt_withheld", |row| row.direction.rtt.withheld),
];

/// The most timeouts in one sequence; where not all are kept, at least as many as the deepest class has.
fn max_backoff(row: &Row) -> u64 {
    let kept = row.direction.retransmitted.iter().map(|again| backoff(again.cause)).max();
    let class = row.direction.indications.by_depth.iter().rposition(|count| *count > 0);
    kept.unwrap_or(0).max(class.map_or(0, |place| place as u64 + 1))
}

/// How often the timer had expired in a row.
fn backoff(cause: Cause) -> u64 {
    match cause {
        Cause::Timeout { depth } => u64::from(depth),
        _ => 0,
    }
}

/// What there is several times in a direction, with the row of the direction.
fn each<T>(rows: &[Row], of: fn(&DirectionReport) -> &Vec<T>) -> Vec<(usize, &T)> {
    let numbered = rows.iter().enumerate();
    numbered.flat_map(|(at, row)| of(&row.direction).iter().map(move |one| (at, one))).collect()
}

fn column<'py, R, T: Element>(
    py: Python<'py>,
    rows: &[R],
    of: impl Fn(&R) -> T,
) -> Bound<'py, PyArray1<T>> {
    PyArray1::from_iter(py, rows.iter().map(of))
}

/// Signed, as differences of counts should be.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The table of directions.
fn directions<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let ends: Vec<_> =
        rows.iter().map(|row| (row.direction.source, row.direction.destination)).collect();
    let sources: Vec<_> =
        ends.iter().map(|ends| (ends.0.address.to_string(), ends.0.port)).collect();
    let others: Vec<_> =
        ends.iter().map(|ends| (ends.1.address.to_string(), ends.1.port)).collect();
    dict.set_item("src", sources)?;
    dict.set_item("dst", others)?;
    dict.set_item("tap_side", rows.iter().map(|row| side(row.direction.side)).collect::<Vec<_>>())?;
    dict.set_item("end", rows.iter().map(|row| end(row.end)).collect::<Vec<_>>())?;
    for (name, of) in COUNTS {
        dict.set_item(name, column(py, rows, |row| signed(of(row))))?;
    }
    for (name, of) in MEASURES {
        dict.set_item(name, column(py, rows, |row| of(row).unwrap_or(f64::NAN)))?;
    }
    for (name, of) in FLAGS {
        dict.set_item(name, column(py, rows, of))?;
    }
    dict.set_item("limited_by", column(py, rows, |row| row.direction.limitation.limited_by as u8))?;
    for (place, one) in LIMITS.into_iter().enumerate() {
        let share = |row: &Row| row.direction.limitation.shares.map_or(f64::NAN, |all| all[place]);
        dict.set_item(format!("share_{}", limit(one)), column(py, rows, share))?;
    }
    Ok(dict)
}

/// Stretches of 100 s; `direction` is the row of the table of directions.
fn intervals<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let all = each(rows, |direction| &direction.intervals);
    let dict = PyDict::new(py);
    let count = |name: &str, of: fn(&Interval) -> u64| {
        dict.set_item(name, column(py, &all, |(_, interval)| signed(of(interval))))
    };
    count("index", |interval| interval.index)?;
    count("data_packets", |interval| interval.data_packets)?;
    count("bytes", |interval| interval.bytes)?;
    count("retransmissions", |interval| interval.retransmissions)?;
    count("td", |interval| interval.indications.td)?;
    count("to", |interval| interval.indications.to())?;
    count("td_paper", |interval| interval.indications.td_paper)?;
    count("to_paper", |interval| interval.indications.to_paper)?;
    count("timeouts", |interval| interval.indications.timeouts)?;
    count("rtt_samples", |interval| interval.rtt_samples)?;
    count("flight_max_bytes", |interval| interval.flight_max_bytes)?;
    count("window_max_bytes", |interval| interval.window_max_bytes)?;
    dict.set_item("direction", column(py, &all, |(at, _)| signed(*at as u64)))?;
    let rtt = |(_, interval): &(usize, &Interval)| interval.rtt_mean_s().unwrap_or(f64::NAN);
    dict.set_item("rtt_sample_mean_s", column(py, &all, rtt))?;
    Ok(dict)
}

/// Each retransmission that is kept.
fn retransmissions<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let all = each(rows, |direction| &direction.retransmitted);
    let dict = PyDict::new(py);
    dict.set_item("direction", column(py, &all, |(at, _)| signed(*at as u64)))?;
    dict.set_item("time_ns", column(py, &all, |(_, again)| signed(again.time)))?;
    dict.set_item("offset_bytes", column(py, &all, |(_, again)| signed(again.offset)))?;
    dict.set_item("bytes", column(py, &all, |(_, again)| i64::from(again.bytes)))?;
    dict.set_item("cause", all.iter().map(|(_, again)| cause(again.cause)).collect::<Vec<_>>())?;
    dict.set_item("backoff", column(py, &all, |(_, again)| signed(backoff(again.cause))))?;
    dict.set_item("spurious", column(py, &all, |(_, again)| again.spurious))?;
    Ok(dict)
}

/// Each loss indication that is kept.
fn loss_indications<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let all = each(rows, |direction| &direction.loss_times);
    let kind = |kind| match kind {
        Kind::Td => "td",
        Kind::To => "to",
    };
    let dict = PyDict::new(py);
    dict.set_item("direction", column(py, &all, |(at, _)| signed(*at as u64)))?;
    dict.set_item("time_ns", column(py, &all, |(_, loss)| signed(loss.time)))?;
    dict.set_item("kind", all.iter().map(|(_, loss)| kind(loss.kind)).collect::<Vec<_>>())?;
    Ok(dict)
}

/// Each round; `limited_by` is a place in `limits`.
fn rounds<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let all = each(rows, |direction| &direction.rounds);
    let dict = PyDict::new(py);
    let count = |name: &str, of: fn(&Round) -> u64| {
        dict.set_item(name, column(py, &all, |(_, round)| signed(of(round))))
    };
    count("time_ns", |round| round.time)?;
    dict.set_item("direction", column(py, &all, |(at, _)| signed(*at as u64)))?;
    dict.set_item("duration_s", column(py, &all, |(_, round)| round.duration_s()))?;
    dict.set_item("rtt_s", column(py, &all, |(_, round)| round.rtt_s().unwrap_or(f64::NAN)))?;
    count("flight_bytes", |round| u64::from(round.flight_bytes))?;
    count("window_bytes", |round| u64::from(round.window_bytes))?;
    count("sent_bytes", |round| round.sent_bytes)?;
    count("acked_bytes", |round| round.acked_bytes)?;
    count("retransmissions", |round| u64::from(round.retransmissions))?;
    dict.set_item("limited_by", column(py, &all, |(_, round)| round.limited_by as u8))?;
    Ok(dict)
}
