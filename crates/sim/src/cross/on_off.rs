//! Sources that send packets at one rate while they are on.

use crate::bursts::nanoseconds;
use crate::clock::{NEVER, Nanos};
use crate::random::Stream;
use crate::traffic::Law;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long a source is on and off.
#[derive(Clone, Debug)]
pub(super) struct Periods {
    on: Law,
    off: Law,
    /// Probability of being on.
    share_on: f64,
}

impl Periods {
    /// Pareto periods of these means, in seconds, and of index `alpha`.
    pub fn new(on: f64, off: f64, alpha: f64) -> Self {
        let law = |mean: f64| Law::Pareto { minimum: mean * (alpha - 1.0) / alpha, alpha };
        Self { on: law(on), off: law(off), share_on: on / (on + off) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct OnOffSources {
    gap: Nanos,
    periods: Periods,
    stream: Stream,
    /// When the next packet of each source comes.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When the time on of each is over.
    ends: Vec<Nanos>,
}

impl OnOffSources {
    /// So many sources in equilibrium, each with a packet every `gap` of its time on.
    pub fn new(sources: u32, gap: Nanos, periods: Periods, stream: Stream) -> Self {
        let mut made = Self { gap, periods, stream, due: BinaryHeap::new(), ends: Vec::new() };
        for source in 0..sources {
            let (starts, ends) = made.first_period();
            made.ends.push(ends);
            let first = ((1.0 - made.stream.unit()) * gap as f64) as Nanos;
            made.schedule(source, starts, first);
        }
        made
    }

    /// The first time on, from its beginning or from now on to its end.
    fn first_period(&mut self) -> (Nanos, Nanos) {
        let Self { periods, stream, .. } = self;
        if stream.chance(periods.share_on) {
            return (0, nanoseconds(periods.on.draw_excess(stream)));
        }
        let starts = nanoseconds(periods.off.draw_excess(stream));
        (starts, starts + nanoseconds(periods.on.draw(stream)))
    }

    pub fn next_time(&mut self) -> Nanos {
        let Some(Reverse((due, source))) = self.due.pop() else { return NEVER };
        self.schedule(source, due, self.gap);
        due
    }

    /// The next packet of a source that is on at `at` comes after `wait` more of its time on.
    fn schedule(&mut self, source: u32, mut at: Nanos, mut wait: Nanos) {
        let ends = &mut self.ends[source as usize];
        while at + wait > *ends && at < NEVER {
            wait -= *ends - at;
            at = (*ends + nanoseconds(self.periods.off.draw(&mut self.stream))).min(NEVER);
            *ends = (at + nanoseconds(self.periods.on.draw(&mut self.stream))).min(NEVER);
        }
        self.due.push(Reverse((at + wait, source)));
    }
}
