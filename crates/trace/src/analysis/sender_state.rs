//! State of a direction's sender when a segment is retransmitted.

use super::rtt::RttEstimate;
use crate::segment::Nanos;

/// Longest reaction time of a sender to an acknowledgement. Later segments were sent by a timer or
/// by pacing.
pub(super) const MAX_REACTION_TIME: Nanos = 3_000_000;
/// Smallest term that common stacks add to SRTT for the RTO. Reordering timers are shorter than one
/// SRTT.
pub(super) const MIN_RTO_MINUS_SRTT: f64 = 200e6;

/// State of the direction when a segment is retransmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderState<'a> {
    pub(super) acknowledged: u64,
    pub(super) next: u64,
    /// False if one end does not support SACK.
    pub(super) sack: bool,
    pub(super) sacked_bytes: u64,
    pub(super) estimate: &'a RttEstimate,
    /// Round-trip time between the tap and the sender.
    pub(super) tap_rtt: Nanos,
}

impl SenderState<'_> {
    /// Longest reaction time of the sender, seen at the tap.
    pub(super) fn max_reaction_time(&self) -> Nanos {
        self.tap_rtt.saturating_add(self.tap_rtt / 2 + MAX_REACTION_TIME)
    }

    /// Returns the shortest possible RTO, ns. RACK and probe timers can be shorter.
    pub(super) fn min_timeout(&self) -> f64 {
        let tap_rtt = self.tap_rtt as f64;
        let smoothed = self.estimate.srtt_ns().map(|smoothed| smoothed + tap_rtt);
        let min = smoothed.map_or(MIN_RTO_MINUS_SRTT, |smoothed| smoothed.min(MIN_RTO_MINUS_SRTT));
        self.estimate.rto_ns(min).map_or(MIN_RTO_MINUS_SRTT, |timeout| timeout + tap_rtt)
    }
}
