//! Flow queueing with CoDel: Høiland-Jørgensen, McKenney, Täht, Gettys and Dumazet, RFC 8290 (2018).
//!
//! Flows are hashed to queues, each controlled by CoDel. Queues are served by deficit round robin;
//! one that was empty goes first, for a quantum:
//!
//! ```text
//!              a packet comes                   deficit used up, or empty
//!   (empty) ------------------> new queues ---------------------------------> old queues -.
//!      ^                                                                        |    ^    |
//!      '------------------------ empty when its turn comes --------------------'    '----'
//!                                                                          deficit used up: to the end
//! ```
//!
//! Where a limit is exceeded, the queue with most bytes loses half of them at its head, up to `batch`
//! packets at once.

use super::chain::{Chain, NONE, Pool};
use super::codel::{Control, Head};
use super::{
    Backlog, CodelConfig, CodelRules, Limits, QueueDiscipline, QueueProbe, Reason, Verdict,
    occupancy::Occupancy,
};
use crate::packet::Packet;
use crate::random::scatter;
use crate::time::Nanos;
use serde::Deserialize;
use std::num::NonZeroU32;

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodelConfig {
    /// Those of each queue; their rules say whose details the scheduler follows, too.
    pub codel: CodelConfig,
    /// How many queues flows are hashed to.
    pub queues: NonZeroU32,
    /// Bytes that a queue may send in a turn.
    pub quantum_bytes: NonZeroU32,
    /// Most packets that the longest queue loses at once.
    #[serde(skip, default = "usual_batch")]
    pub batch: NonZeroU32,
    /// What flows are hashed with, so that different flows share a queue in different runs.
    #[serde(skip)]
    pub perturbation: u64,
}

/// Linux's 64 packets.
fn usual_batch() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(63)
}

impl Default for FqCodelConfig {
    /// RFC 8290, section 5.2: 1024 queues, a quantum of 1514 bytes; 64 packets at once, and marks.
    fn default() -> Self {
        Self {
            codel: CodelConfig { ecn: true, ..CodelConfig::default() },
            queues: NonZeroU32::MIN.saturating_add(1023),
            quantum_bytes: NonZeroU32::MIN.saturating_add(1513),
            batch: usual_batch(),
            perturbation: 0,
        }
    }
}

/// A queue of a flow, or of several that share its number.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Queue {
    chain: Chain,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    control: Control,
    /// The queue behind it in its list.
    next: u32,
    listed: bool,
}

/// Queues in the order in which their turns come.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    #[inline]
    fn push(&mut self, queues: &mut [Queue], at: u32) {
        queues[at as usize].next = NONE;
        if self.first == NONE {
            self.first = at;
        } else {
            queues[self.last as usize].next = at;
        }
        self.last = at;
    }

    /// Takes the first, which there is.
    #[inline]
    fn take_first(&mut self, queues: &[Queue]) {
        self.first = queues[self.first as usize].next;
    }
}

/// The FQ-CoDel discipline.
#[derive(Clone, Debug)]
pub struct FqCodel<T = u32> {
    config: FqCodelConfig,
    queues: Vec<Queue>,
    /// Bytes that wait in each, apart, because all are looked at to find the longest.
    backlogs: Vec<u64>,
    new: List,
    old: List,
    pool: Pool<Packet<T>>,
    occupancy: Occupancy,
}

/// One queue, for CoDel to take packets from.
struct Turn<'a, T> {
    chain: &'a mut Chain,
    own: &'a mut u64,
    pool: &'a mut Pool<Packet<T>>,
    waiting: &'a mut Backlog,
    rules: CodelRules,
}

impl<T: Copy> Head<T> for Turn<'_, T> {
    #[inline]
    fn take(&mut self) -> Option<Packet<T>> {
        let packet = self.pool.take_first(self.chain);
        if let Some(packet) = &packet {
            *self.own -= u64::from(packet.bytes);
            self.waiting.remove(packet.bytes);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.rules {
            CodelRules::Linux => self.waiting.bytes,
            CodelRules::Rfc8289 => *self.own,
        }
    }
}

impl<T: Copy> FqCodel<T> {
    /// Empty queues; RFC 8290 and Linux have 10240 packets as the limit, without the one in
    /// transmission.
    #[must_use]
    pub fn new(limits: Limits, config: FqCodelConfig) -> Self {
        let count = config.queues.get() as usize;
        let empty = Queue {
            chain: Chain::EMPTY,
            deficit: 0,
            control: Control::START,
            next: NONE,
            listed: false,
        };
        Self {
            config,
            queues: vec![empty; count],
            backlogs: vec![0; count],
            new: List::EMPTY,
            old: List::EMPTY,
            pool: Pool::default(),
            occupancy: Occupancy::new(limits),
        }
    }

    /// Which queue a flow is in.
    #[inline]
    #[must_use]
    pub fn queue_of(&self, flow: u32) -> u32 {
        let hash = scatter(u64::from(flow) ^ self.config.perturbation);
        (((hash >> 32) * u64::from(self.config.queues.get())) >> 32) as u32
    }

    /// RFC 8290, section 4.1: the queue with most bytes loses half of them, or a batch of packets.
    #[cold]
    fn drop_from_longest(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        let (mut longest, mut most) = (0, 0);
        for (at, bytes) in self.backlogs.iter().enumerate() {
            if *bytes > most {
                (longest, most) = (at, *bytes);
            }
        }
        let queue = &mut self.queues[longest];
        let mut dropped = Backlog::default();
        while let Some(packet) = self.pool.take_first(&mut queue.chain) {
            dropped.add(packet.bytes);
            self.occupancy.waiting.remove(packet.bytes);
            probe.dropped(now, &packet, Reason::Full);
            if dropped.packets >= u64::from(self.config.batch.get()) || dropped.bytes >= most / 2 {
                break;
            }
        }
        self.backlogs[longest] -= dropped.bytes;
        // Its CoDel is to drop more often, too.
        queue.control.count = queue.control.count.wrapping_add(dropped.packets as u32);
    }

    /// The queues of a list, in their order.
    fn in_list(&self, list: List) -> impl Iterator<Item = &Queue> {
        let at = |queue: u32| self.queues.get(queue as usize);
        std::iter::successors(at(list.first), move |queue| at(queue.next))
    }

    fn is_over(&self) -> bool {
        !self.occupancy.most.allows(self.occupancy.counted())
    }
}

impl<T: Copy> QueueDiscipline<T> for FqCodel<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> Verdict {
        let packet = packet.enter(now);
        let at = self.queue_of(packet.flow);
        let queue = &mut self.queues[at as usize];
        self.pool.push(&mut queue.chain, packet);
        self.backlogs[at as usize] += u64::from(packet.bytes);
        self.occupancy.waiting.add(packet.bytes);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.config.quantum_bytes.get());
            self.new.push(&mut self.queues, at);
        }
        if !self.is_over() {
            return Verdict::Accepted;
        }
        while self.is_over() && self.occupancy.waiting.packets > 0 {
            self.drop_from_longest(now, probe);
        }
        // Packets are dropped in their order, and it came last.
        if self.queues[at as usize].chain.len == 0 {
            Verdict::Dropped(Reason::Full)
        } else {
            Verdict::Accepted
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        loop {
            let is_new = self.new.first != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = list.first;
            let Some(queue) = self.queues.get_mut(at as usize) else {
                self.occupancy.idle();
                return None;
            };
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.config.quantum_bytes.get());
                list.take_first(&self.queues);
                self.old.push(&mut self.queues, at);
                continue;
            }
            let mut turn = Turn {
                chain: &mut queue.chain,
                own: &mut self.backlogs[at as usize],
                pool: &mut self.pool,
                waiting: &mut self.occupancy.waiting,
                rules: self.config.codel.rules,
            };
            let taken = queue.control.dequeue(now, &self.config.codel, &mut turn, probe);
            if let Some(packet) = taken {
                queue.deficit -= i64::from(packet.bytes);
                self.occupancy.transmit(packet.bytes);
                return Some(packet);
            }
            list.take_first(&self.queues);
            // A new queue passes through the old ones, or it would go first too often by being empty
            // now and then (RFC 8290, section 4.2); in Linux only if there are any.
            let is_rfc = self.config.codel.rules == CodelRules::Rfc8289;
            if is_new && (is_rfc || self.old.first != NONE) {
                self.old.push(&mut self.queues, at);
            } else {
                self.queues[at as usize].listed = false;
            }
        }
    }

    /// The first packet of a queue, which may be dropped, and the second.
    fn fetch_ahead(&self, turns: usize, tell: impl FnMut(u32)) {
        let coming = self.in_list(self.new).chain(self.in_list(self.old)).take(turns);
        let packets = coming.flat_map(|queue| self.pool.packets(&queue.chain).take(2));
        packets.map(|packet| packet.flow).for_each(tell);
    }

    fn waiting(&self) -> Backlog {
        self.occupancy.waiting
    }

    fn held(&self) -> Backlog {
        self.occupancy.held()
    }

    fn restart(&mut self, _now: Nanos) {
        self.queues.iter_mut().for_each(|queue| queue.control = Control::START);
    }
}

#[cfg(test)]
#[path = "fq_codel_tests.rs"]
mod tests;
