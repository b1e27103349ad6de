//! Gain cycle: one round trip at 5/4 of the bandwidth, one at 3/4, then six at the bandwidth.

use super::super::AckSample;
use super::{Bbr, BbrMode, GAIN_UNIT, packets_carried_rounded_up};
use tcpcast_link::time::Nanos;

/// Pacing gains.
pub const PACING_GAIN_CYCLE: [u64; 8] = [
    GAIN_UNIT * 5 / 4,
    GAIN_UNIT * 3 / 4,
    GAIN_UNIT,
    GAIN_UNIT,
    GAIN_UNIT,
    GAIN_UNIT,
    GAIN_UNIT,
    GAIN_UNIT,
];

/// Number of phases in which the cycle may begin: all except the draining one.
const START_PHASES: u64 = 7;

impl Bbr {
    /// Begins the cycle at a random phase, so that flows are not synchronized.
    pub(super) fn enter_probe_bw(&mut self, now: Nanos) {
        let before = 7 - self.random.draw_below(START_PHASES) as u8;
        self.mode = BbrMode::ProbeBw { phase: (before + 1) % 8, since: now };
    }

    pub(super) fn update_cycle(&mut self, ack: &AckSample) {
        let BbrMode::ProbeBw { phase, since } = self.mode else { return };
        if self.is_phase_over(ack, since) {
            self.mode = BbrMode::ProbeBw { phase: (phase + 1) % 8, since: ack.now };
        }
    }

    fn is_phase_over(&self, ack: &AckSample, since: Nanos) -> bool {
        let full_length = self.min_rtt.is_none_or(|min| ack.now - since > min);
        let gain = self.pacing_gain();
        if gain == GAIN_UNIT {
            return full_length;
        }
        let in_flight = self.packets_in_net_at_next_send(ack, ack.prior_in_flight);
        let bw = self.max_bw.max_value();
        if gain > GAIN_UNIT {
            // A phase with a raised rate lasts until the target is in flight, unless packets are
            // lost.
            return full_length && (ack.lost > 0 || in_flight >= self.target_inflight(bw, gain));
        }
        full_length || in_flight <= self.target_inflight(bw, GAIN_UNIT)
    }

    /// Packets in the network at the time when the pacer allows the next packet.
    pub(super) fn packets_in_net_at_next_send(&self, ack: &AckSample, in_flight: u32) -> u32 {
        let wait = ack.pace_at.saturating_sub(ack.now);
        let delivered = packets_carried_rounded_up(self.bandwidth(), wait, GAIN_UNIT)
            .saturating_sub(u32::from(wait > 0));
        let burst = if self.pacing_gain() > GAIN_UNIT { self.pace.burst_packets() } else { 0 };
        (in_flight + burst).saturating_sub(delivered)
    }
}
