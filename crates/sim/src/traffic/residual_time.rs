//! Residual OFF times and file sizes in equilibrium (renewal theory).
//!
//! The residual of a variable X exceeds x with probability `G(x) / G(0)`, where G(x) is the
//! integral of P(X > y) over y from x to infinity, and G(0) is the mean. All distributions except
//! two are drawn by inversion of G.

use super::Distribution;
use crate::random::{RandomSource, RandomStream};
use libm::{exp, log, pow, sqrt};

impl Distribution {
    /// Draws a residual. For an empirical distribution the time is proportional to its length.
    pub fn draw_residual_time(&self, stream: &mut RandomStream) -> f64 {
        let u = stream.draw_unit();
        match self {
            Self::Exponential { minimum, scale } => {
                invert_residual_from_minimum(*minimum, *scale, u, |area| {
                    minimum - scale * log(area / scale)
                })
            }
            Self::ExponentialPareto { minimum, k, theta, alpha, tail } => {
                let of_tail = tail * k / (alpha - 1.0);
                invert_residual_body_and_tail(*minimum, *theta, *tail, of_tail, u, |share| {
                    k * pow(share, -1.0 / (alpha - 1.0))
                })
            }
            Self::ExponentialExponential { minimum, k, theta1, theta2, tail } => {
                invert_residual_body_and_tail(*minimum, *theta1, *tail, tail * theta2, u, |share| {
                    k - theta2 * log(share)
                })
            }
            Self::Lognormal { mu, sigma, minimum } => {
                // Length-biased value: exp(mu + sigma^2 + sigma Z).
                let mean = exp(mu + sigma * sigma / 2.0);
                invert_residual_from_minimum(*minimum, mean, u, |area| {
                    let biased =
                        Self::Lognormal { mu: mu + sigma * sigma, sigma: *sigma, minimum: 0.0 };
                    minimum + area / mean * biased.draw_value(stream)
                })
            }
            Self::Pareto { minimum, alpha } => {
                invert_residual_from_minimum(*minimum, minimum / (alpha - 1.0), u, |area| {
                    minimum * pow(area * (alpha - 1.0) / minimum, -1.0 / (alpha - 1.0))
                })
            }
            Self::Constant { value } => value * u,
            Self::Uniform { low, high } => {
                invert_residual_from_minimum(*low, (high - low) / 2.0, u, |area| {
                    high - sqrt(2.0 * (high - low) * area)
                })
            }
            Self::Empirical { values, cumulative } => {
                u * draw_length_biased(values, cumulative, stream)
            }
        }
    }
}

/// Inverts G at `u G(0)`. P(X > y) is 1 below `minimum`, and `beyond` is G(`minimum`), which
/// `invert` inverts.
fn invert_residual_from_minimum(
    minimum: f64,
    beyond: f64,
    u: f64,
    invert: impl FnOnce(f64) -> f64,
) -> f64 {
    let area = u * (minimum + beyond);
    if area < beyond { invert(area) } else { minimum + beyond - area }
}

/// Inverts G for an exponential body of scale `theta` and a tail with probability `tail` and
/// integral `of_tail`; `invert` takes a fraction of that integral.
fn invert_residual_body_and_tail(
    minimum: f64,
    theta: f64,
    tail: f64,
    of_tail: f64,
    u: f64,
    invert: impl FnOnce(f64) -> f64,
) -> f64 {
    invert_residual_from_minimum(minimum, theta * (1.0 - tail) + of_tail, u, |area| {
        if area < of_tail {
            invert(area / of_tail)
        } else {
            minimum - theta * log(tail + (area - of_tail) / theta)
        }
    })
}

/// Draws a value with probability proportional to its probability times its length.
fn draw_length_biased(values: &[f64], cumulative: &[f64], stream: &mut RandomStream) -> f64 {
    let weight = |index: usize| {
        let before = if index == 0 { 0.0 } else { cumulative[index - 1] };
        values[index] * (cumulative[index] - before)
    };
    let mut remaining = stream.draw_unit() * (0..values.len()).map(weight).sum::<f64>();
    let index = (0..values.len()).find(|index| {
        remaining -= weight(*index);
        remaining <= 0.0
    });
    values[index.unwrap_or(values.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{NamedStream, StreamPurpose};

    /// Checks the mean E(X^2) / (2 E(X)) and the distribution of residuals.
    fn check(distribution: &Distribution) {
        let mut stream = RandomStream::for_entity(1, 0, 0, StreamPurpose::OffTime);
        let n = 400_000;
        let draws: Vec<f64> = (0..n).map(|_| distribution.draw_value(&mut stream)).collect();
        let residuals: Vec<f64> =
            (0..n).map(|_| distribution.draw_residual_time(&mut stream)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares: Vec<f64> = draws.iter().map(|x| x * x).collect();
        let wanted = mean(&squares) / (2.0 * mean(&draws));
        let mean_residual = mean(&residuals);
        assert!(
            (mean_residual / wanted - 1.0).abs() < 0.03,
            "{distribution:?}: {mean_residual} for {wanted}"
        );
        // P(residual > x) is the integral of P(X > y) from x to infinity, divided by the mean.
        for factor in [0.3, 1.0, 2.5] {
            let x = factor * mean(&draws);
            let beyond: Vec<f64> = draws.iter().map(|value| (value - x).max(0.0)).collect();
            let wanted = mean(&beyond) / mean(&draws);
            let share = residuals.iter().filter(|value| **value > x).count() as f64 / n as f64;
            assert!(
                (share - wanted).abs() < 0.005,
                "{distribution:?} above {x}: {share} for {wanted}"
            );
        }
    }

    #[test]
    fn residuals_have_the_equilibrium_distribution() {
        let theta = 3.0 / 10.0_f64.ln();
        for distribution in [
            Distribution::Exponential { minimum: 0.0, scale: 2.0 },
            Distribution::Exponential { minimum: 3.0, scale: 9.0 },
            Distribution::ExponentialPareto { minimum: 2.0, k: 5.0, theta, alpha: 5.0, tail: 0.1 },
            Distribution::ExponentialExponential {
                minimum: 2.0,
                k: 5.0,
                theta1: theta,
                theta2: 9.0,
                tail: 0.1,
            },
            Distribution::Lognormal { mu: 1.0, sigma: 0.6, minimum: 0.0 },
            Distribution::Lognormal { mu: 1.0, sigma: 0.6, minimum: 4.0 },
            Distribution::Pareto { minimum: 2.0, alpha: 5.0 },
            Distribution::Constant { value: 7.0 },
            Distribution::Uniform { low: 1.0, high: 3.0 },
            Distribution::Uniform { low: 0.0, high: 3.0 },
            Distribution::Empirical {
                values: vec![5.0, 1.0, 20.0],
                cumulative: vec![0.25, 0.75, 1.0],
            },
        ] {
            check(&distribution);
        }
    }
}
