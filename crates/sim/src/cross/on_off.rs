//! Sources that send at one rate while they are on: packets of each, or of all as one rate.

use crate::clock::{NEVER, Nanos, nanoseconds};
use crate::random::{Draws, Stream};
use crate::traffic::Distribution;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long a source is on and off.
#[derive(Clone, Debug)]
pub(super) struct Periods {
    on: Distribution,
    off: Distribution,
    /// Probability of being on.
    share_on: f64,
}

impl Periods {
    /// Pareto periods of these means, in seconds, and of index `alpha`.
    pub fn new(on: f64, off: f64, alpha: f64) -> Self {
        let distribution =
            |mean: f64| Distribution::Pareto { minimum: mean * (alpha - 1.0) / alpha, alpha };
        Self { on: distribution(on), off: distribution(off), share_on: on / (on + off) }
    }

    /// Whether a source is on at the beginning, and when that is over.
    fn first(&self, stream: &mut Stream) -> (bool, Nanos) {
        let on = stream.chance(self.share_on);
        (on, nanoseconds((if on { &self.on } else { &self.off }).draw_residual(stream)))
    }
}

#[derive(Clone, Debug)]
pub(super) struct OnOffSources {
    gap: Nanos,
    periods: Periods,
    stream: Stream,
    /// The next packet of each source, or the end of its time on if that comes first.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Time on that each source needs beyond `due` until its next packet.
    waits: Vec<Nanos>,
    /// When the time on of each is over.
    ends: Vec<Nanos>,
}

impl OnOffSources {
    /// So many sources in equilibrium, each with a packet every `gap` of its time on.
    pub fn new(sources: u32, gap: Nanos, periods: Periods, stream: Stream) -> Self {
        let (due, waits) = (BinaryHeap::new(), vec![0; sources as usize]);
        let mut made = Self { gap, periods, stream, due, waits, ends: Vec::new() };
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
        match self.periods.first(&mut self.stream) {
            (true, ends) => (0, ends),
            (false, starts) => {
                (starts, starts + nanoseconds(self.periods.on.draw(&mut self.stream)))
            }
        }
    }

    pub fn next_time(&mut self) -> Nanos {
        while let Some(Reverse((due, source))) = self.due.pop() {
            let wait = self.waits[source as usize];
            if wait == 0 || due == NEVER {
                self.schedule(source, due, self.gap);
                return due;
            }
            self.schedule(source, due, wait);
        }
        NEVER
    }

    /// The next packet of a source that is on at `at` comes after `wait` more of its time on.
    ///
    /// At most one time off and on is drawn: later ones when this one is over, so that a packet in
    /// the far future takes no time now.
    fn schedule(&mut self, source: u32, mut at: Nanos, mut wait: Nanos) {
        let ends = &mut self.ends[source as usize];
        if at + wait > *ends && at < NEVER {
            wait -= *ends - at;
            at = (*ends + nanoseconds(self.periods.off.draw(&mut self.stream))).min(NEVER);
            *ends = (at + nanoseconds(self.periods.on.draw(&mut self.stream))).min(NEVER);
        }
        let due = (at + wait).min((*ends).max(at));
        self.waits[source as usize] = at + wait - due;
        self.due.push(Reverse((due, source)));
    }
}

/// The same sources as one rate, that of those that are on; its packets are as far apart as it
/// says.
#[derive(Clone, Debug)]
pub(super) struct OnOffRate {
    /// What one sends while it is on, packets a nanosecond.
    peak: f64,
    periods: Periods,
    stream: Stream,
    /// When each source goes on or off next.
    changes: BinaryHeap<Reverse<(Nanos, u32)>>,
    on: Vec<bool>,
    /// How many are on.
    active: u32,
    now: Nanos,
    /// What is still to be sent until the next packet has been.
    left: f64,
}

impl OnOffRate {
    /// So many sources in equilibrium that send `peak` packets a second in their time on.
    pub fn new(sources: u32, peak: f64, periods: Periods, mut stream: Stream) -> Self {
        let mut changes = BinaryHeap::new();
        let mut on = Vec::new();
        for source in 0..sources {
            let (is_on, until) = periods.first(&mut stream);
            changes.push(Reverse((until, source)));
            on.push(is_on);
        }
        let active = on.iter().map(|on| u32::from(*on)).sum();
        let left = 1.0 - stream.unit();
        Self { peak: peak * 1e-9, periods, stream, changes, on, active, now: 0, left }
    }

    pub fn next_time(&mut self) -> Nanos {
        while let Some(Reverse((change, source))) = self.changes.peek().copied() {
            let rate = f64::from(self.active) * self.peak;
            let until = (change - self.now) as f64;
            if self.left <= rate * until {
                self.now = change.min(self.now + libm::round(self.left / rate) as Nanos);
                self.left = 1.0;
                return self.now;
            }
            self.left -= rate * until;
            self.now = change;
            self.changes.pop();
            self.change(source);
        }
        NEVER
    }

    /// A source goes on or off, now.
    fn change(&mut self, source: u32) {
        let on = &mut self.on[source as usize];
        *on = !*on;
        let distribution = if *on { &self.periods.on } else { &self.periods.off };
        let ends = self.now.saturating_add(nanoseconds(distribution.draw(&mut self.stream)));
        self.active = if *on { self.active + 1 } else { self.active - 1 };
        self.changes.push(Reverse((ends, source)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Named, Purpose};

    #[test]
    fn periods_before_a_distant_packet_are_drawn_when_they_begin() {
        let stream = Stream::named(1, 0, 0, Purpose::Cross);
        let (periods, gap) = (Periods::new(1e-3, 1e-3, 1.5), nanoseconds(100.0));
        let mut sources = OnOffSources::new(50, gap, periods, stream);
        assert!(sources.waits.iter().all(|wait| *wait > 0), "no packet fits into the first period");
        assert!(sources.due.iter().all(|Reverse((due, _))| *due < gap / 2));
        // 50 sources that are on half of the time: a packet every 4 s.
        let times: Vec<_> = (0..50).map(|_| sources.next_time()).collect();
        assert!(times.is_sorted() && (100..300).contains(&(times[49] / nanoseconds(1.0))));
    }
}
