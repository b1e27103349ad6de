//! Virtual time: integer nanoseconds since the start of a run, and links that keep exact time.

/// A point in virtual time, or a span of it, in nanoseconds.
pub type Nanos = u64;

/// A time that never comes: a timer that is off.
pub const NEVER: Nanos = u64::MAX;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// Time to send `bytes` at `rate_bps`, to the nearest nanosecond; 0 where the rate is unlimited.
#[must_use]
pub fn transmission_time(bytes: u32, rate_bps: Option<u64>) -> Nanos {
    rate_bps.map_or(0, |rate| {
        let bits = u128::from(bytes) * 8 * u128::from(SECOND);
        let rate = u128::from(rate);
        u64::try_from((bits + rate / 2) / rate).unwrap_or(NEVER / 4)
    })
}

/// A transmitter serving in arrival order whose departures do not drift.
///
/// A 1500-byte packet takes 1608.58 ns on a 7.46 Gbit/s link. Rounding each departure would make
/// the link 0.03 % too fast or too slow, so the part of a nanosecond that was cut off is carried
/// to the next packet of the same busy period.
#[derive(Clone, Debug)]
pub struct Transmitter {
    rate_bps: Option<u64>,
    free_at: Nanos,
    carried: u64,
    size_bytes: u32,
    whole_ns: Nanos,
    rest: u64,
}

impl Transmitter {
    /// A transmitter at `rate_bps` bits a second; `None` is unlimited.
    #[must_use]
    pub fn new(rate_bps: Option<u64>) -> Self {
        Self { rate_bps, free_at: 0, carried: 0, size_bytes: 0, whole_ns: 0, rest: 0 }
    }

    /// When the last accepted packet has left.
    #[must_use]
    pub fn free_at(&self) -> Nanos {
        self.free_at
    }

    /// How long an idle transmitter takes for a packet.
    pub fn time_when_idle(&self, bytes: u32) -> Nanos {
        self.clone().transmit(0, bytes)
    }

    /// Accepts a packet now and returns when its last bit has left.
    #[inline(always)]
    pub fn transmit(&mut self, now: Nanos, bytes: u32) -> Nanos {
        let Some(rate) = self.rate_bps else {
            return now;
        };
        if bytes != self.size_bytes {
            self.measure(bytes, rate);
        }
        if self.free_at <= now {
            self.free_at = now;
            self.carried = 0;
        }
        self.free_at += self.whole_ns;
        self.carried += self.rest;
        if self.carried >= rate {
            self.carried -= rate;
            self.free_at += 1;
        }
        self.free_at
    }

    #[cold]
    fn measure(&mut self, bytes: u32, rate: u64) {
        let scaled = u128::from(bytes) * 8 * u128::from(SECOND);
        self.size_bytes = bytes;
        self.whole_ns = u64::try_from(scaled / u128::from(rate)).unwrap_or(NEVER / 4);
        self.rest = u64::try_from(scaled % u128::from(rate)).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_do_not_drift() {
        let mut link = Transmitter::new(Some(7_460_000_000));
        let mut last = 0;
        for _ in 0..1_000_000 {
            last = link.transmit(0, 1500);
        }
        let exact = 1_000_000_f64 * 12_000.0 / 7.46;
        assert!((last as f64 - exact).abs() <= 1.0, "{last} against {exact}");
    }

    #[test]
    fn an_idle_link_starts_afresh() {
        let mut link = Transmitter::new(Some(10_000_000));
        assert_eq!(link.transmit(0, 1500), 1_200_000);
        assert_eq!(link.transmit(0, 1500), 2_400_000);
        assert_eq!(link.transmit(5_000_000, 40), 5_032_000);
    }

    #[test]
    fn an_unlimited_link_takes_no_time() {
        assert_eq!(Transmitter::new(None).transmit(7, 1500), 7);
        assert_eq!(transmission_time(1500, None), 0);
        assert_eq!(transmission_time(1500, Some(2_000_000)), 6_000_000);
    }
}
