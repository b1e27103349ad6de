//! A histogram of durations with equal relative resolution, for percentiles.

/// Each power of two is cut in 32 equal parts: a percentile is right to about 1.6 %.
const PARTS: u32 = 5;

/// Values that wait to be counted together: counts of thousands of connections are far from each other in memory.
const WAITING: usize = 28;

/// Counts by bucket. What it takes grows with the spread of the values, to 8 KB at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// The buckets of the values that wait.
    waiting: [u16; WAITING],
    waits: u8,
    /// The bucket that `counts` begins with.
    first: u16,
    counts: Vec<u32>,
}

fn bucket(value: u64) -> usize {
    let value = value.max(1 << PARTS);
    let exponent = value.ilog2() - PARTS;
    ((exponent as usize) << PARTS) + (value >> exponent) as usize
}

fn lower_edge(bucket: usize) -> f64 {
    let parts = 1_usize << PARTS;
    let exponent = bucket / parts - 1;
    // Exact: fewer than 64 powers of two, with six digits each.
    (bucket - exponent * parts) as f64 * (1_u64 << exponent) as f64
}

impl Histogram {
    /// Fetches waiting values from memory.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        self.waits.into()
    }

    /// Fetches the count of one of the values that wait; the others are near it.
    #[inline(always)]
    pub(super) fn prefetch_second(&self) -> u64 {
        let place = usize::from(self.waiting[0].wrapping_sub(self.first));
        self.counts.get(place).map_or(0, |count| u64::from(*count))
    }

    /// Counts a value; what is below 32 counts as that.
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        // There are fewer than 2048 buckets.
        self.waiting[usize::from(self.waits)] = bucket(value) as u16;
        self.waits += 1;
        if usize::from(self.waits) == WAITING {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let waiting = self.waiting;
        let waiting = &waiting[..usize::from(self.waits)];
        let (Some(&low), Some(&high)) = (waiting.iter().min(), waiting.iter().max()) else {
            return;
        };
        self.reach(low, high);
        for bucket in waiting {
            let count = &mut self.counts[usize::from(bucket - self.first)];
            *count = count.saturating_add(1);
        }
        self.waits = 0;
    }

    /// Makes room for counts from one bucket to another.
    fn reach(&mut self, low: u16, high: u16) {
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

    /// The values below which these shares lie, in rising order, interpolated in their buckets; `None` when empty.
    pub(super) fn quantiles<const N: usize>(&mut self, shares: [f64; N]) -> Option<[f64; N]> {
        self.settle();
        let total: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let mut found = [0.0; N];
        let (mut below, mut place) = (0_u64, 0);
        for (found, share) in found.iter_mut().zip(shares) {
            let least = share * total as f64;
            // Most buckets hold none of the values that are wanted, and of none nothing is.
            let reached = |upto: u64, count: u32| count > 0 && upto >= (least.ceil() as u64);
            while let Some(&count) = self.counts.get(place) {
                let upto = below + u64::from(count);
                if reached(upto, count) {
                    let bucket = usize::from(self.first) + place;
                    let (low, high) = (lower_edge(bucket), lower_edge(bucket + 1));
                    *found = low + (least - below as f64) / f64::from(count) * (high - low);
                    break;
                }
                (below, place) = (upto, place + 1);
            }
        }
        (total > 0).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_ramp() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantiles([0.5]), None);
        (1..=100_000_u64).rev().for_each(|n| histogram.add(n * 1000));
        let shares = [0.05, 0.5, 0.95, 0.99];
        for (q, found) in shares.into_iter().zip(histogram.quantiles(shares).unwrap()) {
            assert!((found / (1e8 * q) - 1.0).abs() < 0.005, "{found} at {q}");
        }
    }

    #[test]
    fn the_whole_range_takes_little() {
        let mut histogram = Histogram::default();
        (0..64).for_each(|bit| histogram.add(1 << bit));
        histogram.add(u64::MAX);
        let [median] = histogram.quantiles([0.5]).unwrap();
        assert!(histogram.counts.len() <= 2048);
        assert!((31.0..34.0).contains(&median.log2()), "{median}");
    }
}
