//! The packets that wait, a queue a flow, all in one pool.

use super::longest::Place;
use crate::packet::Packet;

/// No node, no flow.
pub(super) const NONE: u32 = u32::MAX;

/// A flow with a queue; its place can be another's after [`Backlog::remove`].
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Flow {
    pub source: u32,
    /// Packets that wait.
    pub len: u32,
    /// Bytes that it may still send in this turn.
    pub credit: u32,
    /// The flow after it in the round.
    pub next: u32,
    first: u32,
    last: u32,
    pub place: Place,
}

impl Flow {
    /// An empty queue.
    pub(super) fn of(source: u32) -> Self {
        Self {
            source,
            len: 0,
            credit: 0,
            next: NONE,
            first: NONE,
            last: NONE,
            place: Place::NOWHERE,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    packet: Packet,
    before: u32,
    after: u32,
}

/// Queues by flow. A source that has none costs four bytes.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    nodes: Vec<Node>,
    free_node: u32,
    flows: Vec<Flow>,
    free_flow: u32,
    of_source: Vec<u32>,
    waiting: u64,
}

impl Backlog {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free_node: NONE,
            flows: Vec::new(),
            free_flow: NONE,
            of_source: Vec::new(),
            waiting: 0,
        }
    }

    /// Packets that wait, of all flows.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The flow of a source, [`NONE`] if it has no queue.
    pub(super) fn flow_of(&self, source: u32) -> u32 {
        self.of_source.get(source as usize).copied().unwrap_or(NONE)
    }

    pub(super) fn flow(&self, flow: u32) -> &Flow {
        &self.flows[flow as usize]
    }

    pub(super) fn flow_mut(&mut self, flow: u32) -> &mut Flow {
        &mut self.flows[flow as usize]
    }

    pub(super) fn flows_mut(&mut self) -> &mut [Flow] {
        &mut self.flows
    }

    /// A word of the first packet of a flow, so that it is there when it is taken.
    #[inline(always)]
    pub(super) fn fetch(&self, flow: &Flow) -> u32 {
        self.nodes.get(flow.first as usize).map_or(NONE, |node| node.after)
    }

    /// Makes a queue, still empty, for a source that has none.
    pub(super) fn add(&mut self, source: u32) -> u32 {
        let made = Flow::of(source);
        let flow = if self.free_flow == NONE {
            self.flows.push(made);
            self.flows.len() as u32 - 1
        } else {
            let flow = self.free_flow;
            self.free_flow = self.flows[flow as usize].next;
            self.flows[flow as usize] = made;
            flow
        };
        let place = source as usize;
        if place >= self.of_source.len() {
            self.of_source.resize(place + 1, NONE);
        }
        self.of_source[place] = flow;
        flow
    }

    /// Takes an empty queue away.
    pub(super) fn remove(&mut self, flow: u32) {
        self.forget(flow);
        self.free(flow);
    }

    /// An empty queue is not its source's any more; its place is kept until [`Backlog::free`].
    pub(super) fn forget(&mut self, flow: u32) {
        let Flow { source, len, .. } = self.flows[flow as usize];
        debug_assert_eq!(len, 0, "a queue goes when it is empty");
        self.of_source[source as usize] = NONE;
    }

    /// The place of a queue that was forgotten can be another's.
    pub(super) fn free(&mut self, flow: u32) {
        self.flows[flow as usize].next = self.free_flow;
        self.free_flow = flow;
    }

    /// Appends a packet.
    #[inline(always)]
    pub(super) fn push(&mut self, flow: u32, packet: Packet) {
        let before = self.flows[flow as usize].last;
        let node = Node { packet, before, after: NONE };
        let at = if self.free_node == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let at = self.free_node;
            self.free_node = self.nodes[at as usize].after;
            self.nodes[at as usize] = node;
            at
        };
        let queue = &mut self.flows[flow as usize];
        queue.last = at;
        queue.len += 1;
        if before == NONE {
            queue.first = at;
        } else {
            self.nodes[before as usize].after = at;
        }
        self.waiting += 1;
    }

    /// Takes the packet that came first; there must be one.
    pub(super) fn take_first(&mut self, flow: u32) -> Packet {
        let queue = &mut self.flows[flow as usize];
        let at = queue.first;
        let Node { packet, after, .. } = self.nodes[at as usize];
        queue.first = after;
        queue.len -= 1;
        if after == NONE {
            queue.last = NONE;
        } else {
            self.nodes[after as usize].before = NONE;
        }
        self.release(at);
        packet
    }

    /// Takes the packet that came last; there must be one.
    pub(super) fn take_last(&mut self, flow: u32) -> Packet {
        let queue = &mut self.flows[flow as usize];
        let at = queue.last;
        let Node { packet, before, .. } = self.nodes[at as usize];
        queue.last = before;
        queue.len -= 1;
        if before == NONE {
            queue.first = NONE;
        } else {
            self.nodes[before as usize].after = NONE;
        }
        self.release(at);
        packet
    }

    fn release(&mut self, node: u32) {
        self.nodes[node as usize].after = self.free_node;
        self.free_node = node;
        self.waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    proptest! {
        #[test]
        fn queues_share_a_pool_and_keep_their_order(
            steps in prop::collection::vec((0_u32..6, 0_u8..4), 1..300),
        ) {
            let mut backlog = Backlog::new();
            let mut queues: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
            let mut most = 0;
            for (number, (source, step)) in (1..).zip(steps) {
                let mut flow = backlog.flow_of(source);
                prop_assert_eq!(flow == NONE, !queues.contains_key(&source));
                if step < 2 || flow == NONE {
                    if flow == NONE {
                        flow = backlog.add(source);
                    }
                    backlog.push(flow, Packet { source, number, ..Packet::default() });
                    queues.entry(source).or_default().push_back(number);
                } else {
                    let queue = queues.get_mut(&source).unwrap();
                    let (taken, expected) = if step == 2 {
                        (backlog.take_first(flow), queue.pop_front())
                    } else {
                        (backlog.take_last(flow), queue.pop_back())
                    };
                    prop_assert_eq!((taken.source, Some(taken.number)), (source, expected));
                    if queue.is_empty() {
                        backlog.remove(flow);
                        queues.remove(&source);
                    }
                }
                let waiting: usize = queues.values().map(VecDeque::len).sum();
                most = most.max(waiting);
                prop_assert_eq!(backlog.waiting(), waiting as u64);
            }
            prop_assert_eq!(backlog.nodes.len(), most);
            prop_assert!(backlog.flows.len() <= 6);
        }
    }
}
