//! Random numbers: the distributions used by links, and a platform-independent generator.
//!
//! The caller that builds a link assigns a stream to each component.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoroshiro128PlusPlus;

/// A source of random numbers.
pub trait RandomSource {
    /// The next 64 random bits.
    fn next_bits(&mut self) -> u64;

    /// A uniform random number in (0, 1].
    #[inline]
    fn draw_unit(&mut self) -> f64 {
        // 53 bits; adding one excludes zero, so that the logarithm is always finite.
        ((self.next_bits() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A uniform random integer in `0..count`.
    #[inline]
    fn draw_below(&mut self, count: u32) -> u32 {
        // The high word of the product; the relative bias is at most 2^-32.
        ((u128::from(self.next_bits()) * u128::from(count)) >> 64) as u32
    }

    /// Returns true with the given probability; exact for 0 and 1.
    #[inline]
    fn draw_chance(&mut self, probability: f64) -> bool {
        self.draw_unit() <= probability
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomStream(Xoroshiro128PlusPlus);

impl RandomStream {
    /// Creates the stream with the given seed. Streams of different seeds are independent.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Xoroshiro128PlusPlus::seed_from_u64(seed))
    }
}

impl RandomSource for RandomStream {
    #[inline]
    fn next_bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that scatters its input.
#[inline]
#[must_use]
pub fn mix_bits(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_determined_by_its_seed() {
        let first = |seed| RandomStream::from_seed(seed).draw_unit().to_bits();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = RandomStream::from_seed(1);
        let mut counts = [0_u32; 7];
        (0..70_000).for_each(|_| counts[stream.draw_below(7) as usize] += 1);
        // The standard deviation is 93.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn chance_is_exact_for_zero_and_one() {
        let mut stream = RandomStream::from_seed(1);
        assert!((0..1000).all(|_| !stream.draw_chance(0.0) && stream.draw_chance(1.0)));
    }

    #[test]
    fn scatter_matches_splitmix64() {
        // The first outputs of the reference implementation for the state 0.
        assert_eq!(mix_bits(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix_bits(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }
}
