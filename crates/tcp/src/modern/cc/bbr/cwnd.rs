//! Window: the target of packets in flight by the model, enlarged because acknowledgements may be
//! delayed.

use super::super::AckSample;
use super::{Bbr, BbrMode, INITIAL_CWND, MIN_CWND, packets_carried_rounded_up};
use crate::modern::recovery_phase::PhaseName;
use crate::modern::window::CongestionWindow;

impl Bbr {
    fn bdp_packets(&self, bw: u64, gain: u64) -> u32 {
        self.min_rtt.map_or(INITIAL_CWND, |rtt| packets_carried_rounded_up(bw, rtt, gain))
    }

    /// Adds room for three bursts, rounds up to an even number, and adds two packets in the phase
    /// with a raised rate.
    fn with_quantization(&self, cwnd: u32) -> u32 {
        let cwnd = (cwnd + 3 * self.pace.burst_packets()).next_multiple_of(2);
        let raises = matches!(self.mode, BbrMode::ProbeBw { phase: 0, .. });
        cwnd + if raises { 2 } else { 0 }
    }

    /// Target of packets in flight at a bandwidth.
    pub(super) fn target_inflight(&self, bw: u64, gain: u64) -> u32 {
        self.with_quantization(self.bdp_packets(bw, gain))
    }

    pub(super) fn save_cwnd(&mut self, cwnd: u32) {
        let good = self.phase < PhaseName::Recovery && !self.is_probing_rtt();
        self.saved_cwnd = if good { cwnd } else { self.saved_cwnd.max(cwnd) };
    }

    pub(super) fn set_cwnd(&mut self, window: &mut CongestionWindow, ack: &AckSample, bw: u64) {
        if ack.delivered > 0 {
            let cwnd = self.reduce_or_restore_cwnd(window.cwnd, ack);
            window.cwnd = if self.packet_conservation {
                cwnd.max(ack.in_flight + ack.delivered)
            } else {
                self.cwnd_towards_target(cwnd, ack, bw)
            };
        }
        if self.is_probing_rtt() {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }

    fn cwnd_towards_target(&self, cwnd: u32, ack: &AckSample, bw: u64) -> u32 {
        let room =
            if self.full.was_ever_full() { self.aggregation.extra_window_packets(bw) } else { 0 };
        let target = self.with_quantization(self.bdp_packets(bw, self.cwnd_gain()) + room);
        let cwnd = if self.full.was_ever_full() {
            (cwnd + ack.delivered).min(target)
        } else if cwnd < target || ack.total_delivered < INITIAL_CWND {
            cwnd + ack.delivered
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }

    /// Subtracts losses from the window. A recovery begins with the packets in flight; the previous
    /// window is restored after it.
    fn reduce_or_restore_cwnd(&mut self, cwnd: u32, ack: &AckSample) -> u32 {
        let mut cwnd = if ack.lost > 0 { cwnd.saturating_sub(ack.lost).max(1) } else { cwnd };
        let before = self.phase;
        if ack.phase == PhaseName::Recovery && before != PhaseName::Recovery {
            self.packet_conservation = true;
            self.round_end = ack.total_delivered;
            cwnd = ack.in_flight + ack.delivered;
        } else if before >= PhaseName::Recovery && ack.phase < PhaseName::Recovery {
            cwnd = cwnd.max(self.saved_cwnd);
            self.packet_conservation = false;
        }
        self.phase = ack.phase;
        cwnd
    }
}
