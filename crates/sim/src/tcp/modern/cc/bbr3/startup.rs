//! Startup and drain: sections 5.3.1 and 5.3.2.

use super::super::AckSample;
use super::super::path_model::UNIT;
use super::undo::Ended;
use super::{Bbr3, Mode};
use crate::tcp::modern::phase::PhaseName;
use crate::tcp::modern::window::Window;

/// Number of lost ranges per round that ends startup.
const RANGES: u32 = 6;
/// Maximum number of rounds of drain.
const DRAIN_ROUNDS: u32 = 3;

impl Bbr3 {
    pub(super) fn check_startup_done(&mut self, window: &mut Window, ack: &AckSample) {
        self.check_startup_loss(ack);
        if self.mode == Mode::Startup && self.full.reached() {
            self.mode = Mode::Drain { since: self.round };
            // Not used by BBR; as in Linux it indicates that startup has ended.
            window.ssthresh = self.inflight(self.max_bw.get(), UNIT);
        }
    }

    /// Section 5.3.1.3: a round of recovery has lost more than 2 %, in at least six ranges.
    fn check_startup_loss(&mut self, ack: &AckSample) {
        if self.mode == Mode::Startup && !self.full.reached() && self.is_startup_loss_high(ack) {
            self.undo.ended = Some(Ended::Startup);
            self.full.set_reached(true);
            let bdp = self.bdp(self.bw, UNIT);
            self.inflight_longterm = Some(bdp.max(self.latest.inflight));
        }
        if self.latest.loss_round_start {
            self.latest.ranges = 0;
        }
    }

    fn is_startup_loss_high(&self, ack: &AckSample) -> bool {
        let recovers = ack.phase == PhaseName::Recovery;
        if !self.uses_sack {
            return recovers && ack.lost > 0;
        }
        let lost = ack.total_lost.wrapping_sub(ack.rate.prior_lost);
        recovers
            && self.latest.loss_round_start
            && self.latest.ranges >= RANGES
            && self.is_too_high(ack.rate.in_flight, lost)
    }

    /// Section 5.3.2.
    pub(super) fn check_drain_done(&mut self, ack: &AckSample) {
        let Mode::Drain { since } = self.mode else { return };
        if ack.in_flight <= self.inflight(self.bw, UNIT) || self.round > since + DRAIN_ROUNDS {
            self.start_down(ack.now);
        }
    }
}
