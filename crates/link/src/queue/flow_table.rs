//! Table of backlogged flows, indexed by flow number.

use super::longest_queue::ListLinks;
use super::packet_list::NO_INDEX;
use crate::random::mix_bits;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A flow with a queue, with the links of the lists that contain the flow. Its slot can be reused
/// after [`FlowTable::free_slot`].
pub trait ListedFlow: Copy {
    /// Flow number of the packets.
    fn flow_number(&self) -> u32;
    /// Next flow in the round, or next free slot.
    fn next_in_list(&mut self) -> &mut u32;
    /// Links in the list of flows with equal queue lengths.
    fn length_list_links(&mut self) -> &mut ListLinks;
}

/// Hasher of flow numbers, which may be indices or hashes of addresses.
#[derive(Clone, Debug, Default)]
struct FlowNumberHasher(u64);

impl Hasher for FlowNumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = mix_bits(self.0 ^ u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = mix_bits(u64::from(number));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Flow numbers below this limit are looked up in an array with four bytes per flow, because
/// simulators number their flows consecutively. Larger numbers are hashed.
const MAX_INDEXED: u32 = 1 << 20;

/// All flows that have a queue. Memory is proportional to the maximum number of such flows, plus at
/// most 4 MiB for the array of flow numbers.
#[derive(Clone, Debug)]
pub struct FlowTable<F> {
    flows: Vec<F>,
    free: u32,
    indexed: Vec<u32>,
    hashed: HashMap<u32, u32, BuildHasherDefault<FlowNumberHasher>>,
}

impl<F> Default for FlowTable<F> {
    fn default() -> Self {
        Self { flows: Vec::new(), free: NO_INDEX, indexed: Vec::new(), hashed: HashMap::default() }
    }
}

impl<F: ListedFlow> FlowTable<F> {
    /// Returns the slot of a flow, or [`NO_INDEX`] if the flow has no queue.
    #[inline]
    #[must_use]
    pub fn find_slot(&self, number: u32) -> u32 {
        let slot = self.indexed.get(number as usize);
        if slot.is_none() && number >= MAX_INDEXED {
            return self.hashed.get(&number).copied().unwrap_or(NO_INDEX);
        }
        slot.copied().unwrap_or(NO_INDEX)
    }

    /// The flow in a slot.
    #[inline]
    #[must_use]
    pub fn flow_at(&self, slot: u32) -> &F {
        &self.flows[slot as usize]
    }

    /// The flow in a slot, mutable.
    #[inline]
    pub fn flow_at_mut(&mut self, slot: u32) -> &mut F {
        &mut self.flows[slot as usize]
    }

    /// All slots, for [`super::LongestQueue`].
    #[inline]
    pub fn all_slots_mut(&mut self) -> &mut [F] {
        &mut self.flows
    }

    /// Appends a flow to the round from `first` to `last`; `first` is [`NO_INDEX`] if the round is
    /// empty.
    #[inline(always)]
    pub fn append_to_round(&mut self, first: &mut u32, last: &mut u32, flow: u32) {
        *self.flows[flow as usize].next_in_list() = NO_INDEX;
        if *first == NO_INDEX {
            *first = flow;
        } else {
            *self.flows[*last as usize].next_in_list() = flow;
        }
        *last = flow;
    }

    /// Adds a flow with an empty queue and returns its slot.
    pub fn add_flow(&mut self, flow: F) -> u32 {
        let slot = if self.free == NO_INDEX {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let slot = self.free;
            self.free = *self.flows[slot as usize].next_in_list();
            self.flows[slot as usize] = flow;
            slot
        };
        if flow.flow_number() >= MAX_INDEXED {
            self.hashed.insert(flow.flow_number(), slot);
        } else {
            let index = flow.flow_number() as usize;
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
        let number = self.flows[slot as usize].flow_number();
        match self.indexed.get_mut(number as usize) {
            Some(slot) => *slot = NO_INDEX,
            None => drop(self.hashed.remove(&number)),
        }
    }

    /// Releases the slot of a removed flow.
    pub fn free_slot(&mut self, slot: u32) {
        *self.flows[slot as usize].next_in_list() = self.free;
        self.free = slot;
    }
}
