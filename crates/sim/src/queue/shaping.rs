//! Rates that are not constant: what a link of the crate `link` transmits at, and the policer.

use super::{QueueDiscipline, QueueProbe, Verdict};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use serde::Deserialize;
use std::num::NonZeroU64;
use std::sync::Arc;
use tcpcast_link::transmit::{
    AnyTransmitter, ConstantRate, Opportunities, OpportunityTrace, Policer, TokenBucket, TokenRate,
};

/// Bytes that a packet opportunity of a trace is worth, with IP header: as in the emulators whose
/// format it is.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// The rate of a link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkRate {
    /// Bits a second; `None` is unlimited.
    Constant(Option<u64>),
    /// A token bucket: what finds tokens leaves at once, the rest waits for them.
    Bucket(TokenRate),
    /// Packet opportunities.
    Opportunities(Arc<OpportunityTrace>),
}

impl LinkRate {
    /// A transmitter of that rate at its beginning.
    #[must_use]
    pub fn transmitter(&self) -> AnyTransmitter {
        match self {
            Self::Constant(bps) => {
                AnyTransmitter::ConstantRate(ConstantRate::new(bps.and_then(NonZeroU64::new)))
            }
            Self::Bucket(tokens) => AnyTransmitter::TokenBucket(TokenBucket::new(*tokens)),
            Self::Opportunities(trace) => {
                let trace = Arc::clone(trace);
                AnyTransmitter::Opportunities(Opportunities::new(trace, OPPORTUNITY_BYTES))
            }
        }
    }

    /// Bits a second over a long time; `None` is unlimited.
    pub(super) fn mean_bps(&self) -> Option<u64> {
        match self {
            Self::Constant(bps) => *bps,
            Self::Bucket(tokens) => Some(tokens.rate_bps.get()),
            Self::Opportunities(trace) => Some(trace.mean_rate_bps(OPPORTUNITY_BYTES) as u64),
        }
    }
}

/// What a link whose rate is not constant has carried, and what it could have: its load, where the
/// time in which it holds packets does not tell that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes that it took.
    pub bytes: u64,
    /// Bytes that it could have taken, a burst not counted.
    pub capacity: u64,
}

impl Carried {
    /// What has been added since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { bytes: self.bytes - before.bytes, capacity: self.capacity - before.capacity }
    }
}

/// A policer's rate and burst, for packets of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicedConfig {
    /// The token bucket.
    pub tokens: TokenRate,
    /// Bytes of a packet.
    pub packet_bytes: u32,
}

/// A policer: what finds no tokens is dropped, and nothing waits.
#[derive(Clone, Debug)]
pub struct Policed {
    policer: Policer,
    config: PolicedConfig,
    bytes: u64,
}

impl Policed {
    /// A policer whose bucket is full.
    #[must_use]
    pub fn new(config: PolicedConfig) -> Self {
        Self { policer: Policer::new(config.tokens), config, bytes: 0 }
    }
}

impl QueueDiscipline for Policed {
    fn offer(
        &mut self,
        now: Nanos,
        _packet: &Packet,
        _link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        probe.queue_seen(0);
        if !self.policer.passes(now, self.config.packet_bytes) {
            return Verdict::Dropped;
        }
        self.bytes += u64::from(self.config.packet_bytes);
        Verdict::Departs { leaves: now, found: 0 }
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn restart(&mut self) {
        self.policer.restart();
    }

    fn held(&self) -> usize {
        0
    }

    fn ahead(&self, _now: Nanos) -> Nanos {
        0
    }

    fn carried(&self, now: Nanos) -> Option<Carried> {
        Some(Carried { bytes: self.bytes, capacity: self.config.tokens.bytes_by(now) })
    }
}

#[cfg(test)]
#[path = "shaping_tests.rs"]
mod tests;
