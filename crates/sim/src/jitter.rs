//! Random delays: jitter of each data packet behind the bottleneck, and hosts that are late.

use crate::clock::{Nanos, nanoseconds};
use crate::random::{Draws, Named, Purpose, Stream, scatter};
use crate::traffic::Distribution;
use serde::Deserialize;

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
    pub(crate) fn gets_on(&mut self, at: Nanos) -> Nanos {
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
    /// Nanoseconds.
    mean: f64,
    key: u64,
}

impl HostNoise {
    /// Lateness with this mean; `None` for hosts that are punctual.
    pub(crate) fn new(mean: Nanos, seed: u64, replication: u32, class: u32) -> Option<Self> {
        let key = Stream::named(seed, replication, class, Purpose::HostNoise).bits();
        (mean > 0).then_some(Self { mean: mean as f64, key })
    }

    /// Lateness of a receiver with a packet that arrives at `at`, plus that of its sender with the
    /// acknowledgement; at least 1 ns.
    #[inline(always)]
    pub(crate) fn both_hosts(&self, source: u32, at: Nanos) -> Nanos {
        let bits = self.bits(source, at);
        let (receiver, sender) = (uniform(bits >> 32), uniform(bits & 0xffff_ffff));
        (self.mean * exponential(receiver * sender)) as i64 as Nanos + 1
    }

    /// Lateness of a timer that expires at `at`.
    #[inline(always)]
    pub(crate) fn timer(&self, source: u32, at: Nanos) -> Nanos {
        (self.mean * exponential(uniform(self.bits(source, !at) >> 32) << 32)) as Nanos
    }

    #[inline(always)]
    fn bits(&self, source: u32, at: Nanos) -> u64 {
        scatter(self.key.wrapping_add(u64::from(source).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ at)
    }
}

/// A uniform number of 32 bits, except 0.
#[inline(always)]
fn uniform(bits: u64) -> u64 {
    bits | 1
}

/// The negative logarithm of a number below 1, given by its 64 bits: exponential with mean 1 if the
/// number is uniform, and the sum of two such values if it is the product of two uniform numbers.
///
/// A cubic replaces the logarithm to base 2 of a number from 1 to 2: off by less than 0.0011, in a
/// sixth of the time of `libm`.
#[inline(always)]
fn exponential(bits: u64) -> f64 {
    let zeros = bits.leading_zeros();
    // The bits behind the first one.
    let rest = (((bits << zeros) << 1) >> 1) as i64 as f64 * (1.0 / 9_223_372_036_854_775_808.0);
    let log2 = rest * (1.423_197 + rest * (-0.582_209 + rest * 0.159_012));
    std::f64::consts::LN_2 * (f64::from(zeros + 1) - log2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(reorder: bool) -> Vec<Nanos> {
        let delay = Distribution::Exponential { minimum: 0.001, scale: 0.004 };
        let mut jitter = Jitter::new(&JitterConfig { delay, reorder }, 1, 0);
        (0..20_000).map(|at| jitter.gets_on(at * 1_000_000)).collect()
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
        for bits in (1..u64::MAX).step_by(42_949_672_953_997).chain(1..100) {
            let exact = -(bits as f64 / 18_446_744_073_709_551_616.0).ln();
            assert!((exponential(bits) - exact).abs() < 0.0011, "{bits}");
        }
    }
}
