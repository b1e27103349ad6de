//! How often a run checks whether it should stop: by its events, but also by the time that they take.

/// Reply of the process that watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The run stops.
    Stop,
    /// The run continues; `late` if the watcher has waited for this poll.
    Continue {
        /// Whether the next poll should come after fewer events.
        late: bool,
    },
}

impl Poll {
    /// The reply of a watcher that never waits.
    pub const CONTINUE: Self = Self::Continue { late: false };
}

/// Events until the next poll. An event takes less than a microsecond as a rule, but some take many
/// milliseconds: a sender may send a million packets.
#[derive(Clone, Copy, Debug)]
pub struct Polls {
    interval: u32,
    left: u32,
}

/// Most events between two polls.
const MOST_EVENTS: u32 = 1 << 10;

impl Polls {
    /// The first poll comes after one event, the next ones after twice as many each.
    #[must_use]
    pub fn new() -> Self {
        Self { interval: 1, left: 1 }
    }

    /// Counts an event, with the weight of `events`; returns true if a poll is due.
    #[inline(always)]
    pub fn is_due(&mut self, events: u32) -> bool {
        self.left = self.left.saturating_sub(events);
        self.left == 0
    }

    /// Takes the reply to a poll; returns false if the run stops.
    pub fn goes_on(&mut self, reply: Poll) -> bool {
        let Poll::Continue { late } = reply else { return false };
        let interval = if late { self.interval / 2 } else { self.interval * 2 };
        self.interval = interval.clamp(1, MOST_EVENTS);
        self.left = self.interval;
        true
    }
}

impl Default for Polls {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_follow_each_other_sooner_while_the_watcher_waits() {
        let mut polls = Polls::new();
        let mut interval = |late| {
            let events = (1..).find(|_| polls.is_due(1));
            assert!(polls.goes_on(Poll::Continue { late }));
            events.unwrap_or(0)
        };
        let quick: Vec<i32> = (0..12).map(|_| interval(false)).collect();
        assert_eq!(quick, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
        let late: Vec<i32> = (0..12).map(|_| interval(true)).collect();
        assert_eq!(late, [1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1]);
        assert!(!polls.goes_on(Poll::Stop));
    }
}
