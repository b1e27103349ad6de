//! Flows that have a queue, found by their number.

use super::chain::{Chain, NONE};
use super::longest::Place;
use crate::random::scatter;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A flow with a queue; its place can be another's after [`Flows::free`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// The number of the flow that its packets carry.
    pub number: u32,
    /// The flow after it in the round.
    pub next: u32,
    /// What waits.
    pub chain: Chain,
    pub bytes: u64,
    /// Bytes that it may still send in this turn: its deficit counter.
    pub deficit: i64,
    /// What a byte of it counts for: one over its weight.
    cost: f64,
    pub place: Place,
}

impl Flow {
    /// An empty queue.
    pub fn new(number: u32, weight: f64) -> Self {
        Self {
            number,
            next: NONE,
            chain: Chain::EMPTY,
            bytes: 0,
            deficit: 0,
            cost: 1.0 / weight,
            place: Place::NOWHERE,
        }
    }

    /// What a packet of it takes from its deficit.
    #[inline]
    pub fn charge(&self, bytes: u32) -> i64 {
        if self.cost == 1.0 {
            i64::from(bytes)
        } else {
            libm::round(f64::from(bytes) * self.cost) as i64
        }
    }
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
pub(super) struct Flows {
    flows: Vec<Flow>,
    free: u32,
    counted: Vec<u32>,
    hashed: HashMap<u32, u32, BuildHasherDefault<Scattered>>,
}

impl Flows {
    pub fn new() -> Self {
        Self { flows: Vec::new(), free: NONE, counted: Vec::new(), hashed: HashMap::default() }
    }

    /// Where the flow of that number is, [`NONE`] if it has no queue.
    #[inline]
    pub fn find(&self, number: u32) -> u32 {
        let known = self.counted.get(number as usize);
        if known.is_none() && number >= COUNTED {
            return self.hashed.get(&number).copied().unwrap_or(NONE);
        }
        known.copied().unwrap_or(NONE)
    }

    #[inline]
    pub fn get(&self, at: u32) -> &Flow {
        &self.flows[at as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Flow {
        &mut self.flows[at as usize]
    }

    pub fn all_mut(&mut self) -> &mut [Flow] {
        &mut self.flows
    }

    /// Gives a flow a queue that is still empty.
    pub fn add(&mut self, flow: Flow) -> u32 {
        let at = if self.free == NONE {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let at = self.free;
            self.free = self.flows[at as usize].next;
            self.flows[at as usize] = flow;
            at
        };
        if flow.number >= COUNTED {
            self.hashed.insert(flow.number, at);
        } else {
            let place = flow.number as usize;
            if place >= self.counted.len() {
                self.counted.resize(place + 1, NONE);
            }
            self.counted[place] = at;
        }
        at
    }

    /// A queue that is empty is not its flow's any more; its place is kept until [`Flows::free`].
    pub fn forget(&mut self, at: u32) {
        let number = self.flows[at as usize].number;
        match self.counted.get_mut(number as usize) {
            Some(place) => *place = NONE,
            None => drop(self.hashed.remove(&number)),
        }
    }

    /// The place of a queue that was forgotten can be another's.
    pub fn free(&mut self, at: u32) {
        self.flows[at as usize].next = self.free;
        self.free = at;
    }
}
