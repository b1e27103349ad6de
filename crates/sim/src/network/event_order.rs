//! Selection of the next event.
//!
//! Only this file compares pending events of different kinds. At equal times, the order is:
//!
//! 1. departures at other hops, by stage;
//! 2. departure from the bottleneck, if its queue holds packets until the link is free;
//! 3. cross packet at the bottleneck;
//! 4. cross packets at other hops, by stage;
//! 5. packets at other hops, by stage, then in the order of scheduling;
//! 6. the event queue: packets by [`PacketPlace`], then by class, then timers (see `event_queue/`).
//!
//! So packets that leave a queue at the same time as an arrival leave first. The event queue orders
//! its own events, and each queue orders its cross traffic.
//!
//! This code is part of the network, not of the event loop, because the functions that forward a
//! packet also use this order: they skip the event if it would be
//! [next](Network::precedes_all_events) anyway.

use super::Network;
use super::hops::{HopChain, SharedHop, StageKind};
use super::source::SimulatedSource;
use crate::clock::{NEVER, Nanos};
use crate::event_queue::PacketPlace;
use crate::packet::Packet;
use crate::queue::QueueDiscipline;
use tcpcast_tcp::SendingEnd;

/// Next event of a network.
pub(crate) enum NextEvent {
    /// An event at a hop other than the bottleneck.
    AtHop,
    /// The bottleneck becomes free for a held packet.
    Departure,
    /// A cross packet arrives at the bottleneck.
    CrossPacket,
    /// The first event of this line of the event queue, and its time.
    Event(usize, Nanos),
    /// No event before the limit.
    Limit,
}

/// Next event at the hops other than the bottleneck.
pub(crate) enum HopEvent {
    Departure(usize),
    CrossPacket(usize),
    Arrival(usize, Packet),
}

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Selects the next event.
    #[inline(always)]
    pub(crate) fn next_event(&self) -> NextEvent {
        let (queue, due) = self.events.next_event();
        if HAS_HOP && self.is_hop_event_first(due) {
            NextEvent::AtHop
        } else if Q::HOLDS_PACKETS && self.is_bottleneck_departure_first(due) {
            NextEvent::Departure
        } else if Q::HAS_CROSS_TRAFFIC && self.is_cross_arrival_first(due) {
            NextEvent::CrossPacket
        } else if due > self.limit {
            NextEvent::Limit
        } else {
            NextEvent::Event(queue, due)
        }
    }

    /// Whether an event at another hop precedes the next event of the event queue (at `due`) and
    /// the events of the bottleneck.
    fn is_hop_event_first(&self, due: Nanos) -> bool {
        let (next, departs) = self.hops.next_event_time();
        let departure = if Q::HOLDS_PACKETS { self.queue.next_departure() } else { NEVER };
        let cross = if Q::HAS_CROSS_TRAFFIC { self.queue.next_cross_arrival() } else { NEVER };
        let bottleneck = departure.min(cross);
        let before_link = next < bottleneck || (next == bottleneck && departs);
        next <= due && next <= self.limit && before_link
    }

    /// Whether the bottleneck becomes free for a held packet before the next event at `due`.
    fn is_bottleneck_departure_first(&self, due: Nanos) -> bool {
        let leaves = self.queue.next_departure();
        let due = if Q::HAS_CROSS_TRAFFIC { due.min(self.queue.next_cross_arrival()) } else { due };
        leaves <= due && leaves <= self.limit
    }

    /// Takes the next event at the hops; there must be one.
    pub(crate) fn take_hop_event(&mut self) -> HopEvent {
        let (at, event) = self.hops.take_next_event();
        self.now = at;
        event
    }

    /// Whether a cross packet arrives at or before the next event at `due`.
    fn is_cross_arrival_first(&self, due: Nanos) -> bool {
        let arrival = self.queue.next_cross_arrival();
        arrival <= due && arrival <= self.limit
    }

    /// Whether no other event precedes `due`, so that processing can continue at `due` without
    /// scheduling an event.
    #[inline(always)]
    pub(crate) fn precedes_all_events(&self, due: Nanos) -> bool {
        (due == self.now
            && !(Q::HOLDS_PACKETS && self.has_bottleneck_departure_now())
            && !(HAS_HOP && self.has_hop_departure_now()))
            || (due < self.events.next_event().1
                && due <= self.limit
                && !(Q::HOLDS_PACKETS && self.has_event_by(due))
                && !(HAS_HOP && self.hops.has_event_by(due)))
    }

    /// Whether a packet that reaches the first hop at `due` would overtake an earlier packet of its
    /// class that is due at the same time and waits for a departure.
    #[inline(always)]
    pub(super) fn would_overtake_due_packet<S: SendingEnd>(
        &self,
        source: &SimulatedSource<S>,
        due: Nanos,
    ) -> bool {
        (Q::HOLDS_PACKETS || HAS_HOP)
            && self.varying_rates
            && self.events.next_arrival(PacketPlace::Bottleneck, source.record.class()) <= due
    }

    /// Whether a departure at `now` is pending: token buckets transmit in no time, and departures
    /// precede arrivals.
    fn has_bottleneck_departure_now(&self) -> bool {
        self.queue.next_departure() <= self.now
    }

    /// Whether a departure at another hop at `now` is pending.
    fn has_hop_departure_now(&self) -> bool {
        self.hops.next_departure().0 <= self.now
    }

    /// Whether the bottleneck has an event up to `due`: a departure, a cross packet, or a drop
    /// notification.
    fn has_event_by(&self, due: Nanos) -> bool {
        due >= self.queue.next_departure()
            || !self.dropped_from_queue.is_empty()
            || (Q::HAS_CROSS_TRAFFIC && due >= self.queue.next_cross_arrival())
    }
}

impl HopChain {
    /// Time of the next event, and whether it is a departure; [`NEVER`] if there is none.
    fn next_event_time(&self) -> (Nanos, bool) {
        let arrival = self.arrivals.next_arrival_time();
        if self.busy.is_empty() {
            return (arrival, false);
        }
        let departure = self.next_departure().0;
        let arrival = arrival.min(self.next_cross_arrival().0);
        (arrival.min(departure), departure <= arrival)
    }

    fn next_departure(&self) -> (Nanos, usize) {
        self.earliest_time_and_stage(SharedHop::next_departure)
    }

    fn next_cross_arrival(&self) -> (Nanos, usize) {
        self.earliest_time_and_stage(SharedHop::next_cross_arrival)
    }

    /// Earliest time over all stages, and its stage; events of the return link occur late.
    fn earliest_time_and_stage(&self, when: impl Fn(&SharedHop) -> Nanos) -> (Nanos, usize) {
        let time = |stage: &usize| match &self.stages[*stage].kind {
            StageKind::Shared(hop) if *stage == self.forward => {
                (when(hop) + self.acks.late, *stage)
            }
            StageKind::Shared(hop) => (when(hop), *stage),
            StageKind::PerSource(_) | StageKind::Bottleneck => (NEVER, *stage),
        };
        self.busy.iter().map(time).min().unwrap_or((NEVER, 0))
    }

    /// Whether a hop has an event or a drop notification up to `due`.
    fn has_event_by(&self, due: Nanos) -> bool {
        due >= self.next_event_time().0 || !self.drops.is_empty()
    }

    /// Takes the next event; there must be one.
    fn take_next_event(&mut self) -> (Nanos, HopEvent) {
        let (at, departs) = self.next_event_time();
        if departs {
            return (at, HopEvent::Departure(self.next_departure().1));
        }
        let (cross, stage) = self.next_cross_arrival();
        if cross <= at {
            return (at, HopEvent::CrossPacket(stage));
        }
        let (at, stage, packet) = self.arrivals.take_first_arrival();
        (at, HopEvent::Arrival(stage, packet))
    }
}
