//! Window: the packets in flight given by the model, with room for delayed acknowledgements.

use super::super::AckSample;
use super::{Bbr, INITIAL_CWND, MIN_CWND, Mode, packets};
use crate::tcp::modern::phase::PhaseName;
use crate::tcp::modern::window::Window;

impl Bbr {
    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        self.min_rtt.map_or(INITIAL_CWND, |rtt| packets(bw, rtt, gain))
    }

    /// Adds room for three bursts, rounds up to an even number, and adds two packets in the phase
    /// with a raised rate.
    fn with_quantization(&self, cwnd: u32) -> u32 {
        let cwnd = (cwnd + 3 * self.pace.burst()).next_multiple_of(2);
        let raises = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        cwnd + if raises { 2 } else { 0 }
    }

    /// Target of packets in flight at a bandwidth.
    pub(super) fn inflight(&self, bw: u64, gain: u64) -> u32 {
        self.with_quantization(self.bdp(bw, gain))
    }

    pub(super) fn save_cwnd(&mut self, cwnd: u32) {
        let good = self.phase < PhaseName::Recovery && !self.is_probing_rtt();
        self.saved_cwnd = if good { cwnd } else { self.saved_cwnd.max(cwnd) };
    }

    pub(super) fn set_cwnd(&mut self, window: &mut Window, ack: &AckSample, bw: u64) {
        if ack.delivered > 0 {
            let cwnd = self.recover_or_restore(window.cwnd, ack);
            window.cwnd = if self.packet_conservation {
                cwnd.max(ack.in_flight + ack.delivered)
            } else {
                self.towards_target(cwnd, ack, bw)
            };
        }
        if self.is_probing_rtt() {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }

    fn towards_target(&self, cwnd: u32, ack: &AckSample, bw: u64) -> u32 {
        let room = if self.full.reached() { self.aggregation.room(bw) } else { 0 };
        let target = self.with_quantization(self.bdp(bw, self.cwnd_gain()) + room);
        let cwnd = if self.full.reached() {
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
    fn recover_or_restore(&mut self, cwnd: u32, ack: &AckSample) -> u32 {
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
