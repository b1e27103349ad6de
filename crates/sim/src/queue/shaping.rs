//! Link rates, including varying ones, and the policer.

use super::{EnqueueOutcome, QueueDiscipline, QueueProbe};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use serde::Deserialize;
use std::num::NonZeroU64;
use std::sync::Arc;
use tcpcast_link::transmit::{
    AnyTransmitter, ConstantRate, OpportunityTrace, Policer, TokenBucket, TokenRate,
    TraceTransmitter,
};

/// Bytes per packet opportunity of a trace, IP header included, as in the emulators that defined
/// the format.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// The rate of a link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkRate {
    /// Constant rate in bit/s; `None` is unlimited.
    Constant(Option<u64>),
    /// A token bucket: packets leave immediately if there are enough tokens, and otherwise wait.
    Bucket(TokenRate),
    /// A trace of packet opportunities.
    Opportunities(Arc<OpportunityTrace>),
}

impl LinkRate {
    /// Creates a transmitter with this rate.
    #[must_use]
    pub fn create_transmitter(&self) -> AnyTransmitter {
        match self {
            Self::Constant(bps) => {
                AnyTransmitter::ConstantRate(ConstantRate::new(bps.and_then(NonZeroU64::new)))
            }
            Self::Bucket(tokens) => AnyTransmitter::TokenBucket(TokenBucket::new(*tokens)),
            Self::Opportunities(trace) => {
                let trace = Arc::clone(trace);
                AnyTransmitter::Opportunities(TraceTransmitter::new(trace, OPPORTUNITY_BYTES))
            }
        }
    }

    /// Long-term rate in bit/s; `None` is unlimited.
    pub(super) fn mean_bps(&self) -> Option<u64> {
        match self {
            Self::Constant(bps) => *bps,
            Self::Bucket(tokens) => Some(tokens.rate_bps.get()),
            Self::Opportunities(trace) => Some(trace.mean_rate_bps(OPPORTUNITY_BYTES) as u64),
        }
    }
}

/// Transmitted bytes and capacity of a link with a varying rate, whose load does not follow from
/// its busy time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLoad {
    /// Transmitted bytes.
    pub bytes: u64,
    /// Bytes that the link could have transmitted, without the initial burst.
    pub capacity: u64,
}

impl LinkLoad {
    /// Difference from an earlier value.
    #[must_use]
    pub fn difference_from(self, before: Self) -> Self {
        Self { bytes: self.bytes - before.bytes, capacity: self.capacity - before.capacity }
    }
}

/// Token bucket and packet length of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerConfig {
    /// Token bucket.
    pub tokens: TokenRate,
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
        probe.on_queue_length_seen(0);
        if !self.policer.allows_packet(now, self.config.packet_bytes) {
            return EnqueueOutcome::Dropped;
        }
        self.bytes += u64::from(self.config.packet_bytes);
        EnqueueOutcome::Departs { leaves: now, backlog: 0 }
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn reset_for_next_transfer(&mut self) {
        self.policer.refill();
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
            capacity: self.config.tokens.bytes_generated_until(now),
        })
    }
}

#[cfg(test)]
#[path = "shaping_tests.rs"]
mod tests;
