//! Detection of a full pipe: the delivery rate no longer grows.

/// The pipe is full if the bandwidth has not grown by a quarter in three rounds
/// (draft-ietf-ccwg-bbr, section 5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipeDetection {
    bandwidth: u64,
    rounds: u8,
    now: bool,
    reached: bool,
}

impl FullPipeDetection {
    /// Whether the pipe was ever full.
    #[inline(always)]
    pub fn was_ever_full(&self) -> bool {
        self.reached
    }

    /// Whether the pipe became full since the last restart of the detection.
    pub fn is_full(&self) -> bool {
        self.now
    }

    /// Rounds without growth since the last restart of the detection.
    pub fn rounds_without_growth(&self) -> u8 {
        self.rounds
    }

    /// Sets whether startup has ended.
    pub fn set_ever_full(&mut self, reached: bool) {
        self.reached = reached;
    }

    /// Restarts the detection at a given bandwidth.
    pub fn restart_detection(&mut self, bandwidth: u64) {
        *self = Self { bandwidth, rounds: 0, now: false, reached: self.reached };
    }

    /// Discards the bandwidth to compare with, but keeps the number of rounds without growth.
    pub fn reset_comparison_bandwidth(&mut self) {
        self.bandwidth = 0;
    }

    /// Adds the bandwidth of a round that was not limited by the application.
    pub fn add_round_bandwidth(&mut self, bandwidth: u64) {
        if self.now {
            return;
        }
        if bandwidth >= self.bandwidth + self.bandwidth / 4 {
            self.restart_detection(bandwidth);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= 3;
        self.reached |= self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_is_full_after_three_rounds_without_growth_by_a_quarter() {
        let mut full = FullPipeDetection::default();
        for bandwidth in [100, 125, 157, 190, 195] {
            full.add_round_bandwidth(bandwidth);
            assert!(!full.was_ever_full());
        }
        full.add_round_bandwidth(195);
        assert!(full.was_ever_full() && full.is_full());
        full.restart_detection(100);
        assert!(full.was_ever_full() && !full.is_full());
    }
}
