//! MulTCP: Crowcroft and Oechslin, "Differentiated end-to-end Internet services using a weighted
//! proportional fair sharing TCP", ACM CCR 28(3), 1998, section 3.
//!
//! One connection that behaves like N Reno flows: its window grows by N packets per round trip, and
//! a loss event halves the window of only one of the N flows.

use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange};
use std::num::NonZeroU16;

/// MulTCP; windows in packets.
#[derive(Clone, Copy, Debug)]
pub struct MulTcpControl {
    flows: u32,
    /// Slow start triples the window per round trip below this window, then doubles it.
    triples_below: u32,
}

impl MulTcpControl {
    /// Creates the state of a new connection that emulates `flows` flows.
    #[must_use]
    pub fn new(flows: NonZeroU16, rules: &ControlRules) -> Self {
        let flows = u32::from(flows.get());
        Self { flows, triples_below: max_window_for_tripling(flows, rules.initial_window) }
    }
}

/// Window at which a window that is tripled per round trip from `first` packets equals N windows
/// that are doubled. They are equal after `ln N / (ln 3 - ln 2)` round trips.
fn max_window_for_tripling(flows: u32, first: u32) -> u32 {
    let rounds = libm::log(f64::from(flows)) / libm::log(1.5);
    // A float above the range of `u32` becomes its maximum.
    (f64::from(first) * libm::pow(3.0, rounds)) as u32
}

impl CongestionControl for MulTcpControl {
    #[inline(always)]
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        if !sample.cwnd_limited {
            return;
        }
        let mut acked = sample.delivered;
        if window.in_slow_start() {
            let growth = if window.cwnd < self.triples_below { 2 } else { 1 };
            acked = window.grow_in_slow_start(growth * acked) / growth;
            if acked == 0 {
                return;
            }
        }
        window.grow_by_credit(window.cwnd, acked.saturating_mul(self.flows));
    }

    /// One of the N flows halves its share of the window.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        let halves = 2 * u64::from(self.flows);
        ((u64::from(window.cwnd) * (halves - 1) / halves) as u32).max(2)
    }

    /// After a timeout, slow start begins with one packet.
    fn on_recovery_phase_change(
        &mut self,
        _window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        if change.phase == PhaseName::Loss {
            self.triples_below = max_window_for_tripling(self.flows, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Preset;
    use super::super::reno::RenoControl;
    use super::*;
    use tcpcast_link::time::SECOND;

    const LINUX: Preset = Preset::LinuxReno;

    fn multcp(flows: u16) -> MulTcpControl {
        MulTcpControl::new(NonZeroU16::new(flows).unwrap(), &LINUX.stack().control_rules())
    }

    /// Acknowledges the packets of a window one by one.
    fn acknowledge_window(control: &mut impl CongestionControl, window: &mut CongestionWindow) {
        for _ in 0..window.cwnd {
            control.on_ack(window, &AckSample::for_test(SECOND, 1, window.cwnd));
        }
    }

    /// Reduces the window as in a recovery.
    fn lose(control: &mut impl CongestionControl, window: &mut CongestionWindow) {
        window.ssthresh = control.ssthresh(window);
        *window = CongestionWindow { cwnd: window.ssthresh, credit: 0, ..*window };
    }

    #[test]
    fn sawtooth_loses_half_a_share_and_regains_it_in_half_a_share_of_round_trips() {
        for flows in [1, 2, 5, 10] {
            let mut control = multcp(flows);
            let share = 100;
            let peak = share * u32::from(flows);
            let mut window = CongestionWindow::new(peak);
            lose(&mut control, &mut window);
            assert_eq!(window.cwnd, peak - share / 2, "{flows} flows: factor 1 - 1/(2N)");
            // N packets per round trip, but cwnd grows within a round trip: slightly less.
            let mut rounds = 0;
            while window.cwnd < peak {
                acknowledge_window(&mut control, &mut window);
                rounds += 1;
            }
            let ideal = share / 2 / u32::from(flows);
            assert!((ideal..=ideal + ideal / 2 + 1).contains(&rounds), "{flows}: {rounds}");
        }
    }

    #[test]
    fn one_flow_is_reno() {
        let (mut control, mut reno) = (multcp(1), RenoControl::new(&LINUX.stack().control_rules()));
        let mut windows = [CongestionWindow::new(10), CongestionWindow::new(10)];
        for round in 0..40 {
            acknowledge_window(&mut control, &mut windows[0]);
            acknowledge_window(&mut reno, &mut windows[1]);
            if round % 7 == 3 {
                lose(&mut control, &mut windows[0]);
                lose(&mut reno, &mut windows[1]);
            }
            assert_eq!(windows[0], windows[1], "round {round}");
        }
    }

    #[test]
    fn slow_start_triples_until_the_window_equals_that_of_the_emulated_flows() {
        // Two windows of 10, 20, 40 packets against 10, 30, 90: equal after ln 2 / ln 1.5 = 1.7
        // round trips, at 65 packets.
        let mut control = multcp(2);
        let mut window = CongestionWindow::new(10);
        let mut widths = vec![];
        for _ in 0..4 {
            acknowledge_window(&mut control, &mut window);
            widths.push(window.cwnd);
        }
        assert_eq!(widths[0], 30);
        assert!((76..=84).contains(&widths[1]), "two flows: 80, MulTCP: {}", widths[1]);
        assert_eq!(widths[2], 2 * widths[1]);
    }
}
