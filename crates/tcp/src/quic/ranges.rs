//! Sets of packet numbers or bytes, as sorted disjoint ranges.

use crate::modern::SackBlock;

/// A set of integers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RangeSet(Vec<SackBlock>);

impl RangeSet {
    /// Adds a range; returns whether any of it is new.
    #[inline]
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        match self.0.last_mut() {
            Some(last) if last.end == start => {
                last.end = end;
                true
            }
            Some(last) if last.end < start => {
                self.0.push(SackBlock { start, end });
                true
            }
            None => {
                self.0.push(SackBlock { start, end });
                true
            }
            Some(_) => self.insert_among(start, end),
        }
    }

    fn insert_among(&mut self, start: u64, end: u64) -> bool {
        let from = self.0.partition_point(|range| range.end < start);
        let to = self.0.partition_point(|range| range.start <= end);
        let mut merged = SackBlock { start, end };
        if from < to {
            if self.0[from].contains(merged) {
                return false;
            }
            merged.start = merged.start.min(self.0[from].start);
            merged.end = merged.end.max(self.0[to - 1].end);
        }
        self.0.splice(from..to, [merged]);
        true
    }

    /// Removes a range.
    pub fn remove(&mut self, start: u64, end: u64) {
        let from = self.0.partition_point(|range| range.end <= start);
        let to = self.0.partition_point(|range| range.start < end);
        if from >= to {
            return;
        }
        let below = SackBlock { start: self.0[from].start, end: start };
        let above = SackBlock { start: end, end: self.0[to - 1].end };
        let left = [below, above].into_iter().filter(|range| range.start < range.end);
        self.0.splice(from..to, left);
    }

    /// Removes everything below a number.
    pub fn remove_below(&mut self, end: u64) {
        if self.0.first().is_some_and(|range| range.start < end) {
            self.remove(0, end);
        }
    }

    /// Removes and returns the lowest numbers, at most `max` of them.
    pub fn take_first(&mut self, max: u64) -> Option<SackBlock> {
        let first = self.0.first_mut()?;
        let taken = SackBlock { start: first.start, end: first.end.min(first.start + max) };
        first.start = taken.end;
        if first.start == first.end {
            self.0.remove(0);
        }
        Some(taken)
    }

    /// Removes the lowest ranges until at most `max` are left.
    pub fn keep_highest(&mut self, max: usize) {
        if self.0.len() > max {
            self.0.drain(..self.0.len() - max);
        }
    }

    /// Ranges in ascending order.
    #[inline]
    pub fn ranges(&self) -> &[SackBlock] {
        &self.0
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all numbers.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_equal_a_set_of_numbers() {
        let (mut ranges, mut numbers) = (RangeSet::default(), BTreeSet::new());
        let mut state = 7_u64;
        for step in 0..4000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (start, len) = ((state >> 40) % 60, (state >> 33) % 9 + 1);
            match step % 3 {
                0 => {
                    ranges.remove(start, start + len);
                    numbers.retain(|number| !(start..start + len).contains(number));
                }
                1 if step % 30 == 1 => {
                    let taken = ranges.take_first(len);
                    let expected = numbers.first().copied();
                    assert_eq!(taken.map(|range| range.start), expected);
                    if let Some(range) = taken {
                        numbers.retain(|number| *number >= range.end);
                    }
                }
                _ => {
                    let is_new = (start..start + len).any(|number| !numbers.contains(&number));
                    assert_eq!(ranges.insert(start, start + len), is_new);
                    numbers.extend(start..start + len);
                }
            }
            let listed: Vec<u64> =
                ranges.ranges().iter().flat_map(|range| range.start..range.end).collect();
            assert_eq!(listed, numbers.iter().copied().collect::<Vec<_>>());
            assert!(ranges.ranges().windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
