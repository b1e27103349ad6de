//! CAKE, "common applications kept enhanced": Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: a
//! comprehensive queue management solution for home gateways" (2018), as in Linux's `sch_cake.c`.
//!
//! ```text
//!          DSCP            hash, 8 ways           COBALT
//! packet ------> tin --------------------> queue --------.     turn by deficit round robin
//!                 |  (ack filter on entry)                +--> of queues and hosts within the tin,
//!                 '--- more tins ...                 ----'     then of tins, then the shaper
//! ```
//!
//! - The **shaper** has no burst: after a packet, the next one is released when the packet's
//!   length, with the overhead of the link below, has passed at the shaper's rate.
//! - A **tin** is a traffic class with a threshold rate. Below it, the tin has priority over tins of
//!   lower numbers; above it, the tins share the rest by the schedule of their rates.
//! - Queues with few packets (**sparse**) are served before queues with a backlog (**bulk**). A
//!   queue whose host has several bulk queues receives a quantum that is smaller by their number, so
//!   that hosts share the link equally (**triple isolation**: source and destination hosts).
//! - **COBALT** controls each queue; its state decays while the queue is empty.
//!
//! Hosts are told apart exactly, not by a hash. The owner of the link splits bursts of segmentation
//! offload before the queue (`split-gso`), because only the owner knows their packets.

use super::cobalt::{Cobalt, CobaltConfig};
use super::packet_list::{NO_INDEX, PacketList, PacketPool};
use super::{
    BufferLimits, DropReason, EnqueueOutcome, QueueDiscipline, QueueProbe,
    buffer_occupancy::BufferOccupancy,
};
use crate::packet::Packet;
use crate::random::{RandomSource, RandomStream, mix_bits};
use crate::time::{MILLISECOND, NEVER, Nanos, SECOND};
use serde::Deserialize;
use std::collections::HashMap;
use std::num::NonZeroU64;

/// Queues per tin, and queues of a set in which a flow finds a free one.
const QUEUES: u32 = 1024;
const WAYS: u32 = 8;
/// Length of a full-sized Ethernet frame in bytes.
const FRAME_BYTES: u64 = 1514;
/// Largest memory of the queue in full-sized frames, and smallest automatic limit in bytes.
const MAX_FRAMES: u64 = 10_240;
const MIN_MEMORY_BYTES: u64 = 4 << 20;

/// Traffic classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tins {
    /// One class.
    Besteffort,
    /// Bulk, best effort and voice have priority up to 1/16, all, and 1/4 of the rate.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video and voice have priority up to 1/16, all, 1/2, and 1/4 of the rate.
    Diffserv4,
}

/// Who gets equal shares of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing: one queue.
    Flowblind,
    /// Source hosts, with one queue each.
    Srchost,
    /// Destination hosts, with one queue each.
    Dsthost,
    /// Pairs of hosts, with one queue each.
    Hosts,
    /// Flows.
    Flows,
    /// Source hosts, and the flows of each.
    DualSrchost,
    /// Destination hosts, and the flows of each.
    DualDsthost,
    /// Source and destination hosts, and the flows of each.
    #[default]
    TripleIsolate,
}

impl Isolation {
    /// Whether source hosts, and whether destination hosts share the link equally.
    fn shares_among(self) -> [bool; 2] {
        use Isolation::{DualDsthost, DualSrchost, TripleIsolate};
        let triple = self == TripleIsolate;
        [triple || self == DualSrchost, triple || self == DualDsthost]
    }
}

/// Whether acknowledgements that wait are dropped when a later one supersedes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckFilter {
    /// All acknowledgements are transmitted.
    #[default]
    Off,
    /// One superseded acknowledgement remains beside the latest one.
    On,
    /// Only the latest one remains, unless an echo of ECN would be lost.
    Aggressive,
}

/// How the link below divides packets, for the shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellFraming {
    /// Packets are not divided.
    #[default]
    None,
    /// ATM: cells of 53 bytes, with 48 bytes of payload.
    Atm,
    /// PTM: one byte in 65 is overhead.
    Ptm,
}

/// The parameters of CAKE, with the names of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CakeConfig {
    /// Rate of the shaper in bit/s; `None` for no shaper.
    pub rate_bps: Option<NonZeroU64>,
    /// Bytes per packet that the shaper counts in addition.
    pub overhead_bytes: i32,
    /// Smallest length that the shaper counts.
    pub mpu_bytes: u32,
    /// Cells into which the link below divides packets.
    pub framing: CellFraming,
    /// Traffic classes.
    pub tins: Tins,
    /// Who gets equal shares of the link.
    pub isolation: Isolation,
    /// Filter of acknowledgements.
    pub ack_filter: AckFilter,
    /// Whether the link is shaped behind its bottleneck, so that dropped packets count as well.
    pub ingress: bool,
    /// Whether bursts of segmentation offload are split before they are enqueued.
    pub split_gso: bool,
    /// Typical RTT of the flows: COBALT's interval; a twentieth is its target.
    #[serde(rename = "rtt_ns")]
    pub rtt: Nanos,
}

impl Default for CakeConfig {
    /// The defaults of `tc`, which counts the Ethernet header.
    fn default() -> Self {
        Self {
            rate_bps: None,
            overhead_bytes: 14,
            mpu_bytes: 0,
            framing: CellFraming::None,
            tins: Tins::default(),
            isolation: Isolation::default(),
            ack_filter: AckFilter::default(),
            ingress: false,
            split_gso: true,
            rtt: 100 * MILLISECOND,
        }
    }
}

impl CakeConfig {
    /// Length that the shaper counts for a packet of `bytes`.
    #[must_use]
    pub fn shaped_bytes(&self, bytes: u32) -> u32 {
        let whole = bytes.saturating_add_signed(self.overhead_bytes).max(self.mpu_bytes);
        match self.framing {
            CellFraming::None => whole,
            CellFraming::Atm => whole.div_ceil(48) * 53,
            CellFraming::Ptm => whole + whole.div_ceil(64),
        }
    }

    /// Limit of the memory in bytes, unless the buffer has a limit.
    fn default_memory_bytes(&self) -> u64 {
        let automatic = self.rate_bps.map_or(u64::MAX, |rate| {
            let four_intervals = u128::from(rate.get() / 8) * u128::from(4 * self.rtt);
            MIN_MEMORY_BYTES.max((four_intervals / u128::from(SECOND)) as u64)
        });
        automatic.min(MAX_FRAMES * FRAME_BYTES)
    }
}

/// Memory that Linux takes for a received packet: the buffer, in sizes of powers of two, with its
/// headroom and trailer, and the descriptor.
fn memory_of(bytes: u32) -> u64 {
    u64::from(bytes + 384).next_power_of_two() + 256
}

/// A duration per byte, in Linux's arithmetic with a fixed point.
#[derive(Clone, Copy, Debug)]
struct ByteTime {
    nanos: u64,
    shift: u32,
}

impl ByteTime {
    fn new(bytes_per_second: u64) -> Self {
        let (mut nanos, mut shift) = ((SECOND << 34) / bytes_per_second.max(64), 34);
        while nanos >> 34 > 0 {
            nanos >>= 1;
            shift -= 1;
        }
        Self { nanos, shift }
    }

    fn of(self, bytes: u32) -> Nanos {
        (u64::from(bytes) * self.nanos) >> self.shift
    }
}

/// State of a queue in the rotation of its tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rotation {
    /// In no list.
    Unlisted,
    /// Few packets.
    Sparse,
    /// Counted as sparse, but without packets in the rotation of bulk queues.
    SparseWait,
    /// A backlog.
    Bulk,
    /// Empty, while COBALT's state decays.
    Decaying,
}

/// The lists of a tin, in order of service; at the first turn of a packet, decaying queues come
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListName {
    New,
    Old,
    Decaying,
}

#[derive(Clone, Copy, Debug)]
struct QueueList {
    first: u32,
    last: u32,
}

/// The queue of one flow, or of several flows that share it because all queues of the set are in use.
#[derive(Clone, Copy, Debug)]
struct FlowQueue {
    chain: PacketList,
    bytes: u64,
    deficit: i64,
    control: Cobalt,
    /// Hash of its last flow.
    tag: u32,
    rotation: Rotation,
    /// Source and destination host, as indices of their tables.
    hosts: [u32; 2],
    before: u32,
    after: u32,
}

/// Hosts, and the number of bulk queues of each.
#[derive(Clone, Debug, Default)]
struct HostTable {
    index_by_host: HashMap<u32, u32>,
    bulk_queues: Vec<u32>,
}

impl HostTable {
    fn index_of(&mut self, host: u32) -> u32 {
        let next = self.bulk_queues.len() as u32;
        let index = *self.index_by_host.entry(host).or_insert(next);
        if index == next {
            self.bulk_queues.push(0);
        }
        index
    }
}

/// A traffic class.
#[derive(Clone, Debug)]
struct Tin {
    /// Time per byte at the threshold rate; `None` without a shaper.
    byte_time: Option<ByteTime>,
    /// Bytes per turn of a queue.
    quantum: i64,
    /// Bytes per turn of the tin, without a shaper.
    weight: i64,
    deficit: i64,
    /// Time at which the tin is within its threshold rate again.
    next_within_rate: Nanos,
    control: CobaltConfig,
    /// Index of the queue of each bucket; empty before the first packet.
    index_by_bucket: Vec<u32>,
    queues: Vec<FlowQueue>,
    lists: [QueueList; 3],
    hosts: [HostTable; 2],
    sparse: u32,
    bulk: u32,
    packets: u64,
}

impl Tin {
    fn new(config: &CakeConfig, rate_share: u32, weight: i64) -> Self {
        let rate = config.rate_bps.map(|rate| rate.get() / 8 / u64::from(rate_share));
        let byte_time = rate.map(ByteTime::new);
        let mtu_time = byte_time.map_or(0, |time| time.of(FRAME_BYTES as u32));
        let base_target = (config.rtt / 20).max(1);
        let target = base_target.max(mtu_time * 3 / 2);
        let interval = (config.rtt + target - base_target).max(2 * target);
        Self {
            byte_time,
            quantum: rate.map_or(FRAME_BYTES, |rate| (rate >> 12).clamp(300, FRAME_BYTES)) as i64,
            weight,
            deficit: 0,
            next_within_rate: 0,
            control: CobaltConfig { target, interval, mtu_time },
            index_by_bucket: Vec::new(),
            queues: Vec::new(),
            lists: [QueueList { first: NO_INDEX, last: NO_INDEX }; 3],
            hosts: Default::default(),
            sparse: 0,
            bulk: 0,
            packets: 0,
        }
    }

    fn has_queues_to_serve(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    fn append(&mut self, list: ListName, index: u32) {
        let last = std::mem::replace(&mut self.lists[list as usize].last, index);
        match self.queues.get_mut(last as usize) {
            Some(queue) => queue.after = index,
            None => self.lists[list as usize].first = index,
        }
        let queue = &mut self.queues[index as usize];
        (queue.before, queue.after) = (last, NO_INDEX);
    }

    fn remove(&mut self, list: ListName, index: u32) {
        let FlowQueue { before, after, .. } = self.queues[index as usize];
        match self.queues.get_mut(before as usize) {
            Some(queue) => queue.after = after,
            None => self.lists[list as usize].first = after,
        }
        match self.queues.get_mut(after as usize) {
            Some(queue) => queue.before = before,
            None => self.lists[list as usize].last = before,
        }
    }

    /// Adds a queue to, or removes it from, the numbers of queues with a backlog of its tin and its
    /// hosts.
    fn change_bulk_count(&mut self, index: u32, change: i32) {
        self.bulk = self.bulk.wrapping_add_signed(change);
        for (table, host) in self.hosts.iter_mut().zip(self.queues[index as usize].hosts) {
            if let Some(bulk) = table.bulk_queues.get_mut(host as usize) {
                *bulk = bulk.wrapping_add_signed(change);
            }
        }
    }

    /// Number of queues with a backlog of the source or of the destination host, whichever has
    /// more; at least 1.
    fn host_load(&self, index: u32) -> u32 {
        let [source, destination] = self.queues[index as usize].hosts;
        let load = |side: usize, host: u32| {
            self.hosts[side].bulk_queues.get(host as usize).copied().unwrap_or(0)
        };
        load(0, source).max(load(1, destination)).clamp(1, QUEUES)
    }

    /// Bytes per turn of a queue in units of 2^-16: a host divides the quantum among its queues.
    fn quantum_of(&self, index: u32) -> i64 {
        match self.host_load(index) {
            1 => self.quantum * 65_535,
            load => self.quantum * i64::from(65_535 / load),
        }
    }

    /// Returns the queue for a packet: the queue of its flow, else a free one of its set, else the
    /// first of the set. `hosts` are those of the packet that share the link equally.
    fn queue_of(&mut self, tag: u32, hosts: impl FnOnce() -> [Option<u32>; 2]) -> u32 {
        let bucket = tag % QUEUES;
        // The queue of a flow is usually in its first bucket, and keeps its hosts while it is empty.
        let first = self.index_by_bucket.get(bucket as usize).copied().unwrap_or(NO_INDEX);
        if self.queues.get(first as usize).is_some_and(|queue| queue.tag == tag) {
            return first;
        }
        self.find_queue(bucket, tag, hosts())
    }

    /// Like [`Tin::queue_of`], for a flow without a queue or whose queue is not in its first bucket.
    #[inline(never)]
    fn find_queue(&mut self, bucket: u32, tag: u32, hosts: [Option<u32>; 2]) -> u32 {
        self.index_by_bucket.resize(QUEUES as usize, NO_INDEX);
        let (set, way) = (bucket - bucket % WAYS, bucket % WAYS);
        let buckets = (0..WAYS).map(|step| set + (way + step) % WAYS);
        let existing =
            |bucket: &u32| self.queues.get(self.index_by_bucket[*bucket as usize] as usize);
        let of_flow = |bucket: &u32| existing(bucket).is_some_and(|queue| queue.tag == tag);
        let unused = |bucket: &u32| {
            existing(bucket).is_none_or(|queue| queue.rotation == Rotation::Unlisted)
        };
        if let Some(bucket) = buckets.clone().find(of_flow) {
            return self.index_by_bucket[bucket as usize];
        }
        let chosen = buckets.clone().find(unused).unwrap_or(bucket);
        let mut find =
            |side: usize| hosts[side].map_or(NO_INDEX, |host| self.hosts[side].index_of(host));
        let hosts = [find(0), find(1)];
        let index = self.index_by_bucket[chosen as usize];
        let Some(queue) = self.queues.get_mut(index as usize) else {
            let index = self.queues.len() as u32;
            self.index_by_bucket[chosen as usize] = index;
            self.queues.push(FlowQueue {
                chain: PacketList::EMPTY,
                bytes: 0,
                deficit: 0,
                control: Cobalt::default(),
                tag,
                rotation: Rotation::Unlisted,
                hosts,
                before: NO_INDEX,
                after: NO_INDEX,
            });
            return index;
        };
        if queue.rotation == Rotation::Bulk {
            self.change_bulk_count(index, -1);
            self.queues[index as usize].hosts = hosts;
            self.change_bulk_count(index, 1);
        } else {
            queue.hosts = hosts;
        }
        self.queues[index as usize].tag = tag;
        index
    }

    /// Puts the queue of an arrived packet into the rotation.
    fn list(&mut self, index: u32) {
        match self.queues[index as usize].rotation {
            Rotation::Sparse | Rotation::Bulk => {}
            Rotation::SparseWait => {
                self.queues[index as usize].rotation = Rotation::Bulk;
                self.sparse -= 1;
                self.change_bulk_count(index, 1);
            }
            rotation @ (Rotation::Unlisted | Rotation::Decaying) => {
                if rotation == Rotation::Decaying {
                    self.remove(ListName::Decaying, index);
                }
                self.append(ListName::New, index);
                self.sparse += 1;
                let deficit = self.quantum_of(index) >> 16;
                let queue = &mut self.queues[index as usize];
                (queue.rotation, queue.deficit) = (Rotation::Sparse, deficit);
            }
        }
    }

    /// The queue whose turn it is, and its list. Decaying queues come first at the first turn of a
    /// packet, and last at other turns.
    fn next_queue(&self, is_first_turn: bool) -> Option<(ListName, u32)> {
        let first = |list: ListName| self.lists[list as usize].first;
        let [new, old, decaying] =
            [first(ListName::New), first(ListName::Old), first(ListName::Decaying)];
        if decaying != NO_INDEX && (is_first_turn || new == NO_INDEX && old == NO_INDEX) {
            Some((ListName::Decaying, decaying))
        } else if new != NO_INDEX {
            Some((ListName::New, new))
        } else if old != NO_INDEX {
            Some((ListName::Old, old))
        } else {
            None
        }
    }

    /// Ends the turn of a queue without deficit.
    fn end_turn(&mut self, list: ListName, index: u32, dither: u32) {
        let queue = &mut self.queues[index as usize];
        if queue.rotation == Rotation::Sparse {
            if queue.chain.len > 0 {
                queue.rotation = Rotation::Bulk;
                self.sparse -= 1;
                self.change_bulk_count(index, 1);
            } else {
                queue.rotation = Rotation::SparseWait;
            }
        }
        // Rounding by a random number keeps the fractions of a byte on average.
        let share = self.quantum_of(index) + i64::from(dither);
        self.queues[index as usize].deficit += share >> 16;
        let QueueList { first, last } = self.lists[ListName::Old as usize];
        if list != ListName::Old || first != last {
            self.remove(list, index);
            self.append(ListName::Old, index);
        }
    }

    /// Handles the turn of an empty queue.
    fn retire(&mut self, now: Nanos, list: ListName, index: u32) {
        let queue = &mut self.queues[index as usize];
        queue.control.on_empty(now, &self.control);
        let is_at_rest = queue.control.is_at_rest(now);
        let next = if is_at_rest { Rotation::Unlisted } else { Rotation::Decaying };
        match std::mem::replace(&mut queue.rotation, next) {
            Rotation::Bulk => self.change_bulk_count(index, -1),
            Rotation::Sparse | Rotation::SparseWait => self.sparse -= 1,
            Rotation::Unlisted | Rotation::Decaying => {}
        }
        self.remove(list, index);
        if !is_at_rest {
            self.append(ListName::Decaying, index);
        }
    }
}

/// The CAKE discipline.
#[derive(Clone, Debug)]
pub struct Cake<T = u32> {
    config: CakeConfig,
    /// Whether source and destination hosts share the link equally.
    shares: [bool; 2],
    /// Time per byte at the shaper's rate.
    byte_time: Option<ByteTime>,
    /// Time at which the shaper releases the next packet. The failsafe is a later time, which drops
    /// of an ingress shaper do not postpone.
    next_release: Nanos,
    next_failsafe: Nanos,
    tins: Vec<Tin>,
    /// Tin of the last packet.
    tin: usize,
    pool: PacketPool<Packet<T>>,
    occupancy: BufferOccupancy,
    memory: u64,
    max_memory: u64,
    perturbation: u64,
    draws: RandomStream,
}

impl<T: Copy> Cake<T> {
    /// Creates empty queues. A limit in bytes is the limit of the memory (`memlimit`); a limit in
    /// packets applies in addition.
    #[must_use]
    pub fn new(limits: BufferLimits, config: CakeConfig, mut draws: RandomStream) -> Self {
        let tin = |share, weight| Tin::new(&config, share, weight);
        // In Linux's order: best effort is the first tin, so that bulk does not precede it.
        let tins = match config.tins {
            Tins::Besteffort => vec![tin(1, 65_535)],
            Tins::Diffserv3 => vec![tin(1, 1024), tin(16, 64), tin(4, 256)],
            Tins::Diffserv4 => vec![tin(1, 1024), tin(16, 64), tin(2, 512), tin(4, 256)],
        };
        Self {
            config,
            shares: config.isolation.shares_among(),
            byte_time: config.rate_bps.map(|rate| ByteTime::new(rate.get() / 8)),
            next_release: 0,
            next_failsafe: 0,
            tins,
            tin: 0,
            pool: PacketPool::default(),
            memory: 0,
            max_memory: limits.bytes.unwrap_or_else(|| config.default_memory_bytes()),
            occupancy: BufferOccupancy::new(BufferLimits { bytes: None, ..limits }),
            perturbation: draws.next_bits(),
            draws,
        }
    }

    /// Tin of a codepoint (RFC 2474, RFC 8325): the tables of `sch_cake.c`.
    fn tin_of(&self, dscp: u8) -> usize {
        match (self.config.tins, dscp) {
            (Tins::Besteffort, _) => 0,
            (_, 1 | 8) => 1,                                     // LE, CS1
            (Tins::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,       // TOS4, VA, EF, CS6, CS7
            (Tins::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3, // CS4, CS5, VA, EF, CS6, CS7
            (Tins::Diffserv4, 4 | 16..=22 | 24..=30 | 34..=38) => {
                2 * usize::from(dscp % 2 == 0) // TOS4, CS2, AF2x, CS3, AF3x, AF4x
            }
            _ => 0,
        }
    }

    /// Removes the packet of a queue that `take` removes from its list.
    #[inline]
    fn take_packet(
        &mut self,
        tin: usize,
        index: u32,
        take: impl FnOnce(&mut PacketPool<Packet<T>>, &mut PacketList) -> Option<Packet<T>>,
    ) -> Option<Packet<T>> {
        let tin = &mut self.tins[tin];
        let queue = &mut tin.queues[index as usize];
        let packet = take(&mut self.pool, &mut queue.chain)?;
        queue.bytes -= u64::from(packet.bytes);
        tin.packets -= 1;
        self.memory -= memory_of(packet.bytes);
        self.occupancy.waiting.remove_packet(packet.bytes);
        Some(packet)
    }

    /// Advances the schedules of the shaper and of a tin by a packet, and returns its length.
    fn advance_shaper(&mut self, now: Nanos, tin: usize, bytes: u32, is_dropped: bool) -> i64 {
        let bytes = self.config.shaped_bytes(bytes);
        let tin = &mut self.tins[tin];
        if let (Some(of_link), Some(of_tin)) = (self.byte_time, tin.byte_time) {
            let (duration, in_tin) = (of_link.of(bytes), of_tin.of(bytes));
            if tin.next_within_rate < now {
                tin.next_within_rate += in_tin;
            } else {
                tin.next_within_rate = tin.next_within_rate.max(now + in_tin);
            }
            self.next_release += duration;
            if !is_dropped {
                self.next_failsafe += duration + duration / 2;
            }
        }
        i64::from(bytes)
    }

    fn is_over_limit(&self) -> bool {
        let in_service = self.occupancy.in_service;
        let is_busy = in_service.packets > 0;
        let transmitted = if is_busy { memory_of(in_service.bytes as u32) } else { 0 };
        self.memory + transmitted > self.max_memory
            || !self.occupancy.max.is_within_limits(self.occupancy.held_backlog())
    }

    /// Drops the first packet of the longest queue.
    #[cold]
    fn drop_from_longest(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) {
        let mut longest = (0, 0, 0);
        for (number, tin) in self.tins.iter().enumerate() {
            for (index, queue) in tin.queues.iter().enumerate() {
                if queue.bytes > longest.0 {
                    longest = (queue.bytes, number, index as u32);
                }
            }
        }
        let (_, number, index) = longest;
        let Some(packet) = self.take_packet(number, index, PacketPool::take_first) else { return };
        let tin = &mut self.tins[number];
        tin.queues[index as usize].control.on_overflow(now, &tin.control);
        if self.config.ingress {
            self.advance_shaper(now, number, packet.bytes, true);
        }
        probe.on_drop(now, &packet, DropReason::Full);
    }

    /// Drops the oldest acknowledgement of a queue that its last packet supersedes, unless too few
    /// would remain.
    fn filter_acks(
        &mut self,
        now: Nanos,
        number: usize,
        index: u32,
        probe: &mut impl QueueProbe<T>,
    ) {
        let queue = &self.tins[number].queues[index as usize];
        let Some(newest) = self.pool.last_packet(&queue.chain).copied() else { return };
        let (mut candidate, mut found) = (None, 0);
        let mut previous = None;
        let mut chosen = None;
        for (node, older) in self.pool.indexed_packets(&queue.chain) {
            if node == self.pool.last_index(&queue.chain) {
                break;
            }
            previous = Some(node);
            if older.flow != newest.flow {
                continue;
            }
            let echo = probe.ecn_echo_of(older);
            if candidate.is_some_and(|(_, of_candidate)| of_candidate != echo) {
                candidate = None; // its echo would be lost
                found -= 1;
            }
            if !probe.supersedes(&newest, older) {
                continue;
            }
            let (first, _) = *candidate.get_or_insert((node, echo));
            found += 1;
            if found > 1 {
                chosen = Some(first);
                break;
            }
        }
        if let (None, AckFilter::Aggressive, Some((node, echo))) =
            (chosen, self.config.ack_filter, candidate)
        {
            let is_adjacent = previous == Some(node);
            chosen = (is_adjacent && echo == probe.ecn_echo_of(&newest)).then_some(node);
        }
        let Some(node) = chosen else { return };
        let take = |pool: &mut PacketPool<_>, list: &mut PacketList| pool.take(list, node);
        let Some(packet) = self.take_packet(number, index, take) else { return };
        if self.config.ingress {
            self.advance_shaper(now, number, packet.bytes, true);
        }
        probe.on_drop(now, &packet, DropReason::Superseded);
    }

    /// Whether the shaper holds all packets at `now`.
    fn is_held(&self, now: Nanos) -> bool {
        self.next_release > now && self.next_failsafe > now
    }

    /// Chooses the tin to serve. At least one packet is waiting, so that a tin can be served.
    fn choose_tin(&mut self, now: Nanos) -> usize {
        if self.tins.len() == 1 {
            // With a single tin, the deficit has no effect.
            return 0;
        }
        if self.byte_time.is_some() {
            // The last tin that is within its rate, or else the one that will be within its rate
            // first.
            let waits = |tin: &Tin| tin.next_within_rate.saturating_sub(now);
            let served = self.tins.iter().enumerate().filter(|(_, tin)| tin.has_queues_to_serve());
            let chosen = served.rev().min_by_key(|(_, tin)| waits(tin));
            self.tin = chosen.map_or(0, |(number, _)| number);
            return self.tin;
        }
        let mut number = self.tin;
        loop {
            let tin = &mut self.tins[number];
            if tin.deficit >= 0 && tin.has_queues_to_serve() {
                self.tin = number;
                return number;
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.weight;
            }
            number = if number + 1 == self.tins.len() { 0 } else { number + 1 };
        }
    }
}

impl<T: Copy> QueueDiscipline<T> for Cake<T> {
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: Packet<T>,
        probe: &mut impl QueueProbe<T>,
    ) -> EnqueueOutcome {
        let packet = packet.with_arrival_time(now);
        let number = match &self.tins[..] {
            [_] => 0,
            _ => self.tin_of(probe.dscp_of(&packet)),
        };
        let hash = |value: u64| mix_bits(value ^ self.perturbation) as u32;
        let host_hash = |side: usize| {
            let host = probe.hosts_of(&packet)[side];
            hash(u64::from(host) | (1 + side as u64) << 32)
        };
        let tag = match self.config.isolation {
            Isolation::Flowblind => 0,
            Isolation::Srchost => host_hash(0),
            Isolation::Dsthost => host_hash(1),
            Isolation::Hosts => host_hash(0) ^ host_hash(1),
            _ => hash(u64::from(packet.flow)),
        };
        let [by_source, by_destination] = self.shares;
        let counted_hosts = || {
            let [source, destination] = probe.hosts_of(&packet);
            [by_source.then_some(source), by_destination.then_some(destination)]
        };
        let was_empty = self.occupancy.waiting.packets == 0;
        let tin = &mut self.tins[number];
        let index = tin.queue_of(tag, counted_hosts);
        if tin.packets == 0 {
            tin.next_within_rate = tin.next_within_rate.max(now);
            if was_empty && self.next_release < now {
                (self.next_release, self.next_failsafe) = (now, now);
            }
        }
        let queue = &mut tin.queues[index as usize];
        self.pool.push_packet(&mut queue.chain, packet);
        queue.bytes += u64::from(packet.bytes);
        tin.packets += 1;
        self.memory += memory_of(packet.bytes);
        self.occupancy.waiting.add_packet(packet.bytes);
        if self.config.ack_filter != AckFilter::Off {
            self.filter_acks(now, number, index, probe);
        }
        self.tins[number].list(index);
        while self.is_over_limit() && self.occupancy.waiting.packets > 0 {
            self.drop_from_longest(now, probe);
        }
        // Packets are dropped at the head, so the arriving packet is dropped only if its queue is
        // empty.
        if self.tins[number].queues[index as usize].chain.len == 0 {
            EnqueueOutcome::Dropped(DropReason::Full)
        } else {
            EnqueueOutcome::Accepted
        }
    }

    fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
        self.occupancy.set_transmitter_idle();
        let mut is_first_turn = true;
        while self.occupancy.waiting.packets > 0 && !self.is_held(now) {
            let number = self.choose_tin(now);
            // Turns of one tin, until a packet leaves or a queue is empty.
            loop {
                let tin = &mut self.tins[number];
                let Some((list, index)) = tin.next_queue(is_first_turn) else { break };
                is_first_turn = false;
                if tin.queues[index as usize].deficit <= 0 {
                    let dither = (self.draws.next_bits() >> 48) as u32;
                    tin.end_turn(list, index, dither);
                    continue;
                }
                let Some(mut packet) = self.take_packet(number, index, PacketPool::take_first)
                else {
                    self.tins[number].retire(now, list, index);
                    break;
                };
                let tin = &mut self.tins[number];
                let queue = &mut tin.queues[index as usize];
                let bulk = if self.config.ingress { u64::from(tin.bulk) } else { 0 };
                let must_drop =
                    queue.control.must_drop(now, &tin.control, &mut packet, bulk, &mut self.draws);
                let is_dropped = must_drop && queue.chain.len > 0;
                if !is_dropped || self.config.ingress {
                    let bytes = self.advance_shaper(now, number, packet.bytes, is_dropped);
                    let tin = &mut self.tins[number];
                    tin.deficit -= bytes;
                    tin.queues[index as usize].deficit -= bytes;
                }
                if !is_dropped {
                    self.occupancy.set_in_transmission(packet.bytes);
                    return Some(packet);
                }
                probe.on_drop(now, &packet, DropReason::Early);
            }
        }
        None
    }

    fn next_release(&self) -> Nanos {
        if self.occupancy.waiting.packets == 0 {
            NEVER
        } else {
            self.next_release.min(self.next_failsafe)
        }
    }

    fn occupancy(&self) -> &BufferOccupancy {
        &self.occupancy
    }

    fn reset_when_empty(&mut self, now: Nanos) {
        for tin in &mut self.tins {
            (tin.next_within_rate, tin.deficit, tin.sparse, tin.bulk) = (now, 0, 0, 0);
            tin.queues.clear();
            tin.index_by_bucket.clear();
            tin.lists = [QueueList { first: NO_INDEX, last: NO_INDEX }; 3];
        }
        (self.next_release, self.next_failsafe) = (now, now);
    }
}

#[cfg(test)]
#[path = "cake_tests.rs"]
mod tests;
