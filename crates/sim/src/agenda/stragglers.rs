//! Packets that come due before one that was scheduled on their line already.

use super::heads::LAST;
use crate::clock::Nanos;
use crate::packet::Packet;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use tcpcast_link::ring::Ring;

/// Time, line, order of scheduling.
type Key = (Nanos, u32, u64);

#[derive(Clone, Copy, Debug, Default)]
struct Straggler {
    key: Key,
    packet: Packet,
}

impl PartialEq for Straggler {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Straggler {}
impl PartialOrd for Straggler {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Straggler {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// All of them. Most come due after all that are there: those are kept in their order, the others in
/// a heap.
#[derive(Debug, Default)]
pub(crate) struct Stragglers {
    in_order: Ring<Straggler>,
    /// The last one that was kept in order; it is not before what comes next once it is gone.
    last: Key,
    others: BinaryHeap<Reverse<Straggler>>,
    scheduled: u64,
}

impl Stragglers {
    pub(crate) fn push(&mut self, time: Nanos, line: u32, packet: Packet) {
        self.scheduled += 1;
        let straggler = Straggler { key: (time, line, self.scheduled), packet };
        if straggler.key > self.last {
            self.last = straggler.key;
            self.in_order.push(straggler);
        } else {
            self.others.push(Reverse(straggler));
        }
    }

    /// Takes the first, which there is: its line, itself, and when the next one is due, [`LAST`] if
    /// there is none.
    #[inline]
    pub(crate) fn take(&mut self) -> (u32, Packet, Nanos) {
        let others = self.others.peek().map(|Reverse(other)| other.key);
        let other_is_first =
            others.is_some_and(|other| self.in_order.first().is_none_or(|first| other < first.key));
        let taken = if other_is_first {
            self.others.pop().map(|Reverse(other)| other)
        } else {
            self.in_order.pop()
        };
        let Straggler { key, packet } = taken.expect("the first was seen");
        let others = self.others.peek().map_or(LAST, |Reverse(other)| other.key.0);
        let next = self.in_order.first().map_or(others, |first| first.key.0.min(others));
        (key.1, packet, next)
    }

    /// All of them, in no order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let others = self.others.iter().map(|Reverse(other)| &other.packet);
        self.in_order.iter().map(|straggler| &straggler.packet).chain(others)
    }
}
