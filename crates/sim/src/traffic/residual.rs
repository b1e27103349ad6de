//! What is left of an OFF time or a file for someone who comes at any time.
//!
//! Of a variable X, what is left exceeds x with probability `G(x) / G(0)`, where G(x) is the
//! integral of P(X > y) over y from x on, and G(0) the mean. All distributions but two are drawn by
//! inverting G.

use super::Distribution;
use crate::random::{Draws, Stream};
use libm::{exp, log, pow, sqrt};

impl Distribution {
    /// Draws what is left. An empirical distribution takes a time proportional to its length.
    pub fn draw_residual(&self, stream: &mut Stream) -> f64 {
        let u = stream.unit();
        match self {
            Self::Exponential { minimum, scale } => {
                below(*minimum, *scale, u, |area| minimum - scale * log(area / scale))
            }
            Self::ExponentialPareto { minimum, k, theta, alpha, tail } => {
                let of_tail = tail * k / (alpha - 1.0);
                body_and_tail(*minimum, *theta, *tail, of_tail, u, |share| {
                    k * pow(share, -1.0 / (alpha - 1.0))
                })
            }
            Self::ExponentialExponential { minimum, k, theta1, theta2, tail } => {
                body_and_tail(*minimum, *theta1, *tail, tail * theta2, u, |share| {
                    k - theta2 * log(share)
                })
            }
            Self::Lognormal { mu, sigma, minimum } => {
                // Longer ones are found more often, in proportion: exp(mu + sigma^2 + sigma Z).
                let mean = exp(mu + sigma * sigma / 2.0);
                below(*minimum, mean, u, |area| {
                    let found =
                        Self::Lognormal { mu: mu + sigma * sigma, sigma: *sigma, minimum: 0.0 };
                    minimum + area / mean * found.draw(stream)
                })
            }
            Self::Pareto { minimum, alpha } => {
                below(*minimum, minimum / (alpha - 1.0), u, |area| {
                    minimum * pow(area * (alpha - 1.0) / minimum, -1.0 / (alpha - 1.0))
                })
            }
            Self::Constant { value } => value * u,
            Self::Uniform { low, high } => {
                below(*low, (high - low) / 2.0, u, |area| high - sqrt(2.0 * (high - low) * area))
            }
            Self::Empirical { values, cumulative } => u * found(values, cumulative, stream),
        }
    }
}

/// Inverts G at `u` of its whole: P(X > y) is 1 below `minimum`, and `beyond` is the integral from
/// there on, which `invert` inverts.
fn below(minimum: f64, beyond: f64, u: f64, invert: impl FnOnce(f64) -> f64) -> f64 {
    let area = u * (minimum + beyond);
    if area < beyond { invert(area) } else { minimum + beyond - area }
}

/// The same for an exponential body of scale `theta`, the rest of which, `tail`, is in a tail with
/// the integral `of_tail`; `invert` takes a share of that.
fn body_and_tail(
    minimum: f64,
    theta: f64,
    tail: f64,
    of_tail: f64,
    u: f64,
    invert: impl FnOnce(f64) -> f64,
) -> f64 {
    below(minimum, theta * (1.0 - tail) + of_tail, u, |area| {
        if area < of_tail {
            invert(area / of_tail)
        } else {
            minimum - theta * log(tail + (area - of_tail) / theta)
        }
    })
}

/// The one of the values that someone finds: each by its probability times its length.
fn found(values: &[f64], cumulative: &[f64], stream: &mut Stream) -> f64 {
    let weights = |at: usize| {
        let before = if at == 0 { 0.0 } else { cumulative[at - 1] };
        values[at] * (cumulative[at] - before)
    };
    let mut left = stream.unit() * (0..values.len()).map(weights).sum::<f64>();
    let at = (0..values.len()).find(|at| {
        left -= weights(*at);
        left <= 0.0
    });
    values[at.unwrap_or(values.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Named, Purpose};

    /// Mean and second moment of draws, and of what is left: E(left) is E(X^2) / (2 E(X)).
    fn check(distribution: &Distribution) {
        let mut stream = Stream::named(1, 0, 0, Purpose::OffTime);
        let n = 400_000;
        let draws: Vec<f64> = (0..n).map(|_| distribution.draw(&mut stream)).collect();
        let left: Vec<f64> = (0..n).map(|_| distribution.draw_residual(&mut stream)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares: Vec<f64> = draws.iter().map(|x| x * x).collect();
        let wanted = mean(&squares) / (2.0 * mean(&draws));
        let mean_left = mean(&left);
        assert!(
            (mean_left / wanted - 1.0).abs() < 0.03,
            "{distribution:?}: {mean_left} for {wanted}"
        );
        // P(left > x) is the integral of P(X > y) from x on, over the mean.
        for at in [0.3, 1.0, 2.5] {
            let x = at * mean(&draws);
            let beyond: Vec<f64> = draws.iter().map(|value| (value - x).max(0.0)).collect();
            let wanted = mean(&beyond) / mean(&draws);
            let share = left.iter().filter(|value| **value > x).count() as f64 / n as f64;
            assert!(
                (share - wanted).abs() < 0.005,
                "{distribution:?} above {x}: {share} for {wanted}"
            );
        }
    }

    #[test]
    fn what_is_left_follows_from_the_law() {
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
