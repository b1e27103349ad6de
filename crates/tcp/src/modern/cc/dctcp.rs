//! DCTCP: RFC 8257, as in Linux.

use super::super::recovery_phase::PhaseName;
use super::super::window::CongestionWindow;
use super::reno::RenoControl;
use super::{AckSample, CongestionControl, ControlRules, RecoveryPhaseChange};
use tcpcast_link::time::Nanos;

/// Unit of `DCTCP.Alpha`.
const ALPHA_ONE: u32 = 1 << 10;

/// Weight of a new sample: 1/16. RFC 8257, section 4.2.
const GAIN_SHIFT: u32 = 4;

/// DCTCP: a mark reduces the window in proportion to the fraction of marked packets.
#[derive(Clone, Copy, Debug)]
pub struct DctcpControl {
    reno: RenoControl,
    alpha: u32,
    delivered: u32,
    delivered_ce: u32,
    /// The observation window ends when this byte is acknowledged.
    window_end: u64,
    /// Congestion window before a reduction that begins.
    reduced_from: Option<u32>,
}

impl DctcpControl {
    /// Creates the state of a new connection, with alpha = 1: RFC 8257, section 3.3.
    #[must_use]
    pub fn new(rules: &ControlRules, start: u64) -> Self {
        let reno = RenoControl::new(rules);
        Self {
            reno,
            alpha: ALPHA_ONE,
            delivered: 0,
            delivered_ce: 0,
            window_end: start,
            reduced_from: None,
        }
    }
}

impl CongestionControl for DctcpControl {
    #[inline(always)]
    fn needs_rtt_sample(&self, _window: &CongestionWindow, _rtt: Option<Nanos>) -> bool {
        true
    }

    /// RFC 8257, section 3.3, steps 3 to 7.
    #[inline(always)]
    fn on_rtt_sample(&mut self, _window: &mut CongestionWindow, sample: &AckSample) {
        if sample.una < self.window_end {
            return;
        }
        let delivered = sample.total_delivered.wrapping_sub(self.delivered);
        let marked = sample.total_delivered_ce.wrapping_sub(self.delivered_ce);
        // Alpha decreases by at least one unit, so that it can reach zero.
        self.alpha -= (self.alpha >> GAIN_SHIFT).max(1).min(self.alpha);
        if marked > 0 {
            let share = (u64::from(marked) * u64::from(ALPHA_ONE >> GAIN_SHIFT))
                / u64::from(delivered.max(1));
            self.alpha = (self.alpha + share as u32).min(ALPHA_ONE);
        }
        self.delivered = sample.total_delivered;
        self.delivered_ce = sample.total_delivered_ce;
        self.window_end = sample.next;
    }

    #[inline(always)]
    fn on_ack(&mut self, window: &mut CongestionWindow, sample: &AckSample) {
        self.reno.on_ack(window, sample);
    }

    /// RFC 8257, section 3.3, step 9: cwnd x (1 - alpha / 2).
    fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.reduced_from = Some(window.cwnd);
        let cut = (u64::from(window.cwnd) * u64::from(self.alpha)) >> 11;
        (window.cwnd - cut as u32).max(2)
    }

    /// RFC 8257, section 3.5: a loss halves the window, as in other TCPs.
    fn on_recovery_phase_change(
        &mut self,
        window: &mut CongestionWindow,
        change: &RecoveryPhaseChange,
    ) {
        if let (Some(cwnd), PhaseName::Recovery | PhaseName::Loss) =
            (self.reduced_from.take(), change.phase)
        {
            window.ssthresh = (cwnd / 2).max(2);
        }
    }
}
