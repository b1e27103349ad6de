//! Scaled populations: each simulated source represents `scale` sources of the population.
//!
//! The network is scaled down with the population, so that means are correct. The relative
//! fluctuations would not be the same: relative to the mean, the fluctuations of 1,000 independent
//! sources are ten times those of 100,000, and near saturation fluctuations cause queueing. So the
//! two random quantities that cause the fluctuations are drawn for the whole population instead of
//! per source.
//!
//! - The ends of OFF times are every `scale`-th end of the population. The expected number of ends
//!   per step follows from the elapsed OFF times and their distribution. The gap between two ends,
//!   measured in expected ends, is the sum of `scale` exponential variables divided by `scale`. The
//!   ending OFF times are selected in order of age, in equal steps of probability, which minimises
//!   the fluctuation of ages.
//! - Sizes are drawn from a lattice that is as irregular as every `scale`-th of the sorted sizes of
//!   the population ([`stratified_numbers`]). If OFF times are correlated with sizes, their ends
//!   depend on the sizes ([`size_correlated_off_times`]).
//!
//! Everything else (bursts, windows, queues) is simulated per packet and is as regular as these
//! inputs.

mod size_correlated_off_times;
mod stratified_numbers;

use crate::clock::{Nanos, seconds_to_nanos};
use crate::random::{RandomSource, RandomStream, StreamPurpose};
use crate::traffic::{Distribution, normal_quantile};
use size_correlated_off_times::SizeCorrelatedOffTimes;
use stratified_numbers::StratifiedNumbers;
pub(crate) use stratified_numbers::draw_gamma;

/// Number of steps in the median OFF time. The probability of an end is constant within a step.
const STEPS_IN_MEDIAN: u64 = 250;
/// Number of steps for which the probabilities are tabulated.
const TABULATED_STEPS: usize = 16 * STEPS_IN_MEDIAN as usize;
/// Minimum length of a step.
const MIN_STEP: Nanos = 1_000;
/// The golden ratio minus one: the fractional parts of its multiples are evenly spread.
const GOLDEN_RATIO_FRACTION: f64 = 0.618_033_988_749_894_9;

/// Scaled population of the on/off sources of a class.
#[derive(Clone, Debug)]
pub(crate) struct ScaledPopulation {
    /// Sources of the population per simulated source.
    scale: f64,
    off: Distribution,
    step: Nanos,
    /// Probability that an OFF time of n steps ends in the next one, by n.
    ends: Vec<f64>,
    /// OFF sources, longest OFF time first.
    idle: Vec<IdleSource>,
    /// Index of the current step.
    now: i64,
    /// Position among the OFF sources at which the step starts, as a fraction of their number.
    first: f64,
    /// Expected number of ends until the next end.
    until_next: f64,
    gaps: RandomStream,
    sizes: StratifiedNumbers,
    /// Set if OFF times are correlated with the preceding sizes.
    size_correlated: Option<SizeCorrelatedOffTimes>,
    /// For each OFF time that ends in this step: its index in `idle`, and the expected number of
    /// earlier ends within the step.
    ending: Vec<(usize, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct IdleSource {
    source: u32,
    /// Step in which the OFF time started.
    since: i64,
}

impl ScaledPopulation {
    /// Creates a population without OFF sources. `stream` returns the random stream of a purpose,
    /// and `coupling` is the correlation of the normal variables behind a file size and the
    /// following OFF time.
    pub(crate) fn new(
        scale: f64,
        off: &Distribution,
        coupling: f64,
        stream: impl Fn(StreamPurpose) -> RandomStream,
    ) -> Self {
        let step =
            (seconds_to_nanos(off.value_at_normal_quantile(0.0)) / STEPS_IN_MEDIAN).max(MIN_STEP);
        let mut gaps = stream(StreamPurpose::ScaledGap);
        let until_next = draw_gamma(scale, &mut gaps) / scale * gaps.draw_unit();
        Self {
            scale,
            off: off.clone(),
            step,
            ends: (0..TABULATED_STEPS)
                .map(|steps| off_time_end_probability(off, step, steps))
                .collect(),
            idle: Vec::new(),
            now: -1,
            first: 0.0,
            until_next,
            gaps,
            sizes: StratifiedNumbers::new(scale, stream(StreamPurpose::ScaledSize)),
            size_correlated: (coupling != 0.0)
                .then(|| SizeCorrelatedOffTimes::new(coupling, off, step)),
            ending: Vec::new(),
        }
    }

    /// Length of a step.
    pub(crate) fn step_length(&self) -> Nanos {
        self.step
    }

    /// Draws the quantile of the next file size of `source` and returns it as a standard normal
    /// deviate.
    pub(crate) fn draw_next_size_deviate(&mut self, source: u32) -> f64 {
        let size = normal_quantile(self.sizes.draw_number());
        if let Some(off_times) = &mut self.size_correlated {
            off_times.record_size(source, size);
        }
        size
    }

    /// Adds a source that turned OFF `age` before the current step.
    pub(crate) fn add_idle_source(&mut self, source: u32, age: Nanos) {
        let since = self.now - (age / self.step) as i64;
        self.idle.push(IdleSource { source, since });
    }

    /// Sorts the OFF sources by age, after all initial sources have been added.
    pub(crate) fn sort_idle_sources_by_age(&mut self) {
        self.idle.sort_by_key(|idle| (idle.since, idle.source));
    }

    /// Performs the next step. For each OFF time that ends in this step, calls `end` with the
    /// source and the time since the start of the step.
    pub(crate) fn end_off_times_of_step(&mut self, mut end: impl FnMut(u32, Nanos)) {
        self.now += 1;
        self.first = fractional_part(self.first + GOLDEN_RATIO_FRACTION);
        let first = (self.first * self.idle.len() as f64) as usize;
        self.ending.clear();
        let before = self.find_ending_off_times(first, self.idle.len(), 0.0);
        let expected = self.find_ending_off_times(0, first, before);
        let share = self.step as f64 / expected.max(f64::MIN_POSITIVE);
        for (index, before) in &self.ending {
            end(self.idle[*index].source, (before * share) as Nanos);
        }
        self.remove_ending_off_times();
    }

    /// Finds the OFF times in a range of `idle` that end in this step. `expected` is the expected
    /// number of ends that precede the range within this step; returns this number for the end of
    /// the range.
    fn find_ending_off_times(&mut self, from: usize, to: usize, mut expected: f64) -> f64 {
        for (index, idle) in (from..to).zip(&self.idle[from..to]) {
            let steps = (self.now - 1 - idle.since) as usize;
            let off_times = self.size_correlated.as_mut();
            let probability =
                match off_times.and_then(|of| of.off_time_end_probability(idle.source, steps)) {
                    Some(probability) => probability,
                    None => match self.ends.get(steps) {
                        Some(probability) => *probability,
                        None => off_time_end_probability(&self.off, self.step, steps),
                    },
                };
            expected += probability;
            self.until_next -= probability;
            // An OFF time with probability 0 must not end, even if the gap has been used up
            // exactly.
            if self.until_next <= 0.0 && probability > 0.0 {
                self.ending.push((index, expected));
                self.until_next += draw_gamma(self.scale, &mut self.gaps) / self.scale;
            }
        }
        expected
    }

    fn remove_ending_off_times(&mut self) {
        self.ending.sort_by_key(|(index, _)| *index);
        let Some(mut to) = self.ending.first().map(|(index, _)| *index) else { return };
        for (n, (index, _)) in self.ending.iter().enumerate() {
            let until = self.ending.get(n + 1).map_or(self.idle.len(), |(next, _)| *next);
            self.idle.copy_within(index + 1..until, to);
            to += until - (index + 1);
        }
        self.idle.truncate(to);
    }
}

fn fractional_part(x: f64) -> f64 {
    x - libm::floor(x)
}

/// Probability that an OFF time that has lasted `steps` ends in the next step. OFF times start in
/// the middle of a step on average, so the first step includes the rest of the previous one.
fn off_time_end_probability(off: &Distribution, step: Nanos, steps: usize) -> f64 {
    let survival = |steps: f64| off.probability_above(steps * step as f64 * 1e-9);
    let lasted = steps as f64 + 0.5;
    let now = if steps == 0 { 1.0 } else { survival(lasted) };
    if now <= f64::MIN_POSITIVE { 1.0 } else { 1.0 - survival(lasted + 1.0) / now }
}

#[cfg(test)]
#[path = "population_tests.rs"]
mod tests;
