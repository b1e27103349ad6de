//! How the flight changes from round to round: whether it grows as in slow start, and by how much a recovery cuts it.

use super::report::SlowStart;
use super::rounds::{TimeParts, Round, Wait};
use crate::segment::Nanos;

/// Slow start grows a flight by half in a round, at least, where every second segment is acknowledged
/// (RFC 5681, section 3.1); less than this is none.
const MIN_GROWTH: f64 = 1.2;
/// Rounds without growth that end a slow start.
const STALLS: u8 = 2;
/// After an idle time of one RTO, a sender restarts in slow start (RFC 5681, section 4.1).
const LONG_PAUSE: Nanos = 300_000_000;
/// More recoveries are not kept of a direction.
const MAX_RECOVERIES: usize = 1024;
/// A window is as large as a recovery left it until this part of the flight before is acknowledged.
const SETTLED: u64 = 4;

/// Whether a sender is in slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    over: bool,
    /// Flight at which it ends; 0 if nobody knows.
    threshold: u32,
    last: u32,
    greatest: u32,
    stalls: u8,
    /// Of the current slow start, from the flight of its first round on; 0 before that.
    first: u32,
    current: SlowStart,
    /// Of those before.
    seen: SlowStart,
}

impl Growth {
    /// A round is over: its rest was slow start, or not.
    pub(super) fn round(&mut self, round: &mut Round, acks: u32) {
        self.greatest = self.greatest.max(round.flight_bytes);
        let TimeParts { application, receiver_window, closed, recovery, timeout, .. } = round.parts;
        let held = application + receiver_window + closed + recovery + timeout;
        if self.over {
            return;
        }
        // What something else held back need not grow.
        if held > round.parts.all() / 2 {
            self.settle();
        } else {
            let stalled = f64::from(round.flight_bytes) < MIN_GROWTH * f64::from(self.last);
            self.stalls = if stalled { self.stalls + 1 } else { 0 };
            if stalled && self.last > 0 {
                self.settle();
            } else {
                self.grown(round, acks);
            }
            self.last = round.flight_bytes;
            let reached = self.threshold > 0 && round.flight_bytes >= self.threshold;
            self.over = reached || self.stalls >= STALLS;
        }
        if !self.over {
            self.claim(&mut round.parts);
        }
    }

    /// The flight has grown through a round.
    fn grown(&mut self, round: &Round, acks: u32) {
        if self.first == 0 {
            self.first = round.flight_bytes;
            return;
        }
        let grown = round.flight_bytes.saturating_sub(self.first);
        self.current.grown_bytes = u64::from(grown);
        self.current.acked_bytes += round.acked_bytes;
        self.current.acks += u64::from(acks);
    }

    /// Growth ends, or is held back from here on.
    fn settle(&mut self) {
        self.seen.add(&std::mem::take(&mut self.current));
        self.first = 0;
    }

    /// How flights grew in slow starts.
    pub(super) fn slow_start(&mut self) -> SlowStart {
        self.settle();
        self.seen
    }

    fn claim(&self, parts: &mut TimeParts) {
        parts.slow_start += std::mem::take(&mut parts.rest);
    }

    /// A loss ends it.
    pub(super) fn loss(&mut self, parts: &mut TimeParts) {
        if !self.over {
            self.claim(parts);
        }
        self.settle();
        self.over = true;
    }

    /// A timeout begins it anew, up to half of the flight (RFC 5681, equation 4).
    pub(super) fn timeout(&mut self, flight: u32, parts: &mut TimeParts) {
        self.loss(parts);
        *self = Self {
            threshold: flight.max(self.last) / 2,
            greatest: self.greatest,
            seen: self.seen,
            ..Self::default()
        };
    }

    /// A pause begins it anew, up to what was reached before.
    pub(super) fn idle(&mut self, pause: Nanos) {
        if pause > LONG_PAUSE {
            let threshold = if self.over { self.greatest } else { self.threshold };
            self.settle();
            let (greatest, seen) = (self.greatest, self.seen);
            *self = Self { threshold, greatest, seen, ..Self::default() };
        }
    }
}

/// Flights before and after fast recoveries.
#[derive(Clone, Debug, Default)]
pub(super) struct Reductions {
    /// In flight as the first duplicate came.
    duplicate: u64,
    /// In flight before the last recovery; 0 if there is none.
    before: u64,
    /// The most in flight since it ended.
    after: u64,
    /// Acknowledged since it ended.
    acked: u64,
    ratios: Vec<f32>,
}

impl Reductions {
    /// The first duplicate has come.
    pub(super) fn duplicate(&mut self, flight: u64) {
        self.duplicate = flight;
    }

    /// A recovery begins. Without duplicates `flight` bytes were in flight.
    pub(super) fn begin(&mut self, flight: u32) {
        self.before = if self.duplicate > 0 { self.duplicate } else { u64::from(flight) };
        (self.after, self.acked) = (0, 0);
    }

    /// It ended in a timeout.
    pub(super) fn forget(&mut self) {
        self.before = 0;
    }

    /// New data of `bytes` are acknowledged; `flight` was out until then.
    #[inline]
    pub(super) fn acked(&mut self, flight: u64, bytes: u64, wait: Wait) {
        self.duplicate = 0;
        if self.before > 0 && wait != Wait::Repair {
            self.settle(flight, bytes);
        }
    }

    /// Some senders fill the new window by a few segments an acknowledgement. Later it would have grown.
    fn settle(&mut self, flight: u64, bytes: u64) {
        self.after = self.after.max(flight);
        self.acked += bytes;
        if self.acked < self.before / SETTLED {
            return;
        }
        if self.ratios.len() < MAX_RECOVERIES {
            self.ratios.push((self.after as f64 / self.before as f64) as f32);
        }
        self.before = 0;
    }

    /// The median of after / before.
    pub(super) fn median(&mut self) -> Option<f64> {
        self.ratios.sort_by(f32::total_cmp);
        let (low, high) = (self.ratios.len().checked_sub(1)? / 2, self.ratios.len() / 2);
        Some((f64::from(self.ratios[low]) + f64::from(self.ratios[high])) / 2.0)
    }
}
