//! The link's clock: the host's time without pauses of the host.
//!
//! If the host pauses for 10 ms, all packets that became due would be sent in one burst and
//! overflow a short queue. The link's clock therefore pauses together with the host, so that
//! packets keep their distances.

use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// The link's clock. Callers pass times of a monotonic host clock.
#[derive(Clone, Copy, Debug)]
pub struct LinkClock {
    /// Longer delays of the loop count as pauses.
    max_delay: Nanos,
    /// Total pause.
    paused: Nanos,
    pauses: u64,
    longest: Nanos,
    began: Nanos,
    /// Last call of the loop, and its planned next call, by the host's clock.
    last: Nanos,
    planned: Nanos,
}

impl LinkClock {
    /// Creates a clock that starts at 0 when the host's clock is at `host`. Delays of more than a
    /// millisecond count as pauses.
    #[must_use]
    pub fn starting_at(host: Nanos) -> Self {
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

    /// Called at the start of each pass of the loop. Returns the link's time.
    pub fn begin_loop_pass(&mut self, host: Nanos) -> Nanos {
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

    /// Returns the link's time within a pass of the loop.
    #[must_use]
    pub fn now(&self, host: Nanos) -> Nanos {
        host - self.began - self.paused
    }

    /// Sets the planned wake-up time in link time; [`NEVER`] if nothing is due. Returns the time to
    /// sleep.
    pub fn plan_sleep_until(&mut self, due: Nanos) -> Nanos {
        let host = if due >= NEVER { NEVER } else { due + self.began + self.paused };
        self.planned = host.max(self.last);
        self.planned - self.last
    }

    /// Total pause, ns.
    #[must_use]
    pub fn total_pause(&self) -> Nanos {
        self.paused
    }

    /// Number of pauses, and the longest pause.
    #[must_use]
    pub fn pause_count_and_max(&self) -> (u64, Nanos) {
        (self.pauses, self.longest)
    }

    /// Host time from the start to the last tick.
    #[must_use]
    pub fn elapsed(&self) -> Nanos {
        self.last - self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_pauses_with_the_host() {
        let mut clock = LinkClock::starting_at(5_000_000);
        assert_eq!(clock.begin_loop_pass(5_000_300), 300);
        // A sleep that ends slightly late is not a pause.
        assert_eq!(clock.plan_sleep_until(20_000_300), 20_000_000);
        assert_eq!(clock.begin_loop_pass(5_000_000 + 20_500_000), 20_500_000);
        // 10 ms late: the link's time equals the planned time, so packets keep their distances.
        assert_eq!(clock.plan_sleep_until(30_000_000), 9_500_000);
        assert_eq!(clock.begin_loop_pass(45_000_000), 30_000_000);
        assert_eq!(
            (clock.total_pause(), clock.pause_count_and_max()),
            (10_000_000, (1, 10_000_000))
        );
        assert_eq!(clock.plan_sleep_until(31_000_000), 1_000_000);
        assert_eq!(clock.begin_loop_pass(46_000_000), 31_000_000);
        assert_eq!(clock.elapsed(), 41_000_000);
    }

    #[test]
    fn long_work_is_a_pause_but_waiting_is_not() {
        let mut clock = LinkClock::starting_at(0);
        clock.begin_loop_pass(0);
        clock.plan_sleep_until(NEVER);
        assert_eq!(clock.begin_loop_pass(9_000_000_000), 9_000_000_000);
        assert_eq!(clock.begin_loop_pass(9_003_000_000), 9_000_000_000);
    }
}
