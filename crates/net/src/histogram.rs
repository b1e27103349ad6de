//! Histogram of times with buckets of an eighth of an octave.

use tcpcast_link::Nanos;

const BUCKETS_PER_OCTAVE: usize = 8;
const OCTAVES: usize = 61;

/// Counts of times with a resolution of 12 %.
#[derive(Clone, Debug)]
pub struct TimeHistogram {
    counts: Box<[u64; BUCKETS_PER_OCTAVE * OCTAVES + BUCKETS_PER_OCTAVE]>,
    count: u64,
    sum: u128,
    max: Nanos,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self {
            counts: Box::new([0; BUCKETS_PER_OCTAVE * OCTAVES + BUCKETS_PER_OCTAVE]),
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

fn bucket_of(time: Nanos) -> usize {
    if time < BUCKETS_PER_OCTAVE as u64 {
        return time as usize;
    }
    let octave = time.ilog2() as usize;
    let piece = (time >> (octave - 3)) as usize & (BUCKETS_PER_OCTAVE - 1);
    (octave - 2) * BUCKETS_PER_OCTAVE + piece
}

/// Smallest time beyond a bucket.
fn bucket_end(bucket: usize) -> Nanos {
    let (octave, piece) = (bucket / BUCKETS_PER_OCTAVE, bucket % BUCKETS_PER_OCTAVE);
    if octave == 0 {
        bucket as Nanos + 1
    } else {
        ((BUCKETS_PER_OCTAVE + piece + 1) as Nanos) << (octave - 1)
    }
}

impl TimeHistogram {
    /// Adds a time.
    #[inline]
    pub fn add_time(&mut self, time: Nanos) {
        self.counts[bucket_of(time)] += 1;
        self.count += 1;
        self.sum += u128::from(time);
        self.max = self.max.max(time);
    }

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean; 0 if empty.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        (self.sum / u128::from(self.count.max(1))) as Nanos
    }

    /// Maximum; 0 if empty.
    #[must_use]
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Returns a quantile, rounded up to the end of a bucket; 0 if empty.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Nanos {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return (bucket_end(at) - 1).min(self.max);
            }
        }
        self.max
    }

    /// Number of times above `time`, to within a bucket.
    #[must_use]
    pub fn count_above(&self, time: Nanos) -> u64 {
        self.counts[bucket_of(time) + 1..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        for at in 1..BUCKETS_PER_OCTAVE * OCTAVES {
            assert_eq!(bucket_of(bucket_end(at - 1)), at);
            assert_eq!(bucket_of(bucket_end(at) - 1), at);
        }
        assert!(bucket_of(Nanos::MAX) < BUCKETS_PER_OCTAVE * OCTAVES + BUCKETS_PER_OCTAVE);
    }

    #[test]
    fn quantiles_are_within_an_eighth() {
        let mut times = TimeHistogram::default();
        (1..=1000).for_each(|time| times.add_time(time * 1000));
        assert_eq!((times.count(), times.mean(), times.max()), (1000, 500_500, 1_000_000));
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let quantile = times.quantile(share) as f64;
            assert!(quantile >= exact && quantile <= exact * 1.13, "{quantile}");
        }
        assert_eq!((times.quantile(1.0), times.count_above(2_000_000)), (1_000_000, 0));
        assert!(times.count_above(500_000).abs_diff(500) < 60);
        assert_eq!(TimeHistogram::default().quantile(0.5), 0);
    }
}
