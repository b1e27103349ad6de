//! Table of backlogged flows, indexed by flow number.

use super::chain::NONE;
use super::longest::ListLinks;
use crate::random::scatter;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A flow with a queue, with the links of the lists that contain the flow. Its slot can be reused
/// after [`Flows::free`].
pub trait ListedFlow: Copy {
    /// Flow number of the packets.
    fn number(&self) -> u32;
    /// Next flow in the round, or next free slot.
    fn next(&mut self) -> &mut u32;
    /// Links in the list of flows with equal queue lengths.
    fn links(&mut self) -> &mut ListLinks;
}

/// Hasher of flow numbers, which may be indices or hashes of addresses.
#[derive(Clone, Debug, Default)]
struct Scattered(u64);

impl Hasher for Scattered {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = scatter(self.0 ^ u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.0 = scatter(u64::from(number));
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
pub struct Flows<F> {
    flows: Vec<F>,
    free: u32,
    indexed: Vec<u32>,
    hashed: HashMap<u32, u32, BuildHasherDefault<Scattered>>,
}

impl<F> Default for Flows<F> {
    fn default() -> Self {
        Self { flows: Vec::new(), free: NONE, indexed: Vec::new(), hashed: HashMap::default() }
    }
}

impl<F: ListedFlow> Flows<F> {
    /// Returns the slot of a flow, or [`NONE`] if the flow has no queue.
    #[inline]
    #[must_use]
    pub fn find(&self, number: u32) -> u32 {
        let slot = self.indexed.get(number as usize);
        if slot.is_none() && number >= MAX_INDEXED {
            return self.hashed.get(&number).copied().unwrap_or(NONE);
        }
        slot.copied().unwrap_or(NONE)
    }

    /// The flow in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> &F {
        &self.flows[slot as usize]
    }

    /// The flow in a slot, mutable.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut F {
        &mut self.flows[slot as usize]
    }

    /// All slots, for [`super::Longest`].
    #[inline]
    pub fn all_mut(&mut self) -> &mut [F] {
        &mut self.flows
    }

    /// Appends a flow to the round from `first` to `last`; `first` is [`NONE`] if the round is
    /// empty.
    #[inline(always)]
    pub fn append(&mut self, first: &mut u32, last: &mut u32, flow: u32) {
        *self.flows[flow as usize].next() = NONE;
        if *first == NONE {
            *first = flow;
        } else {
            *self.flows[*last as usize].next() = flow;
        }
        *last = flow;
    }

    /// Adds a flow with an empty queue and returns its slot.
    pub fn add(&mut self, flow: F) -> u32 {
        let slot = if self.free == NONE {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let slot = self.free;
            self.free = *self.flows[slot as usize].next();
            self.flows[slot as usize] = flow;
            slot
        };
        if flow.number() >= MAX_INDEXED {
            self.hashed.insert(flow.number(), slot);
        } else {
            let index = flow.number() as usize;
            if index >= self.indexed.len() {
                self.indexed.resize(index + 1, NONE);
            }
            self.indexed[index] = slot;
        }
        slot
    }

    /// Removes a flow with an empty queue from the table; its slot is kept until [`Flows::free`].
    pub fn forget(&mut self, slot: u32) {
        let number = self.flows[slot as usize].number();
        match self.indexed.get_mut(number as usize) {
            Some(slot) => *slot = NONE,
            None => drop(self.hashed.remove(&number)),
        }
    }

    /// Releases the slot of a removed flow.
    pub fn free(&mut self, slot: u32) {
        *self.flows[slot as usize].next() = self.free;
        self.free = slot;
    }
}
