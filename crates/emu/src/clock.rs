//! The link's time: that of the host, less what it was paused.
//!
//! A host that stands still for 10 ms would deliver what came due meanwhile as one burst, which
//! overflows a short queue. So the link's clock stands still with it: everything comes so much
//! later, at the distances at which it would have come.

use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// The link's clock. Times that the caller gives are those of a monotonic clock of the host.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// A pause that is longer counts as the host's absence.
    max_delay: Nanos,
    /// The host's time that is left out.
    paused: Nanos,
    pauses: u64,
    longest: Nanos,
    began: Nanos,
    /// When the loop was here last, and when it meant to be here again.
    last: Nanos,
    planned: Nanos,
}

impl Clock {
    /// A clock that begins at 0 when the host's is at `host`; it stands still in pauses longer than
    /// a millisecond.
    #[must_use]
    pub fn starting(host: Nanos) -> Self {
        Self {
            max_delay: MILLISECOND,
            paused: 0,
            pauses: 0,
            longest: 0,
            began: host,
            last: host,
            planned: host,
        }
    }

    /// The loop comes by: what time it is on the link.
    pub fn tick(&mut self, host: Nanos) -> Nanos {
        let expected = self.last.max(self.planned);
        let pause = host.saturating_sub(expected);
        if pause > self.max_delay {
            self.paused += pause;
            self.pauses += 1;
            self.longest = self.longest.max(pause);
        }
        self.last = host;
        self.planned = host;
        self.now(host)
    }

    /// What time it is on the link, within a pass of the loop.
    #[must_use]
    pub fn now(&self, host: Nanos) -> Nanos {
        host - self.began - self.paused
    }

    /// The loop means to sleep until that time of the link, [`NEVER`] if nothing is due; for how
    /// long that is.
    pub fn sleep_until(&mut self, due: Nanos) -> Nanos {
        let host = if due >= NEVER { NEVER } else { due + self.began + self.paused };
        self.planned = host.max(self.last);
        self.planned - self.last
    }

    /// How long the clock has stood still.
    #[must_use]
    pub fn paused(&self) -> Nanos {
        self.paused
    }

    /// How often, and the longest time.
    #[must_use]
    pub fn pauses(&self) -> (u64, Nanos) {
        (self.pauses, self.longest)
    }

    /// The host's time since the beginning, as of the last tick.
    #[must_use]
    pub fn elapsed(&self) -> Nanos {
        self.last - self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_while_the_host_is_away() {
        let mut clock = Clock::starting(5_000_000);
        assert_eq!(clock.tick(5_000_300), 300);
        // Sleeping as long as meant, and a little longer, is no absence.
        assert_eq!(clock.sleep_until(20_000_300), 20_000_000);
        assert_eq!(clock.tick(5_000_000 + 20_500_000), 20_500_000);
        // 10 ms too late: the link is where it was to be, and its next packets keep their distances.
        assert_eq!(clock.sleep_until(30_000_000), 9_500_000);
        assert_eq!(clock.tick(45_000_000), 30_000_000);
        assert_eq!((clock.paused(), clock.pauses()), (10_000_000, (1, 10_000_000)));
        assert_eq!(clock.sleep_until(31_000_000), 1_000_000);
        assert_eq!(clock.tick(46_000_000), 31_000_000);
        assert_eq!(clock.elapsed(), 41_000_000);
    }

    #[test]
    fn waiting_for_packets_is_no_absence_and_working_long_is() {
        let mut clock = Clock::starting(0);
        clock.tick(0);
        clock.sleep_until(NEVER);
        assert_eq!(clock.tick(9_000_000_000), 9_000_000_000);
        assert_eq!(clock.tick(9_003_000_000), 9_000_000_000);
    }
}
