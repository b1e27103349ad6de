//! Limits of a transfer by their share of time, after Zhang et al., *On the characteristics and
//! origins of Internet flow rates* (T-RAT), and Siekkinen et al., *A root cause analysis toolkit
//! for TCP*.
//!
//! Timeouts, application pauses, closed windows and recovery are already attributed
//! ([`rounds`](super::rounds)). The rest of each round is classified by the path's minimum RTT and
//! maximum rate.

use super::limit_kinds::TransferLimit;
use super::round_record::Round;
use super::rounds::RoundSummary;
use super::tap_side::TapSide;
use crate::segment::Nanos;

/// Factor by which the RTT must exceed its minimum in a standing queue.
const QUEUE_RTT_FACTOR: f64 = 1.1;
/// Minimum number of full segments in a standing queue.
const MIN_QUEUED_SEGMENTS: f64 = 2.0;
/// Minimum number of rounds for which a standing queue lasts.
const MIN_QUEUE_ROUNDS: u64 = 3;
/// The path is full from this share of its maximum rate.
const MIN_FULL_RATE_SHARE: f64 = 0.85;
/// Quantile of the rounds' rates used as maximum rate, because several acknowledgements may arrive
/// together.
const MAX_RATE_QUANTILE: f64 = 0.9;
/// Rounds with a larger share of recovery or pauses do not show the path's rate.
const MAX_DISTURBED_SHARE: f64 = 0.25;
/// Minimum rounds of constant flight for a limit by the send buffer: the congestion window grows by
/// at least a segment in two rounds.
const MIN_FLAT_ROUNDS: u64 = 6;
/// Maximum relative difference of flights that count as constant; a difference of one segment is
/// always allowed.
const MAX_FLIGHT_DIFFERENCE: f64 = 0.05;
/// Approximate duration of CUBIC's plateau around the window of the last loss or ECN mark (RFC 9438,
/// section 4.2: C = 0.4).
const CUBIC_PLATEAU: Nanos = 4_000_000_000;
/// Minimum share of the pauses that the application caused, to report their duration.
const MIN_VISIBLE_PAUSES: f64 = 0.5;

/// Properties of the path, known at the end of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSummary {
    pub(super) side: TapSide,
    /// Round-trip time between the tap and the sender.
    pub(super) tap_rtt: Option<Nanos>,
    /// Minimum RTT sample at the tap.
    pub(super) min_rtt: Option<Nanos>,
    /// Time during which hidden losses may have stopped the sender without anything in flight at a
    /// tap away from the sender: one timeout for each retransmission.
    pub(super) hidden_timeouts: Nanos,
    /// False if no acknowledgement triggered new data, so that no window limited the sender.
    pub(super) ack_clocked: bool,
    /// Full segment, bytes.
    pub(super) segment: u32,
    /// True if the scale of the receive windows is unknown.
    pub(super) bad_scale: bool,
}

impl PathSummary {
    /// Whether flights and rounds at the tap match those at the sender.
    fn is_at_sender(&self) -> bool {
        self.side == TapSide::Sender && self.min_rtt.is_some()
    }

    /// Share of the pauses at the tap that are pauses of the application. Others may be caused by
    /// losses before the tap or, if the position of the tap is unknown, by the path to the sender or
    /// by delayed acknowledgements. `pauses`: time of all pauses.
    fn application_share(&self, pauses: Nanos) -> f64 {
        if self.tap_rtt.is_none() {
            0.0
        } else if self.is_at_sender() || self.hidden_timeouts == 0 {
            1.0
        } else {
            pauses.saturating_sub(self.hidden_timeouts) as f64 / pauses.max(1) as f64
        }
    }
}

/// Limits of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferLimits {
    /// Limit with the largest share; for equal shares, the first in [`TransferLimit::ALL`].
    pub limited_by: TransferLimit,
    /// Shares of the time from the first data to the last acknowledgement, in the order of
    /// [`TransferLimit::ALL`], with sum 1. `None` if no time passed.
    pub shares: Option<[f64; 9]>,
    /// Time with nothing in flight and nothing sent, s; `None` if not visible at the tap.
    pub idle_s: Option<f64>,
    /// Time without data to send, s, including the idle time.
    pub application_limited_s: Option<f64>,
    /// Time with a receive window below a full segment while data were waiting, s.
    pub window_closed_s: f64,
    /// Acknowledged payload while the path was full, bit/s: the median of these rounds.
    pub bottleneck_rate_bps: Option<f64>,
    /// Median ratio of the flight after a fast recovery to the flight before it.
    pub window_reduction: Option<f64>,
}

/// Time by limit, ns.
type TimeByLimit = [Nanos; 9];

/// Returns the limits of the transfer and sets the limit of each round.
pub(super) fn classify_limits(summary: &mut RoundSummary, path: &PathSummary) -> TransferLimits {
    let rows = &mut summary.rows;
    if rows.is_empty() {
        return TransferLimits::default();
    }
    if path.is_at_sender() {
        mark_full_link_rounds(rows, path);
        mark_flat_rounds(rows, path);
    }
    let pauses: Nanos = rows.iter().map(|row| row.parts.application).sum();
    let application_share = path.application_share(pauses);
    let mut times = TimeByLimit::default();
    for row in &mut *rows {
        let spent = round_time_by_limit(row, path, application_share);
        times.iter_mut().zip(spent).for_each(|(sum, one)| *sum += one);
        row.limited_by = largest_limit(&spent);
    }
    let total: Nanos = times.iter().sum();
    let queued = rows.iter().filter(|row| row.full);
    let rate = quantile(queued.filter_map(round_ack_rate).collect(), 0.5);
    let closed: Nanos = rows.iter().map(|row| row.parts.closed).sum();
    let visible = application_share >= MIN_VISIBLE_PAUSES && total > 0;
    let paused = times[TransferLimit::Application as usize];
    let idle = summary.idle as f64 * application_share;
    TransferLimits {
        limited_by: largest_limit(&times),
        shares: (total > 0).then(|| times.map(|time| time as f64 / total as f64)),
        idle_s: visible.then_some(idle / 1e9),
        application_limited_s: visible.then_some(paused as f64 / 1e9),
        window_closed_s: closed as f64 / 1e9,
        bottleneck_rate_bps: rate.map(|rate| rate * 8e9),
        window_reduction: summary.reduction.filter(|_| path.is_at_sender()),
    }
}

fn largest_limit(times: &TimeByLimit) -> TransferLimit {
    let max = times.iter().max().copied().unwrap_or(0);
    let index = times.iter().position(|time| *time == max && max > 0);
    index.map_or(TransferLimit::Unknown, |index| TransferLimit::ALL[index])
}

/// Returns the time of a round by limit.
fn round_time_by_limit(row: &Round, path: &PathSummary, application_share: f64) -> TimeByLimit {
    let parts = &row.parts;
    let mut times = TimeByLimit::default();
    let known = path.is_at_sender() && path.ack_clocked;
    let mut add = |limit: TransferLimit, time: Nanos| times[limit as usize] += time;
    let paused = ((parts.application as f64 * application_share) as Nanos).min(parts.application);
    add(TransferLimit::Application, paused);
    add(TransferLimit::Unknown, parts.application - paused);
    add(TransferLimit::LossRecovery, parts.recovery);
    add(TransferLimit::Timeout, parts.timeout);
    add(if known { TransferLimit::SlowStart } else { TransferLimit::Unknown }, parts.slow_start);
    add(TransferLimit::ReceiverWindow, parts.closed);
    // A larger window would only lengthen the queue.
    add(
        if row.full { TransferLimit::Bottleneck } else { TransferLimit::ReceiverWindow },
        parts.receiver_window,
    );
    let rest = match (known, row.full, row.flat) {
        (false, ..) => TransferLimit::Unknown,
        (_, true, _) => TransferLimit::Bottleneck,
        // The send buffer or the receive window, which cannot be read.
        (_, _, true) if path.bad_scale => TransferLimit::Unknown,
        (_, _, true) => TransferLimit::SendBuffer,
        _ => TransferLimit::CongestionWindow,
    };
    // In a paced burst, the sender does not wait for the buffer.
    let sending = Nanos::from(row.sending_us) * 1000;
    let paced = rest == TransferLimit::SendBuffer && 2 * sending <= parts.rest;
    let burst = if paced { sending } else { 0 };
    add(TransferLimit::CongestionWindow, burst);
    add(rest, parts.rest - burst);
    times
}

/// Sets `full` for the rounds in which a queue stood while acknowledgements arrived at the maximum
/// rate.
fn mark_full_link_rounds(rows: &mut [Round], path: &PathSummary) {
    let min_rtt = path.min_rtt.unwrap_or(0) as f64;
    let stands =
        |row: &Round| row.mean_rtt_ns().is_some_and(|rtt| rtt >= QUEUE_RTT_FACTOR * min_rtt);
    if round_count(rows.iter().filter(|row| stands(row))) < MIN_QUEUE_ROUNDS {
        return;
    }
    let max_rate = quantile(rows.iter().filter_map(round_ack_rate).collect(), MAX_RATE_QUANTILE)
        .unwrap_or(0.0);
    let queue = MIN_QUEUED_SEGMENTS * f64::from(path.segment);
    let mut before = false;
    for row in &mut *rows {
        if let Some(rtt) = row.mean_rtt_ns() {
            let fast =
                round_ack_rate(row).is_some_and(|rate| rate >= MIN_FULL_RATE_SHARE * max_rate);
            // A receiver that does not read delays acknowledgements even without a queue.
            let open = row.parts.closed == 0;
            before = fast && open && stands(row) && (rtt - min_rtt) * max_rate >= queue;
        }
        // Rounds without an RTT sample continue the previous state.
        row.full = before;
    }
    for run in rows.chunk_by_mut(|a, b| a.full == b.full) {
        if round_count(run.iter()) < MIN_QUEUE_ROUNDS {
            run.iter_mut().for_each(|row| row.full = false);
        }
    }
}

fn round_count<'a>(rows: impl Iterator<Item = &'a Round>) -> u64 {
    rows.map(|row| u64::from(row.rounds)).sum()
}

fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let index = values.len().saturating_sub(1) as f64 * share;
    values.get(index as usize).copied()
}

/// Rate of acknowledgements, bytes/ns, if the round was not disturbed.
fn round_ack_rate(row: &Round) -> Option<f64> {
    let total = row.parts.total();
    let disturbed = row.parts.application + row.parts.recovery + row.parts.timeout;
    let calm = total > 0 && disturbed as f64 <= MAX_DISTURBED_SHARE * total as f64;
    (calm && row.acked_bytes > 0).then(|| row.acked_bytes as f64 / total as f64)
}

/// Sets `flat` for the rounds of long periods in which the flight was constant and smaller than the
/// receive window.
fn mark_flat_rounds(rows: &mut [Round], path: &PathSummary) {
    let mut congested = false;
    let mut from = 0;
    while from < rows.len() {
        congested |= rows[from].is_congested();
        let length = flat_run_length(&rows[from..], path);
        let run = &mut rows[from..from + length];
        if is_flat_run(run, congested, path) {
            run.iter_mut().for_each(|row| row.flat = true);
            from += length;
        } else {
            from += 1;
        }
    }
}

/// Returns the number of rows, from the first, in which the flight is nearly constant and has no
/// other limit.
fn flat_run_length(rows: &[Round], path: &PathSummary) -> usize {
    let segment = u64::from(path.segment);
    let calm = |row: &Round| {
        let room =
            path.bad_scale || u64::from(row.flight_bytes) + segment <= u64::from(row.window_bytes);
        let undecided = row.parts.rest > row.parts.total() / 2 && !row.full;
        room && !row.is_congested() && undecided
    };
    let (mut min, mut max) = (u32::MAX, 0);
    let alike = rows.iter().take_while(|row| {
        (min, max) = (min.min(row.flight_min), max.max(row.flight_bytes));
        let spread = f64::from(max - min);
        calm(row) && spread <= f64::from(path.segment).max(MAX_FLIGHT_DIFFERENCE * f64::from(max))
    });
    alike.count()
}

fn is_flat_run(run: &[Round], congested: bool, path: &PathSummary) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
    let span: Nanos = run.iter().map(|row| row.parts.total()).sum();
    let grown = last.flight_bytes.saturating_sub(first.flight_bytes) > path.segment;
    round_count(run.iter()) >= MIN_FLAT_ROUNDS && !grown && (!congested || span >= CUBIC_PLATEAU)
}
