//! Loss indications: by the better rule, which judges each retransmission, and by the paper's.

use super::direction_stats::RetransmissionEvent;
use super::recovery::{Cause, DUPLICATE_THRESHOLD, Kind, Verdict};
use crate::segment::Nanos;

/// Depths of timeout sequences are told apart up to this; the last class holds all longer ones.
pub const DEPTHS: usize = 6;

/// Loss indications counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indications {
    /// Recoveries after duplicates, SACK or RACK, without a timeout: the better rule.
    pub td: u64,
    /// Sequences of timeouts by depth: place 0 holds those of one timeout (the paper's T0), place 5 those of
    /// six and more. The better rule.
    pub by_depth: [u64; DEPTHS],
    /// Timeouts, each of a sequence counted.
    pub timeouts: u64,
    /// The paper's rule: three duplicates had come.
    pub td_paper: u64,
    /// The paper's rule: everything else, a sequence once.
    pub to_paper: u64,
}

impl Indications {
    /// Sequences of timeouts: the better rule.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.by_depth.iter().sum()
    }

    /// Counts what a verdict says.
    pub(super) fn add(&mut self, verdict: &Verdict) {
        self.td += u64::from(verdict.indication == Some(Kind::Td));
        if let Cause::Timeout { depth } = verdict.cause {
            self.timeouts += 1;
            let class = usize::from(depth.max(1) - 1).min(DEPTHS - 1);
            if class > 0 && usize::from(depth) <= DEPTHS {
                // It was one shallower until now.
                self.by_depth[class - 1] = self.by_depth[class - 1].saturating_sub(1);
            }
            if usize::from(depth) <= DEPTHS {
                self.by_depth[class] += 1;
            }
        }
    }

    /// Counts what the paper's rule says.
    pub(super) fn add_paper(&mut self, kind: Option<Kind>) {
        self.td_paper += u64::from(kind == Some(Kind::Td));
        self.to_paper += u64::from(kind == Some(Kind::To));
    }
}

/// The rule of PFTK's authors: three duplicates, else a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PaperRule {
    recover: u64,
    /// The last indication was TD.
    fast: bool,
}

impl PaperRule {
    /// What a retransmission of the oldest segment indicates, if it is not part of a known indication.
    pub(super) fn classify(&mut self, event: &RetransmissionEvent) -> Option<Kind> {
        // A fast retransmit is not repeated: the second time it was the timer.
        let expired = self.fast && event.repeated;
        if event.sent.start < self.recover && !expired {
            return None;
        }
        self.recover = event.next;
        self.fast = event.duplicates >= DUPLICATE_THRESHOLD && !expired;
        Some(if self.fast { Kind::Td } else { Kind::To })
    }
}

/// A loss indication and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indication {
    /// When the first retransmission of it was captured.
    pub time: Nanos,
    /// By the better rule.
    pub kind: Kind,
}

/// The mean first duration of the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstTimeout {
    sum: u128,
    count: u64,
}

impl FirstTimeout {
    pub(super) fn add(&mut self, verdict: &Verdict) {
        if verdict.indication == Some(Kind::To) {
            self.sum += u128::from(verdict.waited);
            self.count += 1;
        }
    }

    /// T0, s.
    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::Sent;
    use super::*;

    fn timeout(depth: u8) -> Verdict {
        let indication = (depth == 1).then_some(Kind::To);
        Verdict { cause: Cause::Timeout { depth }, indication, waited: 300_000_000 }
    }

    #[test]
    fn a_sequence_of_timeouts_is_one_indication_of_its_depth() {
        let mut indications = Indications::default();
        (1..=3).for_each(|depth| indications.add(&timeout(depth)));
        indications.add(&timeout(1));
        (1..=9).for_each(|depth| indications.add(&timeout(depth)));
        assert_eq!(indications.by_depth, [1, 0, 1, 0, 0, 1]);
        assert_eq!((indications.to(), indications.timeouts), (3, 13));
    }

    #[test]
    fn the_paper_asks_for_three_duplicates() {
        let mut rule = PaperRule::default();
        let mut classify = |start, next, duplicates, repeated| {
            let sent = Sent { start, ..Sent::default() };
            let verdict = timeout(1);
            rule.classify(&RetransmissionEvent {
                sent,
                packets: 1,
                offset: 0,
                verdict,
                next,
                duplicates,
                oldest: true,
                repeated,
            })
        };
        assert_eq!(classify(10, 100, 3, false), Some(Kind::Td));
        assert_eq!(classify(50, 110, 0, false), None);
        assert_eq!(classify(50, 110, 9, true), Some(Kind::To));
        assert_eq!(classify(50, 110, 9, true), None);
        assert_eq!(classify(110, 200, 2, false), Some(Kind::To));
    }
}
