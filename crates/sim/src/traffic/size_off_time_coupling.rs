//! Correlated draws of file sizes and the following OFF times.

use super::Distribution;
use super::distribution::draw_standard_normal;
use crate::random::RandomStream;

/// Normal variable behind the last size of each source, until its OFF time is drawn.
///
/// For a size, a standard normal variable z is drawn; the size is the value at the quantile of its
/// distribution that z has in the normal distribution. An OFF time is drawn in the same way, with a
/// variable correlated with z (Gaussian copula). So sizes and OFF times keep their distributions.
/// Sizes and OFF times use separate random streams.
#[derive(Clone, Debug, Default)]
pub struct SizeOffTimeCoupling(Vec<Option<f64>>);

impl SizeOffTimeCoupling {
    /// Draws the size of a file of a source; `correlation` is the correlation, 0 for independent
    /// draws.
    #[inline]
    pub fn draw_file_size(
        &mut self,
        source: u32,
        distribution: &Distribution,
        correlation: f64,
        stream: &mut RandomStream,
    ) -> f64 {
        if correlation == 0.0 {
            distribution.draw_value(stream)
        } else {
            self.draw_coupled_file_size(source, distribution, stream)
        }
    }

    fn draw_coupled_file_size(
        &mut self,
        source: u32,
        distribution: &Distribution,
        stream: &mut RandomStream,
    ) -> f64 {
        let source = source as usize;
        if source >= self.0.len() {
            self.0.resize(source + 1, None);
        }
        let z = draw_standard_normal(stream);
        self.0[source] = Some(z);
        distribution.value_at_normal_quantile(z)
    }

    /// Draws the OFF time after the last size; independent if no size was drawn before.
    #[inline]
    pub fn draw_off_time(
        &mut self,
        source: u32,
        distribution: &Distribution,
        correlation: f64,
        stream: &mut RandomStream,
    ) -> f64 {
        if correlation == 0.0 {
            distribution.draw_value(stream)
        } else {
            self.draw_coupled_off_time(source, distribution, correlation, stream)
        }
    }

    fn draw_coupled_off_time(
        &mut self,
        source: u32,
        distribution: &Distribution,
        correlation: f64,
        stream: &mut RandomStream,
    ) -> f64 {
        match self.0.get_mut(source as usize).and_then(Option::take) {
            Some(z) => distribution.value_at_normal_quantile(
                correlation * z
                    + libm::sqrt(1.0 - correlation * correlation) * draw_standard_normal(stream),
            ),
            None => distribution.draw_value(stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{NamedStream, StreamPurpose};
    use proptest::prelude::*;

    const DRAWS: usize = 20_000;

    fn distribution() -> impl Strategy<Value = Distribution> {
        prop_oneof![
            (0.1..5.0, 0.1..9.0)
                .prop_map(|(minimum, scale)| Distribution::Exponential { minimum, scale }),
            (-1.0..3.0, 0.2..1.5, 0.0..2.0)
                .prop_map(|(mu, sigma, minimum)| Distribution::Lognormal { mu, sigma, minimum }),
            (0.5..3.0, 1.2..4.0)
                .prop_map(|(minimum, alpha)| Distribution::Pareto { minimum, alpha }),
            (0.0..2.0, 2.5..9.0).prop_map(|(low, high)| Distribution::Uniform { low, high }),
            (1.0..3.0, 1.5..3.0).prop_map(|(minimum, alpha)| Distribution::ExponentialPareto {
                minimum,
                k: minimum + 10_f64.ln(),
                theta: 1.0,
                alpha,
                tail: 0.1,
            }),
            (1.0..3.0, 1.0..30.0).prop_map(|(minimum, theta2)| {
                Distribution::ExponentialExponential {
                    minimum,
                    k: minimum + 10_f64.ln(),
                    theta1: 1.0,
                    theta2,
                    tail: 0.1,
                }
            }),
        ]
    }

    fn pairs(
        size: &Distribution,
        off: &Distribution,
        correlation: f64,
        seed: u64,
    ) -> (Vec<f64>, Vec<f64>) {
        let stream = |purpose| RandomStream::for_entity(seed, 0, 3, purpose);
        let (mut sizes, mut off_times) =
            (stream(StreamPurpose::Size), stream(StreamPurpose::OffTime));
        let mut coupling = SizeOffTimeCoupling::default();
        let pair = |_| {
            let drawn = coupling.draw_file_size(3, size, correlation, &mut sizes);
            (drawn, coupling.draw_off_time(3, off, correlation, &mut off_times))
        };
        (0..DRAWS).map(pair).unzip()
    }

    /// Maximum distance of two empirical distributions (Kolmogorov-Smirnov).
    fn distance(one: &[f64], other: &[f64]) -> f64 {
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values
        };
        let (one, other) = (sorted(one), sorted(other));
        let below = |value: f64| other.partition_point(|x| *x <= value) as f64;
        let gap = |(index, value): (usize, &f64)| ((index + 1) as f64 - below(*value)).abs();
        one.iter().enumerate().map(gap).fold(0.0, f64::max) / DRAWS as f64
    }

    fn ranks(values: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
        let mut ranks = vec![0.0; values.len()];
        order.iter().enumerate().for_each(|(rank, index)| ranks[*index] = rank as f64);
        ranks
    }

    fn spearman(one: &[f64], other: &[f64]) -> f64 {
        let middle = (DRAWS - 1) as f64 / 2.0;
        let pairs = ranks(one).into_iter().zip(ranks(other));
        let sum: f64 = pairs.map(|(one, other)| (one - middle) * (other - middle)).sum();
        let n = DRAWS as f64;
        12.0 * sum / (n * (n * n - 1.0))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn distributions_are_kept_and_ranks_have_the_given_correlation(
            (size, off) in (distribution(), distribution()),
            rank in -1.0..1.0_f64,
            seed in 0..1000_u64,
        ) {
            let correlation = 2.0 * (std::f64::consts::PI * rank / 6.0).sin();
            let (sizes, off_times) = pairs(&size, &off, correlation, seed);
            // Above 2.5 sqrt(2 / n) with probability 1 / 130,000.
            let max = 2.5 * (2.0 / DRAWS as f64).sqrt();
            for (drawn, distribution) in [(&sizes, &size), (&off_times, &off)] {
                let mut stream = RandomStream::for_entity(seed, 1, 0, StreamPurpose::Arrival);
                let independent: Vec<f64> = (0..DRAWS).map(|_| distribution.draw_value(&mut stream)).collect();
                prop_assert!(distance(drawn, &independent) < max, "{distribution:?}");
            }
            let correlation = spearman(&sizes, &off_times);
            prop_assert!((correlation - rank).abs() < 0.03, "{correlation} for {rank}");
        }
    }

    #[test]
    fn off_time_without_previous_size_is_independent() {
        let off = Distribution::Exponential { minimum: 0.0, scale: 2.0 };
        let stream = || RandomStream::for_entity(1, 0, 3, StreamPurpose::OffTime);
        let mut coupling = SizeOffTimeCoupling::default();
        let independent = off.draw_value(&mut stream());
        assert_eq!(coupling.draw_off_time(3, &off, 0.9, &mut stream()), independent);
        coupling.draw_file_size(
            3,
            &off,
            0.9,
            &mut RandomStream::for_entity(1, 0, 3, StreamPurpose::Size),
        );
        assert_ne!(coupling.draw_off_time(3, &off, 0.9, &mut stream()), independent);
        assert_eq!(
            coupling.draw_off_time(3, &off, 0.9, &mut stream()),
            independent,
            "a size is used once"
        );
    }

    #[test]
    fn at_normal_returns_values_at_normal_quantiles() {
        let close =
            |value: f64, wanted: f64| assert!((value / wanted - 1.0).abs() < 1e-12, "{value}");
        let median = |distribution: Distribution| distribution.value_at_normal_quantile(0.0);
        close(
            median(Distribution::Exponential { minimum: 1.0, scale: 3.0 }),
            1.0 + 3.0 * 2_f64.ln(),
        );
        close(median(Distribution::Uniform { low: 1.0, high: 3.0 }), 2.0);
        close(
            median(Distribution::Lognormal { mu: 2.0, sigma: 1.0, minimum: 0.5 }),
            0.5 + 2_f64.exp(),
        );
        let distribution =
            Distribution::Empirical { values: vec![1.0, 5.0], cumulative: vec![0.25, 1.0] };
        assert_eq!(
            [-1.0, -0.5, 0.0, 3.0].map(|z| distribution.value_at_normal_quantile(z)),
            [1.0, 5.0, 5.0, 5.0]
        );
        let distribution = Distribution::Uniform { low: 0.0, high: 1.0 };
        close(distribution.value_at_normal_quantile(1.959_963_984_540_054), 0.975);
    }
}
