//! Flow queueing with CoDel: Høiland-Jørgensen, McKenney, Täht, Gettys and Dumazet, RFC 8290
//! (2018).
//!
//! Flows are hashed to queues, and CoDel controls each queue separately. The queues are served by
//! deficit round robin. A queue that was empty is served first, for one quantum:
//!
//! ```text
//!              packet arrives                    deficit used up, or empty
//!   (empty) ------------------> new queues ---------------------------------> old queues -.
//!      ^                                                                        |    ^    |
//!      '------------------------ empty at its turn ----------------------------'    '----'
//!                                                                          deficit used up: to the end
//! ```
//!
//! If a limit is exceeded, the queue with the most bytes loses half of its bytes at the head, up to
//! 64 packets.

use super::codel::{CodelQueueAccess, CodelState};
use super::packet_list::{NO_INDEX, PacketList, PacketPool};
use super::{
    Backlog, BufferLimits, CodelConfig, CodelRules, DropReason, EnqueueOutcome, QueueDiscipline,
    QueueProbe, buffer_occupancy::BufferOccupancy,
};
use crate::packet::Packet;
use crate::random::mix_bits;
use crate::time::Nanos;
use serde::Deserialize;
use std::num::NonZeroU32;

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodelConfig {
    /// Parameters of CoDel per queue. Its `rules` also select the details of the scheduler.
    pub codel: CodelConfig,
    /// Number of queues.
    pub queues: NonZeroU32,
    /// Quantum per turn in bytes.
    pub quantum_bytes: NonZeroU32,
    /// Seed of the hash, so that different flows collide in different runs.
    #[serde(skip)]
    pub perturbation: u64,
}

/// Maximum number of packets that the longest queue loses per overflow, as in Linux.
const DROP_BATCH: u64 = 64;

impl Default for FqCodelConfig {
    /// RFC 8290, section 5.2: 1024 queues, a quantum of 1514 bytes, and ECN.
    fn default() -> Self {
        Self {
            codel: CodelConfig { ecn: true, ..CodelConfig::default() },
            queues: NonZeroU32::MIN.saturating_add(1023),
            quantum_bytes: NonZeroU32::MIN.saturating_add(1513),
            perturbation: 0,
        }
    }
}

/// The queue of one or more flows with equal hashes.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct FlowQueue {
    chain: PacketList,
    /// Bytes that the queue may still send in this turn.
    deficit: i64,
    control: CodelState,
    /// Hash of its flows.
    hash: u32,
    /// Next queue in the list.
    next: u32,
    listed: bool,
}

/// List of queues in order of service.
#[derive(Clone, Copy, Debug)]
struct QueueList {
    first: u32,
    last: u32,
}

impl QueueList {
    const EMPTY: Self = Self { first: NO_INDEX, last: NO_INDEX };

    #[inline]
    fn push(&mut self, queues: &mut [FlowQueue], index: u32) {
        queues[index as usize].next = NO_INDEX;
        if self.first == NO_INDEX {
            self.first = index;
        } else {
            queues[self.last as usize].next = index;
        }
        self.last = index;
    }

    /// Removes the first queue, which must exist.
    #[inline]
    fn take_first(&mut self, queues: &[FlowQueue]) {
        self.first = queues[self.first as usize].next;
    }
}

/// The FQ-CoDel discipline.
#[derive(Clone, Debug)]
pub struct FqCodel<T = u32> {
    config: FqCodelConfig,
    /// Index of the queue of each hash; empty before the first packet. Queues are created on
    /// demand, so that a network of many links with few flows each fits into the cache.
    index_by_hash: Vec<u32>,
    queues: Vec<FlowQueue>,
    /// Backlog per queue in bytes, in a separate array for the search of the longest queue.
    backlogs: Vec<u64>,
    new: QueueList,
    old: QueueList,
    pool: PacketPool<Packet<T>>,
    occupancy: BufferOccupancy,
}

/// Access of CoDel to one queue.
struct FlowQueueAccess<'a, T> {
    chain: &'a mut PacketList,
    queue_bytes: &'a mut u64,
    pool: &'a mut PacketPool<Packet<T>>,
    waiting: &'a mut Backlog,
    rules: CodelRules,
}

impl<T: Copy> CodelQueueAccess<T> for FlowQueueAccess<'_, T> {
    #[inline]
    fn take_first(&mut self) -> Option<Packet<T>> {
        let packet = self.pool.take_first(self.chain);
        if let Some(packet) = &packet {
            *self.queue_bytes -= u64::from(packet.bytes);
            self.waiting.remove_packet(packet.bytes);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.rules {
            CodelRules::Linux => self.waiting.bytes,
            CodelRules::Rfc8289 => *self.queue_bytes,
        }
    }
}

impl<T: Copy> FqCodel<T> {
    /// Creates empty queues. The limit of RFC 8290 and Linux is 10240 packets, excluding the packet
    /// in transmission.
    #[must_use]
    pub fn new(limits: BufferLimits, config: FqCodelConfig) -> Self {
        Self {
            config,
            index_by_hash: Vec::new(),
            queues: Vec::new(),
            backlogs: Vec::new(),
            new: QueueList::EMPTY,
            old: QueueList::EMPTY,
            pool: PacketPool::default(),
            occupancy: BufferOccupancy::new(limits),
        }
    }

    /// Hash of a flow: the number of its queue.
    #[inline]
    #[must_use]
    pub fn hash_of(&self, flow: u32) -> u32 {
        let hash = mix_bits(u64::from(flow) ^ self.config.perturbation);
        (((hash >> 32) * u64::from(self.config.queues.get())) >> 32) as u32
    }

    /// Index of the queue of a flow.
    #[inline]
    fn queue_index_of(&mut self, flow: u32) -> u32 {
        let hash = self.hash_of(flow);
        match self.index_by_hash.get(hash as usize) {
            Some(index) if *index != NO_INDEX => *index,
            _ => self.add_queue(hash),
        }
    }

    #[cold]
    fn add_queue(&mut self, hash: u32) -> u32 {
        self.index_by_hash.resize(self.config.queues.get() as usize, NO_INDEX);
        let index = self.queues.len() as u32;
        self.index_by_hash[hash as usize] = index;
        self.backlogs.push(0);
        self.queues.push(FlowQueue {
            chain: PacketList::EMPTY,
            deficit: 0,
            control: CodelState::INITIAL,
            hash,
            next: NO_INDEX,
            listed: false,
        });
        index
    }

    /// RFC 8290, section 4.1: drops half of the bytes of the longest queue, but at most a batch.
    #[cold]
    fn drop_from_longest(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        let (mut longest, mut max_bytes) = (0, 0);
        for (index, bytes) in self.backlogs.iter().enumerate() {
            // Among queues of equal length, the one with the lowest hash, as in Linux.
            let precedes = || self.queues[index].hash < self.queues[longest].hash;
            if *bytes > max_bytes || (*bytes == max_bytes && precedes()) {
                (longest, max_bytes) = (index, *bytes);
            }
        }
        let queue = &mut self.queues[longest];
        let mut dropped = Backlog::default();
        while let Some(packet) = self.pool.take_first(&mut queue.chain) {
            dropped.add_packet(packet.bytes);
            self.occupancy.waiting.remove_packet(packet.bytes);
            probe.on_drop(now, &packet, DropReason::Full);
            if dropped.packets >= DROP_BATCH || dropped.bytes >= max_bytes / 2 {
                break;
            }
        }
        self.backlogs[longest] -= dropped.bytes;
        // As in Linux, the overflow drops also increase CoDel's drop rate.
        queue.control.count = queue.control.count.wrapping_add(dropped.packets as u32);
    }

    fn is_over_limit(&self) -> bool {
        !self.occupancy.max.is_within_limits(self.occupancy.held_backlog())
    }
}

impl<T: Copy> QueueDiscipline<T> for FqCodel<T> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let packet = packet.with_arrival_time(now);
        let index = self.queue_index_of(packet.flow);
        let queue = &mut self.queues[index as usize];
        self.pool.push_packet(&mut queue.chain, packet);
        self.backlogs[index as usize] += u64::from(packet.bytes);
        self.occupancy.waiting.add_packet(packet.bytes);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.config.quantum_bytes.get());
            self.new.push(&mut self.queues, index);
        }
        if !self.is_over_limit() {
            return EnqueueOutcome::Accepted;
        }
        while self.is_over_limit() && self.occupancy.waiting.packets > 0 {
            self.drop_from_longest(now, probe);
        }
        // Packets are dropped at the head, so the arriving packet is dropped only if its queue is
        // empty.
        if self.queues[index as usize].chain.len == 0 {
            EnqueueOutcome::Dropped(DropReason::Full)
        } else {
            EnqueueOutcome::Accepted
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        loop {
            let is_new = self.new.first != NO_INDEX;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = list.first;
            let Some(queue) = self.queues.get_mut(index as usize) else {
                self.occupancy.set_transmitter_idle();
                return None;
            };
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.config.quantum_bytes.get());
                list.take_first(&self.queues);
                self.old.push(&mut self.queues, index);
                continue;
            }
            let mut turn = FlowQueueAccess {
                chain: &mut queue.chain,
                queue_bytes: &mut self.backlogs[index as usize],
                pool: &mut self.pool,
                waiting: &mut self.occupancy.waiting,
                rules: self.config.codel.rules,
            };
            let taken = queue.control.dequeue_with_drops(now, &self.config.codel, &mut turn, probe);
            if let Some(packet) = taken {
                queue.deficit -= i64::from(packet.bytes);
                self.occupancy.set_in_transmission(packet.bytes);
                return Some(packet);
            }
            list.take_first(&self.queues);
            // An empty new queue becomes an old queue first. Otherwise, a queue that is often empty
            // would always have priority (RFC 8290, section 4.2). Linux does so only if old queues
            // exist.
            let is_rfc = self.config.codel.rules == CodelRules::Rfc8289;
            if is_new && (is_rfc || self.old.first != NO_INDEX) {
                self.old.push(&mut self.queues, index);
            } else {
                self.queues[index as usize].listed = false;
            }
        }
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.occupancy
    }

    fn reset_when_empty(&mut self, _now: Nanos) {
        self.queues.iter_mut().for_each(|queue| queue.control = CodelState::INITIAL);
    }
}

#[cfg(test)]
#[path = "fq_codel_tests.rs"]
mod tests;
