//! Access links: ingress from the source, egress to the receiver.
//!
//! An access link transmits the packets of one source in order, so the departure time of a packet
//! is known on arrival. Only the first of several waiting packets needs an event. The other packets
//! are stored here; each is scheduled when the previous packet has left.

use crate::clock::{Nanos, transmission_time};
use crate::packet::Packet;

/// Index of no node: the first node of the pool is not used.
const NO_NODE: u32 = 0;

/// Packets that wait on the access links of one side, in one pool.
#[derive(Clone, Debug)]
pub struct WaitingPacketPool {
    nodes: Vec<WaitingPacketNode>,
    free: u32,
    held: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct WaitingPacketNode {
    after: Nanos,
    due: Nanos,
    packet: Packet,
    next: u32,
}

/// List of the packets of one link in the pool.
#[derive(Clone, Copy, Debug)]
pub struct WaitingPacketList {
    first: u32,
    last: u32,
}

impl Default for WaitingPacketList {
    fn default() -> Self {
        Self { first: NO_NODE, last: NO_NODE }
    }
}

impl Default for WaitingPacketPool {
    fn default() -> Self {
        Self { nodes: vec![WaitingPacketNode::default()], free: NO_NODE, held: 0 }
    }
}

impl WaitingPacketPool {
    /// Total number of waiting packets.
    #[must_use]
    pub fn waiting_packets(&self) -> u64 {
        self.held
    }

    /// Appends a packet with an event at `due`, to be scheduled at the event of the previous packet
    /// at `after`.
    #[inline(always)]
    pub fn push_waiting_packet(
        &mut self,
        line: &mut WaitingPacketList,
        after: Nanos,
        due: Nanos,
        packet: Packet,
    ) {
        let node = WaitingPacketNode { after, due, packet, next: NO_NODE };
        let index = if self.free == NO_NODE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        if line.first == NO_NODE {
            line.first = index;
        } else {
            self.nodes[line.last as usize].next = index;
        }
        line.last = index;
        self.held += 1;
    }

    /// Takes the first packet and its time, if the event of the previous packet was at `after`.
    ///
    /// A packet that found the link idle is not on the list; it has a separate event.
    #[inline(always)]
    pub fn pop_if_previous_at(
        &mut self,
        line: &mut WaitingPacketList,
        after: Nanos,
    ) -> Option<(Nanos, Packet)> {
        let index = line.first;
        if index == NO_NODE {
            return None;
        }
        let node = &mut self.nodes[index as usize];
        if node.after != after {
            return None;
        }
        line.first = node.next;
        node.next = self.free;
        self.free = index;
        self.held -= 1;
        Some((node.due, node.packet))
    }
}

/// Properties of the access links of one class.
#[derive(Clone, Copy, Debug)]
pub struct AccessLink {
    /// Transmission time of a full data packet.
    pub data_time: Nanos,
    /// Transmission time of an acknowledgement in the other direction.
    pub ack_time: Nanos,
    /// One-way propagation delay.
    pub delay: Nanos,
    /// Buffer limit in packets, including the packet in transmission; `u64::MAX` for no limit.
    pub limit: u64,
    /// Rate in bit/s; `None` is unlimited.
    pub rate_bps: Option<u64>,
}

impl AccessLink {
    /// Transmission time of a packet of `bytes`.
    #[inline(never)]
    #[must_use]
    pub fn transmission_time_of(&self, bytes: u32) -> Nanos {
        transmission_time(bytes, self.rate_bps)
    }

    /// Whether the buffer has room for a packet that arrives at `now`, if the link is busy until
    /// `free_at`.
    ///
    /// All data packets take the same time, so the remaining busy time determines their number.
    #[inline(always)]
    #[must_use]
    pub fn has_buffer_room(&self, now: Nanos, free_at: Nanos) -> bool {
        self.has_buffer_room_with_packet_time(self.data_time, now, free_at)
    }

    /// As [`AccessLink::has_buffer_room`], if each packet of the source takes `time`.
    #[inline(always)]
    #[must_use]
    pub fn has_buffer_room_with_packet_time(
        &self,
        time: Nanos,
        now: Nanos,
        free_at: Nanos,
    ) -> bool {
        self.limit == u64::MAX
            || free_at <= now
            || (free_at - now).div_ceil(time.max(1)) < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketLabel;

    fn packet(number: u32) -> Packet {
        Packet::new(0, 1, number, PacketLabel::default())
    }

    #[test]
    fn lines_in_one_pool_keep_their_order() {
        let mut pool = WaitingPacketPool::default();
        let (mut a, mut b) = (WaitingPacketList::default(), WaitingPacketList::default());
        pool.push_waiting_packet(&mut a, 10, 11, packet(1));
        pool.push_waiting_packet(&mut b, 10, 12, packet(2));
        pool.push_waiting_packet(&mut a, 20, 21, packet(3));
        assert_eq!(pool.pop_if_previous_at(&mut a, 9), None);
        assert_eq!(pool.pop_if_previous_at(&mut a, 10), Some((11, packet(1))));
        assert_eq!(pool.pop_if_previous_at(&mut a, 10), None);
        pool.push_waiting_packet(&mut b, 20, 22, packet(4));
        assert_eq!(pool.pop_if_previous_at(&mut a, 20), Some((21, packet(3))));
        assert_eq!(pool.pop_if_previous_at(&mut a, 30), None);
        assert_eq!(pool.pop_if_previous_at(&mut b, 10), Some((12, packet(2))));
        assert_eq!(pool.pop_if_previous_at(&mut b, 20), Some((22, packet(4))));
        assert_eq!((pool.waiting_packets(), pool.nodes.len()), (0, 1 + 3));
    }

    #[test]
    fn has_room_counts_packets_by_remaining_time() {
        let link = AccessLink { data_time: 10, ack_time: 1, delay: 0, limit: 2, rate_bps: None };
        assert!(link.has_buffer_room(100, 100));
        assert!(link.has_buffer_room(100, 110));
        assert!(!link.has_buffer_room(100, 111));
        assert!(link.has_buffer_room(101, 111));
    }
}
