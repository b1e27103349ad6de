//! Startup and drain: until the pipe is full, and until what that queued is gone.

use super::super::AckSample;
use super::{Bbr, Mode, UNIT};
use crate::tcp::modern::window::Window;

/// Whether the pipe is full: the bandwidth has not grown by a quarter in three rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    bandwidth: u64,
    rounds: u8,
    reached: bool,
}

impl FullPipe {
    /// Whether it is.
    #[inline(always)]
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// A round has passed in which the application did not limit.
    pub fn on_round(&mut self, bandwidth: u64) {
        if self.reached {
            return;
        }
        if bandwidth >= self.bandwidth + self.bandwidth / 4 {
            self.bandwidth = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= 3;
    }

    /// What the bandwidth was does not count any more.
    pub fn forget_bandwidth(&mut self) {
        self.bandwidth = 0;
    }

    /// Rounds without growth are counted anew.
    pub fn forget_rounds(&mut self) {
        self.rounds = 0;
    }
}

impl Bbr {
    pub(super) fn check_drain(&mut self, window: &mut Window, ack: &AckSample) {
        if self.mode == Mode::Startup && self.full.reached() {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.max_bw(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_net(ack, ack.in_flight) <= self.inflight(self.max_bw(), UNIT)
        {
            self.enter_probe_bw(ack.now);
        }
    }
}
