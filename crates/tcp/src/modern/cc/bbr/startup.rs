//! Startup until the pipe is full, then drain until the resulting queue is empty.

use super::super::AckSample;
use super::{Bbr, BbrMode, GAIN_UNIT};
use crate::modern::window::CongestionWindow;

impl Bbr {
    pub(super) fn check_drain(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        if self.mode == BbrMode::Startup && self.full.was_ever_full() {
            self.mode = BbrMode::Drain;
            window.ssthresh = self.target_inflight(self.max_bw.max_value(), GAIN_UNIT);
        }
        if self.mode == BbrMode::Drain
            && self.packets_in_net_at_next_send(ack, ack.in_flight)
                <= self.target_inflight(self.max_bw.max_value(), GAIN_UNIT)
        {
            self.enter_probe_bw(ack.now);
        }
    }
}
