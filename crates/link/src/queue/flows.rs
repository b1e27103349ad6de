//! Flows that have a queue, found by their number.

use super::chain::NONE;
use super::longest::Place;
use crate::random::scatter;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A flow with a queue: what lists of flows keep in each. Its place can be another's after
/// [`Flows::free`].
pub trait Listed: Copy {
    /// The number that its packets carry.
    fn number(&self) -> u32;
    /// The flow after it, of those that take turns or of places that are free.
    fn next(&mut self) -> &mut u32;
    /// Where it stands among those whose queues are as long as its own.
    fn place(&mut self) -> &mut Place;
}

/// Scatters numbers of flows: they may be indices, or hashes of addresses.
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

/// Numbers below this are looked up in an array of four bytes each, as far as they come: a simulator
/// counts its flows. Others are hashed.
const COUNTED: u32 = 1 << 20;

/// All flows that have a queue. Memory is that of the most that ever had one at a time, and at most
/// four megabytes for their numbers.
#[derive(Clone, Debug)]
pub struct Flows<F> {
    flows: Vec<F>,
    free: u32,
    counted: Vec<u32>,
    hashed: HashMap<u32, u32, BuildHasherDefault<Scattered>>,
}

impl<F> Default for Flows<F> {
    fn default() -> Self {
        Self { flows: Vec::new(), free: NONE, counted: Vec::new(), hashed: HashMap::default() }
    }
}

impl<F: Listed> Flows<F> {
    /// Where the flow of that number is, [`NONE`] if it has no queue.
    #[inline]
    #[must_use]
    pub fn find(&self, number: u32) -> u32 {
        let known = self.counted.get(number as usize);
        if known.is_none() && number >= COUNTED {
            return self.hashed.get(&number).copied().unwrap_or(NONE);
        }
        known.copied().unwrap_or(NONE)
    }

    /// The flow that is there.
    #[inline]
    #[must_use]
    pub fn get(&self, at: u32) -> &F {
        &self.flows[at as usize]
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut F {
        &mut self.flows[at as usize]
    }

    /// All places, as [`super::Longest`] looks at them.
    #[inline]
    pub fn all_mut(&mut self) -> &mut [F] {
        &mut self.flows
    }

    /// Puts a flow behind the `last` of those that take turns; `first` is [`NONE`] if there are none.
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

    /// Gives a flow a queue that is still empty.
    pub fn add(&mut self, flow: F) -> u32 {
        let at = if self.free == NONE {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let at = self.free;
            self.free = *self.flows[at as usize].next();
            self.flows[at as usize] = flow;
            at
        };
        if flow.number() >= COUNTED {
            self.hashed.insert(flow.number(), at);
        } else {
            let place = flow.number() as usize;
            if place >= self.counted.len() {
                self.counted.resize(place + 1, NONE);
            }
            self.counted[place] = at;
        }
        at
    }

    /// A queue that is empty is not its flow's any more; its place is kept until [`Flows::free`].
    pub fn forget(&mut self, at: u32) {
        let number = self.flows[at as usize].number();
        match self.counted.get_mut(number as usize) {
            Some(place) => *place = NONE,
            None => drop(self.hashed.remove(&number)),
        }
    }

    /// The place of a queue that was forgotten can be another's.
    pub fn free(&mut self, at: u32) {
        *self.flows[at as usize].next() = self.free;
        self.free = at;
    }
}
