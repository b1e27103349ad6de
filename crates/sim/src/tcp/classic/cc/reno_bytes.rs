//! Reno's window as stacks have it that count bytes: RFC 5681, with fractions of packets kept.

use super::CongestionControl;
use crate::tcp::TcpConfig;

/// A packet; windows are in 2^-32 of one, finer than any byte.
const PACKET: u64 = 1 << 32;

/// Additive increase by the reciprocal of the window, multiplicative decrease without rounding.
///
/// Congestion avoidance adds SMSS²/cwnd an acknowledgement (RFC 5681, equation 3), which is a little
/// less than a packet a window; half of an odd number of packets is not rounded (equation 4). What
/// may be sent is the whole packets of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenoBytes {
    cwnd: u64,
    ssthresh: u64,
    /// 1 where slow start goes on at ssthresh itself, which RFC 5681 leaves open; else 0.
    inclusive: u64,
}

impl RenoBytes {
    fn halve(&mut self, flight: u32) {
        self.ssthresh = (packets(flight) / 2).max(2 * PACKET);
    }
}

fn packets(count: u32) -> u64 {
    u64::from(count) * PACKET
}

impl CongestionControl for RenoBytes {
    fn start(&mut self, tcp: &TcpConfig) {
        *self = Self {
            cwnd: packets(tcp.initial_window),
            ssthresh: packets(tcp.initial_ssthresh),
            inclusive: u64::from(tcp.slow_start_at_ssthresh),
        };
    }

    fn on_idle(&mut self, tcp: &TcpConfig) {
        self.cwnd = self.cwnd.min(packets(tcp.initial_window));
    }

    #[inline]
    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh + self.inclusive
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        (self.cwnd / PACKET) as u32
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        (self.ssthresh / PACKET) as u32
    }

    #[inline]
    fn on_ack(&mut self) {
        let more = if self.in_slow_start() { PACKET } else { u64::MAX / self.cwnd + 1 };
        self.cwnd = self.cwnd.saturating_add(more);
    }

    fn on_loss(&mut self, flight: u32, duplicates: u32) {
        self.halve(flight);
        // RFC 5681, section 3.2, step 3: as many packets have left the network.
        self.cwnd = self.ssthresh + packets(duplicates);
    }

    #[inline]
    fn on_duplicate(&mut self) {
        self.cwnd = self.cwnd.saturating_add(PACKET);
    }

    fn on_partial_ack(&mut self, acked: u32) {
        // RFC 6582, section 3.2, step 3: deflate by what was acknowledged, add one back.
        self.cwnd = self.cwnd.saturating_sub(packets(acked)) + PACKET;
    }

    fn on_recovered(&mut self) {
        self.cwnd = self.ssthresh;
        if self.inclusive == 1 {
            // The acknowledgement that ends recovery is one of new data, in slow start.
            self.on_ack();
        }
    }

    fn on_timeout(&mut self, flight: u32, repeated: bool) {
        if !repeated {
            self.halve(flight);
        }
        self.cwnd = PACKET;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(initial_window: u32, initial_ssthresh: u32) -> RenoBytes {
        let tcp = TcpConfig { initial_window, initial_ssthresh, ..TcpConfig::default() };
        let mut window = RenoBytes::default();
        window.start(&tcp);
        window
    }

    #[test]
    fn a_window_of_acknowledgements_is_a_little_less_than_a_packet() {
        // 4, 4.25, 4.485, 4.708, 4.921, 5.124: five acknowledgements for the packet, not four.
        let mut window = started(4, 4);
        let grown: Vec<_> = (0..5)
            .map(|_| {
                window.on_ack();
                (window.cwnd as f64 / PACKET as f64 * 1000.0).round() as u32
            })
            .collect();
        assert_eq!(grown, [4250, 4485, 4708, 4921, 5124]);
        assert_eq!(window.cwnd(), 5);
    }

    #[test]
    fn half_of_seven_packets_is_three_and_a_half() {
        let mut window = started(7, 7);
        window.on_loss(7, 3);
        assert_eq!((window.cwnd(), window.ssthresh()), (6, 3));
        window.on_duplicate();
        assert_eq!(window.cwnd, packets(15) / 2);
        window.on_partial_ack(2);
        assert_eq!(window.cwnd, packets(13) / 2);
        window.on_recovered();
        assert_eq!(window.cwnd, packets(7) / 2);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn after_a_timeout_slow_start_goes_past_three_to_a_threshold_of_three_and_a_half() {
        let mut window = started(7, 7);
        window.on_timeout(7, false);
        window.on_timeout(1, true);
        let grown: Vec<_> = (0..4)
            .map(|_| {
                window.on_ack();
                window.cwnd as f64 / PACKET as f64
            })
            .collect();
        assert_eq!(grown, [2.0, 3.0, 4.0, 4.25]);
    }

    #[test]
    fn the_largest_windows_do_not_overflow() {
        let mut window = started(u32::MAX, u32::MAX);
        window.on_ack();
        window.on_duplicate();
        assert_eq!(window.cwnd(), u32::MAX);
        let tcp = TcpConfig {
            initial_ssthresh: u32::MAX,
            slow_start_at_ssthresh: true,
            ..TcpConfig::default()
        };
        window.start(&tcp);
        assert!(window.in_slow_start());
    }
}
