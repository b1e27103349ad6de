//! Packets of many queues in one pool: a packet is in one chain at a time, and chains cost nothing
//! while they are empty.

/// No node, no flow.
pub const NONE: u32 = u32::MAX;

/// One queue in the pool.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: u32,
    last: u32,
    /// How many packets are in it.
    pub len: u32,
}

impl Chain {
    /// Without a packet.
    pub const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };
}

#[derive(Clone, Copy, Debug)]
struct Node<P> {
    packet: P,
    before: u32,
    after: u32,
}

/// The packets of all queues. The pool grows to the most that were ever there, and no further.
#[derive(Clone, Debug)]
pub struct Pool<P> {
    nodes: Vec<Node<P>>,
    free: u32,
}

impl<P> Default for Pool<P> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NONE }
    }
}

impl<P: Copy> Pool<P> {
    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, chain: &mut Chain, packet: P) {
        let node = Node { packet, before: chain.last, after: NONE };
        let at = if self.free == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let at = self.free;
            self.free = self.nodes[at as usize].after;
            self.nodes[at as usize] = node;
            at
        };
        if chain.last == NONE {
            chain.first = at;
        } else {
            self.nodes[chain.last as usize].after = at;
        }
        chain.last = at;
        chain.len += 1;
    }

    /// The packet that came first.
    #[inline]
    #[must_use]
    pub fn first(&self, chain: &Chain) -> Option<&P> {
        self.nodes.get(chain.first as usize).map(|node| &node.packet)
    }

    /// The packets of a chain in the order in which they came.
    pub fn packets(&self, chain: &Chain) -> impl Iterator<Item = &P> {
        let at = |node: u32| self.nodes.get(node as usize);
        let nodes = std::iter::successors(at(chain.first), move |node| at(node.after));
        nodes.map(|node| &node.packet)
    }

    /// A word that lies beside the first packet of a chain: whoever reads it has the packet at hand
    /// when it is taken.
    #[inline]
    #[must_use]
    pub fn fetch(&self, chain: &Chain) -> u32 {
        self.nodes.get(chain.first as usize).map_or(NONE, |node| node.after)
    }

    /// Takes the packet that came first.
    #[inline]
    pub fn take_first(&mut self, chain: &mut Chain) -> Option<P> {
        let at = chain.first;
        let Node { packet, after, .. } = *self.nodes.get(at as usize)?;
        chain.first = after;
        if after == NONE {
            chain.last = NONE;
        } else {
            self.nodes[after as usize].before = NONE;
        }
        self.release(chain, at);
        Some(packet)
    }

    /// Takes the packet that came last.
    #[inline]
    pub fn take_last(&mut self, chain: &mut Chain) -> Option<P> {
        let at = chain.last;
        let Node { packet, before, .. } = *self.nodes.get(at as usize)?;
        chain.last = before;
        if before == NONE {
            chain.first = NONE;
        } else {
            self.nodes[before as usize].after = NONE;
        }
        self.release(chain, at);
        Some(packet)
    }

    #[inline]
    fn release(&mut self, chain: &mut Chain, node: u32) {
        self.nodes[node as usize].after = self.free;
        self.free = node;
        chain.len -= 1;
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
        fn chains_share_a_pool_and_keep_their_order(
            steps in prop::collection::vec((0_usize..6, 0_u8..4), 1..300),
        ) {
            let mut pool = Pool::default();
            let mut chains = [Chain::EMPTY; 6];
            let mut queues: [VecDeque<u32>; 6] = Default::default();
            let mut most = 0;
            for (token, (flow, step)) in (0..).zip(steps) {
                let (chain, queue) = (&mut chains[flow], &mut queues[flow]);
                let taken = match step {
                    0 | 1 => {
                        pool.push(chain, Packet::new(token, flow as u32, 100));
                        queue.push_back(token);
                        most = most.max(queues.iter().map(VecDeque::len).sum());
                        continue;
                    }
                    2 => (pool.take_first(chain), queue.pop_front()),
                    _ => (pool.take_last(chain), queue.pop_back()),
                };
                prop_assert_eq!(taken.0.map(|packet| packet.token), taken.1);
                prop_assert_eq!(pool.first(chain).map(|p| p.token), queue.front().copied());
                prop_assert_eq!(chain.len as usize, queue.len());
            }
            prop_assert_eq!(pool.nodes.len(), most);
        }
    }
}
