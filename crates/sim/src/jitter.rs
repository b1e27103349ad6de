//! Random delays: configuration of the jitter of links, and processing delays of hosts.

use crate::clock::Nanos;
use crate::random::{NamedStream, RandomSource, RandomStream, StreamPurpose, mix_bits};
use crate::traffic::Distribution;
use serde::Deserialize;
use std::f64::consts::LN_2;

/// Configuration of the jitter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterConfig {
    /// Distribution of the delay in seconds.
    pub delay: Distribution,
    /// Whether packets with a shorter delay overtake others; otherwise each packet waits for the
    /// earlier packets.
    pub reorder: bool,
}

/// Processing delays of the hosts of a class: an exponential time per packet or timer.
///
/// The delay is computed from a hash of the source and time, so that sources need not store a
/// generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostProcessingDelay {
    /// Nanoseconds per halving of a uniform number, as fixed-point number with [`FRACTION_BITS`]
    /// bits.
    scale: u64,
    key: u64,
}

impl HostProcessingDelay {
    /// Creates processing delays with this mean; `None` if it is 0.
    pub(crate) fn new(mean: Nanos, seed: u64, replication: u32, class: u32) -> Option<Self> {
        let key = RandomStream::for_entity(seed, replication, class, StreamPurpose::HostNoise)
            .next_bits();
        let scale = (mean as f64 * LN_2 * FIXED_POINT_ONE) as u64;
        (mean > 0).then_some(Self { scale, key })
    }

    /// Processing delay of a receiver for a packet that arrives at `at`, plus the processing delay
    /// of the sender for the acknowledgement; at least 1 ns.
    #[inline(always)]
    pub(crate) fn delay_of_both_hosts(&self, source: u32, at: Nanos) -> Nanos {
        let bits = self.hash_bits(source, at);
        self.exponential_delay((bits >> 32 | 1) * u64::from(bits as u32 | 1)) + 1
    }

    /// Processing delay of a timer that expires at `at`.
    #[inline(always)]
    pub(crate) fn timer_delay(&self, source: u32, at: Nanos) -> Nanos {
        self.exponential_delay(self.hash_bits(source, !at) | 1)
    }

    /// Exponential delay for a uniform number; sum of two exponential delays for the product of two
    /// uniform numbers.
    #[inline(always)]
    fn exponential_delay(&self, number: u64) -> Nanos {
        ((u128::from(self.scale) * u128::from(negative_log2(number))) >> (2 * FRACTION_BITS))
            as Nanos
    }

    #[inline(always)]
    fn hash_bits(&self, source: u32, at: Nanos) -> u64 {
        mix_bits(self.key.wrapping_add(u64::from(source).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ at)
    }
}

/// Fractional bits of fixed-point numbers, and 1.0 as such a number.
const FRACTION_BITS: u32 = 31;
const FIXED_POINT_ONE: f64 = (1_u64 << FRACTION_BITS) as f64;

/// Negative logarithm to base 2 of `number` / 2^64; `number` must not be 0.
///
/// Approximates the logarithm of the mantissa by a cubic, with an error below 0.0016, in 1/6 of the
/// time of `libm`.
#[inline(always)]
fn negative_log2(number: u64) -> u64 {
    const CUBIC_COEFFICIENTS: [u64; 3] = [
        (1.423_197 * FIXED_POINT_ONE) as u64,
        (0.582_209 * FIXED_POINT_ONE) as u64,
        (0.159_012 * FIXED_POINT_ONE) as u64,
    ];
    let zeros = number.leading_zeros();
    // Bits after the leading one.
    let rest = ((number << zeros) << 1) >> (u64::BITS - FRACTION_BITS);
    let times_rest = |factor: u64| (factor * rest) >> FRACTION_BITS;
    let log2 = times_rest(
        CUBIC_COEFFICIENTS[0]
            - times_rest(CUBIC_COEFFICIENTS[1] - times_rest(CUBIC_COEFFICIENTS[2])),
    );
    (u64::from(zeros + 1) << FRACTION_BITS) - log2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_delay_is_exponential() {
        let noise = HostProcessingDelay::new(100_000, 1, 0, 0).expect("a mean");
        let mut late: Vec<_> = (0..200_000).map(|at| noise.timer_delay(3, at * 7)).collect();
        late.sort_unstable();
        let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
        assert!((mean / 1e5 - 1.0).abs() < 0.01, "{mean} ns");
        for share in [0.1, 0.5, 0.9, 0.99] {
            let quantile = late[(share * late.len() as f64) as usize] as f64;
            let exact = -1e5 * (1.0 - share).ln();
            assert!((quantile / exact - 1.0).abs() < 0.03, "{share}: {quantile} ns, not {exact}");
        }
        assert!(HostProcessingDelay::new(0, 1, 0, 0).is_none());
    }

    #[test]
    fn delay_of_both_hosts_is_the_sum_of_two_exponentials() {
        let noise = HostProcessingDelay::new(100_000, 1, 0, 0).expect("a mean");
        let late: Vec<_> = (0..200_000).map(|at| noise.delay_of_both_hosts(3, at * 7)).collect();
        let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
        assert!((mean / 2e5 - 1.0).abs() < 0.01, "{mean} ns");
        for means in [0.2_f64, 0.5, 1.0, 2.0, 4.0, 7.0] {
            let below = late.iter().filter(|late| (**late as f64) < means * 1e5).count();
            let (share, exact) = (below as f64 / 2e5, 1.0 - (1.0 + means) * (-means).exp());
            assert!((share - exact).abs() < 0.004, "{means}: {share}, not {exact}");
        }
    }

    #[test]
    fn halvings_approximates_the_logarithm() {
        for number in (1..u64::MAX).step_by(42_949_672_953_997).chain(1..100) {
            let exact = 64.0 - (number as f64).log2();
            let approximation = negative_log2(number) as f64 / FIXED_POINT_ONE;
            assert!((approximation - exact).abs() < 0.0016, "{number}");
        }
    }
}
