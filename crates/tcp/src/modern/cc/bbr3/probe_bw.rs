//! Cycle that probes for bandwidth: section 5.3.3.

use super::super::AckSample;
use super::super::path_model::{GAIN_UNIT, MIN_CWND};
use super::{AckDelivery, Bbr3, Bbr3Mode, ShortTermBounds};
use crate::modern::window::CongestionWindow;
use tcpcast_link::time::{Nanos, SECOND};

/// Maximum number of rounds between two probes: section 5.3.3.8.2.
const MAX_ROUNDS_BETWEEN_PROBES: u32 = 63;
/// Percentage of the long-term bound left to other flows: section 2.7.
const HEADROOM_PERCENT: u64 = 15;

/// Schedule of the next probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeSchedule {
    /// Start of the cycle.
    since: Nanos,
    /// Time from the start to the next probe.
    pub(super) wait: Nanos,
    /// Rounds since the last probe.
    pub(super) rounds: u32,
}

/// Growth of the long-term bound: one packet per `per_packet` acknowledged packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongTermSlope {
    rounds: u32,
    acked: u32,
    per_packet: u32,
}

/// Type of packets covered by acknowledgements: section 2.14.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFeedback {
    /// Packets sent outside of a probe.
    NotProbing,
    /// Packets sent at the bandwidth to fill the pipe.
    Refilling,
    /// The probe has begun; acknowledgements cover packets sent before.
    Starting,
    /// Packets of the probe.
    Probing,
    /// The probe has ended; acknowledgements still cover its packets.
    Stopping,
}

impl Bbr3 {
    /// Section 5.3.3.9.
    pub(super) fn update_cycle(
        &mut self,
        window: &CongestionWindow,
        ack: &AckSample,
        delivery: AckDelivery,
    ) {
        if !self.full.was_ever_full() || self.adapt_long_term_bound(window, ack) {
            return;
        }
        let mode = self.mode;
        match mode {
            Bbr3Mode::Down | Bbr3Mode::Cruise if self.is_time_to_probe(window, ack.now) => {
                self.start_refill();
            }
            Bbr3Mode::Down if self.is_time_to_cruise(ack) => self.mode = Bbr3Mode::Cruise,
            Bbr3Mode::Refill if self.round_start => {
                self.probe_samples = true;
                self.start_up(window, delivery);
            }
            Bbr3Mode::Up if self.is_time_to_go_down(window, ack, delivery) => {
                self.went_too_high = false;
                self.start_down(ack.now);
            }
            _ => (),
        }
    }

    pub(super) fn start_down(&mut self, now: Nanos) {
        self.reset_congestion_signals();
        // Section 5.3.3.8.3: 2 to 3 s, and 0 or 1 extra rounds.
        self.cycle.rounds = self.random.draw_below(2) as u32;
        self.cycle.wait = 2 * SECOND + self.random.draw_below(SECOND);
        self.cycle.since = now;
        self.feedback = AckFeedback::Stopping;
        self.start_round();
        self.mode = Bbr3Mode::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.short_term = ShortTermBounds::default();
        self.slope = LongTermSlope::default();
        self.precautionary = false;
        self.feedback = AckFeedback::Refilling;
        self.start_round();
        self.mode = Bbr3Mode::Refill;
    }

    fn start_up(&mut self, window: &CongestionWindow, delivery: AckDelivery) {
        self.feedback = AckFeedback::Starting;
        self.start_round();
        self.full.restart_detection(delivery.bandwidth);
        self.mode = Bbr3Mode::Up;
        self.raise_slope(window);
    }

    /// Section 5.3.3.8: a probe is due after a random time, or earlier, after the number of rounds
    /// in which Reno would recover.
    fn is_time_to_probe(&self, window: &CongestionWindow, now: Nanos) -> bool {
        let rounds = self.target_inflight(window.cwnd).min(MAX_ROUNDS_BETWEEN_PROBES);
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds >= rounds
    }

    /// Section 5.3.3.1.
    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        self.inflight_with_headroom().is_none_or(|max| ack.in_flight <= max)
            && ack.in_flight <= self.target_inflight_at(self.max_bw.max_value(), GAIN_UNIT)
    }

    /// Section 5.3.3.7.
    fn is_time_to_go_down(
        &mut self,
        window: &CongestionWindow,
        ack: &AckSample,
        delivery: AckDelivery,
    ) -> bool {
        // Section 5.3.3.6: a level that lost too much before is left immediately.
        if self.went_too_high && self.inflight_longterm.is_some_and(|max| ack.in_flight >= max) {
            self.precautionary = true;
            return true;
        }
        if ack.fills_window && self.inflight_longterm.is_some_and(|max| window.cwnd >= max) {
            // The rate is limited by the bound, not by the path.
            self.full.restart_detection(delivery.bandwidth);
            return false;
        }
        self.full.is_full()
    }

    /// Long-term bound minus headroom for other flows.
    pub(super) fn inflight_with_headroom(&self) -> Option<u32> {
        self.inflight_longterm.map(|max| {
            let headroom = (u64::from(max) * HEADROOM_PERCENT / 100).max(1) as u32;
            max.saturating_sub(headroom).max(MIN_CWND)
        })
    }

    /// Section 5.3.3.5: one packet in the first round, two in the second, four in the third.
    fn raise_slope(&mut self, window: &CongestionWindow) {
        let growth = 1 << self.slope.rounds;
        self.slope.rounds = (self.slope.rounds + 1).min(30);
        self.slope.per_packet = (window.cwnd / growth).max(1);
    }

    fn raise_long_term_bound(&mut self, window: &CongestionWindow, ack: &AckSample, bound: u32) {
        if !ack.fills_window || window.cwnd < bound {
            return;
        }
        self.slope.acked += ack.delivered;
        let packets = self.slope.acked / self.slope.per_packet;
        self.slope.acked %= self.slope.per_packet;
        self.inflight_longterm = Some(bound.saturating_add(packets));
        if self.round_start {
            self.raise_slope(window);
        }
    }

    /// Updates the feedback state, and raises the long-term bound; returns whether the next probe
    /// begins.
    fn adapt_long_term_bound(&mut self, window: &CongestionWindow, ack: &AckSample) -> bool {
        if self.round_start && self.feedback == AckFeedback::Starting {
            self.feedback = AckFeedback::Probing;
        }
        if self.round_start && self.feedback == AckFeedback::Stopping {
            self.probe_samples = false;
            self.feedback = AckFeedback::NotProbing;
            if self.mode.is_cycle_phase() && !ack.rate.app_limited {
                self.max_bw.start_next_cycle();
            }
            if self.mode.is_cycle_phase() && self.precautionary && !self.went_too_high {
                self.start_refill();
                return true;
            }
        }
        if self.is_mark_share_too_high(ack) {
            if self.probe_samples {
                let sent = &ack.rate;
                self.handle_inflight_too_high(window, sent.in_flight, sent.app_limited, ack.now);
            }
            return false;
        }
        let Some(bound) = self.inflight_longterm else { return false };
        let lost = ack.total_lost.wrapping_sub(ack.rate.prior_lost);
        if ack.rate.prior_delivered.is_some() && !self.is_loss_too_high(ack.rate.in_flight, lost) {
            let bound = bound.max(ack.rate.in_flight);
            self.inflight_longterm = Some(bound);
            if self.mode == Bbr3Mode::Up {
                self.raise_long_term_bound(window, ack, bound);
            }
        }
        false
    }
}
