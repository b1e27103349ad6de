//! What is measured on reference flows, and the distributions that cross flows draw from it.

use tcpcast_sim::random::{Draws, Stream};
use tcpcast_sim::traffic::Distribution;

/// Fewer measurements than this give no distribution of their own.
const FEWEST: f64 = 20.0;

/// Numbers of active flows are told apart to an eighth of an octave, 9 %.
const BINS_AN_OCTAVE: f64 = 8.0;

/// First two moments of a positive quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    weight: f64,
    sum: f64,
    squares: f64,
    /// Belongs to the mean, though to none of the measurements.
    beside: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.weight += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn add_beside(&mut self, value: f64) {
        self.beside += value;
    }

    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.sum += other.sum;
        self.squares += other.squares;
        self.beside += other.beside;
    }

    fn fade(&mut self, kept: f64) {
        self.weight *= kept;
        self.sum *= kept;
        self.squares *= kept;
        self.beside *= kept;
    }

    /// The mean, with what belongs to it beside; `None` of nothing.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| (self.sum + self.beside) / self.weight)
    }

    /// The distribution of that mean: exponential where only the mean is kept, lognormal with the
    /// coefficient of variation of the measurements where the second moment is, too.
    fn distribution(&self, moments: u8) -> Option<Distribution> {
        let mean = self.mean().filter(|mean| *mean > 0.0)?;
        if moments < 2 {
            return Some(Distribution::Exponential { minimum: 0.0, scale: mean });
        }
        let own = self.sum / self.weight;
        let variation = (self.squares / self.weight / (own * own) - 1.0).max(0.0);
        let sigma = libm::sqrt(libm::log1p(variation));
        Some(Distribution::Lognormal {
            mu: libm::log(mean) - sigma * sigma / 2.0,
            sigma,
            minimum: 0.0,
        })
    }
}

/// Which of the numbers of active flows are taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binning {
    pub conditional: bool,
}

impl Binning {
    pub(super) fn of(self, active: u32) -> usize {
        if self.conditional {
            (BINS_AN_OCTAVE * libm::log2(f64::from(active) + 1.0)) as usize
        } else {
            0
        }
    }
}

/// Takes the entry of a bin, or of the nearest that has one; the lower of two.
fn nearest<T>(entries: &[Option<T>], bin: usize) -> Option<&T> {
    let away = |at: usize| at.abs_diff(bin);
    let filled = entries.iter().enumerate().filter_map(|(at, entry)| Some((at, entry.as_ref()?)));
    filled.min_by_key(|(at, _)| away(*at)).map(|(_, entry)| entry)
}

/// A distribution for each bin, without a hole.
fn filled<T: Clone>(entries: &[Option<T>]) -> Vec<T> {
    (0..entries.len()).filter_map(|bin| nearest(entries, bin).cloned()).collect()
}

/// Moments by the number of active flows, of the measurements so far and of this step.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    before: Vec<Moments>,
    now: Vec<Moments>,
}

impl Measured {
    pub(super) fn add(&mut self, bin: usize, value: f64) {
        self.bin(bin).add(value);
    }

    pub(super) fn add_beside(&mut self, bin: usize, value: f64) {
        self.bin(bin).add_beside(value);
    }

    fn bin(&mut self, bin: usize) -> &mut Moments {
        if bin >= self.now.len() {
            self.now.resize(bin + 1, Moments::default());
        }
        &mut self.now[bin]
    }

    /// All of this step.
    pub(super) fn of_step(&self) -> Moments {
        whole(&self.now)
    }

    /// A step is over: what was measured before counts on by the share `kept`, and wholly where the
    /// step had too little to measure.
    pub(super) fn end_step(&mut self, kept: f64) {
        let kept = if whole(&self.now).weight < FEWEST { 1.0 } else { kept };
        self.before.iter_mut().for_each(|moments| moments.fade(kept));
        if self.before.len() < self.now.len() {
            self.before.resize(self.now.len(), Moments::default());
        }
        for (before, now) in self.before.iter_mut().zip(&mut self.now) {
            before.join(now);
            *now = Moments::default();
        }
    }

    /// The distributions of what was measured, a bin each; none where there was too little to
    /// measure.
    pub(super) fn distributions(&self, moments: u8) -> Option<Vec<Distribution>> {
        let own = |of: &Moments| (of.weight >= FEWEST).then(|| of.distribution(moments)).flatten();
        let distributions: Vec<Option<Distribution>> = self.before.iter().map(own).collect();
        let distributions = filled(&distributions);
        if distributions.is_empty() { None } else { Some(distributions) }
    }

    /// The mean of what was measured.
    pub(super) fn mean(&self) -> Option<f64> {
        whole(&self.before).mean()
    }
}

fn whole(parts: &[Moments]) -> Moments {
    let mut all = Moments::default();
    parts.iter().for_each(|part| all.join(part));
    all
}

/// A distribution by bins.
#[derive(Clone, Debug)]
pub(super) struct ByActive(Vec<Distribution>);

impl ByActive {
    pub(super) fn constant(value: f64) -> Self {
        Self(vec![Distribution::Exponential { minimum: 0.0, scale: value }])
    }

    pub(super) fn new(distributions: Vec<Distribution>) -> Self {
        Self(distributions)
    }

    pub(super) fn draw(&self, bin: usize, stream: &mut Stream) -> f64 {
        self.0[bin.min(self.0.len() - 1)].draw(stream)
    }
}

/// How many packets of its own flow an arrival finds, by the number of active flows.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundDistribution {
    counts: Vec<Vec<f64>>,
    cumulative: Vec<Vec<f64>>,
}

impl FoundDistribution {
    pub(super) fn add(&mut self, bin: usize, found: usize) {
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, Vec::new());
        }
        let counts = &mut self.counts[bin];
        if found >= counts.len() {
            counts.resize(found + 1, 0.0);
        }
        counts[found] += 1.0;
    }

    /// A step is over: draws are of what was measured so far, which counts on by the share `kept`.
    pub(super) fn end_step(&mut self, kept: f64) {
        let distributions: Vec<Option<Vec<f64>>> =
            self.counts.iter().map(|counts| cumulated(counts)).collect();
        let distributions = filled(&distributions);
        if !distributions.is_empty() {
            self.cumulative = distributions;
        }
        self.counts.iter_mut().flatten().for_each(|count| *count *= kept);
    }

    /// Draws a number; `None` while nothing has been measured.
    pub(super) fn draw(&self, bin: usize, stream: &mut Stream) -> Option<u32> {
        let distribution = self.cumulative.get(bin.min(self.cumulative.len().checked_sub(1)?))?;
        let u = stream.unit();
        Some(distribution.partition_point(|below| *below < u).min(distribution.len() - 1) as u32)
    }
}

fn cumulated(counts: &[f64]) -> Option<Vec<f64>> {
    let total: f64 = counts.iter().sum();
    if total < FEWEST {
        return None;
    }
    let mut below = 0.0;
    let add = |count: &f64| {
        below += count / total;
        below
    };
    Some(counts.iter().map(add).collect())
}

/// What cross flows of a class go by, and what reference flows of it measure.
#[derive(Clone, Debug)]
pub(super) struct Distributions {
    pub gap: ByActive,
    pub service: ByActive,
    /// The means that those distributions have.
    pub gap_used: f64,
    pub service_used: f64,
    pub timeouts: f64,
    pub measured_gap: Measured,
    pub measured_service: Measured,
    pub found: FoundDistribution,
    /// Packets sent and timeouts of reference flows so far.
    sent: f64,
    expired: f64,
}

impl Distributions {
    pub(super) fn new(initial: (f64, f64)) -> Self {
        Self {
            gap: ByActive::constant(initial.0),
            service: ByActive::constant(initial.1),
            gap_used: initial.0,
            service_used: initial.1,
            timeouts: 0.0,
            measured_gap: Measured::default(),
            measured_service: Measured::default(),
            found: FoundDistribution::default(),
            sent: 0.0,
            expired: 0.0,
        }
    }

    /// A step is over: cross flows go by what it measured.
    pub(super) fn update(&mut self, kept: f64, moments: u8, sent: u64, expired: u64) {
        self.measured_gap.end_step(kept);
        self.measured_service.end_step(kept);
        self.found.end_step(kept);
        if let Some(distributions) = self.measured_gap.distributions(moments) {
            self.gap = ByActive::new(distributions);
            self.gap_used = self.measured_gap.mean().unwrap_or(self.gap_used);
        }
        if let Some(distributions) = self.measured_service.distributions(moments) {
            self.service = ByActive::new(distributions);
            self.service_used = self.measured_service.mean().unwrap_or(self.service_used);
        }
        self.sent = kept * self.sent + sent as f64;
        self.expired = kept * self.expired + expired as f64;
        self.timeouts = if self.sent > 0.0 { self.expired / self.sent } else { 0.0 };
    }
}
