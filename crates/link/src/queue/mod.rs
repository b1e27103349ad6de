//! Queue disciplines, which enqueue, drop, mark and schedule packets.

mod admission;
mod any;
mod chain;
mod codel;
mod departures;
mod drr;
mod fifo;
mod flows;
mod fq_codel;
mod head_drop;
mod longest;
mod occupancy;
mod pie;
mod red;

pub use admission::{Admission, Admit, AdmitAll, ArrivalContext};
pub use any::{AnyQueue, QueueConfig};
pub use chain::{Chain, NONE, Pool};
pub use codel::{Codel, CodelConfig, CodelRules};
pub use departures::{Departure, Departures, Leaving, LeavingBytes};
pub use drr::{Buffers, DropPolicy, Drr, DrrConfig};
pub use fifo::{DropTail, Fifo};
pub use flows::{Flows, ListedFlow};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use head_drop::HeadDrop;
pub use longest::{ListLinks, Longest, Ties};
pub use occupancy::{Backlog, InService, Limits};
pub use pie::{Pie, PieConfig, PieRules};
pub use red::{Red, RedConfig, RedUnit};

use crate::packet::Packet;
use crate::time::{NEVER, Nanos};

/// Reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A buffer limit was reached.
    Full,
    /// The discipline dropped the packet to signal congestion, although the buffer had room.
    Early,
}

/// The outcome of an enqueue for the packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet was enqueued.
    Accepted,
    /// The packet was marked and enqueued.
    Marked,
    /// The packet was dropped.
    Dropped(Reason),
}

/// Receives the events of a queue.
///
/// Each packet is either returned by [`QueueDiscipline::dequeue`] or passed to
/// [`QueueProbe::dropped`], exactly once. Drops include rejected arrivals, packets that were
/// evicted to make room, and packets dropped at the head.
pub trait QueueProbe<T> {
    /// A packet that arrived at `packet.entered` is dropped at `now`.
    fn dropped(&mut self, now: Nanos, packet: &Packet<T>, reason: Reason);
    /// A packet arrives and finds `packets` packets, including the packet in transmission.
    fn found(&mut self, _packets: u64) {}
    /// The queue held `packets` packets, including the packet in transmission, until `until`.
    fn held(&mut self, _packets: u64, _until: Nanos) {}
    /// RED has updated its average queue length, in its unit.
    fn averaged(&mut self, _average: f64) {}
}

/// Collects the dropped packets.
impl<T: Copy> QueueProbe<T> for Vec<Packet<T>> {
    fn dropped(&mut self, _now: Nanos, packet: &Packet<T>, _reason: Reason) {
        self.push(*packet);
    }
}

/// A queue discipline in front of one transmitter.
///
/// `now` never decreases between calls. The caller calls [`QueueDiscipline::dequeue`] whenever the
/// transmitter is free, so the packet returned by the previous call has left and is no longer held.
pub trait QueueDiscipline<T> {
    /// Handles a packet that arrives at `now`. Calls `probe.dropped` if the packet is rejected, and
    /// for each packet that is evicted to make room.
    fn enqueue(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>)
    -> Verdict;

    /// Returns the packet to transmit at `now`, or `None` if no packet waits. Calls `probe.dropped`
    /// for each packet dropped at the head.
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>>;

    /// Prefetches the packets that the next `turns` turns are likely to transmit or drop, and calls
    /// `report` with their flow numbers.
    fn prefetch_ahead(&self, _turns: usize, _report: impl FnMut(u32)) {}

    /// Backlog, excluding the packet in transmission.
    fn waiting(&self) -> Backlog;

    /// Backlog, including the packet in transmission.
    fn held(&self) -> Backlog;

    /// Time at which [`QueueDiscipline::on_deadline`] must be called; [`NEVER`] if there is no
    /// timer.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// Handles the deadline.
    fn on_deadline(&mut self, _now: Nanos) {}

    /// Resets the state of an empty queue, as if it were created at `now`.
    fn restart(&mut self, now: Nanos);
}
