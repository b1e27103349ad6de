//! The links of one source's own: ingress before the bottleneck, egress behind it.
//!
//! Such a link carries the packets of one source, in order, so when a packet leaves it is known as
//! soon as it is offered. Only the first of a run of waiting packets needs an event; the others
//! wait here and follow one by one, each scheduled when the one before it has left.

use crate::clock::{Nanos, transmission_time};
use crate::packet::Packet;

/// No node: the pool's first node is never used.
const NONE: u32 = 0;

/// Packets waiting on all the access links of one side, in one pool.
#[derive(Clone, Debug)]
pub struct Waiting {
    nodes: Vec<Node>,
    free: u32,
    held: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    after: Nanos,
    due: Nanos,
    packet: Packet,
    next: u32,
}

/// One link's packets in the pool.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    first: u32,
    last: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], free: NONE, held: 0 }
    }
}

impl Waiting {
    /// Packets waiting in all.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Appends a packet that comes due at `due`; the packet before it comes due at `after`.
    #[inline(always)]
    pub fn push(&mut self, line: &mut Line, after: Nanos, due: Nanos, packet: Packet) {
        let node = Node { after, due, packet, next: NONE };
        let at = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.nodes[at as usize].next;
            self.nodes[at as usize] = node;
            at
        };
        if line.first == NONE {
            line.first = at;
        } else {
            self.nodes[line.last as usize].next = at;
        }
        line.last = at;
        self.held += 1;
    }

    /// Takes the first packet, with its time, if the packet before it came due at `after`.
    ///
    /// A packet that found the link idle is not on the line but has an event of its own, and those
    /// that wait for it come later.
    #[inline(always)]
    pub fn pop_after(&mut self, line: &mut Line, after: Nanos) -> Option<(Nanos, Packet)> {
        let at = line.first;
        if at == NONE {
            return None;
        }
        let node = &mut self.nodes[at as usize];
        if node.after != after {
            return None;
        }
        line.first = node.next;
        node.next = self.free;
        self.free = at;
        self.held -= 1;
        Some((node.due, node.packet))
    }
}

/// Rate and buffer of the access links of one class.
#[derive(Clone, Copy, Debug)]
pub struct AccessLink {
    /// Time a data packet takes.
    pub data_time: Nanos,
    /// Time an acknowledgement takes, the other way.
    pub ack_time: Nanos,
    /// Propagation one way.
    pub delay: Nanos,
    /// Most packets held, the one in transmission included; `u64::MAX` where unlimited.
    pub limit: u64,
    /// Bits a second; `None` is unlimited.
    pub rate_bps: Option<u64>,
}

impl AccessLink {
    /// Time a packet of `bytes` takes, which has another length than most.
    #[inline(never)]
    #[must_use]
    pub fn time_of(&self, bytes: u32) -> Nanos {
        transmission_time(bytes, self.rate_bps)
    }

    /// Whether a packet that arrives at `now` finds room on a link that is busy until `free_at`.
    ///
    /// All data packets take equally long, so the time left tells how many there are.
    #[inline(always)]
    #[must_use]
    pub fn has_room(&self, now: Nanos, free_at: Nanos) -> bool {
        self.has_room_for(self.data_time, now, free_at)
    }

    /// The same if each of a source's packets takes `time`.
    #[inline(always)]
    #[must_use]
    pub fn has_room_for(&self, time: Nanos, now: Nanos, free_at: Nanos) -> bool {
        self.limit == u64::MAX
            || free_at <= now
            || (free_at - now).div_ceil(time.max(1)) < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, Label::default())
    }

    #[test]
    fn lines_share_a_pool_and_keep_their_order() {
        let mut pool = Waiting::default();
        let (mut a, mut b) = (Line::default(), Line::default());
        pool.push(&mut a, 10, 11, packet(1));
        pool.push(&mut b, 10, 12, packet(2));
        pool.push(&mut a, 20, 21, packet(3));
        assert_eq!(pool.pop_after(&mut a, 9), None);
        assert_eq!(pool.pop_after(&mut a, 10), Some((11, packet(1))));
        assert_eq!(pool.pop_after(&mut a, 10), None);
        pool.push(&mut b, 20, 22, packet(4));
        assert_eq!(pool.pop_after(&mut a, 20), Some((21, packet(3))));
        assert_eq!(pool.pop_after(&mut a, 30), None);
        assert_eq!(pool.pop_after(&mut b, 10), Some((12, packet(2))));
        assert_eq!(pool.pop_after(&mut b, 20), Some((22, packet(4))));
        assert_eq!((pool.held(), pool.nodes.len()), (0, 1 + 3));
    }

    #[test]
    fn room_is_told_by_the_time_left() {
        let link = AccessLink { data_time: 10, ack_time: 1, delay: 0, limit: 2, rate_bps: None };
        assert!(link.has_room(100, 100));
        assert!(link.has_room(100, 110));
        assert!(!link.has_room(100, 111));
        assert!(link.has_room(101, 111));
    }
}
