//! Jitter: a random delay of each data packet behind the bottleneck.

use crate::clock::{Nanos, nanoseconds};
use crate::random::{Named, Purpose, Stream};
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
}
