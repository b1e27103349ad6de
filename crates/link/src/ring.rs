//! A first-in first-out queue in a ring whose size is a power of two: half the instructions of the
//! standard library's, which every packet pays.

/// The queue; it grows as needed and never shrinks.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    first: usize,
    len: usize,
}

impl<T: Copy> Ring<T> {
    pub fn new() -> Self {
        Self { slots: Vec::new(), first: 0, len: 0 }
    }

    /// How many are in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first, which [`Ring::pop`] takes next.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.first) }
    }

    /// Appends one.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.len == self.slots.len() {
            self.grow(item);
        }
        let last = self.place(self.len);
        self.slots[last] = item;
        self.len += 1;
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = *self.first()?;
        self.first = self.place(1);
        self.len -= 1;
        Some(item)
    }

    /// The slot of the one that is `at` after the first; there is a slot.
    #[inline]
    fn place(&self, at: usize) -> usize {
        (self.first + at) & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        self.slots.rotate_left(self.first);
        self.first = 0;
        self.slots.resize((2 * self.len).max(4), filler);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(pushes in prop::collection::vec(prop::option::of(0_u32..9), 0..300)) {
            let mut ring = Ring::new();
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
                prop_assert_eq!(ring.len(), queue.len());
            }
        }
    }
}
