//! Transmitters, which compute when the last bit of a packet leaves.
//!
//! Packets are passed in order of departure. Each transmitter uses exact integer arithmetic and
//! carries fractions of a nanosecond over to the next packet, so the long-term rate is exact.

mod constant_rate;
mod packet_opportunities;
mod token_bucket;
mod wifi;

pub use constant_rate::{ConstantRate, transmission_time};
pub use packet_opportunities::{OpportunityTrace, TraceError, TraceTransmitter};
pub use token_bucket::{TokenBucket, TokenBucketConfig};
pub use wifi::{WifiConfig, WifiTransmitter};

use crate::time::Nanos;

/// A transmitter, which serialises packets one by one.
pub trait Transmitter {
    /// Transmits a packet of `bytes` that arrived at `arrived`, and returns when its last bit
    /// leaves.
    ///
    /// If a packet arrives before its predecessor has left, its transmission follows back to back.
    /// If a packet arrives at this departure or later, the transmitter was idle.
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos;

    /// Bytes that a continuously backlogged transmitter would have sent by `until`. `None` if the
    /// load follows from the busy time, as for a constant rate.
    fn capacity_bytes_until(&self, _until: Nanos) -> Option<u64> {
        None
    }

    /// Resets the state of an idle transmitter; the time does not restart.
    fn reset_when_idle(&mut self) {}
}

/// A transmitter of any kind, selected at run time.
#[derive(Clone, Debug)]
pub enum AnyTransmitter {
    /// A constant or unlimited rate.
    ConstantRate(ConstantRate),
    /// A token bucket.
    TokenBucket(TokenBucket),
    /// A trace of transmission opportunities.
    Opportunities(TraceTransmitter),
    /// Aggregates of frames.
    Wifi(Box<WifiTransmitter>),
}

impl Transmitter for AnyTransmitter {
    #[inline]
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        match self {
            Self::ConstantRate(transmitter) => transmitter.transmit(arrived, bytes),
            Self::TokenBucket(transmitter) => transmitter.transmit(arrived, bytes),
            Self::Opportunities(transmitter) => transmitter.transmit(arrived, bytes),
            Self::Wifi(transmitter) => transmitter.transmit(arrived, bytes),
        }
    }

    fn capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        match self {
            Self::ConstantRate(transmitter) => transmitter.capacity_bytes_until(until),
            Self::TokenBucket(transmitter) => transmitter.capacity_bytes_until(until),
            Self::Opportunities(transmitter) => transmitter.capacity_bytes_until(until),
            Self::Wifi(transmitter) => transmitter.capacity_bytes_until(until),
        }
    }

    fn reset_when_idle(&mut self) {
        match self {
            Self::ConstantRate(transmitter) => transmitter.reset_when_idle(),
            Self::TokenBucket(transmitter) => transmitter.reset_when_idle(),
            Self::Opportunities(transmitter) => transmitter.reset_when_idle(),
            Self::Wifi(transmitter) => transmitter.reset_when_idle(),
        }
    }
}
