//! Counts of values by group and bucket, per slot of the counters.

/// Number of values of one group in one bucket, in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BucketCount {
    /// Group of the value, for example a link.
    pub group: u32,
    /// Bucket of the value.
    pub bucket: u16,
    /// Number of values.
    pub count: u64,
}

const WORD_BITS: usize = u64::BITS as usize;

/// Counts of one group in the current slot, with 64 buckets per word.
#[derive(Clone, Debug)]
struct OpenCounts<const WORDS: usize> {
    /// Counts by bucket; empty for a group with nothing but zeros.
    counts: Vec<u32>,
    /// Bitmap of the filled buckets.
    filled: [u64; WORDS],
    /// Count of bucket 0, the most frequent one on links without a queue.
    zeros: u32,
}

impl<const WORDS: usize> OpenCounts<WORDS> {
    const EMPTY: Self = Self { counts: Vec::new(), filled: [0; WORDS], zeros: 0 };

    /// Calls `visit` with the buckets and counts of the slot.
    #[inline(always)]
    fn visit_filled(&self, mut visit: impl FnMut(usize, u32)) {
        if self.zeros > 0 {
            visit(0, self.zeros);
        }
        if self.counts.is_empty() {
            return;
        }
        for (from, word) in (0..).step_by(WORD_BITS).zip(&self.filled) {
            let mut rest = *word;
            while rest != 0 {
                let bucket = from + rest.trailing_zeros() as usize;
                visit(bucket, self.counts[bucket]);
                rest &= rest - 1;
            }
        }
    }

    fn clear(&mut self) {
        self.zeros = 0;
        if self.counts.is_empty() {
            return;
        }
        for (counts, word) in self.counts.chunks_mut(WORD_BITS).zip(&mut self.filled) {
            if std::mem::take(word) != 0 {
                counts.fill(0);
            }
        }
    }
}

/// Counts of several groups, per slot. Slots are merged when the slots of the counters are merged.
#[derive(Clone, Debug, Default)]
pub struct CountsBySlot<const WORDS: usize> {
    open: Vec<OpenCounts<WORDS>>,
    closed: Vec<Vec<BucketCount>>,
}

impl<const WORDS: usize> CountsBySlot<WORDS> {
    /// Creates empty counts of some groups.
    #[must_use]
    pub fn new(groups: usize) -> Self {
        Self { open: vec![OpenCounts::EMPTY; groups], closed: Vec::new() }
    }

    /// Whether there are no groups, so that nothing is recorded.
    #[inline(always)]
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.open.is_empty()
    }

    /// Counts a value of a group in a bucket, below 64 times `WORDS`.
    #[inline(always)]
    pub fn count_value(&mut self, group: usize, bucket: usize) {
        let open = &mut self.open[group];
        if bucket == 0 {
            open.zeros += 1;
            return;
        }
        if open.counts.is_empty() {
            open.counts.resize(WORDS * WORD_BITS, 0);
        }
        open.counts[bucket] += 1;
        open.filled[bucket / WORD_BITS] |= 1 << (bucket % WORD_BITS);
    }

    /// Completes the current slot, unless it is the `last` one; `merged`: the counters have merged
    /// each pair of completed slots.
    pub fn advance_slot(&mut self, last: bool, merged: bool) {
        if !self.is_disabled() && !last {
            self.close_slot();
        }
        if merged {
            self.merge_slot_pairs();
        }
    }

    /// Completes the current slot.
    pub(super) fn close_slot(&mut self) {
        let counts = self.open_counts();
        self.open.iter_mut().for_each(OpenCounts::clear);
        self.closed.push(counts);
    }

    /// Merges each pair of completed slots.
    fn merge_slot_pairs(&mut self) {
        let mut slots = std::mem::take(&mut self.closed).into_iter();
        while let Some(counts) = slots.next() {
            self.closed.push(match slots.next() {
                Some(next) => merge_counts(&counts, &next),
                None => counts,
            });
        }
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        *self = Self::new(self.open.len());
    }

    fn open_counts(&self) -> Vec<BucketCount> {
        let last = self.closed.last().map_or(0, Vec::len);
        let mut counts = Vec::with_capacity(last + last / 4);
        for (group, open) in (0..).zip(&self.open) {
            open.visit_filled(|bucket, count| {
                let (bucket, count) = (bucket as u16, u64::from(count));
                counts.push(BucketCount { group, bucket, count });
            });
        }
        counts
    }

    /// Counts of each slot in order; the last slot is the current one.
    #[must_use]
    pub fn counts_by_slot(&self) -> Vec<Vec<BucketCount>> {
        let mut slots = self.closed.clone();
        slots.push(self.open_counts());
        slots
    }
}

/// Merges two sorted lists.
fn merge_counts(slot: &[BucketCount], other: &[BucketCount]) -> Vec<BucketCount> {
    let key = |count: &BucketCount| (count.group, count.bucket);
    let mut sums = Vec::with_capacity(slot.len() + other.len());
    let mut rest = other;
    for count in slot {
        while let Some((next, later)) =
            rest.split_first().filter(|(next, _)| key(next) < key(count))
        {
            sums.push(*next);
            rest = later;
        }
        let mut sum = *count;
        if let Some((next, later)) = rest.split_first().filter(|(next, _)| key(next) == key(count))
        {
            sum.count += next.count;
            rest = later;
        }
        sums.push(sum);
    }
    sums.extend_from_slice(rest);
    sums.shrink_to_fit();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_slots_have_the_sums_of_both() {
        let mut counts = CountsBySlot::<1>::new(2);
        for (slot, group, bucket) in [(0, 0, 7), (0, 1, 0), (1, 0, 7), (2, 1, 0)] {
            while counts.closed.len() < slot {
                counts.close_slot();
            }
            counts.count_value(group, bucket);
        }
        counts.close_slot();
        counts.close_slot();
        counts.merge_slot_pairs();
        let of = |group, bucket, count| BucketCount { group, bucket, count };
        let merged = [vec![of(0, 7, 2), of(1, 0, 1)], vec![of(1, 0, 1)], vec![]];
        assert_eq!(counts.counts_by_slot(), merged);
        counts.clear();
        assert!(counts.counts_by_slot() == [vec![]] && !counts.is_disabled());
    }
}
