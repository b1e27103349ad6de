//! A first-in first-out queue in a ring whose size is a power of two: half the instructions of the
//! standard library's, which every packet pays.

/// The queue; it grows as needed and never shrinks.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Vec<T>,
    /// The number of slots less one.
    mask: usize,
    first: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), mask: 0, first: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// How many are in it.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first, which [`Ring::take`] takes next.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.first) }
    }

    /// The one that is `place` after the first, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&T> {
        if place < self.len { self.slots.get(self.place(place)) } else { None }
    }

    /// What was in the place where the next one goes, if it has been used: whoever reads it has the place
    /// at hand.
    #[inline(always)]
    #[must_use]
    pub fn next_place(&self) -> Option<&T> {
        self.slots.get(self.place(self.len))
    }

    /// Appends one.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        if self.len == self.slots.len() {
            self.grow(item);
        }
        let place = self.place(self.len);
        self.slots[place] = item;
        self.len += 1;
    }

    /// Inserts `item` in front of the last items that `is_later` holds for. Returns its place, or
    /// `None` if it was not inserted because more than `reach` items would move.
    #[inline(always)]
    pub fn insert(
        &mut self,
        item: T,
        reach: usize,
        is_later: impl Fn(&T) -> bool,
    ) -> Option<usize> {
        if self.len > reach && is_later(&self.slots[self.place(self.len - 1 - reach)]) {
            return None;
        }
        self.push(item);
        let mut at = self.len - 1;
        let mut slot = self.place(at);
        while at > 0 {
            let from = slot.wrapping_sub(1) & self.mask;
            let before = self.slots[from];
            if !is_later(&before) {
                break;
            }
            self.slots[slot] = before;
            (slot, at) = (from, at - 1);
        }
        self.slots[slot] = item;
        Some(at)
    }

    /// Takes the first ones, the last of which is told; `places` are before that, and it is there.
    #[inline(always)]
    pub fn take_up_to(&mut self, places: usize) -> &T {
        let at = self.place(places);
        self.first = self.place(places + 1);
        self.len -= places + 1;
        self.rewind();
        &self.slots[at]
    }

    /// Takes the first, if there is one.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        (self.len > 0).then(|| self.take())
    }

    /// Takes the first; there must be one.
    #[inline(always)]
    pub fn take(&mut self) -> T {
        let item = self.slots[self.first];
        self.first = self.place(1);
        self.len -= 1;
        item
    }

    /// The same, left in its place until another one is appended.
    #[inline(always)]
    pub fn take_in_place(&mut self) -> &mut T {
        let at = self.first;
        self.first = self.place(1);
        self.len -= 1;
        self.rewind();
        &mut self.slots[at]
    }

    /// If none is in it, the next one goes to where the first one was: a queue that is mostly empty then
    /// needs one place of memory, and not all of them in turn.
    #[inline(always)]
    pub fn rewind(&mut self) {
        if self.len == 0 {
            self.first = 0;
        }
    }

    /// Puts `item` in the place of the one that is `place` after the first; [`None`] if there is none.
    #[inline]
    pub fn replace(&mut self, place: usize, item: T) -> Option<T> {
        if place >= self.len {
            return None;
        }
        let slot = self.place(place);
        Some(std::mem::replace(&mut self.slots[slot], item))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.iter_from(0)
    }

    /// Items from `place` on, in order; skipping the items before it takes no time.
    pub fn iter_from(&self, place: usize) -> impl DoubleEndedIterator<Item = &T> {
        (place..self.len).map(|at| &self.slots[self.place(at)])
    }

    #[inline(always)]
    fn place(&self, at: usize) -> usize {
        (self.first + at) & self.mask
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
        fn items_are_inserted_anywhere_and_across_the_end_of_the_ring(
            steps in prop::collection::vec(prop::option::weighted(0.7, (0_u32..20, 0_usize..9)), 0..200),
        ) {
            let mut ring = Ring::default();
            let mut queue = VecDeque::new();
            for (number, step) in steps.into_iter().enumerate() {
                if let Some((time, reach)) = step {
                    let place = queue.partition_point(|(before, _)| *before <= time);
                    let inserts = queue.len() - place <= reach;
                    let found = ring.insert((time, number), reach, |(other, _)| *other > time);
                    prop_assert_eq!(found, inserts.then_some(place));
                    if inserts {
                        queue.insert(place, (time, number));
                    }
                } else {
                    prop_assert_eq!(ring.pop(), queue.pop_front());
                }
                prop_assert!(ring.len() == queue.len() && ring.iter().eq(queue.iter()));
                prop_assert!(ring.iter_from(3).eq(queue.iter().skip(3)));
            }
        }

        #[test]
        fn it_is_a_queue(pushes in prop::collection::vec(prop::option::of(0_u32..9), 0..300)) {
            let mut ring = Ring::default();
            let mut queue = VecDeque::new();
            for push in pushes {
                match push {
                    Some(item) => {
                        ring.push(item);
                        queue.push_back(item);
                    }
                    None if queue.len() % 2 == 1 => {
                        prop_assert_eq!(Some(*ring.take_in_place()), queue.pop_front());
                    }
                    None => prop_assert_eq!(ring.pop(), queue.pop_front()),
                }
                ring.rewind();
                prop_assert_eq!(ring.first(), queue.front());
                prop_assert!(ring.len() == queue.len() && ring.iter().eq(queue.iter()));
            }
        }
    }
}
