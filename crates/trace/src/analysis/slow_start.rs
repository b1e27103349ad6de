//! Changes of the flight per round: growth in slow start, and reduction by a recovery.

use super::round_record::{Round, TimeByCause, WaitReason};
use crate::segment::Nanos;

/// Growth of the data in flight in slow starts without another limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStartGrowth {
    /// Growth, bytes.
    pub grown_bytes: u64,
    /// Bytes acknowledged during this growth.
    pub acked_bytes: u64,
    /// Acknowledgements during this growth.
    pub acks: u64,
}

impl SlowStartGrowth {
    pub(super) fn add_growth(&mut self, other: &Self) {
        self.grown_bytes += other.grown_bytes;
        self.acked_bytes += other.acked_bytes;
        self.acks += other.acks;
    }
}

/// Minimum growth per round in slow start. If every second segment is acknowledged, the flight
/// grows by at least half (RFC 5681, section 3.1).
const MIN_GROWTH: f64 = 1.2;
/// Number of successive rounds without growth after which slow start has ended.
const MAX_ROUNDS_WITHOUT_GROWTH: u8 = 2;
/// An idle time of one RTO restarts slow start (RFC 5681, section 4.1).
const MIN_RESTART_IDLE: Nanos = 300_000_000;
/// Maximum number of recoveries stored per direction.
const MAX_RECOVERIES: usize = 1024;
/// A window counts as unchanged after a recovery until this fraction (one quarter) of the former
/// flight is acknowledged.
const UNCHANGED_WINDOW_DIVISOR: u64 = 4;

/// Slow-start detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStartDetector {
    ended: bool,
    /// Flight at which slow start ends; 0 if unknown.
    threshold: u32,
    last: u32,
    max_flight: u32,
    stalls: u8,
    /// Flight of the first round of the current slow start; 0 before that.
    first: u32,
    current: SlowStartGrowth,
    /// Sum of the previous slow starts.
    seen: SlowStartGrowth,
}

impl SlowStartDetector {
    /// Processes a completed round: attributes its rest to slow start if the sender is in slow
    /// start.
    pub(super) fn process_round(&mut self, round: &mut Round, acks: u32) {
        self.max_flight = self.max_flight.max(round.flight_bytes);
        let TimeByCause { application, receiver_window, closed, recovery, timeout, .. } =
            round.parts;
        let held = application + receiver_window + closed + recovery + timeout;
        if self.ended {
            return;
        }
        // A flight that something else limits need not grow.
        if held > round.parts.total() / 2 {
            self.end_growth();
        } else {
            let stalled = f64::from(round.flight_bytes) < MIN_GROWTH * f64::from(self.last);
            self.stalls = if stalled { self.stalls + 1 } else { 0 };
            if stalled && self.last > 0 {
                self.end_growth();
            } else {
                self.add_growth_round(round, acks);
            }
            self.last = round.flight_bytes;
            let reached = self.threshold > 0 && round.flight_bytes >= self.threshold;
            self.ended = reached || self.stalls >= MAX_ROUNDS_WITHOUT_GROWTH;
        }
        if !self.ended {
            self.attribute_rest_to_slow_start(&mut round.parts);
        }
    }

    /// Adds a round in which the flight grew.
    fn add_growth_round(&mut self, round: &Round, acks: u32) {
        if self.first == 0 {
            self.first = round.flight_bytes;
            return;
        }
        let grown = round.flight_bytes.saturating_sub(self.first);
        self.current.grown_bytes = u64::from(grown);
        self.current.acked_bytes += round.acked_bytes;
        self.current.acks += u64::from(acks);
    }

    /// Ends or interrupts the growth.
    fn end_growth(&mut self) {
        self.seen.add_growth(&std::mem::take(&mut self.current));
        self.first = 0;
    }

    /// Returns the growth of the flight in slow starts.
    pub(super) fn take_total_growth(&mut self) -> SlowStartGrowth {
        self.end_growth();
        self.seen
    }

    fn attribute_rest_to_slow_start(&self, parts: &mut TimeByCause) {
        parts.slow_start += std::mem::take(&mut parts.rest);
    }

    /// A loss ends slow start.
    pub(super) fn end_at_loss(&mut self, parts: &mut TimeByCause) {
        if !self.ended {
            self.attribute_rest_to_slow_start(parts);
        }
        self.end_growth();
        self.ended = true;
    }

    /// A timeout restarts slow start, up to half of the flight (RFC 5681, equation 4).
    pub(super) fn restart_after_timeout(&mut self, flight: u32, parts: &mut TimeByCause) {
        self.end_at_loss(parts);
        *self = Self {
            threshold: flight.max(self.last) / 2,
            max_flight: self.max_flight,
            seen: self.seen,
            ..Self::default()
        };
    }

    /// A pause restarts slow start, up to the flight reached before.
    pub(super) fn restart_after_idle(&mut self, pause: Nanos) {
        if pause > MIN_RESTART_IDLE {
            let threshold = if self.ended { self.max_flight } else { self.threshold };
            self.end_growth();
            let (max_flight, seen) = (self.max_flight, self.seen);
            *self = Self { threshold, max_flight, seen, ..Self::default() };
        }
    }
}

/// Flights before and after fast recoveries.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowReductions {
    /// Bytes in flight at the first duplicate acknowledgement.
    duplicate: u64,
    /// Bytes in flight before the last recovery; 0 if there is none.
    before: u64,
    /// Maximum bytes in flight since the recovery ended.
    after: u64,
    /// Bytes acknowledged since the recovery ended.
    acked: u64,
    ratios: Vec<f32>,
}

impl WindowReductions {
    /// Called for the first duplicate acknowledgement.
    pub(super) fn on_first_duplicate(&mut self, flight: u64) {
        self.duplicate = flight;
    }

    /// Called when a recovery begins. `flight`: bytes in flight, used if there were no duplicates.
    pub(super) fn on_recovery_begin(&mut self, flight: u32) {
        self.before = if self.duplicate > 0 { self.duplicate } else { u64::from(flight) };
        (self.after, self.acked) = (0, 0);
    }

    /// Called when the recovery ends by timeout.
    pub(super) fn discard_on_timeout(&mut self) {
        self.before = 0;
    }

    /// Called when new data of `bytes` are acknowledged. `flight`: bytes in flight before.
    #[inline]
    pub(super) fn on_new_ack(&mut self, flight: u64, bytes: u64, wait: WaitReason) {
        self.duplicate = 0;
        if self.before > 0 && wait != WaitReason::Repair {
            self.record_flight_after_reduction(flight, bytes);
        }
    }

    /// Updates the flight after recovery. Some senders fill the new window slowly, by a few
    /// segments per acknowledgement. Much later, the window would have grown again.
    fn record_flight_after_reduction(&mut self, flight: u64, bytes: u64) {
        self.after = self.after.max(flight);
        self.acked += bytes;
        if self.acked < self.before / UNCHANGED_WINDOW_DIVISOR {
            return;
        }
        if self.ratios.len() < MAX_RECOVERIES {
            self.ratios.push((self.after as f64 / self.before as f64) as f32);
        }
        self.before = 0;
    }

    /// Median ratio of `after` to `before`.
    pub(super) fn median_ratio(&mut self) -> Option<f64> {
        self.ratios.sort_by(f32::total_cmp);
        let (low, high) = (self.ratios.len().checked_sub(1)? / 2, self.ratios.len() / 2);
        Some((f64::from(self.ratios[low]) + f64::from(self.ratios[high])) / 2.0)
    }
}
