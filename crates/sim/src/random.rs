//! Named random streams: (seed, replication, entity, purpose) names one, and nothing else does.
//!
//! There is no global generator, so the draws of one source do not depend on what another does,
//! nor on the order in which threads run. Every draw goes through `libm`, which gives the same
//! bits on every platform.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoroshiro128PlusPlus;

/// What a stream is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Lengths of silences, and start times of bulk flows.
    Silence = 1,
    /// File sizes.
    Size = 2,
    /// Random loss on the bottleneck.
    BottleneckLoss = 3,
    /// Random loss on a source's own link.
    IngressLoss = 4,
    /// Random loss on a receiver's own link.
    EgressLoss = 5,
    /// Early drops of the bottleneck's queue.
    EarlyDrop = 6,
    /// Cross traffic at a hop.
    Cross = 7,
    /// Where in that traffic the stream of one source begins.
    CrossPlace = 8,
    /// What a cross flow of a fixed point draws: times between its packets, times of service.
    CrossFlow = 9,
    /// Which of several longest queues loses a packet.
    Tie = 10,
    /// Which of a source's packets get in where cross traffic keeps a hop full.
    CrossRoom = 11,
    /// Where the clock of a host stands when a connection begins, and the cycle of BBR.
    Connection = 12,
    /// Times between the beginnings of transfers.
    Arrival = 16,
    /// Sizes of the transfers that begin at random times.
    ArrivalSize = 17,
    /// Random loss at a hop that is not the bottleneck.
    HopLoss = 32,
    /// Early drops of such a hop's queue.
    HopEarlyDrop = 33,
    /// Random loss of acknowledgements on the return path.
    AckLoss = 34,
    /// Early drops of the return link's queue.
    ReturnEarlyDrop = 35,
    /// Random delays behind the bottleneck.
    Jitter = 36,
    /// Gaps between the ends of the silences of a crowd.
    CrowdGap = 40,
    /// File sizes of a crowd.
    CrowdSize = 41,
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoroshiro128PlusPlus);

impl Stream {
    /// The stream of that name.
    #[must_use]
    pub fn named(seed: u64, replication: u32, entity: u32, purpose: Purpose) -> Self {
        Self(Xoroshiro128PlusPlus::seed_from_u64(name(seed, replication, entity, purpose)))
    }

    /// The stream of that name at one of several hops.
    #[must_use]
    pub fn at_hop(seed: u64, replication: u32, entity: u32, purpose: Purpose, hop: u32) -> Self {
        let name = mix(name(seed, replication, entity, purpose) ^ u64::from(hop));
        Self(Xoroshiro128PlusPlus::seed_from_u64(name))
    }

    /// A number in (0, 1], uniformly.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        // 53 bits; adding one keeps zero out, so that a logarithm can always be taken.
        ((self.0.next_u64() >> 11) + 1) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number below `count`, uniformly.
    #[inline]
    pub fn below(&mut self, count: u32) -> u32 {
        // The high word of a product: no number is likelier than another by more than 2^-32.
        ((u128::from(self.0.next_u64()) * u128::from(count)) >> 64) as u32
    }

    /// True with the given probability; 0 never, 1 always.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }
}

fn name(seed: u64, replication: u32, entity: u32, purpose: Purpose) -> u64 {
    let mut name = mix(seed ^ 0x7463_7063_6173_7431);
    name = mix(name ^ u64::from(replication));
    name = mix(name ^ u64::from(entity));
    mix(name ^ purpose as u64)
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that scatters its input.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_name_matters() {
        let first = |seed, replication, entity, purpose| {
            Stream::named(seed, replication, entity, purpose).unit()
        };
        let base = first(1, 0, 0, Purpose::Size);
        assert_eq!(base.to_bits(), first(1, 0, 0, Purpose::Size).to_bits());
        for other in [
            first(2, 0, 0, Purpose::Size),
            first(1, 1, 0, Purpose::Size),
            first(1, 0, 1, Purpose::Size),
            first(1, 0, 0, Purpose::Silence),
        ] {
            assert_ne!(base.to_bits(), other.to_bits());
        }
        let at = |hop| Stream::at_hop(1, 0, 0, Purpose::Size, hop).unit().to_bits();
        assert_eq!(at(3), at(3));
        assert!(at(0) != at(1) && at(0) != base.to_bits());
    }

    #[test]
    fn each_number_below_a_count_comes_as_often() {
        let mut stream = Stream::named(1, 0, 0, Purpose::Tie);
        let mut counts = [0_u32; 7];
        (0..70_000).for_each(|_| counts[stream.below(7) as usize] += 1);
        // The standard deviation is 93.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
        assert!((0..1000).all(|_| stream.below(1) == 0));
    }

    #[test]
    fn chance_keeps_its_ends() {
        let mut stream = Stream::named(1, 0, 0, Purpose::BottleneckLoss);
        assert!((0..1000).all(|_| !stream.chance(0.0) && stream.chance(1.0)));
    }
}
