//! Number of active sources: the birth-death process at the entry of the bottleneck.

use crate::clock::Nanos;
use tcpcast_link::ring_buffer::RingBuffer;

/// Time, births and deaths by the number of active sources.
///
/// A source is active from the arrival of the first packet of a transfer at the bottleneck to its
/// last acknowledgement (Engset report, section 3.4).
///
/// A death is reported after a delay: the time from the sender to the bottleneck. Births are
/// therefore stored until no earlier death can be reported.
#[derive(Clone, Debug, Default)]
pub struct ActiveSources {
    active: usize,
    born: RingBuffer<Nanos>,
    since: Nanos,
    time_at: Vec<Nanos>,
    births_at: Vec<u64>,
    deaths_at: Vec<u64>,
}

impl ActiveSources {
    /// Resets the sums; keeps the number of active sources and the stored births.
    pub fn reset_sums(&mut self, now: Nanos) {
        self.advance_to(now);
        let born = std::mem::take(&mut self.born);
        *self = Self { active: self.active, born, since: now, ..Self::default() };
    }

    /// Records that a source becomes active.
    pub fn record_source_start(&mut self, at: Nanos) {
        self.born.push(at);
    }

    /// Records that a source becomes inactive.
    #[inline(always)]
    pub fn record_source_end(&mut self, at: Nanos) {
        self.advance_to(at);
        self.deaths_at[self.active] += 1;
        self.active -= 1;
    }

    /// Copy of the process up to `now`, if no earlier events will be reported.
    #[must_use]
    pub fn copy_until(&self, now: Nanos) -> Self {
        let mut copy = self.clone();
        copy.advance_to(now);
        copy
    }

    /// Counts the times and stored births up to `now`.
    pub fn advance_to(&mut self, now: Nanos) {
        while self.born.first().is_some_and(|at| *at <= now) {
            let at = self.born.pop_existing();
            self.count_time_until(at);
            self.births_at[self.active] += 1;
            self.active += 1;
        }
        self.count_time_until(now);
    }

    fn count_time_until(&mut self, now: Nanos) {
        if self.active >= self.time_at.len() {
            self.time_at.resize(self.active + 1, 0);
            self.births_at.resize(self.active + 1, 0);
            self.deaths_at.resize(self.active + 1, 0);
        }
        // A death that is reported late may precede the end of the warm-up.
        self.time_at[self.active] += now.saturating_sub(self.since);
        self.since = self.since.max(now);
    }

    /// Time by the number of active sources.
    #[must_use]
    pub fn time_by_active_count(&self) -> &[Nanos] {
        &self.time_at
    }

    /// Births by the number of active sources before them.
    #[must_use]
    pub fn starts_by_active_count(&self) -> &[u64] {
        &self.births_at
    }

    /// Deaths by the number of active sources before them.
    #[must_use]
    pub fn ends_by_active_count(&self) -> &[u64] {
        &self.deaths_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_births_survive_the_end_of_the_warm_up() {
        let mut population = ActiveSources::default();
        population.record_source_start(10);
        population.record_source_start(20);
        population.reset_sums(15);
        population.record_source_end(25);
        population.advance_to(30);
        assert_eq!(population.time_by_active_count(), [0, 5 + 5, 5]);
        assert_eq!(population.starts_by_active_count(), [0, 1, 0]);
    }

    #[test]
    fn times_and_transitions_are_counted_by_state() {
        let mut population = ActiveSources::default();
        population.record_source_start(10);
        population.record_source_start(30);
        population.record_source_end(60);
        population.advance_to(100);
        assert_eq!(population.time_by_active_count(), [10, 20 + 40, 30]);
        assert_eq!(population.starts_by_active_count(), [1, 1, 0]);
        assert_eq!(population.ends_by_active_count(), [0, 0, 1]);
    }
}
