//! Whether the pipe is full: a rate that no longer grows.

/// Whether the pipe is full: the bandwidth has not grown by a quarter in three rounds
/// (draft-ietf-ccwg-bbr, section 5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    bandwidth: u64,
    rounds: u8,
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// Whether it ever was full.
    #[inline(always)]
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// Whether it is since it was looked for last.
    pub fn is_now(&self) -> bool {
        self.now
    }

    /// Startup is over, or begins anew.
    pub fn set_reached(&mut self, reached: bool) {
        self.reached = reached;
    }

    /// It is looked for anew, from a rate on.
    pub fn look_from(&mut self, bandwidth: u64) {
        *self = Self { bandwidth, rounds: 0, now: false, reached: self.reached };
    }

    /// What the bandwidth was does not count any more; rounds without growth do.
    pub fn forget_bandwidth(&mut self) {
        self.bandwidth = 0;
    }

    /// The rate of a round in which the application did not limit.
    pub fn on_round(&mut self, bandwidth: u64) {
        if self.now {
            return;
        }
        if bandwidth >= self.bandwidth + self.bandwidth / 4 {
            self.look_from(bandwidth);
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
    fn it_is_full_after_three_rounds_without_growth_by_a_quarter() {
        let mut full = FullPipe::default();
        for bandwidth in [100, 125, 157, 190, 195] {
            full.on_round(bandwidth);
            assert!(!full.reached());
        }
        full.on_round(195);
        assert!(full.reached() && full.is_now());
        full.look_from(100);
        assert!(full.reached() && !full.is_now());
    }
}
