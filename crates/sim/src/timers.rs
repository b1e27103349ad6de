//! Timers in the order in which they expire.
//!
//! Most are a retransmission timeout away, so they wait in a wheel of slots of a millisecond, where
//! setting one costs the same however many there are. Those of one slot are put in order when its
//! time has come; those beyond the wheel, ends of silences mostly, wait in a heap.

use crate::clock::Nanos;
use crate::heads::LAST;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a timer is for. At equal times the order is this one, then that of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A receiver's delayed acknowledgement.
    DelayedAck,
    /// A sender's retransmission timer.
    Retransmission,
    /// The end of a silence.
    Start,
    /// The beginning of a transfer of a class; this one is a class's, not a source's.
    Transfer,
    /// A step of a class whose silences end together; this one, too, is a class's.
    Crowd,
}

/// By their numbers; a power of two of them, so that a remainder is a mask.
const TIMERS: [Timer; 8] = [
    Timer::DelayedAck,
    Timer::Retransmission,
    Timer::Start,
    Timer::Transfer,
    Timer::Crowd,
    Timer::Crowd,
    Timer::Crowd,
    Timer::Crowd,
];

/// A slot is 2^20 ns long, 1.05 ms.
const SLOT_BITS: u32 = 20;
/// The wheel is 4.3 s long: longer than most timeouts.
const SLOTS: usize = WORD * WORD;
const WORD: usize = u64::BITS as usize;

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    time: Nanos,
    timer: Timer,
    source: u32,
    next: u32,
}

/// Timers that are set.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    /// All that expire up to the end of slot `reached`; time, timer and source in one number, so
    /// that one comparison orders them.
    soon: BinaryHeap<Reverse<u128>>,
    reached: u64,
    /// The first node of each slot after that, and which slots have one: a bit a slot, a bit a word.
    slots: Box<[u32]>,
    filled: [u64; WORD],
    filled_words: u64,
    nodes: Vec<Node>,
    free: u32,
    /// Those that were more than a wheel away when they were set.
    late: BinaryHeap<Reverse<u128>>,
}

fn pack(time: Nanos, timer: Timer, source: u32) -> u128 {
    (u128::from(time) << 64) | ((timer as u128) << 32) | u128::from(source)
}

fn time_of(packed: u128) -> Nanos {
    (packed >> 64) as Nanos
}

impl Timers {
    pub(crate) fn new() -> Self {
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

    /// Sets one.
    pub(crate) fn set(&mut self, timer: Timer, source: u32, time: Nanos) {
        let slot = time >> SLOT_BITS;
        if slot > self.reached && slot - self.reached < SLOTS as u64 {
            return self.wait(slot, Node { time, timer, source, next: NONE });
        }
        let heap = if slot <= self.reached { &mut self.soon } else { &mut self.late };
        heap.push(Reverse(pack(time, timer, source)));
    }

    /// Takes the first, and says when the next one expires, [`LAST`] if there is none.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (Timer, u32, Nanos) {
        if self.soon.is_empty() {
            self.reach_next();
        }
        let Reverse(first) = self.soon.pop().expect("the first was seen");
        if self.soon.is_empty() {
            self.reach_next();
        }
        let next = self.soon.peek().map_or(LAST, |next| time_of(next.0));
        (TIMERS[(first >> 32) as u32 as usize % TIMERS.len()], first as u32, next)
    }

    /// Puts a timer into its slot of the wheel.
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

    /// Goes on to the next slot that has timers, if any has.
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
            self.soon.push(Reverse(pack(node.time, node.timer, node.source)));
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
        }
        self.filled[slot / WORD] &= !(1 << (slot % WORD));
        if self.filled[slot / WORD] == 0 {
            self.filled_words &= !(1 << (slot / WORD));
        }
    }

    /// The next slot of the wheel that has timers; the largest number if none has.
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
        /// They come out by time, then kind, then source, however far away they were set.
        #[test]
        fn the_order_is_that_of_a_heap(
            steps in prop::collection::vec(
                (0_u32..34, 0_u64..1 << 34, 0_usize..4, 0_u32..3, 0_u8..3), 1..400,
            ),
        ) {
            let (mut timers, mut heap) = (Timers::new(), BinaryHeap::new());
            let mut now = 0;
            for (bits, span, timer, source, step) in steps {
                if step < 2 || heap.is_empty() {
                    let time = now + (span & ((1 << bits) - 1));
                    timers.set(TIMERS[timer], source, time);
                    heap.push(Reverse((time, TIMERS[timer], source)));
                } else {
                    let Reverse((time, timer, source)) = heap.pop().unwrap();
                    let next = heap.peek().map_or(LAST, |next| next.0.0);
                    prop_assert_eq!(timers.take(), (timer, source, next));
                    now = time;
                }
            }
            while let Some(Reverse((_, timer, source))) = heap.pop() {
                let next = heap.peek().map_or(LAST, |next| next.0.0);
                prop_assert_eq!(timers.take(), (timer, source, next));
            }
        }
    }
}
