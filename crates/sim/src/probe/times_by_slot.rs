//! Histograms of times per slot of the counters, for percentiles with intervals.

use crate::clock::Nanos;

/// Kind of a time of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// Round-trip sample of a sender.
    Rtt,
    /// One-way delay of a message, round trip of a ping.
    Delay,
    /// Time of a request or of a segment of a stream.
    Latency,
    /// Time of a page with all its objects.
    Page,
    /// Time from the start of a page to the first byte of its document.
    FirstByte,
    /// Time from the start of a page to the whole document.
    FirstObject,
}

/// Names of the kinds, in the order of [`TimeKind`].
pub const TIME_KINDS: [&str; 6] =
    ["rtt", "delay", "latency", "page_time", "first_byte", "first_object"];

/// 32 equal buckets per power of two, for a resolution of 1.6 to 3.1 %.
const BUCKET_BITS: u32 = 5;
const BUCKETS_PER_OCTAVE: usize = 1 << BUCKET_BITS;
/// Number of buckets: up to 2^41 ns, 37 minutes; longer times count in the last bucket.
const BUCKETS: usize = (41 - BUCKET_BITS as usize + 1) * BUCKETS_PER_OCTAVE;

const WORD_BITS: usize = u64::BITS as usize;

/// Bytes of the histogram of a group with times.
pub const TIME_HISTOGRAM_BYTES: usize = BUCKETS * size_of::<u32>();

#[inline]
fn bucket_of(time: Nanos) -> usize {
    if time < BUCKETS_PER_OCTAVE as u64 {
        return time as usize;
    }
    let shift = time.ilog2() - BUCKET_BITS;
    let bucket = ((shift as usize) << BUCKET_BITS) + (time >> shift) as usize;
    bucket.min(BUCKETS - 1)
}

/// Lower limits of all buckets in nanoseconds, and the upper limit of the last one.
#[must_use]
pub fn time_bucket_limits() -> Vec<Nanos> {
    let limit = |bucket: usize| {
        let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
        ((bucket - (shift << BUCKET_BITS)) as Nanos) << shift
    };
    (0..=BUCKETS).map(limit).collect()
}

/// Number of times of one group in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeBucketCount {
    /// Group of the time, for example a link.
    pub group: u32,
    /// Index into [`time_bucket_limits`].
    pub bucket: u16,
    /// Number of times.
    pub count: u64,
}

/// Counts of one group in the current slot.
#[derive(Clone, Debug)]
struct OpenCounts {
    /// Counts by bucket; empty for a group without times.
    counts: Vec<u32>,
    /// Bitmap of the filled buckets.
    filled: [u64; BUCKETS.div_ceil(WORD_BITS)],
    /// Number of times of 0, the most frequent one on links without a queue.
    zeros: u32,
}

impl OpenCounts {
    const EMPTY: Self =
        Self { counts: Vec::new(), filled: [0; BUCKETS.div_ceil(WORD_BITS)], zeros: 0 };

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

/// Counts of the times of several groups, per slot.
#[derive(Clone, Debug, Default)]
pub struct TimesBySlot {
    open: Vec<OpenCounts>,
    closed: Vec<Vec<TimeBucketCount>>,
}

impl TimesBySlot {
    /// Creates empty histograms of some groups.
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

    /// Adds a time to a group.
    #[inline(always)]
    pub fn add_time(&mut self, group: usize, time: Nanos) {
        let open = &mut self.open[group];
        if time == 0 {
            open.zeros += 1;
            return;
        }
        let bucket = bucket_of(time);
        if open.counts.is_empty() {
            open.counts.resize(BUCKETS, 0);
        }
        open.counts[bucket] += 1;
        open.filled[bucket / WORD_BITS] |= 1 << (bucket % WORD_BITS);
    }

    /// Completes the current slot.
    pub fn close_slot(&mut self) {
        let counts = self.open_counts();
        self.open.iter_mut().for_each(OpenCounts::clear);
        self.closed.push(counts);
    }

    /// Merges each pair of completed slots.
    pub fn merge_slot_pairs(&mut self) {
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

    fn open_counts(&self) -> Vec<TimeBucketCount> {
        let last = self.closed.last().map_or(0, Vec::len);
        let mut counts = Vec::with_capacity(last + last / 4);
        for (group, open) in (0..).zip(&self.open) {
            open.visit_filled(|bucket, count| {
                let (bucket, count) = (bucket as u16, u64::from(count));
                counts.push(TimeBucketCount { group, bucket, count });
            });
        }
        counts
    }

    /// Counts of each slot in order; the last slot is the current one.
    #[must_use]
    pub fn counts_by_slot(&self) -> Vec<Vec<TimeBucketCount>> {
        let mut slots = self.closed.clone();
        slots.push(self.open_counts());
        slots
    }
}

/// Merges two sorted lists.
fn merge_counts(slot: &[TimeBucketCount], other: &[TimeBucketCount]) -> Vec<TimeBucketCount> {
    let key = |count: &TimeBucketCount| (count.group, count.bucket);
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
    fn buckets_are_contiguous_and_narrow() {
        let limits = time_bucket_limits();
        assert_eq!((limits[0], limits[40], limits[BUCKETS]), (0, 40, 1 << 41));
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(limits[bucket]), bucket);
            assert_eq!(bucket_of(limits[bucket + 1] - 1), bucket);
            assert!(limits[bucket + 1] - limits[bucket] <= 1.max(limits[bucket] / 32));
        }
        assert_eq!(bucket_of(Nanos::MAX), BUCKETS - 1);
    }

    #[test]
    fn merged_slots_have_the_sums_of_both() {
        let mut times = TimesBySlot::new(2);
        for (slot, group, time) in [(0, 0, 7), (0, 1, 9), (1, 0, 7), (2, 1, 9)] {
            while times.closed.len() < slot {
                times.close_slot();
            }
            times.add_time(group, time);
        }
        times.close_slot();
        times.close_slot();
        times.merge_slot_pairs();
        let count = |group, bucket, count| TimeBucketCount { group, bucket, count };
        let merged = [vec![count(0, 7, 2), count(1, 9, 1)], vec![count(1, 9, 1)], vec![]];
        assert_eq!(times.counts_by_slot(), merged);
        times.clear();
        assert!(times.counts_by_slot() == [vec![]] && !times.is_disabled());
    }
}
