//! BBR version 1 as Linux has it (Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-
//! control-00): a model of the path, its bandwidth and its round-trip time, sets pace and window.
//!
//! ```text
//!   Startup --full pipe--> Drain --in flight <= BDP--> ProbeBw (eight phases of a round trip)
//!      ^                                                ^   |
//!      | pipe not full                     pipe full    |   | no new smallest RTT for 10 s,
//!      +------------------ ProbeRtt --------------------+   v from each of the others, too
//!                          (four packets, 200 ms)  <--------+
//! ```

mod aggregation;
mod cwnd;
mod filter;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;

use self::aggregation::Aggregation;
use self::filter::MaxFilter;
use self::policer::Policer;
use self::startup::FullPipe;
use super::super::phase::PhaseName;
use super::super::stack::{MILLISECOND, Stack};
use super::super::wide::quotient;
use super::super::window::Window;
use super::{AckSample, CongestionControl, Start};
use crate::clock::{Nanos, SECOND};

/// Gains are in units of 1/256.
const UNIT: u64 = 256;
/// 2 / ln 2, with which the rate can double each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// The window holds two BDPs, for delayed and stretched acknowledgements.
const CWND_GAIN: u64 = 2 * UNIT;
/// Bandwidths are packets in a microsecond, scaled by this.
const BW_SHIFT: u32 = 24;
/// The largest bandwidth of this many rounds is that of the path.
const BW_ROUNDS: u32 = 10;
/// The smallest window, in packets.
const MIN_CWND: u32 = 4;
/// The rate is this much less than the model says, in percent, so that no queue builds up.
const PACING_MARGIN: u64 = 1;
/// The window before there is a round-trip time.
const INITIAL_CWND: u32 = 10;

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The rate doubles each round until the pipe is full.
    Startup,
    /// What startup queued drains.
    Drain,
    /// The rate cycles around the bandwidth.
    ProbeBw {
        /// The phase of the cycle.
        phase: u8,
        /// When it began.
        since: Nanos,
    },
    /// Few packets are in flight, to see the round-trip time without a queue.
    ProbeRtt {
        /// When it may end, once few are in flight, and whether a round has passed since.
        until: Option<(Nanos, bool)>,
    },
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    bw: MaxFilter,
    min_rtt: Option<Nanos>,
    min_rtt_at: Nanos,
    /// Rounds so far.
    round: u32,
    /// A round ends when a packet is delivered that was sent after this many were.
    round_end: u32,
    round_start: bool,
    full: FullPipe,
    policer: Policer,
    aggregation: Aggregation,
    /// The phase of recovery at the last acknowledgement.
    phase: PhaseName,
    /// In the first round of a recovery a packet is sent for each one delivered.
    conserves: bool,
    /// The window before a recovery or a probe of the round-trip time.
    saved_cwnd: u32,
    restarts_from_idle: bool,
    /// Whether the rate follows from a round-trip time.
    has_seen_rtt: bool,
    rate: u64,
    mss: u32,
    draws: u64,
}

impl Bbr {
    /// A new one; `seed` says where in its cycle it begins.
    #[must_use]
    pub fn new(stack: &Stack, now: Nanos, seed: u64) -> Self {
        let mut bbr = Self {
            mode: Mode::Startup,
            bw: MaxFilter::default(),
            min_rtt: None,
            min_rtt_at: now,
            round: 0,
            round_end: 0,
            round_start: false,
            full: FullPipe::default(),
            policer: Policer::default(),
            aggregation: Aggregation::new(now),
            phase: PhaseName::Open,
            conserves: false,
            saved_cwnd: 0,
            restarts_from_idle: false,
            has_seen_rtt: false,
            rate: 0,
            mss: stack.mss,
            draws: seed,
        };
        bbr.rate = bbr.rate_of_window(stack.initial_window, MILLISECOND);
        bbr
    }

    /// The rate, in bytes a second.
    #[inline(always)]
    #[must_use]
    pub fn pacing_rate(&self) -> u64 {
        self.rate
    }

    /// Where it stands.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The largest bandwidth of the last rounds.
    fn max_bw(&self) -> u64 {
        self.bw.get()
    }

    /// The bandwidth in use: that of a policer, where one was found.
    fn bandwidth(&self) -> u64 {
        self.policer.bandwidth().unwrap_or_else(|| self.max_bw())
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.bandwidth().is_some() => UNIT,
            Mode::ProbeBw { phase, .. } => probe_bw::GAINS[usize::from(phase)],
            Mode::ProbeRtt { .. } => UNIT,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt { .. } => UNIT,
        }
    }

    /// In bytes a second, with the margin.
    fn rate_of(&self, bw: u64, gain: u64) -> u64 {
        let bytes = u128::from(bw) * u128::from(self.mss) * u128::from(gain) / u128::from(UNIT);
        let with_margin = quotient(bytes * u128::from(100 - PACING_MARGIN), 100);
        ((with_margin * 1_000_000) >> BW_SHIFT) as u64
    }

    /// The rate of a first window in `rtt`.
    fn rate_of_window(&self, cwnd: u32, rtt: Nanos) -> u64 {
        self.rate_of(bandwidth(cwnd, rtt.max(1000)), HIGH_GAIN)
    }

    fn set_rate(&mut self, bw: u64, gain: u64, cwnd: u32, srtt: Option<Nanos>) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, srtt) {
            self.has_seen_rtt = true;
            self.rate = self.rate_of_window(cwnd, srtt);
        }
        let rate = self.rate_of(bw, gain);
        if self.full.reached() || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Rounds and bandwidth.
    fn update_bandwidth(&mut self, ack: &AckSample) {
        self.round_start = false;
        let (Some(rate), Some(prior)) = (ack.rate.rate, ack.rate.prior_delivered) else { return };
        if prior.wrapping_sub(self.round_end) as i32 >= 0 {
            self.round_end = ack.total_delivered;
            self.round += 1;
            self.round_start = true;
            self.conserves = false;
        }
        self.watch_policer(ack);
        let bw = bandwidth(rate.delivered, rate.interval);
        if !ack.rate.app_limited || bw >= self.max_bw() {
            self.bw.hear(self.round, bw, BW_ROUNDS);
        }
    }

    /// All that the model learns from an acknowledgement.
    fn update_model(&mut self, window: &mut Window, ack: &AckSample) {
        self.update_bandwidth(ack);
        let bw = self.bandwidth();
        self.aggregation.on_ack(ack, bw, self.round_start, window.cwnd);
        self.update_cycle(ack);
        if self.round_start && !ack.rate.app_limited {
            self.full.on_round(self.bw.get());
        }
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
    }

    /// A number below `most`; the same for the same seed.
    fn draw_below(&mut self, most: u64) -> u64 {
        // SplitMix64.
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}

/// Packets over a time, as a bandwidth.
fn bandwidth(packets: u32, interval: Nanos) -> u64 {
    let scaled = (u128::from(packets) << BW_SHIFT) * 1000;
    quotient(scaled, interval.max(1)) as u64
}

/// How many packets a bandwidth carries in `time`, rounded up where `gain` is applied.
fn packets(bw: u64, time: Nanos, gain: u64) -> u32 {
    let carried = quotient(u128::from(bw) * u128::from(time), 1000);
    let scaled = carried * u128::from(gain) / u128::from(UNIT);
    u32::try_from(scaled.div_ceil(1 << BW_SHIFT)).unwrap_or(u32::MAX / 4)
}

impl CongestionControl for Bbr {
    /// Each acknowledgement sets rate and window.
    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        self.update_model(window, sample);
        let bw = self.bandwidth();
        self.set_rate(bw, self.pacing_gain(), window.cwnd, sample.srtt);
        self.set_cwnd(window, sample, bw);
    }

    /// The window is not cut by a loss, but saved, to be restored after the recovery.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    /// A timeout is the end of a round in which packets were lost.
    fn on_phase(&mut self, _window: &mut Window, phase: PhaseName, _now: Nanos, _next: u64) {
        if phase == PhaseName::Loss {
            self.phase = PhaseName::Loss;
            self.full.forget_bandwidth();
            self.round_start = true;
        }
    }

    fn on_transmit_start(&mut self, window: &mut Window, now: Nanos, start: Start) {
        if !start.app_limited {
            return;
        }
        self.restarts_from_idle = true;
        self.aggregation = self.aggregation.restarted(now);
        match self.mode {
            Mode::ProbeBw { .. } => self.set_rate(self.bandwidth(), UNIT, window.cwnd, None),
            Mode::ProbeRtt { .. } => self.check_probe_rtt_done(window, now),
            Mode::Startup | Mode::Drain => (),
        }
    }

    fn undone(&mut self, window: &Window) -> u32 {
        self.full.forget_bandwidth();
        self.full.forget_rounds();
        self.policer = Policer::default();
        window.cwnd
    }
}

/// Bytes that are sent at once, as Linux makes packets for the interface: what the rate sends in
/// about a millisecond, at least two packets, or one below 1.2 Mbit/s.
pub fn burst_packets(rate: u64, mss: u32) -> u32 {
    let least = if rate < 1_200_000 / 8 { 1 } else { 2 };
    let most = (rate >> 10).min(65_536 - 1 - 320) / u64::from(mss);
    (most as u32).clamp(least, 127)
}

/// How long the smallest round-trip time counts.
const MIN_RTT_WINDOW: Nanos = 10 * SECOND;

#[cfg(test)]
#[path = "bbr_tests.rs"]
mod tests;
