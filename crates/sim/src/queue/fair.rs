//! Fair queueing: a queue a flow, served in turn.
//!
//! Deficit round robin (Shreedhar and Varghese 1995): a flow whose turn begins may send a quantum
//! of bytes more, and what it does not use of it is kept for its next turn while it has packets.
//! With a quantum of one packet that is round robin packet by packet, Nagle's fair queueing. A
//! quantum is never less than a packet, so that no turn passes in vain and a packet costs a
//! constant number of steps however many flows there are.
//!
//! A flow has a queue from its first packet until its last has left the link. Flows that join do
//! so at the end of the round, and the one in service goes there when its turn is over, behind
//! those that came meanwhile. One that loses its only packet to another's leaves the round.
//!
//! Where each source stands for many, streams of others do not: their packets wait for more turns.

use super::backlog::{Backlog, Flow, NONE};
use super::equals::Equals;
use super::longest::{ByLength, Longest};
use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::Stream;
use std::hint::black_box;

/// Whose room a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// That of its own flow: each may hold as many packets as the buffer.
    OfFlow,
    /// That of all: together they hold as many packets as the buffer.
    OfAll,
}

/// Who goes when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The packet that arrives.
    Arriving,
    /// The last packet of the longest queue, the one that arrives counted in.
    LongestTail,
    /// The first packet that waits in the longest queue, likewise; as ns-2's DRR.
    LongestHead,
}

/// Which of several longest queues loses a packet, the one that arrives counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The one that came to its length last: that of the packet that arrives, if it is among them.
    #[default]
    Latest,
    /// Any, that of the packet that arrives among them.
    Random,
    /// Any but that of the packet that arrives.
    RandomOthers,
}

/// The parameters of fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairConfig {
    /// What a flow may send in a turn, in bytes; at least `packet_bytes`.
    pub quantum_bytes: u32,
    /// Bytes of a packet.
    pub packet_bytes: u32,
    /// Whose room a packet takes.
    pub room: Room,
    /// Who goes when there is none; where rooms are of flows, the arriving packet.
    pub overflow: Overflow,
    /// Of which queue, where several are the longest.
    pub ties: Ties,
}

impl FairConfig {
    /// Whether there is anything to draw.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.ties != Ties::Latest
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Nobody,
    Arriving,
    /// A packet of that flow.
    Of(u32),
}

/// The fair queue.
#[derive(Clone, Debug)]
pub struct Fair<L = Longest> {
    config: FairConfig,
    most: u64,
    backlog: Backlog,
    longest: L,
    /// Ends of the round; the flow in service is not in it.
    first: u32,
    last: u32,
    /// The flow whose packet is in transmission.
    served: u32,
    leaves: Nanos,
    /// Sources below this number are streams of others.
    streams: u32,
    /// Bytes that a packet of theirs counts for.
    stream_bytes: u32,
}

impl Fair {
    /// An empty queue; `most` packets fit, the one in transmission included, in the rooms that the
    /// configuration says; `None` is unlimited. Of several longest queues it takes the latest.
    #[must_use]
    pub fn new(config: FairConfig, most: Option<u64>) -> Self {
        Self::with(config, most, Longest::default())
    }
}

impl Fair<Equals> {
    /// Likewise, but of several longest queues it draws one.
    #[must_use]
    pub fn at_random(config: FairConfig, most: Option<u64>, draws: Stream) -> Self {
        let own_counts = config.ties == Ties::Random;
        Self::with(config, most, Equals::new(own_counts, draws))
    }
}

impl<L: ByLength> Fair<L> {
    fn with(config: FairConfig, most: Option<u64>, longest: L) -> Self {
        Self {
            config,
            most: most.unwrap_or(u64::MAX),
            backlog: Backlog::new(),
            longest,
            first: NONE,
            last: NONE,
            served: NONE,
            leaves: NEVER,
            streams: 0,
            stream_bytes: config.packet_bytes,
        }
    }

    /// The first so many sources are streams, each one flow of others, while each of the rest stands
    /// for `each` flows: a stream's packet, worth as many of its own, takes as many turns.
    pub fn slow_streams(&mut self, streams: u32, each: f64) {
        self.streams = streams;
        self.stream_bytes = libm::round(f64::from(self.config.packet_bytes) * each) as u32;
    }

    /// Bytes that a packet of a flow counts for.
    #[inline(always)]
    fn bytes_of(&self, flow: &Flow) -> u32 {
        if flow.source < self.streams { self.stream_bytes } else { self.config.packet_bytes }
    }

    fn in_service(&self) -> u64 {
        u64::from(self.served != NONE)
    }

    fn has_room(&self, flow: u32) -> bool {
        match self.config.room {
            Room::OfAll => self.backlog.waiting() + self.in_service() < self.most,
            Room::OfFlow if flow == NONE => self.most > 0,
            Room::OfFlow => {
                let len = u64::from(self.backlog.flow(flow).len);
                len + u64::from(flow == self.served) < self.most
            }
        }
    }

    /// Who goes to make room for a packet of `flow`.
    fn victim(&mut self, flow: u32) -> Victim {
        if self.config.overflow == Overflow::Arriving || self.config.room == Room::OfFlow {
            return Victim::Arriving;
        }
        let len = if flow == NONE { 0 } else { self.backlog.flow(flow).len };
        match self.longest.longest(len + 1) {
            Some(other) => Victim::Of(other),
            None if self.config.overflow == Overflow::LongestHead && len > 0 => Victim::Of(flow),
            None => Victim::Arriving,
        }
    }

    /// Takes a packet from a queue.
    #[inline(always)]
    fn push_out(&mut self, flow: u32) -> Packet {
        self.shrinks(flow);
        let packet = if self.config.overflow == Overflow::LongestTail {
            self.backlog.take_last(flow)
        } else {
            self.backlog.take_first(flow)
        };
        if L::EMPTIES && self.backlog.flow(flow).len == 0 && flow != self.served {
            // Its place in the round is found when its turn comes.
            self.backlog.forget(flow);
        }
        packet
    }

    /// Takes flows without a packet from the beginning of the round.
    fn pass_emptied(&mut self) {
        while self.first != NONE && self.backlog.flow(self.first).len == 0 {
            let flow = self.first;
            self.first = self.backlog.flow(flow).next;
            self.backlog.free(flow);
        }
    }

    #[inline(always)]
    fn wait(&mut self, flow: u32, packet: Packet) {
        let flow = if flow == NONE { self.backlog.add(packet.source) } else { flow };
        let len = self.backlog.flow(flow).len;
        self.backlog.push(flow, packet);
        if self.config.overflow != Overflow::Arriving {
            self.longest.grows(self.backlog.flows_mut(), flow, len + 1);
        }
        if len == 0 && flow != self.served {
            self.join_round(flow);
        }
    }

    /// A packet is about to leave the queue of a flow.
    #[inline(never)]
    fn shrinks(&mut self, flow: u32) {
        if self.config.overflow != Overflow::Arriving {
            let to = self.backlog.flow(flow).len - 1;
            self.longest.shrinks(self.backlog.flows_mut(), flow, to);
        }
    }

    #[inline(always)]
    fn join_round(&mut self, flow: u32) {
        self.backlog.flow_mut(flow).next = NONE;
        if self.first == NONE {
            self.first = flow;
        } else {
            self.backlog.flow_mut(self.last).next = flow;
        }
        self.last = flow;
    }

    /// The flow whose turn begins; `None` if no packet waits.
    #[inline(always)]
    fn next_in_round(&mut self) -> Option<u32> {
        let mut passed = 0;
        loop {
            if L::EMPTIES {
                self.pass_emptied();
            }
            let flow = self.first;
            if flow == NONE {
                return None;
            }
            let FairConfig { quantum_bytes, .. } = self.config;
            let state = self.backlog.flow_mut(flow);
            state.credit = state.credit.saturating_add(quantum_bytes);
            self.first = state.next;
            // Where so many have been passed, there is none but streams.
            let is_next = state.credit >= self.stream_bytes || passed == self.streams;
            if state.source >= self.streams || is_next {
                return Some(flow);
            }
            passed += 1;
            self.join_round(flow);
        }
    }

    /// The turn of the flow in service goes on, or is over; which flow is next.
    #[inline(always)]
    fn next_flow(&mut self) -> Option<u32> {
        let flow = self.served;
        let state = self.backlog.flow(flow);
        if state.len == 0 {
            self.backlog.remove(flow);
        } else if state.credit >= self.bytes_of(state) {
            return Some(flow);
        } else {
            self.join_round(flow);
        }
        self.next_in_round()
    }

    #[inline(always)]
    fn begin_service(&mut self, flow: u32) {
        self.served = flow;
        let bytes = self.bytes_of(self.backlog.flow(flow));
        let state = self.backlog.flow_mut(flow);
        state.credit = state.credit.saturating_sub(bytes);
    }
}

impl<L: ByLength> QueueDiscipline for Fair<L> {
    const HOLDS: bool = true;

    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        let found = self.held();
        probe.queue_seen(found);
        let flow = self.backlog.flow_of(packet.source);
        let victim = if self.has_room(flow) { Victim::Nobody } else { self.victim(flow) };
        if victim == Victim::Arriving {
            return Verdict::Dropped;
        }
        probe.queue_held(found, now);
        if self.served == NONE {
            let flow = self.backlog.add(packet.source);
            self.backlog.flow_mut(flow).credit = self.config.quantum_bytes;
            self.begin_service(flow);
            self.leaves = link.transmit_next(now);
            return Verdict::Departs { leaves: self.leaves, found };
        }
        self.wait(flow, *packet);
        let pushed_out = match victim {
            Victim::Of(flow) => Some(self.push_out(flow)),
            Victim::Nobody | Victim::Arriving => None,
        };
        Verdict::Held { found, pushed_out }
    }

    fn settle(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn held(&self) -> usize {
        (self.backlog.waiting() + self.in_service()) as usize
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        if self.served == NONE { 0 } else { self.leaves - now }
    }

    fn waiting(&self) -> u64 {
        self.backlog.waiting()
    }

    fn link_leaves(&self) -> Nanos {
        self.leaves
    }

    fn fetch_ahead(&self, sources: &mut [u32]) -> usize {
        let mut flow = self.first;
        let (mut count, mut fetched) = (0, 0);
        for source in sources {
            if flow == NONE {
                break;
            }
            let state = self.backlog.flow(flow);
            (*source, flow) = (state.source, state.next);
            fetched ^= self.backlog.fetch(state);
            count += 1;
        }
        black_box(fetched);
        count
    }

    fn serve(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let now = self.leaves;
        probe.queue_held(self.held(), now);
        let Some(flow) = self.next_flow() else {
            self.served = NONE;
            self.leaves = NEVER;
            return None;
        };
        self.shrinks(flow);
        let packet = self.backlog.take_first(flow);
        self.begin_service(flow);
        self.leaves = link.follow();
        Some((self.leaves, packet))
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod tests;
