//! Reno window in whole packets without rounding: RFC 5681.

use super::CongestionControl;
use crate::TcpConfig;

/// Additive increase, multiplicative decrease.
///
/// Congestion avoidance counts acknowledgements and adds one packet per cwnd acknowledgements, so
/// no fraction is rounded (Engset report, section 3.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno {
    cwnd: u32,
    ssthresh: u32,
    ack_count: u32,
    /// 1 if slow start continues at ssthresh itself, which RFC 5681 leaves open; otherwise 0.
    inclusive: u32,
}

impl Reno {
    fn set_ssthresh_to_half_flight(&mut self, flight: u32) {
        self.ssthresh = (flight / 2).max(2);
        self.ack_count = 0;
    }
}

impl CongestionControl for Reno {
    fn start_connection(&mut self, tcp: &TcpConfig) {
        *self = Self {
            cwnd: tcp.initial_window,
            ssthresh: tcp.initial_ssthresh,
            ack_count: 0,
            inclusive: u32::from(tcp.slow_start_at_ssthresh),
        };
    }

    fn on_idle(&mut self, tcp: &TcpConfig) {
        self.cwnd = self.cwnd.min(tcp.initial_window);
        self.ack_count = 0;
    }

    #[inline]
    fn in_slow_start(&self) -> bool {
        self.cwnd - self.inclusive < self.ssthresh
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    #[inline]
    fn on_ack(&mut self) {
        if self.in_slow_start() {
            self.cwnd += 1;
            return;
        }
        self.ack_count += 1;
        if self.ack_count >= self.cwnd {
            self.ack_count = 0;
            self.cwnd += 1;
        }
    }

    fn on_loss(&mut self, flight: u32, duplicates: u32) {
        self.set_ssthresh_to_half_flight(flight);
        // RFC 5681, section 3.2, step 3: each duplicate means that a packet has left the network.
        self.cwnd = self.ssthresh + duplicates;
    }

    #[inline]
    fn on_further_duplicate(&mut self) {
        self.cwnd = self.cwnd.saturating_add(1);
    }

    fn on_partial_ack(&mut self, acked: u32) {
        // RFC 6582, section 3.2, step 3: deflate by the acknowledged packets, then add one.
        self.cwnd = self.cwnd.saturating_sub(acked) + 1;
    }

    fn on_recovered(&mut self) {
        self.cwnd = self.ssthresh;
        self.ack_count = 0;
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
        self.cwnd = 1;
        self.ack_count = 0;
    }
}
