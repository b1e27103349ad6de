//! TCP Prague, the scalable congestion control of L4S (RFC 9331), as in the L4S team's Linux kernel
//! of June 2021 and draft-briscoe-iccrg-prague-congestion-control.
//!
//! A mark reduces the window by `alpha / 2`, at most once per virtual RTT, where `alpha` is the moving
//! average of the share of marked packets; unmarked packets grow it as in Reno. The window is a
//! fraction, and its packets are paced. After 500 round trips, flows with an RTT below 25 ms behave as
//! if it were 25 ms: they grow by `(RTT / 25 ms)^2` of Reno's increase, and react once per 25 ms. The
//! kernel of August 2020 does not have this rule.

use super::super::recovery_phase::PhaseName;
use super::super::u128_division::divide_u128;
use super::super::window::CongestionWindow;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange};
use tcpcast_link::time::{MILLISECOND, Nanos, SECOND};

/// Weight of a new sample of the share of marked packets.
const ALPHA_GAIN: f64 = 1.0 / 16.0;
/// Smallest window in packets.
const MIN_WINDOW: u32 = 2;
/// Round trips after which flows emulate it: `prague_rtt_transition`.
const TRANSITION_ROUNDS: u32 = 500;

/// Rules that differ between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PragueOptions {
    /// RTT that flows with a shorter one emulate: `prague_rtt_target`; 0 without
    /// `prague_rtt_scaling`.
    pub target_rtt: Nanos,
}

impl PragueOptions {
    /// August 2020.
    pub const V2020: Self = Self { target_rtt: 0 };
    /// June 2021, and the draft.
    pub const V2021: Self = Self { target_rtt: 25 * MILLISECOND };
}

/// Prague: see the module.
#[derive(Clone, Copy, Debug)]
pub struct PragueControl {
    mss: u32,
    target_rtt: Nanos,
    /// Moving average of the share of marked packets; 1 until the first mark.
    alpha: f64,
    has_seen_mark: bool,
    /// Totals of delivered and marked packets at the last update of `alpha`, and marked packets so
    /// far.
    delivered: u32,
    delivered_ce: u32,
    seen_ce: u32,
    alpha_at: Nanos,
    /// The round trip ends when this byte is acknowledged.
    round_end: u64,
    rounds: u32,
    /// A mark before this time reduces no window.
    reduced_until: Nanos,
    /// Part of a packet by which the window exceeds its whole packets, from -1 to 1.
    fraction: f64,
    /// Pacing rate in bytes per second.
    rate: u64,
    /// Window at a reduction that begins.
    reduced_from: Option<u32>,
}

impl PragueControl {
    /// Creates the state of a new connection.
    #[must_use]
    pub fn new(options: PragueOptions, rules: &ControlRules, start: u64) -> Self {
        Self {
            mss: rules.mss,
            target_rtt: options.target_rtt,
            alpha: 1.0,
            has_seen_mark: false,
            delivered: 0,
            delivered_ce: 0,
            seen_ce: 0,
            alpha_at: 0,
            round_end: start,
            rounds: 0,
            reduced_until: 0,
            fraction: 0.0,
            rate: 0,
            reduced_from: None,
        }
    }

    /// RTT that the flow emulates.
    fn virtual_rtt(&self, srtt: Nanos) -> Nanos {
        if self.rounds >= TRANSITION_ROUNDS { srtt.max(self.target_rtt) } else { srtt }
    }

    /// Reduces the window by `alpha / 2`.
    fn reduce(&mut self, window: &mut CongestionWindow) {
        self.fraction -= f64::from(window.cwnd) * self.alpha / 2.0;
        self.carry_fraction(window);
        window.ssthresh = window.cwnd;
    }

    /// Moves whole packets between the fraction and the window.
    fn carry_fraction(&mut self, window: &mut CongestionWindow) {
        let whole = self.fraction.trunc();
        let cwnd = (f64::from(window.cwnd) + whole).max(f64::from(MIN_WINDOW));
        window.cwnd = cwnd as u32;
        self.fraction -= whole;
        if window.cwnd == MIN_WINDOW {
            self.fraction = self.fraction.max(0.0);
        }
    }

    /// Ends a round trip; `alpha` is updated at most once per virtual RTT.
    fn end_round(&mut self, sample: &AckSample, virtual_rtt: Nanos) {
        self.rounds = self.rounds.saturating_add(1);
        self.round_end = sample.next;
        if sample.now < self.alpha_at + virtual_rtt {
            return;
        }
        let delivered = sample.total_delivered.wrapping_sub(self.delivered);
        let marked = sample.total_delivered_ce.wrapping_sub(self.delivered_ce);
        if self.has_seen_mark {
            let share = (f64::from(marked) / f64::from(delivered.max(1))).min(1.0);
            self.alpha += ALPHA_GAIN * (share - self.alpha);
        }
        (self.delivered, self.delivered_ce) = (sample.total_delivered, sample.total_delivered_ce);
        self.alpha_at = sample.now;
    }

    /// The window, or the packets in flight if they are more, per RTT; twice in the first half of slow
    /// start.
    fn update_rate(&mut self, window: &CongestionWindow, out: u32, srtt: Nanos) {
        if srtt == 0 {
            return;
        }
        let gain = if window.cwnd < window.ssthresh / 2 { 2 } else { 1 };
        let bytes = u128::from(window.cwnd.max(out)) * u128::from(self.mss) * gain;
        self.rate = divide_u128(bytes * u128::from(SECOND), srtt) as u64;
    }
}

impl CongestionControl for PragueControl {
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        let srtt = sample.srtt.unwrap_or(0);
        let virtual_rtt = self.virtual_rtt(srtt);
        let marked = sample.total_delivered_ce.wrapping_sub(self.seen_ce);
        self.seen_ce = sample.total_delivered_ce;
        if marked > 0 && sample.phase < PhaseName::Recovery {
            self.has_seen_mark = true;
            if sample.now >= self.reduced_until {
                self.reduce(window);
                self.reduced_until = sample.now + virtual_rtt;
            }
        }
        let mut unmarked = sample.delivered.saturating_sub(marked);
        if unmarked > 0 && sample.cwnd_limited && sample.phase != PhaseName::Recovery {
            if window.in_slow_start() {
                unmarked = window.grow_in_slow_start(unmarked);
            }
            let gain = match virtual_rtt > srtt {
                true => (srtt as f64 / virtual_rtt as f64).powi(2),
                false => 1.0,
            };
            self.fraction += gain * f64::from(unmarked) / f64::from(window.cwnd);
            self.carry_fraction(window);
        }
        if sample.una >= self.round_end {
            self.end_round(sample, virtual_rtt);
        }
        self.update_rate(window, sample.out, srtt);
    }

    fn on_established(&mut self, window: &CongestionWindow, _now: Nanos, rtt: Nanos) {
        self.update_rate(window, 0, rtt);
    }

    /// A mark has no effect here, because [`CongestionControl::on_ack`] reduces the window.
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.reduced_from = Some(window.cwnd);
        window.ssthresh
    }

    /// A loss halves the window, as in other TCPs.
    fn on_recovery_phase_change(
        &mut self,
        window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        let Some(cwnd) = self.reduced_from.take() else { return };
        if change.phase >= PhaseName::Recovery {
            window.ssthresh = (cwnd / 2).max(MIN_WINDOW);
            self.fraction = 0.0;
        }
        if change.phase == PhaseName::Recovery {
            window.cwnd = window.ssthresh;
        }
    }

    fn requested_pacing_rate(&self) -> Option<u64> {
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::super::WindowGrowthUnit;
    use super::*;

    const RTT: Nanos = 10 * MILLISECOND;

    fn control() -> PragueControl {
        let rules = ControlRules {
            mss: 1448,
            initial_window: 10,
            growth: WindowGrowthUnit::PacketsAcked,
            min_rto: 200 * MILLISECOND,
            tick: 1,
            uses_sack: true,
        };
        PragueControl::new(PragueOptions::V2021, &rules, 0)
    }

    /// Acknowledges a window of packets per round trip, of which `marked` are marked.
    fn run_rounds(
        control: &mut PragueControl,
        window: &mut CongestionWindow,
        rounds: u64,
        marked: u32,
    ) {
        let (mut total, mut total_ce) = (control.delivered, control.seen_ce);
        for _ in 0..rounds {
            let now = control.alpha_at.max(control.reduced_until) + RTT;
            let sample = AckSample { srtt: Some(RTT), ..AckSample::for_test(now, 0, 0) };
            total += window.cwnd;
            total_ce += marked;
            let delivered = window.cwnd;
            let sample = AckSample { delivered, total_delivered: total, ..sample };
            let sample = AckSample { total_delivered_ce: total_ce, una: u64::MAX, ..sample };
            control.on_ack(window, &sample);
        }
    }

    #[test]
    fn first_mark_halves_the_window_and_ends_slow_start() {
        let (mut control, mut window) = (control(), CongestionWindow::new(10));
        run_rounds(&mut control, &mut window, 3, 0);
        assert_eq!(window.cwnd, 80);
        assert_eq!(control.requested_pacing_rate(), Some(2 * 80 * 1448 * 100));
        run_rounds(&mut control, &mut window, 1, 1);
        // Half, and 39 of 40 packets acknowledged without a mark.
        assert_eq!((window.cwnd, window.ssthresh), (41, 40));
    }

    #[test]
    fn steady_state_has_two_marks_per_round_trip() {
        let (mut control, mut window) = (control(), CongestionWindow::new(40));
        window.ssthresh = 2;
        run_rounds(&mut control, &mut window, 200, 2);
        // alpha / 2 of the window is one packet, as much as it grows: 2 / alpha packets.
        let sent = f64::from(window.cwnd);
        assert!((sent * control.alpha / 2.0 - 1.0).abs() < 0.15, "{sent} {}", control.alpha);
    }

    #[test]
    fn short_round_trips_grow_by_the_square_after_the_transition() {
        let (mut control, mut window) = (control(), CongestionWindow::new(100));
        window.ssthresh = 2;
        control.rounds = TRANSITION_ROUNDS;
        run_rounds(&mut control, &mut window, 100, 0);
        // (10 / 25)^2 packets per round trip.
        assert_eq!(window.cwnd, 116);
    }

    #[test]
    fn loss_halves_the_window_at_once() {
        let (mut control, mut window) = (control(), CongestionWindow::new(40));
        window.ssthresh = control.ssthresh(&window);
        let totals = super::super::DeliveryTotals { at: 0, delivered: 0, lost: 0 };
        let change = RecoveryPhaseChange { phase: PhaseName::Recovery, now: 0, next: 0, totals };
        control.on_recovery_phase_change(&mut window, &change);
        assert_eq!((window.cwnd, window.ssthresh), (20, 20));
    }
}
