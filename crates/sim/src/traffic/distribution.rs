//! Distributions of OFF times and file sizes, drawn by inversion with functions of `libm`.

use super::deserialize_non_empty;
use crate::random::{RandomSource, RandomStream};
use libm::{cos, erfc, exp, log, pow, sqrt};
use serde::Deserialize;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Distribution of OFF times in seconds or of file sizes in packets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// `minimum + Exp(scale)`.
    Exponential {
        /// Smallest value.
        minimum: f64,
        /// Mean minus the minimum.
        scale: f64,
    },
    /// Exponential body up to `k`, Pareto tail beyond (Engset report, section 3.2).
    #[serde(rename = "ep")]
    ExponentialPareto {
        /// Smallest value.
        minimum: f64,
        /// Start of the tail.
        k: f64,
        /// Scale of the body.
        theta: f64,
        /// Index of the tail.
        alpha: f64,
        /// Probability of the tail.
        tail: f64,
    },
    /// Exponential body up to `k`, exponential tail beyond (Engset report, section 3.2).
    #[serde(rename = "ee")]
    ExponentialExponential {
        /// Smallest value.
        minimum: f64,
        /// Start of the tail.
        k: f64,
        /// Scale of the body.
        theta1: f64,
        /// Scale of the tail.
        theta2: f64,
        /// Probability of the tail.
        tail: f64,
    },
    /// `minimum + exp(Normal(mu, sigma))`.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Smallest value.
        minimum: f64,
    },
    /// Pareto with smallest value `minimum` and index `alpha`.
    Pareto {
        /// Smallest value.
        minimum: f64,
        /// Index of the tail.
        alpha: f64,
    },
    /// A constant.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform between two ends.
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Discrete values with cumulative probabilities.
    Empirical {
        /// Values, at least one.
        #[serde(deserialize_with = "deserialize_non_empty")]
        values: Vec<f64>,
        /// Cumulative probabilities; the last one is 1.
        #[serde(deserialize_with = "deserialize_non_empty")]
        cumulative: Vec<f64>,
    },
}

impl Distribution {
    /// Draws a value. The lognormal distribution uses two numbers of the stream, every other
    /// distribution one.
    pub fn draw_value(&self, stream: &mut RandomStream) -> f64 {
        let u = stream.draw_unit();
        self.value_at_probability(u, |sigma| {
            sigma * box_muller_radius(u) * cos(2.0 * PI * stream.draw_unit())
        })
    }

    /// Value at the quantile of `z` in the standard normal distribution.
    pub(crate) fn value_at_normal_quantile(&self, z: f64) -> f64 {
        let is_increasing = matches!(self, Self::Uniform { .. } | Self::Empirical { .. });
        let beyond = if is_increasing { -z } else { z };
        let u = erfc(beyond * FRAC_1_SQRT_2) / 2.0;
        self.value_at_probability(u, |sigma| sigma * z)
    }

    /// Maps the uniform number `u` to a value. For the lognormal distribution, calls `normal` with
    /// a scale instead. Decreases with `u`, except for the uniform and empirical distributions.
    fn value_at_probability(&self, u: f64, normal: impl FnOnce(f64) -> f64) -> f64 {
        match self {
            Self::Exponential { minimum, scale } => minimum - scale * log(u),
            Self::ExponentialPareto { minimum, k, theta, alpha, tail } => {
                if u > *tail {
                    minimum - theta * log(u)
                } else {
                    k * pow(u / tail, -1.0 / alpha)
                }
            }
            Self::ExponentialExponential { minimum, k, theta1, theta2, tail } => {
                if u > *tail {
                    minimum - theta1 * log(u)
                } else {
                    k - theta2 * log(u / tail)
                }
            }
            Self::Lognormal { mu, sigma, minimum } => minimum + exp(mu + normal(*sigma)),
            Self::Pareto { minimum, alpha } => minimum * pow(u, -1.0 / alpha),
            Self::Constant { value } => *value,
            Self::Uniform { low, high } => low + (high - low) * u,
            Self::Empirical { values, cumulative } => {
                let index = cumulative.partition_point(|c| *c < u);
                values[index.min(values.len() - 1)]
            }
        }
    }
}

/// Draws from the standard normal distribution (Box and Muller 1958). Discards the second number of
/// the method, so that draws have no state.
pub(crate) fn draw_standard_normal(stream: &mut RandomStream) -> f64 {
    let u = stream.draw_unit();
    box_muller_radius(u) * cos(2.0 * PI * stream.draw_unit())
}

fn box_muller_radius(u: f64) -> f64 {
    sqrt(-2.0 * log(u))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{NamedStream, StreamPurpose};

    fn mean_and_share(distribution: &Distribution, above: f64) -> (f64, f64) {
        let mut stream = RandomStream::for_entity(1, 0, 0, StreamPurpose::Size);
        let draws: Vec<f64> = (0..400_000).map(|_| distribution.draw_value(&mut stream)).collect();
        let n = draws.len() as f64;
        let share = draws.iter().filter(|x| **x > above).count() as f64 / n;
        (draws.iter().sum::<f64>() / n, share)
    }

    fn close(value: f64, wanted: f64, relative: f64) {
        assert!((value / wanted - 1.0).abs() < relative, "{value}, expected {wanted}");
    }

    #[test]
    fn exponential_has_minimum_and_mean() {
        let (mean, share) =
            mean_and_share(&Distribution::Exponential { minimum: 3.0, scale: 9.0 }, 12.0);
        close(mean, 12.0, 0.01);
        close(share, (-1.0_f64).exp(), 0.01);
    }

    #[test]
    fn body_and_tail_match_the_engset_report() {
        // F = 12: EP has k = 17.2, EE(7) k = 4.286 and theta2 = 84.97.
        let (k, tail) = (17.25, 0.1);
        let theta = (k - 3.0) / 10.0_f64.ln();
        let ep = Distribution::ExponentialPareto { minimum: 3.0, k, theta, alpha: 1.5, tail };
        close(mean_and_share(&ep, k).1, 0.1, 0.02);
        let k = 3.0 + 9.0 / 7.0;
        let theta1 = (k - 3.0) / 10.0_f64.ln();
        let distribution =
            Distribution::ExponentialExponential { minimum: 3.0, k, theta1, theta2: 84.97, tail };
        let (mean, share) = mean_and_share(&distribution, k);
        close(mean, 12.0, 0.02);
        close(share, 0.1, 0.02);
    }

    #[test]
    fn other_distributions_have_their_means() {
        let sigma = 0.5;
        let mu = 10.0_f64.ln() - sigma * sigma / 2.0;
        close(
            mean_and_share(&Distribution::Lognormal { mu, sigma, minimum: 2.0 }, 0.0).0,
            12.0,
            0.01,
        );
        close(mean_and_share(&Distribution::Pareto { minimum: 2.0, alpha: 3.0 }, 4.0).0, 3.0, 0.01);
        close(mean_and_share(&Distribution::Uniform { low: 1.0, high: 3.0 }, 2.5).1, 0.25, 0.02);
        let distribution =
            Distribution::Empirical { values: vec![1.0, 5.0], cumulative: vec![0.25, 1.0] };
        close(mean_and_share(&distribution, 2.0).1, 0.75, 0.01);
        close(mean_and_share(&Distribution::Constant { value: 7.0 }, 0.0).0, 7.0, 1e-12);
    }
}
