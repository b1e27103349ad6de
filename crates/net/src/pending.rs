//! Packets on their way to a link or host, in a total order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use tcpcast_link::{NEVER, Nanos, Packet};

use crate::counters::DropCause;

/// The token of a packet in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InTransit<T> {
    /// The caller's data.
    pub payload: T,
    /// Index of the route.
    pub route: u32,
    /// Number of links of the route that the packet has passed.
    pub hop: u16,
    /// Cause of the loss of a packet whose loss is already known but has not yet happened.
    pub lost: Option<DropCause>,
}

/// Place of a host in [`PendingPacket`], after all links.
pub(crate) const HOST: u32 = (1 << PLACE_BITS) - 1;
const PLACE_BITS: u32 = 24;
const COUNT_BITS: u32 = u64::BITS - PLACE_BITS;

/// A packet that reaches a place at `packet.entered`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingPacket<T> {
    /// Place, then order of scheduling.
    order: u64,
    pub packet: Packet<InTransit<T>>,
}

impl<T> PendingPacket<T> {
    fn key(&self) -> (Nanos, u64) {
        (self.packet.entered, self.order)
    }
}

impl<T> Ord for PendingPacket<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> PartialOrd for PendingPacket<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for PendingPacket<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for PendingPacket<T> {}

/// Packets by time, then by place (links by number, then hosts), then by order of scheduling.
#[derive(Clone, Debug)]
pub(crate) struct PendingPackets<T> {
    heap: BinaryHeap<Reverse<PendingPacket<T>>>,
    scheduled: u64,
}

impl<T> Default for PendingPackets<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), scheduled: 0 }
    }
}

impl<T: Copy> PendingPackets<T> {
    /// Schedules a packet, which reaches `place` at `packet.entered`.
    #[inline]
    pub fn push(&mut self, place: u32, packet: Packet<InTransit<T>>) {
        self.scheduled += 1;
        let order = u64::from(place) << COUNT_BITS | self.scheduled;
        self.heap.push(Reverse(PendingPacket { order, packet }));
    }

    /// Time of the first packet; [`NEVER`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        self.heap.peek().map_or(NEVER, |first| first.0.packet.entered)
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet<InTransit<T>>> {
        self.heap.pop().map(|first| first.0.packet)
    }

    /// All packets, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<InTransit<T>>> {
        self.heap.iter().map(|pending| &pending.0.packet)
    }
}
