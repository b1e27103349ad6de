//! Random early detection: Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", IEEE/ACM Transactions on Networking 1 (1993), as implemented in ns-2 2.35.
//!
//! Each arriving packet updates the average queue length, `avg <- (1 - w) avg + w q`. If the link
//! was idle, the average first decays as if `m` packets, the number that the link could have sent
//! in the idle time, had found an empty queue: `avg <- (1 - w)^m avg`. If the average is then
//! between the thresholds, the base probability is
//!
//! ```text
//! p_b = max_p (avg - min_th) / (max_th - min_th)
//! ```
//!
//! and the actual probability makes the gaps between drops nearly uniform. The paper uses `p_a =
//! p_b / (1 - count p_b)` after `count` packets since the last drop. This implementation follows
//! ns-2 with its default `wait_`, which separates drops by at least `1 / p_b` packets: see
//! [`uniformised_probability`].
//!
//! Other details also follow ns-2:
//! - `q` excludes the packet in transmission.
//! - `gentle`: above `max_th`, `p_b` rises linearly from `max_p` to 1 at twice `max_th`.
//! - There are no early drops while fewer than two packets wait, and the first packet that finds
//!   the average above `min_th` is not dropped.
//! - A drop because of a full buffer also resets `count`.
//!
//! In bytes, `q` and `count` are in units of a mean packet length, and the drop probability is
//! proportional to the packet length.

use super::{AdmissionRule, AdmitDecision, ArrivalContext, QueueProbe};
use crate::random::{RandomSource, RandomStream};
use crate::time::{Nanos, SECOND};
use serde::Deserialize;
use std::num::NonZeroU32;

/// Unit of the queue length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RedUnit {
    /// Packets.
    #[default]
    Packets,
    /// Bytes, in units of this mean packet length.
    Bytes(NonZeroU32),
}

/// The parameters of RED; thresholds are in packets, or in packets of the mean length.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedConfig {
    /// `min_th`: minimum average for early drops.
    pub min_threshold: f64,
    /// `max_th`, above `min_th`: average at which the probability reaches `max_probability`.
    pub max_threshold: f64,
    /// `max_p`, at most 1.
    pub max_probability: f64,
    /// `w`: weight of a new queue length in the average; above 0 and at most 1.
    pub weight: f64,
    /// Whether the probability rises linearly to 1 at twice `max_threshold` instead of jumping to 1
    /// at `max_threshold`.
    pub gentle: bool,
    /// Rate of the link in packets per second.
    pub packets_per_second: f64,
    /// Unit of the queue length.
    #[serde(skip)]
    pub unit: RedUnit,
    /// Whether ECN-capable packets are marked instead of dropped while `p_b` is below 1.
    pub ecn: bool,
}

/// The RED admission rule.
#[derive(Clone, Debug)]
pub struct Red<D = RandomStream> {
    config: RedConfig,
    draws: D,
    average: f64,
    /// Packets since the last drop, or since the average exceeded `min_threshold`.
    count: f64,
    /// Whether the average was above `min_threshold` at the last arrival.
    above: bool,
}

impl<D: RandomSource> Red<D> {
    /// Creates a rule with average 0; `draws` is used for early drops.
    #[must_use]
    pub fn new(config: RedConfig, draws: D) -> Self {
        Self { config, draws, average: 0.0, count: 0.0, above: false }
    }

    fn update_average(&mut self, now: Nanos, context: &ArrivalContext) {
        let keep = 1.0 - self.config.weight;
        if let Some(since) = context.idle_since {
            let idle = (now - since) as f64 / SECOND as f64;
            let missed = libm::floor(idle * self.config.packets_per_second);
            self.average *= libm::pow(keep, missed + 1.0);
        } else {
            let waiting = match self.config.unit {
                RedUnit::Packets => context.waiting.packets as f64,
                RedUnit::Bytes(mean) => context.waiting.bytes as f64 / f64::from(mean.get()),
            };
            self.average = keep * self.average + self.config.weight * waiting;
        }
    }

    /// Drop probability at the current average, without the count since the last drop: `p_b`.
    fn base_drop_probability(&self) -> f64 {
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

    fn drops_early(&mut self, context: &ArrivalContext) -> bool {
        let length = match self.config.unit {
            RedUnit::Packets => 1.0,
            RedUnit::Bytes(mean) => f64::from(context.bytes) / f64::from(mean.get()),
        };
        self.count += length;
        if self.average < self.config.min_threshold || context.waiting.packets < 2 {
            self.above = false;
            return false;
        }
        if !self.above {
            self.above = true;
            self.count = length;
            return false;
        }
        let probability = uniformised_probability(self.base_drop_probability(), self.count);
        let scaled = if probability < 1.0 { probability * length } else { probability };
        let signals = self.draws.draw_chance(scaled);
        if signals {
            self.count = 0.0;
        }
        signals
    }
}

/// Drop probability of packet number `count` since the last drop, as ns-2's `modify_p` with
/// `wait_`: 0 for the first `1 / p` packets, and then such that the position of the drop is
/// uniformly distributed over the next `1 / p` packets.
fn uniformised_probability(p: f64, count: f64) -> f64 {
    let expected = count * p;
    if expected < 1.0 {
        0.0
    } else if expected < 2.0 {
        (p / (2.0 - expected)).min(1.0)
    } else {
        1.0
    }
}

impl<D: RandomSource> AdmissionRule for Red<D> {
    const NEEDS_DEQUEUE: bool = false;

    #[inline]
    fn admit<T>(
        &mut self,
        now: Nanos,
        context: &ArrivalContext,
        probe: &mut impl QueueProbe<T>,
    ) -> AdmitDecision {
        self.update_average(now, context);
        probe.on_average_updated(self.average);
        if !self.drops_early(context) {
            AdmitDecision::Accept
        } else if self.config.ecn
            && context.ecn.is_ecn_capable()
            && self.base_drop_probability() < 1.0
        {
            AdmitDecision::Mark
        } else {
            AdmitDecision::Drop
        }
    }

    fn on_overflow(&mut self) {
        self.count = 0.0;
    }

    fn reset(&mut self, _now: Nanos) {
        self.average = 0.0;
        self.count = 0.0;
        self.above = false;
    }
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
