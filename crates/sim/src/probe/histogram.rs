//! A histogram with equal relative resolution, for percentiles.

use crate::merge::{Merge, merge_fields};

/// 64 equal buckets per power of two: percentiles have an error of about 0.8 %.
#[derive(Clone, Debug, Default)]
pub struct LogHistogram {
    counts: Vec<u64>,
    total: u64,
}

/// Bits of a double below the exponent and the first 6 bits of the mantissa.
const MANTISSA_SHIFT: u32 = 52 - 6;
/// Upper bits of 2^-40, the lower limit of bucket 0.
const FIRST_BUCKET_BITS: u64 = (1023 - 40) << 6;

impl LogHistogram {
    /// Counts a positive value; values below 2^-40 count in bucket 0.
    #[inline]
    pub fn add_value(&mut self, value: f64) {
        let bucket = (value.to_bits() >> MANTISSA_SHIFT).saturating_sub(FIRST_BUCKET_BITS) as usize;
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.extend_to_bucket(bucket),
        }
        self.total += 1;
    }

    #[cold]
    fn extend_to_bucket(&mut self, bucket: usize) {
        self.counts.resize(bucket + 1, 0);
        self.counts[bucket] = 1;
    }

    /// Sum of several histograms.
    #[must_use]
    pub fn sum_of(histograms: &[Self]) -> Self {
        let mut sum = Self::default();
        histograms.iter().for_each(|each| sum.merge(each));
        sum
    }

    /// Quantile `q`, interpolated within its bucket; `None` if the histogram is empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = q * self.total as f64;
        let mut below = 0.0;
        for (bucket, count) in self.counts.iter().enumerate() {
            let count = *count as f64;
            if count > 0.0 && below + count >= wanted {
                let inside = (wanted - below) / count;
                return Some(
                    bucket_edge(bucket) + inside * (bucket_edge(bucket + 1) - bucket_edge(bucket)),
                );
            }
            below += count;
        }
        None
    }

    /// Upper limit and count of each non-empty bucket.
    pub fn filled_buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| (bucket_edge(bucket + 1), *count))
    }
}

merge_fields!(LogHistogram { counts, total });

/// Lower limit of a bucket.
fn bucket_edge(bucket: usize) -> f64 {
    f64::from_bits((bucket as u64 + FIRST_BUCKET_BITS) << MANTISSA_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_returns_non_empty_buckets() {
        let mut histogram = LogHistogram::default();
        [1.0, 1.0, 3.0].into_iter().for_each(|value| histogram.add_value(value));
        let buckets: Vec<(f64, u64)> = histogram.filled_buckets().collect();
        assert_eq!(buckets, [(1.0 + 1.0 / 64.0, 2), (3.0 + 2.0 / 64.0, 1)]);
    }

    #[test]
    fn quantiles_of_uniform_values_are_interpolated() {
        let mut histogram = LogHistogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=100_000).for_each(|n| histogram.add_value(f64::from(n) * 1e-3));
        for q in [0.05, 0.5, 0.95, 0.99] {
            let value = histogram.quantile(q).unwrap();
            assert!((value / (100.0 * q) - 1.0).abs() < 0.002, "{value} at {q}");
        }
    }
}
