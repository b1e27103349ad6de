//! Packets received above a hole.

/// Bitmap of packet numbers above the next expected one.
///
/// The bit index is the number modulo the size of the map, so bits do not move when the window
/// advances. Windows of up to 64 packets need no allocation.
#[derive(Clone, Debug, Default)]
pub struct Reorder {
    near: u64,
    far: Option<Box<[u64]>>,
    held: u32,
}

impl Reorder {
    /// Removes all numbers.
    #[inline(always)]
    pub fn clear(&mut self) {
        if self.held > 0 {
            self.near = 0;
            self.far = None;
            self.held = 0;
        }
    }

    /// Adds `number`, which is above `next`; returns false if it was present.
    pub fn insert(&mut self, next: u32, number: u32) -> bool {
        let span = number - next;
        if self.far.is_none() && span < 64 {
            let bit = 1 << (number % 64);
            let is_new = self.near & bit == 0;
            self.near |= bit;
            self.held += u32::from(is_new);
            return is_new;
        }
        self.reserve(next, span);
        let words = self.far.as_mut().expect("reserved just above");
        let word = &mut words[(number / 64) as usize & (words.len() - 1)];
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.held += u32::from(is_new);
        is_new
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Removes `number`; returns whether it was present.
    #[inline(always)]
    pub fn remove(&mut self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        let word = match &mut self.far {
            None => &mut self.near,
            Some(words) => {
                let index = (number / 64) as usize & (words.len() - 1);
                &mut words[index]
            }
        };
        let was_present = *word & bit != 0;
        *word &= !bit;
        self.held -= u32::from(was_present);
        was_present
    }

    #[cold]
    fn reserve(&mut self, next: u32, span: u32) {
        let held = self.far.as_ref().map_or(1, |words| words.len());
        if self.far.is_some() && (span as usize) < held * 64 {
            return;
        }
        let wanted = (span as usize / 64 + 2).next_power_of_two().max(4);
        let mut larger = vec![0_u64; wanted].into_boxed_slice();
        for ahead in 0..(held * 64) as u32 {
            let number = next + ahead;
            if self.remove(number) {
                larger[(number / 64) as usize & (wanted - 1)] |= 1 << (number % 64);
            }
        }
        self.near = 0;
        self.held = larger.iter().map(|word| word.count_ones()).sum();
        self.far = Some(larger);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn reorder_buffer_behaves_like_a_set(numbers in prop::collection::vec(1_u32..3000, 1..400)) {
            let mut map = Reorder::default();
            let mut set = BTreeSet::new();
            let mut next = 1;
            for number in numbers {
                if number > next {
                    prop_assert_eq!(map.insert(next, number), set.insert(number));
                }
                if number % 3 == 0 {
                    next += 1;
                    while map.remove(next) {
                        prop_assert!(set.remove(&next));
                        next += 1;
                    }
                    set.retain(|held| *held > next);
                }
                prop_assert_eq!(map.is_empty(), set.is_empty());
            }
        }
    }

    #[test]
    fn reorder_buffer_growth_keeps_all_numbers() {
        let mut map = Reorder::default();
        assert!(map.insert(1, 5));
        assert!(map.insert(1, 5000));
        assert!(!map.insert(1, 5000));
        assert!(map.remove(5) && !map.remove(5) && map.remove(5000));
    }
}
