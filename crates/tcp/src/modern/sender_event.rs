//! Events published by a modern sender.

use crate::tcp_event::TimeoutState;
use tcpcast_link::time::Nanos;

/// Reason why a window reduction was found to be unnecessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoReason {
    /// The receiver reported each retransmission as a duplicate: RFC 3708.
    Duplicates,
    /// The timestamp shows that the original packet was acknowledged: RFC 3522.
    Timestamps,
    /// A packet that was not retransmitted was acknowledged after a timeout: RFC 5682.
    Forward,
}

/// Event published by a modern sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// A round-trip sample was taken.
    RttSample {
        /// Round-trip time.
        rtt: Nanos,
    },
    /// Fast recovery begins.
    Recovery {
        /// Congestion window when the loss was detected.
        window: u32,
    },
    /// Fast recovery ends successfully.
    Recovered,
    /// A reduction of the window was undone.
    Undone {
        /// Evidence that the reduction was unnecessary.
        reason: UndoReason,
        /// Whether the reduction was caused by a timeout, not by a fast recovery.
        after_timeout: bool,
    },
    /// An ECN echo reduces the window.
    CongestionEcho {
        /// Congestion window before.
        window: u32,
    },
    /// A tail loss probe is sent: RFC 8985, section 7.
    LossProbe {
        /// Whether the probe is a retransmission, because no new data is available.
        retransmits: bool,
    },
    /// A tail loss probe repaired a loss: RFC 8985, section 7.4.
    ProbeRepaired,
    /// The reordering timer detected losses.
    ReorderTimeout,
    /// The retransmission timer expired.
    Timeout {
        /// Number of the first unacknowledged packet, from 0.
        first: u32,
        /// State of the sender at expiry.
        state: TimeoutState,
    },
    /// A packet is marked lost.
    Lost {
        /// First byte of the packet.
        start: u64,
    },
    /// HyStart ends slow start.
    SlowStartExit {
        /// Congestion window, which becomes the slow-start threshold.
        cwnd: u32,
    },
    /// A connection restarts after an idle time.
    IdleRestart,
    /// State of the window after an event.
    Window {
        /// Congestion window, in packets.
        cwnd: u32,
        /// Slow-start threshold, in packets.
        ssthresh: u32,
        /// Packets in flight.
        in_flight: u32,
    },
}

/// Receives the events of one sender.
pub trait SenderProbe {
    /// An event at time `now`.
    fn on_sender_event(&mut self, now: Nanos, event: SenderEvent);
}

/// Discards all events.
impl SenderProbe for () {
    #[inline(always)]
    fn on_sender_event(&mut self, _now: Nanos, _event: SenderEvent) {}
}

impl SenderProbe for Vec<(Nanos, SenderEvent)> {
    fn on_sender_event(&mut self, now: Nanos, event: SenderEvent) {
        self.push((now, event));
    }
}
