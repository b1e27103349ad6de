//! Fair queueing: one queue per flow, served round robin.
//!
//! Deficit round robin (Shreedhar and Varghese 1995): at the start of its turn a flow receives a
//! credit of one quantum of bytes, and the flow keeps unused credit for the next turn while it has
//! packets. With a quantum of one packet this is packet-by-packet round robin (Nagle's fair
//! queueing). A quantum is at least one packet, so each turn sends a packet, and the cost per
//! packet does not depend on the number of flows.
//!
//! A flow has a queue from its first packet until its last packet has left the link. New flows join
//! the end of the round. The flow in service moves to the end when its turn ends, behind flows that
//! joined meanwhile. A flow whose only packet is evicted leaves the round.
//!
//! The data structures for flows, packets and the longest queue belong to the crate `link`, whose
//! `Drr` is the same discipline for packets of any length. This implementation is for packets of
//! equal length, so it stores neither the length nor the arrival time of a packet: a flow takes 32
//! bytes instead of 56 and a packet 24 instead of 48. With 100,000 flows, loading the state of
//! flows from memory dominates the run time. `Drr` would also change some results. A flow is heavy
//! if its packets are charged more than their length, so it may have to wait several rounds for
//! credit. If only heavy flows have packets, a flow is served here after as many skipped flows as
//! there are heavy sources, even with too little credit; `Drr` adds the credit of all necessary
//! rounds.

use super::{EnqueueOutcome, QueueDiscipline, QueueProbe};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::RandomStream;
use serde::Deserialize;
use std::hint::black_box;
pub use tcpcast_link::queue::{BufferAssignment, DropPolicy, HeadOfLine, TieBreakRule};
use tcpcast_link::queue::{
    FlowTable, ListLinks, ListedFlow, LongestQueue, NO_INDEX, PacketList, PacketPool,
};

/// The parameters of fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FairConfig {
    /// Bytes that a flow may send per turn; at least `packet_bytes`.
    pub quantum_bytes: u32,
    /// Bytes per packet.
    pub packet_bytes: u32,
    /// Shared buffer or per-flow buffers.
    pub buffers: BufferAssignment,
    /// Drop policy of a full shared buffer; a full per-flow buffer drops the arriving packet.
    pub drop: DropPolicy,
    /// Selection among equally long queues.
    pub ties: TieBreakRule,
    /// Whether the first packet of each flow occupies the buffer.
    #[serde(default)]
    pub head_of_line: HeadOfLine,
}

impl FairConfig {
    /// Whether the selection among equally long queues is random.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.ties != TieBreakRule::Latest
    }
}

/// A flow with a queue.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct FairFlow {
    source: u32,
    /// Bytes that the flow may still send in this turn.
    credit: u32,
    /// Next flow of the round.
    next: u32,
    /// Queued packets.
    chain: PacketList,
    links: ListLinks,
}

impl FairFlow {
    fn new(source: u32) -> Self {
        Self {
            source,
            credit: 0,
            next: NO_INDEX,
            chain: PacketList::EMPTY,
            links: ListLinks::UNLINKED,
        }
    }
}

impl ListedFlow for FairFlow {
    #[inline(always)]
    fn flow_number(&self) -> u32 {
        self.source
    }

    #[inline(always)]
    fn next_in_list(&mut self) -> &mut u32 {
        &mut self.next
    }

    #[inline(always)]
    fn length_list_links(&mut self) -> &mut ListLinks {
        &mut self.links
    }
}

/// Packet to drop when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropVictim {
    None,
    Arriving,
    /// A queued packet of this flow.
    Queued(u32),
}

/// A fair queue.
#[derive(Clone, Debug)]
pub struct FairQueue {
    config: FairConfig,
    limit: u64,
    pool: PacketPool<Packet>,
    flows: FlowTable<FairFlow>,
    longest: LongestQueue<RandomStream>,
    /// Queued packets of all flows.
    waiting: u64,
    /// Flows with a queue, including the flow in service.
    active: u64,
    /// First and last flow of the round, which excludes the flow in service.
    first: u32,
    last: u32,
    /// Flow of the packet in transmission.
    served: u32,
    leaves: Nanos,
    /// Flows of sources below this index are heavy.
    heavy: u32,
    /// Bytes charged per packet of a heavy flow.
    heavy_bytes: u32,
}

impl FairQueue {
    /// Creates an empty queue. `limit` is the limit in packets, including the packet in
    /// transmission, of the shared buffer or of each per-flow buffer; `None` is unlimited. Among
    /// equally long queues the latest loses a packet.
    #[must_use]
    pub fn new(config: FairConfig, limit: Option<u64>) -> Self {
        Self::with_longest(config, limit, LongestQueue::with_latest_tie_break())
    }

    /// Creates an empty queue that selects among equally long queues at random.
    #[must_use]
    pub fn with_random_selection(
        config: FairConfig,
        limit: Option<u64>,
        draws: RandomStream,
    ) -> Self {
        Self::with_longest(config, limit, LongestQueue::new(config.ties, draws))
    }

    fn with_longest(
        config: FairConfig,
        limit: Option<u64>,
        longest: LongestQueue<RandomStream>,
    ) -> Self {
        Self {
            config,
            limit: limit.unwrap_or(u64::MAX),
            pool: PacketPool::default(),
            flows: FlowTable::default(),
            longest,
            waiting: 0,
            active: 0,
            first: NO_INDEX,
            last: NO_INDEX,
            served: NO_INDEX,
            leaves: NEVER,
            heavy: 0,
            heavy_bytes: config.packet_bytes,
        }
    }

    /// Makes the flows of the first `flows` sources heavy: their packets are charged `times` their
    /// length, which corresponds to a weight of 1 / `times`.
    pub fn make_first_flows_heavy(&mut self, flows: u32, times: f64) {
        self.heavy = flows;
        self.heavy_bytes = libm::round(f64::from(self.config.packet_bytes) * times) as u32;
    }

    /// Bytes charged per packet of a flow.
    #[inline(always)]
    fn charged_bytes_of(&self, flow: &FairFlow) -> u32 {
        if flow.source < self.heavy { self.heavy_bytes } else { self.config.packet_bytes }
    }

    fn flow_queue_length(&self, flow: u32) -> u32 {
        self.flows.flow_at(flow).chain.len
    }

    fn packets_in_service(&self) -> u64 {
        u64::from(self.served != NO_INDEX)
    }

    fn has_room(&self, flow: u32) -> bool {
        let heads_in_service = self.config.head_of_line == HeadOfLine::InService;
        if flow == NO_INDEX && heads_in_service {
            return true;
        }
        let (packets, heads) = match self.config.buffers {
            BufferAssignment::Shared => (self.waiting + self.packets_in_service(), self.active),
            BufferAssignment::PerFlow if flow == NO_INDEX => (0, 0),
            BufferAssignment::PerFlow => {
                let len = u64::from(self.flow_queue_length(flow));
                (len + u64::from(flow == self.served), 1)
            }
        };
        packets - if heads_in_service { heads } else { 0 } < self.limit
    }

    fn add_flow(&mut self, source: u32) -> u32 {
        self.active += 1;
        self.flows.add_flow(FairFlow::new(source))
    }

    fn remove_flow(&mut self, flow: u32) {
        self.active -= 1;
        self.flows.remove_from_table(flow);
    }

    /// Selects the packet to drop to make room for a packet of `flow`.
    fn select_victim(&mut self, flow: u32) -> DropVictim {
        if self.config.drop == DropPolicy::Arriving
            || self.config.buffers == BufferAssignment::PerFlow
        {
            return DropVictim::Arriving;
        }
        let len = if flow == NO_INDEX { 0 } else { self.flow_queue_length(flow) };
        match self.longest.longest_flow(len + 1) {
            Some(other) => DropVictim::Queued(other),
            None if self.config.drop == DropPolicy::LongestHead && len > 0 => {
                DropVictim::Queued(flow)
            }
            None => DropVictim::Arriving,
        }
    }

    /// Evicts a packet from the queue of a flow.
    #[inline(always)]
    fn evict_packet(&mut self, flow: u32) -> Option<Packet> {
        let tail = self.config.drop == DropPolicy::LongestTail;
        let packet = self.take_first_or_last_packet(flow, tail)?;
        if self.flow_queue_length(flow) == 0 && flow != self.served {
            // The round still contains the flow, until its turn comes.
            self.remove_flow(flow);
        }
        Some(packet)
    }

    /// Takes the last packet of a queue if `tail`, otherwise the first.
    #[inline(always)]
    fn take_first_or_last_packet(&mut self, flow: u32, tail: bool) -> Option<Packet> {
        self.update_longest_before_removal(flow);
        let chain = &mut self.flows.flow_at_mut(flow).chain;
        let packet = if tail { self.pool.take_last(chain) } else { self.pool.take_first(chain) }?;
        self.waiting -= 1;
        Some(packet)
    }

    /// Removes flows without packets from the start of the round.
    fn remove_empty_flows(&mut self) {
        while self.first != NO_INDEX && self.flow_queue_length(self.first) == 0 {
            let flow = self.first;
            self.first = self.flows.flow_at(flow).next;
            self.flows.free_slot(flow);
        }
    }

    #[inline(always)]
    fn append_packet(&mut self, flow: u32, packet: Packet) {
        let flow = if flow == NO_INDEX { self.add_flow(packet.source()) } else { flow };
        let len = self.flow_queue_length(flow);
        self.pool.push_packet(&mut self.flows.flow_at_mut(flow).chain, packet);
        self.waiting += 1;
        if self.config.drop != DropPolicy::Arriving {
            self.longest.on_queue_grown(self.flows.all_slots_mut(), flow, len + 1);
        }
        if len == 0 && flow != self.served {
            self.join_round(flow);
        }
    }

    /// Updates the longest queue before a packet leaves the queue of a flow.
    #[inline(never)]
    fn update_longest_before_removal(&mut self, flow: u32) {
        if self.config.drop != DropPolicy::Arriving {
            let to = self.flow_queue_length(flow) - 1;
            self.longest.on_queue_shrunk(self.flows.all_slots_mut(), flow, to);
        }
    }

    #[inline(always)]
    fn join_round(&mut self, flow: u32) {
        self.flows.append_to_round(&mut self.first, &mut self.last, flow);
    }

    /// Starts the next turn and returns its flow; `None` if no packet is queued.
    #[inline(always)]
    fn next_flow_in_round(&mut self) -> Option<u32> {
        let mut skipped = 0;
        loop {
            self.remove_empty_flows();
            let flow = self.first;
            if flow == NO_INDEX {
                return None;
            }
            let FairConfig { quantum_bytes, .. } = self.config;
            let state = self.flows.flow_at_mut(flow);
            state.credit = state.credit.saturating_add(quantum_bytes);
            self.first = state.next;
            // After `heavy` skipped flows, all flows of the round are heavy.
            let is_next = state.credit >= self.heavy_bytes || skipped == self.heavy;
            if state.source >= self.heavy || is_next {
                return Some(flow);
            }
            skipped += 1;
            self.join_round(flow);
        }
    }

    /// Continues or ends the turn of the flow in service. Returns the flow to serve next.
    #[inline(always)]
    fn next_flow_to_serve(&mut self) -> Option<u32> {
        let flow = self.served;
        let state = self.flows.flow_at(flow);
        if state.chain.len == 0 {
            self.remove_flow(flow);
            self.flows.free_slot(flow);
        } else if state.credit >= self.charged_bytes_of(state) {
            return Some(flow);
        } else {
            self.join_round(flow);
        }
        self.next_flow_in_round()
    }

    #[inline(always)]
    fn charge_served_flow(&mut self, flow: u32) {
        self.served = flow;
        let bytes = self.charged_bytes_of(self.flows.flow_at(flow));
        let state = self.flows.flow_at_mut(flow);
        state.credit = state.credit.saturating_sub(bytes);
    }
}

impl QueueDiscipline for FairQueue {
    const HOLDS_PACKETS: bool = true;

    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        let backlog = self.held_packets();
        probe.on_arrival_queue_length(backlog);
        let flow = self.flows.find_slot(packet.source());
        let victim = if self.has_room(flow) { DropVictim::None } else { self.select_victim(flow) };
        if victim == DropVictim::Arriving {
            return EnqueueOutcome::Dropped;
        }
        probe.on_queue_length_interval(backlog, now);
        if self.served == NO_INDEX {
            let flow = self.add_flow(packet.source());
            self.flows.flow_at_mut(flow).credit = self.config.quantum_bytes;
            self.charge_served_flow(flow);
            self.leaves = link.transmit_cached_length(now);
            return EnqueueOutcome::Departs { leaves: self.leaves, backlog };
        }
        self.append_packet(flow, *packet);
        let evicted = match victim {
            DropVictim::Queued(flow) => self.evict_packet(flow),
            DropVictim::None | DropVictim::Arriving => None,
        };
        EnqueueOutcome::Held { backlog, evicted }
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn held_packets(&self) -> usize {
        (self.waiting + self.packets_in_service()) as usize
    }

    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        if self.served == NO_INDEX { 0 } else { self.leaves - now }
    }

    fn waiting_packets(&self) -> u64 {
        self.waiting
    }

    fn next_departure(&self) -> Nanos {
        self.leaves
    }

    fn prefetch_ahead(&self, turns: usize, mut visit: impl FnMut(u32)) {
        let (mut flow, mut fetched) = (self.first, 0);
        for _ in 0..turns {
            if flow == NO_INDEX {
                break;
            }
            let state = self.flows.flow_at(flow);
            visit(state.source);
            flow = state.next;
            fetched ^= self.pool.prefetch_first(&state.chain);
        }
        black_box(fetched);
    }

    fn transmit_next_packet(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let now = self.leaves;
        probe.on_queue_length_interval(self.held_packets(), now);
        let Some(flow) = self.next_flow_to_serve() else {
            self.served = NO_INDEX;
            self.leaves = NEVER;
            return None;
        };
        let packet = self.take_first_or_last_packet(flow, false)?;
        self.charge_served_flow(flow);
        self.leaves = link.transmit_back_to_back();
        Some((self.leaves, packet))
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod tests;
