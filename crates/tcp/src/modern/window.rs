//! The congestion window, in packets.

/// A threshold that no window reaches.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Window and threshold. Congestion control grows the window, loss recovery reduces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionWindow {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets acknowledged towards the next packet of the window.
    pub credit: u32,
    /// Congestion window before the last reduction.
    pub before_reduction: u32,
    /// Largest window that was ever reduced, in packets.
    pub widest: u32,
}

impl CongestionWindow {
    /// Window of a new connection.
    #[must_use]
    pub fn new(initial: u32) -> Self {
        Self {
            cwnd: initial,
            ssthresh: INFINITE_SSTHRESH,
            credit: 0,
            before_reduction: 0,
            widest: 0,
        }
    }

    /// Saves the window before a reduction.
    pub fn save_before_reduction(&mut self) {
        self.before_reduction = self.cwnd;
        self.widest = self.widest.max(self.cwnd);
    }

    /// Whether the window grows exponentially.
    #[inline(always)]
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by one packet per acknowledged packet up to the threshold; returns the remaining
    /// acknowledged packets.
    #[inline(always)]
    pub fn grow_in_slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.cwnd = grown;
        left
    }

    /// Grows by one packet per `per_packet` acknowledged packets.
    #[inline(always)]
    pub fn grow_by_credit(&mut self, per_packet: u32, acked: u32) {
        // Credit saved at a larger window counts for at most one packet.
        if self.credit >= per_packet {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        if self.credit >= per_packet {
            self.cwnd += self.credit / per_packet;
            self.credit %= per_packet;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let mut window = CongestionWindow { ssthresh: 12, ..CongestionWindow::new(10) };
        assert_eq!(window.grow_in_slow_start(5), 3);
        assert_eq!(window.cwnd, 12);
        window.grow_by_credit(12, 3);
        assert_eq!((window.cwnd, window.credit), (12, 3));
        window.grow_by_credit(12, 24);
        assert_eq!((window.cwnd, window.credit), (14, 3));
    }
}
