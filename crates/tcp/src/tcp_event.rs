//! Events of TCP senders.

use crate::modern::cc::path_model::BbrState;
use tcpcast_link::time::Nanos;

/// Event of a TCP sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEvent {
    /// The round-trip time was measured.
    RttSample {
        /// Measured round-trip time.
        rtt: Nanos,
    },
    /// The handshake is complete: the file starts.
    Opened {
        /// Packets of the file.
        packets: u32,
    },
    /// Packets in flight are acknowledged.
    Acked {
        /// Number of packets.
        packets: u32,
    },
    /// The threshold of duplicate acknowledgements is reached: recovery starts.
    FastRetransmit {
        /// Window at the detection of the loss.
        window: u32,
    },
    /// A partial acknowledgement during recovery: one more packet is retransmitted.
    PartialAck,
    /// A tail loss probe is sent (RFC 8985, section 7).
    TailLossProbe {
        /// Whether the probe is a retransmission, because there is no new data.
        retransmits: bool,
    },
    /// An unnecessary reduction of the window is undone.
    Undone {
        /// Whether a timeout caused the reduction, not a fast recovery.
        after_timeout: bool,
    },
    /// Recovery ends successfully.
    Recovered {
        /// Packets sent in a burst at the end of recovery.
        burst: u32,
    },
    /// The window is reset to the initial window after an OFF time.
    IdleRestart,
    /// The retransmission timer expired.
    Timeout {
        /// First unacknowledged packet.
        number: u32,
        /// Packets of the file after it. A sender of bytes leaves them to its endpoint, which knows
        /// the file.
        left: u32,
        /// State of the sender at expiry.
        state: TimeoutState,
    },
    /// The window after an event.
    Window {
        /// Congestion window.
        cwnd: u32,
        /// Slow-start threshold.
        ssthresh: u32,
        /// Outstanding packets, including packets sent because of the event.
        flight: u32,
        /// Minimum of cwnd and the receiver window.
        window: u32,
    },
}

/// Discards all events.
impl TcpProbe for () {
    #[inline(always)]
    fn on_tcp_event(&mut self, _now: Nanos, _event: TcpEvent) {}
}

/// State of a sender when its retransmission timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutState {
    /// Whether all data written so far has been sent.
    pub all_sent: bool,
    /// Window.
    pub window: u32,
    /// Whether the sender was in slow start.
    pub slow_start: bool,
    /// Whether the timer had already expired for the same packet.
    pub repeated: bool,
    /// Whether the timeout interrupts a recovery.
    pub in_recovery: bool,
    /// Value of the expired timeout.
    pub rto: Nanos,
}

/// Receives the events of one sender.
pub trait TcpProbe {
    /// Handles an event at time `now`.
    fn on_tcp_event(&mut self, now: Nanos, event: TcpEvent);

    /// Whether windows and states of BBR of this end are recorded; they are computed only then.
    #[inline(always)]
    fn records_windows(&self) -> bool {
        true
    }

    /// Handles the state of BBR, for packets with `mss` bytes of payload.
    fn on_bbr_state(&mut self, _now: Nanos, _state: BbrState, _mss: u32) {}
}
