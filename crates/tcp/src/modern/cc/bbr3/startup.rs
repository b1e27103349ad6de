//! Startup and drain: sections 5.3.1 and 5.3.2.

use super::super::AckSample;
use super::super::path_model::GAIN_UNIT;
use super::undo::EndedMode;
use super::{Bbr3, Bbr3Mode};
use crate::modern::recovery_phase::PhaseName;
use crate::modern::window::CongestionWindow;

/// Number of lost ranges per round that ends startup.
const MAX_LOST_RANGES: u32 = 6;
/// Maximum number of rounds of drain.
const DRAIN_ROUNDS: u32 = 3;

impl Bbr3 {
    pub(super) fn check_startup_done(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        self.check_startup_loss(ack);
        if self.mode == Bbr3Mode::Startup && self.full.was_ever_full() {
            self.mode = Bbr3Mode::Drain { since: self.round };
            // BBR does not use the threshold; as in Linux, it indicates that startup has ended.
            window.ssthresh = self.target_inflight_at(self.max_bw.max_value(), GAIN_UNIT);
        }
    }

    /// Section 5.3.1.3: a round of recovery has lost more than 2 %, in at least six ranges.
    fn check_startup_loss(&mut self, ack: &AckSample) {
        if self.mode == Bbr3Mode::Startup
            && !self.full.was_ever_full()
            && self.is_startup_loss_high(ack)
        {
            self.undo.ended = Some(EndedMode::Startup);
            self.end_startup();
        }
        if self.latest.loss_round_start {
            self.latest.ranges = 0;
        }
    }

    /// Startup has filled the queue too much.
    pub(super) fn end_startup(&mut self) {
        self.full.set_ever_full(true);
        let bdp = self.bdp_packets(self.bw, GAIN_UNIT);
        self.inflight_longterm = Some(bdp.max(self.latest.inflight));
    }

    fn is_startup_loss_high(&self, ack: &AckSample) -> bool {
        let recovers = ack.phase == PhaseName::Recovery;
        if !self.uses_sack {
            return recovers && ack.lost > 0;
        }
        let lost = ack.total_lost.wrapping_sub(ack.rate.prior_lost);
        recovers
            && self.latest.loss_round_start
            && self.latest.ranges >= MAX_LOST_RANGES
            && self.is_loss_too_high(ack.rate.in_flight, lost)
    }

    /// Section 5.3.2.
    pub(super) fn check_drain_done(&mut self, ack: &AckSample) {
        let Bbr3Mode::Drain { since } = self.mode else { return };
        if ack.in_flight <= self.target_inflight_at(self.bw, GAIN_UNIT)
            || self.round > since + DRAIN_ROUNDS
        {
            self.start_down(ack.now);
        }
    }
}
