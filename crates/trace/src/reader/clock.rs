//! Time stamps of a pcapng interface: ticks of any length, from any day on.

use crate::segment::Nanos;

const SECOND: i128 = 1_000_000_000;

/// The latest time of a frame, in April 2262: tables have signed nanoseconds since 1970.
pub(super) const LATEST: Nanos = i64::MAX as u64;

/// How ticks become nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tick {
    /// So many nanoseconds each.
    Nanos(u64),
    /// So many in a nanosecond.
    PerNano(u64),
    /// Two to this power in a second.
    Binary(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    tick: Tick,
    offset_s: i64,
}

impl Clock {
    pub(super) const MICROSECONDS: Self = Self { tick: Tick::Nanos(1000), offset_s: 0 };

    /// A clock of `resolution` as `if_tsresol` gives it, `offset_s` seconds late.
    pub(super) fn new(resolution: u8, offset_s: i64) -> Option<Self> {
        let power = |exponent: u8| 10_u64.checked_pow(exponent.into());
        let tick = match resolution {
            0..=9 => Tick::Nanos(power(9 - resolution)?),
            10..128 => Tick::PerNano(power(resolution - 9)?),
            128.. => Tick::Binary(resolution - 128),
        };
        Some(Self { tick, offset_s })
    }

    /// The time after `ticks`; times that 64 bits do not hold are the first or the last that do.
    #[inline(always)]
    pub(super) fn time(&self, ticks: u64) -> Nanos {
        match (self.tick, self.offset_s) {
            (Tick::Nanos(nanos), 0) => ticks.saturating_mul(nanos),
            _ => self.any_time(ticks),
        }
    }

    fn any_time(&self, ticks: u64) -> Nanos {
        let ticks = i128::from(ticks);
        let nanos = match self.tick {
            Tick::Nanos(nanos) => ticks * i128::from(nanos),
            Tick::PerNano(count) => ticks / i128::from(count),
            // To the nearest: a tick is seldom a whole number of nanoseconds.
            Tick::Binary(0) => ticks * SECOND,
            Tick::Binary(power) => (((ticks * SECOND) >> (power - 1)) + 1) >> 1,
        };
        let time = nanos + i128::from(self.offset_s) * SECOND;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(resolution: u8, offset_s: i64, ticks: u64) -> Nanos {
        Clock::new(resolution, offset_s).unwrap().time(ticks)
    }

    #[test]
    fn powers_of_ten() {
        assert_eq!(time(6, 0, 1_000_001), 1_000_001_000);
        assert_eq!(time(9, 0, 7), 7);
        assert_eq!(time(0, 0, 7), 7_000_000_000);
        assert_eq!(time(12, 0, 7_999), 7);
        assert_eq!(Clock::new(6, 0), Some(Clock::MICROSECONDS));
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(time(0x80, 0, 3), 3_000_000_000);
        assert_eq!(time(0x80 | 20, 0, 1 << 20), 1_000_000_000);
        assert_eq!(time(0x80 | 20, 0, 1), 954); // 953.67
        assert_eq!(time(0x80 | 63, 0, 1 << 62), 500_000_000);
        assert_eq!(time(0xff, 0, u64::MAX), 0);
    }

    #[test]
    fn offsets() {
        assert_eq!(time(6, 100, 1), 100_000_001_000);
        assert_eq!(time(6, -1, 1_000_001), 1_000);
        assert_eq!(time(6, -2, 1_000_001), 0);
    }

    #[test]
    fn what_64_bits_do_not_hold() {
        assert_eq!(time(0, 0, u64::MAX), u64::MAX);
        assert_eq!(time(0, i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(time(0, i64::MIN, 1), 0);
        assert_eq!(time(28, 0, u64::MAX), 1);
        assert_eq!(Clock::new(29, 0), None);
    }
}
