//! A scaled population: to each source that is simulated there are `scale` of the population.
//!
//! The network is scaled down with the population, so that means are right. Fluctuations would not
//! be: those of a thousand independent sources are, relative to their mean, ten times those of a
//! hundred thousand, and near saturation it is fluctuations that queue. So the two draws that make
//! them are taken out of the sources' hands and done for the whole population.
//!
//! - OFF times end as every `scale`-th of the population's does. How many are to end in a step
//!   follows from how long each has lasted and from the distribution of the OFF times; the gap from
//!   one end to the next is, in expected ends, the sum of `scale` exponential variables over
//!   `scale`. Which OFF time it is goes through the OFF sources in order of age, in equal steps of
//!   probability, so that ages do not fluctuate more than they must.
//! - Sizes come from a lattice that is as irregular as every `scale`-th of the population's sorted
//!   sizes ([`strata`]). Where the OFF time after a file goes with its size, when it ends follows
//!   from that, too ([`coupled`]).
//!
//! What follows from the two (bursts, windows, queues) is simulated packet by packet, and is as
//! regular as they are.

mod coupled;
mod strata;

use crate::clock::{Nanos, nanoseconds};
use crate::random::{Draws, Purpose, Stream};
use crate::traffic::{Distribution, deviate};
use coupled::Coupled;
use strata::Strata;
pub(crate) use strata::gamma;

/// Steps in the median OFF time. In a step the probability of an end is taken as constant.
const STEPS_IN_MEDIAN: u64 = 250;
/// Ages up to this many steps have their probability in a table.
const TABLE: usize = 16 * STEPS_IN_MEDIAN as usize;
/// No step is shorter than this.
const SHORTEST_STEP: Nanos = 1_000;
/// The golden ratio less one: multiples of it, cut to their fractions, are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The on/off sources of one class, as a population.
#[derive(Clone, Debug)]
pub(crate) struct ScaledPopulation {
    /// Sources of the population to each that is simulated.
    scale: f64,
    off: Distribution,
    step: Nanos,
    /// Probability that an OFF time of so many steps ends in the next one.
    ends: Vec<f64>,
    /// The OFF sources, longest first.
    idle: Vec<Idle>,
    /// The current step.
    now: i64,
    /// Where among the OFF sources a step begins its round, as a share of them.
    first: f64,
    /// Ends to be expected until the next one.
    left: f64,
    gaps: Stream,
    sizes: Strata,
    /// Where OFF times go with the sizes before them.
    coupled: Option<Coupled>,
    /// Places among the OFF sources of those that end in this step, and the ends that were to be
    /// expected in it before them.
    ending: Vec<(usize, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Idle {
    source: u32,
    /// The step in which its OFF time began.
    since: i64,
}

impl ScaledPopulation {
    /// A population of which no source is OFF yet, and which takes its chances from the streams of
    /// these purposes; `coupling` is the correlation of the normal numbers behind a file's size and
    /// the OFF time after it.
    pub(crate) fn new(
        scale: f64,
        off: &Distribution,
        coupling: f64,
        stream: impl Fn(Purpose) -> Stream,
    ) -> Self {
        let step = (nanoseconds(off.at_normal(0.0)) / STEPS_IN_MEDIAN).max(SHORTEST_STEP);
        let mut gaps = stream(Purpose::ScaledGap);
        let left = gamma(scale, &mut gaps) / scale * gaps.unit();
        Self {
            scale,
            off: off.clone(),
            step,
            ends: (0..TABLE).map(|steps| probability(off, step, steps)).collect(),
            idle: Vec::new(),
            now: -1,
            first: 0.0,
            left,
            gaps,
            sizes: Strata::new(scale, stream(Purpose::ScaledSize)),
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

    /// A source turns OFF in the current step, or has done so `age` before it.
    pub(crate) fn turns_off(&mut self, source: u32, age: Nanos) {
        let since = self.now - (age / self.step) as i64;
        self.idle.push(Idle { source, since });
    }

    /// All sources that are OFF at the beginning are known.
    pub(crate) fn sort_by_age(&mut self) {
        self.idle.sort_by_key(|idle| (idle.since, idle.source));
    }

    /// The next step: calls `end` with each source whose OFF time ends in it, and how long after
    /// its beginning.
    pub(crate) fn pass(&mut self, mut end: impl FnMut(u32, Nanos)) {
        self.now += 1;
        self.first = fraction(self.first + GOLDEN);
        let first = (self.first * self.idle.len() as f64) as usize;
        self.ending.clear();
        let before = self.find_ends(first, self.idle.len(), 0.0);
        let expected = self.find_ends(0, first, before);
        let share = self.step as f64 / expected.max(f64::MIN_POSITIVE);
        for (place, before) in &self.ending {
            end(self.idle[*place].source, (before * share) as Nanos);
        }
        self.remove_ending();
    }

    /// Finds those whose OFF times end among some; `expected` are the ends to be expected in this
    /// step so far, and those with these.
    fn find_ends(&mut self, from: usize, to: usize, mut expected: f64) -> f64 {
        for (place, idle) in (from..to).zip(&self.idle[from..to]) {
            let steps = (self.now - 1 - idle.since) as usize;
            let coupled = self.coupled.as_mut();
            let probability = match coupled.and_then(|of| of.probability(idle.source, steps)) {
                Some(probability) => probability,
                None => match self.ends.get(steps) {
                    Some(probability) => *probability,
                    None => probability(&self.off, self.step, steps),
                },
            };
            expected += probability;
            self.left -= probability;
            // A gap that ends with the last one's does not end an OFF time that cannot end.
            if self.left <= 0.0 && probability > 0.0 {
                self.ending.push((place, expected));
                self.left += gamma(self.scale, &mut self.gaps) / self.scale;
            }
        }
        expected
    }

    fn remove_ending(&mut self) {
        self.ending.sort_by_key(|(place, _)| *place);
        let Some(mut to) = self.ending.first().map(|(place, _)| *place) else { return };
        for (at, (place, _)) in self.ending.iter().enumerate() {
            let until = self.ending.get(at + 1).map_or(self.idle.len(), |(next, _)| *next);
            self.idle.copy_within(place + 1..until, to);
            to += until - (place + 1);
        }
        self.idle.truncate(to);
    }
}

fn fraction(x: f64) -> f64 {
    x - libm::floor(x)
}

/// The probability that an OFF time that has lasted `steps` ends in the next one. The first goes on
/// from the beginning of the OFF time, somewhere in the step before.
fn probability(off: &Distribution, step: Nanos, steps: usize) -> f64 {
    let survival = |steps: f64| off.survival(steps * step as f64 * 1e-9);
    let lasted = steps as f64 + 0.5;
    let now = if steps == 0 { 1.0 } else { survival(lasted) };
    if now <= f64::MIN_POSITIVE { 1.0 } else { 1.0 - survival(lasted + 1.0) / now }
}

#[cfg(test)]
#[path = "population_tests.rs"]
mod tests;
