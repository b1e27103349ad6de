//! Virtual time: integer nanoseconds since the start of a run, and links that keep exact time.

use std::num::NonZeroU64;
pub use tcpcast_link::time::{NEVER, Nanos, SECOND};
use tcpcast_link::transmit;
/// What a shared link sends with: all packets are of one length, unless told.
pub use tcpcast_link::transmit::ConstantRate as Transmitter;

/// Seconds to the nearest nanosecond; what is longer than 50 years never comes.
#[must_use]
pub fn nanoseconds(seconds: f64) -> Nanos {
    const FIFTY_YEARS: f64 = 1.6e9;
    libm::round(seconds.clamp(0.0, FIFTY_YEARS) * SECOND as f64) as Nanos
}

/// Time to send `bytes` at `rate_bps`, to the nearest nanosecond; 0 where the rate is unlimited.
#[must_use]
pub fn transmission_time(bytes: u32, rate_bps: Option<u64>) -> Nanos {
    transmit::transmission_time(bytes, rate_bps.and_then(NonZeroU64::new))
}

/// A transmitter for packets of `bytes` at `rate_bps` bits a second; `None` is unlimited.
#[must_use]
pub fn transmitter(rate_bps: Option<u64>, bytes: u32) -> Transmitter {
    Transmitter::new(rate_bps.and_then(NonZeroU64::new)).for_length(bytes)
}
