//! Items by time, then by an order that the caller gives.
//!
//! Most items are less than a second away. They are stored in a timing wheel, to which an item is added
//! in constant time; the items of a slot are sorted when its time is reached. Later items are stored in a
//! heap.

use crate::packet::Packet;
use crate::time::{NEVER, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slot length: 2^18 ns, 262 µs.
const SLOT_BITS: u32 = 18;
const WORD_BITS: usize = u64::BITS as usize;
/// Number of slots: the wheel spans 1.07 s.
const SLOTS: usize = WORD_BITS * WORD_BITS;

/// Number of sorted items from which a further one goes to the heap, because it would move many others.
const MANY: usize = 64;

/// Order of an unused element.
const UNUSED: u64 = u64::MAX;
/// Index of no item.
const NO_INDEX: u32 = u32::MAX;

/// An item of a [`TimingWheel`].
pub trait Timed: Copy {
    /// Time by which the item is sorted.
    fn time(&self) -> Nanos;
}

impl Timed for Nanos {
    #[inline(always)]
    fn time(&self) -> Nanos {
        *self
    }
}

/// A packet in propagation; it reaches the next link or host at `entered`.
impl<T: Copy> Timed for Packet<T> {
    #[inline(always)]
    fn time(&self) -> Nanos {
        self.entered
    }
}

/// Position of an item in the total order: its time and order; then its index in
/// [`TimingWheel::items`].
type Position = (Nanos, u64, u32);

#[derive(Clone, Copy, Debug)]
struct Element<T> {
    item: T,
    order: u64,
    /// Next element of the slot, or next unused element.
    next: u32,
}

/// A priority queue of items by time, then by order.
#[derive(Clone, Debug)]
pub struct TimingWheel<T> {
    items: Vec<Element<T>>,
    /// First unused element of `items`.
    unused: u32,
    /// Items up to the end of slot `reached`, the first one last. Empty only without items.
    soon: Vec<Position>,
    /// Time of the first item; [`NEVER`] if there is none.
    first_time: Nanos,
    reached: u64,
    /// First element of each later slot.
    slots: Box<[u32]>,
    /// Bitmaps of the filled slots, and of the words of this bitmap that are not zero.
    filled: [u64; WORD_BITS],
    filled_words: u64,
    /// Items that were beyond the wheel, or that many others preceded, when they were added.
    late: BinaryHeap<Reverse<Position>>,
    /// Time of the first item of `late`; [`NEVER`] if there is none.
    late_time: Nanos,
}

impl<T> Default for TimingWheel<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            unused: NO_INDEX,
            soon: Vec::new(),
            first_time: NEVER,
            reached: 0,
            slots: vec![NO_INDEX; SLOTS].into_boxed_slice(),
            filled: [0; WORD_BITS],
            filled_words: 0,
            late: BinaryHeap::new(),
            late_time: NEVER,
        }
    }
}

impl<T: Timed> TimingWheel<T> {
    /// Adds an item. Items of one time are sorted by `order`, below the maximum of its type.
    #[inline(always)]
    pub fn push(&mut self, order: u64, item: &T) {
        let index = self.store_item(order, item);
        let slot = item.time() >> SLOT_BITS;
        let ahead = slot.wrapping_sub(self.reached);
        if (1..SLOTS as u64).contains(&ahead) && self.first_time != NEVER {
            self.add_to_slot(slot, index);
        } else {
            self.insert_slowly((item.time(), order, index));
        }
    }

    /// Adds a stored item to a slot after `reached`.
    #[inline(always)]
    fn add_to_slot(&mut self, slot: u64, index: u32) {
        let slot = slot as usize % SLOTS;
        self.items[index as usize].next = std::mem::replace(&mut self.slots[slot], index);
        self.filled[slot / WORD_BITS] |= 1 << (slot % WORD_BITS);
        self.filled_words |= 1 << (slot / WORD_BITS);
    }

    /// Adds a stored item at any time.
    #[inline(never)]
    fn insert_slowly(&mut self, position: Position) {
        let (time, _, index) = position;
        let slot = time >> SLOT_BITS;
        if self.soon.is_empty() {
            self.reached = slot;
        }
        if slot <= self.reached && self.soon.len() < MANY {
            let at = self.soon.partition_point(|other| *other > position);
            self.soon.insert(at, position);
        } else if slot > self.reached && slot - self.reached < SLOTS as u64 {
            self.add_to_slot(slot, index);
        } else {
            self.late.push(Reverse(position));
            self.late_time = self.late_time.min(time);
        }
        self.first_time = self.first_time.min(time);
    }

    /// Time of the first item; [`NEVER`] if there is none.
    #[inline(always)]
    #[must_use]
    pub fn next_time(&self) -> Nanos {
        self.first_time
    }

    /// Takes the first item and its order. The item stays in memory until another one is added.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, &T)> {
        let is_late = self.late_time <= self.first_time;
        let (.., index) = if is_late { self.take_first_of_both()? } else { self.soon.pop()? };
        if self.soon.is_empty() {
            self.advance_to_next_slot();
        }
        let soon = if let [.., (time, ..)] = self.soon[..] { time } else { NEVER };
        self.first_time = soon.min(self.late_time);
        let taken = &mut self.items[index as usize];
        taken.next = std::mem::replace(&mut self.unused, index);
        let order = std::mem::replace(&mut taken.order, UNUSED);
        Some((order, &taken.item))
    }

    /// Takes the first position, which may be in `late`.
    #[inline(never)]
    fn take_first_of_both(&mut self) -> Option<Position> {
        let late = self.late.peek().map(|Reverse(position)| *position)?;
        match self.soon.last() {
            Some(soon) if *soon < late => self.soon.pop(),
            _ => self.take_first_late_position(),
        }
    }

    fn take_first_late_position(&mut self) -> Option<Position> {
        let first = self.late.pop().map(|Reverse(position)| position);
        self.late_time = self.late.peek().map_or(NEVER, |Reverse((time, ..))| *time);
        first
    }

    /// All items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().filter(|element| element.order != UNUSED).map(|element| &element.item)
    }

    /// Stores an item in unused memory, if there is any; returns its index.
    #[inline(always)]
    fn store_item(&mut self, order: u64, item: &T) -> u32 {
        let index = self.unused;
        match self.items.get_mut(index as usize) {
            Some(unused) => {
                self.unused = unused.next;
                *unused = Element { item: *item, order, next: NO_INDEX };
                index
            }
            None => self.store_item_at_end(order, item),
        }
    }

    #[cold]
    fn store_item_at_end(&mut self, order: u64, item: &T) -> u32 {
        self.items.push(Element { item: *item, order, next: NO_INDEX });
        self.items.len() as u32 - 1
    }

    /// Advances to the next slot with items, if any.
    fn advance_to_next_slot(&mut self) {
        let slot = self.next_filled_slot();
        self.reached = slot.unwrap_or(u64::MAX).min(self.late_time >> SLOT_BITS);
        if slot == Some(self.reached) {
            self.take_items_of_slot(self.reached as usize % SLOTS);
        }
        while self.late_time >> SLOT_BITS <= self.reached {
            let Some(position) = self.take_first_late_position() else { break };
            self.soon.push(position);
        }
        if self.soon.len() > 1 {
            self.soon.sort_unstable_by(|position, other| other.cmp(position));
        }
    }

    /// Returns the first filled slot after `reached`.
    #[inline]
    fn next_filled_slot(&self) -> Option<u64> {
        if self.filled_words == 0 {
            return None;
        }
        let begin = (self.reached as usize + 1) % SLOTS;
        let (word, bit) = (begin / WORD_BITS, begin % WORD_BITS);
        let rest = self.filled[word] & (u64::MAX << bit);
        let slot = if rest == 0 {
            // The first word may also contain slots beyond the end of the wheel, seen last.
            let words = self.filled_words.rotate_right(word as u32 + 1);
            let word = (word + 1 + words.trailing_zeros() as usize) % WORD_BITS;
            word * WORD_BITS + self.filled[word].trailing_zeros() as usize
        } else {
            word * WORD_BITS + rest.trailing_zeros() as usize
        };
        Some(self.reached + 1 + ((slot + SLOTS - begin) % SLOTS) as u64)
    }

    fn take_items_of_slot(&mut self, slot: usize) {
        let mut index = std::mem::replace(&mut self.slots[slot], NO_INDEX);
        while let Some(element) = self.items.get(index as usize) {
            self.soon.push((element.item.time(), element.order, index));
            index = element.next;
        }
        self.filled[slot / WORD_BITS] &= !(1 << (slot % WORD_BITS));
        if self.filled[slot / WORD_BITS] == 0 {
            self.filled_words &= !(1 << (slot / WORD_BITS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Items leave in the total order, whatever the distance between now and their times.
        #[test]
        fn items_are_sorted(
            steps in prop::collection::vec((0_u32..36, any::<u64>(), 0_u64..4, 0_usize..4), 1..400),
        ) {
            let (mut wheel, mut sorted) = (TimingWheel::default(), BTreeSet::new());
            let mut now = 0;
            for (number, (bits, random, rank, pops)) in (0..).zip(steps) {
                let (time, order) = (now + random % (1 << bits), rank << 32 | number);
                wheel.push(order, &time);
                sorted.insert((time, order));
                for _ in 0..pops.min(sorted.len()) {
                    let (time, order) = sorted.pop_first().unwrap();
                    prop_assert_eq!(wheel.next_time(), time);
                    prop_assert_eq!(wheel.pop(), Some((order, &time)));
                    now = time;
                }
                prop_assert_eq!(wheel.iter().count(), sorted.len());
                prop_assert_eq!(wheel.next_time(), sorted.first().map_or(NEVER, |next| next.0));
            }
        }

        /// Items of few slots, of which many precede others.
        #[test]
        fn crowded_items_are_sorted(
            steps in prop::collection::vec((0_u64..1 << 20, prop::bool::weighted(0.3)), 200..900),
        ) {
            let (mut wheel, mut sorted) = (TimingWheel::default(), BTreeSet::new());
            let mut now = 0;
            for (order, (ahead, pops)) in (0..).zip(steps) {
                wheel.push(order, &(now + ahead));
                sorted.insert((now + ahead, order));
                if pops {
                    let (time, order) = sorted.pop_first().unwrap();
                    prop_assert_eq!(wheel.pop(), Some((order, &time)));
                    now = time;
                }
            }
            while let Some((time, order)) = sorted.pop_first() {
                prop_assert_eq!(wheel.pop(), Some((order, &time)));
            }
            prop_assert_eq!(wheel.pop(), None);
            prop_assert_eq!(wheel.next_time(), NEVER);
        }
    }

    #[test]
    fn memory_is_reused() {
        let mut wheel = TimingWheel::default();
        for time in 0..1000_u64 {
            wheel.push(time, &(time << 20));
            if time >= 3 {
                wheel.pop();
            }
        }
        assert_eq!(wheel.items.len(), 4);
        assert_eq!(size_of::<Element<Packet<[u32; 5]>>>(), 56);
    }
}
