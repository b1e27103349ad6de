//! Timestamps of a pcapng interface, with any resolution and offset.

use crate::segment::Nanos;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Latest supported time of a frame, in April 2262: tables use signed nanoseconds since 1970.
pub(super) const MAX_TIME: Nanos = i64::MAX as u64;

/// Resolution of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TickLength {
    /// Nanoseconds per tick.
    Nanos(u64),
    /// Ticks per nanosecond.
    PerNano(u64),
    /// Base-2 logarithm of the ticks per second.
    Binary(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimestampClock {
    tick: TickLength,
    offset_s: i64,
}

impl TimestampClock {
    pub(super) const MICROSECONDS: Self = Self { tick: TickLength::Nanos(1000), offset_s: 0 };

    /// Creates a clock with a resolution in the format of `if_tsresol` and an offset in seconds.
    pub(super) fn new(resolution: u8, offset_s: i64) -> Option<Self> {
        let power = |exponent: u8| 10_u64.checked_pow(exponent.into());
        let tick = match resolution {
            0..=9 => TickLength::Nanos(power(9 - resolution)?),
            10..128 => TickLength::PerNano(power(resolution - 9)?),
            128.. => TickLength::Binary(resolution - 128),
        };
        Some(Self { tick, offset_s })
    }

    /// Converts ticks to a time, saturating at 0 and `u64::MAX`.
    #[inline(always)]
    pub(super) fn time_of_ticks(&self, ticks: u64) -> Nanos {
        match (self.tick, self.offset_s) {
            (TickLength::Nanos(nanos), 0) => ticks.saturating_mul(nanos),
            _ => self.time_of_ticks_slow_path(ticks),
        }
    }

    fn time_of_ticks_slow_path(&self, ticks: u64) -> Nanos {
        let ticks = i128::from(ticks);
        let nanos = match self.tick {
            TickLength::Nanos(nanos) => ticks * i128::from(nanos),
            TickLength::PerNano(count) => ticks / i128::from(count),
            // Rounded to nearest: ticks are rarely an integer number of nanoseconds.
            TickLength::Binary(0) => ticks * NANOS_PER_SECOND,
            TickLength::Binary(power) => (((ticks * NANOS_PER_SECOND) >> (power - 1)) + 1) >> 1,
        };
        let time = nanos + i128::from(self.offset_s) * NANOS_PER_SECOND;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(resolution: u8, offset_s: i64, ticks: u64) -> Nanos {
        TimestampClock::new(resolution, offset_s).unwrap().time_of_ticks(ticks)
    }

    #[test]
    fn time_scales_powers_of_ten() {
        assert_eq!(time(6, 0, 1_000_001), 1_000_001_000);
        assert_eq!(time(9, 0, 7), 7);
        assert_eq!(time(0, 0, 7), 7_000_000_000);
        assert_eq!(time(12, 0, 7_999), 7);
        assert_eq!(TimestampClock::new(6, 0), Some(TimestampClock::MICROSECONDS));
    }

    #[test]
    fn time_scales_powers_of_two() {
        assert_eq!(time(0x80, 0, 3), 3_000_000_000);
        assert_eq!(time(0x80 | 20, 0, 1 << 20), 1_000_000_000);
        assert_eq!(time(0x80 | 20, 0, 1), 954); // 953.67
        assert_eq!(time(0x80 | 63, 0, 1 << 62), 500_000_000);
        assert_eq!(time(0xff, 0, u64::MAX), 0);
    }

    #[test]
    fn time_adds_offset() {
        assert_eq!(time(6, 100, 1), 100_000_001_000);
        assert_eq!(time(6, -1, 1_000_001), 1_000);
        assert_eq!(time(6, -2, 1_000_001), 0);
    }

    #[test]
    fn time_saturates_at_64_bits() {
        assert_eq!(time(0, 0, u64::MAX), u64::MAX);
        assert_eq!(time(0, i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(time(0, i64::MIN, 1), 0);
        assert_eq!(time(28, 0, u64::MAX), 1);
        assert_eq!(TimestampClock::new(29, 0), None);
    }
}
