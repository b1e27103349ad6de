//! When losses were found, whoever's they were.

use crate::clock::Nanos;

/// No more times than this are kept: 32 MB.
const MAX_TIMES: usize = 1 << 22;

/// The times of the loss indications of all flows: fast retransmits, and the first timeout of each
/// sequence.
#[derive(Clone, Debug, Default)]
pub struct Indications {
    began: Nanos,
    times: Vec<Nanos>,
    cut: bool,
}

impl Indications {
    /// Forgets the past; time counts from now.
    pub fn begin(&mut self, now: Nanos) {
        *self = Self { began: now, ..Self::default() };
    }

    /// A sender found a loss. Senders are asked in the order of time.
    pub fn add(&mut self, at: Nanos) {
        debug_assert!(self.times.last().is_none_or(|last| *last <= at));
        if self.times.len() < MAX_TIMES {
            self.times.push(at);
        } else {
            self.cut = true;
        }
    }

    /// Whether there were more than are kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The loss events of all flows taken as one: indications that come `apart` or later after the
    /// last one that counts; the first counts. Nanoseconds since the warm-up; endpoints are asked
    /// late, so that the first may be just before its end.
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
    fn an_event_lasts_from_one_that_counts() {
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
    fn there_is_an_end_to_what_is_kept() {
        let mut indications = Indications::default();
        (0..MAX_TIMES as u64).for_each(|time| indications.add(time));
        assert!(!indications.is_cut());
        indications.add(MAX_TIMES as u64);
        assert!(indications.is_cut());
        indications.begin(MAX_TIMES as u64 + 1);
        assert!(!indications.is_cut());
    }
}
