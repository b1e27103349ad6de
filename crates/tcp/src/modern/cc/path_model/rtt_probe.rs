//! Probe for the minimum round-trip time: few packets in flight for 200 ms and at least one round.

use tcpcast_link::time::{MILLISECOND, Nanos};

/// Minimum duration with few packets in flight.
const MIN_PROBE_TIME: Nanos = 200 * MILLISECOND;

/// State of a probe for the minimum round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRttProbe {
    /// The packets in flight decrease to the limit of the probe.
    Emptying,
    /// Few packets are in flight.
    Holding {
        /// Earliest end of the probe.
        until: Nanos,
        /// Whether a round has ended.
        round_done: bool,
    },
}

impl MinRttProbe {
    /// An acknowledgement arrives; `within_limit` if the packets in flight are within the limit of
    /// the probe. Returns whether holding begins, which starts a round.
    pub fn on_ack(&mut self, now: Nanos, within_limit: bool, round_start: bool) -> bool {
        match self {
            Self::Emptying if within_limit => {
                *self = Self::Holding { until: now + MIN_PROBE_TIME, round_done: false };
                true
            }
            Self::Emptying => false,
            Self::Holding { round_done, .. } => {
                *round_done |= round_start;
                false
            }
        }
    }

    /// Whether the round of the probe has ended.
    #[must_use]
    pub fn is_round_done(&self) -> bool {
        matches!(self, Self::Holding { round_done: true, .. })
    }

    /// Whether the minimum duration has passed.
    #[must_use]
    pub fn is_long_enough(&self, now: Nanos) -> bool {
        matches!(*self, Self::Holding { until, .. } if now > until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_holds_for_200_ms_and_one_round() {
        let mut probe = MinRttProbe::Emptying;
        assert!(!probe.on_ack(0, false, true));
        assert!(probe.on_ack(5, true, true));
        assert!(!probe.is_round_done() && !probe.is_long_enough(MIN_PROBE_TIME + 5));
        assert!(!probe.on_ack(6, true, true));
        assert!(probe.is_round_done() && probe.is_long_enough(MIN_PROBE_TIME + 6));
    }
}
