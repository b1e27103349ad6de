//! Histogram of durations with constant relative resolution, for percentiles.

/// Each power of two is divided into 2^5 = 32 buckets, so percentiles are accurate to about 1.6 %.
const BUCKET_BITS: u32 = 5;

/// Number of values buffered before counting, because the counters of thousands of connections do
/// not fit into the cache.
const BUFFER_SIZE: usize = 28;

/// Counters by bucket. Memory grows with the spread of the values, up to 8 KB.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Buckets of the buffered values.
    buffer: [u16; BUFFER_SIZE],
    buffered: u8,
    /// First bucket of `counts`.
    first: u16,
    counts: Vec<u32>,
}

fn bucket_of(value: u64) -> usize {
    let value = value.max(1 << BUCKET_BITS);
    let exponent = value.ilog2() - BUCKET_BITS;
    ((exponent as usize) << BUCKET_BITS) + (value >> exponent) as usize
}

fn lower_edge(bucket: usize) -> f64 {
    let parts = 1_usize << BUCKET_BITS;
    let exponent = bucket / parts - 1;
    // Exact: the product of a number of six bits and a power of two below 64.
    (bucket - exponent * parts) as f64 * (1_u64 << exponent) as f64
}

/// Returns the value at a share of the width of a bucket.
fn value_in_bucket(bucket: usize, share: f64) -> f64 {
    let (low, high) = (lower_edge(bucket), lower_edge(bucket + 1));
    low + share * (high - low)
}

impl Histogram {
    /// Adds a value; values below 32 count as 32.
    #[inline]
    pub(super) fn add_value(&mut self, value: u64) {
        // There are fewer than 2048 buckets.
        self.buffer[usize::from(self.buffered)] = bucket_of(value) as u16;
        self.buffered += 1;
        if usize::from(self.buffered) == BUFFER_SIZE {
            self.flush_buffer();
        }
    }

    fn flush_buffer(&mut self) {
        let buffer = self.buffer;
        let buffer = &buffer[..usize::from(self.buffered)];
        let (Some(&low), Some(&high)) = (buffer.iter().min(), buffer.iter().max()) else {
            return;
        };
        self.extend_to_buckets(low, high);
        for bucket in buffer {
            let count = &mut self.counts[usize::from(bucket - self.first)];
            *count = count.saturating_add(1);
        }
        self.buffered = 0;
    }

    /// Extends the counters to the buckets from `low` to `high`.
    fn extend_to_buckets(&mut self, low: u16, high: u16) {
        if self.counts.is_empty() {
            self.first = low;
        } else if low < self.first {
            let missing = usize::from(self.first - low);
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = low;
        }
        let length = usize::from(high - self.first) + 1;
        if length > self.counts.len() {
            self.counts.resize(length, 0);
        }
    }

    /// Returns the quantiles for `shares`, in increasing order, interpolated within buckets; `None`
    /// if empty.
    pub(super) fn quantiles<const N: usize>(&mut self, shares: [f64; N]) -> Option<[f64; N]> {
        if self.counts.is_empty() {
            return self.quantiles_of_buffer(shares);
        }
        self.flush_buffer();
        let total: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let mut quantiles = [0.0; N];
        let (mut below, mut index) = (0_u64, 0);
        for (quantile, share) in quantiles.iter_mut().zip(shares) {
            let rank = share * total as f64;
            // Most buckets contain no requested quantile; empty buckets contain none.
            let reached = |upto: u64, count: u32| count > 0 && upto >= (rank.ceil() as u64);
            while let Some(&count) = self.counts.get(index) {
                let upto = below + u64::from(count);
                if reached(upto, count) {
                    let bucket = usize::from(self.first) + index;
                    *quantile = value_in_bucket(bucket, (rank - below as f64) / f64::from(count));
                    break;
                }
                (below, index) = (upto, index + 1);
            }
        }
        (total > 0).then_some(quantiles)
    }

    /// Returns the quantiles of few values, without counters.
    fn quantiles_of_buffer<const N: usize>(&mut self, shares: [f64; N]) -> Option<[f64; N]> {
        let values = &mut self.buffer[..usize::from(self.buffered)];
        values.sort_unstable();
        let values = &*values;
        let quantile = |share: f64| {
            let rank = share * values.len() as f64;
            let bucket = values[(rank.ceil() as usize).clamp(1, values.len()) - 1];
            let below = values.partition_point(|value| *value < bucket);
            let count = values.partition_point(|value| *value <= bucket) - below;
            value_in_bucket(usize::from(bucket), (rank - below as f64) / count as f64)
        };
        (!values.is_empty()).then(|| shares.map(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_ramp_are_accurate() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantiles([0.5]), None);
        (1..=100_000_u64).rev().for_each(|n| histogram.add_value(n * 1000));
        let shares = [0.05, 0.5, 0.95, 0.99];
        for (q, quantile) in shares.into_iter().zip(histogram.quantiles(shares).unwrap()) {
            assert!((quantile / (1e8 * q) - 1.0).abs() < 0.005, "{quantile} at {q}");
        }
    }

    #[test]
    fn few_values_have_the_quantiles_of_their_counters() {
        for length in 1..BUFFER_SIZE as u64 {
            let values = (0..length).map(|n| (1 + n * n % 7) * 1000 * (1 + n % 3));
            let [mut buffered, mut counted] = [Histogram::default(), Histogram::default()];
            for value in values {
                buffered.add_value(value);
                counted.add_value(value);
                counted.flush_buffer();
            }
            let shares = [0.01, 0.05, 0.5, 0.95, 0.99];
            assert_eq!(buffered.quantiles(shares), counted.quantiles(shares));
        }
    }

    #[test]
    fn quantiles_cover_full_range_in_limited_memory() {
        let mut histogram = Histogram::default();
        (0..64).for_each(|bit| histogram.add_value(1 << bit));
        histogram.add_value(u64::MAX);
        let [median] = histogram.quantiles([0.5]).unwrap();
        assert!(histogram.counts.len() <= 2048);
        assert!((31.0..34.0).contains(&median.log2()), "{median}");
    }
}
