//! How long a sender had something to do, and how long the receiver's window held it up.

use crate::clock::Nanos;

/// What it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Everything is acknowledged.
    #[default]
    Idle,
    /// Acknowledgements, or the congestion window.
    Busy,
    /// The receiver's window.
    ReceiverLimited,
}

/// Times, as `tcpi_busy_time` and `tcpi_rwnd_limited` tell them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chronograph {
    activity: Activity,
    since: Nanos,
    busy: Nanos,
    receiver_limited: Nanos,
}

impl Chronograph {
    /// From now on it does this.
    #[inline(always)]
    pub fn change(&mut self, now: Nanos, activity: Activity) {
        if activity != self.activity {
            *self = Self {
                activity,
                since: now,
                busy: self.busy(now),
                receiver_limited: self.receiver_limited(now),
            };
        }
    }

    /// Busy until now, whatever held it up.
    #[must_use]
    pub fn busy(&self, now: Nanos) -> Nanos {
        let under_way = if self.activity == Activity::Idle { 0 } else { now - self.since };
        self.busy + under_way
    }

    /// Held up by the receiver's window until now.
    #[must_use]
    pub fn receiver_limited(&self, now: Nanos) -> Nanos {
        let receiver_limited = self.activity == Activity::ReceiverLimited;
        self.receiver_limited + if receiver_limited { now - self.since } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        let mut chronograph = Chronograph::default();
        chronograph.change(10, Activity::Busy);
        chronograph.change(10, Activity::Busy);
        chronograph.change(30, Activity::ReceiverLimited);
        assert_eq!((chronograph.busy(50), chronograph.receiver_limited(50)), (40, 20));
        chronograph.change(60, Activity::Idle);
        assert_eq!((chronograph.busy(99), chronograph.receiver_limited(99)), (50, 30));
    }
}
