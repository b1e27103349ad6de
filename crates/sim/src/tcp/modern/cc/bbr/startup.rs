//! Startup until the pipe is full, then drain until the resulting queue is empty.

use super::super::AckSample;
use super::{Bbr, Mode, UNIT};
use crate::tcp::modern::window::Window;

impl Bbr {
    pub(super) fn check_drain(&mut self, window: &mut Window, ack: &AckSample) {
        if self.mode == Mode::Startup && self.full.reached() {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.max_bw.get(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.packets_in_net(ack, ack.in_flight) <= self.inflight(self.max_bw.get(), UNIT)
        {
            self.enter_probe_bw(ack.now);
        }
    }
}
