//! Histograms of times per slot of the counters, for percentiles with intervals.

use super::counts_by_slot::CountsBySlot;
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
    /// Time from the start of a page to the last byte of its document.
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

/// Histograms of the times of several groups, per slot.
pub type TimesBySlot = CountsBySlot<{ BUCKETS.div_ceil(u64::BITS as usize) }>;

impl TimesBySlot {
    /// Adds a time to a group.
    #[inline(always)]
    pub fn add_time(&mut self, group: usize, time: Nanos) {
        self.count_value(group, bucket_of(time));
    }
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
}
