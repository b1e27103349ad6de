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
//! Flows, their packets and the longest of their queues are kept as in the crate `link`, whose `Drr`
//! is the same discipline for packets of any length. This one is for packets of one length, of which
//! it needs to know neither that nor when they came: a flow takes 32 bytes in place of 56 and a packet
//! 24 in place of 48, and with a hundred thousand flows the time goes into fetching these. Nor would
//! every result stay: where only heavy flows have packets, a turn suffices here after one round.

use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::Stream;
use serde::Deserialize;
use std::hint::black_box;
pub use tcpcast_link::queue::{Buffers, DropPolicy, Ties};
use tcpcast_link::queue::{Chain, Flows, ListLinks, ListedFlow, Longest, NONE, Pool};

/// The parameters of fair queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FairConfig {
    /// What a flow may send in a turn, in bytes; at least `packet_bytes`.
    pub quantum_bytes: u32,
    /// Bytes of a packet.
    pub packet_bytes: u32,
    /// Whose buffer a packet takes room in.
    pub buffers: Buffers,
    /// Who goes when there is none; where buffers are per flow, the packet that arrives.
    pub drop: DropPolicy,
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

/// A flow with a queue.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Flow {
    source: u32,
    /// Bytes that it may still send in this turn.
    credit: u32,
    /// The flow after it in the round.
    next: u32,
    /// What waits.
    chain: Chain,
    links: ListLinks,
}

impl Flow {
    /// An empty queue.
    fn of(source: u32) -> Self {
        Self { source, credit: 0, next: NONE, chain: Chain::EMPTY, links: ListLinks::UNLINKED }
    }
}

impl ListedFlow for Flow {
    #[inline(always)]
    fn number(&self) -> u32 {
        self.source
    }

    #[inline(always)]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }

    #[inline(always)]
    fn links(&mut self) -> &mut ListLinks {
        &mut self.links
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
pub struct Fair {
    config: FairConfig,
    most: u64,
    pool: Pool<Packet>,
    flows: Flows<Flow>,
    longest: Longest<Stream>,
    /// Packets that wait, of all flows.
    waiting: u64,
    /// Ends of the round; the flow in service is not in it.
    first: u32,
    last: u32,
    /// The flow whose packet is in transmission.
    served: u32,
    leaves: Nanos,
    /// Flows below this number are heavy.
    heavy: u32,
    /// Bytes that a packet of theirs counts for.
    heavy_bytes: u32,
}

impl Fair {
    /// An empty queue; `most` packets fit, the one in transmission included, in the rooms that the
    /// configuration says; `None` is unlimited. Of several longest queues it takes the latest.
    #[must_use]
    pub fn new(config: FairConfig, most: Option<u64>) -> Self {
        Self::with(config, most, Longest::latest())
    }

    /// Likewise, but of several longest queues it draws one.
    #[must_use]
    pub fn at_random(config: FairConfig, most: Option<u64>, draws: Stream) -> Self {
        Self::with(config, most, Longest::new(config.ties, draws))
    }

    fn with(config: FairConfig, most: Option<u64>, longest: Longest<Stream>) -> Self {
        Self {
            config,
            most: most.unwrap_or(u64::MAX),
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

    /// The first so many flows are heavy: a packet of theirs is charged `times` as much, so that it
    /// takes as many turns. That is a weight of one over `times`.
    pub fn charge_first(&mut self, flows: u32, times: f64) {
        self.heavy = flows;
        self.heavy_bytes = libm::round(f64::from(self.config.packet_bytes) * times) as u32;
    }

    /// Bytes that a packet of a flow counts for.
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
            Buffers::Shared => self.waiting + self.in_service() < self.most,
            Buffers::PerFlow if flow == NONE => self.most > 0,
            Buffers::PerFlow => {
                let len = u64::from(self.len(flow));
                len + u64::from(flow == self.served) < self.most
            }
        }
    }

    /// Who goes to make room for a packet of `flow`.
    fn victim(&mut self, flow: u32) -> Victim {
        if self.config.drop == DropPolicy::Arriving || self.config.buffers == Buffers::PerFlow {
            return Victim::Arriving;
        }
        let len = if flow == NONE { 0 } else { self.len(flow) };
        match self.longest.longest(len + 1) {
            Some(other) => Victim::Of(other),
            None if self.config.drop == DropPolicy::LongestHead && len > 0 => Victim::Of(flow),
            None => Victim::Arriving,
        }
    }

    /// Takes a packet from a queue.
    #[inline(always)]
    fn push_out(&mut self, flow: u32) -> Option<Packet> {
        let tail = self.config.drop == DropPolicy::LongestTail;
        let packet = self.take(flow, tail)?;
        if self.len(flow) == 0 && flow != self.served {
            // Its place in the round is found when its turn comes.
            self.flows.forget(flow);
        }
        Some(packet)
    }

    /// Takes the first packet of a queue, or the last.
    #[inline(always)]
    fn take(&mut self, flow: u32, tail: bool) -> Option<Packet> {
        self.shrinks(flow);
        let chain = &mut self.flows.get_mut(flow).chain;
        let packet = if tail { self.pool.take_last(chain) } else { self.pool.take_first(chain) }?;
        self.waiting -= 1;
        Some(packet)
    }

    /// Takes flows without a packet from the beginning of the round.
    fn pass_emptied(&mut self) {
        while self.first != NONE && self.len(self.first) == 0 {
            let flow = self.first;
            self.first = self.flows.get(flow).next;
            self.flows.free(flow);
        }
    }

    #[inline(always)]
    fn wait(&mut self, flow: u32, packet: Packet) {
        let flow = if flow == NONE { self.flows.add(Flow::of(packet.source())) } else { flow };
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

    /// A packet is about to leave the queue of a flow.
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

    /// The flow whose turn begins; `None` if no packet waits.
    #[inline(always)]
    fn next_in_round(&mut self) -> Option<u32> {
        let mut passed = 0;
        loop {
            self.pass_emptied();
            let flow = self.first;
            if flow == NONE {
                return None;
            }
            let FairConfig { quantum_bytes, .. } = self.config;
            let state = self.flows.get_mut(flow);
            state.credit = state.credit.saturating_add(quantum_bytes);
            self.first = state.next;
            // Where so many have been passed, all are heavy.
            let is_next = state.credit >= self.heavy_bytes || passed == self.heavy;
            if state.source >= self.heavy || is_next {
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
        let flow = self.flows.find(packet.source());
        let victim = if self.has_room(flow) { Victim::Nobody } else { self.victim(flow) };
        if victim == Victim::Arriving {
            return Verdict::Dropped;
        }
        probe.queue_held(found, now);
        if self.served == NONE {
            let flow = self.flows.add(Flow::of(packet.source()));
            self.flows.get_mut(flow).credit = self.config.quantum_bytes;
            self.begin_service(flow);
            self.leaves = link.transmit_next(now);
            return Verdict::Departs { leaves: self.leaves, found };
        }
        self.wait(flow, *packet);
        let pushed_out = match victim {
            Victim::Of(flow) => self.push_out(flow),
            Victim::Nobody | Victim::Arriving => None,
        };
        Verdict::Held { found, pushed_out }
    }

    fn settle(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn held(&self) -> usize {
        (self.waiting + self.in_service()) as usize
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        if self.served == NONE { 0 } else { self.leaves - now }
    }

    fn waiting(&self) -> u64 {
        self.waiting
    }

    fn link_leaves(&self) -> Nanos {
        self.leaves
    }

    fn fetch_ahead(&self, turns: usize, mut tell: impl FnMut(u32)) {
        let (mut flow, mut fetched) = (self.first, 0);
        for _ in 0..turns {
            if flow == NONE {
                break;
            }
            let state = self.flows.get(flow);
            tell(state.source);
            flow = state.next;
            fetched ^= self.pool.prefetch(&state.chain);
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
        self.leaves = link.transmit_back_to_back();
        Some((self.leaves, packet))
    }
}

#[cfg(test)]
#[path = "fair_tests.rs"]
mod tests;
