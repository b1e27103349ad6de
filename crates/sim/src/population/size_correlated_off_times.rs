//! OFF times that are correlated with the size of the preceding file.
//!
//! Sizes and OFF times are quantiles of normal variables with correlation `c` (Gaussian copula).
//! After a file with normal variable z, the OFF time exceeds the value with normal variable q if
//! `c z + sqrt(1 - c^2) w > q`, where w is an independent normal variable. So the probability
//! that the OFF time ends in a step depends on z.

use crate::clock::Nanos;
use crate::traffic::{Distribution, normal_probability_above, normal_quantile};
use libm::sqrt;

/// Minimum standard deviation of the independent part of OFF times, to avoid a division by zero.
const MIN_INDEPENDENT: f64 = 1e-6;

#[derive(Clone, Debug)]
pub(super) struct SizeCorrelatedOffTimes {
    correlation: f64,
    independent: f64,
    off: Distribution,
    step: Nanos,
    /// Normal variable of an OFF time of n + 1/2 steps, by n.
    ranks: Vec<f64>,
    /// For each source: normal variable of the last size, and the probability that an OFF time
    /// after this size lasts at least as long as the current OFF time has lasted so far. `None` or
    /// missing if no size was drawn.
    sources: Vec<Option<(f64, f64)>>,
}

impl SizeCorrelatedOffTimes {
    pub(super) fn new(correlation: f64, off: &Distribution, step: Nanos) -> Self {
        let independent = sqrt(1.0 - correlation * correlation).max(MIN_INDEPENDENT);
        let (ranks, sources) = (Vec::new(), Vec::new());
        let mut off_times =
            Self { correlation, independent, off: off.clone(), step, ranks, sources };
        off_times.ranks = (0..super::TABULATED_STEPS)
            .map(|steps| off_times.normal_score_of_duration(steps))
            .collect();
        off_times
    }

    fn normal_score_of_duration(&self, steps: usize) -> f64 {
        let longer = self.off.probability_above((steps as f64 + 0.5) * self.step as f64 * 1e-9);
        if longer <= 0.0 {
            f64::INFINITY
        } else if longer >= 1.0 {
            f64::NEG_INFINITY
        } else {
            -normal_quantile(longer)
        }
    }

    /// Records the normal variable of the size of a file, which is followed by an OFF time.
    pub(super) fn record_size(&mut self, source: u32, size: f64) {
        let source = source as usize;
        if source >= self.sources.len() {
            self.sources.resize(source + 1, None);
        }
        self.sources[source] = Some((size, 1.0));
    }

    /// Probability that the OFF time of a source, which has lasted `steps`, ends in the next step;
    /// `None` if no file preceded the OFF time. Must be called exactly once per step.
    pub(super) fn off_time_end_probability(&mut self, source: u32, steps: usize) -> Option<f64> {
        let &(size, lasted) = self.sources.get(source as usize)?.as_ref()?;
        let rank = self
            .ranks
            .get(steps + 1)
            .copied()
            .unwrap_or_else(|| self.normal_score_of_duration(steps + 1));
        let lasts = normal_probability_above((rank - self.correlation * size) / self.independent);
        self.sources[source as usize] = Some((size, lasts));
        Some(if lasted <= f64::MIN_POSITIVE { 1.0 } else { 1.0 - lasts / lasted })
    }
}
