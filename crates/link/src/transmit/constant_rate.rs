//! A constant rate.

use super::Transmitter;
use crate::time::{NEVER, Nanos, SECOND};
use std::num::NonZeroU64;

/// Transmission time of `bytes` at `rate` bit/s: whole nanoseconds, and the remainder in units of
/// 1/`rate` ns.
fn transmission_time_and_rest(bytes: u32, rate: NonZeroU64) -> (Nanos, u64) {
    let scaled = u128::from(bytes) * 8 * u128::from(SECOND);
    // A 128-bit division is several times slower and almost never needed.
    if let Ok(scaled) = u64::try_from(scaled) {
        return (scaled / rate, scaled % rate);
    }
    let rate = u128::from(rate.get());
    let whole = u64::try_from(scaled / rate).unwrap_or(NEVER / 4);
    (whole, (scaled % rate) as u64)
}

/// Transmission time of `bytes` at `rate_bps`, rounded to the nearest nanosecond; 0 if the rate is
/// unlimited.
#[must_use]
pub fn transmission_time(bytes: u32, rate_bps: Option<NonZeroU64>) -> Nanos {
    rate_bps.map_or(0, |rate| {
        let (whole, rest) = transmission_time_and_rest(bytes, rate);
        whole + u64::from(rest >= rate.get().div_ceil(2))
    })
}

/// A transmitter with a constant rate and without drift.
///
/// A 1500-byte packet takes 1608.58 ns on a 7.46 Gbit/s link. Rounding each departure would change
/// the rate by 0.03 %, so the fraction of a nanosecond is carried over to the next packet of the
/// same busy period.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    free_at: Nanos,
    /// Fraction of a nanosecond truncated from the last departure, in units of 1/`unit`.
    carried: u64,
    /// Rate in bit/s; arbitrary if the rate is unlimited.
    unit: u64,
    rate: Option<NonZeroU64>,
    /// Cached length of the last packet; most packets have equal lengths.
    length: CachedTransmissionTime,
}

/// A packet length with its transmission time in whole nanoseconds and a remainder in units.
#[derive(Clone, Copy, Debug, Default)]
struct CachedTransmissionTime {
    bytes: u32,
    whole: Nanos,
    rest: u64,
}

impl ConstantRate {
    /// Creates a transmitter with `rate_bps` bit/s; `None` is unlimited.
    #[must_use]
    pub fn new(rate_bps: Option<NonZeroU64>) -> Self {
        let unit = rate_bps.map_or(u64::MAX, NonZeroU64::get);
        let length = CachedTransmissionTime::default();
        Self { free_at: 0, carried: 0, unit, rate: rate_bps, length }
    }

    /// Sets the time at which the transmitter becomes idle.
    #[must_use]
    pub fn busy_until(mut self, time: Nanos) -> Self {
        self.free_at = time;
        self
    }

    /// Time at which the last packet leaves.
    #[inline(always)]
    #[must_use]
    pub fn free_at(&self) -> Nanos {
        self.free_at
    }

    /// The rate in bit/s; `None` is unlimited.
    #[must_use]
    pub fn rate_bps(&self) -> Option<NonZeroU64> {
        self.rate
    }

    #[inline(never)]
    fn cache_entry_of_length(&self, bytes: u32) -> CachedTransmissionTime {
        let (whole, rest) =
            self.rate.map_or((0, 0), |rate| transmission_time_and_rest(bytes, rate));
        CachedTransmissionTime { bytes, whole, rest }
    }
}

impl Transmitter for ConstantRate {
    #[inline(always)]
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        if bytes != self.length.bytes {
            self.length = self.cache_entry_of_length(bytes);
        }
        if self.free_at <= arrived {
            self.free_at = arrived;
            self.carried = 0;
        }
        self.free_at += self.length.whole;
        self.carried += self.length.rest;
        if self.carried >= self.unit {
            self.carried -= self.unit;
            self.free_at += 1;
        }
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn departures_do_not_drift_in_a_busy_period() {
        let mut link = ConstantRate::new(NonZeroU64::new(7_460_000_000));
        let mut last = 0;
        for _ in 0..1_000_000 {
            last = link.transmit(0, 1500);
        }
        let exact = 1_000_000_f64 * 12_000.0 / 7.46;
        assert!((last as f64 - exact).abs() <= 1.0, "{last} against {exact}");
    }

    #[test]
    fn idle_transmitter_starts_at_arrival() {
        let mut link = ConstantRate::new(NonZeroU64::new(10_000_000));
        assert_eq!(link.transmit(0, 1500), 1_200_000);
        assert_eq!(link.transmit(0, 1500), 2_400_000);
        assert_eq!(link.transmit(5_000_000, 1500), 6_200_000);
    }

    #[test]
    fn unlimited_rate_takes_no_time() {
        assert_eq!(ConstantRate::new(None).transmit(7, 1500), 7);
        assert_eq!(transmission_time(1500, None), 0);
        assert_eq!(transmission_time(1500, NonZeroU64::new(2_000_000)), 6_000_000);
        assert_eq!(transmission_time(1500, NonZeroU64::new(7_460_000_000)), 1609);
    }

    #[test]
    fn longest_packet_at_lowest_rate_does_not_overflow() {
        let mut link = ConstantRate::new(NonZeroU64::new(1));
        assert!(link.transmit(0, u32::MAX) < NEVER);
    }

    proptest! {
        /// In a busy period, each departure equals the exact time rounded down to a nanosecond, for
        /// any lengths.
        #[test]
        fn departures_are_exact_in_a_busy_period(
            lengths in prop::collection::vec(64_u32..10_000, 1..200),
            rate in 1_000_u64..400_000_000_000,
            begin in 0_u64..1_000_000_000,
        ) {
            let mut link = ConstantRate::new(NonZeroU64::new(rate));
            let mut bits = 0_u128;
            for length in lengths {
                bits += 8 * u128::from(length);
                let exact = bits * u128::from(SECOND) / u128::from(rate);
                prop_assert_eq!(u128::from(link.transmit(begin, length) - begin), exact);
            }
        }
    }
}
