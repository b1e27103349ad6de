//! Priority queue of items by time, for items that are mostly less than seconds away.
//!
//! These items are stored in a timing wheel with slots of a millisecond, to which an item is added
//! in constant time. The items of a slot are sorted when its time is reached. Items beyond the
//! wheel are stored in a heap.

use crate::clock::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slot length: 2^20 ns, 1.05 ms.
const SLOT_BITS: u32 = 20;
/// Number of slots: the wheel spans 4.3 s.
const SLOTS: usize = SLOTS_PER_WORD * SLOTS_PER_WORD;
const SLOTS_PER_WORD: usize = u64::BITS as usize;

/// Index of no node.
const NO_NODE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct WheelNode {
    time: Nanos,
    item: u64,
    next: u32,
}

/// A priority queue of items by time, then by item.
#[derive(Clone, Debug)]
pub struct TimerWheel {
    /// Items up to the end of slot `reached`, with time and item packed into one number for fast
    /// comparison.
    soon: BinaryHeap<Reverse<u128>>,
    reached: u64,
    /// First node of each later slot, and bitmaps of non-empty slots and of non-zero words of the
    /// bitmap.
    slots: Box<[u32]>,
    filled: [u64; SLOTS_PER_WORD],
    filled_words: u64,
    nodes: Vec<WheelNode>,
    free: u32,
    /// Items whose time was beyond the range of the wheel when they were added.
    late: BinaryHeap<Reverse<u128>>,
}

fn pack_time_and_item(time: Nanos, item: u64) -> u128 {
    (u128::from(time) << 64) | u128::from(item)
}

fn unpack_time(packed: u128) -> Nanos {
    (packed >> 64) as Nanos
}

impl Default for TimerWheel {
    fn default() -> Self {
        Self::new()
    }
}

impl TimerWheel {
    /// Creates an empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            soon: BinaryHeap::new(),
            reached: 0,
            slots: vec![NO_NODE; SLOTS].into_boxed_slice(),
            filled: [0; SLOTS_PER_WORD],
            filled_words: 0,
            nodes: Vec::new(),
            free: NO_NODE,
            late: BinaryHeap::new(),
        }
    }

    /// Adds an item.
    pub fn add_item(&mut self, time: Nanos, item: u64) {
        let slot = time >> SLOT_BITS;
        if slot > self.reached && slot - self.reached < SLOTS as u64 {
            return self.add_to_slot(slot, WheelNode { time, item, next: NO_NODE });
        }
        let heap = if slot <= self.reached { &mut self.soon } else { &mut self.late };
        heap.push(Reverse(pack_time_and_item(time, item)));
    }

    /// Time of the first item.
    #[inline(always)]
    pub fn first_time(&mut self) -> Option<Nanos> {
        if self.soon.is_empty() {
            self.advance_to_next_slot();
        }
        self.soon.peek().map(|first| unpack_time(first.0))
    }

    /// Takes the first item and its time.
    #[inline(always)]
    pub fn take_first(&mut self) -> Option<(Nanos, u64)> {
        if self.soon.is_empty() {
            self.advance_to_next_slot();
        }
        self.soon.pop().map(|Reverse(first)| (unpack_time(first), first as u64))
    }

    /// Adds a node to a slot of the wheel.
    fn add_to_slot(&mut self, slot: u64, node: WheelNode) {
        let slot = slot as usize % SLOTS;
        let node = WheelNode { next: self.slots[slot], ..node };
        if self.free == NO_NODE {
            self.slots[slot] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            self.slots[slot] = self.free;
            let free = &mut self.nodes[self.free as usize];
            self.free = free.next;
            *free = node;
        }
        self.filled[slot / SLOTS_PER_WORD] |= 1 << (slot % SLOTS_PER_WORD);
        self.filled_words |= 1 << (slot / SLOTS_PER_WORD);
    }

    /// Advances to the next non-empty slot, if any.
    fn advance_to_next_slot(&mut self) {
        let on_wheel = self.next_filled_slot();
        let late = self.late.peek().map_or(u64::MAX, |late| unpack_time(late.0) >> SLOT_BITS);
        let slot = on_wheel.min(late);
        if slot == u64::MAX {
            return;
        }
        self.reached = slot;
        if slot == on_wheel {
            self.drain_slot(slot as usize % SLOTS);
        }
        while let Some(late) =
            self.late.peek().filter(|late| unpack_time(late.0) >> SLOT_BITS <= slot)
        {
            self.soon.push(*late);
            self.late.pop();
        }
    }

    /// Moves the items of a slot to `soon`.
    fn drain_slot(&mut self, slot: usize) {
        let mut index = std::mem::replace(&mut self.slots[slot], NO_NODE);
        while index != NO_NODE {
            let node = &mut self.nodes[index as usize];
            self.soon.push(Reverse(pack_time_and_item(node.time, node.item)));
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = index;
            index = next;
        }
        self.filled[slot / SLOTS_PER_WORD] &= !(1 << (slot % SLOTS_PER_WORD));
        if self.filled[slot / SLOTS_PER_WORD] == 0 {
            self.filled_words &= !(1 << (slot / SLOTS_PER_WORD));
        }
    }

    /// Next non-empty slot of the wheel; `u64::MAX` if there is none.
    fn next_filled_slot(&self) -> u64 {
        if self.filled_words == 0 {
            return u64::MAX;
        }
        // All items are within one turn of the wheel, so the first slot from rest is the next.
        let from = (self.reached + 1) as usize % SLOTS;
        let (word, bit) = (from / SLOTS_PER_WORD, (from % SLOTS_PER_WORD) as u32);
        let rest = self.filled[word] >> bit;
        if rest != 0 {
            return self.reached + 1 + u64::from(rest.trailing_zeros());
        }
        // Searches the following words cyclically, ending with the bits before `from` in this word.
        let words = self.filled_words.rotate_right(word as u32 + 1).trailing_zeros() as usize;
        let word = (word + 1 + words) % SLOTS_PER_WORD;
        let slot = word * SLOTS_PER_WORD + self.filled[word].trailing_zeros() as usize;
        self.reached + 1 + ((slot + SLOTS - from) % SLOTS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Items at any distance are taken in the same order as from a heap.
        #[test]
        fn wheel_has_the_order_of_a_heap(
            steps in prop::collection::vec((0_u32..34, 0_u64..1 << 34, 0_u64..12, 0_u8..3), 1..400),
        ) {
            let (mut wheel, mut heap) = (TimerWheel::new(), BinaryHeap::new());
            let mut now = 0;
            for (bits, span, item, step) in steps {
                if step < 2 || heap.is_empty() {
                    let time = now + (span & ((1 << bits) - 1));
                    wheel.add_item(time, item);
                    heap.push(Reverse((time, item)));
                } else {
                    let Reverse((time, item)) = heap.pop().unwrap();
                    prop_assert_eq!(wheel.take_first(), Some((time, item)));
                    now = time;
                }
                if span % 2 == 0 {
                    prop_assert_eq!(wheel.first_time(), heap.peek().map(|next| next.0.0));
                }
            }
            while let Some(Reverse(next)) = heap.pop() {
                prop_assert_eq!(wheel.take_first(), Some(next));
            }
            prop_assert_eq!(wheel.take_first(), None);
        }
    }
}
