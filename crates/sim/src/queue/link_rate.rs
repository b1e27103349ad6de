//! Link rates, constant and varying, and the load of a link with a varying rate.

use crate::random::RandomStream;
use serde::Deserialize;
use std::num::NonZeroU64;
use std::sync::Arc;
use tcpcast_link::transmit::{
    AnyTransmitter, ConstantRate, OpportunityTrace, TokenBucket, TokenBucketConfig,
    TraceTransmitter, WifiConfig, WifiTransmitter,
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
    Bucket(TokenBucketConfig),
    /// A trace of packet opportunities.
    Opportunities(Arc<OpportunityTrace>),
    /// Aggregates of frames.
    Wifi(WifiConfig),
}

impl LinkRate {
    /// Creates a transmitter with this rate; `draws` creates its random numbers, if it needs some.
    #[must_use]
    pub fn create_transmitter(&self, draws: impl FnOnce() -> RandomStream) -> AnyTransmitter {
        match self {
            Self::Constant(bps) => {
                AnyTransmitter::ConstantRate(ConstantRate::new(bps.and_then(NonZeroU64::new)))
            }
            Self::Bucket(tokens) => AnyTransmitter::TokenBucket(TokenBucket::new(*tokens)),
            Self::Opportunities(trace) => {
                let trace = Arc::clone(trace);
                AnyTransmitter::Opportunities(TraceTransmitter::new(trace, OPPORTUNITY_BYTES))
            }
            Self::Wifi(wifi) => {
                AnyTransmitter::Wifi(Box::new(WifiTransmitter::new(*wifi, draws())))
            }
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
