//! A queue in front of a transmitter.
//!
//! [`FifoLink`] serves packets in order of arrival and computes each departure on arrival, with one
//! call per packet. [`QueueingLink`] works with any discipline and holds packets until the
//! transmitter is free. With drop-tail, both produce the same departures.
//!
//! ```text
//! FifoLink      offer -> departure time, or nothing if the buffer is full
//! QueueingLink  offer -> Departs { leaves }   if the transmitter was idle
//!                     -> Held                 at `next_departure()`, after any drops:
//!                                             transmit_next_packet -> (leaves, packet)
//! ```
//!
//! At equal times, departures come before arrivals: the caller must serve the departure at `now`
//! before it offers the arrivals.

use crate::packet::Packet;
use crate::queue::{
    Backlog, BufferLimits, DropReason, EnqueueOutcome, MaxBacklog, QueueDiscipline, QueueProbe,
};
use crate::ring_buffer::RingBuffer;
use crate::time::{NEVER, Nanos};
use crate::transmit::Transmitter;

/// Departure time and length of a packet.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    time: Nanos,
    bytes: u32,
}

/// A drop-tail link, which computes the departure of each packet on arrival. It stores departure
/// times instead of packets.
#[derive(Clone, Debug)]
pub struct FifoLink<X> {
    max: MaxBacklog,
    leaving: RingBuffer<Leaving>,
    /// Departure time of the first packet; [`NEVER`] if the link holds none.
    first_leaves: Nanos,
    bytes: u64,
    transmitter: X,
}

impl<X: Transmitter> FifoLink<X> {
    /// Creates an idle link.
    #[must_use]
    pub fn new(limits: BufferLimits, transmitter: X) -> Self {
        Self {
            max: MaxBacklog::new(limits),
            leaving: RingBuffer::default(),
            first_leaves: NEVER,
            bytes: 0,
            transmitter,
        }
    }

    /// The transmitter.
    #[must_use]
    pub fn transmitter(&self) -> &X {
        &self.transmitter
    }

    /// Offers an arriving packet to the link. Returns the time at which its last bit leaves, or
    /// `None` if the buffer is full.
    #[inline]
    pub fn offer<T>(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Nanos> {
        self.advance_to(now, probe);
        let packet = packet.with_arrival_time(now);
        let held = self.held_backlog();
        probe.on_arrival_queue_length(held.packets);
        if !self.max.has_room(held, packet.bytes) {
            probe.on_drop(now, &packet, DropReason::Full);
            return None;
        }
        let leaves = self.transmitter.transmit(now, packet.bytes);
        if leaves > now {
            probe.on_queue_length_interval(held.packets, now);
            self.bytes += u64::from(packet.bytes);
            self.leaving.push(Leaving { time: leaves, bytes: packet.bytes });
            if held.packets == 0 {
                self.first_leaves = leaves;
            }
        }
        Some(leaves)
    }

    /// Processes all departures up to `now` and reports the queue lengths to the probe.
    #[inline(always)]
    pub fn advance_to<T>(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        while self.first_leaves <= now {
            probe.on_queue_length_interval(self.leaving.len() as u64, self.first_leaves);
            self.bytes -= u64::from(self.leaving.pop_existing().bytes);
            self.first_leaves = self.leaving.first().map_or(NEVER, |leaving| leaving.time);
        }
    }

    /// Backlog as of the last call, including the packet in transmission.
    #[inline]
    #[must_use]
    pub fn held_backlog(&self) -> Backlog {
        Backlog { packets: self.leaving.len() as u64, bytes: self.bytes }
    }

    /// Sum of the remaining times to departure of all held packets, modulo 2^64.
    #[must_use]
    pub fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        self.leaving.iter().fold(0, |sum, leaving| sum.wrapping_add(leaving.time - now))
    }

    /// Resets the state of a link without packets.
    pub fn reset_when_empty(&mut self) {
        self.transmitter.reset_when_idle();
    }
}

/// The outcome of offering a packet to a [`QueueingLink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferOutcome {
    /// The packet was accepted and its departure time is known.
    Departs {
        /// Time at which the last bit leaves the link.
        leaves: Nanos,
        /// Whether the queue marked the packet.
        marked: bool,
    },
    /// The packet waits until [`QueueingLink::transmit_next_packet`] transmits or drops it.
    Held,
    /// The packet was dropped.
    Dropped(DropReason),
}

/// A link with any discipline, which holds packets until the transmitter is free.
#[derive(Clone, Debug)]
pub struct QueueingLink<Q, X> {
    queue: Q,
    transmitter: X,
    /// Departure time of the packet in transmission, or time at which the queue's shaper releases
    /// the next packet; [`NEVER`] if there is neither.
    leaves: Nanos,
    /// Whether the queue's shaper holds all packets until `leaves`.
    shaped: bool,
}

impl<Q, X> QueueingLink<Q, X> {
    /// Creates an idle link.
    #[must_use]
    pub fn new(queue: Q, transmitter: X) -> Self {
        Self { queue, transmitter, leaves: NEVER, shaped: false }
    }

    /// The discipline.
    #[must_use]
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// The discipline, for its deadlines.
    pub fn queue_mut(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// The transmitter.
    #[must_use]
    pub fn transmitter(&self) -> &X {
        &self.transmitter
    }

    /// Whether the shaper of the queue holds all packets, so that none is in transmission.
    #[must_use]
    pub fn is_held_by_shaper(&self) -> bool {
        self.shaped
    }

    /// Replaces the transmitter for the packets after the one in transmission.
    pub fn set_transmitter(&mut self, transmitter: X) {
        self.transmitter = transmitter;
    }
}

impl<Q, X: Transmitter> QueueingLink<Q, X> {
    /// Starts to transmit the next packet, if there is one.
    #[inline]
    fn start_transmission<T>(
        &mut self,
        now: Nanos,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<Packet<T>>
    where
        Q: QueueDiscipline<T>,
    {
        let packet = self.queue.dequeue(now, probe);
        self.leaves = match &packet {
            Some(packet) => {
                // A packet that its shaper has released reaches the transmitter only now.
                let reached = if self.shaped { now } else { packet.entered };
                self.transmitter.transmit(reached, packet.bytes)
            }
            None => self.queue.next_release(),
        };
        self.shaped = packet.is_none() && self.leaves != NEVER;
        packet
    }

    /// Offers an arriving packet to the link.
    #[inline]
    pub fn offer<T>(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> OfferOutcome
    where
        Q: QueueDiscipline<T>,
    {
        let found = self.queue.held_backlog().packets;
        probe.on_arrival_queue_length(found);
        probe.on_queue_length_interval(found, now);
        if let EnqueueOutcome::Dropped(reason) = self.queue.enqueue(now, packet, probe) {
            return OfferOutcome::Dropped(reason);
        }
        if self.leaves != NEVER {
            return OfferOutcome::Held;
        }
        match self.start_transmission(now, probe) {
            // The link was idle, so the dequeued packet is the one that arrived.
            Some(packet) => OfferOutcome::Departs { leaves: self.leaves, marked: packet.marked },
            None if self.leaves != NEVER => OfferOutcome::Held,
            None => OfferOutcome::Dropped(DropReason::Early),
        }
    }

    /// Time at which the packet in transmission leaves and
    /// [`QueueingLink::transmit_next_packet`] must be called; [`NEVER`] while the transmitter is
    /// idle.
    #[must_use]
    pub fn next_departure(&self) -> Nanos {
        self.leaves
    }

    /// Starts to transmit the next packet at [`QueueingLink::next_departure`]. Returns the departure
    /// time and the packet, or `None` if no packet waits or the queue's shaper holds all packets.
    #[inline]
    pub fn transmit_next_packet<T>(
        &mut self,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<(Nanos, Packet<T>)>
    where
        Q: QueueDiscipline<T>,
    {
        let now = self.leaves;
        probe.on_queue_length_interval(self.queue.held_backlog().packets, now);
        self.start_transmission(now, probe).map(|packet| (self.leaves, packet))
    }

    /// Resets the state of a link without packets.
    pub fn reset_when_empty<T>(&mut self, now: Nanos)
    where
        Q: QueueDiscipline<T>,
    {
        self.queue.reset_when_empty(now);
        self.transmitter.reset_when_idle();
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
