//! BBR version 3: draft-ietf-ccwg-bbr-06 of 6 July 2026. Sections in comments refer to this draft.
//!
//! ```text
//!   Startup --full pipe, or much loss--> Drain --in flight <= BDP, or 3 rounds--> Down
//!
//!     Down --in flight <= BDP, with headroom--> Cruise --2 to 3 s, or 63 rounds--> Refill
//!      ^                                                                             | a round
//!      +--rate stops growing, 2 % loss, or level that was too high before----- Up <--+
//!
//!   each of them --no new minimum RTT for 5 s--> ProbeRtt --200 ms at half a BDP--> Cruise
//! ```
//!
//! Bandwidth and window have two bounds. The long-term bound is the amount in flight at which a
//! probe lost more than 2 %. The short-term bound is lowered by losses between two probes.

mod cwnd;
mod ecn;
mod loss;
mod probe_bw;
mod probe_rtt;
mod startup;
mod undo;

use self::ecn::Marks;
use self::loss::{LatestDelivery, ShortTermBounds};
use self::probe_bw::{AckFeedback, LongTermSlope, ProbeSchedule};
use self::probe_rtt::MinDelaySinceProbe;
use self::undo::UndoState;
use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::path_model::{
    AckAggregationEpoch, BbrPhase, BbrState, FullPipeDetection, GAIN_UNIT, MinRttProbe, PacingRate,
    SplitMix64, TwoCycleMaxFilter, WindowedMaxFilter, bandwidth_of,
};
use super::{
    AckSample, CongestionControl, ControlRules, LostPacket, RecoveryPhaseChange, TransmitStart,
};
use tcpcast_link::time::Nanos;

/// 4 ln 2, which allows the rate to double each round: section 5.3.1.1.
const STARTUP_GAIN: u64 = GAIN_UNIT * 277 / 100 + 1;

/// Mode of BBR: section 5.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bbr3Mode {
    /// The rate doubles each round until the pipe is full.
    Startup,
    /// The queue built by startup drains.
    Drain {
        /// Round in which draining began.
        since: u32,
    },
    /// Below the bandwidth, until the queue of the probe is empty.
    Down,
    /// At the bandwidth.
    Cruise,
    /// At the bandwidth for a round, without the short-term bounds.
    Refill,
    /// Above the bandwidth.
    Up,
    /// Half a BDP is in flight, to measure the round-trip time without a queue.
    ProbeRtt(MinRttProbe),
}

impl Bbr3Mode {
    /// Section 5.6.1, column of pacing gains.
    fn pacing_gain(self) -> u64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain { .. } => GAIN_UNIT / 2,
            Self::Down => GAIN_UNIT * 90 / 100,
            Self::Cruise | Self::Refill | Self::ProbeRtt(_) => GAIN_UNIT,
            Self::Up => GAIN_UNIT * 5 / 4,
        }
    }

    /// Section 5.6.1, column of window gains.
    fn cwnd_gain(self) -> u64 {
        match self {
            Self::Up => GAIN_UNIT * 9 / 4,
            Self::ProbeRtt(_) => GAIN_UNIT / 2,
            _ => 2 * GAIN_UNIT,
        }
    }

    /// Phase as probes record it.
    fn phase(self) -> BbrPhase {
        match self {
            Self::Startup => BbrPhase::Startup,
            Self::Drain { .. } => BbrPhase::Drain,
            Self::Down => BbrPhase::ProbeDown,
            Self::Cruise => BbrPhase::ProbeCruise,
            Self::Refill => BbrPhase::ProbeRefill,
            Self::Up => BbrPhase::ProbeUp,
            Self::ProbeRtt(_) => BbrPhase::ProbeRtt,
        }
    }

    /// Whether this is one of the four phases of the cycle.
    fn is_cycle_phase(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether losses indicate that a probe was too high, rather than that the bandwidth has
    /// fallen.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Delivery reported by an acknowledgement; 0 if nothing is delivered.
#[derive(Clone, Copy, Debug)]
struct AckDelivery {
    bandwidth: u64,
    packets: u32,
}

impl AckDelivery {
    fn of_ack(ack: &AckSample) -> Self {
        ack.rate.rate.map_or(Self { bandwidth: 0, packets: 0 }, |rate| Self {
            bandwidth: bandwidth_of(rate.delivered, rate.interval),
            packets: rate.delivered,
        })
    }
}

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    mode: Bbr3Mode,
    max_bw: TwoCycleMaxFilter,
    /// Bandwidth in use: the maximum, limited by the short-term bound.
    bw: u64,
    min_rtt: Option<Nanos>,
    min_rtt_at: Nanos,
    smallest: MinDelaySinceProbe,
    /// Rounds so far.
    round: u32,
    /// A round ends when a packet is delivered that was sent after this many deliveries.
    round_end: u32,
    round_start: bool,
    /// Packets delivered so far.
    delivered: u32,
    full: FullPipeDetection,
    latest: LatestDelivery,
    short_term: ShortTermBounds,
    /// Maximum in flight without too many losses; [`None`] if unbounded.
    inflight_longterm: Option<u32>,
    cycle: ProbeSchedule,
    slope: LongTermSlope,
    feedback: AckFeedback,
    /// Whether acknowledgements cover packets that were sent to probe.
    probe_samples: bool,
    /// The last probe lost too many packets.
    went_too_high: bool,
    /// The last probe ended early, at the level that was too high before.
    precautionary: bool,
    epoch: AckAggregationEpoch,
    extra_acked: WindowedMaxFilter,
    marks: Marks,
    undo: UndoState,
    /// Recovery phase at the last acknowledgement.
    phase: PhaseName,
    /// Window before a recovery or a probe for the minimum round-trip time.
    saved_cwnd: u32,
    restarts_from_idle: bool,
    uses_sack: bool,
    initial_window: u32,
    pace: PacingRate,
    random: SplitMix64,
}

impl Bbr3 {
    /// Creates the state of a new connection: section 5.2.1. `seed` determines the times between
    /// probes.
    #[must_use]
    pub fn new(rules: &ControlRules, now: Nanos, seed: u64) -> Self {
        Self {
            mode: Bbr3Mode::Startup,
            max_bw: TwoCycleMaxFilter::default(),
            bw: 0,
            min_rtt: None,
            min_rtt_at: now,
            smallest: MinDelaySinceProbe::new(now),
            round: 0,
            round_end: 0,
            round_start: false,
            delivered: 0,
            full: FullPipeDetection::default(),
            latest: LatestDelivery::default(),
            short_term: ShortTermBounds::default(),
            inflight_longterm: None,
            cycle: ProbeSchedule::default(),
            slope: LongTermSlope::default(),
            feedback: AckFeedback::NotProbing,
            probe_samples: false,
            went_too_high: false,
            precautionary: false,
            epoch: AckAggregationEpoch::new(now),
            extra_acked: WindowedMaxFilter::default(),
            marks: Marks::new(rules.uses_ecn),
            undo: UndoState::default(),
            phase: PhaseName::Open,
            saved_cwnd: 0,
            restarts_from_idle: false,
            uses_sack: rules.uses_sack,
            initial_window: rules.initial_window,
            pace: PacingRate::new(rules, STARTUP_GAIN),
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
    pub fn mode(&self) -> Bbr3Mode {
        self.mode
    }

    /// Starts a round: section 5.5.1.
    fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    /// Sections 5.5.1 and 5.5.5: updates rounds and the maximum bandwidth.
    fn update_max_bw(&mut self, ack: &AckSample, delivery: AckDelivery) {
        self.round_start =
            ack.rate.prior_delivered.is_some_and(|p| was_sent_after(p, self.round_end));
        if self.round_start {
            self.start_round();
            self.round += 1;
            self.cycle.rounds += 1;
        }
        let bw = delivery.bandwidth;
        if bw > 0 && (bw >= self.max_bw.max_value() || !ack.rate.app_limited) {
            self.max_bw.update(bw);
        }
    }

    /// Section 5.5.9: packets acknowledged in excess of the bandwidth, as maximum of ten rounds, or
    /// of one round in startup.
    fn update_aggregation(&mut self, window: &CongestionWindow, ack: &AckSample) {
        let rounds = if self.full.was_ever_full() { 10 } else { 1 };
        let extra = self.epoch.extra_acked_packets(ack, self.bw, window.cwnd);
        self.extra_acked.update(self.round, u64::from(extra), rounds);
    }

    /// Section 5.2.3: updates the model with an acknowledgement.
    fn update_model(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.delivered = ack.total_delivered;
        self.start_round_after_undo();
        let delivery = AckDelivery::of_ack(ack);
        self.update_latest_delivery(ack, delivery);
        self.update_max_bw(ack, delivery);
        self.update_marks(ack);
        self.adapt_short_term_bounds(window);
        self.update_aggregation(window, ack);
        if self.round_start && !ack.rate.app_limited && delivery.bandwidth > 0 {
            self.full.add_round_bandwidth(delivery.bandwidth);
        }
        self.check_startup_done(window, ack);
        self.check_drain_done(ack);
        self.update_cycle(window, ack, delivery);
        self.update_min_rtt(ack);
        self.check_probe_rtt(window, ack);
        self.advance_latest_delivery(delivery);
        self.bw = self.short_term.bound_bandwidth(self.max_bw.max_value());
    }
}

/// Whether a packet sent after `prior` deliveries was sent after `end` deliveries; both wrap.
fn was_sent_after(prior: u32, end: u32) -> bool {
    prior.wrapping_sub(end) as i32 >= 0
}

impl CongestionControl for Bbr3 {
    #[inline(always)]
    fn requested_pacing_rate(&self) -> Option<u64> {
        Some(self.pacing_rate())
    }

    fn is_probing_rtt(&self) -> bool {
        Self::is_probing_rtt(self)
    }

    fn bbr_state(&self) -> Option<BbrState> {
        Some(BbrState {
            phase: self.mode.phase(),
            pacing_gain: self.mode.pacing_gain(),
            cwnd_gain: self.mode.cwnd_gain(),
            bandwidth: self.bw,
            max_bandwidth: self.max_bw.max_value(),
            short_term_bandwidth: self.short_term.bandwidth,
            pacing_rate: self.pacing_rate(),
            min_rtt: self.min_rtt,
            long_term_inflight: self.inflight_longterm,
            short_term_inflight: self.short_term.inflight,
            extra_acked: self.extra_acked.max_value() as u32,
            target_inflight: self.target_inflight_at(self.bw, GAIN_UNIT),
            round: self.round,
            full_rounds: self.full.rounds_without_growth(),
            was_full: self.full.was_ever_full(),
            restarts_from_idle: self.restarts_from_idle,
        })
    }

    #[inline(always)]
    fn has_loss_feedback(&self) -> bool {
        true
    }

    /// Updates the model, and sets rate and window.
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        self.update_model(window, sample);
        self.pace.init_from_rtt(window.cwnd, sample.srtt);
        self.pace.set_for_bandwidth(self.bw, self.mode.pacing_gain(), self.full.was_ever_full());
        self.set_cwnd(window, sample);
    }

    fn on_lost_packet(&mut self, window: &mut CongestionWindow, lost: &LostPacket) {
        self.handle_lost_packet(window, lost);
    }

    /// Section 5.6.4.4: a loss does not reduce the window; it is saved, and restored after the
    /// recovery.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.save_state(window);
        window.ssthresh
    }

    fn on_recovery_phase_change(
        &mut self,
        _window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        if change.phase == PhaseName::Loss {
            self.phase = PhaseName::Loss;
        }
    }

    /// Sections 5.2.1, BBROnInit, and 5.6.2, BBRInitPacingRate: SRTT is the first minimum
    /// round-trip time, and the first rate is one initial window per round-trip time.
    fn on_established(&mut self, window: &CongestionWindow, now: Nanos, rtt: Nanos) {
        (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        self.pace.init_from_rtt(window.cwnd, Some(rtt));
    }

    /// Section 5.4.1.
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
        self.epoch = AckAggregationEpoch::new(now);
        if self.mode.is_cycle_phase() {
            self.pace.set_for_bandwidth(self.bw, GAIN_UNIT, self.full.was_ever_full());
        } else {
            self.check_probe_rtt_done(window, now);
        }
    }

    /// Section 5.5.11.2.
    fn undo_cwnd(&mut self, window: &CongestionWindow) -> u32 {
        self.handle_spurious_loss();
        window.cwnd.max(self.saved_cwnd)
    }
}

#[cfg(test)]
#[path = "bbr3_tests.rs"]
mod tests;
