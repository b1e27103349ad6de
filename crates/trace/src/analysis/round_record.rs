//! The record of a round of a transfer, with its time by cause.

use super::limit_kinds::TransferLimit;
use super::rtt::credible_rtt_s;
use crate::segment::Nanos;

/// Reason why the sender waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// Loss recovery.
    Repair,
    /// The receive window has no room for another full segment.
    Window,
    /// The receive window is smaller than a full segment: the receiver does not read.
    Closed,
    /// The last segment was not full: no more data were available.
    Short,
    /// Single packets do not show the reason.
    #[default]
    Open,
}

impl WaitReason {
    /// Whether the receive window is the reason.
    #[inline(always)]
    pub(super) fn is_by_receiver(self) -> bool {
        matches!(self, Self::Window | Self::Closed)
    }
}

/// Time by cause, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeByCause {
    pub(super) application: Nanos,
    pub(super) receiver_window: Nanos,
    /// The receive window was closed: the receiver did not read.
    pub(super) closed: Nanos,
    pub(super) slow_start: Nanos,
    pub(super) recovery: Nanos,
    pub(super) timeout: Nanos,
    /// Classified when the connection ends.
    pub(super) rest: Nanos,
}

impl TimeByCause {
    pub(super) fn total(&self) -> Nanos {
        let known = self.application + self.receiver_window + self.closed + self.slow_start;
        known + self.recovery + self.timeout + self.rest
    }

    fn add_times(&mut self, other: &Self) {
        self.application += other.application;
        self.receiver_window += other.receiver_window;
        self.closed += other.closed;
        self.slow_start += other.slow_start;
        self.recovery += other.recovery;
        self.timeout += other.timeout;
        self.rest += other.rest;
    }
}

/// A round or, in long transfers, several consecutive rounds merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Time when the timed segment was sent.
    pub time: Nanos,
    /// Time when the timed segment was acknowledged.
    pub(super) end: Nanos,
    /// Payload sent, including retransmissions.
    pub sent_bytes: u64,
    /// Newly acknowledged bytes.
    pub acked_bytes: u64,
    /// Time from the start of this round to the start of the next.
    pub(super) parts: TimeByCause,
    pub(super) rtt_sum: Nanos,
    pub(super) rtt_samples: u32,
    pub(super) rounds: u32,
    /// Retransmitted segments.
    pub retransmissions: u32,
    /// Maximum bytes in flight.
    pub flight_bytes: u32,
    /// Smallest of the merged rounds' maxima of bytes in flight.
    pub(super) flight_min: u32,
    /// Largest receive window, bytes.
    pub window_bytes: u32,
    /// Sum of the gaps between new data in which the sender did not wait, µs.
    pub(super) sending_us: u32,
    /// True if the receiver echoed an ECN mark, or the sender reduced its window because of one.
    pub(super) marked: bool,
    /// Limit with the largest share of the time.
    pub limited_by: TransferLimit,
    /// True if a queue persisted while acknowledgements arrived at the path's rate.
    pub(super) full: bool,
    /// True if the flight stayed constant for long.
    pub(super) flat: bool,
}

impl Round {
    pub(super) fn begin(time: Nanos) -> Self {
        Self { time, end: time, rounds: 1, ..Self::default() }
    }

    pub(super) fn merge_next(&mut self, next: &Self) {
        self.end = next.end;
        self.parts.add_times(&next.parts);
        self.rtt_sum += next.rtt_sum;
        self.rtt_samples += next.rtt_samples;
        self.rounds = self.rounds.saturating_add(next.rounds);
        self.sent_bytes += next.sent_bytes;
        self.acked_bytes += next.acked_bytes;
        self.retransmissions = self.retransmissions.saturating_add(next.retransmissions);
        self.marked |= next.marked;
        self.flight_bytes = self.flight_bytes.max(next.flight_bytes);
        self.flight_min = self.flight_min.min(next.flight_min);
        self.window_bytes = self.window_bytes.max(next.window_bytes);
        self.sending_us = self.sending_us.saturating_add(next.sending_us);
    }

    /// Time until the timed segment was acknowledged, s.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.end.saturating_sub(self.time) as f64 / 1e9
    }

    /// Whether losses or ECN marks show that the path was congested.
    pub(super) fn is_congested(&self) -> bool {
        self.retransmissions > 0 || self.marked
    }

    /// RTT sample of this round, s; `None` if Karn's rule forbids it, or if it is too short.
    #[must_use]
    pub fn rtt_s(&self) -> Option<f64> {
        self.mean_rtt_ns().and_then(|rtt| credible_rtt_s(rtt / 1e9))
    }

    /// Mean of the valid RTT samples, ns.
    pub(super) fn mean_rtt_ns(&self) -> Option<f64> {
        (self.rtt_samples > 0).then(|| self.rtt_sum as f64 / f64::from(self.rtt_samples))
    }
}
