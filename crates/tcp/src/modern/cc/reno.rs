//! Reno: RFC 5681.

use super::super::window::CongestionWindow;
use super::{AckSample, CongestionControl, ControlRules, WindowGrowthUnit};

/// Reno; the window grows by acknowledged packets or by acknowledgements.
#[derive(Clone, Copy, Debug)]
pub struct RenoControl {
    growth: WindowGrowthUnit,
}

impl RenoControl {
    /// Creates the state of a new connection.
    #[must_use]
    pub fn new(rules: &ControlRules) -> Self {
        Self { growth: rules.growth }
    }
}

impl CongestionControl for RenoControl {
    /// RFC 5681, section 3.1.
    #[inline(always)]
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        if !sample.cwnd_limited {
            return;
        }
        let mut acked = match self.growth {
            WindowGrowthUnit::PacketsAcked => sample.delivered,
            WindowGrowthUnit::EachAck => 1,
        };
        if window.in_slow_start() {
            acked = window.grow_in_slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        window.grow_by_credit(window.cwnd, acked);
    }

    /// RFC 5681, equation (4), with the window instead of FlightSize as in Linux.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        (window.cwnd / 2).max(2)
    }
}
