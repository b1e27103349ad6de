//! Aggregation of acknowledgements: the window is enlarged by the packets that were acknowledged
//! faster than the bandwidth estimate.

use super::super::AckSample;
use super::super::path_model::{AckAggregationEpoch, packets_carried_rounded_down};
use tcpcast_link::time::{MILLISECOND, Nanos};

/// Half of the filter window: the maximum covers 5 to 10 rounds.
const FILTER_HALF_ROUNDS: u8 = 5;
/// Maximum enlargement, as time at the bandwidth.
const MAX_EXTRA_TIME: Nanos = 100 * MILLISECOND;

/// Filter of the excess packets.
#[derive(Clone, Copy, Debug)]
pub struct AckAggregationFilter {
    epoch: AckAggregationEpoch,
    extra: [u32; 2],
    index: usize,
    rounds: u8,
}

impl AckAggregationFilter {
    /// Creates a filter with an epoch that begins now.
    pub fn new(now: Nanos) -> Self {
        Self { epoch: AckAggregationEpoch::new(now), extra: [0; 2], index: 0, rounds: 0 }
    }

    /// Starts a new epoch after an idle time.
    pub fn with_new_epoch(self, now: Nanos) -> Self {
        Self { epoch: AckAggregationEpoch::new(now), ..self }
    }

    /// Processes an acknowledgement; `bw` is the bandwidth of the model.
    pub fn on_ack(&mut self, ack: &AckSample, bw: u64, round_start: bool, cwnd: u32) {
        if ack.delivered == 0 || ack.rate.rate.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= FILTER_HALF_ROUNDS {
                self.rounds = 0;
                self.index = 1 - self.index;
                self.extra[self.index] = 0;
            }
        }
        let extra = self.epoch.extra_acked_packets(ack, bw, cwnd);
        self.extra[self.index] = self.extra[self.index].max(extra);
    }

    /// Additional packets of the window.
    pub fn extra_window_packets(&self, bw: u64) -> u32 {
        self.extra[0].max(self.extra[1]).min(packets_carried_rounded_down(bw, MAX_EXTRA_TIME))
    }
}
