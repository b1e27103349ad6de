//! Minimum round-trip time, which BBR probes after ten seconds without a new minimum.

use super::super::AckSample;
use super::super::path_model::MinRttProbe;
use super::{Bbr, BbrMode, MIN_CWND, MIN_RTT_WINDOW};
use crate::modern::window::CongestionWindow;
use tcpcast_link::time::Nanos;

impl Bbr {
    /// Whether BBR probes for the minimum round-trip time. Few packets are sent meanwhile, so rate
    /// samples do not describe the path.
    #[must_use]
    pub fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, BbrMode::ProbeRtt(_))
    }

    pub(super) fn update_min_rtt(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        let expired = ack.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt {
            let smaller = self.min_rtt.is_none_or(|min| rtt < min);
            if smaller || (expired && !ack.maybe_delayed) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = ack.now;
            }
        }
        if expired && !self.restarts_from_idle && !self.is_probing_rtt() {
            // The mode changes first, so a larger window saved before is kept.
            self.mode = BbrMode::ProbeRtt(MinRttProbe::Emptying);
            self.save_cwnd(window.cwnd);
        }
        if let BbrMode::ProbeRtt(mut probe) = self.mode {
            let within_limit = ack.in_flight <= MIN_CWND;
            let begins = probe.on_ack(ack.now, within_limit, self.round_start);
            self.mode = BbrMode::ProbeRtt(probe);
            if begins {
                self.round_end = ack.total_delivered;
            } else if probe.is_round_done() {
                self.check_probe_rtt_done(window, ack.now);
            }
        }
        if ack.delivered > 0 {
            self.restarts_from_idle = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, window: &mut CongestionWindow, now: Nanos) {
        let BbrMode::ProbeRtt(probe) = self.mode else { return };
        if !probe.is_long_enough(now) {
            return;
        }
        self.min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.saved_cwnd);
        if self.full.was_ever_full() {
            self.enter_probe_bw(now);
        } else {
            self.mode = BbrMode::Startup;
        }
    }
}
