//! Linked lists of packets in a shared pool, one list per queue. Empty lists take no memory in the
//! pool.

/// Index of no node or flow.
pub const NO_INDEX: u32 = u32::MAX;

/// A list of packets in a [`PacketPool`].
#[derive(Clone, Copy, Debug)]
pub struct PacketList {
    first: u32,
    last: u32,
    /// Number of packets.
    pub len: u32,
}

impl PacketList {
    /// An empty list.
    pub const EMPTY: Self = Self { first: NO_INDEX, last: NO_INDEX, len: 0 };
}

#[derive(Clone, Copy, Debug)]
struct PacketNode<P> {
    packet: P,
    before: u32,
    after: u32,
}

/// Packets of all queues. Memory grows to the maximum number of packets held simultaneously.
#[derive(Clone, Debug)]
pub struct PacketPool<P> {
    nodes: Vec<PacketNode<P>>,
    free: u32,
}

impl<P> Default for PacketPool<P> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NO_INDEX }
    }
}

impl<P: Copy> PacketPool<P> {
    /// Appends a packet to a list.
    #[inline]
    pub fn push_packet(&mut self, chain: &mut PacketList, packet: P) {
        let node = PacketNode { packet, before: chain.last, after: NO_INDEX };
        let index = if self.free == NO_INDEX {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].after;
            self.nodes[index as usize] = node;
            index
        };
        if chain.last == NO_INDEX {
            chain.first = index;
        } else {
            self.nodes[chain.last as usize].after = index;
        }
        chain.last = index;
        chain.len += 1;
    }

    /// The first packet of a list.
    #[inline]
    #[must_use]
    pub fn first_packet(&self, chain: &PacketList) -> Option<&P> {
        self.nodes.get(chain.first as usize).map(|node| &node.packet)
    }

    /// Index of the last packet of a list; [`NO_INDEX`] if it is empty.
    #[must_use]
    pub fn last_index(&self, chain: &PacketList) -> u32 {
        chain.last
    }

    /// The last packet of a list.
    #[must_use]
    pub fn last_packet(&self, chain: &PacketList) -> Option<&P> {
        self.nodes.get(chain.last as usize).map(|node| &node.packet)
    }

    /// Packets of a list in order of arrival.
    pub fn packets(&self, chain: &PacketList) -> impl Iterator<Item = &P> {
        self.indexed_packets(chain).map(|(_, packet)| packet)
    }

    /// Packets of a list in order of arrival, with their indices, which are valid until a change.
    pub fn indexed_packets(&self, chain: &PacketList) -> impl Iterator<Item = (u32, &P)> {
        let get = |index: u32| self.nodes.get(index as usize).map(|node| (index, node));
        let nodes = std::iter::successors(get(chain.first), move |(_, node)| get(node.after));
        nodes.map(|(index, node)| (index, &node.packet))
    }

    /// Removes the first packet.
    #[inline]
    pub fn take_first(&mut self, chain: &mut PacketList) -> Option<P> {
        self.take(chain, chain.first)
    }

    /// Removes the last packet.
    #[inline]
    pub fn take_last(&mut self, chain: &mut PacketList) -> Option<P> {
        self.take(chain, chain.last)
    }

    /// Removes the packet at an index that [`PacketPool::indexed_packets`] returned.
    #[inline]
    pub fn take(&mut self, chain: &mut PacketList, index: u32) -> Option<P> {
        let PacketNode { packet, before, after } = *self.nodes.get(index as usize)?;
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => chain.first = after,
        }
        match self.nodes.get_mut(after as usize) {
            Some(node) => node.before = before,
            None => chain.last = before,
        }
        self.nodes[index as usize].after = self.free;
        self.free = index;
        chain.len -= 1;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn pooled_chains_behave_like_vec_deques(
            steps in prop::collection::vec((0_usize..6, 0_u8..5), 1..300),
        ) {
            let mut pool = PacketPool::default();
            let mut chains = [PacketList::EMPTY; 6];
            let mut queues: [VecDeque<u32>; 6] = Default::default();
            let mut max = 0;
            for (token, (flow, step)) in (0..).zip(steps) {
                let (chain, queue) = (&mut chains[flow], &mut queues[flow]);
                let taken = match step {
                    0 | 1 => {
                        pool.push_packet(chain, Packet::new(token, flow as u32, 100));
                        queue.push_back(token);
                        max = max.max(queues.iter().map(VecDeque::len).sum());
                        continue;
                    }
                    2 => (pool.take_first(chain), queue.pop_front()),
                    4 if !queue.is_empty() => {
                        let middle = queue.len() / 2;
                        let index = pool.indexed_packets(chain).nth(middle).map(|(index, _)| index);
                        (index.and_then(|index| pool.take(chain, index)), queue.remove(middle))
                    }
                    _ => (pool.take_last(chain), queue.pop_back()),
                };
                prop_assert_eq!(taken.0.map(|packet| packet.token), taken.1);
                prop_assert_eq!(pool.first_packet(chain).map(|p| p.token), queue.front().copied());
                prop_assert_eq!(chain.len as usize, queue.len());
            }
            prop_assert_eq!(pool.nodes.len(), max);
        }
    }
}
