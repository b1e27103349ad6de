//! Table of backlogged flows, indexed by flow number.

use super::longest_queue::ListLinks;
use super::packet_list::{NO_INDEX, PacketList};
use std::collections::HashMap;

/// A flow with a queue, with the links of the lists that contain the flow. Its slot can be reused
/// after [`FlowTable::free_slot`].
#[derive(Clone, Copy, Debug)]
pub(super) struct DrrFlow {
    /// Flow number of the packets.
    pub(super) number: u32,
    /// Next flow in the round, or next free slot.
    pub(super) next: u32,
    /// Waiting packets.
    pub(super) chain: PacketList,
    pub(super) bytes: u64,
    /// Deficit counter: bytes that the flow may still send in this turn.
    pub(super) deficit: i64,
    /// Charge per byte: 1/weight.
    cost: f64,
    /// Links in the list of flows with equal queue lengths.
    pub(super) links: ListLinks,
}

impl DrrFlow {
    pub(super) fn new(number: u32, weight: f64) -> Self {
        Self {
            number,
            next: NO_INDEX,
            chain: PacketList::EMPTY,
            bytes: 0,
            deficit: 0,
            cost: 1.0 / weight,
            links: ListLinks::UNLINKED,
        }
    }

    /// Deficit used by a packet.
    #[inline]
    pub(super) fn deficit_used_by_packet(&self, bytes: u32) -> i64 {
        if self.cost == 1.0 {
            i64::from(bytes)
        } else {
            libm::round(f64::from(bytes) * self.cost) as i64
        }
    }
}

/// Flow numbers below this limit are looked up in an array with four bytes per flow, because
/// simulators number their flows consecutively. Larger numbers, which may be hashes of addresses, are
/// hashed.
const MAX_INDEXED: u32 = 1 << 20;

/// All flows that have a queue. Memory is proportional to the maximum number of such flows, plus at
/// most 4 MiB for the array of flow numbers.
#[derive(Clone, Debug)]
pub(super) struct FlowTable {
    flows: Vec<DrrFlow>,
    free: u32,
    indexed: Vec<u32>,
    hashed: HashMap<u32, u32>,
}

impl Default for FlowTable {
    fn default() -> Self {
        Self { flows: Vec::new(), free: NO_INDEX, indexed: Vec::new(), hashed: HashMap::default() }
    }
}

impl FlowTable {
    /// Returns the slot of a flow, or [`NO_INDEX`] if the flow has no queue.
    #[inline]
    pub fn find_slot(&self, number: u32) -> u32 {
        let slot = self.indexed.get(number as usize);
        if slot.is_none() && number >= MAX_INDEXED {
            return self.hashed.get(&number).copied().unwrap_or(NO_INDEX);
        }
        slot.copied().unwrap_or(NO_INDEX)
    }

    /// The flow in a slot.
    #[inline]
    pub fn flow_at(&self, slot: u32) -> &DrrFlow {
        &self.flows[slot as usize]
    }

    /// The flow in a slot, mutable.
    #[inline]
    pub fn flow_at_mut(&mut self, slot: u32) -> &mut DrrFlow {
        &mut self.flows[slot as usize]
    }

    /// All slots, for [`super::LongestQueue`].
    #[inline]
    pub fn all_slots_mut(&mut self) -> &mut [DrrFlow] {
        &mut self.flows
    }

    /// Appends a flow to the round from `first` to `last`; `first` is [`NO_INDEX`] if the round is
    /// empty.
    #[inline(always)]
    pub fn append_to_round(&mut self, first: &mut u32, last: &mut u32, flow: u32) {
        self.flows[flow as usize].next = NO_INDEX;
        if *first == NO_INDEX {
            *first = flow;
        } else {
            self.flows[*last as usize].next = flow;
        }
        *last = flow;
    }

    /// Adds a flow with an empty queue and returns its slot.
    pub fn add_flow(&mut self, flow: DrrFlow) -> u32 {
        let slot = if self.free == NO_INDEX {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let slot = self.free;
            self.free = self.flows[slot as usize].next;
            self.flows[slot as usize] = flow;
            slot
        };
        if flow.number >= MAX_INDEXED {
            self.hashed.insert(flow.number, slot);
        } else {
            let index = flow.number as usize;
            if index >= self.indexed.len() {
                self.indexed.resize(index + 1, NO_INDEX);
            }
            self.indexed[index] = slot;
        }
        slot
    }

    /// Removes a flow with an empty queue from the table; its slot is kept until
    /// [`FlowTable::free_slot`].
    pub fn remove_from_table(&mut self, slot: u32) {
        let number = self.flows[slot as usize].number;
        match self.indexed.get_mut(number as usize) {
            Some(slot) => *slot = NO_INDEX,
            None => drop(self.hashed.remove(&number)),
        }
    }

    /// Releases the slot of a removed flow.
    pub fn free_slot(&mut self, slot: u32) {
        self.flows[slot as usize].next = self.free;
        self.free = slot;
    }
}
