//! Aggregation of acknowledgements: packets acknowledged in excess of the bandwidth.

use super::super::AckSample;
use super::pacing_rate::packets_carried_rounded_down;
use tcpcast_link::time::Nanos;

/// Maximum number of packets in an epoch.
const MAX_EPOCH_PACKETS: u32 = 1 << 20;

/// Period in which acknowledgements arrive faster than the bandwidth.
#[derive(Clone, Copy, Debug)]
pub struct AckAggregationEpoch {
    since: Nanos,
    acked: u32,
}

impl AckAggregationEpoch {
    /// Starts an epoch.
    #[must_use]
    pub fn new(now: Nanos) -> Self {
        Self { since: now, acked: 0 }
    }

    /// Processes an acknowledgement; `bw` is the bandwidth of the model. Returns the number of
    /// packets acknowledged since the epoch began in excess of that bandwidth, at most a window.
    /// Fractions of expected packets do not count: Linux's `bbr_update_ack_aggregation`.
    pub fn extra_acked_packets(&mut self, ack: &AckSample, bw: u64, cwnd: u32) -> u32 {
        let mut expected = packets_carried_rounded_down(bw, ack.now - self.since);
        if self.acked <= expected || self.acked + ack.delivered >= MAX_EPOCH_PACKETS {
            *self = Self::new(ack.now);
            expected = 0;
        }
        self.acked = (self.acked + ack.delivered).min(MAX_EPOCH_PACKETS - 1);
        (self.acked - expected.min(self.acked)).min(cwnd)
    }
}
