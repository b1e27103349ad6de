//! Loss indications, counted by tcpcast's rule, which classifies each retransmission, and by the
//! paper's rule.

use super::flight::SentRange;
use super::recovery::DUPLICATE_THRESHOLD;
use super::retransmission_cause::{IndicationKind, RetransCause, RetransVerdict};
use crate::segment::Nanos;

/// Timeout sequences are counted by depth up to this; the last class includes all longer ones.
pub const DEPTHS: usize = 6;

/// Counts of loss indications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossIndicationCounts {
    /// Recoveries after duplicates, SACK or RACK without a timeout, by tcpcast's rule.
    pub td: u64,
    /// Sequences of timeouts by depth, by tcpcast's rule: index 0 for one timeout (the paper's T0),
    /// index 5 for six or more.
    pub by_depth: [u64; DEPTHS],
    /// All timeouts.
    pub timeouts: u64,
    /// TD indications by the paper's rule: at least three duplicates.
    pub td_paper: u64,
    /// TO indications by the paper's rule: one per sequence of retransmissions that are not TD.
    pub to_paper: u64,
}

impl LossIndicationCounts {
    /// Number of timeout sequences by tcpcast's rule.
    #[must_use]
    pub fn timeout_count(&self) -> u64 {
        self.by_depth.iter().sum()
    }

    /// Counts the indication of a verdict.
    pub(super) fn count_verdict(&mut self, verdict: &RetransVerdict) {
        self.td += u64::from(verdict.indication == Some(IndicationKind::Td));
        if let RetransCause::Timeout { depth } = verdict.cause {
            self.timeouts += 1;
            let class = usize::from(depth.max(1) - 1).min(DEPTHS - 1);
            if class > 0 && usize::from(depth) <= DEPTHS {
                // The sequence was counted with the previous depth.
                self.by_depth[class - 1] = self.by_depth[class - 1].saturating_sub(1);
            }
            if usize::from(depth) <= DEPTHS {
                self.by_depth[class] += 1;
            }
        }
    }

    /// Counts an indication by the paper's rule.
    pub(super) fn count_by_pftk_rule(&mut self, kind: Option<IndicationKind>) {
        self.td_paper += u64::from(kind == Some(IndicationKind::Td));
        self.to_paper += u64::from(kind == Some(IndicationKind::To));
    }
}

/// A classified retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransInfo {
    pub(super) sent: SentRange,
    /// Number of packets in the frame; more than one if the frame is aggregated.
    pub(super) packets: u64,
    /// Offset of the first byte in the direction.
    pub(super) offset: u64,
    pub(super) verdict: RetransVerdict,
    pub(super) next: u64,
    pub(super) duplicates: u32,
    /// True for the oldest segment in flight.
    pub(super) oldest: bool,
    /// True if the segment was retransmitted before.
    pub(super) repeated: bool,
}

/// The rule of PFTK's authors: TD after three duplicates, otherwise a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PftkIndicationRule {
    recover: u64,
    /// True if the last indication was TD.
    fast: bool,
}

impl PftkIndicationRule {
    /// Returns the indication of a retransmission of the oldest segment, unless it belongs to a
    /// previous indication.
    pub(super) fn classify_indication(&mut self, event: &RetransInfo) -> Option<IndicationKind> {
        // A fast retransmit is not repeated, so the second retransmission was caused by the timer.
        let expired = self.fast && event.repeated;
        if event.sent.start < self.recover && !expired {
            return None;
        }
        self.recover = event.next;
        self.fast = event.duplicates >= DUPLICATE_THRESHOLD && !expired;
        Some(if self.fast { IndicationKind::Td } else { IndicationKind::To })
    }
}

/// A loss indication and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossIndication {
    /// Capture time of the first retransmission.
    pub time: Nanos,
    /// Kind by tcpcast's rule.
    pub kind: IndicationKind,
}

/// The mean first duration of the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstTimeoutMean {
    sum: u128,
    count: u64,
}

impl FirstTimeoutMean {
    pub(super) fn add_if_first_timeout(&mut self, verdict: &RetransVerdict) {
        if verdict.indication == Some(IndicationKind::To) {
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
    use super::super::flight::SentRange;
    use super::*;

    fn timeout(depth: u8) -> RetransVerdict {
        let indication = (depth == 1).then_some(IndicationKind::To);
        RetransVerdict { cause: RetransCause::Timeout { depth }, indication, waited: 300_000_000 }
    }

    #[test]
    fn add_counts_timeout_sequence_once_by_depth() {
        let mut indications = LossIndicationCounts::default();
        (1..=3).for_each(|depth| indications.count_verdict(&timeout(depth)));
        indications.count_verdict(&timeout(1));
        (1..=9).for_each(|depth| indications.count_verdict(&timeout(depth)));
        assert_eq!(indications.by_depth, [1, 0, 1, 0, 0, 1]);
        assert_eq!((indications.timeout_count(), indications.timeouts), (3, 13));
    }

    #[test]
    fn paper_rule_requires_three_duplicates() {
        let mut rule = PftkIndicationRule::default();
        let mut classify = |start, next, duplicates, repeated| {
            let sent = SentRange { start, ..SentRange::default() };
            let verdict = timeout(1);
            rule.classify_indication(&RetransInfo {
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
        assert_eq!(classify(10, 100, 3, false), Some(IndicationKind::Td));
        assert_eq!(classify(50, 110, 0, false), None);
        assert_eq!(classify(50, 110, 9, true), Some(IndicationKind::To));
        assert_eq!(classify(50, 110, 9, true), None);
        assert_eq!(classify(110, 200, 2, false), Some(IndicationKind::To));
    }
}
