//! A population of which each source that is simulated stands for many.
//!
//! The network is scaled down with the population, so that means are right. Fluctuations would not
//! be: those of a thousand independent sources are, relative to their mean, ten times those of a
//! hundred thousand, and near saturation it is fluctuations that queue. So the two draws that make
//! them are taken out of the sources' hands and done for the whole population.
//!
//! - Silences end as every `each`-th of the population's does. How many are to end in a step
//!   follows from how long each has lasted and from the law of the silences; the gap from one end
//!   to the next is, in expected ends, the sum of `each` exponential variables over `each`.
//!   Which silence it is goes through the silent sources in order of age, in equal steps of
//!   probability, so that ages do not fluctuate more than they must.
//! - Sizes come from a lattice that is as irregular as every `each`-th of the population's sorted
//!   sizes ([`strata`]). Where the silence after a file goes with its size, when it ends follows
//!   from that, too ([`coupled`]).
//!
//! What follows from the two (bursts, windows, queues) is simulated packet by packet, and is as
//! regular as they are.

mod coupled;
mod steps;
mod strata;

use crate::clock::{Nanos, nanoseconds};
use crate::random::{Draws, Purpose, Stream};
use crate::traffic::{Law, deviate};
use coupled::Coupled;
pub(crate) use steps::crowds;
use strata::Strata;
pub(crate) use strata::gamma;

/// Steps in the median silence. In a step the probability of an end is taken as constant.
const STEPS_IN_MEDIAN: u64 = 250;
/// Ages up to this many steps have their probability in a table.
const TABLE: usize = 16 * STEPS_IN_MEDIAN as usize;
/// No step is shorter than this.
const SHORTEST_STEP: Nanos = 1_000;
/// The golden ratio less one: multiples of it, cut to their fractions, are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The on/off sources of one class, as a population.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    /// Sources of the population that each one stands for.
    each: f64,
    off: Law,
    step: Nanos,
    /// Probability that a silence of so many steps ends in the next one.
    ends: Vec<f64>,
    /// The silent sources, longest first.
    silent: Vec<Silent>,
    /// The step under way.
    now: i64,
    /// Where among the silent a step begins its round, as a share of them.
    first: f64,
    /// Ends to be expected until the next one.
    left: f64,
    gaps: Stream,
    sizes: Strata,
    /// Where silences go with the sizes before them.
    coupled: Option<Coupled>,
    /// Places among the silent of those that end in this step, and the ends that were to be
    /// expected in it before them.
    ending: Vec<(usize, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Silent {
    source: u32,
    /// The step in which its silence began.
    since: i64,
}

impl Crowd {
    /// A crowd of which no source is silent yet, and which takes its chances from the streams of
    /// these purposes; `coupling` is the correlation of the normal numbers behind a file's size and
    /// the silence after it.
    pub(crate) fn new(
        each: f64,
        off: &Law,
        coupling: f64,
        stream: impl Fn(Purpose) -> Stream,
    ) -> Self {
        let step = (nanoseconds(off.at_normal(0.0)) / STEPS_IN_MEDIAN).max(SHORTEST_STEP);
        let mut gaps = stream(Purpose::CrowdGap);
        let left = gamma(each, &mut gaps) / each * gaps.unit();
        Self {
            each,
            off: off.clone(),
            step,
            ends: (0..TABLE).map(|steps| probability(off, step, steps)).collect(),
            silent: Vec::new(),
            now: -1,
            first: 0.0,
            left,
            gaps,
            sizes: Strata::new(each, stream(Purpose::CrowdSize)),
            coupled: (coupling != 0.0).then(|| Coupled::new(coupling, off, step)),
            ending: Vec::new(),
        }
    }

    /// Time from one step to the next.
    pub(crate) fn step(&self) -> Nanos {
        self.step
    }

    /// Where the next size, that of a file of `source`, stands among all sizes: the standard normal
    /// value of the same rank.
    pub(crate) fn next_size(&mut self, source: u32) -> f64 {
        let size = deviate(self.sizes.draw());
        if let Some(coupled) = &mut self.coupled {
            coupled.sends(source, size);
        }
        size
    }

    /// A source falls silent in the step that is under way, or has done so `age` before it.
    pub(crate) fn falls_silent(&mut self, source: u32, age: Nanos) {
        let since = self.now - (age / self.step) as i64;
        self.silent.push(Silent { source, since });
    }

    /// All who are silent at the beginning have been told.
    pub(crate) fn is_complete(&mut self) {
        self.silent.sort_by_key(|silent| (silent.since, silent.source));
    }

    /// The next step: calls `end` with each source whose silence ends in it, and how long after
    /// its beginning.
    pub(crate) fn pass(&mut self, mut end: impl FnMut(u32, Nanos)) {
        self.now += 1;
        self.first = fraction(self.first + GOLDEN);
        let first = (self.first * self.silent.len() as f64) as usize;
        self.ending.clear();
        let before = self.look_at(first, self.silent.len(), 0.0);
        let expected = self.look_at(0, first, before);
        let share = self.step as f64 / expected.max(f64::MIN_POSITIVE);
        for (place, before) in &self.ending {
            end(self.silent[*place].source, (before * share) as Nanos);
        }
        self.remove_ending();
    }

    /// Finds those whose silences end among some; `expected` are the ends to be expected in this
    /// step so far, and those with these.
    fn look_at(&mut self, from: usize, to: usize, mut expected: f64) -> f64 {
        for (place, silent) in (from..to).zip(&self.silent[from..to]) {
            let steps = (self.now - 1 - silent.since) as usize;
            let coupled = self.coupled.as_mut();
            let probability = match coupled.and_then(|of| of.probability(silent.source, steps)) {
                Some(probability) => probability,
                None => match self.ends.get(steps) {
                    Some(probability) => *probability,
                    None => probability(&self.off, self.step, steps),
                },
            };
            expected += probability;
            self.left -= probability;
            // A gap that ends with the last one's does not end a silence that cannot end.
            if self.left <= 0.0 && probability > 0.0 {
                self.ending.push((place, expected));
                self.left += gamma(self.each, &mut self.gaps) / self.each;
            }
        }
        expected
    }

    fn remove_ending(&mut self) {
        self.ending.sort_by_key(|(place, _)| *place);
        let Some(mut to) = self.ending.first().map(|(place, _)| *place) else { return };
        for (at, (place, _)) in self.ending.iter().enumerate() {
            let until = self.ending.get(at + 1).map_or(self.silent.len(), |(next, _)| *next);
            self.silent.copy_within(place + 1..until, to);
            to += until - (place + 1);
        }
        self.silent.truncate(to);
    }
}

fn fraction(x: f64) -> f64 {
    x - libm::floor(x)
}

/// The probability that a silence that has lasted `steps` ends in the next one. The first goes on
/// from the beginning of the silence, somewhere in the step before.
fn probability(off: &Law, step: Nanos, steps: usize) -> f64 {
    let survival = |steps: f64| off.survival(steps * step as f64 * 1e-9);
    let lasted = steps as f64 + 0.5;
    let now = if steps == 0 { 1.0 } else { survival(lasted) };
    if now <= f64::MIN_POSITIVE { 1.0 } else { 1.0 - survival(lasted + 1.0) / now }
}

#[cfg(test)]
#[path = "crowd_tests.rs"]
mod tests;
