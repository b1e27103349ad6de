//! Loss indications of all flows.

use crate::clock::Nanos;

/// Maximum number of stored times: 32 MB.
const MAX_STORED_TIMES: usize = 1 << 22;

/// Times of the loss indications of all flows: fast retransmits and the first timeout of each
/// sequence.
#[derive(Clone, Debug, Default)]
pub struct LossIndicationTimes {
    began: Nanos,
    times: Vec<Nanos>,
    cut: bool,
}

impl LossIndicationTimes {
    /// Discards all times; time counts from `now`.
    pub fn begin_measurement(&mut self, now: Nanos) {
        *self = Self { began: now, ..Self::default() };
    }

    /// Records the detection of a loss by a sender, in the order of time.
    pub fn add_indication(&mut self, at: Nanos) {
        debug_assert!(self.times.last().is_none_or(|last| *last <= at));
        if self.times.len() < MAX_STORED_TIMES {
            self.times.push(at);
        } else {
            self.cut = true;
        }
    }

    /// Whether indications were discarded because of the limit.
    #[must_use]
    pub fn exceeded_limit(&self) -> bool {
        self.cut
    }

    /// Loss events of the aggregate of all flows: the first indication, and each indication at
    /// least `min_gap` after the previous event. Times are in nanoseconds since the end of the
    /// warm-up. The first time may be slightly negative, because senders are processed with a
    /// delay.
    #[must_use]
    pub fn loss_events(&self, min_gap: Nanos) -> Vec<i64> {
        let mut next = 0;
        let mut events = Vec::new();
        for time in &self.times {
            if *time >= next {
                next = *time + min_gap;
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
        let mut indications = LossIndicationTimes::default();
        indications.add_indication(7);
        indications.begin_measurement(100);
        for time in [95, 100, 104, 105, 109, 114, 115, 130] {
            indications.add_indication(time);
        }
        assert_eq!(indications.loss_events(10), [-5, 5, 15, 30], "104 is not 10 after 95, 105 is");
        assert_eq!(indications.loss_events(0), [-5, 0, 4, 5, 9, 14, 15, 30]);
        assert_eq!(indications.loss_events(1000), [-5]);
        assert!(!indications.exceeded_limit());
    }

    #[test]
    fn number_of_stored_times_is_limited() {
        let mut indications = LossIndicationTimes::default();
        (0..MAX_STORED_TIMES as u64).for_each(|time| indications.add_indication(time));
        assert!(!indications.exceeded_limit());
        indications.add_indication(MAX_STORED_TIMES as u64);
        assert!(indications.exceeded_limit());
        indications.begin_measurement(MAX_STORED_TIMES as u64 + 1);
        assert!(!indications.exceeded_limit());
    }
}
