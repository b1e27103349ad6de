//! A FIFO queue in a ring buffer whose capacity is a power of two.
//!
//! Push and pop take half the instructions of `VecDeque`; they run for each packet.

/// A FIFO ring buffer, which grows as needed and never shrinks.
#[derive(Clone, Debug)]
pub struct RingBuffer<T> {
    slots: Vec<T>,
    /// Number of slots minus one.
    mask: usize,
    first: usize,
    len: usize,
}

impl<T> Default for RingBuffer<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), mask: 0, first: 0, len: 0 }
    }
}

impl<T: Copy> RingBuffer<T> {
    /// Number of items.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the queue is empty.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first item, which [`RingBuffer::pop_existing`] returns next.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.first) }
    }

    /// The item at `index`, counted from the first item.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.len { self.slots.get(self.slot_of(index)) } else { None }
    }

    /// Appends an item.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        if self.len == self.slots.len() {
            self.grow(item);
        }
        let slot = self.slot_of(self.len);
        self.slots[slot] = item;
        self.len += 1;
    }

    /// Removes and returns the first item, if there is one.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        (self.len > 0).then(|| self.pop_existing())
    }

    /// Removes and returns the first item, which must exist.
    #[inline(always)]
    pub fn pop_existing(&mut self) -> T {
        let item = self.slots[self.first];
        self.first = self.slot_of(1);
        self.len -= 1;
        item
    }

    /// Replaces the item at `index` and returns the old item; [`None`] if there is no such item.
    #[inline]
    pub fn replace_at(&mut self, index: usize, item: T) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let slot = self.slot_of(index);
        Some(std::mem::replace(&mut self.slots[slot], item))
    }

    /// Iterates over all items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.iter_from(0)
    }

    /// Iterates over the items from `index` onwards, in constant time for the skipped items.
    pub fn iter_from(&self, index: usize) -> impl DoubleEndedIterator<Item = &T> {
        (index..self.len).map(|index| &self.slots[self.slot_of(index)])
    }

    #[inline(always)]
    fn slot_of(&self, index: usize) -> usize {
        (self.first + index) & self.mask
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        self.slots.rotate_left(self.first);
        self.slots.resize((2 * self.len).max(4), filler);
        self.mask = self.slots.len() - 1;
        self.first = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn ring_behaves_like_vec_deque(pushes in prop::collection::vec(prop::option::of(0_u32..9), 0..300)) {
            let mut ring = RingBuffer::default();
            let mut queue = VecDeque::new();
            for push in pushes {
                match push {
                    Some(item) => {
                        ring.push(item);
                        queue.push_back(item);
                    }
                    None => prop_assert_eq!(ring.pop(), queue.pop_front()),
                }
                prop_assert_eq!(ring.first(), queue.front());
                prop_assert!(ring.len() == queue.len() && ring.iter().eq(queue.iter()));
            }
        }
    }
}
