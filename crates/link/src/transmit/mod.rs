//! Transmitters, which compute when the last bit of a packet leaves.
//!
//! Packets are passed in order of departure. Each transmitter uses exact integer arithmetic and
//! carries fractions of a nanosecond over to the next packet, so the long-term rate is exact.

mod bucket;
mod opportunities;
mod rate;

pub use bucket::{Policer, TokenBucket, TokenRate};
pub use opportunities::{Opportunities, OpportunityTrace, TraceError};
pub use rate::{ConstantRate, transmission_time};

use crate::time::Nanos;

/// A transmitter, which serialises packets one by one.
pub trait Transmitter {
    /// Transmits a packet of `bytes` that arrived at `arrived`, and returns when its last bit
    /// leaves.
    ///
    /// If the packet arrived before the departure of its predecessor, it follows back to back. If
    /// it arrived at the departure or later, the transmitter was idle.
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos;

    /// Bytes that a continuously backlogged transmitter would have sent by `until`. `None` if the
    /// load follows from the busy time, as for a constant rate.
    fn capacity(&self, _until: Nanos) -> Option<u64> {
        None
    }

    /// Resets the state of an idle transmitter; the time does not restart.
    fn restart(&mut self) {}
}

/// A transmitter of any kind, selected at run time.
#[derive(Clone, Debug)]
pub enum AnyTransmitter {
    /// A constant or unlimited rate.
    ConstantRate(ConstantRate),
    /// A token bucket.
    TokenBucket(TokenBucket),
    /// A trace of transmission opportunities.
    Opportunities(Opportunities),
}

impl Transmitter for AnyTransmitter {
    #[inline]
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        match self {
            Self::ConstantRate(transmitter) => transmitter.transmit(arrived, bytes),
            Self::TokenBucket(transmitter) => transmitter.transmit(arrived, bytes),
            Self::Opportunities(transmitter) => transmitter.transmit(arrived, bytes),
        }
    }

    fn capacity(&self, until: Nanos) -> Option<u64> {
        match self {
            Self::ConstantRate(transmitter) => transmitter.capacity(until),
            Self::TokenBucket(transmitter) => transmitter.capacity(until),
            Self::Opportunities(transmitter) => transmitter.capacity(until),
        }
    }

    fn restart(&mut self) {
        match self {
            Self::ConstantRate(transmitter) => transmitter.restart(),
            Self::TokenBucket(transmitter) => transmitter.restart(),
            Self::Opportunities(transmitter) => transmitter.restart(),
        }
    }
}
