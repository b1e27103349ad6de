//! Loss indications of all flows.

use crate::clock::Nanos;

/// Maximum number of stored times: 32 MB.
const MAX_TIMES: usize = 1 << 22;

/// Times of the loss indications of all flows: fast retransmits and the first timeout of each
/// sequence.
#[derive(Clone, Debug, Default)]
pub struct Indications {
    began: Nanos,
    times: Vec<Nanos>,
    cut: bool,
}

impl Indications {
    /// Discards all times; time counts from `now`.
    pub fn begin(&mut self, now: Nanos) {
        *self = Self { began: now, ..Self::default() };
    }

    /// Records the detection of a loss by a sender, in the order of time.
    pub fn add(&mut self, at: Nanos) {
        debug_assert!(self.times.last().is_none_or(|last| *last <= at));
        if self.times.len() < MAX_TIMES {
            self.times.push(at);
        } else {
            self.cut = true;
        }
    }

    /// Whether indications were discarded because of the limit.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Loss events of the aggregate of all flows: the first indication, and each indication at
    /// least `apart` after the previous event. Times are in nanoseconds since the end of the
    /// warm-up. The first may be slightly negative, because senders are processed with a delay.
    #[must_use]
    pub fn events(&self, apart: Nanos) -> Vec<i64> {
        let mut next = 0;
        let mut events = Vec::new();
        for time in &self.times {
            if *time >= next {
                next = *time + apart;
                events.push(*time as i64 - self.began as i64);
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_separated_by_the_minimum_distance() {
        let mut indications = Indications::default();
        indications.add(7);
        indications.begin(100);
        for time in [95, 100, 104, 105, 109, 114, 115, 130] {
            indications.add(time);
        }
        assert_eq!(indications.events(10), [-5, 5, 15, 30], "104 is not 10 after 95, 105 is");
        assert_eq!(indications.events(0), [-5, 0, 4, 5, 9, 14, 15, 30]);
        assert_eq!(indications.events(1000), [-5]);
        assert!(!indications.is_cut());
    }

    #[test]
    fn number_of_stored_times_is_limited() {
        let mut indications = Indications::default();
        (0..MAX_TIMES as u64).for_each(|time| indications.add(time));
        assert!(!indications.is_cut());
        indications.add(MAX_TIMES as u64);
        assert!(indications.is_cut());
        indications.begin(MAX_TIMES as u64 + 1);
        assert!(!indications.is_cut());
    }
}
