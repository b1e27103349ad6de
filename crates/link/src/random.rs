//! Random numbers: what a link draws, and a generator that draws the same on every platform.
//!
//! Nothing here names a stream: whoever builds a link decides which stream goes to which part.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoroshiro128PlusPlus;

/// A source of random numbers.
pub trait Draws {
    /// The next 64 random bits.
    fn bits(&mut self) -> u64;

    /// A number in (0, 1], uniformly.
    #[inline]
    fn unit(&mut self) -> f64 {
        // 53 bits; adding one keeps zero out, so that a logarithm can always be taken.
        ((self.bits() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A whole number below `count`, uniformly.
    #[inline]
    fn below(&mut self, count: u32) -> u32 {
        // The high word of a product: no number is likelier than another by more than 2^-32.
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u32
    }

    /// True with the given probability; 0 never, 1 always.
    #[inline]
    fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoroshiro128PlusPlus);

impl Stream {
    /// The stream of that name; names that differ in any bit give streams that have nothing in common.
    #[must_use]
    pub fn of(name: u64) -> Self {
        Self(Xoroshiro128PlusPlus::seed_from_u64(name))
    }
}

impl Draws for Stream {
    #[inline]
    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that scatters its input.
#[inline]
#[must_use]
pub fn scatter(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_stream() {
        let first = |name| Stream::of(name).unit().to_bits();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn each_number_below_a_count_comes_as_often() {
        let mut stream = Stream::of(1);
        let mut counts = [0_u32; 7];
        (0..70_000).for_each(|_| counts[stream.below(7) as usize] += 1);
        // The standard deviation is 93.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn chance_keeps_its_ends() {
        let mut stream = Stream::of(1);
        assert!((0..1000).all(|_| !stream.chance(0.0) && stream.chance(1.0)));
    }

    #[test]
    fn scatter_is_that_of_splitmix64() {
        // The first outputs of the reference implementation for the state 0.
        assert_eq!(scatter(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(scatter(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }
}
