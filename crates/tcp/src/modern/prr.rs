//! Proportional rate reduction: RFC 9937, as Linux computes it.

use super::kernel_version::PrrRule;
use super::window::CongestionWindow;

/// State of a window reduction, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProportionalRateReduction {
    /// Packets delivered since the reduction began.
    pub delivered: u32,
    /// Packets sent since the reduction began.
    pub out: u32,
}

/// Effect of an acknowledgement during a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrrAckEffect {
    /// Packets delivered.
    pub delivered: u32,
    /// Packets detected as lost.
    pub lost: u32,
    /// Packets in flight after the acknowledgement.
    pub in_flight: u32,
    /// Whether new data was acknowledged cumulatively.
    pub advanced: bool,
    /// Whether a retransmission was acknowledged, and none was lost.
    pub retransmission_acked: bool,
}

impl ProportionalRateReduction {
    /// Sets the window to the packets allowed in flight. RFC 9937, section 6: above the threshold,
    /// packets are sent in proportion to the packets delivered. Below the threshold, the window
    /// grows by slow start while acknowledgements advance without losses, and otherwise by the
    /// packets delivered. Earlier releases of Linux differ below the threshold: [`PrrRule`].
    pub fn on_ack(&mut self, window: &mut CongestionWindow, ack: PrrAckEffect, rule: PrrRule) {
        if ack.delivered == 0 || window.before_reduction == 0 {
            return;
        }
        self.delivered += ack.delivered;
        let count = if ack.in_flight > window.ssthresh {
            let delivered = u64::from(self.delivered) * u64::from(window.ssthresh);
            let due = delivered.div_ceil(u64::from(window.before_reduction)) as i64;
            due - i64::from(self.out)
        } else {
            let banked = i64::from(self.delivered) - i64::from(self.out);
            let delivered = i64::from(ack.delivered);
            let slow_start = match rule {
                PrrRule::AckedRetransmission => ack.retransmission_acked,
                PrrRule::Advance | PrrRule::Banked => ack.advanced && ack.lost == 0,
            };
            let count = match rule {
                PrrRule::AckedRetransmission | PrrRule::Advance if !slow_start => delivered,
                _ => banked.max(delivered) + i64::from(slow_start),
            };
            count.min(i64::from(window.ssthresh - ack.in_flight))
        };
        // The first packet of a recovery is always allowed.
        let count = count.max(i64::from(self.out == 0));
        window.cwnd = (i64::from(ack.in_flight) + count).max(0) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(delivered: u32, in_flight: u32) -> PrrAckEffect {
        let (advanced, retransmission_acked) = (false, false);
        PrrAckEffect { delivered, lost: 0, in_flight, advanced, retransmission_acked }
    }

    #[test]
    fn rfc_9937_sends_in_proportion_above_threshold() {
        // ssthresh is 7 of 10: seven packets are sent for ten deliveries.
        let mut window =
            CongestionWindow { ssthresh: 7, before_reduction: 10, ..CongestionWindow::new(10) };
        let mut prr = ProportionalRateReduction::default();
        let mut in_flight = 19;
        let mut sent = 0;
        for _ in 0..10 {
            in_flight -= 1;
            prr.on_ack(&mut window, ack(1, in_flight), PrrRule::Banked);
            let count = window.cwnd - in_flight;
            prr.out += count;
            sent += count;
            in_flight += count;
        }
        assert_eq!(sent, 7);
    }

    #[test]
    fn rfc_9937_conserves_packets_or_slow_starts_below_threshold() {
        let mut window =
            CongestionWindow { ssthresh: 7, before_reduction: 10, ..CongestionWindow::new(10) };
        let mut prr = ProportionalRateReduction { delivered: 3, out: 3 };
        prr.on_ack(&mut window, ack(1, 3), PrrRule::Banked);
        assert_eq!(window.cwnd, 4, "packet conservation");
        prr.out += 1;
        prr.on_ack(&mut window, PrrAckEffect { advanced: true, ..ack(1, 3) }, PrrRule::Banked);
        assert_eq!(window.cwnd, 5, "slow start");
        prr.out += 2;
        prr.on_ack(
            &mut window,
            PrrAckEffect { advanced: true, lost: 1, ..ack(1, 3) },
            PrrRule::Banked,
        );
        assert_eq!(window.cwnd, 4, "no slow start after a loss");
    }

    #[test]
    fn rfc_9937_window_equals_threshold_at_threshold() {
        let mut window =
            CongestionWindow { ssthresh: 7, before_reduction: 10, ..CongestionWindow::new(10) };
        let mut prr = ProportionalRateReduction { delivered: 8, out: 3 };
        prr.on_ack(&mut window, PrrAckEffect { advanced: true, ..ack(1, 7) }, PrrRule::Banked);
        assert_eq!(window.cwnd, 7);
    }

    #[test]
    fn first_packet_of_recovery_is_always_allowed() {
        let mut window =
            CongestionWindow { ssthresh: 20, before_reduction: 30, ..CongestionWindow::new(30) };
        let mut prr = ProportionalRateReduction::default();
        prr.on_ack(&mut window, ack(1, 20), PrrRule::Banked);
        assert_eq!(window.cwnd, 21);
        prr.out = 1;
        prr.on_ack(&mut window, ack(1, 20), PrrRule::Banked);
        assert_eq!(window.cwnd, 20, "the second waits for room");
    }

    #[test]
    fn linux_releases_differ_below_the_threshold() {
        // Five packets were delivered and two sent since the reduction began.
        let cwnd = |rule, effect| {
            let mut window =
                CongestionWindow { ssthresh: 9, before_reduction: 13, ..CongestionWindow::new(13) };
            let mut prr = ProportionalRateReduction { delivered: 4, out: 2 };
            prr.on_ack(&mut window, effect, rule);
            window.cwnd
        };
        let none = ack(1, 3);
        let advanced = PrrAckEffect { advanced: true, ..none };
        let repaired = PrrAckEffect { retransmission_acked: true, ..none };
        let cwnds = |rule| [none, advanced, repaired].map(|effect| cwnd(rule, effect));
        assert_eq!(cwnds(PrrRule::AckedRetransmission), [4, 4, 7]);
        assert_eq!(cwnds(PrrRule::Advance), [4, 7, 4]);
        assert_eq!(cwnds(PrrRule::Banked), [6, 7, 6]);
    }
}
