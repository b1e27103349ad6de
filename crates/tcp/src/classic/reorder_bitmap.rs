//! Packets received above a hole.

/// Bitmap of packet numbers above the next expected one.
///
/// The bit index is the number modulo the size of the map, so bits do not move when the window
/// advances. Windows of up to 64 packets need no allocation.
#[derive(Clone, Debug, Default)]
pub struct ReorderBitmap {
    near: u64,
    far: Option<Box<[u64]>>,
    held: u32,
}

impl ReorderBitmap {
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
    pub fn insert_number(&mut self, next: u32, number: u32) -> bool {
        let span = number - next;
        if self.far.is_none() && span < 64 {
            let bit = 1 << (number % 64);
            let is_new = self.near & bit == 0;
            self.near |= bit;
            self.held += u32::from(is_new);
            return is_new;
        }
        self.grow_to_span(next, span);
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
    pub fn remove_number(&mut self, number: u32) -> bool {
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
    fn grow_to_span(&mut self, next: u32, span: u32) {
        let held = self.far.as_ref().map_or(1, |words| words.len());
        if self.far.is_some() && (span as usize) < held * 64 {
            return;
        }
        let wanted = (span as usize / 64 + 2).next_power_of_two().max(4);
        let mut larger = vec![0_u64; wanted].into_boxed_slice();
        for ahead in 0..(held * 64) as u32 {
            let number = next + ahead;
            if self.remove_number(number) {
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
        fn behaves_like_a_set(numbers in prop::collection::vec(1_u32..3000, 1..400)) {
            let mut map = ReorderBitmap::default();
            let mut set = BTreeSet::new();
            let mut next = 1;
            for number in numbers {
                if number > next {
                    prop_assert_eq!(map.insert_number(next, number), set.insert(number));
                }
                if number % 3 == 0 {
                    next += 1;
                    while map.remove_number(next) {
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
    fn growth_keeps_all_numbers() {
        let mut map = ReorderBitmap::default();
        assert!(map.insert_number(1, 5));
        assert!(map.insert_number(1, 5000));
        assert!(!map.insert_number(1, 5000));
        assert!(map.remove_number(5) && !map.remove_number(5) && map.remove_number(5000));
    }
}
