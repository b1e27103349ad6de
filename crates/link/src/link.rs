//! A queue discipline in front of a transmitter.
//!
//! Two kinds do the same where both can: [`FifoLink`] serves in the order of arrival at once, so that
//! a packet costs one call, and [`HeldLink`] holds packets until the transmitter is free, for any
//! discipline.
//!
//! ```text
//! FifoLink   offer -> Departs { leaves }                              (known on arrival)
//! HeldLink   offer -> Departs { leaves }   the transmitter was idle
//!                  -> Held                 ... at `leaves()`: serve -> (leaves, packet), any number dropped
//! ```

use crate::packet::Packet;
use crate::queue::{
    Admission, Backlog, Departure, Departures, Limits, Open, QueueDiscipline, QueueProbe, Reason,
    Verdict,
};
use crate::time::{NEVER, Nanos};
use crate::transmit::Transmitter;

/// The outcome of offering a packet to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It will have left the link at that time.
    Departs {
        /// When its last bit is gone.
        leaves: Nanos,
        /// Packets that it found before it, the one in transmission included.
        found: u64,
        /// Whether the queue marked it.
        marked: bool,
    },
    /// It waits until [`Link::serve`] takes it, or drops it.
    Held {
        /// Packets that it found before it, the one in transmission included.
        found: u64,
        /// Whether the queue marked it on arrival; it may yet when it leaves.
        marked: bool,
    },
    /// It was dropped.
    Dropped(Reason),
}

/// A queue in front of a transmitter. At equal times departures come before arrivals: whoever calls
/// serves what leaves at `now` before he offers what arrives.
pub trait Link<T> {
    /// Whether packets wait until the transmitter is free: then [`Link::serve`] is to be called at
    /// [`Link::leaves`].
    const HOLDS: bool;

    /// A packet arrives.
    fn offer(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>) -> Offered;

    /// When the packet in transmission will have left, if others are held for that time; [`NEVER`]
    /// while the transmitter is idle.
    fn leaves(&self) -> Nanos {
        NEVER
    }

    /// That time has come: takes the next packet, and says when it will have left; `None` if none
    /// waits.
    fn serve(&mut self, _probe: &mut impl QueueProbe<T>) -> Option<(Nanos, Packet<T>)> {
        None
    }

    /// When the discipline wants [`Link::on_deadline`] called; [`NEVER`] if it does not.
    fn deadline(&self) -> Nanos {
        NEVER
    }

    /// The deadline has come.
    fn on_deadline(&mut self, _now: Nanos) {}

    /// Tells the probe what has left by `now`.
    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>);

    /// What is held, the packet in transmission included, as of the last call.
    fn held(&self) -> Backlog;

    /// Forgets the past of a link that holds nothing.
    fn restart(&mut self, now: Nanos);
}

/// First in, first out: the departure is known on arrival.
#[derive(Clone, Debug)]
pub struct FifoLink<X, A = Open> {
    queue: Departures<A>,
    transmitter: X,
}

impl<X: Transmitter, A: Admission> FifoLink<X, A> {
    /// An idle link. A rule that follows what is served cannot be in front of it.
    #[must_use]
    pub fn new(limits: Limits, admission: A, transmitter: X) -> Self {
        Self { queue: Departures::new(limits, admission), transmitter }
    }
}

impl<T: Copy, X: Transmitter, A: Admission> Link<T> for FifoLink<X, A> {
    const HOLDS: bool = false;

    #[inline]
    fn offer(&mut self, now: Nanos, packet: Packet<T>, probe: &mut impl QueueProbe<T>) -> Offered {
        match self.queue.offer(now, packet, &mut self.transmitter, probe) {
            Ok(Departure { leaves, found, marked }) => Offered::Departs { leaves, found, marked },
            Err(reason) => Offered::Dropped(reason),
        }
    }

    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        self.queue.settle(now, probe);
    }

    fn held(&self) -> Backlog {
        self.queue.held()
    }

    fn restart(&mut self, now: Nanos) {
        self.queue.restart(now);
        self.transmitter.restart();
    }
}

/// Any discipline: packets are held until the transmitter is free.
#[derive(Clone, Debug)]
pub struct HeldLink<Q, X> {
    queue: Q,
    transmitter: X,
    /// When the packet in transmission will have left, [`NEVER`] if there is none.
    leaves: Nanos,
}

impl<Q, X> HeldLink<Q, X> {
    /// An idle link.
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

    /// As [`QueueDiscipline::fetch_ahead`].
    pub fn fetch_ahead<T>(&self, turns: usize, tell: impl FnMut(u32))
    where
        Q: QueueDiscipline<T>,
    {
        self.queue.fetch_ahead(turns, tell);
    }

    /// What waits, without the packet in transmission.
    #[must_use]
    pub fn waiting<T>(&self) -> Backlog
    where
        Q: QueueDiscipline<T>,
    {
        self.queue.waiting()
    }
}

impl<Q, X: Transmitter> HeldLink<Q, X> {
    /// The transmitter takes the next packet, if there is one.
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
    const HOLDS: bool = true;

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
            // It was alone, so it is the one that goes.
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

    fn settle(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) {}

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
