//! Random delays: jitter of each data packet behind the bottleneck, and hosts that are late.

use crate::clock::{Nanos, nanoseconds};
use crate::random::{Draws, Named, Purpose, Stream, scatter};
use crate::traffic::Distribution;
use serde::Deserialize;
use std::f64::consts::LN_2;

/// The distribution of the delay, and whether packets may overtake each other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterConfig {
    /// Seconds.
    pub delay: Distribution,
    /// Whether a packet that is delayed less overtakes others; else it waits for those before it.
    pub reorder: bool,
}

/// The delays of one replication.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    config: JitterConfig,
    draws: Stream,
    last: Nanos,
}

impl Jitter {
    pub(crate) fn new(config: &JitterConfig, seed: u64, replication: u32) -> Self {
        let draws = Stream::named(seed, replication, 0, Purpose::Jitter);
        Self { config: config.clone(), draws, last: 0 }
    }

    /// When a packet that is here at `at` gets on; packets come in the order of time.
    pub(crate) fn leaves_at(&mut self, at: Nanos) -> Nanos {
        let due = at + nanoseconds(self.config.delay.draw(&mut self.draws));
        if self.config.reorder {
            return due;
        }
        self.last = due.max(self.last);
        self.last
    }

    /// Whether a packet may overtake another.
    pub(crate) fn reorders(&self) -> bool {
        self.config.reorder
    }
}

/// Lateness of the hosts of one class: each handles a packet or a timer late by an exponential time.
///
/// The lateness is a hash of the source and the time, so that no source stores a generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostNoise {
    /// Nanoseconds per halving of a uniform number, with [`FRACTION`] bits behind the point.
    scale: u64,
    key: u64,
}

impl HostNoise {
    /// Lateness with this mean; `None` for hosts that are punctual.
    pub(crate) fn new(mean: Nanos, seed: u64, replication: u32, class: u32) -> Option<Self> {
        let key = Stream::named(seed, replication, class, Purpose::HostNoise).bits();
        let scale = (mean as f64 * LN_2 * ONE) as u64;
        (mean > 0).then_some(Self { scale, key })
    }

    /// Lateness of a receiver with a packet that arrives at `at`, plus that of its sender with the
    /// acknowledgement; at least 1 ns.
    #[inline(always)]
    pub(crate) fn both_hosts(&self, source: u32, at: Nanos) -> Nanos {
        let bits = self.bits(source, at);
        self.late((bits >> 32 | 1) * u64::from(bits as u32 | 1)) + 1
    }

    /// Lateness of a timer that expires at `at`.
    #[inline(always)]
    pub(crate) fn timer(&self, source: u32, at: Nanos) -> Nanos {
        self.late(self.bits(source, !at) | 1)
    }

    /// Exponential for a uniform number, and the sum of two exponentials for the product of two.
    #[inline(always)]
    fn late(&self, number: u64) -> Nanos {
        ((u128::from(self.scale) * u128::from(halvings(number))) >> (2 * FRACTION)) as Nanos
    }

    #[inline(always)]
    fn bits(&self, source: u32, at: Nanos) -> u64 {
        scatter(self.key.wrapping_add(u64::from(source).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ at)
    }
}

/// Bits behind the point of numbers that are not integers, and 1 as such a number.
const FRACTION: u32 = 31;
const ONE: f64 = (1_u64 << FRACTION) as f64;

/// The negative logarithm to base 2 of `number` / 2^64, which is not 0.
///
/// A cubic replaces the logarithm of a number from 1 to 2: off by less than 0.0016, in a sixth of the
/// time of `libm`.
#[inline(always)]
fn halvings(number: u64) -> u64 {
    const CUBIC: [u64; 3] =
        [(1.423_197 * ONE) as u64, (0.582_209 * ONE) as u64, (0.159_012 * ONE) as u64];
    let zeros = number.leading_zeros();
    // The bits behind the first one.
    let rest = ((number << zeros) << 1) >> (u64::BITS - FRACTION);
    let times_rest = |factor: u64| (factor * rest) >> FRACTION;
    let log2 = times_rest(CUBIC[0] - times_rest(CUBIC[1] - times_rest(CUBIC[2])));
    (u64::from(zeros + 1) << FRACTION) - log2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(reorder: bool) -> Vec<Nanos> {
        let delay = Distribution::Exponential { minimum: 0.001, scale: 0.004 };
        let mut jitter = Jitter::new(&JitterConfig { delay, reorder }, 1, 0);
        (0..20_000).map(|at| jitter.leaves_at(at * 1_000_000)).collect()
    }

    #[test]
    fn each_packet_is_delayed_by_itself_where_packets_may_overtake() {
        let due = delays(true);
        let waits = (0..).zip(&due).map(|(at, due)| due - at * 1_000_000);
        let mean = waits.clone().sum::<u64>() as f64 / due.len() as f64;
        assert!((mean / 5e6 - 1.0).abs() < 0.03, "{mean} ns");
        assert!(waits.min() >= Some(1_000_000) && !due.is_sorted());
    }

    #[test]
    fn packets_in_order_wait_for_those_before_them() {
        let (free, kept) = (delays(true), delays(false));
        let running = free.iter().scan(0, |last, due| {
            *last = (*last).max(*due);
            Some(*last)
        });
        assert!(running.eq(kept));
    }

    #[test]
    fn the_lateness_of_a_host_is_exponential() {
        let noise = HostNoise::new(100_000, 1, 0, 0).expect("a mean");
        let mut late: Vec<_> = (0..200_000).map(|at| noise.timer(3, at * 7)).collect();
        late.sort_unstable();
        let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
        assert!((mean / 1e5 - 1.0).abs() < 0.01, "{mean} ns");
        for share in [0.1, 0.5, 0.9, 0.99] {
            let found = late[(share * late.len() as f64) as usize] as f64;
            let exact = -1e5 * (1.0 - share).ln();
            assert!((found / exact - 1.0).abs() < 0.03, "{share}: {found} ns, not {exact}");
        }
        assert!(HostNoise::new(0, 1, 0, 0).is_none());
    }

    #[test]
    fn the_lateness_of_both_hosts_is_the_sum_of_two_exponentials() {
        let noise = HostNoise::new(100_000, 1, 0, 0).expect("a mean");
        let late: Vec<_> = (0..200_000).map(|at| noise.both_hosts(3, at * 7)).collect();
        let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
        assert!((mean / 2e5 - 1.0).abs() < 0.01, "{mean} ns");
        for means in [0.2_f64, 0.5, 1.0, 2.0, 4.0, 7.0] {
            let below = late.iter().filter(|late| (**late as f64) < means * 1e5).count();
            let (found, exact) = (below as f64 / 2e5, 1.0 - (1.0 + means) * (-means).exp());
            assert!((found - exact).abs() < 0.004, "{means}: {found}, not {exact}");
        }
    }

    #[test]
    fn the_logarithm_is_near() {
        for number in (1..u64::MAX).step_by(42_949_672_953_997).chain(1..100) {
            let exact = 64.0 - (number as f64).log2();
            let found = halvings(number) as f64 / ONE;
            assert!((found - exact).abs() < 0.0016, "{number}");
        }
    }
}
