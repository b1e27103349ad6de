//! How many sources are active: the birth-death process at the entry of the bottleneck.

use crate::clock::Nanos;

/// Time, births and deaths by the number of active sources.
///
/// A source is active from the arrival of its first packet at the bottleneck to its last
/// acknowledgement (Engset report, section 3.4).
#[derive(Clone, Debug, Default)]
pub struct Population {
    active: usize,
    since: Nanos,
    time_at: Vec<Nanos>,
    births_at: Vec<u64>,
    deaths_at: Vec<u64>,
}

impl Population {
    /// Forgets the past; who is active stays so.
    pub fn begin(&mut self, now: Nanos) {
        *self = Self {
            active: self.active,
            since: now,
            ..Self::default()
        };
    }

    /// One source more.
    pub fn birth(&mut self, now: Nanos) {
        self.settle(now);
        self.births_at[self.active] += 1;
        self.active += 1;
    }

    /// One source less.
    pub fn death(&mut self, now: Nanos) {
        self.settle(now);
        self.deaths_at[self.active] += 1;
        self.active -= 1;
    }

    /// Brings the times up to now.
    pub fn settle(&mut self, now: Nanos) {
        if self.active >= self.time_at.len() {
            self.time_at.resize(self.active + 1, 0);
            self.births_at.resize(self.active + 1, 0);
            self.deaths_at.resize(self.active + 1, 0);
        }
        self.time_at[self.active] += now - self.since;
        self.since = now;
    }

    /// Time spent with each number of active sources.
    #[must_use]
    pub fn time_at(&self) -> &[Nanos] {
        &self.time_at
    }

    /// Births out of each state.
    #[must_use]
    pub fn births_at(&self) -> &[u64] {
        &self.births_at
    }

    /// Deaths out of each state.
    #[must_use]
    pub fn deaths_at(&self) -> &[u64] {
        &self.deaths_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_transitions() {
        let mut population = Population::default();
        population.birth(10);
        population.birth(30);
        population.death(60);
        population.settle(100);
        assert_eq!(population.time_at(), [10, 20 + 40, 30]);
        assert_eq!(population.births_at(), [1, 1, 0]);
        assert_eq!(population.deaths_at(), [0, 0, 1]);
    }
}
