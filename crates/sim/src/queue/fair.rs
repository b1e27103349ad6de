//! Fair queueing: one queue per flow, served round robin.
//!
//! Deficit round robin (Shreedhar and Varghese 1995): at the start of its turn a flow receives a
//! credit of one quantum of bytes, and it keeps unused credit for the next turn while it has
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
//! bytes instead of 56 and a packet 24 instead of 48. With 100,000 flows, loading them from memory
//! dominates the run time. `Drr` would also change some results: if only heavy flows have packets,
//! one round suffices here before a flow is served.

use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::Stream;
use serde::Deserialize;
use std::hint::black_box;
pub use tcpcast_link::queue::{Buffers, DropPolicy, Ties};
use tcpcast_link::queue::{Chain, Flows, Listed, Longest, NONE, Place, Pool};

/// The parameters of fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FairConfig {
    /// Bytes that a flow may send per turn; at least `packet_bytes`.
    pub quantum_bytes: u32,
    /// Bytes per packet.
    pub packet_bytes: u32,
    /// Shared buffer or per-flow buffers.
    pub buffers: Buffers,
    /// Drop policy of a full shared buffer; a full per-flow buffer drops the arriving packet.
    pub drop: DropPolicy,
    /// Selection among equally long queues.
    pub ties: Ties,
}

impl FairConfig {
    /// Whether the selection among equally long queues is random.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.ties != Ties::Latest
    }
}

/// A flow with a queue.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Flow {
    source: u32,
    /// Bytes that the flow may still send in this turn.
    credit: u32,
    /// Next flow of the round.
    next: u32,
    /// Queued packets.
    chain: Chain,
    place: Place,
}

impl Flow {
    fn new(source: u32) -> Self {
        Self { source, credit: 0, next: NONE, chain: Chain::EMPTY, place: Place::NOWHERE }
    }
}

impl Listed for Flow {
    #[inline(always)]
    fn number(&self) -> u32 {
        self.source
    }

    #[inline(always)]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }

    #[inline(always)]
    fn place(&mut self) -> &mut Place {
        &mut self.place
    }
}

/// Packet to drop when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    None,
    Arriving,
    /// A queued packet of this flow.
    Queued(u32),
}

/// A fair queue.
#[derive(Clone, Debug)]
pub struct Fair {
    config: FairConfig,
    limit: u64,
    pool: Pool<Packet>,
    flows: Flows<Flow>,
    longest: Longest<Stream>,
    /// Queued packets of all flows.
    waiting: u64,
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

impl Fair {
    /// Creates an empty queue. `limit` is the limit in packets, including the packet in
    /// transmission, of the shared buffer or of each per-flow buffer; `None` is unlimited. Among
    /// equally long queues the latest loses a packet.
    #[must_use]
    pub fn new(config: FairConfig, limit: Option<u64>) -> Self {
        Self::with_longest(config, limit, Longest::latest())
    }

    /// Creates an empty queue that selects among equally long queues at random.
    #[must_use]
    pub fn at_random(config: FairConfig, limit: Option<u64>, draws: Stream) -> Self {
        Self::with_longest(config, limit, Longest::new(config.ties, draws))
    }

    fn with_longest(config: FairConfig, limit: Option<u64>, longest: Longest<Stream>) -> Self {
        Self {
            config,
            limit: limit.unwrap_or(u64::MAX),
            pool: Pool::default(),
            flows: Flows::default(),
            longest,
            waiting: 0,
            first: NONE,
            last: NONE,
            served: NONE,
            leaves: NEVER,
            heavy: 0,
            heavy_bytes: config.packet_bytes,
        }
    }

    /// Makes the flows of the first `flows` sources heavy: their packets are charged `times` their
    /// length, which corresponds to a weight of 1 / `times`.
    pub fn charge_first(&mut self, flows: u32, times: f64) {
        self.heavy = flows;
        self.heavy_bytes = libm::round(f64::from(self.config.packet_bytes) * times) as u32;
    }

    /// Bytes charged per packet of a flow.
    #[inline(always)]
    fn bytes_of(&self, flow: &Flow) -> u32 {
        if flow.source < self.heavy { self.heavy_bytes } else { self.config.packet_bytes }
    }

    fn len(&self, flow: u32) -> u32 {
        self.flows.get(flow).chain.len
    }

    fn in_service(&self) -> u64 {
        u64::from(self.served != NONE)
    }

    fn has_room(&self, flow: u32) -> bool {
        match self.config.buffers {
            Buffers::Shared => self.waiting + self.in_service() < self.limit,
            Buffers::PerFlow if flow == NONE => self.limit > 0,
            Buffers::PerFlow => {
                let len = u64::from(self.len(flow));
                len + u64::from(flow == self.served) < self.limit
            }
        }
    }

    /// Selects the packet to drop to make room for a packet of `flow`.
    fn victim(&mut self, flow: u32) -> Victim {
        if self.config.drop == DropPolicy::Arriving || self.config.buffers == Buffers::PerFlow {
            return Victim::Arriving;
        }
        let len = if flow == NONE { 0 } else { self.len(flow) };
        match self.longest.longest(len + 1) {
            Some(other) => Victim::Queued(other),
            None if self.config.drop == DropPolicy::LongestHead && len > 0 => Victim::Queued(flow),
            None => Victim::Arriving,
        }
    }

    /// Evicts a packet from the queue of a flow.
    #[inline(always)]
    fn evict(&mut self, flow: u32) -> Option<Packet> {
        let tail = self.config.drop == DropPolicy::LongestTail;
        let packet = self.take(flow, tail)?;
        if self.len(flow) == 0 && flow != self.served {
            // The round still contains the flow, until its turn comes.
            self.flows.forget(flow);
        }
        Some(packet)
    }

    /// Takes the last packet of a queue if `tail`, otherwise the first.
    #[inline(always)]
    fn take(&mut self, flow: u32, tail: bool) -> Option<Packet> {
        self.shrinks(flow);
        let chain = &mut self.flows.get_mut(flow).chain;
        let packet = if tail { self.pool.take_last(chain) } else { self.pool.take_first(chain) }?;
        self.waiting -= 1;
        Some(packet)
    }

    /// Removes flows without packets from the start of the round.
    fn remove_empty(&mut self) {
        while self.first != NONE && self.len(self.first) == 0 {
            let flow = self.first;
            self.first = self.flows.get(flow).next;
            self.flows.free(flow);
        }
    }

    #[inline(always)]
    fn wait(&mut self, flow: u32, packet: Packet) {
        let flow = if flow == NONE { self.flows.add(Flow::new(packet.source())) } else { flow };
        let len = self.len(flow);
        self.pool.push(&mut self.flows.get_mut(flow).chain, packet);
        self.waiting += 1;
        if self.config.drop != DropPolicy::Arriving {
            self.longest.grows(self.flows.all_mut(), flow, len + 1);
        }
        if len == 0 && flow != self.served {
            self.join_round(flow);
        }
    }

    /// Updates the longest queue before a packet leaves the queue of a flow.
    #[inline(never)]
    fn shrinks(&mut self, flow: u32) {
        if self.config.drop != DropPolicy::Arriving {
            let to = self.len(flow) - 1;
            self.longest.shrinks(self.flows.all_mut(), flow, to);
        }
    }

    #[inline(always)]
    fn join_round(&mut self, flow: u32) {
        self.flows.append(&mut self.first, &mut self.last, flow);
    }

    /// Starts the next turn and returns its flow; `None` if no packet is queued.
    #[inline(always)]
    fn next_in_round(&mut self) -> Option<u32> {
        let mut skipped = 0;
        loop {
            self.remove_empty();
            let flow = self.first;
            if flow == NONE {
                return None;
            }
            let FairConfig { quantum_bytes, .. } = self.config;
            let state = self.flows.get_mut(flow);
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

    /// Continues the turn of the flow in service or ends it. Returns the flow to serve next.
    #[inline(always)]
    fn next_flow(&mut self) -> Option<u32> {
        let flow = self.served;
        let state = self.flows.get(flow);
        if state.chain.len == 0 {
            self.flows.forget(flow);
            self.flows.free(flow);
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
        let bytes = self.bytes_of(self.flows.get(flow));
        let state = self.flows.get_mut(flow);
        state.credit = state.credit.saturating_sub(bytes);
    }
}

impl QueueDiscipline for Fair {
    const HOLDS_PACKETS: bool = true;

    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        let backlog = self.held();
        probe.queue_seen(backlog);
        let flow = self.flows.find(packet.source());
        let victim = if self.has_room(flow) { Victim::None } else { self.victim(flow) };
        if victim == Victim::Arriving {
            return Verdict::Dropped;
        }
        probe.queue_held(backlog, now);
        if self.served == NONE {
            let flow = self.flows.add(Flow::new(packet.source()));
            self.flows.get_mut(flow).credit = self.config.quantum_bytes;
            self.begin_service(flow);
            self.leaves = link.transmit_next(now);
            return Verdict::Departs { leaves: self.leaves, backlog };
        }
        self.wait(flow, *packet);
        let evicted = match victim {
            Victim::Queued(flow) => self.evict(flow),
            Victim::None | Victim::Arriving => None,
        };
        Verdict::Held { backlog, evicted }
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn held(&self) -> usize {
        (self.waiting + self.in_service()) as usize
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        if self.served == NONE { 0 } else { self.leaves - now }
    }

    fn waiting(&self) -> u64 {
        self.waiting
    }

    fn next_departure(&self) -> Nanos {
        self.leaves
    }

    fn prefetch_ahead(&self, turns: usize, mut visit: impl FnMut(u32)) {
        let (mut flow, mut fetched) = (self.first, 0);
        for _ in 0..turns {
            if flow == NONE {
                break;
            }
            let state = self.flows.get(flow);
            visit(state.source);
            flow = state.next;
            fetched ^= self.pool.fetch(&state.chain);
        }
        black_box(fetched);
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
        let packet = self.take(flow, false)?;
        self.begin_service(flow);
        self.leaves = link.follow();
        Some((self.leaves, packet))
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod tests;
