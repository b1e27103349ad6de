//! What losses say: section 5.5.10.

use super::super::path_model::UNIT;
use super::super::{AckSample, LostPacket};
use super::undo::EndedState;
use super::{Bbr3, Delivery, Mode, reached};
use crate::clock::Nanos;
use crate::tcp::modern::window::Window;

/// More than so many percent of what is in flight is too much.
const THRESHOLD_PERCENT: u64 = 2;

/// 0.7 of a value, as CUBIC leaves of its window.
fn beta(value: u64) -> u64 {
    (u128::from(value) * 7 / 10) as u64
}

/// What was delivered in the current round of losses, and what was lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latest {
    bandwidth: u64,
    /// Packets that one acknowledgement told to be delivered, at most.
    pub(super) inflight: u32,
    loss_round_end: u32,
    /// A round since the last losses is over.
    pub(super) loss_round_start: bool,
    /// Something was lost in it.
    pub(super) loss_in_round: bool,
    /// How many ranges were.
    pub(super) ranges: u32,
    last_lost: Option<u32>,
}

/// Bounds that losses outside of probes set, until the next probe; unbounded at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortTerm {
    pub(super) bandwidth: Option<u64>,
    pub(super) inflight: Option<u32>,
}

impl ShortTerm {
    /// A bandwidth, bounded.
    pub fn bound(&self, bandwidth: u64) -> u64 {
        self.bandwidth.map_or(bandwidth, |max| max.min(bandwidth))
    }
}

impl Bbr3 {
    /// Near the start of an acknowledgement.
    pub(super) fn update_latest_delivery(&mut self, ack: &AckSample, delivery: Delivery) {
        let latest = &mut self.latest;
        latest.bandwidth = latest.bandwidth.max(delivery.bandwidth);
        latest.inflight = latest.inflight.max(delivery.packets);
        latest.loss_round_start =
            ack.rate.prior_delivered.is_some_and(|prior| reached(prior, latest.loss_round_end));
        if latest.loss_round_start {
            latest.loss_round_end = ack.total_delivered;
        }
    }

    /// Near its end.
    pub(super) fn advance_latest_delivery(&mut self, delivery: Delivery) {
        if self.latest.loss_round_start {
            self.latest.bandwidth = delivery.bandwidth;
            self.latest.inflight = delivery.packets;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.latest.loss_in_round = false;
        self.latest.bandwidth = 0;
        self.latest.inflight = 0;
    }

    /// Section 5.5.10.3: once a round with losses, what was delivered in it, or 0.7 of before.
    pub(super) fn adapt_short_term(&mut self, window: &Window) {
        if !self.latest.loss_round_start {
            return;
        }
        if self.latest.loss_in_round && !self.mode.probes_bandwidth() {
            let bandwidth = self.short_term.bandwidth.unwrap_or_else(|| self.max_bw.get());
            let inflight = u64::from(self.short_term.inflight.unwrap_or(window.cwnd));
            self.short_term = ShortTerm {
                bandwidth: Some(self.latest.bandwidth.max(beta(bandwidth))),
                inflight: Some(self.latest.inflight.max(beta(inflight) as u32)),
            };
        }
        self.latest.loss_in_round = false;
    }

    /// Section 5.5.10.2: whether more than 2 % was lost of what was in flight.
    pub(super) fn is_too_high(&self, in_flight: u32, lost: u32) -> bool {
        u64::from(lost) * 100 > u64::from(in_flight) * THRESHOLD_PERCENT
            || (lost > 0 && !self.uses_sack)
    }

    /// A packet is found lost.
    pub(super) fn handle_lost(&mut self, window: &Window, lost: &LostPacket) {
        self.delivered = lost.total_delivered;
        let follows = self.latest.last_lost.is_some_and(|last| lost.number == last + 1);
        self.latest.ranges += u32::from(!follows);
        self.latest.last_lost = Some(lost.number);
        if !self.latest.loss_in_round {
            self.latest.loss_round_end = self.delivered;
            self.save_state(window);
        }
        self.latest.loss_in_round = true;
        if self.probe_samples && self.is_too_high(lost.in_flight, lost.lost_since) {
            let safe = inflight_at_loss(lost.in_flight, lost.lost_since);
            self.handle_too_high(window, safe, lost.app_limited, lost.now);
        }
    }

    /// Once a probe: the long-term bound comes down, by 0.3 at most.
    fn handle_too_high(&mut self, window: &Window, safe: u32, app_limited: bool, now: Nanos) {
        self.went_too_high = true;
        self.probe_samples = false;
        if !app_limited {
            let min = beta(u64::from(self.target_inflight(window.cwnd))) as u32;
            self.inflight_longterm = Some(safe.max(min));
        }
        if self.mode == Mode::Up {
            self.undo.ended = Some(EndedState::Up);
            self.start_down(now);
        }
    }

    /// The estimated BDP, or the window where that is less.
    pub(super) fn target_inflight(&self, cwnd: u32) -> u32 {
        self.bdp(self.bw, UNIT).min(cwnd)
    }
}

/// What was in flight when the losses, of which this packet's is one, came to 2 % of it.
pub(super) fn inflight_at_loss(in_flight: u32, lost: u32) -> u32 {
    let (before, lost_before) =
        (u64::from(in_flight.saturating_sub(1)), u64::from(lost.saturating_sub(1)));
    let budget = before * THRESHOLD_PERCENT;
    let prefix = budget.saturating_sub(lost_before * 100) / (100 - THRESHOLD_PERCENT);
    (before + prefix.min(1)) as u32
}
