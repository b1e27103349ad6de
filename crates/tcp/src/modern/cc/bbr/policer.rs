//! Detection of token-bucket policers: two consecutive intervals with many losses and the same
//! rate.

use super::super::DeliveryTotals;
use super::{Bbr, BbrMode, bandwidth_of};
use tcpcast_link::time::MILLISECOND;

/// Minimum number of rounds of an interval; the maximum is four times as many.
const MIN_INTERVAL_ROUNDS: u32 = 4;
/// Minimum loss: 50/256 of the packets delivered.
const MIN_LOSS_PER_256: u64 = 50;
/// Two rates are equal if they differ by at most 1/8 or 4 kbit/s.
const MAX_RATE_RATIO: u64 = 8;
const MAX_RATE_DIFFERENCE: u64 = 4000 / 8;
/// Number of rounds for which the rate of a policer is used.
const POLICED_RATE_ROUNDS: u32 = 48;

/// State of the detection.
#[derive(Clone, Copy, Debug, Default)]
pub enum PolicerDetection {
    /// No policer was detected, and no interval is being sampled.
    #[default]
    Unseen,
    /// An interval that began with a loss is being sampled.
    Sampling {
        /// Totals at its start.
        from: DeliveryTotals,
        /// Rounds of the interval so far.
        rounds: u32,
        /// Rate of the previous interval.
        before: Option<u64>,
    },
    /// The rate of a detected policer is used.
    Found {
        /// Rate of the policer.
        bandwidth: u64,
        /// Rounds of use so far.
        rounds: u32,
    },
}

/// Input of the detection.
#[derive(Clone, Copy, Debug)]
pub struct PolicerSample {
    /// Totals of delivered and lost packets.
    pub totals: DeliveryTotals,
    /// Whether a packet was detected as lost now.
    pub lost: bool,
    /// Whether the rate was limited by the application when the packet delivered now was sent.
    pub app_limited: bool,
}

impl PolicerSample {
    /// Rate since the start of the interval, if enough was lost. Linux's clock has milliseconds.
    fn rate_since(&self, from: &DeliveryTotals) -> Option<u64> {
        let lost = u64::from(self.totals.lost.wrapping_sub(from.lost));
        let delivered = self.totals.delivered.wrapping_sub(from.delivered);
        let enough = delivered > 0 && lost * 256 >= MIN_LOSS_PER_256 * u64::from(delivered);
        let elapsed = (self.totals.at / MILLISECOND).saturating_sub(from.at / MILLISECOND);
        (enough && elapsed > 0).then(|| bandwidth_of(delivered, elapsed * MILLISECOND))
    }
}

impl PolicerDetection {
    /// Rate of the policer, if in use.
    #[inline(always)]
    pub fn policer_bandwidth(&self) -> Option<u64> {
        match *self {
            Self::Found { bandwidth, .. } => Some(bandwidth),
            _ => None,
        }
    }
}

impl Bbr {
    /// Linux's `bbr_lt_bw_sampling`. Usually there is neither a policer nor a loss.
    #[inline(always)]
    pub(super) fn detect_policer(&mut self, sample: &PolicerSample) {
        if sample.lost || !matches!(self.policer, PolicerDetection::Unseen) {
            self.sample_policer(sample);
        }
    }

    #[inline(never)]
    fn sample_policer(&mut self, sample: &PolicerSample) {
        let round = u32::from(self.round_start);
        match self.policer {
            PolicerDetection::Found { bandwidth, rounds } => {
                let probes = matches!(self.mode, BbrMode::ProbeBw { .. });
                let rounds = rounds + if probes { round } else { 0 };
                self.policer = PolicerDetection::Found { bandwidth, rounds };
                if rounds >= POLICED_RATE_ROUNDS {
                    self.policer = PolicerDetection::Unseen;
                    self.enter_probe_bw(sample.totals.at);
                }
            }
            PolicerDetection::Unseen if !sample.lost => (),
            PolicerDetection::Unseen if sample.app_limited => (),
            PolicerDetection::Unseen => {
                let from = sample.totals;
                self.policer = PolicerDetection::Sampling { from, rounds: round, before: None };
            }
            PolicerDetection::Sampling { .. } if sample.app_limited => {
                self.policer = PolicerDetection::Unseen
            }
            PolicerDetection::Sampling { from, rounds, before } => {
                self.policer = self.detection_after_sample(sample, from, rounds + round, before);
            }
        }
    }

    fn detection_after_sample(
        &self,
        sample: &PolicerSample,
        from: DeliveryTotals,
        rounds: u32,
        before: Option<u64>,
    ) -> PolicerDetection {
        if rounds > 4 * MIN_INTERVAL_ROUNDS {
            return PolicerDetection::Unseen;
        }
        let over = rounds >= MIN_INTERVAL_ROUNDS && sample.lost;
        let Some(bw) = over.then(|| sample.rate_since(&from)).flatten() else {
            return PolicerDetection::Sampling { from, rounds, before };
        };
        if let Some(before) = before {
            let difference = bw.abs_diff(before);
            let bytes = self.pace.pacing_rate_for_bandwidth(difference, super::GAIN_UNIT);
            if difference * MAX_RATE_RATIO <= before || bytes <= MAX_RATE_DIFFERENCE {
                return PolicerDetection::Found { bandwidth: (bw + before) / 2, rounds: 0 };
            }
        }
        PolicerDetection::Sampling { from: sample.totals, rounds: 0, before: Some(bw) }
    }
}
