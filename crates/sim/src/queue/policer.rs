//! A policer, which drops packets instead of queueing them.

use super::{EnqueueOutcome, LinkLoad, QueueDiscipline, QueueProbe};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use serde::Deserialize;
use tcpcast_link::transmit::{Policer, TokenBucketConfig};

/// Token bucket and packet length of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerConfig {
    /// Token bucket.
    pub tokens: TokenBucketConfig,
    /// Bytes per packet.
    pub packet_bytes: u32,
}

/// A policer: packets that find too few tokens are dropped, and no packet waits.
#[derive(Clone, Debug)]
pub struct PolicerQueue {
    policer: Policer,
    config: PolicerConfig,
    bytes: u64,
}

impl PolicerQueue {
    /// Creates a policer with a full bucket.
    #[must_use]
    pub fn new(config: PolicerConfig) -> Self {
        Self { policer: Policer::new(config.tokens), config, bytes: 0 }
    }
}

impl QueueDiscipline for PolicerQueue {
    fn enqueue(
        &mut self,
        now: Nanos,
        _packet: &Packet,
        _link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        probe.on_arrival_queue_length(0);
        if !self.policer.allows_packet(now, self.config.packet_bytes) {
            return EnqueueOutcome::Dropped;
        }
        self.bytes += u64::from(self.config.packet_bytes);
        EnqueueOutcome::Departs { leaves: now, backlog: 0 }
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn reset_for_next_transfer(&mut self) {
        self.policer.fill_bucket();
    }

    fn held_packets(&self) -> usize {
        0
    }

    fn sum_of_remaining_times(&self, _now: Nanos) -> Nanos {
        0
    }

    fn link_load_until(&self, now: Nanos) -> Option<LinkLoad> {
        Some(LinkLoad {
            bytes: self.bytes,
            capacity: self.config.tokens.token_bytes_generated_until(now),
        })
    }
}

#[cfg(test)]
#[path = "policer_tests.rs"]
mod tests;
