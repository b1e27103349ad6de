//! Times during which a sender was busy or limited by the receiver's window.

use crate::clock::Nanos;

/// Current activity of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// All data is acknowledged.
    #[default]
    Idle,
    /// Waiting for acknowledgements or the congestion window.
    Busy,
    /// Waiting for the receiver's window.
    ReceiverLimited,
}

/// Times as in `tcpi_busy_time` and `tcpi_rwnd_limited`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chronograph {
    activity: Activity,
    since: Nanos,
    busy: Nanos,
    limited: Nanos,
}

impl Chronograph {
    /// Changes the activity.
    #[inline(always)]
    pub fn change(&mut self, now: Nanos, activity: Activity) {
        if activity != self.activity {
            *self = Self { activity, since: now, busy: self.busy(now), limited: self.limited(now) };
        }
    }

    /// Total time in any activity other than idle.
    #[must_use]
    pub fn busy(&self, now: Nanos) -> Nanos {
        let current = if self.activity == Activity::Idle { 0 } else { now - self.since };
        self.busy + current
    }

    /// Total time limited by the receiver's window.
    #[must_use]
    pub fn limited(&self, now: Nanos) -> Nanos {
        let limited = self.activity == Activity::ReceiverLimited;
        self.limited + if limited { now - self.since } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_accumulate_per_activity() {
        let mut chronograph = Chronograph::default();
        chronograph.change(10, Activity::Busy);
        chronograph.change(10, Activity::Busy);
        chronograph.change(30, Activity::ReceiverLimited);
        assert_eq!((chronograph.busy(50), chronograph.limited(50)), (40, 20));
        chronograph.change(60, Activity::Idle);
        assert_eq!((chronograph.busy(99), chronograph.limited(99)), (50, 30));
    }
}
