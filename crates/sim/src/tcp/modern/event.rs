//! What a modern sender publishes.

use crate::clock::Nanos;

/// By what a reduction of the window was found to be unnecessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoReason {
    /// The receiver reported each retransmission as a duplicate: RFC 3708.
    Duplicates,
    /// The original was acknowledged by its timestamp: RFC 3522.
    Timestamps,
    /// What was not retransmitted was acknowledged after a timeout: RFC 5682.
    Forward,
}

/// What a modern sender publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A round-trip sample was taken.
    RttSample {
        /// The sample.
        rtt: Nanos,
    },
    /// Fast recovery begins.
    Recovery {
        /// The window at which the loss was found.
        window: u32,
    },
    /// Fast recovery ends with success.
    Recovered,
    /// A reduction of the window was undone.
    Undone {
        /// Why.
        reason: UndoReason,
        /// It was that of a timeout, not of a fast recovery.
        after_timeout: bool,
    },
    /// An ECN echo reduces the window.
    CongestionEcho {
        /// The window before.
        window: u32,
    },
    /// A tail loss probe is sent: RFC 8985, section 7.
    LossProbe {
        /// Whether it retransmits, for want of new data.
        retransmits: bool,
    },
    /// A tail loss probe repaired a loss: RFC 8985, section 7.4.
    ProbeRepaired,
    /// The reordering timer found losses.
    ReorderTimeout,
    /// The retransmission timer expired.
    Timeout {
        /// The first unacknowledged byte.
        una: u64,
        /// The number of its packet, from 0.
        first: u32,
        /// Whether all that was written has been sent.
        all_sent: bool,
        /// The window when it expired.
        window: u32,
        /// Whether the sender was in slow start.
        slow_start: bool,
        /// Whether it expired before and nothing was acknowledged since.
        repeated: bool,
        /// Whether it interrupted a recovery.
        in_recovery: bool,
        /// The timeout that expired.
        rto: Nanos,
    },
    /// A packet is marked lost.
    Lost {
        /// Its first byte.
        start: u64,
    },
    /// HyStart ends slow start.
    SlowStartExit {
        /// The window, which becomes the threshold.
        cwnd: u32,
    },
    /// A connection restarts after an idle time.
    IdleRestart,
    /// The window after an event.
    Window {
        /// Congestion window, in packets.
        cwnd: u32,
        /// Slow-start threshold, in packets.
        ssthresh: u32,
        /// Packets in flight.
        in_flight: u32,
    },
}

/// Listens to one sender.
pub trait Probe {
    /// An event at time `now`.
    fn tcp(&mut self, now: Nanos, event: Event);
}

/// Nobody listens.
impl Probe for () {
    #[inline(always)]
    fn tcp(&mut self, _now: Nanos, _event: Event) {}
}

impl Probe for Vec<(Nanos, Event)> {
    fn tcp(&mut self, now: Nanos, event: Event) {
        self.push((now, event));
    }
}
