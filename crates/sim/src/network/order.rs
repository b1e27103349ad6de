//! What happens next.
//!
//! This file alone compares what is pending of different kinds. At equal times this is the order:
//!
//! 1. a departure at another hop, of the first stage where there are several;
//! 2. a departure from the bottleneck, where its queue holds packets until the link is free;
//! 3. a cross packet at the bottleneck;
//! 4. a cross packet at another hop, by stage;
//! 5. a packet at another hop, by stage, then in the order of scheduling;
//! 6. the agenda's: packets by [`Place`], then class, then timers (see `agenda/`).
//!
//! So a packet finds a queue as it is when whatever leaves at that moment has left. The agenda
//! orders its own events, as it is made for that, and a queue its cross traffic.
//!
//! It belongs to the network and not to the loop above it because a packet's stages ask, too: what
//! [comes next](Network::comes_next) in any case needs no event.

use super::Network;
use super::hops::{Kind, SharedHop, Tandem};
use super::source::Source;
use crate::clock::{NEVER, Nanos};
use crate::event_queue::Place;
use crate::packet::Packet;
use crate::queue::QueueDiscipline;
use crate::tcp::SendingEnd;

/// What happens next in a network.
pub(crate) enum Next {
    /// Something at a hop beside the bottleneck.
    AtHop,
    /// The bottleneck's link takes a packet that its queue holds.
    Departure,
    /// A cross packet arrives at the bottleneck.
    CrossPacket,
    /// The first event of this queue of the agenda, due at that time.
    Event(usize, Nanos),
    /// Nothing before the limit.
    Limit,
}

/// What happens next at the hops beside the bottleneck.
pub(crate) enum Step {
    Departure(usize),
    CrossPacket(usize),
    Arrival(usize, Packet),
}

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// What happens next.
    #[inline(always)]
    pub(crate) fn next(&self) -> Next {
        let (queue, due) = self.event_queue.next();
        if HOPS && self.hops_are_first(due) {
            Next::AtHop
        } else if Q::HOLDS && self.link_is_first(due) {
            Next::Departure
        } else if Q::CROSSED && self.cross_is_first(due) {
            Next::CrossPacket
        } else if due > self.limit {
            Next::Limit
        } else {
            Next::Event(queue, due)
        }
    }

    /// Whether something happens at another hop before the next event of the agenda, due at `due`,
    /// and before the bottleneck is free for a held packet.
    fn hops_are_first(&self, due: Nanos) -> bool {
        let (next, departs) = self.tandem.next();
        let leaves = if Q::HOLDS { self.queue.link_leaves() } else { NEVER };
        let comes = if Q::CROSSED { self.queue.cross_comes() } else { NEVER };
        let others = leaves.min(comes);
        let before_link = next < others || (next == others && departs);
        next <= due && next <= self.limit && before_link
    }

    /// Whether the bottleneck is free for a held packet before the next event, due at `due`.
    fn link_is_first(&self, due: Nanos) -> bool {
        let leaves = self.queue.link_leaves();
        let due = if Q::CROSSED { due.min(self.queue.cross_comes()) } else { due };
        leaves <= due && leaves <= self.limit
    }

    /// Takes what happens next at the hops; there is something.
    pub(crate) fn step_at_hops(&mut self) -> Step {
        let (at, step) = self.tandem.step();
        self.now = at;
        step
    }

    /// Whether a cross packet arrives before the next event, due at `due`, or with it.
    fn cross_is_first(&self, due: Nanos) -> bool {
        let comes = self.queue.cross_comes();
        comes <= due && comes <= self.limit
    }

    /// Whether nothing else happens before `due`, so that it needs no event.
    #[inline(always)]
    pub(crate) fn comes_next(&self, due: Nanos) -> bool {
        (due == self.now && !(Q::HOLDS && self.departs_now()) && !(HOPS && self.hop_departs_now()))
            || (due < self.event_queue.next().1
                && due <= self.limit
                && !(Q::HOLDS && self.comes_between(due))
                && !(HOPS && self.tandem.comes_between(due)))
    }

    /// Whether a packet that gets to the first hop at `due` would be there before another one of
    /// its class that is due at the same time, and had to wait for a departure.
    #[inline(always)]
    pub(super) fn overtakes<S: SendingEnd>(&self, source: &Source<S>, due: Nanos) -> bool {
        (Q::HOLDS || HOPS)
            && self.varying_rates
            && self.event_queue.next_arrival(Place::Bottleneck, source.record.class()) <= due
    }

    /// Whether a packet that has left the queue at this very moment still counts as held: a token
    /// bucket takes no time for it, and departures come before arrivals.
    fn departs_now(&self) -> bool {
        self.queue.link_leaves() <= self.now
    }

    /// The same of a hop.
    fn hop_departs_now(&self) -> bool {
        self.tandem.next_departure().0 <= self.now
    }

    /// Whether before `due` the link takes a packet that waits, a cross packet arrives, or a
    /// source hears of one that had to leave the queue.
    fn comes_between(&self, due: Nanos) -> bool {
        due >= self.queue.link_leaves()
            || !self.pushed_out.is_empty()
            || (Q::CROSSED && due >= self.queue.cross_comes())
    }
}

impl Tandem {
    /// When something happens here next, and whether it is a departure; [`NEVER`] if nothing does.
    fn next(&self) -> (Nanos, bool) {
        let arrival = self.arrivals.next();
        if self.busy.is_empty() {
            return (arrival, false);
        }
        let departure = self.next_departure().0;
        let arrival = arrival.min(self.next_cross_packet().0);
        (arrival.min(departure), departure <= arrival)
    }

    fn next_departure(&self) -> (Nanos, usize) {
        self.earliest(SharedHop::link_leaves)
    }

    fn next_cross_packet(&self) -> (Nanos, usize) {
        self.earliest(SharedHop::cross_comes)
    }

    fn earliest(&self, when: impl Fn(&SharedHop) -> Nanos) -> (Nanos, usize) {
        let of = |at: &usize| match &self.stages[*at].kind {
            Kind::Shared(hop) if *at == self.forward => (when(hop) + self.acks.late, *at),
            Kind::Shared(hop) => (when(hop), *at),
            Kind::Own(_) | Kind::Measured => (NEVER, *at),
        };
        self.busy.iter().map(of).min().unwrap_or((NEVER, 0))
    }

    /// Whether before `due` something happens here, or a source hears that it lost a packet.
    fn comes_between(&self, due: Nanos) -> bool {
        due >= self.next().0 || !self.pushed_out.is_empty()
    }

    /// Takes the next step; there is one.
    fn step(&mut self) -> (Nanos, Step) {
        let (at, departs) = self.next();
        if departs {
            return (at, Step::Departure(self.next_departure().1));
        }
        let (comes, stage) = self.next_cross_packet();
        if comes <= at {
            return (at, Step::CrossPacket(stage));
        }
        let (at, stage, packet) = self.arrivals.take();
        (at, Step::Arrival(stage, packet))
    }
}
