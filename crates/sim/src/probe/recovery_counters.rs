//! Timeouts by kind, and statistics of recoveries (Engset report, Table 7, Figures 15 and 16).

use crate::clock::Nanos;
use crate::merge::merge_fields;
use tcpcast_tcp::{TcpEvent, TimeoutState};

/// Progress of an endless flow since its start, warm-up included.
///
/// The rate of a flow does not represent its steady state before its first recovery has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstRecoveryProgress {
    /// No loss detected: the window has only grown.
    #[default]
    Lossless,
    /// The first fast recovery is in progress.
    FirstRecovery,
    /// The first recovery has ended, or a timeout occurred first.
    Beyond,
}

impl FirstRecoveryProgress {
    /// Stage after an event.
    #[must_use]
    pub fn stage_after(self, event: &TcpEvent) -> Self {
        match (self, event) {
            (Self::Lossless, TcpEvent::FastRetransmit { .. }) => Self::FirstRecovery,
            // A second fast retransmit implies that the first recovery has ended.
            (Self::FirstRecovery, TcpEvent::FastRetransmit { .. })
            | (_, TcpEvent::Recovered { .. } | TcpEvent::Timeout { .. }) => Self::Beyond,
            _ => self,
        }
    }
}

/// Cause of a timeout: the classes of Table 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// Packet 1 or 2 was lost, with too few packets in flight for three duplicate acknowledgements.
    Beginning,
    /// One of the last three packets was lost, and the whole file had been sent. In files of three
    /// or four packets, a packet may be in both classes. The report does not define the class of
    /// this timeout; this rule reproduces the fractions of its Table 7 best.
    End,
    /// The timer expired again for the same packet.
    AfterTimeout,
    /// The timeout interrupted a recovery.
    InRecovery,
    /// Any other timeout.
    Other,
}

/// Names of the kinds, in the order of [`TimeoutKind`].
pub const TIMEOUT_KINDS: [&str; 5] = ["TObeg", "TOend", "TOTO", "TDTO", "other"];

impl TimeoutKind {
    /// Kind of a timeout of packet `number` with `left` later packets in the file.
    #[must_use]
    pub fn classify_timeout(number: u32, left: u32, state: &TimeoutState) -> Self {
        if state.repeated {
            Self::AfterTimeout
        } else if state.in_recovery {
            Self::InRecovery
        } else if state.all_sent && left < 3 {
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
    /// Times between the last transmission and the timeout, by kind.
    pub stalled: [Nanos; 5],
    /// Timeouts in slow start, by window.
    pub by_window: Vec<u64>,
    /// Successful recoveries.
    pub recoveries: u64,
    /// Total duration of successful recoveries.
    pub duration: Nanos,
    /// Packets sent during successful recoveries, retransmissions included.
    pub sent: u64,
    /// Recoveries by number of retransmissions.
    pub by_retransmissions: Vec<u64>,
    /// Recoveries by number of packets sent in a burst at the end.
    pub by_burst: Vec<u64>,
}

/// Larger windows, bursts and numbers of retransmissions share one counter.
const MAX_HISTOGRAM_VALUE: usize = 1024;

fn increment_count(histogram: &mut Vec<u64>, value: u32) {
    let index = (value as usize).min(MAX_HISTOGRAM_VALUE);
    if index >= histogram.len() {
        histogram.resize(index + 1, 0);
    }
    histogram[index] += 1;
}

impl RecoveryCounters {
    /// Counts a timeout of packet `number`; `stalled` is the time since the last transmission.
    pub fn count_timeout(&mut self, number: u32, left: u32, state: &TimeoutState, stalled: Nanos) {
        let kind = TimeoutKind::classify_timeout(number, left, state);
        self.timeouts[kind as usize] += 1;
        self.stalled[kind as usize] += stalled;
        if state.slow_start {
            increment_count(&mut self.by_window, state.window);
        }
    }

    /// Counts a successful recovery.
    pub fn count_recovery(&mut self, duration: Nanos, sent: u32, retransmissions: u32, burst: u32) {
        self.recoveries += 1;
        self.duration += duration;
        self.sent += u64::from(sent);
        increment_count(&mut self.by_retransmissions, retransmissions);
        increment_count(&mut self.by_burst, burst);
    }
}

merge_fields!(RecoveryCounters {
    timeouts,
    stalled,
    by_window,
    recoveries,
    duration,
    sent,
    by_retransmissions,
    by_burst
});

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: TimeoutState = TimeoutState {
        all_sent: false,
        window: 8,
        slow_start: true,
        repeated: false,
        in_recovery: false,
        rto: 1,
    };

    #[test]
    fn stage_is_beyond_after_first_recovery_or_timeout() {
        let fast = TcpEvent::FastRetransmit { window: 8 };
        let stages = |events: &[TcpEvent]| {
            events.iter().fold(FirstRecoveryProgress::default(), FirstRecoveryProgress::stage_after)
        };
        assert_eq!(stages(&[]), FirstRecoveryProgress::Lossless);
        assert_eq!(stages(&[TcpEvent::IdleRestart]), FirstRecoveryProgress::Lossless);
        let repairing = [fast, TcpEvent::PartialAck, TcpEvent::PartialAck];
        assert_eq!(stages(&repairing), FirstRecoveryProgress::FirstRecovery);
        assert_eq!(
            stages(&[fast, TcpEvent::Recovered { burst: 3 }]),
            FirstRecoveryProgress::Beyond
        );
        assert_eq!(stages(&[fast, fast]), FirstRecoveryProgress::Beyond);
        assert_eq!(
            stages(&[fast, TcpEvent::Recovered { burst: 3 }, fast]),
            FirstRecoveryProgress::Beyond
        );
        let timeout = TcpEvent::Timeout { number: 9, left: 90, state: STATE };
        assert_eq!(stages(&[timeout]), FirstRecoveryProgress::Beyond);
        assert_eq!(stages(&[timeout, fast]), FirstRecoveryProgress::Beyond);
    }

    #[test]
    fn timeouts_are_classified_by_cause() {
        let kind = |number, left, all_sent, repeated, in_recovery| {
            let state = TimeoutState { all_sent, repeated, in_recovery, ..STATE };
            TimeoutKind::classify_timeout(number, left, &state)
        };
        assert_eq!(kind(1, 2, true, true, false), TimeoutKind::AfterTimeout);
        assert_eq!(kind(9, 21, false, false, true), TimeoutKind::InRecovery);
        assert_eq!(kind(1, 2, false, false, false), TimeoutKind::Beginning);
        assert_eq!(kind(2, 1, true, false, false), TimeoutKind::End);
        assert_eq!(kind(28, 2, true, false, false), TimeoutKind::End);
        assert_eq!(kind(27, 3, true, false, false), TimeoutKind::Other);
    }
}
