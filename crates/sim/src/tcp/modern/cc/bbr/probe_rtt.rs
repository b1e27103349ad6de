//! The smallest round-trip time, and the probe for it when none was seen for ten seconds.

use super::super::AckSample;
use super::{Bbr, MIN_CWND, MIN_RTT_WINDOW, Mode};
use crate::clock::Nanos;
use crate::tcp::modern::stack::MILLISECOND;
use crate::tcp::modern::window::Window;

/// How long few packets are in flight, at least.
const LENGTH: Nanos = 200 * MILLISECOND;

impl Bbr {
    /// Whether rate samples of now say nothing of the path.
    #[must_use]
    pub fn probes_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }

    pub(super) fn update_min_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        let expired = ack.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt {
            let smaller = self.min_rtt.is_none_or(|min| rtt < min);
            if smaller || (expired && !ack.maybe_delayed) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = ack.now;
            }
        }
        if expired && !self.restarts_from_idle && !self.probes_rtt() {
            self.save_cwnd(window.cwnd);
            self.mode = Mode::ProbeRtt { until: None };
        }
        if let Mode::ProbeRtt { until } = self.mode {
            match until {
                None if ack.in_flight <= MIN_CWND => {
                    self.mode = Mode::ProbeRtt { until: Some((ack.now + LENGTH, false)) };
                    self.round_end = ack.total_delivered;
                }
                Some((at, round_done)) => {
                    let round_done = round_done || self.round_start;
                    self.mode = Mode::ProbeRtt { until: Some((at, round_done)) };
                    if round_done {
                        self.check_probe_rtt_done(window, ack.now);
                    }
                }
                None => (),
            }
        }
        if ack.delivered > 0 {
            self.restarts_from_idle = false;
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: Nanos) {
        let Mode::ProbeRtt { until: Some((at, _)) } = self.mode else { return };
        if now <= at {
            return;
        }
        self.min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.saved_cwnd);
        if self.full.reached() {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
}
