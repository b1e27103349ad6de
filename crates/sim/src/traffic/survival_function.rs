//! Survival functions of distributions, and normal quantiles.

use super::Distribution;
use libm::{erfc, exp, log, pow, sqrt};

impl Distribution {
    /// Probability of a value above `x`.
    pub(crate) fn probability_above(&self, x: f64) -> f64 {
        let share = match self {
            Self::Exponential { minimum, scale } => exp(-(x - minimum) / scale),
            Self::ExponentialPareto { minimum, k, theta, alpha, tail } => {
                if x < *k {
                    exp(-(x - minimum) / theta)
                } else {
                    tail * pow(x / k, -alpha)
                }
            }
            Self::ExponentialExponential { minimum, k, theta1, theta2, tail } => {
                if x < *k {
                    exp(-(x - minimum) / theta1)
                } else {
                    tail * exp(-(x - k) / theta2)
                }
            }
            Self::Lognormal { minimum, .. } if x <= *minimum => 1.0,
            Self::Lognormal { mu, sigma, minimum } => {
                normal_probability_above((log(x - minimum) - mu) / sigma)
            }
            Self::Pareto { minimum, alpha } => pow(x / minimum, -alpha),
            Self::Constant { value } => f64::from(u8::from(x < *value)),
            Self::Uniform { low, high } => (high - x) / (high - low),
            Self::Empirical { values, cumulative } => {
                let before = std::iter::once(&0.0).chain(cumulative);
                let shares = cumulative.iter().zip(before).map(|(with, without)| with - without);
                shares.zip(values).filter(|(_, value)| **value > x).map(|(share, _)| share).sum()
            }
        };
        share.clamp(0.0, 1.0)
    }
}

/// Probability that a standard normal variable is above `z`.
pub(crate) fn normal_probability_above(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// Quantile `below` of the standard normal distribution: formula 26.2.23 of Abramowitz and Stegun
/// (1964) with an error of 4.5e-4, then two steps of Newton's method.
pub(crate) fn normal_quantile(below: f64) -> f64 {
    let tail = below.min(1.0 - below);
    let t = sqrt(-2.0 * log(tail));
    let top = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let bottom = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut z = t - top / bottom;
    for _ in 0..2 {
        let density = exp(-0.5 * z * z) / sqrt(2.0 * std::f64::consts::PI);
        z += (normal_probability_above(z) - tail) / density;
    }
    if below < 0.5 { -z } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_inverts_at_normal() {
        let theta = 3.0 / 10.0_f64.ln();
        for distribution in [
            Distribution::Exponential { minimum: 3.0, scale: 9.0 },
            Distribution::ExponentialPareto { minimum: 2.0, k: 5.0, theta, alpha: 1.5, tail: 0.1 },
            Distribution::ExponentialExponential {
                minimum: 2.0,
                k: 5.0,
                theta1: theta,
                theta2: 9.0,
                tail: 0.1,
            },
            Distribution::Lognormal { mu: 1.0, sigma: 0.6, minimum: 4.0 },
            Distribution::Pareto { minimum: 2.0, alpha: 1.2 },
            Distribution::Uniform { low: 1.0, high: 3.0 },
        ] {
            for u in [1e-9, 0.001, 0.02, 0.3, 0.5, 0.77, 0.95, 0.9999] {
                let survival = distribution.probability_above(
                    distribution.value_at_normal_quantile(normal_quantile(1.0 - u)),
                );
                assert!((survival / u - 1.0).abs() < 1e-6, "{distribution:?} at {u}: {survival}");
            }
            assert!(
                distribution.probability_above(0.0) > 0.999
                    && distribution.probability_above(1e30) < 1e-9,
                "{distribution:?}"
            );
        }
        let distribution =
            Distribution::Empirical { values: vec![5.0, 1.0], cumulative: vec![0.25, 1.0] };
        assert_eq!(
            [0.5, 1.0, 4.0, 5.0].map(|x| distribution.probability_above(x)),
            [1.0, 0.25, 0.25, 0.0]
        );
        assert_eq!(
            [4.9, 5.0].map(|x| Distribution::Constant { value: 5.0 }.probability_above(x)),
            [1.0, 0.0]
        );
    }
}
