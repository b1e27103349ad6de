//! Draws that vary from stretch to stretch as those of a larger population do.

use super::{GOLDEN, fraction};
use crate::random::{Draws, Stream};
use libm::{cos, log, pow, sqrt};

/// Fewest and most draws in a block; powers of two.
const BLOCKS: [usize; 2] = [32, 1024];
/// Draws in a block for each source of the population to one that is simulated. A lattice of so
/// many points has by itself, wherever it is, a sixteenth of the variance that is wanted.
const FOR_EACH: f64 = 16.0;

/// Numbers in (0, 1), each uniform, as if of many more only every `scale`-th in size were seen.
///
/// A block is a ring of points with gaps that are sums of `scale` exponential variables: with
/// `scale` = 1 as irregular as independent draws, with many a lattice. Where the ring begins is one
/// of the points of such a lattice, by chance, and the lattice moves from block to block by a
/// golden share of a gap, so that it favours no size. The points are told in the order of reversed
/// bits (van der Corput 1935), so that parts of a block are spread over all sizes, too.
#[derive(Clone, Debug)]
pub(super) struct Strata {
    scale: f64,
    stream: Stream,
    points: Vec<f64>,
    block: usize,
    next: usize,
    /// Where the lattice is, as a share of a gap.
    shift: f64,
}

impl Strata {
    pub(super) fn new(scale: f64, mut stream: Stream) -> Self {
        let shift = stream.unit();
        let [fewest, most] = BLOCKS;
        let block = ((scale * FOR_EACH) as usize).clamp(fewest, most).next_power_of_two();
        Self { scale, stream, points: Vec::new(), block, next: 0, shift }
    }

    pub(super) fn draw(&mut self) -> f64 {
        if self.next == self.points.len() {
            self.refill();
            self.next = 0;
        }
        let place = self.next.reverse_bits() >> (usize::BITS - self.block.trailing_zeros());
        self.next += 1;
        self.points[place]
    }

    fn refill(&mut self) {
        self.points.clear();
        let mut sum = 0.0;
        for _ in 0..self.block {
            sum += gamma(self.scale, &mut self.stream);
            self.points.push(sum);
        }
        self.shift = fraction(self.shift + GOLDEN);
        let gaps = self.block as f64;
        let begins = libm::floor(self.stream.unit() * gaps) + self.shift;
        for point in &mut self.points {
            // The ends are left out, where distributions have infinite values.
            *point = fraction(*point / sum + begins / gaps).clamp(1e-15, 1.0 - 1e-15);
        }
        self.points.sort_by(f64::total_cmp);
    }
}

/// A gamma variable of shape `shape`, at least 1, and scale 1 (Marsaglia and Tsang 2000).
pub(crate) fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / sqrt(9.0 * d);
    loop {
        let x = normal(stream);
        let v = pow(1.0 + c * x, 3.0);
        if v > 0.0 && log(stream.unit()) < 0.5 * x * x + d * (1.0 - v + log(v)) {
            return d * v;
        }
    }
}

/// A standard normal variable (Box and Muller 1958).
fn normal(stream: &mut Stream) -> f64 {
    let angle = 2.0 * std::f64::consts::PI * stream.unit();
    sqrt(-2.0 * log(stream.unit())) * cos(angle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Named, Purpose};

    fn stream() -> Stream {
        Stream::named(1, 0, 0, Purpose::ScaledSize)
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
            let draws: Vec<f64> = (0..200_000).map(|_| gamma(shape, &mut stream)).collect();
            let (mean, variance) = moments(&draws);
            assert!((mean / shape - 1.0).abs() < 0.01, "{mean} for {shape}");
            assert!((variance / shape - 1.0).abs() < 0.03, "{variance} for {shape}");
        }
    }

    /// The variance of means of 1024 draws in sequence, in units of that of independent ones.
    fn spread(scale: f64) -> f64 {
        let mut strata = Strata::new(scale, stream());
        let means: Vec<f64> =
            (0..1500).map(|_| (0..1024).map(|_| strata.draw()).sum::<f64>() / 1024.0).collect();
        let (mean, variance) = moments(&means);
        assert!((mean - 0.5).abs() < 0.002, "{mean}");
        variance * 12.0 * 1024.0
    }

    #[test]
    fn stretches_vary_as_those_of_a_larger_population() {
        for scale in [1.0, 4.0, 20.0, 64.0] {
            let found = spread(scale) * scale;
            assert!((0.85..1.2).contains(&found), "{found} for {scale}");
        }
    }

    #[test]
    fn a_draw_is_uniform() {
        let mut strata = Strata::new(7.0, stream());
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[(strata.draw() * 10.0) as usize] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 300), "{counts:?}");
    }
}
