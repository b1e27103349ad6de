//! Reaction to losses: section 5.5.10.

use super::super::path_model::GAIN_UNIT;
use super::super::{AckSample, LostPacket};
use super::undo::EndedMode;
use super::{AckDelivery, Bbr3, Bbr3Mode, was_sent_after};
use crate::modern::window::CongestionWindow;
use tcpcast_link::time::Nanos;

/// Loss threshold in percent of the packets in flight.
const LOSS_THRESHOLD_PERCENT: u64 = 2;

/// Returns 0.7 of a value, like CUBIC's reduction.
fn multiply_by_beta(value: u64) -> u64 {
    (u128::from(value) * 7 / 10) as u64
}

/// Packets delivered and lost in the current loss round.
#[derive(Clone, Copy, Debug, Default)]
pub struct LatestDelivery {
    bandwidth: u64,
    /// Maximum number of packets in a rate sample.
    pub(super) inflight: u32,
    loss_round_end: u32,
    /// A round since the last losses has ended.
    pub(super) loss_round_start: bool,
    /// Packets were lost in the round.
    pub(super) loss_in_round: bool,
    /// Number of lost ranges.
    pub(super) ranges: u32,
    last_lost: Option<u32>,
}

/// Bounds set by losses outside of probes, until the next probe; initially unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortTermBounds {
    pub(super) bandwidth: Option<u64>,
    pub(super) inflight: Option<u32>,
}

impl ShortTermBounds {
    /// Applies the bound to a bandwidth.
    pub fn bound_bandwidth(&self, bandwidth: u64) -> u64 {
        self.bandwidth.map_or(bandwidth, |max| max.min(bandwidth))
    }
}

impl Bbr3 {
    /// Called at the beginning of an acknowledgement's processing.
    pub(super) fn update_latest_delivery(&mut self, ack: &AckSample, delivery: AckDelivery) {
        let latest = &mut self.latest;
        latest.bandwidth = latest.bandwidth.max(delivery.bandwidth);
        latest.inflight = latest.inflight.max(delivery.packets);
        latest.loss_round_start = ack
            .rate
            .prior_delivered
            .is_some_and(|prior| was_sent_after(prior, latest.loss_round_end));
        if latest.loss_round_start {
            latest.loss_round_end = ack.total_delivered;
        }
    }

    /// Called at the end of an acknowledgement's processing.
    pub(super) fn advance_latest_delivery(&mut self, delivery: AckDelivery) {
        if self.latest.loss_round_start {
            self.latest.bandwidth = delivery.bandwidth;
            self.latest.inflight = delivery.packets;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.latest.loss_in_round = false;
        self.latest.bandwidth = 0;
        self.latest.inflight = 0;
        self.marks.reset_round();
    }

    /// Section 5.5.10.3: once per round with losses, sets the short-term bounds to the packets and
    /// rate delivered in the round, or to 0.7 of the previous bounds if that is more.
    pub(super) fn adapt_short_term_bounds(&mut self, window: &CongestionWindow) {
        if !self.latest.loss_round_start {
            return;
        }
        let may_reduce = !self.mode.probes_bandwidth();
        let before = self.short_term.inflight.unwrap_or(window.cwnd);
        if self.latest.loss_in_round && may_reduce {
            let bandwidth = self.short_term.bandwidth.unwrap_or_else(|| self.max_bw.max_value());
            let inflight = u64::from(before);
            self.short_term = ShortTermBounds {
                bandwidth: Some(self.latest.bandwidth.max(multiply_by_beta(bandwidth))),
                inflight: Some(self.latest.inflight.max(multiply_by_beta(inflight) as u32)),
            };
        }
        if let (true, Some(marked)) = (may_reduce, self.marks.reduced_inflight(before)) {
            let bound = self.short_term.inflight.map_or(marked, |bound| bound.min(marked));
            self.short_term.inflight = Some(bound);
        }
        self.latest.loss_in_round = false;
        self.marks.reset_round();
    }

    /// Section 5.5.10.2: whether more than 2 % of the packets in flight were lost.
    pub(super) fn is_loss_too_high(&self, in_flight: u32, lost: u32) -> bool {
        u64::from(lost) * 100 > u64::from(in_flight) * LOSS_THRESHOLD_PERCENT
            || (lost > 0 && !self.uses_sack)
    }

    /// Processes a detected loss.
    pub(super) fn handle_lost_packet(&mut self, window: &CongestionWindow, lost: &LostPacket) {
        self.delivered = lost.total_delivered;
        let follows = self.latest.last_lost.is_some_and(|last| lost.number == last + 1);
        self.latest.ranges += u32::from(!follows);
        self.latest.last_lost = Some(lost.number);
        if !self.latest.loss_in_round {
            self.latest.loss_round_end = self.delivered;
            self.save_state(window);
        }
        self.latest.loss_in_round = true;
        if self.probe_samples && self.is_loss_too_high(lost.in_flight, lost.lost_since) {
            let safe = inflight_at_loss(lost.in_flight, lost.lost_since);
            if self.mode == Bbr3Mode::Up {
                self.undo.ended = Some(EndedMode::Up);
            }
            self.handle_inflight_too_high(window, safe, lost.app_limited, lost.now);
        }
    }

    /// Reduces the long-term bound, once per probe and by at most a factor of 0.7.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        window: &CongestionWindow,
        safe: u32,
        app_limited: bool,
        now: Nanos,
    ) {
        self.went_too_high = true;
        self.probe_samples = false;
        if !app_limited {
            let min = multiply_by_beta(u64::from(self.target_inflight(window.cwnd))) as u32;
            self.inflight_longterm = Some(safe.max(min));
        }
        if self.mode == Bbr3Mode::Up {
            self.start_down(now);
        }
    }

    /// Minimum of the estimated BDP and the window.
    pub(super) fn target_inflight(&self, cwnd: u32) -> u32 {
        self.bdp_packets(self.bw, GAIN_UNIT).min(cwnd)
    }
}

/// Packets in flight when the losses, including this packet, reached 2 % of them.
pub(super) fn inflight_at_loss(in_flight: u32, lost: u32) -> u32 {
    let (before, lost_before) =
        (u64::from(in_flight.saturating_sub(1)), u64::from(lost.saturating_sub(1)));
    let budget = before * LOSS_THRESHOLD_PERCENT;
    let prefix = budget.saturating_sub(lost_before * 100) / (100 - LOSS_THRESHOLD_PERCENT);
    (before + prefix.min(1)) as u32
}
