//! Random early detection: Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", IEEE/ACM Transactions on Networking 1 (1993), as ns-2 2.35 has it.
//!
//! A packet that arrives first moves the average, `avg <- (1 - w) avg + w q`; one that finds the
//! link idle has the average shrink before, as if the `m` packets that could have been sent in the
//! idle time had found the queue empty: `avg <- (1 - w)^m avg`. Then, with the average between the
//! thresholds,
//!
//! ```text
//! p_b = max_p (avg - min_th) / (max_th - min_th)
//! ```
//!
//! and the packet is dropped with a probability that makes the gaps between drops nearly uniform.
//! The paper has `p_a = p_b / (1 - count p_b)`, where `count` packets have come since the last
//! drop; ns-2 waits at least `1 / p_b` packets (its `wait_`, on unless told): see [`spread`].
//!
//! Where ns-2 goes beyond the paper, or reads it in one way, so does this:
//! - `q` counts packets that wait; the one in transmission is left out.
//! - `gentle`: above `max_th`, `p_b` rises from `max_p` to 1 at twice `max_th`, instead of at once.
//! - Nothing is dropped early while fewer than two packets wait, nor is the first packet that finds
//!   the average above `min_th`.
//! - A packet dropped for want of room begins `count` anew as well.
//!
//! Measured in bytes, `q` is in packets of a mean length, `count` too, and a packet is dropped in
//! proportion to its length.

use super::{Admission, Admit, QueueProbe, Sight};
use crate::random::{Draws, Stream};
use crate::time::{Nanos, SECOND};
use serde::Deserialize;
use std::num::NonZeroU32;

/// What the queue is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RedUnit {
    /// Packets.
    #[default]
    Packets,
    /// Bytes, in units of a packet of this mean length.
    Bytes(NonZeroU32),
}

/// The parameters of RED; thresholds in packets, or in packets of the mean length.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedConfig {
    /// Below this average nothing is dropped early: `min_th`.
    pub min_threshold: f64,
    /// Where the probability has reached `max_probability`: `max_th`, above `min_th`.
    pub max_threshold: f64,
    /// `max_p`, up to 1.
    pub max_probability: f64,
    /// How much a new length counts in the average: `w`, above 0 and up to 1.
    pub weight: f64,
    /// Whether the probability rises to 1 at twice `max_threshold`, or jumps there.
    pub gentle: bool,
    /// Packets that the link sends in a second.
    pub packets_per_second: f64,
    /// What the queue is measured in.
    #[serde(skip)]
    pub unit: RedUnit,
    /// Whether ECN-capable packets are marked instead of dropped, as long as `p_b` is below 1.
    pub ecn: bool,
}

/// The RED rule.
#[derive(Clone, Debug)]
pub struct Red<D = Stream> {
    config: RedConfig,
    draws: D,
    average: f64,
    /// Packets since the last drop, or since the average came above `min_threshold`.
    count: f64,
    /// Whether the average was above `min_threshold` when the last packet came.
    above: bool,
}

impl<D: Draws> Red<D> {
    /// A rule whose average is 0; `draws` is for early drops.
    #[must_use]
    pub fn new(config: RedConfig, draws: D) -> Self {
        Self { config, draws, average: 0.0, count: 0.0, above: false }
    }

    /// Moves the average for a packet that arrives.
    fn move_average(&mut self, now: Nanos, sight: &Sight) {
        let keep = 1.0 - self.config.weight;
        if let Some(since) = sight.idle_since {
            let idle = (now - since) as f64 / SECOND as f64;
            let missed = libm::floor(idle * self.config.packets_per_second);
            self.average *= libm::pow(keep, missed + 1.0);
        } else {
            let waiting = match self.config.unit {
                RedUnit::Packets => sight.waiting.packets as f64,
                RedUnit::Bytes(mean) => sight.waiting.bytes as f64 / f64::from(mean.get()),
            };
            self.average = keep * self.average + self.config.weight * waiting;
        }
    }

    /// `p_b`.
    fn base_probability(&self) -> f64 {
        let RedConfig { min_threshold, max_threshold, max_probability, .. } = self.config;
        if self.average < max_threshold {
            max_probability * (self.average - min_threshold) / (max_threshold - min_threshold)
        } else if self.config.gentle {
            let above = (self.average - max_threshold) / max_threshold;
            (max_probability + (1.0 - max_probability) * above).min(1.0)
        } else {
            1.0
        }
    }

    fn signals(&mut self, sight: &Sight) -> bool {
        // One for a packet of the mean length.
        let length = match self.config.unit {
            RedUnit::Packets => 1.0,
            RedUnit::Bytes(mean) => f64::from(sight.bytes) / f64::from(mean.get()),
        };
        self.count += length;
        if self.average < self.config.min_threshold || sight.waiting.packets < 2 {
            self.above = false;
            return false;
        }
        if !self.above {
            self.above = true;
            self.count = length;
            return false;
        }
        let probability = spread(self.base_probability(), self.count);
        let scaled = if probability < 1.0 { probability * length } else { probability };
        let signals = self.draws.chance(scaled);
        if signals {
            self.count = 0.0;
        }
        signals
    }
}

/// The probability of dropping the packet `count`: none until `1 / p` packets have come, then such
/// that the drop is equally likely at each of the next `1 / p`. ns-2's `modify_p` with `wait_`.
fn spread(p: f64, count: f64) -> f64 {
    let expected = count * p;
    if expected < 1.0 {
        0.0
    } else if expected < 2.0 {
        (p / (2.0 - expected)).min(1.0)
    } else {
        1.0
    }
}

impl<D: Draws> Admission for Red<D> {
    const FOLLOWS: bool = false;

    #[inline]
    fn admit<T>(&mut self, now: Nanos, sight: &Sight, probe: &mut impl QueueProbe<T>) -> Admit {
        self.move_average(now, sight);
        probe.averaged(self.average);
        if !self.signals(sight) {
            Admit::Accept
        } else if self.config.ecn && sight.ecn.is_capable() && self.base_probability() < 1.0 {
            Admit::Mark
        } else {
            Admit::Drop
        }
    }

    fn overflows(&mut self) {
        self.count = 0.0;
    }

    fn restart(&mut self, _now: Nanos) {
        self.average = 0.0;
        self.count = 0.0;
        self.above = false;
    }
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
