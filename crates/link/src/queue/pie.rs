//! Proportional integral controller enhanced: Pan, Natarajan, Baker and White, RFC 8033 (2017).
//!
//! Packets are dropped (or marked) on arrival with a probability p, which is updated every
//! `update`:
//!
//! ```text
//! p <- p + alpha (delay - target) + beta (delay - previous delay)
//! ```
//!
//! The step is scaled down while p is small (section 4.2). The delay is the sojourn time of the
//! last packet that left. Bursts of up to `burst` are not dropped (section 4.4), drops are spread
//! (section 5.4), and packets are dropped instead of marked if p is above 10 % (section 5.1).

use super::{AdmissionRule, AdmitDecision, ArrivalContext, Backlog, QueueProbe};
use crate::packet::Packet;
use crate::random::{RandomSource, RandomStream};
use crate::time::{MILLISECOND, Nanos, SECOND};
use serde::Deserialize;

/// Implementation to follow in details in which the RFC and Linux differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PieRules {
    /// Linux's `sch_pie.c` with time stamps. The burst allowance decreases as packets leave, p
    /// rises by an additional 2 % if the delay is above 250 ms, and p shrinks by 1/64 if the delay
    /// was 0 and the queue is empty. Only a drop or a random mark resets the sum of probabilities.
    /// Unlike in Linux, p never exceeds 1.
    #[default]
    Linux,
    /// `sch_pie.c` of Linux 3.14 to 5.0. The delay is the backlog divided by the measured departure
    /// rate, the step has three scales, and drops are independent of each other.
    #[serde(rename = "linux-4")]
    Linux4,
    /// The pseudo-code of RFC 8033, appendix B, with time stamps (section 4.3) and always active.
    Rfc8033,
}

/// The parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieConfig {
    /// `QDELAY_REF`.
    #[serde(rename = "target_ns")]
    pub target: Nanos,
    /// `T_UPDATE`, the interval between updates of the probability; above 0.
    #[serde(rename = "update_ns")]
    pub update: Nanos,
    /// `MAX_BURST`.
    #[serde(rename = "burst_ns")]
    pub burst: Nanos,
    /// Change of the probability per second of delay above the target.
    pub alpha: f64,
    /// Change of the probability per second of increase in delay.
    pub beta: f64,
    /// Length of a full-sized packet in bytes; the backlog must reach two of these for early drops.
    pub mtu_bytes: u32,
    /// Maximum probability at which ECN-capable packets are marked instead of dropped; `None`
    /// disables ECN.
    pub ecn_below: Option<f64>,
    /// Implementation whose details are followed.
    pub rules: PieRules,
}

impl Default for PieConfig {
    /// RFC 8033, section 4: 15 ms, 15 ms, 150 ms, 0.125, 1.25; without ECN.
    fn default() -> Self {
        Self {
            target: 15 * MILLISECOND,
            update: 15 * MILLISECOND,
            burst: 150 * MILLISECOND,
            alpha: 0.125,
            beta: 1.25,
            mtu_bytes: 1500,
            ecn_below: None,
            rules: PieRules::Linux,
        }
    }
}

/// Maximum number of updates computed one by one between two packets.
///
/// With the parameters of RFC 8033, the probability rises from 0 to 1 in 10,000 updates if the
/// delay is 1 ms above the target, and falls from 1 to 0 in 600 updates if the queue is empty.
const MAX_UPDATES: u64 = 1 << 16;

/// Departed bytes per measurement of the departure rate, and minimum backlog during a measurement:
/// `QUEUE_THRESHOLD` of Linux 4.
const MEASURED_BYTES: u64 = 1 << 14;

/// Departure rate as Linux 4 measures it.
#[derive(Clone, Copy, Debug, Default)]
struct DepartureRate {
    /// Moving average in bytes per nanosecond; 0 before the first measurement.
    average: f64,
    /// Start of the present measurement, and bytes that have departed since.
    started: Option<(Nanos, u64)>,
}

impl DepartureRate {
    /// Counts a departed packet; returns the length of the measurement that it completes.
    fn count(&mut self, now: Nanos, bytes: u32, backlog: u64) -> Option<Nanos> {
        if backlog >= MEASURED_BYTES {
            self.started.get_or_insert((now, 0));
        }
        let (since, departed) = self.started.as_mut()?;
        *departed += u64::from(bytes);
        let length = now - *since;
        if *departed < MEASURED_BYTES || length == 0 {
            return None;
        }
        let rate = *departed as f64 / length as f64;
        self.average = if self.average == 0.0 { rate } else { self.average * 0.875 + rate / 8.0 };
        self.started = (backlog >= MEASURED_BYTES).then_some((now, 0));
        Some(length)
    }

    /// Time to send the backlog; 0 while the rate is unknown.
    fn delay_of(&self, backlog: u64) -> Nanos {
        if self.average == 0.0 { 0 } else { (backlog as f64 / self.average) as Nanos }
    }
}

/// The PIE admission rule.
#[derive(Clone, Debug)]
pub struct Pie<D = RandomStream> {
    config: PieConfig,
    draws: D,
    /// Probability of a drop or mark: `drop_prob_` in the RFC's pseudo-code.
    probability: f64,
    /// `accu_prob_`: the sum of the probabilities since the last drop.
    accumulated: f64,
    delay: Nanos,
    delay_before: Nanos,
    burst_left: Nanos,
    /// Time of the last dequeue since the burst allowance was reset.
    served_at: Option<Nanos>,
    departures: DepartureRate,
    update_at: Nanos,
}

impl<D: RandomSource> Pie<D> {
    /// Creates a rule with drop probability 0 and the first update at `config.update`; `draws` is
    /// used for drops.
    #[must_use]
    pub fn new(config: PieConfig, draws: D) -> Self {
        Self {
            config,
            draws,
            probability: 0.0,
            accumulated: 0.0,
            delay: 0,
            delay_before: 0,
            burst_left: config.burst,
            served_at: None,
            departures: DepartureRate::default(),
            update_at: config.update.max(1),
        }
    }

    /// Current drop probability of a full-sized packet.
    #[must_use]
    pub fn drop_probability(&self) -> f64 {
        self.probability
    }

    /// Whether the delay was below half the target in two successive updates.
    fn is_delay_low(&self) -> bool {
        let half = self.config.target / 2;
        self.delay < half && self.delay_before < half
    }

    /// Whether to drop or mark an arriving packet: `drop_early` in the RFC's pseudo-code.
    fn drops_early(&mut self, context: &ArrivalContext) -> bool {
        let backlog = context.waiting.bytes;
        let two = 2 * u64::from(self.config.mtu_bytes);
        // The pseudo-code uses the delay at the last update, Linux the delay of the last packet.
        let (delay, is_short) = match self.config.rules {
            PieRules::Linux | PieRules::Linux4 => (self.delay, backlog < two),
            PieRules::Rfc8033 => (self.delay_before, backlog <= two),
        };
        if is_short || (delay < self.config.target / 2 && self.probability < 0.2) {
            return false;
        }
        let probability = self.probability;
        if self.config.rules == PieRules::Linux4 {
            return self.draws.draw_chance(probability);
        }
        if probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += probability;
        if self.accumulated < 0.85 {
            return false;
        }
        if self.accumulated >= 8.5 {
            // Linux resets the sum only with a drop, so after a mark it also marks the packets that
            // follow.
            if self.config.rules == PieRules::Rfc8033 {
                self.accumulated = 0.0;
            }
            return true;
        }
        let signals = self.draws.draw_chance(probability);
        if signals {
            self.accumulated = 0.0;
        }
        signals
    }

    /// Divisor of the step while the probability is small (section 4.2).
    fn probability_step_divisor(&self) -> f64 {
        const DIVISORS: [(f64, f64); 6] =
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
        let finest = if self.config.rules == PieRules::Linux4 { 4 } else { 0 };
        let entry = DIVISORS[finest..].iter().find(|(below, _)| self.probability < *below);
        entry.map_or(1.0, |(_, scale)| *scale)
    }

    /// Updates the probability.
    fn update_probability(&mut self, waiting: Backlog) {
        if self.config.rules == PieRules::Linux4 {
            self.delay = self.departures.delay_of(waiting.bytes);
        }
        let seconds = |late: Nanos, early: Nanos| late as f64 / 1e9 - early as f64 / 1e9;
        let (delay, before) = (self.delay, self.delay_before);
        let mut step = self.config.alpha * seconds(delay, self.config.target)
            + self.config.beta * seconds(delay, before);
        step /= self.probability_step_divisor();
        if self.probability >= 0.1 && step > 0.02 {
            step = 0.02; // section 5.5
        }
        let is_linux = self.config.rules != PieRules::Rfc8033;
        if is_linux && delay > SECOND / 4 {
            step += 0.02;
        }
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        match self.config.rules {
            PieRules::Linux if delay == 0 && before == 0 && waiting.bytes == 0 => {
                self.probability -= self.probability / 64.0;
            }
            PieRules::Linux4 if delay == 0 && before == 0 && waiting.bytes == 0 => {
                self.probability *= 0.98;
            }
            PieRules::Rfc8033 if self.is_delay_low() => self.probability *= 0.98,
            PieRules::Linux | PieRules::Linux4 | PieRules::Rfc8033 => {}
        }
        if is_linux {
            if self.is_delay_low() && self.probability == 0.0 {
                self.burst_left = self.config.burst;
                self.served_at = None;
                self.departures = DepartureRate::default();
                self.accumulated = 0.0;
            }
        } else {
            self.burst_left = self.burst_left.saturating_sub(self.config.update);
        }
        self.delay_before = delay;
    }

    /// Replaces the remaining updates, which cover the time `rest`: the probability becomes 1 if the
    /// last update raised it from `before`, and 0 if the last update lowered it.
    fn extrapolate_probability(&mut self, before: f64, rest: Nanos) {
        if self.probability != before {
            self.probability = if self.probability > before { 1.0 } else { 0.0 };
        }
        if self.config.rules == PieRules::Rfc8033 {
            self.burst_left = self.burst_left.saturating_sub(rest);
        }
    }
}

impl<D: RandomSource> AdmissionRule for Pie<D> {
    fn admit<T>(
        &mut self,
        _now: Nanos,
        context: &ArrivalContext,
        _probe: &mut impl QueueProbe<T>,
    ) -> AdmitDecision {
        let in_burst = self.burst_left > 0;
        let signals = match self.config.rules {
            _ if !context.has_room => false,
            PieRules::Linux | PieRules::Linux4 => !in_burst && self.drops_early(context),
            // The pseudo-code draws a random number even during a burst.
            PieRules::Rfc8033 => self.drops_early(context) && !in_burst,
        };
        let marks = self.config.ecn_below.is_some_and(|max| self.probability <= max);
        let admit = match signals {
            false => AdmitDecision::Accept,
            true if marks && context.ecn.is_ecn_capable() => AdmitDecision::Mark,
            true => {
                self.accumulated = 0.0;
                AdmitDecision::Drop
            }
        };
        if self.config.rules == PieRules::Rfc8033 && self.is_delay_low() && self.probability == 0.0
        {
            self.burst_left = self.config.burst;
        }
        admit
    }

    fn on_overflow(&mut self) {
        self.accumulated = 0.0;
    }

    fn on_dequeue<T>(&mut self, now: Nanos, packet: &Packet<T>, waiting: Backlog) {
        if self.config.rules == PieRules::Linux4 {
            let measured = self.departures.count(now, packet.bytes, waiting.bytes);
            self.burst_left = self.burst_left.saturating_sub(measured.unwrap_or(0));
            return;
        }
        self.delay = now - packet.entered;
        if self.config.rules == PieRules::Linux {
            let since = self.served_at.map_or(0, |before| now - before);
            self.burst_left = self.burst_left.saturating_sub(since);
            self.served_at = Some(now);
            if waiting.packets == 0 {
                self.delay = 0;
            }
        }
    }

    fn deadline(&self) -> Nanos {
        self.update_at
    }

    fn on_deadline(&mut self, now: Nanos, waiting: Backlog) {
        let every = self.config.update.max(1);
        let Some(late) = now.checked_sub(self.update_at) else { return };
        let due = late / every + 1;
        self.update_at = self.update_at.saturating_add(due.saturating_mul(every));
        for done in 1..=due.min(MAX_UPDATES) {
            let before = (self.probability, self.delay_before, self.burst_left);
            self.update_probability(waiting);
            if before == (self.probability, self.delay_before, self.burst_left) {
                return; // further updates would not change anything
            }
            if done == MAX_UPDATES {
                self.extrapolate_probability(before.0, (due - done).saturating_mul(every));
            }
        }
    }

    fn reset(&mut self, now: Nanos) {
        self.probability = 0.0;
        self.accumulated = 0.0;
        (self.delay, self.delay_before) = (0, 0);
        self.burst_left = self.config.burst;
        self.served_at = None;
        self.departures = DepartureRate::default();
        self.update_at = now + self.config.update.max(1);
    }
}

#[cfg(test)]
#[path = "pie_tests.rs"]
mod tests;
