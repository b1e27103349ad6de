//! What limited a transfer: shares of its time, after Zhang et al., *On the characteristics and origins of Internet
//! flow rates* (T-RAT), and Siekkinen et al., *A root cause analysis toolkit for TCP*.
//!
//! Waits of timers and of the application, closed windows and repairs are known by then ([`rounds`](super::rounds)).
//! What is left of a round is classify_limits by the path as it turned out: its least round-trip time and its greatest rate.

use super::rounds::{RoundSummary, Round};
use super::side::Side;
use crate::segment::Nanos;

/// What a transfer can be limited by; of equal shares the first in this order counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// There was nothing to send.
    Application,
    /// The receiver's window was full.
    ReceiverWindow,
    /// The flight stayed the same below the receiver's window, without loss.
    SendBuffer,
    /// The window grew exponentially.
    SlowStart,
    /// The congestion window, without a queue that stands.
    CongestionWindow,
    /// From a fast retransmit, or the first segment after a timeout, until all is repaired.
    LossRecovery,
    /// The wait for the retransmission timer.
    Timeout,
    /// Acknowledgements came at the path's rate, and a queue stood.
    Bottleneck,
    /// The capture does not say.
    #[default]
    Unknown,
}

/// All of them, in order.
pub const LIMITS: [Limit; 9] = [
    Limit::Application,
    Limit::ReceiverWindow,
    Limit::SendBuffer,
    Limit::SlowStart,
    Limit::CongestionWindow,
    Limit::LossRecovery,
    Limit::Timeout,
    Limit::Bottleneck,
    Limit::Unknown,
];

/// A queue stands if the RTT is so much above its least.
const STANDING: f64 = 1.1;
/// And if so many full segments wait, at least.
const MIN_QUEUE: f64 = 2.0;
/// For so many rounds, at least.
const LASTING_ROUNDS: u64 = 3;
/// A path is full from this share of its greatest rate on.
const FULL: f64 = 0.85;
/// The greatest rate is this quantile of the rounds' rates: acknowledgements may arrive several at a time.
const GREATEST: f64 = 0.9;
/// Rounds with more than this share of repair or pause say nothing of the path's rate.
const MAX_DISTURBED: f64 = 0.25;
/// Rounds through which a flight stays the same that a buffer limits: the congestion window grows by a segment
/// in two, at least.
const FLAT_ROUNDS: u64 = 6;
/// Flights differ by less than this share then, or by one segment.
const FLAT: f64 = 0.05;
/// CUBIC's window is flat for about so long around that of its last loss (RFC 9438, section 4.2: C = 0.4).
const PLATEAU: Nanos = 4_000_000_000;
/// The least RTT at a receiver's tap is shorter than this.
const MIN_PATH: Nanos = 1_000_000;

/// What is known of the path in the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSummary {
    pub(super) side: Side,
    /// Round trip between the tap and the sender.
    pub(super) near: Option<Nanos>,
    /// The least RTT sample from the tap.
    pub(super) least: Option<Nanos>,
    /// Nothing was retransmitted, and nothing is missing.
    pub(super) lossless: bool,
    /// A full segment, bytes.
    pub(super) segment: u32,
    /// The scale of the receiver's windows is not known.
    pub(super) misread: bool,
}

impl PathSummary {
    /// Flights and rounds are the sender's.
    fn near_sender(&self) -> bool {
        let Some(least) = self.least else { return false };
        match self.side {
            Side::Sender => true,
            Side::Unknown => self.near.is_some() || least >= MIN_PATH,
            Side::Receiver | Side::Middle => false,
        }
    }

    /// Pauses are the application's: neither the path to the sender, nor a loss that nobody saw, nor a delayed
    /// acknowledgement at a tap of which nothing says where it is.
    fn shows_pauses(&self) -> bool {
        self.near.is_some() && (self.near_sender() || self.lossless)
    }
}

/// What limited a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limitation {
    /// That with the largest share; of equal ones, the first in the order of [`LIMITS`].
    pub limited_by: Limit,
    /// Shares of the time from the first data to the last acknowledgement, in the order of [`LIMITS`]; their sum
    /// is 1. `None` if no time passed.
    pub shares: Option<[f64; 9]>,
    /// Time in which nothing was in flight and nothing was sent, s; `None` where the tap does not show it.
    pub idle_s: Option<f64>,
    /// Time in which the application had nothing to send, s: the idle time, and what went before it.
    pub application_limited_s: Option<f64>,
    /// Payload acknowledged while the path was full, bit/s: the median of such rounds.
    pub bottleneck_rate_bps: Option<f64>,
    /// Flight after a fast recovery by the flight before it, median.
    pub window_reduction: Option<f64>,
}

/// Time by limit, ns.
type Times = [Nanos; 9];

/// What limited the transfer in all; says it of each round, too.
pub(super) fn classify_limits(found: &mut RoundSummary, path: &PathSummary) -> Limitation {
    let rows = &mut found.rows;
    if rows.is_empty() {
        return Limitation::default();
    }
    if path.near_sender() {
        fill(rows, path);
        flatten(rows, path);
    }
    let mut times = Times::default();
    for row in &mut *rows {
        let spent = spent(row, path);
        times.iter_mut().zip(spent).for_each(|(sum, one)| *sum += one);
        row.limited_by = largest(&spent);
    }
    let all: Nanos = times.iter().sum();
    let queued = rows.iter().filter(|row| row.full);
    let rate = quantile(queued.filter_map(rate).collect(), 0.5);
    let pauses = path.shows_pauses() && all > 0;
    let paused = times[Limit::Application as usize];
    Limitation {
        limited_by: largest(&times),
        shares: (all > 0).then(|| times.map(|time| time as f64 / all as f64)),
        idle_s: pauses.then_some(found.idle as f64 / 1e9),
        application_limited_s: pauses.then_some(paused as f64 / 1e9),
        bottleneck_rate_bps: rate.map(|rate| rate * 8e9),
        window_reduction: found.reduction.filter(|_| path.near_sender()),
    }
}

fn largest(times: &Times) -> Limit {
    let most = times.iter().max().copied().unwrap_or(0);
    let place = times.iter().position(|time| *time == most && most > 0);
    place.map_or(Limit::Unknown, |place| LIMITS[place])
}

/// The time of a row by what it was spent on.
fn spent(row: &Round, path: &PathSummary) -> Times {
    let parts = &row.parts;
    let mut times = Times::default();
    let known = path.near_sender();
    let mut add = |limit: Limit, time: Nanos| times[limit as usize] += time;
    let paused = path.shows_pauses();
    add(if paused { Limit::Application } else { Limit::Unknown }, parts.application);
    add(Limit::LossRecovery, parts.recovery);
    add(Limit::Timeout, parts.timeout);
    add(if known { Limit::SlowStart } else { Limit::Unknown }, parts.slow_start);
    add(Limit::ReceiverWindow, parts.closed);
    // A larger window would only lengthen the queue.
    add(if row.full { Limit::Bottleneck } else { Limit::ReceiverWindow }, parts.receiver_window);
    let rest = match (known, row.full, row.flat) {
        (false, ..) => Limit::Unknown,
        (_, true, _) => Limit::Bottleneck,
        // A buffer, or the receiver's window, which cannot be read.
        (_, _, true) if path.misread => Limit::Unknown,
        (_, _, true) => Limit::SendBuffer,
        _ => Limit::CongestionWindow,
    };
    // A burst that is paced: the buffer is not what the sender waits for.
    let sending = Nanos::from(row.sending_us) * 1000;
    let paced = rest == Limit::SendBuffer && 2 * sending <= parts.rest;
    let burst = if paced { sending } else { 0 };
    add(Limit::CongestionWindow, burst);
    add(rest, parts.rest - burst);
    times
}

/// Finds the rows in which a queue stood while acknowledgements came at the greatest rate.
fn fill(rows: &mut [Round], path: &PathSummary) {
    let least = path.least.unwrap_or(0) as f64;
    let stands = |row: &Round| row.rtt().is_some_and(|rtt| rtt >= STANDING * least);
    if rounds(rows.iter().filter(|row| stands(row))) < LASTING_ROUNDS {
        return;
    }
    let greatest = quantile(rows.iter().filter_map(rate).collect(), GREATEST).unwrap_or(0.0);
    let queue = MIN_QUEUE * f64::from(path.segment);
    let mut before = false;
    for row in &mut *rows {
        if let Some(rtt) = row.rtt() {
            let fast = rate(row).is_some_and(|rate| rate >= FULL * greatest);
            // A receiver that does not read delays acknowledgements: no queue does.
            let open = row.parts.closed == 0;
            before = fast && open && stands(row) && (rtt - least) * greatest >= queue;
        }
        // Nothing was timed: as before.
        row.full = before;
    }
    for run in rows.chunk_by_mut(|a, b| a.full == b.full) {
        if rounds(run.iter()) < LASTING_ROUNDS {
            run.iter_mut().for_each(|row| row.full = false);
        }
    }
}

fn rounds<'a>(rows: impl Iterator<Item = &'a Round>) -> u64 {
    rows.map(|row| u64::from(row.rounds)).sum()
}

fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = values.len().saturating_sub(1) as f64 * share;
    values.get(place as usize).copied()
}

/// Bytes acknowledged in a nanosecond, if the row was not disturbed.
fn rate(row: &Round) -> Option<f64> {
    let all = row.parts.all();
    let disturbed = row.parts.application + row.parts.recovery + row.parts.timeout;
    let calm = all > 0 && disturbed as f64 <= MAX_DISTURBED * all as f64;
    (calm && row.acked_bytes > 0).then(|| row.acked_bytes as f64 / all as f64)
}

/// Finds the rows in which the flight stayed the same for long below the receiver's window.
fn flatten(rows: &mut [Round], path: &PathSummary) {
    let mut lost = false;
    let mut from = 0;
    while from < rows.len() {
        lost |= rows[from].retransmissions > 0;
        let length = stretch(&rows[from..], path);
        let run = &mut rows[from..from + length];
        if stays(run, lost, path) {
            run.iter_mut().for_each(|row| row.flat = true);
            from += length;
        } else {
            from += 1;
        }
    }
}

/// How many rows from the first on have nearly the same flight, and nothing else that limits them.
fn stretch(rows: &[Round], path: &PathSummary) -> usize {
    let segment = u64::from(path.segment);
    let calm = |row: &Round| {
        let room =
            path.misread || u64::from(row.flight_bytes) + segment <= u64::from(row.window_bytes);
        let undecided = row.parts.rest > row.parts.all() / 2 && !row.full;
        room && row.retransmissions == 0 && undecided
    };
    let (mut least, mut most) = (u32::MAX, 0);
    let alike = rows.iter().take_while(|row| {
        (least, most) = (least.min(row.flight_min), most.max(row.flight_bytes));
        let spread = f64::from(most - least);
        calm(row) && spread <= f64::from(path.segment).max(FLAT * f64::from(most))
    });
    alike.count()
}

fn stays(run: &[Round], lost: bool, path: &PathSummary) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
    let span: Nanos = run.iter().map(|row| row.parts.all()).sum();
    let grown = last.flight_bytes.saturating_sub(first.flight_bytes) > path.segment;
    rounds(run.iter()) >= FLAT_ROUNDS && !grown && (!lost || span >= PLATEAU)
}
