//! Token-bucket policers: two intervals in a row in which much is lost at the same rate.

use super::super::AckSample;
use super::{Bbr, Mode, bandwidth};
use crate::clock::Nanos;
use crate::tcp::modern::stack::MILLISECOND;

/// An interval has at least as many rounds, and at most four times as many.
const ROUNDS: u32 = 4;
/// A loss of 50/256 of what is delivered.
const LOSS: u64 = 50;
/// The rates differ by an eighth, or by 4 kbit/s.
const RATIO: u64 = 8;
const DIFFERENCE: u64 = 4000 / 8;
/// The rate of a policer is used for as many rounds.
const USED_FOR: u32 = 48;

/// What is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub enum Policer {
    /// No packet was lost.
    #[default]
    Unseen,
    /// The interval that began with a loss.
    Sampling {
        /// Where it began.
        from: Interval,
        /// Its rounds so far.
        rounds: u32,
        /// The rate of the one before.
        before: Option<u64>,
    },
    /// Its rate is used.
    Found {
        /// The rate.
        bandwidth: u64,
        /// For as many rounds so far.
        rounds: u32,
    },
}

/// Where an interval began.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    at: Nanos,
    delivered: u32,
    lost: u32,
}

impl Interval {
    fn begin(ack: &AckSample) -> Self {
        Self { at: ack.now, delivered: ack.total_delivered, lost: ack.total_lost }
    }

    /// Its rate, if enough was lost.
    fn rate(&self, ack: &AckSample) -> Option<u64> {
        let lost = u64::from(ack.total_lost.wrapping_sub(self.lost));
        let delivered = ack.total_delivered.wrapping_sub(self.delivered);
        let enough = delivered > 0 && lost * 256 >= LOSS * u64::from(delivered);
        let elapsed = ack.now - self.at;
        (enough && elapsed >= MILLISECOND).then(|| bandwidth(delivered, elapsed))
    }
}

impl Policer {
    /// Its rate, if it is in use.
    #[inline(always)]
    pub fn bandwidth(&self) -> Option<u64> {
        match *self {
            Self::Found { bandwidth, .. } => Some(bandwidth),
            _ => None,
        }
    }
}

impl Bbr {
    pub(super) fn watch_policer(&mut self, ack: &AckSample) {
        let round = u32::from(self.round_start);
        match self.policer {
            Policer::Found { bandwidth, rounds } => {
                let probes = matches!(self.mode, Mode::ProbeBw { .. });
                let rounds = rounds + if probes { round } else { 0 };
                self.policer = Policer::Found { bandwidth, rounds };
                if rounds >= USED_FOR {
                    self.policer = Policer::Unseen;
                    self.enter_probe_bw(ack.now);
                }
            }
            Policer::Unseen if ack.lost == 0 => (),
            Policer::Unseen if ack.rate.app_limited => (),
            Policer::Unseen => {
                let from = Interval::begin(ack);
                self.policer = Policer::Sampling { from, rounds: round, before: None };
            }
            Policer::Sampling { .. } if ack.rate.app_limited => self.policer = Policer::Unseen,
            Policer::Sampling { from, rounds, before } => {
                self.policer = self.sampled(ack, from, rounds + round, before);
            }
        }
    }

    fn sampled(
        &self,
        ack: &AckSample,
        from: Interval,
        rounds: u32,
        before: Option<u64>,
    ) -> Policer {
        if rounds > 4 * ROUNDS {
            return Policer::Unseen;
        }
        let over = rounds >= ROUNDS && ack.lost > 0;
        let Some(bw) = over.then(|| from.rate(ack)).flatten() else {
            return Policer::Sampling { from, rounds, before };
        };
        if let Some(before) = before {
            let difference = bw.abs_diff(before);
            let bytes = self.pace.of(difference, super::UNIT);
            if difference * RATIO <= before || bytes <= DIFFERENCE {
                return Policer::Found { bandwidth: (bw + before) / 2, rounds: 0 };
            }
        }
        Policer::Sampling { from: Interval::begin(ack), rounds: 0, before: Some(bw) }
    }
}
