//! Retransmission timeout: RFC 6298. The caller applies Karn's rule.

use crate::TcpConfig;
use tcpcast_link::time::Nanos;

/// Round-trip estimate and the resulting timeout.
#[derive(Clone, Copy, Debug, Default)]
pub struct RtoEstimator {
    srtt: Nanos,
    rttvar: Nanos,
    rto: Nanos,
}

impl RtoEstimator {
    /// Initial state without a sample: RFC 6298 (2.1).
    pub fn start_without_sample(&mut self, tcp: &TcpConfig) {
        *self = Self { srtt: 0, rttvar: 0, rto: tcp.initial_rto };
    }

    /// Current timeout, including back-off.
    #[inline(always)]
    #[must_use]
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// Adds a round-trip sample: RFC 6298 (2.2), (2.3); the sample also ends the back-off (section
    /// 5).
    #[inline(always)]
    pub fn add_sample(&mut self, rtt: Nanos, tcp: &TcpConfig) {
        if self.srtt == 0 {
            self.srtt = rtt.max(1);
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = (self.srtt - self.srtt / 8 + rtt / 8).max(1);
        }
        self.rto = self.rto_from_estimate(tcp);
    }

    /// SRTT + max(G, 4 RTTVAR), clamped: RFC 6298 (2.3), (2.4), (2.5).
    #[inline(always)]
    fn rto_from_estimate(&self, tcp: &TcpConfig) -> Nanos {
        let rto = self.srtt + (4 * self.rttvar).max(tcp.rto_granularity);
        rto.clamp(tcp.min_rto, tcp.max_rto)
    }

    /// Restores the timeout to its value before the back-off.
    pub fn end_back_off(&mut self, tcp: &TcpConfig) {
        self.rto = if self.srtt == 0 { tcp.initial_rto } else { self.rto_from_estimate(tcp) };
    }

    /// Doubles the timeout up to `max_rto`: RFC 6298 (5.5).
    pub fn double_timeout(&mut self, tcp: &TcpConfig) {
        self.rto = (self.rto * 2).min(tcp.max_rto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_link::time::SECOND;

    #[test]
    fn constant_rtt_gives_multiples_of_the_engset_report() {
        // "With R constant, the first measurement gives 3 R. On the tenth 1.113 R (see below), ..."
        // RTTVAR after n samples is (R/2)(3/4)^(n-1): 4 RTTVAR is 0.150 R for n = 10 and 0.0085 R
        // for n = 20. The report's 0.113 and 0.006 are the values for n + 1.
        let tcp = TcpConfig { min_rto: 0, ..TcpConfig::default() };
        let mut estimator = RtoEstimator::default();
        estimator.start_without_sample(&tcp);
        assert_eq!(estimator.rto(), SECOND);
        let mut multiples = Vec::new();
        for _ in 0..21 {
            estimator.add_sample(10 * SECOND, &tcp);
            multiples.push(estimator.rto() as f64 / (10 * SECOND) as f64);
        }
        assert!((multiples[0] - 3.0).abs() < 1e-6);
        assert!((multiples[10] - 1.113).abs() < 5e-4, "{}", multiples[10]);
        assert!((multiples[20] - 1.006).abs() < 5e-4, "{}", multiples[20]);
    }

    #[test]
    fn back_off_doubles_up_to_max_and_ends_with_a_sample() {
        let tcp = TcpConfig::default();
        let mut estimator = RtoEstimator::default();
        estimator.start_without_sample(&tcp);
        for seconds in [2, 4, 8, 16, 32, 64, 64] {
            estimator.double_timeout(&tcp);
            assert_eq!(estimator.rto(), seconds * SECOND);
        }
        estimator.add_sample(SECOND / 10, &tcp);
        assert_eq!(estimator.rto(), SECOND);
    }

    #[test]
    fn end_back_off_restores_timeout_without_a_sample() {
        let tcp = TcpConfig { min_rto: 0, initial_rto: 3 * SECOND, ..TcpConfig::default() };
        let mut estimator = RtoEstimator::default();
        estimator.start_without_sample(&tcp);
        for rto in [3 * SECOND, SECOND / 2 * 3] {
            assert_eq!(estimator.rto(), rto);
            estimator.double_timeout(&tcp);
            estimator.double_timeout(&tcp);
            assert_eq!(estimator.rto(), 4 * rto);
            estimator.end_back_off(&tcp);
            assert_eq!(estimator.rto(), rto);
            estimator.add_sample(SECOND / 2, &tcp);
        }
    }
}
