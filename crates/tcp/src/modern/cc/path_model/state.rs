//! Units of the path model, and the state of BBR as probes record it.

use tcpcast_link::time::Nanos;

/// Unit of gains: 1/256.
pub const GAIN_UNIT: u64 = 256;
/// Bandwidths are packets per microsecond, scaled by 2^24.
pub const BW_SHIFT: u32 = 24;

/// Phase of any version of BBR; the four phases of the cycle belong to version 3, and those of
/// version 1 differ in their pacing gains only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BbrPhase {
    /// The rate doubles each round.
    Startup,
    /// The queue built by startup drains.
    Drain,
    /// Cycle of version 1.
    ProbeBw,
    /// Below the bandwidth.
    ProbeDown,
    /// At the bandwidth.
    ProbeCruise,
    /// At the bandwidth for a round, without short-term bounds.
    ProbeRefill,
    /// Above the bandwidth.
    ProbeUp,
    /// Few packets are in flight.
    ProbeRtt,
}

impl BbrPhase {
    /// Name in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeBw => "probe_bw",
            Self::ProbeDown => "probe_down",
            Self::ProbeCruise => "probe_cruise",
            Self::ProbeRefill => "probe_refill",
            Self::ProbeUp => "probe_up",
            Self::ProbeRtt => "probe_rtt",
        }
    }
}

/// State of the model of BBR. Bandwidths are scaled packets per microsecond, gains are multiples of
/// [`GAIN_UNIT`], and windows are packets; [`None`] means unknown or unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrState {
    /// Phase.
    pub phase: BbrPhase,
    /// Gain of the pacing rate.
    pub pacing_gain: u64,
    /// Gain of the window.
    pub cwnd_gain: u64,
    /// Bandwidth in use.
    pub bandwidth: u64,
    /// Maximum bandwidth of the recent rounds or cycles.
    pub max_bandwidth: u64,
    /// Bound of the bandwidth by recent losses.
    pub short_term_bandwidth: Option<u64>,
    /// Pacing rate, in bytes of payload per second.
    pub pacing_rate: u64,
    /// Minimum round-trip time.
    pub min_rtt: Option<Nanos>,
    /// Bounds of the packets in flight, by probes and by recent losses.
    pub long_term_inflight: Option<u32>,
    /// As above.
    pub short_term_inflight: Option<u32>,
    /// Packets acknowledged in excess of the bandwidth.
    pub extra_acked: u32,
    /// Target of packets in flight at a gain of 1.
    pub target_inflight: u32,
    /// Rounds so far.
    pub round: u32,
    /// Rounds without growth of the bandwidth, up to three.
    pub full_rounds: u8,
    /// Whether the pipe was ever full.
    pub was_full: bool,
    /// Whether data is being sent again after idle time.
    pub restarts_from_idle: bool,
}

impl BbrState {
    /// Converts a bandwidth to bits of payload per second, for packets of `mss` bytes.
    #[must_use]
    pub fn bits_per_second(bandwidth: u64, mss: u32) -> f64 {
        bandwidth as f64 * f64::from(mss) * 8e6 / (1_u64 << BW_SHIFT) as f64
    }

    /// Converts a gain to a number.
    #[must_use]
    pub fn gain(gain: u64) -> f64 {
        gain as f64 / GAIN_UNIT as f64
    }
}
