//! BBR version 1 as in Linux (Cardwell et al. 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00): a model of the path (bandwidth and round-trip
//! time) determines pacing rate and window.
//!
//! ```text
//!   Startup --full pipe--> Drain --in flight <= BDP--> ProbeBw (eight phases of a round trip)
//!      ^                                                ^   |
//!      | pipe not full                     pipe full    |   | no new minimum RTT for 10 s,
//!      +------------------ ProbeRtt --------------------+   v also from the other modes
//!                          (four packets, 200 ms)  <--------+
//! ```

mod aggregation;
mod cwnd;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;

use self::aggregation::AckAggregationFilter;
use self::policer::{PolicerDetection, PolicerSample};
use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::path_model::{
    BbrPhase, BbrState, FullPipeDetection, GAIN_UNIT, INITIAL_CWND, MIN_CWND, MinRttProbe,
    PacingRate, SplitMix64, WindowedMaxFilter, bandwidth_of, packets_carried_rounded_up,
};
use super::{
    AckSample, CongestionControl, ControlRules, DeliveryTotals, RecoveryPhaseChange, TransmitStart,
};
use tcpcast_link::time::{Nanos, SECOND};

/// 2 / ln 2, which allows the rate to double each round.
const HIGH_GAIN: u64 = GAIN_UNIT * 2885 / 1000 + 1;
/// Inverse of `HIGH_GAIN`.
const DRAIN_GAIN: u64 = GAIN_UNIT * 1000 / 2885;
/// The window is two BDPs, because acknowledgements may be delayed or cover many packets.
const CWND_GAIN: u64 = 2 * GAIN_UNIT;
/// The maximum bandwidth of this many rounds is the bandwidth of the path.
const BW_ROUNDS: u32 = 10;

/// Mode of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrMode {
    /// The rate doubles each round until the pipe is full.
    Startup,
    /// The queue built by startup drains.
    Drain,
    /// The rate cycles around the bandwidth.
    ProbeBw {
        /// Phase of the cycle.
        phase: u8,
        /// Start of the phase.
        since: Nanos,
    },
    /// Few packets are in flight, to measure the round-trip time without a queue.
    ProbeRtt(MinRttProbe),
}

/// BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: BbrMode,
    /// Maximum bandwidth of the last rounds.
    max_bw: WindowedMaxFilter,
    min_rtt: Option<Nanos>,
    min_rtt_at: Nanos,
    /// Rounds so far.
    round: u32,
    /// A round ends when a packet is delivered that was sent after this many deliveries.
    round_end: u32,
    round_start: bool,
    full: FullPipeDetection,
    policer: PolicerDetection,
    aggregation: AckAggregationFilter,
    /// Recovery phase at the last acknowledgement.
    phase: PhaseName,
    /// First round of a recovery: one packet is sent per packet delivered.
    packet_conservation: bool,
    /// Window before a recovery or a probe for the minimum round-trip time.
    saved_cwnd: u32,
    restarts_from_idle: bool,
    pace: PacingRate,
    random: SplitMix64,
}

impl Bbr {
    /// Creates the state of a new connection; `seed` determines the phase of its cycle.
    #[must_use]
    pub fn new(rules: &ControlRules, now: Nanos, seed: u64) -> Self {
        Self {
            mode: BbrMode::Startup,
            max_bw: WindowedMaxFilter::default(),
            min_rtt: None,
            min_rtt_at: now,
            round: 0,
            round_end: 0,
            round_start: false,
            full: FullPipeDetection::default(),
            policer: PolicerDetection::default(),
            aggregation: AckAggregationFilter::new(now),
            phase: PhaseName::Open,
            packet_conservation: false,
            saved_cwnd: 0,
            restarts_from_idle: false,
            pace: PacingRate::new(rules, HIGH_GAIN),
            random: SplitMix64::new(seed),
        }
    }

    /// Pacing rate, in bytes per second.
    #[inline(always)]
    #[must_use]
    pub fn pacing_rate(&self) -> u64 {
        self.pace.bytes_per_second()
    }

    /// Current mode.
    #[must_use]
    pub fn mode(&self) -> BbrMode {
        self.mode
    }

    /// Bandwidth in use: the rate of a policer, if one was detected.
    fn bandwidth(&self) -> u64 {
        self.policer.policer_bandwidth().unwrap_or_else(|| self.max_bw.max_value())
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            BbrMode::Startup => HIGH_GAIN,
            BbrMode::Drain => DRAIN_GAIN,
            BbrMode::ProbeBw { .. } if self.policer.policer_bandwidth().is_some() => GAIN_UNIT,
            BbrMode::ProbeBw { phase, .. } => probe_bw::PACING_GAIN_CYCLE[usize::from(phase)],
            BbrMode::ProbeRtt(_) => GAIN_UNIT,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.mode {
            BbrMode::Startup | BbrMode::Drain => HIGH_GAIN,
            BbrMode::ProbeBw { .. } => CWND_GAIN,
            BbrMode::ProbeRtt(_) => GAIN_UNIT,
        }
    }

    /// Updates rounds and bandwidth.
    fn update_bandwidth(&mut self, ack: &AckSample) {
        self.round_start = false;
        let (Some(rate), Some(prior)) = (ack.rate.rate, ack.rate.prior_delivered) else { return };
        if prior.wrapping_sub(self.round_end) as i32 >= 0 {
            self.round_end = ack.total_delivered;
            self.round += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        let totals =
            DeliveryTotals { at: ack.now, delivered: ack.total_delivered, lost: ack.total_lost };
        let app_limited = ack.rate.app_limited;
        self.detect_policer(&PolicerSample { totals, lost: ack.lost > 0, app_limited });
        let bw = bandwidth_of(rate.delivered, rate.interval);
        if !ack.rate.app_limited || bw >= self.max_bw.max_value() {
            self.max_bw.update(self.round, bw, BW_ROUNDS);
        }
    }

    /// Updates the model with an acknowledgement.
    fn update_model(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.update_bandwidth(ack);
        let bw = self.bandwidth();
        self.aggregation.on_ack(ack, bw, self.round_start, window.cwnd);
        self.update_cycle(ack);
        if self.round_start && !ack.rate.app_limited {
            self.full.add_round_bandwidth(self.max_bw.max_value());
        }
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
    }
}

impl CongestionControl for Bbr {
    #[inline(always)]
    fn requested_pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate())
    }

    fn is_probing_rtt(&self) -> bool {
        Self::is_probing_rtt(self)
    }

    fn bbr_state(&self) -> Option<BbrState> {
        let bandwidth = self.bandwidth();
        Some(BbrState {
            phase: match self.mode {
                BbrMode::Startup => BbrPhase::Startup,
                BbrMode::Drain => BbrPhase::Drain,
                BbrMode::ProbeBw { .. } => BbrPhase::ProbeBw,
                BbrMode::ProbeRtt(_) => BbrPhase::ProbeRtt,
            },
            pacing_gain: self.pacing_gain(),
            cwnd_gain: self.cwnd_gain(),
            bandwidth,
            max_bandwidth: self.max_bw.max_value(),
            short_term_bandwidth: self.policer.policer_bandwidth(),
            pacing_rate: self.pacing_rate(),
            min_rtt: self.min_rtt,
            long_term_inflight: None,
            short_term_inflight: None,
            extra_acked: self.aggregation.extra_window_packets(bandwidth),
            target_inflight: self.target_inflight(bandwidth, GAIN_UNIT),
            round: self.round,
            full_rounds: self.full.rounds_without_growth(),
            was_full: self.full.was_ever_full(),
            restarts_from_idle: self.restarts_from_idle,
        })
    }

    /// Updates the model, and sets rate and window.
    #[inline(always)]
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        self.update_model(window, sample);
        let bw = self.bandwidth();
        self.pace.init_from_rtt(window.cwnd, sample.srtt);
        self.pace.set_for_bandwidth(bw, self.pacing_gain(), self.full.was_ever_full());
        self.set_cwnd(window, sample, bw);
    }

    /// A loss does not change the threshold. The window is saved, and restored after the recovery.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    /// For the policer detection, a timeout also ends a round with losses: Linux's `bbr_set_state`.
    fn on_recovery_phase_change(
        &mut self,
        _window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        if change.phase == PhaseName::Loss {
            self.phase = PhaseName::Loss;
            self.full.reset_comparison_bandwidth();
            self.round_start = true;
            self.detect_policer(&PolicerSample {
                totals: change.totals,
                lost: true,
                app_limited: false,
            });
        }
    }

    /// Linux's `bbr_init`: the handshake's round-trip time is the first minimum, and the first rate
    /// is one initial window per round-trip time.
    fn on_established(&mut self, window: &CongestionWindow, now: Nanos, rtt: Nanos) {
        (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        self.pace.init_from_rtt(window.cwnd, Some(rtt));
    }

    fn on_transmit_start(
        &mut self,
        window: &mut CongestionWindow,
        now: Nanos,
        start: TransmitStart,
    ) {
        if !start.app_limited {
            return;
        }
        self.restarts_from_idle = true;
        self.aggregation = self.aggregation.with_new_epoch(now);
        match self.mode {
            BbrMode::ProbeBw { .. } => {
                self.pace.set_for_bandwidth(self.bandwidth(), GAIN_UNIT, self.full.was_ever_full())
            }
            BbrMode::ProbeRtt(_) => self.check_probe_rtt_done(window, now),
            BbrMode::Startup | BbrMode::Drain => (),
        }
    }

    fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        self.full.restart_detection(0);
        self.policer = PolicerDetection::default();
        window.cwnd
    }
}

/// Time after which the minimum round-trip time expires.
const MIN_RTT_WINDOW: Nanos = 10 * SECOND;

#[cfg(test)]
#[path = "bbr_tests.rs"]
mod tests;
