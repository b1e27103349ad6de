//! A queue discipline in front of a transmitter.
//!
//! [`FifoLink`] serves packets in order of arrival and computes each departure on arrival, with one
//! call per packet. [`QueueingLink`] works with any discipline and holds packets until the
//! transmitter is free. Both produce the same departures for disciplines that both support.
//!
//! ```text
//! FifoLink      offer -> Departs { leaves }   always
//! QueueingLink  offer -> Departs { leaves }   if the transmitter was idle
//!                     -> Held                 at `next_departure()`, after any drops:
//!                                             serve_next -> (leaves, packet)
//! ```

use crate::packet::Packet;
use crate::queue::{
    AdmissionRule, AdmitAll, Backlog, BufferLimits, Departure, DepartureQueue, DropReason,
    EnqueueOutcome, QueueDiscipline, QueueProbe,
};
use crate::time::{NEVER, Nanos};
use crate::transmit::Transmitter;

/// The outcome of offering a packet to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferOutcome {
    /// The packet was accepted and its departure time is known.
    Departs {
        /// Time at which the last bit leaves the link.
        leaves: Nanos,
        /// Packets held on arrival, including the packet in transmission.
        found: u64,
        /// Whether the queue marked the packet.
        marked: bool,
    },
    /// The packet waits until [`Link::transmit_next_packet`] transmits or drops it.
    Held {
        /// Packets held on arrival, including the packet in transmission.
        found: u64,
        /// Whether the queue marked the packet on arrival; the discipline can also mark the packet
        /// on dequeue.
        marked: bool,
    },
    /// The packet was dropped.
    Dropped(DropReason),
}

/// A queue in front of a transmitter.
///
/// At equal times, departures come before arrivals: the caller must serve the departure at `now`
/// before it offers the arrivals.
pub trait Link<T> {
    /// Whether packets are held until the transmitter is free. If so, the caller must call
    /// [`Link::transmit_next_packet`] at [`Link::next_departure`].
    const HOLDS_PACKETS: bool;

    /// Offers an arriving packet to the link.
    fn offer(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> OfferOutcome;

    /// Time at which the packet in transmission leaves and [`Link::transmit_next_packet`] must be
    /// called; [`NEVER`] while the transmitter is idle and for links that do not hold packets.
    fn next_departure(&self) -> Nanos {
        NEVER
    }

    /// Starts to transmit the next packet at [`Link::next_departure`]. Returns the departure time
    /// and the packet, or `None` if no packet waits or the queue's shaper holds all packets.
    fn transmit_next_packet(
        &mut self,
        _probe: &mut impl QueueProbe<T>,
    ) -> Option<(Nanos, Packet<T>)> {
        None
    }

    /// Time at which [`Link::on_deadline`] must be called; [`NEVER`] if the discipline has no
    /// timer.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// Handles the deadline of the discipline.
    fn on_deadline(&mut self, _now: Nanos) {}

    /// Processes all departures up to `now` and reports the queue lengths to the probe.
    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>);

    /// Backlog as of the last call, including the packet in transmission.
    fn held_backlog(&self) -> Backlog;

    /// Resets the state of a link without packets.
    fn reset_when_empty(&mut self, now: Nanos);
}

/// A FIFO link, which computes the departure of each packet on arrival.
#[derive(Clone, Debug)]
pub struct FifoLink<X, A = AdmitAll> {
    queue: DepartureQueue<A>,
    transmitter: X,
}

impl<X: Transmitter, A: AdmissionRule> FifoLink<X, A> {
    /// Creates an idle link. Rules with [`AdmissionRule::NEEDS_DEQUEUE`] do not compile.
    #[must_use]
    pub fn new(limits: BufferLimits, admission: A, transmitter: X) -> Self {
        Self { queue: DepartureQueue::new(limits, admission), transmitter }
    }

    /// The transmitter.
    #[must_use]
    pub fn transmitter(&self) -> &X {
        &self.transmitter
    }

    /// Sum of the remaining times to departure of all held packets, modulo 2^64.
    #[must_use]
    pub fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        self.queue.sum_of_remaining_times(now)
    }
}

impl<T: Copy, X: Transmitter, A: AdmissionRule> Link<T> for FifoLink<X, A> {
    const HOLDS_PACKETS: bool = false;

    #[inline]
    fn offer(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> OfferOutcome {
        match self.queue.offer(now, packet, &mut self.transmitter, probe) {
            Ok(Departure { leaves, found, marked }) => {
                OfferOutcome::Departs { leaves, found, marked }
            }
            Err(reason) => OfferOutcome::Dropped(reason),
        }
    }

    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        self.queue.advance_to(now, probe);
    }

    fn held_backlog(&self) -> Backlog {
        self.queue.held_backlog()
    }

    fn reset_when_empty(&mut self, now: Nanos) {
        self.queue.reset_when_empty(now);
        self.transmitter.reset_when_idle();
    }
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

    /// Backlog, excluding the packet in transmission.
    #[must_use]
    pub fn waiting_backlog<T>(&self) -> Backlog
    where
        Q: QueueDiscipline<T>,
    {
        self.queue.waiting_backlog()
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
}

impl<T: Copy, Q: QueueDiscipline<T>, X: Transmitter> Link<T> for QueueingLink<Q, X> {
    const HOLDS_PACKETS: bool = true;

    #[inline]
    fn offer(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> OfferOutcome {
        let found = self.queue.held_backlog().packets;
        probe.on_arrival_queue_length(found);
        probe.on_queue_length_interval(found, now);
        let verdict = self.queue.enqueue(now, packet, probe);
        if let EnqueueOutcome::Dropped(reason) = verdict {
            return OfferOutcome::Dropped(reason);
        }
        let marked = verdict == EnqueueOutcome::Marked;
        if self.leaves != NEVER {
            return OfferOutcome::Held { found, marked };
        }
        match self.start_transmission(now, probe) {
            // The link was idle, so the dequeued packet is the one that arrived.
            Some(packet) => {
                OfferOutcome::Departs { leaves: self.leaves, found, marked: packet.marked }
            }
            None if self.leaves != NEVER => OfferOutcome::Held { found, marked },
            None => OfferOutcome::Dropped(DropReason::Early),
        }
    }

    fn next_departure(&self) -> Nanos {
        self.leaves
    }

    #[inline]
    fn transmit_next_packet(
        &mut self,
        probe: &mut impl QueueProbe<T>,
    ) -> Option<(Nanos, Packet<T>)> {
        let now = self.leaves;
        probe.on_queue_length_interval(self.queue.held_backlog().packets, now);
        self.start_transmission(now, probe).map(|packet| (self.leaves, packet))
    }

    fn deadline(&self) -> Nanos {
        self.queue.deadline()
    }

    fn on_deadline(&mut self, now: Nanos) {
        self.queue.on_deadline(now);
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) {}

    fn held_backlog(&self) -> Backlog {
        self.queue.held_backlog()
    }

    fn reset_when_empty(&mut self, now: Nanos) {
        self.queue.reset_when_empty(now);
        self.transmitter.reset_when_idle();
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
