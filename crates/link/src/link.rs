//! A queue discipline in front of a transmitter.
//!
//! [`FifoLink`] serves packets in order of arrival and computes each departure on arrival, with one
//! call per packet. [`HeldLink`] works with any discipline and holds packets until the transmitter
//! is free. Both produce the same departures for disciplines that both support.
//!
//! ```text
//! FifoLink   offer -> Departs { leaves }   always
//! HeldLink   offer -> Departs { leaves }   if the transmitter was idle
//!                  -> Held                 at `leaves()`: serve -> (leaves, packet), after any drops
//! ```

use crate::packet::Packet;
use crate::queue::{
    Admission, AdmitAll, Backlog, Departure, Departures, Limits, QueueDiscipline, QueueProbe,
    Reason, Verdict,
};
use crate::time::{NEVER, Nanos};
use crate::transmit::Transmitter;

/// The outcome of offering a packet to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The packet was accepted and its departure time is known.
    Departs {
        /// Time at which the last bit leaves the link.
        leaves: Nanos,
        /// Packets held on arrival, including the packet in transmission.
        found: u64,
        /// Whether the queue marked the packet.
        marked: bool,
    },
    /// The packet waits until [`Link::serve`] transmits or drops it.
    Held {
        /// Packets held on arrival, including the packet in transmission.
        found: u64,
        /// Whether the queue marked the packet on arrival; it can also be marked on dequeue.
        marked: bool,
    },
    /// The packet was dropped.
    Dropped(Reason),
}

/// A queue in front of a transmitter.
///
/// At equal times, departures come before arrivals: the caller must serve the departure at `now`
/// before it offers the arrivals.
pub trait Link<T> {
    /// Whether packets are held until the transmitter is free. If so, the caller must call
    /// [`Link::serve`] at [`Link::leaves`].
    const HOLDS_PACKETS: bool;

    /// Offers an arriving packet to the link.
    fn offer(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>) -> Offered;

    /// Time at which the packet in transmission leaves and [`Link::serve`] must be called;
    /// [`NEVER`] while the transmitter is idle and for links that do not hold packets.
    fn leaves(&self) -> Nanos {
        NEVER
    }

    /// Starts to transmit the next packet at [`Link::leaves`]. Returns the departure time and the
    /// packet, or `None` if no packet waits.
    fn serve(&mut self, _probe: &mut impl QueueProbe<T>) -> Option<(Nanos, Packet<T>)> {
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
    fn held(&self) -> Backlog;

    /// Resets the state of a link without packets.
    fn restart(&mut self, now: Nanos);
}

/// A FIFO link, which computes the departure of each packet on arrival.
#[derive(Clone, Debug)]
pub struct FifoLink<X, A = AdmitAll> {
    queue: Departures<A>,
    transmitter: X,
}

impl<X: Transmitter, A: Admission> FifoLink<X, A> {
    /// Creates an idle link. Rules with [`Admission::NEEDS_DEQUEUE`] do not compile.
    #[must_use]
    pub fn new(limits: Limits, admission: A, transmitter: X) -> Self {
        Self { queue: Departures::new(limits, admission), transmitter }
    }
}

impl<T: Copy, X: Transmitter, A: Admission> Link<T> for FifoLink<X, A> {
    const HOLDS_PACKETS: bool = false;

    #[inline]
    fn offer(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>) -> Offered {
        match self.queue.offer(now, packet, &mut self.transmitter, probe) {
            Ok(Departure { leaves, found, marked }) => Offered::Departs { leaves, found, marked },
            Err(reason) => Offered::Dropped(reason),
        }
    }

    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        self.queue.advance_to(now, probe);
    }

    fn held(&self) -> Backlog {
        self.queue.held()
    }

    fn restart(&mut self, now: Nanos) {
        self.queue.restart(now);
        self.transmitter.restart();
    }
}

/// A link with any discipline, which holds packets until the transmitter is free.
#[derive(Clone, Debug)]
pub struct HeldLink<Q, X> {
    queue: Q,
    transmitter: X,
    /// Departure time of the packet in transmission; [`NEVER`] if there is none.
    leaves: Nanos,
}

impl<Q, X> HeldLink<Q, X> {
    /// Creates an idle link.
    #[must_use]
    pub fn new(queue: Q, transmitter: X) -> Self {
        Self { queue, transmitter, leaves: NEVER }
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

    /// See [`QueueDiscipline::prefetch_ahead`].
    pub fn prefetch_ahead<T>(&self, turns: usize, report: impl FnMut(u32))
    where
        Q: QueueDiscipline<T>,
    {
        self.queue.prefetch_ahead(turns, report);
    }

    /// Backlog, excluding the packet in transmission.
    #[must_use]
    pub fn waiting<T>(&self) -> Backlog
    where
        Q: QueueDiscipline<T>,
    {
        self.queue.waiting()
    }
}

impl<Q, X: Transmitter> HeldLink<Q, X> {
    /// Starts to transmit the next packet, if there is one.
    #[inline]
    fn begin<T>(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>>
    where
        Q: QueueDiscipline<T>,
    {
        let packet = self.queue.dequeue(now, probe);
        self.leaves = match &packet {
            Some(packet) => self.transmitter.transmit(packet.entered, packet.bytes),
            None => NEVER,
        };
        packet
    }
}

impl<T: Copy, Q: QueueDiscipline<T>, X: Transmitter> Link<T> for HeldLink<Q, X> {
    const HOLDS_PACKETS: bool = true;

    #[inline]
    fn offer(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>) -> Offered {
        let found = self.queue.held().packets;
        probe.found(found);
        probe.held(found, now);
        let verdict = self.queue.enqueue(now, packet, probe);
        if let Verdict::Dropped(reason) = verdict {
            return Offered::Dropped(reason);
        }
        let marked = verdict == Verdict::Marked;
        if self.leaves != NEVER {
            return Offered::Held { found, marked };
        }
        match self.begin(now, probe) {
            // The link was idle, so the dequeued packet is the one that arrived.
            Some(packet) => Offered::Departs { leaves: self.leaves, found, marked: packet.marked },
            None => Offered::Dropped(Reason::Early),
        }
    }

    fn leaves(&self) -> Nanos {
        self.leaves
    }

    #[inline]
    fn serve(&mut self, probe: &mut impl QueueProbe<T>) -> Option<(Nanos, Packet<T>)> {
        let now = self.leaves;
        probe.held(self.queue.held().packets, now);
        self.begin(now, probe).map(|packet| (self.leaves, packet))
    }

    fn deadline(&self) -> Nanos {
        self.queue.deadline()
    }

    fn on_deadline(&mut self, now: Nanos) {
        self.queue.on_deadline(now);
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) {}

    fn held(&self) -> Backlog {
        self.queue.held()
    }

    fn restart(&mut self, now: Nanos) {
        self.queue.restart(now);
        self.transmitter.restart();
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
