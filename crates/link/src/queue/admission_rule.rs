//! Admission rules in front of a FIFO queue, which accept, mark or drop packets on arrival.

use super::{Backlog, QueueProbe};
use crate::packet::{Ecn, Packet};
use crate::time::{NEVER, Nanos};

/// An arriving packet and the state of the queue.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalContext {
    /// Length of the packet in bytes.
    pub bytes: u32,
    /// ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Backlog, excluding the packet in transmission.
    pub waiting: Backlog,
    /// Start of the idle period of the transmitter; `None` if the transmitter is busy.
    pub idle_since: Option<Nanos>,
    /// Whether the packet fits into the buffer.
    pub has_room: bool,
}

/// Decision of an admission rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmitDecision {
    /// Enqueue the packet.
    Accept,
    /// Mark and enqueue the packet, which is ECN-capable.
    Mark,
    /// Drop the packet.
    Drop,
}

/// An admission rule.
pub trait AdmissionRule {
    /// Whether a packet that arrives at a full buffer evicts the oldest waiting packets. The packet
    /// in transmission is never evicted.
    const EVICTS_OLDEST: bool = false;

    /// Decides about an arriving packet. Without room, the packet is dropped regardless of the
    /// result.
    #[inline]
    fn admit<T>(
        &mut self,
        _now: Nanos,
        _context: &ArrivalContext,
        _probe: &mut impl QueueProbe<T>,
    ) -> AdmitDecision {
        AdmitDecision::Accept
    }

    /// The last packet passed to [`AdmissionRule::admit`] is dropped because the buffer is full.
    fn on_overflow(&mut self) {}

    /// A packet is dequeued for transmission; `waiting` is the remaining backlog.
    fn on_dequeue<T>(&mut self, _now: Nanos, _packet: &Packet<T>, _waiting: Backlog) {}

    /// Time at which [`AdmissionRule::on_deadline`] must be called; [`NEVER`] if the rule has no
    /// timer.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// Handles the deadline.
    fn on_deadline(&mut self, _now: Nanos, _waiting: Backlog) {}

    /// Resets the state.
    fn reset(&mut self, _now: Nanos) {}
}

/// A rule that accepts all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmitAll;

impl AdmissionRule for AdmitAll {}

/// A rule that accepts all packets, and evicts the oldest ones if the buffer is full, so that their
/// senders detect the loss earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictOldest;

impl AdmissionRule for EvictOldest {
    const EVICTS_OLDEST: bool = true;
}
