//! A probe for the smallest round-trip time: little in flight for 200 ms and for a round.

use crate::clock::Nanos;
use crate::tcp::modern::stack::MILLISECOND;

/// How long little is in flight, at least.
const LENGTH: Nanos = 200 * MILLISECOND;

/// How far a probe for the smallest round-trip time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttProbe {
    /// What is in flight shrinks to what a probe leaves.
    Emptying,
    /// Little is in flight.
    Holding {
        /// It may end then,
        until: Nanos,
        /// once a round is over.
        round_done: bool,
    },
}

impl RttProbe {
    /// An acknowledgement arrives, with as `little` in flight as a probe leaves or not: whether the
    /// probe begins to hold, so that a round begins.
    pub fn on_ack(&mut self, now: Nanos, little: bool, round_start: bool) -> bool {
        match self {
            Self::Emptying if little => {
                *self = Self::Holding { until: now + LENGTH, round_done: false };
                true
            }
            Self::Emptying => false,
            Self::Holding { round_done, .. } => {
                *round_done |= round_start;
                false
            }
        }
    }

    /// Whether the round of the probe is over.
    #[must_use]
    pub fn round_done(&self) -> bool {
        matches!(self, Self::Holding { round_done: true, .. })
    }

    /// Whether little was in flight for long enough.
    #[must_use]
    pub fn is_long_enough(&self, now: Nanos) -> bool {
        matches!(*self, Self::Holding { until, .. } if now > until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_for_200_ms_and_a_round() {
        let mut probe = RttProbe::Emptying;
        assert!(!probe.on_ack(0, false, true));
        assert!(probe.on_ack(5, true, true));
        assert!(!probe.round_done() && !probe.is_long_enough(LENGTH + 5));
        assert!(!probe.on_ack(6, true, true));
        assert!(probe.round_done() && probe.is_long_enough(LENGTH + 6));
    }
}
