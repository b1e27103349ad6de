//! What is to come, in the order of time, where most of it is less than seconds away.
//!
//! That waits in a wheel of slots of a millisecond, where to add one costs the same however many there
//! are. Those of one slot are put in order when its time has come; those beyond the wheel wait in a heap.

use crate::clock::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot is 2^20 ns long, 1.05 ms.
const SLOT_BITS: u32 = 20;
/// The wheel is 4.3 s long.
const SLOTS: usize = WORD * WORD;
const WORD: usize = u64::BITS as usize;

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    time: Nanos,
    what: u64,
    next: u32,
}

/// What is to come; each is a number, which orders those of one moment.
#[derive(Clone, Debug)]
pub struct Wheel {
    /// All up to the end of slot `reached`; time and what it is in one number, so that one comparison
    /// orders them.
    soon: BinaryHeap<Reverse<u128>>,
    reached: u64,
    /// The first node of each slot after that, and which slots have one: a bit a slot, a bit a word.
    slots: Box<[u32]>,
    filled: [u64; WORD],
    filled_words: u64,
    nodes: Vec<Node>,
    free: u32,
    /// Those that were more than a wheel away when they were added.
    late: BinaryHeap<Reverse<u128>>,
}

fn pack(time: Nanos, what: u64) -> u128 {
    (u128::from(time) << 64) | u128::from(what)
}

fn time_of(packed: u128) -> Nanos {
    (packed >> 64) as Nanos
}

impl Default for Wheel {
    fn default() -> Self {
        Self::new()
    }
}

impl Wheel {
    /// Nothing is to come.
    #[must_use]
    pub fn new() -> Self {
        Self {
            soon: BinaryHeap::new(),
            reached: 0,
            slots: vec![NONE; SLOTS].into_boxed_slice(),
            filled: [0; WORD],
            filled_words: 0,
            nodes: Vec::new(),
            free: NONE,
            late: BinaryHeap::new(),
        }
    }

    /// Adds one.
    pub fn add(&mut self, time: Nanos, what: u64) {
        let slot = time >> SLOT_BITS;
        if slot > self.reached && slot - self.reached < SLOTS as u64 {
            return self.wait(slot, Node { time, what, next: NONE });
        }
        let heap = if slot <= self.reached { &mut self.soon } else { &mut self.late };
        heap.push(Reverse(pack(time, what)));
    }

    /// The time of the first, if there is one.
    #[inline(always)]
    pub fn first(&mut self) -> Option<Nanos> {
        if self.soon.is_empty() {
            self.reach_next();
        }
        self.soon.peek().map(|first| time_of(first.0))
    }

    /// Takes the first.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(Nanos, u64)> {
        if self.soon.is_empty() {
            self.reach_next();
        }
        self.soon.pop().map(|Reverse(first)| (time_of(first), first as u64))
    }

    /// Puts it into its slot of the wheel.
    fn wait(&mut self, slot: u64, node: Node) {
        let slot = slot as usize % SLOTS;
        let node = Node { next: self.slots[slot], ..node };
        if self.free == NONE {
            self.slots[slot] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            self.slots[slot] = self.free;
            let place = &mut self.nodes[self.free as usize];
            self.free = place.next;
            *place = node;
        }
        self.filled[slot / WORD] |= 1 << (slot % WORD);
        self.filled_words |= 1 << (slot / WORD);
    }

    /// Goes on to the next slot that is not empty, if one is.
    fn reach_next(&mut self) {
        let on_wheel = self.next_filled();
        let late = self.late.peek().map_or(u64::MAX, |late| time_of(late.0) >> SLOT_BITS);
        let slot = on_wheel.min(late);
        if slot == u64::MAX {
            return;
        }
        self.reached = slot;
        if slot == on_wheel {
            self.empty(slot as usize % SLOTS);
        }
        while let Some(late) = self.late.peek().filter(|late| time_of(late.0) >> SLOT_BITS <= slot)
        {
            self.soon.push(*late);
            self.late.pop();
        }
    }

    /// Takes the timers of a slot off the wheel.
    fn empty(&mut self, slot: usize) {
        let mut at = std::mem::replace(&mut self.slots[slot], NONE);
        while at != NONE {
            let node = &mut self.nodes[at as usize];
            self.soon.push(Reverse(pack(node.time, node.what)));
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
        }
        self.filled[slot / WORD] &= !(1 << (slot % WORD));
        if self.filled[slot / WORD] == 0 {
            self.filled_words &= !(1 << (slot / WORD));
        }
    }

    /// The next slot of the wheel that is not empty; the largest number if all are.
    fn next_filled(&self) -> u64 {
        if self.filled_words == 0 {
            return u64::MAX;
        }
        // All are less than a wheel away, so that the first one round from here is the next.
        let from = (self.reached + 1) as usize % SLOTS;
        let (word, bit) = (from / WORD, (from % WORD) as u32);
        let here = self.filled[word] >> bit;
        if here != 0 {
            return self.reached + 1 + u64::from(here.trailing_zeros());
        }
        // The words after this one, round to it again for the bits before `from`.
        let words = self.filled_words.rotate_right(word as u32 + 1).trailing_zeros() as usize;
        let word_at = (word + 1 + words) % WORD;
        let found = word_at * WORD + self.filled[word_at].trailing_zeros() as usize;
        self.reached + 1 + ((found + SLOTS - from) % SLOTS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// They come out in order, however far away they were added.
        #[test]
        fn the_order_is_that_of_a_heap(
            steps in prop::collection::vec((0_u32..34, 0_u64..1 << 34, 0_u64..12, 0_u8..3), 1..400),
        ) {
            let (mut wheel, mut heap) = (Wheel::new(), BinaryHeap::new());
            let mut now = 0;
            for (bits, span, what, step) in steps {
                if step < 2 || heap.is_empty() {
                    let time = now + (span & ((1 << bits) - 1));
                    wheel.add(time, what);
                    heap.push(Reverse((time, what)));
                } else {
                    let Reverse((time, what)) = heap.pop().unwrap();
                    prop_assert_eq!(wheel.take(), Some((time, what)));
                    now = time;
                }
                if span % 2 == 0 {
                    prop_assert_eq!(wheel.first(), heap.peek().map(|next| next.0.0));
                }
            }
            while let Some(Reverse(next)) = heap.pop() {
                prop_assert_eq!(wheel.take(), Some(next));
            }
            prop_assert_eq!(wheel.take(), None);
        }
    }
}
