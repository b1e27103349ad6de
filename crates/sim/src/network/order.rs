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
//! [comes next](Network::is_next) in any case needs no event.

use super::Network;
use super::hops::{HopChain, SharedHop, StageKind};
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

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOPS: bool>
    Network<Q, HAS_TAPS, HAS_HOPS>
{
    /// What happens next.
    #[inline(always)]
    pub(crate) fn next(&self) -> Next {
        let (queue, due) = self.event_queue.next();
        if HAS_HOPS && self.hops_are_first(due) {
            Next::AtHop
        } else if Q::HOLDS_PACKETS && self.link_is_first(due) {
            Next::Departure
        } else if Q::HAS_CROSS_TRAFFIC && self.cross_is_first(due) {
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
        let (next, departs) = self.hop_chain.next();
        let leaves = if Q::HOLDS_PACKETS { self.queue.next_departure() } else { NEVER };
        let comes = if Q::HAS_CROSS_TRAFFIC { self.queue.next_cross_arrival() } else { NEVER };
        let others = leaves.min(comes);
        let before_link = next < others || (next == others && departs);
        next <= due && next <= self.limit && before_link
    }

    /// Whether the bottleneck is free for a held packet before the next event, due at `due`.
    fn link_is_first(&self, due: Nanos) -> bool {
        let leaves = self.queue.next_departure();
        let due = if Q::HAS_CROSS_TRAFFIC { due.min(self.queue.next_cross_arrival()) } else { due };
        leaves <= due && leaves <= self.limit
    }

    /// Takes what happens next at the hops; there is something.
    pub(crate) fn step_at_hops(&mut self) -> Step {
        let (at, step) = self.hop_chain.step();
        self.now = at;
        step
    }

    /// Whether a cross packet arrives before the next event, due at `due`, or with it.
    fn cross_is_first(&self, due: Nanos) -> bool {
        let comes = self.queue.next_cross_arrival();
        comes <= due && comes <= self.limit
    }

    /// Whether nothing else happens before `due`, so that it needs no event.
    #[inline(always)]
    pub(crate) fn is_next(&self, due: Nanos) -> bool {
        (due == self.now
            && !(Q::HOLDS_PACKETS && self.has_departure_now())
            && !(HAS_HOPS && self.has_hop_departure_now()))
            || (due < self.event_queue.next().1
                && due <= self.limit
                && !(Q::HOLDS_PACKETS && self.has_event_by(due))
                && !(HAS_HOPS && self.hop_chain.has_event_by(due)))
    }

    /// Whether a packet that gets to the first hop at `due` would be there before another one of
    /// its class that is due at the same time, and had to wait for a departure.
    #[inline(always)]
    pub(super) fn overtakes<S: SendingEnd>(&self, source: &Source<S>, due: Nanos) -> bool {
        (Q::HOLDS_PACKETS || HAS_HOPS)
            && self.varying_rates
            && self.event_queue.next_arrival(Place::Bottleneck, source.record.class()) <= due
    }

    /// Whether a packet that has left the queue at this very moment still counts as held: a token
    /// bucket takes no time for it, and departures come before arrivals.
    fn has_departure_now(&self) -> bool {
        self.queue.next_departure() <= self.now
    }

    /// The same of a hop.
    fn has_hop_departure_now(&self) -> bool {
        self.hop_chain.next_departure().0 <= self.now
    }

    /// Whether before `due` the link takes a packet that waits, a cross packet arrives, or a
    /// source hears of one that had to leave the queue.
    fn has_event_by(&self, due: Nanos) -> bool {
        due >= self.queue.next_departure()
            || !self.dropped_from_queue.is_empty()
            || (Q::HAS_CROSS_TRAFFIC && due >= self.queue.next_cross_arrival())
    }
}

impl HopChain {
    /// When something happens here next, and whether it is a departure; [`NEVER`] if nothing does.
    fn next(&self) -> (Nanos, bool) {
        let arrival = self.arrivals.next();
        if self.busy.is_empty() {
            return (arrival, false);
        }
        let departure = self.next_departure().0;
        let arrival = arrival.min(self.next_cross_arrival().0);
        (arrival.min(departure), departure <= arrival)
    }

    fn next_departure(&self) -> (Nanos, usize) {
        self.earliest(SharedHop::next_departure)
    }

    fn next_cross_arrival(&self) -> (Nanos, usize) {
        self.earliest(SharedHop::next_cross_arrival)
    }

    fn earliest(&self, when: impl Fn(&SharedHop) -> Nanos) -> (Nanos, usize) {
        let of = |at: &usize| match &self.stages[*at].kind {
            StageKind::Shared(hop) if *at == self.forward => (when(hop) + self.acks.late, *at),
            StageKind::Shared(hop) => (when(hop), *at),
            StageKind::PerSource(_) | StageKind::Bottleneck => (NEVER, *at),
        };
        self.busy.iter().map(of).min().unwrap_or((NEVER, 0))
    }

    /// Whether before `due` something happens here, or a source hears that it lost a packet.
    fn has_event_by(&self, due: Nanos) -> bool {
        due >= self.next().0 || !self.dropped_from_queue.is_empty()
    }

    /// Takes the next step; there is one.
    fn step(&mut self) -> (Nanos, Step) {
        let (at, departs) = self.next();
        if departs {
            return (at, Step::Departure(self.next_departure().1));
        }
        let (comes, stage) = self.next_cross_arrival();
        if comes <= at {
            return (at, Step::CrossPacket(stage));
        }
        let (at, stage, packet) = self.arrivals.take();
        (at, Step::Arrival(stage, packet))
    }
}
