//! Uniform draws with means that fluctuate as in a larger population.

use super::{GOLDEN_RATIO_FRACTION, fractional_part};
use crate::random::{RandomSource, RandomStream};
use libm::{cos, log, pow, sqrt};

/// Minimum and maximum number of draws per block; powers of two.
const BLOCK_SIZE_LIMITS: [usize; 2] = [32, 1024];
/// Draws per block and unit of the scale. With this number, the position of the lattice contributes
/// 1/16 of the required variance.
const DRAWS_PER_SCALE: f64 = 16.0;

/// Uniform numbers in (0, 1), distributed like every `scale`-th of many sorted numbers.
///
/// A block is a ring of points with gaps that are sums of `scale` exponential variables: as
/// irregular as independent draws for `scale` = 1, and nearly a lattice for large scales. The start
/// of the ring is a random lattice point, and the lattice is shifted from block to block by the
/// golden ratio of a gap, so that no value is preferred. Points are returned in bit-reversed order
/// (van der Corput 1935), so that parts of a block are also spread over the whole range.
#[derive(Clone, Debug)]
pub(super) struct StratifiedNumbers {
    scale: f64,
    stream: RandomStream,
    points: Vec<f64>,
    block: usize,
    next: usize,
    /// Shift of the lattice, as a fraction of a gap.
    shift: f64,
}

impl StratifiedNumbers {
    pub(super) fn new(scale: f64, mut stream: RandomStream) -> Self {
        let shift = stream.draw_unit();
        let [min, max] = BLOCK_SIZE_LIMITS;
        let block = ((scale * DRAWS_PER_SCALE) as usize).clamp(min, max).next_power_of_two();
        Self { scale, stream, points: Vec::new(), block, next: 0, shift }
    }

    pub(super) fn draw_number(&mut self) -> f64 {
        if self.next == self.points.len() {
            self.refill_block();
            self.next = 0;
        }
        let index = self.next.reverse_bits() >> (usize::BITS - self.block.trailing_zeros());
        self.next += 1;
        self.points[index]
    }

    fn refill_block(&mut self) {
        self.points.clear();
        let mut sum = 0.0;
        for _ in 0..self.block {
            sum += draw_gamma(self.scale, &mut self.stream);
            self.points.push(sum);
        }
        self.shift = fractional_part(self.shift + GOLDEN_RATIO_FRACTION);
        let gaps = self.block as f64;
        let begins = libm::floor(self.stream.draw_unit() * gaps) + self.shift;
        for point in &mut self.points {
            // Excludes 0 and 1, at which distributions may be infinite.
            *point = fractional_part(*point / sum + begins / gaps).clamp(1e-15, 1.0 - 1e-15);
        }
        self.points.sort_by(f64::total_cmp);
    }
}

/// Draws a gamma variable of shape `shape` (at least 1) and scale 1 (Marsaglia and Tsang 2000).
pub(crate) fn draw_gamma(shape: f64, stream: &mut RandomStream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / sqrt(9.0 * d);
    loop {
        let x = draw_standard_normal(stream);
        let v = pow(1.0 + c * x, 3.0);
        if v > 0.0 && log(stream.draw_unit()) < 0.5 * x * x + d * (1.0 - v + log(v)) {
            return d * v;
        }
    }
}

/// Draws a standard normal variable (Box and Muller 1958).
fn draw_standard_normal(stream: &mut RandomStream) -> f64 {
    let angle = 2.0 * std::f64::consts::PI * stream.draw_unit();
    sqrt(-2.0 * log(stream.draw_unit())) * cos(angle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{NamedStream, StreamPurpose};

    fn stream() -> RandomStream {
        RandomStream::for_entity(1, 0, 0, StreamPurpose::ScaledSize)
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn gamma_has_its_mean_and_variance() {
        let mut stream = stream();
        for shape in [1.0, 2.5, 40.0] {
            let draws: Vec<f64> = (0..200_000).map(|_| draw_gamma(shape, &mut stream)).collect();
            let (mean, variance) = moments(&draws);
            assert!((mean / shape - 1.0).abs() < 0.01, "{mean} for {shape}");
            assert!((variance / shape - 1.0).abs() < 0.03, "{variance} for {shape}");
        }
    }

    /// Variance of the means of 1024 consecutive draws, relative to independent draws.
    fn spread(scale: f64) -> f64 {
        let mut strata = StratifiedNumbers::new(scale, stream());
        let means: Vec<f64> = (0..1500)
            .map(|_| (0..1024).map(|_| strata.draw_number()).sum::<f64>() / 1024.0)
            .collect();
        let (mean, variance) = moments(&means);
        assert!((mean - 0.5).abs() < 0.002, "{mean}");
        variance * 12.0 * 1024.0
    }

    #[test]
    fn means_have_the_variance_of_a_larger_population() {
        for scale in [1.0, 4.0, 20.0, 64.0] {
            let relative = spread(scale) * scale;
            assert!((0.85..1.2).contains(&relative), "{relative} for {scale}");
        }
    }

    #[test]
    fn draws_are_uniform() {
        let mut strata = StratifiedNumbers::new(7.0, stream());
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[(strata.draw_number() * 10.0) as usize] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 300), "{counts:?}");
    }
}
