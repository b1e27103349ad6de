//! On/off sources with a constant rate while on: packets per source, or of the aggregate rate.

use crate::clock::{NEVER, Nanos, seconds_to_nanos};
use crate::random::{RandomSource, RandomStream};
use crate::traffic::Distribution;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Distributions of the on and off times of a source.
#[derive(Clone, Debug)]
pub(super) struct OnOffTimes {
    on: Distribution,
    off: Distribution,
    /// Probability of being on.
    share_on: f64,
}

impl OnOffTimes {
    /// Pareto distributions with the given means in seconds and index `alpha`.
    pub fn new(on: f64, off: f64, alpha: f64) -> Self {
        let distribution =
            |mean: f64| Distribution::Pareto { minimum: mean * (alpha - 1.0) / alpha, alpha };
        Self { on: distribution(on), off: distribution(off), share_on: on / (on + off) }
    }

    /// Draws the initial state of a source in equilibrium: whether the source is on, and the end of
    /// the current on or off time.
    fn draw_initial_state(&self, stream: &mut RandomStream) -> (bool, Nanos) {
        let on = stream.draw_chance(self.share_on);
        (on, seconds_to_nanos((if on { &self.on } else { &self.off }).draw_residual_time(stream)))
    }
}

/// On/off sources with evenly spaced packets per source.
#[derive(Clone, Debug)]
pub(super) struct OnOffSources {
    gap: Nanos,
    periods: OnOffTimes,
    stream: RandomStream,
    /// Time of the next packet of each source, or the end of its on time if that is earlier.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// On time from `due` to the next packet of each source.
    waits: Vec<Nanos>,
    /// End of the on time of each source.
    ends: Vec<Nanos>,
}

impl OnOffSources {
    /// Creates sources in equilibrium that send a packet per `gap` of on time.
    pub fn new(sources: u32, gap: Nanos, periods: OnOffTimes, stream: RandomStream) -> Self {
        let (due, waits) = (BinaryHeap::new(), vec![0; sources as usize]);
        let mut process = Self { gap, periods, stream, due, waits, ends: Vec::new() };
        for source in 0..sources {
            let (starts, ends) = process.draw_first_on_time();
            process.ends.push(ends);
            let first = ((1.0 - process.stream.draw_unit()) * gap as f64) as Nanos;
            process.schedule_next_packet(source, starts, first);
        }
        process
    }

    /// Start and end of the first on time, which may have started before time 0.
    fn draw_first_on_time(&mut self) -> (Nanos, Nanos) {
        match self.periods.draw_initial_state(&mut self.stream) {
            (true, ends) => (0, ends),
            (false, starts) => {
                (starts, starts + seconds_to_nanos(self.periods.on.draw_value(&mut self.stream)))
            }
        }
    }

    pub fn next_arrival_time(&mut self) -> Nanos {
        while let Some(Reverse((due, source))) = self.due.pop() {
            let wait = self.waits[source as usize];
            if wait == 0 || due == NEVER {
                self.schedule_next_packet(source, due, self.gap);
                return due;
            }
            self.schedule_next_packet(source, due, wait);
        }
        NEVER
    }

    /// Schedules the next packet of a source that is on at `at`, after a further on time of `wait`.
    ///
    /// Draws at most one off and on time. Later on times are drawn when the current on time ends,
    /// so that a packet in the distant future causes no work now.
    fn schedule_next_packet(&mut self, source: u32, mut at: Nanos, mut wait: Nanos) {
        let ends = &mut self.ends[source as usize];
        if at + wait > *ends && at < NEVER {
            wait -= *ends - at;
            at = (*ends + seconds_to_nanos(self.periods.off.draw_value(&mut self.stream)))
                .min(NEVER);
            *ends =
                (at + seconds_to_nanos(self.periods.on.draw_value(&mut self.stream))).min(NEVER);
        }
        let due = (at + wait).min((*ends).max(at));
        self.waits[source as usize] = at + wait - due;
        self.due.push(Reverse((due, source)));
    }
}

/// The aggregate rate of on/off sources, with packets spaced according to the current rate.
#[derive(Clone, Debug)]
pub(super) struct OnOffRate {
    /// Rate of a source while it is on, in packets per nanosecond.
    peak: f64,
    periods: OnOffTimes,
    stream: RandomStream,
    /// Time at which each source turns on or off next.
    changes: BinaryHeap<Reverse<(Nanos, u32)>>,
    on: Vec<bool>,
    /// Number of sources that are on.
    active: u32,
    now: Nanos,
    /// Fraction of a packet that remains until the next packet is sent.
    remaining: f64,
}

impl OnOffRate {
    /// Creates sources in equilibrium that send `peak` packets per second while on.
    pub fn new(sources: u32, peak: f64, periods: OnOffTimes, mut stream: RandomStream) -> Self {
        let mut changes = BinaryHeap::new();
        let mut on = Vec::new();
        for source in 0..sources {
            let (is_on, until) = periods.draw_initial_state(&mut stream);
            changes.push(Reverse((until, source)));
            on.push(is_on);
        }
        let active = on.iter().map(|on| u32::from(*on)).sum();
        let remaining = 1.0 - stream.draw_unit();
        Self { peak: peak * 1e-9, periods, stream, changes, on, active, now: 0, remaining }
    }

    pub fn next_arrival_time(&mut self) -> Nanos {
        while let Some(Reverse((change, source))) = self.changes.peek().copied() {
            let rate = f64::from(self.active) * self.peak;
            let until = (change - self.now) as f64;
            if self.remaining <= rate * until {
                self.now = change.min(self.now + libm::round(self.remaining / rate) as Nanos);
                self.remaining = 1.0;
                return self.now;
            }
            self.remaining -= rate * until;
            self.now = change;
            self.changes.pop();
            self.toggle_source(source);
        }
        NEVER
    }

    /// Turns a source on or off at `now`.
    fn toggle_source(&mut self, source: u32) {
        let on = &mut self.on[source as usize];
        *on = !*on;
        let distribution = if *on { &self.periods.on } else { &self.periods.off };
        let ends =
            self.now.saturating_add(seconds_to_nanos(distribution.draw_value(&mut self.stream)));
        self.active = if *on { self.active + 1 } else { self.active - 1 };
        self.changes.push(Reverse((ends, source)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{NamedStream, StreamPurpose};

    #[test]
    fn periods_before_a_distant_packet_are_drawn_when_they_start() {
        let stream = RandomStream::for_entity(1, 0, 0, StreamPurpose::Cross);
        let (periods, gap) = (OnOffTimes::new(1e-3, 1e-3, 1.5), seconds_to_nanos(100.0));
        let mut sources = OnOffSources::new(50, gap, periods, stream);
        assert!(sources.waits.iter().all(|wait| *wait > 0), "no packet fits into the first period");
        assert!(sources.due.iter().all(|Reverse((due, _))| *due < gap / 2));
        // 50 sources that are on half of the time send a packet every 4 s.
        let times: Vec<_> = (0..50).map(|_| sources.next_arrival_time()).collect();
        assert!(times.is_sorted() && (100..300).contains(&(times[49] / seconds_to_nanos(1.0))));
    }
}
