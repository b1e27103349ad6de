//! Measurements on reference flows, and the resulting distributions for cross flows.

use tcpcast_sim::random::{RandomSource, RandomStream};
use tcpcast_sim::traffic::Distribution;

/// Minimum number of measurements for a distribution.
const MIN_SAMPLES: f64 = 20.0;

/// Resolution of the number of active flows: 9 %.
const BINS_PER_OCTAVE: f64 = 8.0;

/// First two moments of a positive variable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    weight: f64,
    sum: f64,
    squares: f64,
    /// Part of the sum that belongs to no single measurement.
    extra_sum: f64,
}

impl Moments {
    pub(super) fn add_value(&mut self, value: f64) {
        self.weight += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn add_to_sum_without_count(&mut self, value: f64) {
        self.extra_sum += value;
    }

    fn add_moments(&mut self, other: &Self) {
        self.weight += other.weight;
        self.sum += other.sum;
        self.squares += other.squares;
        self.extra_sum += other.extra_sum;
    }

    fn scale_weights(&mut self, factor: f64) {
        self.weight *= factor;
        self.sum *= factor;
        self.squares *= factor;
        self.extra_sum *= factor;
    }

    /// Mean including `extra_sum`; `None` without measurements.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| (self.sum + self.extra_sum) / self.weight)
    }

    /// Distribution with this mean: exponential for one moment, or lognormal with the coefficient
    /// of variation of the measurements for two moments.
    fn fitted_distribution(&self, moments: u8) -> Option<Distribution> {
        let mean = self.mean().filter(|mean| *mean > 0.0)?;
        if moments < 2 {
            return Some(Distribution::Exponential { minimum: 0.0, scale: mean });
        }
        let sample_mean = self.sum / self.weight;
        let variation = (self.squares / self.weight / (sample_mean * sample_mean) - 1.0).max(0.0);
        let sigma = libm::sqrt(libm::log1p(variation));
        Some(Distribution::Lognormal {
            mu: libm::log(mean) - sigma * sigma / 2.0,
            sigma,
            minimum: 0.0,
        })
    }
}

/// Binning of measurements by the number of active flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActiveFlowBinning {
    pub conditional: bool,
}

impl ActiveFlowBinning {
    pub(super) fn bin_of(self, active: u32) -> usize {
        if self.conditional {
            (BINS_PER_OCTAVE * libm::log2(f64::from(active) + 1.0)) as usize
        } else {
            0
        }
    }
}

/// Returns the entry of a bin or of the nearest non-empty bin; the lower one of two.
fn nearest_nonempty_entry<T>(entries: &[Option<T>], bin: usize) -> Option<&T> {
    let known = entries.iter().enumerate().filter_map(|(i, entry)| Some((i, entry.as_ref()?)));
    known.min_by_key(|(i, _)| i.abs_diff(bin)).map(|(_, entry)| entry)
}

/// Fills empty bins with the nearest entry.
fn fill_empty_bins<T: Clone>(entries: &[Option<T>]) -> Vec<T> {
    (0..entries.len()).filter_map(|bin| nearest_nonempty_entry(entries, bin).cloned()).collect()
}

/// Moments by number of active flows, for previous steps and the current step.
#[derive(Clone, Debug, Default)]
pub(super) struct MomentsByActiveFlows {
    before: Vec<Moments>,
    now: Vec<Moments>,
}

impl MomentsByActiveFlows {
    pub(super) fn add_value(&mut self, bin: usize, value: f64) {
        self.moments_of_bin(bin).add_value(value);
    }

    pub(super) fn add_to_sum_without_count(&mut self, bin: usize, value: f64) {
        self.moments_of_bin(bin).add_to_sum_without_count(value);
    }

    fn moments_of_bin(&mut self, bin: usize) -> &mut Moments {
        if bin >= self.now.len() {
            self.now.resize(bin + 1, Moments::default());
        }
        &mut self.now[bin]
    }

    /// Moments of the current step over all bins.
    pub(super) fn current_step(&self) -> Moments {
        total_moments(&self.now)
    }

    /// Ends a step. Previous measurements are weighted by `previous_weight`, or by 1 if the step
    /// has too few measurements.
    pub(super) fn end_step(&mut self, previous_weight: f64) {
        let previous_weight =
            if total_moments(&self.now).weight < MIN_SAMPLES { 1.0 } else { previous_weight };
        self.before.iter_mut().for_each(|moments| moments.scale_weights(previous_weight));
        if self.before.len() < self.now.len() {
            self.before.resize(self.now.len(), Moments::default());
        }
        for (before, now) in self.before.iter_mut().zip(&mut self.now) {
            before.add_moments(now);
            *now = Moments::default();
        }
    }

    /// Distributions per bin; `None` if there are too few measurements.
    pub(super) fn fitted_distributions(&self, moments: u8) -> Option<Vec<Distribution>> {
        let fit = |m: &Moments| {
            (m.weight >= MIN_SAMPLES).then(|| m.fitted_distribution(moments)).flatten()
        };
        let distributions: Vec<Option<Distribution>> = self.before.iter().map(fit).collect();
        let distributions = fill_empty_bins(&distributions);
        if distributions.is_empty() { None } else { Some(distributions) }
    }

    /// Mean over all bins and previous steps.
    pub(super) fn mean(&self) -> Option<f64> {
        total_moments(&self.before).mean()
    }
}

fn total_moments(parts: &[Moments]) -> Moments {
    let mut all = Moments::default();
    parts.iter().for_each(|part| all.add_moments(part));
    all
}

/// One distribution per bin of the number of active flows.
#[derive(Clone, Debug)]
pub(super) struct DistributionByActiveFlows(Vec<Distribution>);

impl DistributionByActiveFlows {
    pub(super) fn constant(value: f64) -> Self {
        Self(vec![Distribution::Exponential { minimum: 0.0, scale: value }])
    }

    pub(super) fn new(distributions: Vec<Distribution>) -> Self {
        Self(distributions)
    }

    pub(super) fn draw(&self, bin: usize, stream: &mut RandomStream) -> f64 {
        self.0[bin.min(self.0.len() - 1)].draw_value(stream)
    }
}

/// Distribution of the number of packets of the same flow that an arriving packet finds, by number
/// of active flows.
#[derive(Clone, Debug, Default)]
pub(super) struct BacklogDistribution {
    counts: Vec<Vec<f64>>,
    cumulative: Vec<Vec<f64>>,
}

impl BacklogDistribution {
    pub(super) fn add_backlog(&mut self, bin: usize, packets: usize) {
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, Vec::new());
        }
        let counts = &mut self.counts[bin];
        if packets >= counts.len() {
            counts.resize(packets + 1, 0.0);
        }
        counts[packets] += 1.0;
    }

    /// Ends a step. Draws use all measurements so far, which are then weighted by
    /// `previous_weight`.
    pub(super) fn end_step(&mut self, previous_weight: f64) {
        let distributions: Vec<Option<Vec<f64>>> =
            self.counts.iter().map(|counts| cumulative_probabilities(counts)).collect();
        let distributions = fill_empty_bins(&distributions);
        if !distributions.is_empty() {
            self.cumulative = distributions;
        }
        self.counts.iter_mut().flatten().for_each(|count| *count *= previous_weight);
    }

    /// Draws a number; `None` without measurements.
    pub(super) fn draw(&self, bin: usize, stream: &mut RandomStream) -> Option<u32> {
        let distribution = self.cumulative.get(bin.min(self.cumulative.len().checked_sub(1)?))?;
        let u = stream.draw_unit();
        Some(distribution.partition_point(|below| *below < u).min(distribution.len() - 1) as u32)
    }
}

fn cumulative_probabilities(counts: &[f64]) -> Option<Vec<f64>> {
    let total: f64 = counts.iter().sum();
    if total < MIN_SAMPLES {
        return None;
    }
    let mut below = 0.0;
    let add = |count: &f64| {
        below += count / total;
        below
    };
    Some(counts.iter().map(add).collect())
}

/// Distributions used by the cross flows of a class, and measurements on its reference flows.
#[derive(Clone, Debug)]
pub(super) struct CrossFlowDistributions {
    pub gap: DistributionByActiveFlows,
    pub service: DistributionByActiveFlows,
    /// Means of the current distributions, in seconds.
    pub gap_used: f64,
    pub service_used: f64,
    pub timeouts: f64,
    pub measured_gap: MomentsByActiveFlows,
    pub measured_service: MomentsByActiveFlows,
    pub own_backlog: BacklogDistribution,
    /// Packets and timeouts of reference flows so far.
    sent: f64,
    expired: f64,
}

impl CrossFlowDistributions {
    pub(super) fn new(initial: (f64, f64)) -> Self {
        Self {
            gap: DistributionByActiveFlows::constant(initial.0),
            service: DistributionByActiveFlows::constant(initial.1),
            gap_used: initial.0,
            service_used: initial.1,
            timeouts: 0.0,
            measured_gap: MomentsByActiveFlows::default(),
            measured_service: MomentsByActiveFlows::default(),
            own_backlog: BacklogDistribution::default(),
            sent: 0.0,
            expired: 0.0,
        }
    }

    /// Ends a step and updates the distributions of the cross flows.
    pub(super) fn end_step(&mut self, previous_weight: f64, moments: u8, sent: u64, expired: u64) {
        self.measured_gap.end_step(previous_weight);
        self.measured_service.end_step(previous_weight);
        self.own_backlog.end_step(previous_weight);
        if let Some(distributions) = self.measured_gap.fitted_distributions(moments) {
            self.gap = DistributionByActiveFlows::new(distributions);
            self.gap_used = self.measured_gap.mean().unwrap_or(self.gap_used);
        }
        if let Some(distributions) = self.measured_service.fitted_distributions(moments) {
            self.service = DistributionByActiveFlows::new(distributions);
            self.service_used = self.measured_service.mean().unwrap_or(self.service_used);
        }
        self.sent = previous_weight * self.sent + sent as f64;
        self.expired = previous_weight * self.expired + expired as f64;
        self.timeouts = if self.sent > 0.0 { self.expired / self.sent } else { 0.0 };
    }
}
