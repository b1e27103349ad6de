//! Timeouts by their kind, and what recoveries were like (Engset report, Table 7, Figures 15, 16).

use super::event::TcpEvent;
use super::totals::accumulate;
use crate::clock::Nanos;

/// How far an endless flow has come since it began, the warm-up included.
///
/// What a flow sends says nothing of its steady state before it is beyond its first recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossStage {
    /// It has found no loss: its window has only grown.
    #[default]
    Lossless,
    /// Its first fast recovery is not over.
    FirstRecovery,
    /// Its first recovery is over, or a timeout came first.
    Beyond,
}

impl LossStage {
    /// The stage after an event of loss detection.
    #[must_use]
    pub fn after(self, event: &TcpEvent) -> Self {
        match (self, event) {
            (Self::Lossless, TcpEvent::FastRetransmit { .. }) => Self::FirstRecovery,
            // A fast recovery begins where there is none.
            (Self::FirstRecovery, TcpEvent::FastRetransmit { .. })
            | (_, TcpEvent::Recovered { .. } | TcpEvent::Timeout { .. }) => Self::Beyond,
            _ => self,
        }
    }
}

/// Why a timeout could not be avoided; Table 7's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// Packet 1 or 2 was lost: there are not enough later packets for three duplicates.
    Beginning,
    /// One of the last three packets was lost, and the whole file had been sent. In files of three
    /// or four packets one packet is both; the report does not say which it counts as, and with
    /// this rule the shares of its Table 7 come out best.
    End,
    /// It expired again for the same packet.
    AfterTimeout,
    /// It interrupted a recovery.
    InRecovery,
    /// Any other.
    Other,
}

/// The names of the kinds in the order of the enum.
pub const TIMEOUT_KINDS: [&str; 5] = ["TObeg", "TOend", "TOTO", "TDTO", "other"];

impl TimeoutKind {
    /// The kind of a timeout of packet `number`, with `left` packets after it in the file.
    #[must_use]
    pub fn of(number: u32, left: u32, all_sent: bool, repeated: bool, in_recovery: bool) -> Self {
        if repeated {
            Self::AfterTimeout
        } else if in_recovery {
            Self::InRecovery
        } else if all_sent && left < 3 {
            Self::End
        } else if number <= 2 {
            Self::Beginning
        } else {
            Self::Other
        }
    }
}

/// Counts of timeouts and recoveries.
#[derive(Clone, Debug, Default)]
pub struct RecoveryCounters {
    /// Timeouts by kind.
    pub timeouts: [u64; 5],
    /// Time between the last sending and the timeout, by kind.
    pub stalled: [Nanos; 5],
    /// Timeouts in slow start by the window at which they occurred.
    pub by_window: Vec<u64>,
    /// Successful recoveries.
    pub recoveries: u64,
    /// Their total duration.
    pub duration: Nanos,
    /// Packets sent during them, retransmissions included.
    pub sent: u64,
    /// Recoveries by the number of retransmissions in them.
    pub by_retransmissions: Vec<u64>,
    /// Recoveries by the number of packets sent at once on their end.
    pub by_burst: Vec<u64>,
}

/// Larger windows, bursts and numbers of retransmissions are counted together.
const LARGEST: usize = 1024;

fn count(histogram: &mut Vec<u64>, value: u32) {
    let at = (value as usize).min(LARGEST);
    if at >= histogram.len() {
        histogram.resize(at + 1, 0);
    }
    histogram[at] += 1;
}

impl RecoveryCounters {
    /// A timeout, with the window if the sender was in slow start.
    pub fn timeout(&mut self, kind: TimeoutKind, stalled: Nanos, slow_start_window: Option<u32>) {
        self.timeouts[kind as usize] += 1;
        self.stalled[kind as usize] += stalled;
        if let Some(window) = slow_start_window {
            count(&mut self.by_window, window);
        }
    }

    /// Adds another replication's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.timeouts.iter_mut().zip(other.timeouts) {
            *mine += theirs;
        }
        for (mine, theirs) in self.stalled.iter_mut().zip(other.stalled) {
            *mine += theirs;
        }
        self.recoveries += other.recoveries;
        self.duration += other.duration;
        self.sent += other.sent;
        accumulate(&mut self.by_window, &other.by_window);
        accumulate(&mut self.by_retransmissions, &other.by_retransmissions);
        accumulate(&mut self.by_burst, &other.by_burst);
    }

    /// A recovery ended with success.
    pub fn recovered(&mut self, duration: Nanos, sent: u32, retransmissions: u32, burst: u32) {
        self.recoveries += 1;
        self.duration += duration;
        self.sent += u64::from(sent);
        count(&mut self.by_retransmissions, retransmissions);
        count(&mut self.by_burst, burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_beyond_its_first_recovery_once_that_has_ended() {
        let fast = TcpEvent::FastRetransmit { window: 8 };
        let stages =
            |events: &[TcpEvent]| events.iter().fold(LossStage::default(), LossStage::after);
        assert_eq!(stages(&[]), LossStage::Lossless);
        assert_eq!(stages(&[TcpEvent::IdleRestart]), LossStage::Lossless);
        let repairing = [fast, TcpEvent::PartialAck, TcpEvent::PartialAck];
        assert_eq!(stages(&repairing), LossStage::FirstRecovery);
        assert_eq!(stages(&[fast, TcpEvent::Recovered { burst: 3 }]), LossStage::Beyond);
        assert_eq!(stages(&[fast, fast]), LossStage::Beyond);
        assert_eq!(stages(&[fast, TcpEvent::Recovered { burst: 3 }, fast]), LossStage::Beyond);
        let timeout = TcpEvent::Timeout {
            number: 9,
            left: 90,
            all_sent: false,
            window: 8,
            slow_start: true,
            repeated: false,
            in_recovery: false,
            rto: 1,
        };
        assert_eq!(stages(&[timeout]), LossStage::Beyond);
        assert_eq!(stages(&[timeout, fast]), LossStage::Beyond);
    }

    #[test]
    fn kinds() {
        let kind = TimeoutKind::of;
        assert_eq!(kind(1, 2, true, true, false), TimeoutKind::AfterTimeout);
        assert_eq!(kind(9, 21, false, false, true), TimeoutKind::InRecovery);
        assert_eq!(kind(1, 2, false, false, false), TimeoutKind::Beginning);
        assert_eq!(kind(2, 1, true, false, false), TimeoutKind::End);
        assert_eq!(kind(28, 2, true, false, false), TimeoutKind::End);
        assert_eq!(kind(27, 3, true, false, false), TimeoutKind::Other);
    }
}
