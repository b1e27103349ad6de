//! Bandwidths in fixed-point units, and the resulting pacing rate.

use super::super::super::u128_division::divide_u128;
use super::super::ControlRules;
use super::state::{BW_SHIFT, GAIN_UNIT};
use tcpcast_link::time::{MILLISECOND, Nanos};

/// Minimum window, in packets.
pub const MIN_CWND: u32 = 4;
/// Window before the first round-trip sample, in packets.
pub const INITIAL_CWND: u32 = 10;
/// Percentage by which the rate is below the model's bandwidth, so that no queue builds up.
const PACING_MARGIN_PERCENT: u64 = 1;

/// Bandwidth of a number of packets per interval.
#[must_use]
pub fn bandwidth_of(packets: u32, interval: Nanos) -> u64 {
    let scaled = (u128::from(packets) << BW_SHIFT) * 1000;
    divide_u128(scaled, interval.max(1)) as u64
}

/// Packets that a bandwidth, multiplied by `gain`, carries in `time`, rounded up.
#[must_use]
#[inline]
pub fn packets_carried_rounded_up(bw: u64, time: Nanos, gain: u64) -> u32 {
    // Usually 64 bits suffice.
    let product = bw.checked_mul(time).and_then(|carried| (carried / 1000).checked_mul(gain));
    match product {
        Some(scaled) => {
            u32::try_from((scaled / GAIN_UNIT).div_ceil(1 << BW_SHIFT)).unwrap_or(u32::MAX / 4)
        }
        None => packets_carried_slow_path(bw, time, gain),
    }
}

#[cold]
fn packets_carried_slow_path(bw: u64, time: Nanos, gain: u64) -> u32 {
    let carried = divide_u128(u128::from(bw) * u128::from(time), 1000);
    let scaled = carried * u128::from(gain) / u128::from(GAIN_UNIT);
    u32::try_from(scaled.div_ceil(1 << BW_SHIFT)).unwrap_or(u32::MAX / 4)
}

/// Packets that a bandwidth carries in `time`, rounded down.
#[must_use]
pub fn packets_carried_rounded_down(bw: u64, time: Nanos) -> u32 {
    let scaled = divide_u128(u128::from(bw) * u128::from(time), 1000) >> BW_SHIFT;
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

/// Maximum number of bytes that Linux passes to an interface in one call: 64 KiB minus headers.
pub const MAX_BURST_BYTES: u64 = 65_536 - 1 - 320;

/// Bytes sent at a rate in about a millisecond.
#[inline(always)]
#[must_use]
pub fn burst_bytes(rate: u64) -> u64 {
    (rate >> 10).min(MAX_BURST_BYTES)
}

/// Packets per burst, as in Linux: the data sent in about a millisecond plus `extra_bytes`, at
/// least two packets, or at least one packet if the rate is below 1.2 Mbit/s.
#[must_use]
pub fn chunk_packets(rate: u64, extra_bytes: u64, mss: u32) -> u32 {
    let min = if rate < 1_200_000 / 8 { 1 } else { 2 };
    let max = (burst_bytes(rate) + extra_bytes).min(MAX_BURST_BYTES) / u64::from(mss);
    (max as u32).clamp(min, 127)
}

/// Bursts of a congestion control that are shorter than Linux's millisecond (`tso_segs` of the L4S
/// team's kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstRules {
    /// A burst takes 1/2^`shift` of a second at the pacing rate.
    pub shift: u32,
    /// Smallest burst.
    pub min_packets: u32,
}

impl BurstRules {
    /// Packets per burst at a rate in bytes per second.
    #[must_use]
    pub fn packets_per_burst(self, rate: u64, mss: u32) -> u32 {
        let packets = (rate / u64::from(mss)) >> self.shift;
        (packets.min(MAX_BURST_BYTES / u64::from(mss)) as u32).max(self.min_packets)
    }
}

/// Pacing rate.
#[derive(Clone, Copy, Debug)]
pub struct PacingRate {
    rate: u64,
    mss: u32,
    /// Gain in startup.
    first_gain: u64,
    /// Whether the rate was computed from a round-trip time.
    has_seen_rtt: bool,
    /// Packets per burst.
    burst: u32,
    /// Last bandwidth and gain, and the resulting rate, cached because they often stay the same.
    last: (u64, u64),
    follows: u64,
}

impl PacingRate {
    /// Rate of a new connection: the initial window per millisecond, times the gain of startup.
    #[must_use]
    pub fn new(rules: &ControlRules, first_gain: u64) -> Self {
        let mut pace = Self {
            rate: 0,
            mss: rules.mss,
            first_gain,
            has_seen_rtt: false,
            burst: 0,
            last: (0, 0),
            follows: 0,
        };
        pace.change_rate(pace.rate_for_window(rules.initial_window, MILLISECOND));
        pace
    }

    /// Rate in bytes per second.
    #[inline(always)]
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        self.rate
    }

    /// Packets per burst.
    #[inline(always)]
    #[must_use]
    pub fn burst_packets(&self) -> u32 {
        self.burst
    }

    #[inline(always)]
    fn change_rate(&mut self, rate: u64) {
        if rate != self.rate || self.burst == 0 {
            self.rate = rate;
            self.burst = chunk_packets(rate, 0, self.mss);
        }
    }

    /// Converts a bandwidth to bytes per second, with the margin.
    #[must_use]
    pub fn pacing_rate_for_bandwidth(&self, bw: u64, gain: u64) -> u64 {
        let bytes =
            u128::from(bw) * u128::from(self.mss) * u128::from(gain) / u128::from(GAIN_UNIT);
        let with_margin = divide_u128(bytes * u128::from(100 - PACING_MARGIN_PERCENT), 100);
        ((with_margin * 1_000_000) >> BW_SHIFT) as u64
    }

    /// Rate of an initial window per `rtt`.
    fn rate_for_window(&self, cwnd: u32, rtt: Nanos) -> u64 {
        self.pacing_rate_for_bandwidth(bandwidth_of(cwnd, rtt.max(1000)), self.first_gain)
    }

    /// Sets the rate to one window per round-trip time at the first sample.
    pub fn init_from_rtt(&mut self, cwnd: u32, srtt: Option<Nanos>) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, srtt) {
            self.has_seen_rtt = true;
            self.change_rate(self.rate_for_window(cwnd, srtt));
        }
    }

    /// Sets the rate for a bandwidth; until the pipe is `full`, the rate can only rise.
    pub fn set_for_bandwidth(&mut self, bw: u64, gain: u64, full: bool) {
        if self.last != (bw, gain) {
            self.last = (bw, gain);
            self.follows = self.pacing_rate_for_bandwidth(bw, gain);
        }
        if full || self.follows > self.rate {
            self.change_rate(self.follows);
        }
    }
}
