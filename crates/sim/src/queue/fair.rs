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
//! those that came meanwhile.

use super::backlog::{Backlog, NONE};
use super::longest::Longest;
use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Nobody,
    Arriving,
    /// A packet of that flow, which has two or more once the one that arrives is in.
    Of(u32),
}

/// The fair queue.
#[derive(Clone, Debug)]
pub struct Fair {
    config: FairConfig,
    most: u64,
    backlog: Backlog,
    longest: Longest,
    /// Ends of the round; the flow in service is not in it.
    first: u32,
    last: u32,
    /// The flow whose packet is in transmission.
    served: u32,
    leaves: Nanos,
}

impl Fair {
    /// An empty queue; `most` packets fit, the one in transmission included, in the rooms that the
    /// configuration says; `None` is unlimited.
    #[must_use]
    pub fn new(config: FairConfig, most: Option<u64>) -> Self {
        Self {
            config,
            most: most.unwrap_or(u64::MAX),
            backlog: Backlog::new(),
            longest: Longest::default(),
            first: NONE,
            last: NONE,
            served: NONE,
            leaves: NEVER,
        }
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
    fn victim(&self, flow: u32) -> Victim {
        if self.config.overflow == Overflow::Arriving || self.config.room == Room::OfFlow {
            return Victim::Arriving;
        }
        let len = if flow == NONE { 0 } else { self.backlog.flow(flow).len };
        if len + 1 < self.longest.len() {
            Victim::Of(self.longest.flow())
        } else if self.config.overflow == Overflow::LongestHead && len > 0 {
            Victim::Of(flow)
        } else {
            Victim::Arriving
        }
    }

    /// Takes a packet from a queue that keeps at least one.
    #[inline(always)]
    fn push_out(&mut self, flow: u32) -> Packet {
        self.shrinks(flow);
        if self.config.overflow == Overflow::LongestTail {
            self.backlog.take_last(flow)
        } else {
            self.backlog.take_first(flow)
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
        let flow = self.first;
        if flow == NONE {
            return None;
        }
        let FairConfig { quantum_bytes, .. } = self.config;
        let state = self.backlog.flow_mut(flow);
        state.credit = state.credit.saturating_add(quantum_bytes);
        self.first = state.next;
        Some(flow)
    }

    /// The turn of the flow in service goes on, or is over; which flow is next.
    #[inline(always)]
    fn next_flow(&mut self) -> Option<u32> {
        let flow = self.served;
        let state = self.backlog.flow(flow);
        if state.len == 0 {
            self.backlog.remove(flow);
        } else if state.credit >= self.config.packet_bytes {
            return Some(flow);
        } else {
            self.join_round(flow);
        }
        self.next_in_round()
    }

    #[inline(always)]
    fn begin_service(&mut self, flow: u32) {
        self.served = flow;
        let state = self.backlog.flow_mut(flow);
        state.credit = state.credit.saturating_sub(self.config.packet_bytes);
    }
}

impl QueueDiscipline for Fair {
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
            self.leaves = link.transmit(now);
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
