//! Bandwidths in units that lose nothing, and the pace that follows from them.

use super::super::super::stack::{MILLISECOND, Stack};
use super::super::super::u128_division::quotient;
use crate::clock::Nanos;

/// Gains are in units of 1/256.
pub const UNIT: u64 = 256;
/// Bandwidths are packets in a microsecond, scaled by this.
pub const BW_SHIFT: u32 = 24;
/// The smallest window, in packets.
pub const MIN_CWND: u32 = 4;
/// The window before there is a round-trip time.
pub const INITIAL_CWND: u32 = 10;
/// The rate is this much less than the model says, in percent, so that no queue builds up.
const MARGIN: u64 = 1;

/// Packets over a time, as a bandwidth.
#[must_use]
pub fn bandwidth(packets: u32, interval: Nanos) -> u64 {
    let scaled = (u128::from(packets) << BW_SHIFT) * 1000;
    quotient(scaled, interval.max(1)) as u64
}

/// How many packets a bandwidth carries in `time`, rounded up where `gain` is applied.
#[must_use]
#[inline]
pub fn packets(bw: u64, time: Nanos, gain: u64) -> u32 {
    // Mostly 64 bits are enough.
    let product = bw.checked_mul(time).and_then(|carried| (carried / 1000).checked_mul(gain));
    match product {
        Some(scaled) => {
            u32::try_from((scaled / UNIT).div_ceil(1 << BW_SHIFT)).unwrap_or(u32::MAX / 4)
        }
        None => many_packets(bw, time, gain),
    }
}

#[cold]
fn many_packets(bw: u64, time: Nanos, gain: u64) -> u32 {
    let carried = quotient(u128::from(bw) * u128::from(time), 1000);
    let scaled = carried * u128::from(gain) / u128::from(UNIT);
    u32::try_from(scaled.div_ceil(1 << BW_SHIFT)).unwrap_or(u32::MAX / 4)
}

/// How many whole packets a bandwidth has carried in `time`.
#[must_use]
pub fn carried(bw: u64, time: Nanos) -> u32 {
    let scaled = quotient(u128::from(bw) * u128::from(time), 1000) >> BW_SHIFT;
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

/// The most bytes that Linux hands to an interface at once: 64 KiB, and room for headers.
pub const LARGEST_BURST: u64 = 65_536 - 1 - 320;

/// What a rate sends in about a millisecond.
#[inline(always)]
#[must_use]
pub fn burst_bytes(rate: u64) -> u64 {
    (rate >> 10).min(LARGEST_BURST)
}

/// Packets that are sent at once, as Linux makes packets for the interface: what the rate sends in
/// about a millisecond, at least two packets, or one below 1.2 Mbit/s.
#[must_use]
pub fn burst_packets(rate: u64, mss: u32) -> u32 {
    chunk_packets(rate, 0, mss)
}

/// The same where there are so many bytes `more` in it.
#[must_use]
pub fn chunk_packets(rate: u64, more: u64, mss: u32) -> u32 {
    let min = if rate < 1_200_000 / 8 { 1 } else { 2 };
    let max = (burst_bytes(rate) + more).min(LARGEST_BURST) / u64::from(mss);
    (max as u32).clamp(min, 127)
}

/// The rate at which packets are sent.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: u64,
    mss: u32,
    /// The gain of startup.
    first_gain: u64,
    /// Whether the rate follows from a round-trip time.
    has_seen_rtt: bool,
    /// Packets that are sent at once at this rate.
    burst: u32,
    /// The last bandwidth and gain, and the rate that follows: they often stay.
    last: (u64, u64),
    follows: u64,
}

impl Pace {
    /// That of a new connection: a first window in a millisecond, with the gain of startup.
    #[must_use]
    pub fn new(stack: &Stack, first_gain: u64) -> Self {
        let mut pace = Self {
            rate: 0,
            mss: stack.mss,
            first_gain,
            has_seen_rtt: false,
            burst: 0,
            last: (0, 0),
            follows: 0,
        };
        pace.change(pace.of_window(stack.initial_window, MILLISECOND));
        pace
    }

    /// It, in bytes a second.
    #[inline(always)]
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Packets that are sent at once.
    #[inline(always)]
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.burst
    }

    #[inline(always)]
    fn change(&mut self, rate: u64) {
        if rate != self.rate || self.burst == 0 {
            self.rate = rate;
            self.burst = burst_packets(rate, self.mss);
        }
    }

    /// A bandwidth in bytes a second, with the margin.
    #[must_use]
    pub fn of(&self, bw: u64, gain: u64) -> u64 {
        let bytes = u128::from(bw) * u128::from(self.mss) * u128::from(gain) / u128::from(UNIT);
        let with_margin = quotient(bytes * u128::from(100 - MARGIN), 100);
        ((with_margin * 1_000_000) >> BW_SHIFT) as u64
    }

    /// The rate of a first window in `rtt`.
    fn of_window(&self, cwnd: u32, rtt: Nanos) -> u64 {
        self.of(bandwidth(cwnd, rtt.max(1000)), self.first_gain)
    }

    /// The first round-trip time is known: the rate is that of a window in it.
    pub fn init_from_rtt(&mut self, cwnd: u32, srtt: Option<Nanos>) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, srtt) {
            self.has_seen_rtt = true;
            self.change(self.of_window(cwnd, srtt));
        }
    }

    /// The rate of a bandwidth; as long as the pipe is not `full` it only rises.
    pub fn set(&mut self, bw: u64, gain: u64, full: bool) {
        if self.last != (bw, gain) {
            self.last = (bw, gain);
            self.follows = self.of(bw, gain);
        }
        if full || self.follows > self.rate {
            self.change(self.follows);
        }
    }
}
