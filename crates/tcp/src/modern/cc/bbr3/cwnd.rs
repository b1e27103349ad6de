//! Window: section 5.6.4.

use super::super::AckSample;
use super::super::path_model::{GAIN_UNIT, MIN_CWND, packets_carried_rounded_up};
use super::{Bbr3, Bbr3Mode};
use crate::modern::recovery_phase::PhaseName;
use crate::modern::window::CongestionWindow;

impl Bbr3 {
    /// Bandwidth times the minimum round-trip time times a gain, in packets.
    pub(super) fn bdp_packets(&self, bw: u64, gain: u64) -> u32 {
        self.min_rtt.map_or(self.initial_window, |rtt| packets_carried_rounded_up(bw, rtt, gain))
    }

    /// At least three bursts and four packets, plus two in the phase with a raised rate.
    fn quantize_inflight(&self, inflight: u32) -> u32 {
        let min = (3 * self.pace.burst_packets()).max(MIN_CWND);
        inflight.max(min) + if self.mode == Bbr3Mode::Up { 2 } else { 0 }
    }

    /// Target of packets in flight at a bandwidth: section 5.6.4.2.
    pub(super) fn target_inflight_at(&self, bw: u64, gain: u64) -> u32 {
        self.quantize_inflight(self.bdp_packets(bw, gain))
    }

    /// Window that fills the path, enlarged by the aggregation of acknowledgements.
    fn max_inflight(&self) -> u32 {
        let room = self.extra_acked.max_value() as u32;
        self.quantize_inflight(
            self.bdp_packets(self.bw, self.mode.cwnd_gain()).saturating_add(room),
        )
    }

    pub(super) fn save_cwnd(&mut self, cwnd: u32) {
        let good = self.phase < PhaseName::Recovery && !self.is_probing_rtt();
        self.saved_cwnd = if good { cwnd } else { self.saved_cwnd.max(cwnd) };
    }

    /// Section 5.6.4.5.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp_packets(self.bw, GAIN_UNIT / 2).max(MIN_CWND)
    }

    /// Section 5.6.4.6.
    pub(super) fn set_cwnd(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        let before = std::mem::replace(&mut self.phase, ack.phase);
        if before >= PhaseName::Recovery && ack.phase < PhaseName::Recovery {
            window.cwnd = window.cwnd.max(self.saved_cwnd);
        }
        if before >= PhaseName::Cwr && ack.phase < PhaseName::Cwr {
            self.end_recovery();
        }
        let max = self.max_inflight();
        let grown = window.cwnd.saturating_add(ack.delivered);
        if self.full.was_ever_full() {
            window.cwnd = grown.min(max);
        } else if window.cwnd < max || ack.total_delivered < self.initial_window {
            window.cwnd = grown;
        }
        window.cwnd = window.cwnd.max(MIN_CWND);
        if self.is_probing_rtt() {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        window.cwnd = self.bound_cwnd(window.cwnd);
    }

    /// Section 5.6.4.7.
    fn bound_cwnd(&self, cwnd: u32) -> u32 {
        let longterm = match self.mode {
            Bbr3Mode::Startup | Bbr3Mode::Drain { .. } => None,
            Bbr3Mode::Down | Bbr3Mode::Refill | Bbr3Mode::Up => self.inflight_longterm,
            Bbr3Mode::Cruise | Bbr3Mode::ProbeRtt { .. } => self.inflight_with_headroom(),
        };
        let bounds = [longterm, self.short_term.inflight];
        let max = bounds.into_iter().flatten().min();
        max.map_or(cwnd, |max| cwnd.min(max.max(MIN_CWND)))
    }
}
