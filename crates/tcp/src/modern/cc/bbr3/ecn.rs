//! Reaction to marks of a queue with a shallow threshold. The draft specifies no such reaction
//! (section 3.7). The rules are those of google/bbr (`tcp_bbr.c`) for packets with ECT(0), on
//! routes with the feature `ecn_low`.

use super::super::AckSample;
use super::super::path_model::GAIN_UNIT;
use super::{Bbr3, Bbr3Mode, was_sent_after};
use std::collections::VecDeque;
use tcpcast_link::time::{MILLISECOND, Nanos};

/// Minimum round-trip time above which marks are ignored: `bbr_ecn_max_rtt_us`.
const MAX_RTT: Nanos = 5 * MILLISECOND;
/// Weight of a new sample of the share of marked packets: `bbr_ecn_alpha_gain`.
const ALPHA_GAIN: u64 = GAIN_UNIT / 16;
/// A round with marks reduces the window by this factor times `alpha`: `bbr_ecn_factor`.
const FACTOR: u64 = GAIN_UNIT / 3;
/// Share of marked packets above which too much is in flight: `bbr_ecn_thresh`.
const MAX_SHARE: u64 = GAIN_UNIT / 2;
/// Rounds with such a share that end startup: `bbr_full_ecn_cnt`.
const STARTUP_ROUNDS: u32 = 2;

/// Packets delivered and marked so far; both counters wrap around.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u32,
    marked: u32,
}

impl Totals {
    fn of_ack(ack: &AckSample) -> Self {
        Self { delivered: ack.total_delivered, marked: ack.total_delivered_ce }
    }

    /// Share of marked packets since earlier totals; [`None`] if none were delivered.
    fn share_since(self, earlier: Self) -> Option<u64> {
        let delivered = u64::from(self.delivered.wrapping_sub(earlier.delivered));
        let marked = u64::from(self.marked.wrapping_sub(earlier.marked));
        (marked * GAIN_UNIT).checked_div(delivered)
    }
}

/// Marks that a connection has received.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// Whether the connection uses ECN.
    enabled: bool,
    /// Whether the round-trip time was short enough.
    eligible: bool,
    /// Moving average of the share of marked packets, initially 1.
    alpha: u64,
    /// Totals at the last update of `alpha`. `last`: totals at each acknowledgement since the
    /// newest delivered packet was sent.
    at_update: Totals,
    last: VecDeque<Totals>,
    /// Whether packets were marked in the round.
    in_round: bool,
    /// Rounds of startup in a row with too many marks.
    startup_rounds: u32,
}

impl Marks {
    pub(super) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            eligible: false,
            alpha: GAIN_UNIT,
            at_update: Totals::default(),
            last: VecDeque::new(),
            in_round: false,
            startup_rounds: 0,
        }
    }

    pub(super) fn reset_round(&mut self) {
        self.in_round = false;
    }

    /// Short-term bound of the packets in flight after a round with marks.
    pub(super) fn reduced_inflight(&self, inflight: u32) -> Option<u32> {
        let cut = GAIN_UNIT - self.alpha * FACTOR / GAIN_UNIT;
        self.in_round.then(|| (u64::from(inflight) * cut / GAIN_UNIT) as u32)
    }
}

impl Bbr3 {
    /// Counts the marks of an acknowledgement, after rounds were updated.
    pub(super) fn update_marks(&mut self, ack: &AckSample) {
        let marks = &mut self.marks;
        if !marks.enabled {
            return;
        }
        let (now, before) = (Totals::of_ack(ack), marks.last.back().copied().unwrap_or_default());
        marks.last.push_back(now);
        if let Some(prior) = ack.rate.prior_delivered {
            while marks.last.get(1).is_some_and(|at| was_sent_after(prior, at.delivered)) {
                marks.last.pop_front();
            }
        }
        if self.round_start {
            marks.eligible |= self.min_rtt.is_some_and(|rtt| rtt <= MAX_RTT);
            if let (true, Some(share)) = (marks.eligible, now.share_since(marks.at_update)) {
                let kept = (GAIN_UNIT - ALPHA_GAIN) * marks.alpha / GAIN_UNIT;
                marks.alpha = (kept + ALPHA_GAIN * share / GAIN_UNIT).min(GAIN_UNIT);
                marks.at_update = now;
                let is_high = share >= MAX_SHARE;
                marks.startup_rounds = if is_high { marks.startup_rounds + 1 } else { 0 };
            }
        }
        marks.in_round |= marks.eligible && now.marked != before.marked;
        if self.mode == Bbr3Mode::Startup && self.marks.startup_rounds >= STARTUP_ROUNDS {
            self.end_startup();
        }
    }

    /// Whether more than half of the packets that were delivered since the newest one was sent were
    /// marked.
    pub(super) fn is_mark_share_too_high(&self, ack: &AckSample) -> bool {
        let sent = self.marks.last.front().filter(|_| ack.rate.prior_delivered.is_some());
        let share = sent.and_then(|totals| Totals::of_ack(ack).share_since(*totals));
        self.marks.eligible && share.is_some_and(|share| share > MAX_SHARE)
    }
}
