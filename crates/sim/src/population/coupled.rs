//! OFF times that go with the sizes of the files before them.
//!
//! Behind both are normal numbers of correlation `by` (a Gaussian copula): after a file at z among
//! all an OFF time is longer than that at q among all if `by z + sqrt(1 - by^2) w > q`, w normal
//! and independent. So the probability that it ends in a step follows from z, too.

use crate::clock::Nanos;
use crate::traffic::{Distribution, above, deviate};
use libm::sqrt;

/// What OFF times may have of their own is at least this, so that it can be divided by.
const MIN_OWN: f64 = 1e-6;

#[derive(Clone, Debug)]
pub(super) struct Coupled {
    by: f64,
    own: f64,
    off: Distribution,
    step: Nanos,
    /// Where an OFF time of so many steps and a half stands among all, as a normal number.
    ranks: Vec<f64>,
    /// Of each source, the normal number of its last size and the probability that its OFF time
    /// would last as long as it has. Of one that is not here no size was drawn.
    sources: Vec<Option<(f64, f64)>>,
}

impl Coupled {
    pub(super) fn new(by: f64, off: &Distribution, step: Nanos) -> Self {
        let own = sqrt(1.0 - by * by).max(MIN_OWN);
        let (ranks, sources) = (Vec::new(), Vec::new());
        let mut made = Self { by, own, off: off.clone(), step, ranks, sources };
        made.ranks = (0..super::TABLE).map(|steps| made.rank(steps)).collect();
        made
    }

    fn rank(&self, steps: usize) -> f64 {
        let longer = self.off.survival((steps as f64 + 0.5) * self.step as f64 * 1e-9);
        if longer <= 0.0 {
            f64::INFINITY
        } else if longer >= 1.0 {
            f64::NEG_INFINITY
        } else {
            -deviate(longer)
        }
    }

    /// A source sends a file whose size stands at `size` among all, and is OFF after that.
    pub(super) fn sends(&mut self, source: u32, size: f64) {
        let source = source as usize;
        if source >= self.sources.len() {
            self.sources.resize(source + 1, None);
        }
        self.sources[source] = Some((size, 1.0));
    }

    /// The probability that the OFF time of a source, which has lasted `steps`, ends in the next
    /// one, to be asked once for each step; `None` if there was no file before it.
    pub(super) fn probability(&mut self, source: u32, steps: usize) -> Option<f64> {
        let &(size, lasted) = self.sources.get(source as usize)?.as_ref()?;
        let rank = self.ranks.get(steps + 1).copied().unwrap_or_else(|| self.rank(steps + 1));
        let lasts = above((rank - self.by * size) / self.own);
        self.sources[source as usize] = Some((size, lasts));
        Some(if lasted <= f64::MIN_POSITIVE { 1.0 } else { 1.0 - lasts / lasted })
    }
}
