//! Fair queueing with one queue per flow and deficit round robin.
//!
//! In deficit round robin (Shreedhar and Varghese 1995), each turn of a flow adds a quantum of
//! bytes to its deficit counter. The unused deficit is kept for the next turn while the flow is
//! backlogged. A quantum of one packet gives packet-by-packet round robin (Nagle's fair queueing).
//!
//! A flow has a queue until its last packet has left the link. New flows join at the end of the
//! round. The flow in service returns to the end of the round after its turn, behind flows that
//! joined meanwhile. A flow whose only packet is evicted leaves the round.

use super::buffer_occupancy::{BufferOccupancy, MaxBacklog};
use super::flow_table::{DrrFlow, FlowTable};
use super::longest_queue::{LongestQueue, TieBreakRule};
use super::packet_list::{NO_INDEX, PacketPool};
use super::{Backlog, BufferLimits, DropReason, EnqueueOutcome, QueueDiscipline, QueueProbe};
use crate::packet::Packet;
use crate::random::{RandomSource, RandomStream};
use crate::time::Nanos;
use serde::Deserialize;
use std::num::NonZeroU32;

/// Assignment of buffer space to flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferAssignment {
    /// One shared buffer: the limits apply to the total backlog of all flows.
    #[default]
    Shared,
    /// One buffer per flow: the limits apply to the backlog of each flow.
    PerFlow,
}

/// Drop policy of a full shared buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropPolicy {
    /// Drop the arriving packet.
    Arriving,
    /// Drop the last packet of the longest queue, where the arriving packet counts as part of its
    /// queue.
    #[default]
    LongestTail,
    /// Drop the first waiting packet of the longest queue, as in the DRR of ns-2. The arriving
    /// packet counts as part of its queue.
    LongestHead,
}

/// Whether the first packet of each flow's queue occupies the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadOfLine {
    /// All packets occupy the buffer.
    #[default]
    InBuffer,
    /// The first packet of each flow is in service and occupies no buffer (a reading of INRIA
    /// report 4154, whose aggregated service begins at the head of the flow's queue). Limits in
    /// bytes ignore this rule.
    InService,
}

/// Flows whose packets are charged more than their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeavyFlows {
    /// First flow number.
    pub first: u32,
    /// Last flow number.
    pub last: u32,
    /// Bytes charged for each packet.
    pub charge: u32,
}

/// The parameters of fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrrConfig {
    /// Quantum per turn in bytes.
    pub quantum_bytes: NonZeroU32,
    /// Assignment of buffer space to flows.
    pub buffers: BufferAssignment,
    /// Drop policy of a shared buffer; per-flow buffers drop the arriving packet.
    pub drop: DropPolicy,
    /// Tie-breaking rule for queues with equal numbers of packets.
    pub ties: TieBreakRule,
    /// Whether the first packet of each flow occupies the buffer.
    #[serde(default)]
    pub head_of_line: HeadOfLine,
    /// Flows that are charged more than the length of their packets.
    #[serde(skip)]
    pub heavy: Option<HeavyFlows>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropVictim {
    Arriving,
    /// A queued packet of this flow.
    Of(u32),
}

/// Deficit round robin.
#[derive(Clone, Debug)]
pub struct Drr<T = u32, D = RandomStream> {
    config: DrrConfig,
    pool: PacketPool<Packet<T>>,
    flows: FlowTable,
    longest: LongestQueue<D>,
    occupancy: BufferOccupancy,
    /// First and last flow of the round and their number, excluding the flow in service.
    first: u32,
    last: u32,
    in_round: u32,
    /// Flow whose packet is in transmission.
    served: u32,
    /// Flows with a queue, including the flow in service.
    active: u64,
}

impl<T: Copy, D: RandomSource> Drr<T, D> {
    /// Creates an empty queue; `draws` is used for random ties.
    #[must_use]
    pub fn new(limits: BufferLimits, config: DrrConfig, draws: D) -> Self {
        Self {
            config,
            pool: PacketPool::default(),
            flows: FlowTable::default(),
            longest: LongestQueue::new(config.ties, draws),
            occupancy: BufferOccupancy::new(limits),
            first: NO_INDEX,
            last: NO_INDEX,
            in_round: 0,
            served: NO_INDEX,
            active: 0,
        }
    }

    /// Weight of the flow of a packet, which is the first one of a busy period of this flow.
    fn weight_of_flow(&self, Packet { flow: number, bytes, .. }: Packet<T>) -> f64 {
        if let Some(HeavyFlows { first, last, charge }) = self.config.heavy {
            if (first..=last).contains(&number) {
                return f64::from(bytes) / f64::from(charge);
            }
        }
        1.0
    }

    fn evicts_queued(&self) -> bool {
        self.config.drop != DropPolicy::Arriving && self.config.buffers == BufferAssignment::Shared
    }

    fn remove_flow(&mut self, flow: u32) {
        self.active -= 1;
        self.flows.remove_from_table(flow);
    }

    /// Whether a packet of `flow` with `bytes` fits into the buffer.
    #[inline]
    fn has_room(&self, flow: u32, bytes: u32) -> bool {
        let mut occupied = self.occupied_buffer(flow);
        if self.config.head_of_line == HeadOfLine::InService {
            if flow == NO_INDEX {
                return true;
            }
            let is_shared = self.config.buffers == BufferAssignment::Shared;
            let heads = if is_shared { self.active } else { 1 };
            occupied.packets = occupied.packets.saturating_sub(heads);
        }
        self.buffer_limits().has_room(occupied, bytes)
    }

    /// Occupied part of the buffer used by a flow.
    fn occupied_buffer(&self, flow: u32) -> Backlog {
        if self.config.buffers == BufferAssignment::Shared {
            return self.occupancy.held_backlog();
        }
        if flow == NO_INDEX {
            return Backlog::default();
        }
        let DrrFlow { chain, bytes, .. } = self.flows.flow_at(flow);
        let mut counted = Backlog { packets: u64::from(chain.len), bytes: *bytes };
        if flow == self.served {
            counted.packets += self.occupancy.in_service.packets;
            counted.bytes += self.occupancy.in_service.bytes;
        }
        counted
    }

    /// Selects the packet to drop for an arriving packet of `flow`, which is not in its queue yet.
    fn select_victim(&mut self, flow: u32, bytes: u32) -> DropVictim {
        let BufferOccupancy { max, in_service, .. } = self.occupancy;
        if !self.evicts_queued() || !max.has_room(in_service, bytes) {
            return DropVictim::Arriving;
        }
        let len = if flow == NO_INDEX { 0 } else { self.flows.flow_at(flow).chain.len };
        match self.longest.longest_flow(len + 1) {
            Some(other) => DropVictim::Of(other),
            None if self.config.drop == DropPolicy::LongestHead && len > 0 => DropVictim::Of(flow),
            None => DropVictim::Arriving,
        }
    }

    /// Drops a queued packet of a flow.
    fn evict_packet(&mut self, now: Nanos, flow: u32, probe: &mut impl QueueProbe<T>) {
        let tail = self.config.drop == DropPolicy::LongestTail;
        let Some(packet) = self.take_first_or_last_packet(flow, tail) else { return };
        self.occupancy.waiting.remove_packet(packet.bytes);
        probe.on_drop(now, &packet, DropReason::Full);
        if self.flows.flow_at(flow).chain.len == 0 && flow != self.served {
            // The flow is removed from the round when its turn comes.
            self.remove_flow(flow);
        }
    }

    #[inline]
    fn take_first_or_last_packet(&mut self, flow: u32, tail: bool) -> Option<Packet<T>> {
        let state = self.flows.flow_at_mut(flow);
        let packet = if tail {
            self.pool.take_last(&mut state.chain)?
        } else {
            self.pool.take_first(&mut state.chain)?
        };
        state.bytes -= u64::from(packet.bytes);
        let to = state.chain.len;
        if self.evicts_queued() {
            self.longest.on_queue_shrunk(self.flows.all_slots_mut(), flow, to);
        }
        Some(packet)
    }

    /// Appends a packet to the queue of its flow, and returns the slot of the flow.
    #[inline]
    fn append_packet(&mut self, flow: u32, packet: Packet<T>) -> u32 {
        let flow = if flow == NO_INDEX {
            let weight = self.weight_of_flow(packet);
            self.active += 1;
            self.flows.add_flow(DrrFlow::new(packet.flow, weight))
        } else {
            flow
        };
        let state = self.flows.flow_at_mut(flow);
        self.pool.push_packet(&mut state.chain, packet);
        state.bytes += u64::from(packet.bytes);
        let len = state.chain.len;
        self.occupancy.waiting.add_packet(packet.bytes);
        if self.evicts_queued() {
            self.longest.on_queue_grown(self.flows.all_slots_mut(), flow, len);
        }
        if len == 1 && flow != self.served {
            self.join_round(flow);
        }
        flow
    }

    #[inline]
    fn join_round(&mut self, flow: u32) {
        self.flows.append_to_round(&mut self.first, &mut self.last, flow);
        self.in_round += 1;
    }

    #[inline]
    fn remove_first_from_round(&mut self) {
        self.first = self.flows.flow_at(self.first).next;
        self.in_round -= 1;
    }

    /// Removes flows without packets from the beginning of the round.
    #[inline]
    fn remove_empty_flows(&mut self) {
        while self.first != NO_INDEX && self.flows.flow_at(self.first).chain.len == 0 {
            let flow = self.first;
            self.remove_first_from_round();
            self.flows.free_slot(flow);
        }
    }

    /// Deficit needed for the first packet of a flow.
    #[inline]
    fn deficit_of_first_packet(&self, flow: u32) -> i64 {
        let state = self.flows.flow_at(flow);
        self.pool
            .first_packet(&state.chain)
            .map_or(0, |packet| state.deficit_used_by_packet(packet.bytes))
    }

    /// Returns the next flow of the round whose deficit suffices for a packet; `None` if no packet
    /// waits.
    #[inline]
    fn next_flow_in_round(&mut self) -> Option<u32> {
        let quantum = i64::from(self.config.quantum_bytes.get());
        let mut skipped = 0;
        loop {
            self.remove_empty_flows();
            let flow = self.first;
            if flow == NO_INDEX {
                return None;
            }
            let charge = self.deficit_of_first_packet(flow);
            let state = self.flows.flow_at_mut(flow);
            state.deficit += quantum;
            let suffices = state.deficit >= charge;
            self.remove_first_from_round();
            if suffices {
                return Some(flow);
            }
            self.join_round(flow);
            skipped += 1;
            if skipped >= self.in_round {
                self.skip_rounds();
                skipped = 0;
            }
        }
    }

    /// Skips rounds in which no deficit suffices for a packet, until the next round contains a flow
    /// that can send.
    #[cold]
    fn skip_rounds(&mut self) {
        let quantum = i64::from(self.config.quantum_bytes.get());
        let mut rounds = i64::MAX;
        let mut flow = self.first;
        while flow != NO_INDEX {
            let state = self.flows.flow_at(flow);
            if state.chain.len > 0 {
                let missing = self.deficit_of_first_packet(flow) - state.deficit;
                rounds = rounds.min((missing + quantum - 1) / quantum - 1);
            }
            flow = state.next;
        }
        let mut flow = self.first;
        while flow != NO_INDEX {
            let state = self.flows.flow_at_mut(flow);
            state.deficit = state.deficit.saturating_add(rounds.saturating_mul(quantum));
            flow = state.next;
        }
    }

    /// Continues or ends the turn of the flow in service, and returns the next flow to serve.
    #[inline]
    fn next_flow_to_serve(&mut self) -> Option<u32> {
        let flow = self.served;
        if flow == NO_INDEX {
            return self.next_flow_in_round();
        }
        if self.flows.flow_at(flow).chain.len == 0 {
            self.remove_flow(flow);
            self.flows.free_slot(flow);
        } else if self.flows.flow_at(flow).deficit >= self.deficit_of_first_packet(flow) {
            return Some(flow);
        } else {
            self.join_round(flow);
        }
        self.next_flow_in_round()
    }

    fn buffer_limits(&self) -> &MaxBacklog {
        &self.occupancy.max
    }
}

impl<T: Copy, D: RandomSource> QueueDiscipline<T> for Drr<T, D> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let packet = packet.with_arrival_time(now);
        let flow = self.flows.find_slot(packet.flow);
        if self.has_room(flow, packet.bytes) {
            self.append_packet(flow, packet);
            return EnqueueOutcome::Accepted;
        }
        let DropVictim::Of(mut victim) = self.select_victim(flow, packet.bytes) else {
            probe.on_drop(now, &packet, DropReason::Full);
            return EnqueueOutcome::Dropped(DropReason::Full);
        };
        let arriving_flow = self.append_packet(flow, packet);
        loop {
            self.evict_packet(now, victim, probe);
            let is_last = self.config.drop == DropPolicy::LongestTail;
            if victim == arriving_flow
                && (is_last || self.flows.flow_at(arriving_flow).chain.len == 0)
            {
                return EnqueueOutcome::Dropped(DropReason::Full);
            }
            // A long packet may need the space of several short packets.
            let heads_count = self.config.head_of_line == HeadOfLine::InBuffer;
            let backlog = self.occupancy.held_backlog();
            if !heads_count || self.buffer_limits().is_within_limits(backlog) {
                return EnqueueOutcome::Accepted;
            }
            let Some(next) = self.longest.longest_flow(0) else { return EnqueueOutcome::Accepted };
            victim = next;
        }
    }

    fn dequeue(&mut self, _now: Nanos, _probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        let next = self.next_flow_to_serve();
        let packet = next.and_then(|flow| {
            self.take_first_or_last_packet(flow, false).map(|packet| (flow, packet))
        });
        let Some((flow, packet)) = packet else {
            self.served = NO_INDEX;
            self.occupancy.set_transmitter_idle();
            return None;
        };
        self.served = flow;
        let state = self.flows.flow_at_mut(flow);
        state.deficit -= state.deficit_used_by_packet(packet.bytes);
        self.occupancy.move_to_transmission(packet.bytes);
        Some(packet)
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.occupancy
    }

    fn reset_when_empty(&mut self, _now: Nanos) {}
}

#[cfg(test)]
#[path = "drr_tests.rs"]
mod tests;
