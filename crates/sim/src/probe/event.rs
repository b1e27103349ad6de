//! What a TCP sender publishes.

use crate::clock::Nanos;

/// What a TCP sender publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEvent {
    /// A round-trip sample was taken.
    RttSample {
        /// The sample.
        rtt: Nanos,
    },
    /// The handshake is over: the file begins.
    Opened {
        /// Its packets.
        packets: u32,
    },
    /// Packets that were in flight are acknowledged.
    Acked {
        /// How many.
        packets: u32,
    },
    /// As many duplicate acknowledgements as the threshold: recovery begins.
    FastRetransmit {
        /// The window at which the loss was found.
        window: u32,
    },
    /// A partial acknowledgement during recovery: one more packet is retransmitted.
    PartialAck,
    /// A tail loss probe is sent: RFC 8985, section 7.
    TailLossProbe {
        /// It retransmits, for want of new data.
        retransmits: bool,
    },
    /// A reduction of the window turned out to be unnecessary, and was undone.
    Undone {
        /// It was that of a timeout, not of a fast recovery.
        after_timeout: bool,
    },
    /// Recovery ends with success.
    Recovered {
        /// Packets sent at once on the way out.
        burst: u32,
    },
    /// A connection that goes on after an OFF time begins with the window of a new one.
    IdleRestart,
    /// The retransmission timer expired.
    Timeout {
        /// The first unacknowledged packet.
        number: u32,
        /// Packets after it in the file.
        left: u32,
        /// Whether the whole file has been sent.
        all_sent: bool,
        /// The window when it expired.
        window: u32,
        /// Whether the sender was in slow start.
        slow_start: bool,
        /// Whether it had expired for the same packet before.
        repeated: bool,
        /// Whether it interrupted a recovery.
        in_recovery: bool,
        /// The timeout that expired.
        rto: Nanos,
    },
    /// The window after an event.
    Window {
        /// Congestion window.
        cwnd: u32,
        /// Slow-start threshold.
        ssthresh: u32,
        /// Packets outstanding, with what the event let out.
        flight: u32,
        /// The smaller of cwnd and the receiver window.
        window: u32,
    },
}

/// Listens to one sender.
pub trait TcpProbe {
    /// An event at time `now`.
    fn tcp(&mut self, now: Nanos, event: TcpEvent);
}
