//! Transmitters: when the last bit of a packet has left.
//!
//! Packets are handed over in the order in which they leave. Each transmitter keeps exact time in
//! integers: what a nanosecond cuts off is carried, so that a rate holds over any time.

mod bucket;
mod opportunities;
mod rate;

pub use bucket::{Policer, TokenBucket, TokenRate};
pub use opportunities::{Opportunities, OpportunityTrace, TraceError};
pub use rate::{ConstantRate, transmission_time};

use crate::time::Nanos;

/// What serialises packets, one after the other.
pub trait Transmitter {
    /// Takes a packet of `bytes` that came at `arrived`, and says when its last bit has left.
    ///
    /// A packet that came while the one before it was still there follows it at once; one that came
    /// when that had left, or at that moment, found the transmitter idle.
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos;

    /// Bytes that could have left by `until`, had packets always waited; `None` where the time in
    /// which the transmitter is busy tells its load as well.
    fn capacity(&self, _until: Nanos) -> Option<u64> {
        None
    }

    /// Forgets the past of an idle transmitter. The clock that all transmitters share goes on.
    fn restart(&mut self) {}
}

/// A transmitter of any kind, chosen with every packet.
#[derive(Clone, Debug)]
pub enum AnyTransmitter {
    /// A constant rate, or no limit.
    ConstantRate(ConstantRate),
    /// A token bucket.
    TokenBucket(TokenBucket),
    /// A trace of packet opportunities.
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
