//! Virtual time in integer nanoseconds since the start of a run, and exact transmission times.

use std::num::NonZeroU64;
pub use tcpcast_link::time::{MILLISECOND, NEVER, Nanos, SECOND};
use tcpcast_link::transmit;
/// Transmitter of a shared link, for packets of one length unless specified otherwise.
pub use tcpcast_link::transmit::ConstantRate as Transmitter;

/// Converts seconds to nanoseconds, rounded; limited to 50 years.
#[must_use]
pub fn seconds_to_nanos(seconds: f64) -> Nanos {
    const FIFTY_YEARS: f64 = 1.6e9;
    libm::round(seconds.clamp(0.0, FIFTY_YEARS) * SECOND as f64) as Nanos
}

/// Transmission time of `bytes` at `rate_bps`, rounded to nanoseconds; 0 if the rate is unlimited.
#[must_use]
pub fn transmission_time(bytes: u32, rate_bps: Option<u64>) -> Nanos {
    transmit::transmission_time(bytes, rate_bps.and_then(NonZeroU64::new))
}
