//! Minimum round-trip time, and the probe that measures it: section 5.3.4.

use super::super::AckSample;
use super::super::path_model::MinRttProbe;
use super::probe_bw::AckFeedback;
use super::{Bbr3, Bbr3Mode, ShortTermBounds};
use crate::modern::window::CongestionWindow;
use tcpcast_link::time::{Nanos, SECOND};

/// Time without a new minimum round-trip time after which a probe is due.
const PROBE_RTT_INTERVAL: Nanos = 5 * SECOND;
/// Time after which the minimum expires.
const MIN_RTT_WINDOW: Nanos = 10 * SECOND;

/// Minimum round-trip time since the last probe.
#[derive(Clone, Copy, Debug)]
pub struct MinDelaySinceProbe {
    rtt: Option<Nanos>,
    at: Nanos,
    expired: bool,
}

impl MinDelaySinceProbe {
    /// Initial state without a sample.
    pub fn new(now: Nanos) -> Self {
        Self { rtt: None, at: now, expired: false }
    }
}

impl Bbr3 {
    /// Whether BBR probes for the minimum round-trip time. Few packets are sent meanwhile, so rate
    /// samples do not describe the path.
    #[must_use]
    pub fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, Bbr3Mode::ProbeRtt(_))
    }

    /// Section 5.3.4.3.
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        let smallest = &mut self.smallest;
        smallest.expired = ack.now > smallest.at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt {
            if smallest.expired || smallest.rtt.is_none_or(|min| rtt < min) {
                (smallest.rtt, smallest.at) = (Some(rtt), ack.now);
            }
        }
        let Some(rtt) = smallest.rtt else { return };
        let expired = ack.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if expired || self.min_rtt.is_none_or(|min| rtt < min) {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), smallest.at);
        }
    }

    pub(super) fn check_probe_rtt(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        if !self.is_probing_rtt() && self.smallest.expired && !self.restarts_from_idle {
            self.save_cwnd(window.cwnd);
            self.mode = Bbr3Mode::ProbeRtt(MinRttProbe::Emptying);
            self.feedback = AckFeedback::Stopping;
            self.start_round();
        }
        if let Bbr3Mode::ProbeRtt(mut probe) = self.mode {
            let within_limit = ack.in_flight <= self.probe_rtt_cwnd();
            let begins = probe.on_ack(ack.now, within_limit, self.round_start);
            self.mode = Bbr3Mode::ProbeRtt(probe);
            if begins {
                self.start_round();
            } else if probe.is_round_done() {
                self.check_probe_rtt_done(window, ack.now);
            }
        }
        if ack.delivered > 0 {
            self.restarts_from_idle = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, window: &mut CongestionWindow, now: Nanos) {
        let Bbr3Mode::ProbeRtt(probe) = self.mode else { return };
        if !probe.is_long_enough(now) {
            return;
        }
        self.smallest.at = now;
        window.cwnd = window.cwnd.max(self.saved_cwnd);
        self.exit_probe_rtt(now);
    }

    /// Section 5.3.4.4: the queue is empty, so the cycle continues with Cruise.
    fn exit_probe_rtt(&mut self, now: Nanos) {
        self.short_term = ShortTermBounds::default();
        if self.full.was_ever_full() {
            self.start_down(now);
            self.mode = Bbr3Mode::Cruise;
        } else {
            self.mode = Bbr3Mode::Startup;
        }
    }
}
