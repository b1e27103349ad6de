//! A token bucket: as a transmitter it delays what comes too fast, as a policer it drops it.

use super::Transmitter;
use crate::time::{NEVER, Nanos, SECOND};
use serde::Deserialize;
use std::num::NonZeroU64;

/// A rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRate {
    /// Bits that come into the bucket in a second.
    pub rate_bps: NonZeroU64,
    /// Bytes that it holds: what may pass at once after a pause.
    pub burst_bytes: u64,
}

impl TokenRate {
    /// Bytes of the tokens that have come by `until`, without those of a full bucket at the
    /// beginning.
    #[must_use]
    pub fn bytes_by(&self, until: Nanos) -> u64 {
        let bits = u128::from(self.rate_bps.get()) * u128::from(until) / u128::from(SECOND);
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

/// What is missing in the bucket, exactly: in bits times nanoseconds a second, of which the rate
/// brings back as many a nanosecond as it has bits a second.
#[derive(Clone, Debug)]
struct Bucket {
    tokens: TokenRate,
    rate: u128,
    depth: u128,
    missing: u128,
    at: Nanos,
}

fn scaled(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * u128::from(SECOND)
}

impl Bucket {
    /// A full bucket.
    fn new(tokens: TokenRate) -> Self {
        let rate = u128::from(tokens.rate_bps.get());
        Self { tokens, rate, depth: scaled(tokens.burst_bytes), missing: 0, at: 0 }
    }

    fn fill_until(&mut self, now: Nanos) {
        self.missing = self.missing.saturating_sub(self.rate * u128::from(now - self.at));
        self.at = now;
    }
}

/// A shaper: a packet leaves at once if there are tokens for all of it, else when there are.
///
/// One that is longer than the bucket leaves when the bucket is full, and the next ones wait until
/// its tokens have been made up for, so that the rate holds.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    bucket: Bucket,
}

impl TokenBucket {
    /// A shaper whose bucket is full.
    #[must_use]
    pub fn new(tokens: TokenRate) -> Self {
        Self { bucket: Bucket::new(tokens) }
    }
}

impl Transmitter for TokenBucket {
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        let Bucket { rate, depth, at, .. } = self.bucket;
        let taken = scaled(u64::from(bytes));
        self.bucket.fill_until(arrived.max(at));
        let tokens_from = (self.bucket.missing + taken).saturating_sub(depth.max(taken));
        let wait = Nanos::try_from(tokens_from.div_ceil(rate)).unwrap_or(NEVER / 4);
        self.bucket.fill_until(self.bucket.at + wait);
        self.bucket.missing += taken;
        self.bucket.at
    }

    fn capacity(&self, until: Nanos) -> Option<u64> {
        Some(self.bucket.tokens.bytes_by(until))
    }

    fn restart(&mut self) {
        self.bucket.missing = 0;
    }
}

/// A policer: a packet passes if there are tokens for all of it, and is dropped otherwise.
#[derive(Clone, Debug)]
pub struct Policer {
    bucket: Bucket,
}

impl Policer {
    /// A policer whose bucket is full. A packet that is longer than the burst never passes.
    #[must_use]
    pub fn new(tokens: TokenRate) -> Self {
        Self { bucket: Bucket::new(tokens) }
    }

    /// Whether a packet that comes now passes.
    pub fn passes(&mut self, now: Nanos, bytes: u32) -> bool {
        self.bucket.fill_until(now.max(self.bucket.at));
        let missing = self.bucket.missing + scaled(u64::from(bytes));
        let passes = missing <= self.bucket.depth;
        if passes {
            self.bucket.missing = missing;
        }
        passes
    }

    /// Fills the bucket, as if no packet had come before.
    pub fn restart(&mut self) {
        self.bucket.missing = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 12 Mbit/s: 1500 bytes take a millisecond.
    fn tokens(burst_bytes: u64) -> TokenRate {
        TokenRate { rate_bps: NonZeroU64::new(12_000_000).unwrap(), burst_bytes }
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        let mut shaper = TokenBucket::new(tokens(4500));
        let leaves: Vec<Nanos> = (0..5).map(|_| shaper.transmit(0, 1500)).collect();
        assert_eq!(leaves, [0, 0, 0, 1_000_000, 2_000_000]);
        // Two milliseconds of pause after the last bring two packets back.
        let leaves: Vec<Nanos> = (0..3).map(|_| shaper.transmit(4_000_000, 1500)).collect();
        assert_eq!(leaves, [4_000_000, 4_000_000, 5_000_000]);
    }

    #[test]
    fn a_packet_longer_than_the_bucket_waits_until_it_is_full_and_is_paid_for() {
        let mut shaper = TokenBucket::new(tokens(1000));
        assert_eq!(shaper.transmit(0, 1500), 0);
        assert_eq!(shaper.transmit(0, 1500), 1_000_000);
        assert_eq!(shaper.transmit(0, 750), 1_000_000 + 1_000_000 * 1250 / 1500 + 1);
    }

    #[test]
    fn a_policer_drops_what_a_shaper_delays() {
        let mut policer = Policer::new(tokens(3000));
        let mut passes = |now| policer.passes(now, 1500);
        assert_eq!([passes(0), passes(0), passes(0)], [true, true, false]);
        assert_eq!([passes(999_999), passes(1_000_000), passes(1_000_000)], [false, true, false]);
        assert!(!Policer::new(tokens(1000)).passes(0, 1500));
    }

    #[test]
    fn a_restart_fills_the_bucket() {
        let mut policer = Policer::new(tokens(3000));
        assert!(policer.passes(0, 3000) && !policer.passes(0, 40));
        policer.restart();
        assert!(policer.passes(0, 3000));
        let mut shaper = TokenBucket::new(tokens(3000));
        assert_eq!([shaper.transmit(0, 3000), shaper.transmit(0, 3000)], [0, 2_000_000]);
        shaper.restart();
        assert_eq!(shaper.transmit(2_000_000, 3000), 2_000_000);
    }

    proptest! {
        /// RFC 2697's bucket, step by step: in no interval does more leave than the burst and what the
        /// rate brings in it, and nothing waits that need not.
        #[test]
        fn no_interval_has_more_than_the_burst_and_the_rate(
            arrivals in prop::collection::vec((0_u64..3_000_000, 40_u32..1500), 1..80),
            burst in 1500_u64..20_000,
        ) {
            let mut shaper = TokenBucket::new(tokens(burst));
            let (mut now, mut last) = (0, 0);
            let mut left: Vec<(Nanos, u64)> = Vec::new();
            for (gap, bytes) in arrivals {
                now += gap;
                let leaves = shaper.transmit(now, bytes);
                prop_assert!(leaves >= now && leaves >= last);
                left.push((leaves, u64::from(bytes)));
                // The rate brings three bytes in 2000 ns.
                let tight = |at: Nanos| {
                    let mut sum = 0;
                    left.iter().rev().all(|(begin, bytes)| {
                        sum += bytes;
                        let brought = 3 * u128::from(at.saturating_sub(*begin));
                        u128::from(sum) * 2_000 <= u128::from(burst) * 2_000 + brought
                    })
                };
                prop_assert!(tight(leaves));
                let needed = leaves == now.max(last) || !tight(leaves - 1);
                prop_assert!(needed);
                last = leaves;
            }
        }
    }
}
