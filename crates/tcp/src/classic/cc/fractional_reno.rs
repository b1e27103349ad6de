//! Reno window with fractions of packets, as in stacks that count bytes: RFC 5681.

use super::CongestionControl;
use crate::TcpConfig;

/// One packet; windows are in units of 2^-32 packets, finer than a byte.
const ONE_PACKET: u64 = 1 << 32;

/// Additive increase by the reciprocal of the window, multiplicative decrease without rounding.
///
/// Congestion avoidance adds SMSS²/cwnd per acknowledgement (RFC 5681, equation 3), slightly less
/// than one packet per window. Half of an odd number of packets is not rounded (equation 4). Only
/// whole packets of the window may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct FractionalReno {
    cwnd: u64,
    ssthresh: u64,
    /// 1 if slow start continues at ssthresh itself, which RFC 5681 leaves open; otherwise 0.
    inclusive: u64,
}

impl FractionalReno {
    fn set_ssthresh_to_half_flight(&mut self, flight: u32) {
        self.ssthresh = (packets_to_units(flight) / 2).max(2 * ONE_PACKET);
    }
}

fn packets_to_units(count: u32) -> u64 {
    u64::from(count) * ONE_PACKET
}

impl CongestionControl for FractionalReno {
    fn start_connection(&mut self, tcp: &TcpConfig) {
        *self = Self {
            cwnd: packets_to_units(tcp.initial_window),
            ssthresh: packets_to_units(tcp.initial_ssthresh),
            inclusive: u64::from(tcp.slow_start_at_ssthresh),
        };
    }

    fn on_idle(&mut self, tcp: &TcpConfig) {
        self.cwnd = self.cwnd.min(packets_to_units(tcp.initial_window));
    }

    #[inline]
    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh + self.inclusive
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        (self.cwnd / ONE_PACKET) as u32
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        (self.ssthresh / ONE_PACKET) as u32
    }

    #[inline]
    fn on_ack(&mut self) {
        let more = if self.in_slow_start() { ONE_PACKET } else { u64::MAX / self.cwnd + 1 };
        self.cwnd = self.cwnd.saturating_add(more);
    }

    fn on_loss(&mut self, flight: u32, duplicates: u32) {
        self.set_ssthresh_to_half_flight(flight);
        // RFC 5681, section 3.2, step 3: each duplicate means that a packet has left the network.
        self.cwnd = self.ssthresh + packets_to_units(duplicates);
    }

    #[inline]
    fn on_further_duplicate(&mut self) {
        self.cwnd = self.cwnd.saturating_add(ONE_PACKET);
    }

    fn on_partial_ack(&mut self, acked: u32) {
        // RFC 6582, section 3.2, step 3: deflate by the acknowledged packets, then add one.
        self.cwnd = self.cwnd.saturating_sub(packets_to_units(acked)) + ONE_PACKET;
    }

    fn on_recovered(&mut self) {
        self.cwnd = self.ssthresh;
        if self.inclusive == 1 {
            // The acknowledgement that ends recovery also acknowledges new data, so the window
            // grows by slow start.
            self.on_ack();
        }
    }

    fn on_timeout(&mut self, flight: u32, repeated: bool) {
        if !repeated {
            self.set_ssthresh_to_half_flight(flight);
        }
        self.cwnd = ONE_PACKET;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(initial_window: u32, initial_ssthresh: u32) -> FractionalReno {
        let tcp = TcpConfig { initial_window, initial_ssthresh, ..TcpConfig::default() };
        let mut window = FractionalReno::default();
        window.start_connection(&tcp);
        window
    }

    #[test]
    fn a_window_of_acks_adds_slightly_less_than_one_packet() {
        // 4, 4.25, 4.485, 4.708, 4.921, 5.124: five acknowledgements per packet, not four.
        let mut window = started(4, 4);
        let grown: Vec<_> = (0..5)
            .map(|_| {
                window.on_ack();
                (window.cwnd as f64 / ONE_PACKET as f64 * 1000.0).round() as u32
            })
            .collect();
        assert_eq!(grown, [4250, 4485, 4708, 4921, 5124]);
        assert_eq!(window.cwnd(), 5);
    }

    #[test]
    fn half_of_seven_packets_is_not_rounded() {
        let mut window = started(7, 7);
        window.on_loss(7, 3);
        assert_eq!((window.cwnd(), window.ssthresh()), (6, 3));
        window.on_further_duplicate();
        assert_eq!(window.cwnd, packets_to_units(15) / 2);
        window.on_partial_ack(2);
        assert_eq!(window.cwnd, packets_to_units(13) / 2);
        window.on_recovered();
        assert_eq!(window.cwnd, packets_to_units(7) / 2);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn slow_start_after_timeout_exceeds_fractional_threshold() {
        let mut window = started(7, 7);
        window.on_timeout(7, false);
        window.on_timeout(1, true);
        let grown: Vec<_> = (0..4)
            .map(|_| {
                window.on_ack();
                window.cwnd as f64 / ONE_PACKET as f64
            })
            .collect();
        assert_eq!(grown, [2.0, 3.0, 4.0, 4.25]);
    }

    #[test]
    fn largest_windows_do_not_overflow() {
        let mut window = started(u32::MAX, u32::MAX);
        window.on_ack();
        window.on_further_duplicate();
        assert_eq!(window.cwnd(), u32::MAX);
        let tcp = TcpConfig {
            initial_ssthresh: u32::MAX,
            slow_start_at_ssthresh: true,
            ..TcpConfig::default()
        };
        window.start_connection(&tcp);
        assert!(window.in_slow_start());
    }
}
