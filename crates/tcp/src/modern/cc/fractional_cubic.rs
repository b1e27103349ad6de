//! CUBIC by the formulas of RFC 8312 with a window in bytes, as quinn implements it.
//!
//! Under random loss, its windows are a few packets larger than those of Linux. The window grows
//! from the reduction on, not only after recovery. It follows the estimate of Reno's window without
//! waiting for whole packets, and reductions keep fractions of a packet.

use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::{AckSample, CongestionControl, RecoveryPhaseChange};
use tcpcast_link::time::{Nanos, SECOND};

const BETA: f64 = 0.7;
const C: f64 = 0.4;
const MIN_WINDOW: f64 = 2.0;

/// State; windows have units of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct FractionalCubic {
    /// `None` before the first acknowledgement or loss.
    window: Option<f64>,
    w_max: f64,
    k: f64,
    /// Growth that is not yet a packet.
    growth: f64,
    /// Time of the last reduction.
    reduced_at: Option<Nanos>,
}

impl FractionalCubic {
    fn window(&self, window: &CongestionWindow) -> f64 {
        self.window.unwrap_or(f64::from(window.cwnd))
    }

    /// A packet is acknowledged in congestion avoidance.
    fn avoid_congestion(&mut self, mut window: f64, now: Nanos, rtt_s: f64) -> f64 {
        let start = *self.reduced_at.get_or_insert_with(|| {
            (self.w_max, self.k) = (window, 0.0);
            now
        });
        let t = (now - start) as f64 / SECOND as f64;
        // Section 4.1, equation (1), after the next round trip.
        let offset = t + rtt_s - self.k;
        let w_cubic = C * offset * offset * offset + self.w_max;
        // Section 4.2, equation (4).
        let w_est = self.w_max * BETA + 3.0 * (1.0 - BETA) / (1.0 + BETA) * t / rtt_s;
        if w_cubic < w_est {
            self.growth += (w_est - window).max(0.0);
        } else {
            self.growth += (w_cubic - window).max(0.0) / window;
        }
        if self.growth >= 1.0 {
            window += 1.0;
            self.growth = 0.0;
        }
        window
    }
}

/// A sender that must only leave a byte of the window free sends another packet into a fraction of
/// a packet, so the window is rounded up.
fn rounded_up(window: f64) -> u32 {
    libm::ceil(window) as u32
}

impl CongestionControl for FractionalCubic {
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        if !sample.cwnd_limited {
            return;
        }
        let mut grown = self.window(window);
        if window.in_slow_start() {
            grown += f64::from(sample.delivered);
        } else {
            let rtt = sample.srtt.or(sample.rtt).unwrap_or(SECOND).max(1);
            for _ in 0..sample.delivered {
                grown = self.avoid_congestion(grown, sample.now, rtt as f64 / SECOND as f64);
            }
        }
        self.window = Some(grown);
        window.cwnd = rounded_up(grown);
    }

    /// Sections 4.5 and 4.6.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        let before = self.window(window);
        self.w_max = if before < self.w_max { before * (1.0 + BETA) / 2.0 } else { before };
        self.k = libm::cbrt(self.w_max * (1.0 - BETA) / C);
        self.growth *= BETA;
        let reduced = (before * BETA).max(MIN_WINDOW);
        self.window = Some(reduced);
        rounded_up(reduced)
    }

    fn on_recovery_phase_change(
        &mut self,
        window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        match change.phase {
            PhaseName::Recovery => self.reduced_at = Some(change.now),
            PhaseName::Loss => {
                // Persistent congestion: slow start from the smallest window.
                let before = self.window(window);
                window.ssthresh = rounded_up((before * BETA).max(MIN_WINDOW));
                let (w_max, window) = (before, Some(MIN_WINDOW));
                *self = Self { window, w_max, ..Self::default() };
            }
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    #[test]
    fn window_follows_the_estimate_of_reno_from_the_reduction_on() {
        let mut control = FractionalCubic { window: Some(15.0), ..FractionalCubic::default() };
        let window = CongestionWindow::new(15);
        assert_eq!((control.ssthresh(&window), control.window), (11, Some(10.5)));
        control.reduced_at = Some(0);
        // Ten acknowledgements per round trip of 20 ms.
        let mut grown = 10.5;
        for ack in 1..=60 {
            grown = control.avoid_congestion(grown, ack * 2 * MILLISECOND, 0.02);
            let w_est = 10.5 + 0.529 * ack as f64 / 10.0;
            assert!((w_est - 0.7..w_est + 0.8).contains(&grown), "{grown} {w_est}");
        }
        assert_eq!(grown, 13.5);
    }
}
