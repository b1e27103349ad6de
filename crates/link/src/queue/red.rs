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
//! and the actual probability makes the gaps between drops nearly uniform. The paper and Linux use
//! `p_a = p_b / (1 - count p_b)` after `count` packets since the last drop. ns-2 with its default
//! `wait_` separates drops by at least `1 / p_b` packets: see [`uniformised_probability`]. Linux
//! (include/net/red.h) averages bytes, so that a burst of segmentation offload has the length of
//! its packets, and has one probability for packets of any length.
//!
//! Adaptive RED (Floyd, Gummadi and Shenker, "Adaptive RED", 2001; `adaptive` of Linux's `tc red`)
//! changes `max_p` each half second, so that the average stays in the middle fifth between the
//! thresholds: see [`Red::adapt_probability`].
//!
//! Other details also follow ns-2:
//! - `q` excludes the packet in transmission.
//! - `gentle`: above `max_th`, `p_b` rises linearly from `max_p` to 1 at twice `max_th`.
//! - There are no early drops while fewer than two packets wait, and the first packet that finds
//!   the average above `min_th` is not dropped.
//! - A drop because of a full buffer also resets `count`.

use super::{AdmissionRule, AdmitDecision, ArrivalContext, QueueProbe};
use crate::random::{RandomSource, RandomStream};
use crate::time::{Nanos, SECOND};
use serde::Deserialize;
use std::num::NonZeroU32;

/// Rules in which ns-2 and Linux differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RedRules {
    /// The average in packets, and drops at least `1 / p_b` packets apart (`wait_`).
    #[default]
    Ns2,
    /// The average in bytes, in units of full packets, and drops from 1 packet apart.
    Linux {
        /// Length of a full packet.
        packet_bytes: NonZeroU32,
    },
}

/// The parameters of RED; thresholds are in packets.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedConfig {
    /// `min_th`: minimum average for early drops.
    pub min_threshold: f64,
    /// `max_th`, above `min_th`: average at which the probability reaches `max_probability`.
    pub max_threshold: f64,
    /// `max_p`, at most 1; its first value if it is adapted.
    pub max_probability: f64,
    /// Whether `max_p` is adapted.
    pub adaptive: bool,
    /// `w`: weight of a new queue length in the average; above 0 and at most 1.
    pub weight: f64,
    /// Whether the probability rises linearly to 1 at twice `max_threshold` instead of jumping to 1
    /// at `max_threshold`.
    pub gentle: bool,
    /// Whose rules.
    pub rules: RedRules,
    /// Rate of the link in packets per second.
    pub packets_per_second: f64,
    /// Whether ECN-capable packets are marked instead of dropped while `p_b` is below 1.
    pub ecn: bool,
}

/// Time between two adaptations of `max_p`.
const ADAPTATION_INTERVAL: Nanos = SECOND / 2;

/// The RED admission rule.
#[derive(Clone, Debug)]
pub struct Red<D = RandomStream> {
    config: RedConfig,
    draws: D,
    average: f64,
    /// `max_p`.
    max_probability: f64,
    next_adaptation: Nanos,
    /// Packets since the last drop, or since the average exceeded `min_threshold`.
    count: f64,
    /// Whether the average was above `min_threshold` at the last arrival.
    above: bool,
}

impl<D: RandomSource> Red<D> {
    /// Creates a rule with average 0; `draws` is used for early drops.
    #[must_use]
    pub fn new(config: RedConfig, draws: D) -> Self {
        Self {
            config,
            draws,
            average: 0.0,
            max_probability: config.max_probability,
            next_adaptation: ADAPTATION_INTERVAL,
            count: 0.0,
            above: false,
        }
    }

    /// Returns the average after an idle time of the link: it decays as if the packets that could
    /// have been sent in this time, and `more` packets, had found an empty queue.
    fn average_after_idle(&self, idle: Nanos, more: f64) -> f64 {
        let missed =
            libm::floor(idle as f64 / SECOND as f64 * self.config.packets_per_second) + more;
        self.average * libm::pow(1.0 - self.config.weight, missed)
    }

    /// Adapts `max_p` at each multiple of half a second until now, with the constants of the paper
    /// and of Linux's `red_adaptative_algo`: an additive increase and a multiplicative decrease.
    fn adapt_probability(&mut self, now: Nanos, idle_since: Option<Nanos>) {
        let RedConfig { min_threshold, max_threshold, .. } = self.config;
        let fifth = (max_threshold - min_threshold) / 5.0;
        while self.next_adaptation <= now {
            let idle = idle_since.map_or(0, |since| self.next_adaptation.saturating_sub(since));
            let average = if idle > 0 { self.average_after_idle(idle, 0.0) } else { self.average };
            if average > min_threshold + 3.0 * fifth && self.max_probability <= 0.5 {
                self.max_probability += (self.max_probability / 4.0).min(0.01);
            } else if average < min_threshold + 2.0 * fifth && self.max_probability >= 0.01 {
                self.max_probability *= 0.9;
            }
            self.next_adaptation += ADAPTATION_INTERVAL;
        }
    }

    fn update_average(&mut self, now: Nanos, context: &ArrivalContext) {
        let keep = 1.0 - self.config.weight;
        if let Some(since) = context.idle_since {
            self.average = self.average_after_idle(now - since, 1.0);
        } else {
            let waiting = match self.config.rules {
                RedRules::Ns2 => context.waiting.packets as f64,
                RedRules::Linux { packet_bytes } => {
                    context.waiting.bytes as f64 / f64::from(packet_bytes.get())
                }
            };
            self.average = keep * self.average + self.config.weight * waiting;
        }
    }

    /// Drop probability at the current average, without the count since the last drop: `p_b`.
    fn base_drop_probability(&self) -> f64 {
        let RedConfig { min_threshold, max_threshold, .. } = self.config;
        let max_probability = self.max_probability;
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
        self.count += 1.0;
        let wait = self.config.rules == RedRules::Ns2;
        if self.average < self.config.min_threshold || (wait && context.waiting.packets < 2) {
            self.above = false;
            return false;
        }
        if !self.above {
            self.above = true;
            self.count = 1.0;
            return false;
        }
        let probability = uniformised_probability(self.base_drop_probability(), self.count, wait);
        let signals = self.draws.draw_chance(probability);
        if signals {
            self.count = 0.0;
        }
        signals
    }
}

/// Drop probability of packet number `count` since the last drop, as ns-2's `modify_p`: such that
/// the position of the drop is uniformly distributed over `1 / p` packets. With `wait_`, these
/// packets follow `1 / p` others with a probability of 0.
fn uniformised_probability(p: f64, count: f64, wait: bool) -> f64 {
    let expected = count * p;
    let latest = if wait { 2.0 } else { 1.0 };
    if wait && expected < 1.0 {
        0.0
    } else if expected < latest {
        (p / (latest - expected)).min(1.0)
    } else {
        1.0
    }
}

impl<D: RandomSource> AdmissionRule for Red<D> {
    #[inline]
    fn admit<T>(
        &mut self,
        now: Nanos,
        context: &ArrivalContext,
        probe: &mut impl QueueProbe<T>,
    ) -> AdmitDecision {
        if self.config.adaptive {
            self.adapt_probability(now, context.idle_since);
        }
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

    fn reset(&mut self, now: Nanos) {
        self.average = 0.0;
        self.max_probability = self.config.max_probability;
        self.next_adaptation = now + ADAPTATION_INTERVAL;
        self.count = 0.0;
        self.above = false;
    }
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
