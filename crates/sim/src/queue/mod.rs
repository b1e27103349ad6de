//! Queue disciplines: enqueue, drop, and departure of packets.

mod any;
mod cross_statistics;
mod fair;
mod fifo;
mod link_rate;
mod managed;
mod policer;

pub use any::AnyQueue;
pub use fair::{BufferAssignment, DropPolicy, FairConfig, FairQueue, HeadOfLine, TieBreakRule};
pub use fifo::{DropTail, RedQueue};
pub use managed::{ManagedConfig, ManagedQueue};
/// The disciplines of the crate `link`, and their parameters.
pub use tcpcast_link::queue as disciplines;
pub use tcpcast_link::queue::RedConfig;

pub use cross_statistics::{CrossPacketEvent, CrossRateCounters};
pub use link_rate::{LinkLoad, LinkRate};
pub use policer::{PolicerConfig, PolicerQueue};
/// Token buckets and traces of packet opportunities.
pub use tcpcast_link::transmit::{OpportunityTrace, TokenBucketConfig};

use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use serde::Deserialize;

/// The outcome of an enqueue for the packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// The packet is accepted and its departure from the link is known.
    Departs {
        /// Time at which its last bit leaves.
        leaves: Nanos,
        /// Packets found on arrival, including the packet in transmission.
        backlog: usize,
    },
    /// The packet is held until [`QueueDiscipline::transmit_next_packet`] returns it.
    Held {
        /// Packets found on arrival, including the packet in transmission.
        backlog: usize,
        /// Packet that was evicted to make room.
        evicted: Option<Packet>,
    },
    /// The packet is dropped because the buffer is full, or because the discipline drops it early.
    Dropped,
}

/// Receives the events of a queue.
pub trait QueueProbe {
    /// The queue held `packets`, including the packet in transmission, until `until`.
    fn on_queue_length_interval(&mut self, packets: usize, until: Nanos);
    /// A packet arrived and found `packets` in the queue.
    fn on_arrival_queue_length(&mut self, packets: usize);
    /// A packet arrived and changed the average queue length used by the discipline to `packets`.
    fn on_average_updated(&mut self, _packets: f64) {}
    /// The packet of the last [`QueueProbe::on_arrival_queue_length`] is dropped although the
    /// buffer is not full.
    fn on_early_drop(&mut self) {}
    /// An event of a cross packet of a stream.
    fn on_cross_packet(&mut self, _stream: usize, _event: CrossPacketEvent) {}
    /// Rates of the bins that a stream of cross traffic has started.
    fn on_cross_rates(&mut self, _stream: usize, _rates: &CrossRateCounters) {}
}

/// Configuration of a discipline.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueConfig {
    /// First in, first out; packets that find the buffer full are dropped.
    DropTail,
    /// Random early detection that drops packets; RED with ECN marks is a managed discipline.
    Red(RedConfig),
    /// Fair queueing.
    Fair(FairConfig),
    /// A discipline that may drop or mark packets that it holds, or whose link rate varies.
    Managed(ManagedConfig),
    /// A policer without a queue.
    Policed(PolicerConfig),
}

impl QueueConfig {
    /// Long-term rate in bit/s, if the rate belongs to the discipline.
    pub(crate) fn mean_rate_bps(&self) -> Option<u64> {
        match self {
            Self::DropTail | Self::Red(_) | Self::Fair(_) => None,
            Self::Managed(managed) => managed.rate.mean_rate_bps(),
            Self::Policed(policed) => Some(policed.tokens.rate_bps.get()),
        }
    }
}

/// Waiting time and ECN mark of a packet that the link starts to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmittedPacketInfo {
    /// Time from arrival to the start of transmission.
    pub waited: Nanos,
    /// Whether the queue marked the packet.
    pub marked: bool,
}

/// A discipline in front of one link.
///
/// A discipline that serves packets in the order of arrival knows the departure time of a packet on
/// arrival, which saves one event per packet. Other disciplines set
/// [`QueueDiscipline::HOLDS_PACKETS`] and return [`EnqueueOutcome::Held`]; the caller then calls
/// [`QueueDiscipline::transmit_next_packet`] whenever the link becomes free. At equal times
/// departures precede arrivals.
pub trait QueueDiscipline {
    /// Whether the queue holds packets until the link is free.
    const HOLDS_PACKETS: bool = false;
    /// Whether the queue also receives cross packets; requires `HOLDS_PACKETS`.
    const HAS_CROSS_TRAFFIC: bool = false;
    /// Whether full packets may have lengths other than the packet length of the link.
    const ANY_LENGTH: bool = false;
    /// Whether the queue may drop packets that it holds: then
    /// [`QueueDiscipline::take_dropped_packets`] must be called after every other call.
    const DROPS_HELD_PACKETS: bool = false;

    /// Enqueues a packet of the link's packet length.
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome;

    /// Reports departures up to `now` to the probe.
    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe);

    /// Resets the state of an empty queue before a new isolated transfer.
    fn reset_for_next_transfer(&mut self) {}

    /// Packets in the queue, including the packet in transmission, as of the last call.
    fn held_packets(&self) -> usize;

    /// Sum of the remaining times after `now` of packets with a known departure.
    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos;

    /// Departure time of the packet in transmission, at which a held packet can be served;
    /// [`NEVER`] while the link is idle.
    fn next_departure(&self) -> Nanos {
        NEVER
    }

    /// Starts the transmission of the next packet at [`QueueDiscipline::next_departure`]. Returns
    /// the packet and its departure time; `None` if no packet waits.
    fn transmit_next_packet(
        &mut self,
        _link: &mut Transmitter,
        _probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        None
    }

    /// Waiting time and mark of the packet that was served last, if known.
    fn last_transmitted_packet(&self) -> Option<TransmittedPacketInfo> {
        None
    }

    /// Takes the packets that the queue held and dropped, with the times, except for the packet
    /// that was offered last.
    fn take_dropped_packets(
        &mut self,
        _into: &mut Vec<(Nanos, Packet)>,
        _probe: &mut impl QueueProbe,
    ) {
    }

    /// Load and capacity of the link up to `now`, if its rate is not constant.
    fn link_load_until(&self, _now: Nanos) -> Option<LinkLoad> {
        None
    }

    /// Prefetches the packets that are likely to be served or dropped in the next `turns` turns,
    /// and calls `visit` with their sources.
    fn prefetch_ahead(&self, _turns: usize, _visit: impl FnMut(u32)) {}

    /// Held packets that have not been served, without cross packets.
    fn waiting_packets(&self) -> u64 {
        0
    }

    /// Waiting times of cross packets up to `now`, plus the times at which cross packets evicted
    /// packets of sources, modulo 2^64. Added to the sum over the packets of sources, this gives
    /// the waiting time of all packets.
    fn cross_waiting_time_sum(&self, _now: Nanos) -> u64 {
        0
    }

    /// Arrival time of the next cross packet; [`NEVER`] if there is none.
    fn next_cross_arrival(&self) -> Nanos {
        NEVER
    }

    /// Enqueues the next cross packet. Returns the packet of a source that was evicted, if any.
    fn enqueue_next_cross_packet(
        &mut self,
        _link: &mut Transmitter,
        _probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        None
    }
}
