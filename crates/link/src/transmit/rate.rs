//! A constant rate.

use super::Transmitter;
use crate::time::{NEVER, Nanos, SECOND};
use std::num::NonZeroU64;

/// Whole nanoseconds that `bytes` take at `rate` bits a second, and the rest in units of one over
/// the rate.
fn exact_time(bytes: u32, rate: NonZeroU64) -> (Nanos, u64) {
    let scaled = u128::from(bytes) * 8 * u128::from(SECOND);
    // Division of 128 bits takes several times as long, and hardly any packet needs it.
    if let Ok(scaled) = u64::try_from(scaled) {
        return (scaled / rate, scaled % rate);
    }
    let rate = u128::from(rate.get());
    let whole = u64::try_from(scaled / rate).unwrap_or(NEVER / 4);
    (whole, (scaled % rate) as u64)
}

/// Time to send `bytes` at `rate_bps`, to the nearest nanosecond; 0 where the rate is unlimited.
#[must_use]
pub fn transmission_time(bytes: u32, rate_bps: Option<NonZeroU64>) -> Nanos {
    rate_bps.map_or(0, |rate| {
        let (whole, rest) = exact_time(bytes, rate);
        whole + u64::from(rest >= rate.get().div_ceil(2))
    })
}

/// A transmitter of one rate, whose departures do not drift.
///
/// A 1500-byte packet takes 1608.58 ns on a 7.46 Gbit/s link. Rounding each departure would make
/// the link 0.03 % too fast or too slow, so the part of a nanosecond that was cut off is carried
/// to the next packet of the same busy period.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    free_at: Nanos,
    /// Part of a nanosecond by which the last departure was cut, in units of one over `unit`.
    carried: u64,
    /// The rate; any number where it is unlimited.
    unit: u64,
    rate: Option<NonZeroU64>,
    /// The last length: most packets are of one.
    length: Length,
    /// The last one of those that others do not have.
    other: Length,
}

/// A length, and its time in whole nanoseconds and units.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    bytes: u32,
    whole: Nanos,
    rest: u64,
}

impl ConstantRate {
    /// A transmitter of `rate_bps` bits a second; `None` is unlimited.
    #[must_use]
    pub fn new(rate_bps: Option<NonZeroU64>) -> Self {
        let unit = rate_bps.map_or(u64::MAX, NonZeroU64::get);
        let (length, other) = (Length::default(), Length::default());
        Self { free_at: 0, carried: 0, unit, rate: rate_bps, length, other }
    }

    /// The same for packets of `bytes`.
    #[must_use]
    pub fn for_length(mut self, bytes: u32) -> Self {
        self.length = self.of_length(bytes);
        self
    }

    /// The length of the last packet, or that for which it was made.
    #[inline(always)]
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length.bytes
    }

    /// What `accepts` lets the transmitter accept has `bytes`, other packets have not.
    pub fn with_length<R>(&mut self, bytes: u32, accepts: impl FnOnce(&mut Self) -> R) -> R {
        if bytes != self.other.bytes {
            self.other = self.of_length(bytes);
        }
        let others = std::mem::replace(&mut self.length, self.other);
        let accepted = accepts(self);
        self.length = others;
        accepted
    }

    /// How long an idle transmitter takes for one more packet of that length, cut to whole
    /// nanoseconds.
    #[must_use]
    pub fn time_when_idle(&self) -> Nanos {
        self.length.whole
    }

    /// Takes one more packet of that length, as [`Transmitter::transmit`].
    #[inline(always)]
    pub fn transmit_next(&mut self, arrived: Nanos) -> Nanos {
        if self.free_at <= arrived {
            self.free_at = arrived;
            self.carried = 0;
        }
        self.follow()
    }

    /// Takes one more packet of that length, which has waited, at the moment at which the one before
    /// it has left; says when its last bit has left.
    #[inline(always)]
    pub fn follow(&mut self) -> Nanos {
        self.free_at += self.length.whole;
        self.carried += self.length.rest;
        if self.carried >= self.unit {
            self.carried -= self.unit;
            self.free_at += 1;
        }
        self.free_at
    }

    #[inline(never)]
    fn of_length(&self, bytes: u32) -> Length {
        let (whole, rest) = self.rate.map_or((0, 0), |rate| exact_time(bytes, rate));
        Length { bytes, whole, rest }
    }
}

impl Transmitter for ConstantRate {
    #[inline(always)]
    fn transmit(&mut self, arrived: Nanos, bytes: u32) -> Nanos {
        if bytes != self.length.bytes {
            self.length = self.of_length(bytes);
        }
        self.transmit_next(arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn departures_do_not_drift() {
        let mut link = ConstantRate::new(NonZeroU64::new(7_460_000_000));
        let mut last = 0;
        for _ in 0..1_000_000 {
            last = link.transmit(0, 1500);
        }
        let exact = 1_000_000_f64 * 12_000.0 / 7.46;
        assert!((last as f64 - exact).abs() <= 1.0, "{last} against {exact}");
    }

    #[test]
    fn an_idle_link_starts_afresh() {
        let mut link = ConstantRate::new(NonZeroU64::new(10_000_000)).for_length(1500);
        assert_eq!(link.time_when_idle(), 1_200_000);
        assert_eq!(link.transmit(0, 1500), 1_200_000);
        assert_eq!(link.transmit(0, 1500), 2_400_000);
        assert_eq!(link.transmit(5_000_000, 1500), 6_200_000);
    }

    #[test]
    fn a_short_packet_takes_less_time() {
        let mut link = ConstantRate::new(NonZeroU64::new(10_000_000)).for_length(1500);
        assert_eq!(link.with_length(375, |link| link.transmit_next(0)), 300_000);
        assert_eq!(link.transmit_next(0), 1_500_000);
        let mut unlimited = ConstantRate::new(None).for_length(1500);
        assert_eq!(unlimited.with_length(375, |link| link.transmit_next(7)), 7);
    }

    #[test]
    fn an_unlimited_link_takes_no_time() {
        assert_eq!(ConstantRate::new(None).transmit(7, 1500), 7);
        assert_eq!(transmission_time(1500, None), 0);
        assert_eq!(transmission_time(1500, NonZeroU64::new(2_000_000)), 6_000_000);
        assert_eq!(transmission_time(1500, NonZeroU64::new(7_460_000_000)), 1609);
    }

    #[test]
    fn the_longest_packet_at_the_lowest_rate_has_a_time() {
        let mut link = ConstantRate::new(NonZeroU64::new(1));
        assert!(link.transmit(0, u32::MAX) < NEVER);
    }

    proptest! {
        /// In a busy period the last bit of each packet leaves when the rate says, less what a
        /// nanosecond cuts off, whatever the lengths.
        #[test]
        fn a_busy_period_is_exact(
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
