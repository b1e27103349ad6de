//! Fair queueing: a queue a flow, served in turn.
//!
//! Deficit round robin (Shreedhar and Varghese 1995): a flow whose turn begins may send a quantum
//! of bytes more, and what it does not use of it is kept for its next turn while it has packets.
//! With a quantum of one packet that is round robin packet by packet, Nagle's fair queueing. A flow
//! of half the weight is charged twice for each byte.
//!
//! A flow has a queue from its first packet until its last has left the link. Flows that join do
//! so at the end of the round, and the one in service goes there when its turn is over, behind
//! those that came meanwhile. One that loses its only packet to another's leaves the round.

use super::chain::{Chain, NONE, Pool};
use super::flows::{Flows, Listed};
use super::longest::{Longest, Place, Ties};
use super::occupancy::{Most, Occupancy};
use super::{Backlog, Limits, QueueDiscipline, QueueProbe, Reason, Verdict};
use crate::packet::Packet;
use crate::random::{Draws, Stream};
use crate::time::Nanos;
use serde::Deserialize;
use std::num::NonZeroU32;
use std::ops::Range;

/// Whose buffer a packet takes room in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// That of all flows: together they hold as much as the limits say.
    #[default]
    Shared,
    /// That of its own flow: each may hold as much.
    PerFlow,
}

/// Who goes when a shared buffer is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropPolicy {
    /// The packet that arrives.
    Arriving,
    /// The last packet of the longest queue, the one that arrives counted in.
    #[default]
    LongestTail,
    /// The first packet that waits in the longest queue, likewise; as ns-2's DRR.
    LongestHead,
}

/// The parameters of fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrrConfig {
    /// What a flow may send in a turn, in bytes.
    pub quantum_bytes: NonZeroU32,
    /// Whose buffer a packet takes room in.
    pub buffers: Buffers,
    /// Who goes when there is none; where buffers are per flow, the packet that arrives.
    pub drop: DropPolicy,
    /// Of which queue, where several are the longest in packets.
    pub ties: Ties,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Arriving,
    /// A packet of that flow.
    Of(u32),
}

/// A flow with a queue.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// The number of the flow that its packets carry.
    number: u32,
    /// The flow after it in the round.
    next: u32,
    /// What waits.
    chain: Chain,
    bytes: u64,
    /// Bytes that it may still send in this turn: its deficit counter.
    deficit: i64,
    /// What a byte of it counts for: one over its weight.
    cost: f64,
    place: Place,
}

impl Flow {
    /// An empty queue.
    fn new(number: u32, weight: f64) -> Self {
        Self {
            number,
            next: NONE,
            chain: Chain::EMPTY,
            bytes: 0,
            deficit: 0,
            cost: 1.0 / weight,
            place: Place::NOWHERE,
        }
    }

    /// What a packet of it takes from its deficit.
    #[inline]
    fn charge(&self, bytes: u32) -> i64 {
        if self.cost == 1.0 {
            i64::from(bytes)
        } else {
            libm::round(f64::from(bytes) * self.cost) as i64
        }
    }
}

impl Listed for Flow {
    #[inline]
    fn number(&self) -> u32 {
        self.number
    }

    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }

    #[inline]
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }
}

/// Deficit round robin.
#[derive(Clone, Debug)]
pub struct Drr<T = u32, D = Stream> {
    config: DrrConfig,
    weights: Vec<(Range<u32>, f64)>,
    pool: Pool<Packet<T>>,
    flows: Flows<Flow>,
    longest: Longest<D>,
    occupancy: Occupancy,
    /// Ends of the round, and how many flows are in it; the flow in service is not.
    first: u32,
    last: u32,
    in_round: u32,
    /// The flow whose packet is in transmission.
    served: u32,
}

impl<T: Copy, D: Draws> Drr<T, D> {
    /// An empty queue; `draws` is for ties.
    #[must_use]
    pub fn new(limits: Limits, config: DrrConfig, draws: D) -> Self {
        Self {
            config,
            weights: Vec::new(),
            pool: Pool::default(),
            flows: Flows::default(),
            longest: Longest::new(config.ties, draws),
            occupancy: Occupancy::new(limits),
            first: NONE,
            last: NONE,
            in_round: 0,
            served: NONE,
        }
    }

    /// Flows of these numbers get `weight` times what others get, which have the weight 1; it counts
    /// from a flow's next busy period on. Of several ranges that a flow is in, the first counts. A
    /// weight that is not above 0 is taken as 1.
    #[must_use]
    pub fn with_weight(mut self, flows: Range<u32>, weight: f64) -> Self {
        if weight > 0.0 {
            self.weights.push((flows, weight));
        }
        self
    }

    fn weight_of(&self, number: u32) -> f64 {
        let of_range = self.weights.iter().find(|(range, _)| range.contains(&number));
        of_range.map_or(1.0, |(_, weight)| *weight)
    }

    fn pushes_out(&self) -> bool {
        self.config.drop != DropPolicy::Arriving && self.config.buffers == Buffers::Shared
    }

    /// What of a packet's own buffer is taken.
    fn counted(&self, flow: u32) -> Backlog {
        if self.config.buffers == Buffers::Shared {
            return self.occupancy.counted();
        }
        if flow == NONE {
            return Backlog::default();
        }
        let Flow { chain, bytes, .. } = self.flows.get(flow);
        let mut counted = Backlog { packets: u64::from(chain.len), bytes: *bytes };
        if flow == self.served && self.occupancy.most.service_counts {
            counted.packets += self.occupancy.in_service.packets;
            counted.bytes += self.occupancy.in_service.bytes;
        }
        counted
    }

    /// Who goes to make room for a packet of `flow`, which is not in its queue yet.
    fn victim(&mut self, flow: u32, bytes: u32) -> Victim {
        let Occupancy { most, in_service, .. } = self.occupancy;
        let stays = if most.service_counts { in_service } else { Backlog::default() };
        if !self.pushes_out() || !most.has_room(stays, bytes) {
            return Victim::Arriving;
        }
        let len = if flow == NONE { 0 } else { self.flows.get(flow).chain.len };
        match self.longest.longest(len + 1) {
            Some(other) => Victim::Of(other),
            None if self.config.drop == DropPolicy::LongestHead && len > 0 => Victim::Of(flow),
            None => Victim::Arriving,
        }
    }

    /// Drops a packet of a flow's queue.
    fn push_out(&mut self, now: Nanos, flow: u32, probe: &mut impl QueueProbe<T>) {
        let tail = self.config.drop == DropPolicy::LongestTail;
        let Some(packet) = self.take(flow, tail) else { return };
        self.occupancy.waiting.remove(packet.bytes);
        probe.dropped(now, &packet, Reason::Full);
        if self.flows.get(flow).chain.len == 0 && flow != self.served {
            // Its place in the round is found when its turn comes.
            self.flows.forget(flow);
        }
    }

    #[inline]
    fn take(&mut self, flow: u32, tail: bool) -> Option<Packet<T>> {
        let state = self.flows.get_mut(flow);
        let packet = if tail {
            self.pool.take_last(&mut state.chain)?
        } else {
            self.pool.take_first(&mut state.chain)?
        };
        state.bytes -= u64::from(packet.bytes);
        let to = state.chain.len;
        if self.pushes_out() {
            self.longest.shrinks(self.flows.all_mut(), flow, to);
        }
        Some(packet)
    }

    /// Appends a packet to the queue of its flow, and says which that is.
    #[inline]
    fn wait(&mut self, flow: u32, packet: Packet<T>) -> u32 {
        let flow = if flow == NONE {
            let weight = self.weight_of(packet.flow);
            self.flows.add(Flow::new(packet.flow, weight))
        } else {
            flow
        };
        let state = self.flows.get_mut(flow);
        self.pool.push(&mut state.chain, packet);
        state.bytes += u64::from(packet.bytes);
        let len = state.chain.len;
        self.occupancy.waiting.add(packet.bytes);
        if self.pushes_out() {
            self.longest.grows(self.flows.all_mut(), flow, len);
        }
        if len == 1 && flow != self.served {
            self.join_round(flow);
        }
        flow
    }

    #[inline]
    fn join_round(&mut self, flow: u32) {
        self.flows.append(&mut self.first, &mut self.last, flow);
        self.in_round += 1;
    }

    #[inline]
    fn leave_round(&mut self) {
        self.first = self.flows.get(self.first).next;
        self.in_round -= 1;
    }

    /// Takes flows that lost all their packets from the beginning of the round.
    #[inline]
    fn pass_emptied(&mut self) {
        while self.first != NONE && self.flows.get(self.first).chain.len == 0 {
            let flow = self.first;
            self.leave_round();
            self.flows.free(flow);
        }
    }

    /// What the first packet of a flow is charged.
    #[inline]
    fn first_charge(&self, flow: u32) -> i64 {
        let state = self.flows.get(flow);
        self.pool.first(&state.chain).map_or(0, |packet| state.charge(packet.bytes))
    }

    /// The flow whose turn begins and suffices for a packet; `None` if no packet waits.
    #[inline]
    fn next_in_round(&mut self) -> Option<u32> {
        let quantum = i64::from(self.config.quantum_bytes.get());
        let mut passed = 0;
        loop {
            self.pass_emptied();
            let flow = self.first;
            if flow == NONE {
                return None;
            }
            let charge = self.first_charge(flow);
            let state = self.flows.get_mut(flow);
            state.deficit += quantum;
            let suffices = state.deficit >= charge;
            self.leave_round();
            if suffices {
                return Some(flow);
            }
            self.join_round(flow);
            passed += 1;
            if passed >= self.in_round {
                self.pass_rounds();
                passed = 0;
            }
        }
    }

    /// A round has passed in which no turn sufficed: as many more pass at once as it takes until in
    /// the next one some turn does.
    #[cold]
    fn pass_rounds(&mut self) {
        let quantum = i64::from(self.config.quantum_bytes.get());
        let mut rounds = i64::MAX;
        let mut flow = self.first;
        while flow != NONE {
            let state = self.flows.get(flow);
            if state.chain.len > 0 {
                let missing = self.first_charge(flow) - state.deficit;
                rounds = rounds.min((missing + quantum - 1) / quantum - 1);
            }
            flow = state.next;
        }
        let mut flow = self.first;
        while flow != NONE {
            let state = self.flows.get_mut(flow);
            state.deficit = state.deficit.saturating_add(rounds.saturating_mul(quantum));
            flow = state.next;
        }
    }

    /// The turn of the flow in service goes on, or is over; which flow is next.
    #[inline]
    fn next_flow(&mut self) -> Option<u32> {
        let flow = self.served;
        if flow == NONE {
            return self.next_in_round();
        }
        if self.flows.get(flow).chain.len == 0 {
            self.flows.forget(flow);
            self.flows.free(flow);
        } else if self.flows.get(flow).deficit >= self.first_charge(flow) {
            return Some(flow);
        } else {
            self.join_round(flow);
        }
        self.next_in_round()
    }

    fn most(&self) -> &Most {
        &self.occupancy.most
    }
}

impl<T: Copy, D: Draws> QueueDiscipline<T> for Drr<T, D> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Verdict {
        let packet = packet.enter(now);
        let flow = self.flows.find(packet.flow);
        if self.most().has_room(self.counted(flow), packet.bytes) {
            self.wait(flow, packet);
            return Verdict::Accepted;
        }
        let Victim::Of(mut victim) = self.victim(flow, packet.bytes) else {
            probe.dropped(now, &packet, Reason::Full);
            return Verdict::Dropped(Reason::Full);
        };
        let own = self.wait(flow, packet);
        loop {
            self.push_out(now, victim, probe);
            let is_last = self.config.drop == DropPolicy::LongestTail;
            if victim == own && (is_last || self.flows.get(own).chain.len == 0) {
                return Verdict::Dropped(Reason::Full);
            }
            // A long packet takes the room of several short ones.
            if self.most().allows(self.occupancy.counted()) {
                return Verdict::Accepted;
            }
            let Some(next) = self.longest.longest(0) else { return Verdict::Accepted };
            victim = next;
        }
    }

    fn dequeue(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let next = self.next_flow();
        let taken = next.and_then(|flow| self.take(flow, false).map(|packet| (flow, packet)));
        let Some((flow, packet)) = taken else {
            self.served = NONE;
            self.occupancy.idle();
            return None;
        };
        self.served = flow;
        let state = self.flows.get_mut(flow);
        state.deficit -= state.charge(packet.bytes);
        self.occupancy.serve(packet.bytes);
        Some(packet)
    }

    fn waiting(&self) -> Backlog {
        self.occupancy.waiting
    }

    fn held(&self) -> Backlog {
        self.occupancy.held()
    }

    fn restart(&mut self, _now: Nanos) {}
}

#[cfg(test)]
#[path = "drr_tests.rs"]
mod tests;
