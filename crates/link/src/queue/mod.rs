//! Queue disciplines, which enqueue, drop, mark and schedule packets.

mod admission_rule;
mod any;
mod buffer_occupancy;
mod cake;
mod cobalt;
mod codel;
mod drr;
mod dualpi2;
mod fifo;
mod flow_table;
mod fq_codel;
mod longest_queue;
mod packet_list;
mod pie;
mod red;

pub use admission_rule::{AdmissionRule, AdmitAll, AdmitDecision, ArrivalContext, EvictOldest};
pub(crate) use buffer_occupancy::MaxBacklog;
pub use buffer_occupancy::{Backlog, BufferLimits, BufferOccupancy};
pub use cake::{AckFilter, Cake, CakeConfig, CellFraming, Isolation, Tins};
pub use codel::{Codel, CodelConfig, CodelRules};
pub use drr::{BufferAssignment, DropPolicy, Drr, DrrConfig, HeadOfLine, HeavyFlows};
pub use dualpi2::{DualPi2, DualPi2Config};
pub use fifo::{DropTail, Fifo, HeadDrop};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use longest_queue::TieBreakRule;
pub use packet_list::{NO_INDEX, PacketList, PacketPool};
pub use pie::{Pie, PieConfig, PieRules};
pub use red::{Red, RedConfig, RedRules};

use crate::packet::Packet;
use crate::random::RandomStream;
use crate::time::{NEVER, Nanos};
use serde::Deserialize;

// The disciplines: Variant(parameters) -> queue { expression that creates it }
any::define_any_queue! {
    (limits, draws)
    /// FIFO that drops arriving packets when full.
    DropTail -> DropTail<T> { Fifo::new(limits, AdmitAll) }
    /// FIFO that drops the oldest packets when full.
    HeadDrop -> HeadDrop<T> { Fifo::new(limits, EvictOldest) }
    /// Random early detection.
    Red(red: RedConfig) -> Box<Fifo<T, Red>> {
        Box::new(Fifo::new(limits, Red::new(red, draws)))
    }
    /// Fair queueing.
    Drr(drr: DrrConfig) -> Box<Drr<T>> { Box::new(Drr::new(limits, drr, draws)) }
    /// Controlled delay.
    Codel(codel: CodelConfig) -> Box<Codel<T>> { Box::new(Codel::new(limits, codel)) }
    /// Fair queueing with controlled delay.
    FqCodel(fq_codel: FqCodelConfig) -> Box<FqCodel<T>> {
        Box::new(FqCodel::new(limits, fq_codel))
    }
    /// Common applications kept enhanced.
    Cake(cake: CakeConfig) -> Box<Cake<T>> { Box::new(Cake::new(limits, cake, draws)) }
    /// Dual-queue coupled AQM with PI2.
    Dualpi2(dualpi2: DualPi2Config) -> Box<DualPi2<T>> {
        Box::new(DualPi2::new(limits, dualpi2, draws))
    }
    /// Proportional integral controller enhanced.
    Pie(pie: PieConfig) -> Box<Fifo<T, Pie>> {
        Box::new(Fifo::new(limits, Pie::new(pie, draws)))
    }
}

/// Reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// A buffer limit was reached.
    Full,
    /// The discipline dropped the packet to signal congestion, although the buffer had room.
    Early,
    /// A later acknowledgement of the same flow made this acknowledgement needless.
    Superseded,
}

/// The outcome of an enqueue for the packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// The packet was enqueued.
    Accepted,
    /// The packet was marked and enqueued.
    Marked,
    /// The packet was dropped.
    Dropped(DropReason),
}

/// Receives the events of a queue.
///
/// Each packet is either returned by [`QueueDiscipline::dequeue`] or passed to
/// [`QueueProbe::on_drop`], exactly once. Drops include rejected arrivals, packets that were
/// evicted to make room, and packets dropped at the head.
pub trait QueueProbe<T> {
    /// A packet that arrived at `packet.entered` is dropped at `now`.
    fn on_drop(&mut self, now: Nanos, packet: &Packet<T>, reason: DropReason);
    /// A packet arrives and finds `packets` packets, including the packet in transmission.
    fn on_arrival_queue_length(&mut self, _packets: u64) {}
    /// The queue held `packets` packets, including the packet in transmission, until `until`.
    fn on_queue_length_interval(&mut self, _packets: u64, _until: Nanos) {}
    /// RED has updated its average queue length, in its unit.
    fn on_average_updated(&mut self, _average: f64) {}

    /// Source and destination host of a packet, for disciplines that are fair among hosts.
    fn hosts_of(&self, _packet: &Packet<T>) -> [u32; 2] {
        [0, 0]
    }
    /// Differentiated services codepoint of a packet (RFC 2474), from 0 to 63.
    fn dscp_of(&self, _packet: &Packet<T>) -> u8 {
        0
    }
    /// Bits ECE and CWR of a TCP packet, for disciplines that filter acknowledgements.
    fn ecn_echo_of(&self, _packet: &Packet<T>) -> u8 {
        0
    }
    /// Whether `older` is a pure acknowledgement without information that `newer`, a later packet
    /// of the same flow, does not contain.
    fn supersedes(&self, _newer: &Packet<T>, _older: &Packet<T>) -> bool {
        false
    }
}

/// Collects the dropped packets.
impl<T: Copy> QueueProbe<T> for Vec<Packet<T>> {
    fn on_drop(&mut self, _now: Nanos, packet: &Packet<T>, _reason: DropReason) {
        self.push(*packet);
    }
}

/// A queue discipline in front of one transmitter.
///
/// `now` never decreases between calls. The caller calls [`QueueDiscipline::dequeue`] whenever the
/// transmitter is free, so the packet returned by the previous call has left and is no longer held.
pub trait QueueDiscipline<T> {
    /// Handles a packet that arrives at `now`. Calls `probe.on_drop` if the packet is rejected, and
    /// for each packet that is evicted to make room.
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome;

    /// Returns the packet to transmit at `now`, or `None` if no packet waits or a shaper holds all
    /// packets until [`QueueDiscipline::next_release`]. Calls `probe.on_drop` for each packet
    /// dropped at the head.
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>>;

    /// Time at which a discipline with a shaper of its own releases the next packet, after
    /// [`QueueDiscipline::dequeue`] has returned `None`; [`NEVER`] if no packet waits.
    fn next_release(&self) -> Nanos {
        NEVER
    }

    /// Occupancy of the buffer.
    fn occupancy(&self) -> &BufferOccupancy;

    /// Backlog, excluding the packet in transmission.
    #[inline]
    fn waiting_backlog(&self) -> Backlog {
        self.occupancy().waiting
    }

    /// Backlog, including the packet in transmission.
    #[inline]
    fn held_backlog(&self) -> Backlog {
        self.occupancy().held_backlog()
    }

    /// Time at which [`QueueDiscipline::on_deadline`] must be called; [`NEVER`] if there is no
    /// timer.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// Handles the deadline.
    fn on_deadline(&mut self, _now: Nanos) {}

    /// Resets the state of an empty queue, as if it were created at `now`.
    fn reset_when_empty(&mut self, now: Nanos);
}
