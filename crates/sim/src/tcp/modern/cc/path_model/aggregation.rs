//! How much more than the bandwidth is acknowledged at once.

use super::super::AckSample;
use super::pace::carried;
use crate::clock::Nanos;

/// An epoch has at most as many packets.
const MAX_ACKED: u32 = 1 << 20;

/// A time in which acknowledgements come faster than the bandwidth.
#[derive(Clone, Copy, Debug)]
pub struct AckEpoch {
    since: Nanos,
    acked: u32,
}

impl AckEpoch {
    /// One that begins now.
    #[must_use]
    pub fn new(now: Nanos) -> Self {
        Self { since: now, acked: 0 }
    }

    /// An acknowledgement delivers packets, with the bandwidth that the model has: how many more
    /// were acknowledged since the epoch began than that carries, at most a window. A packet that is
    /// not carried whole does not count: Linux's `bbr_update_ack_aggregation`.
    pub fn extra(&mut self, ack: &AckSample, bw: u64, cwnd: u32) -> u32 {
        let mut expected = carried(bw, ack.now - self.since);
        if self.acked <= expected || self.acked + ack.delivered >= MAX_ACKED {
            *self = Self::new(ack.now);
            expected = 0;
        }
        self.acked = (self.acked + ack.delivered).min(MAX_ACKED - 1);
        (self.acked - expected.min(self.acked)).min(cwnd)
    }
}
