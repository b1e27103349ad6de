//! Total times during which a sender was busy, or limited by the receiver's window or its own buffer.

use tcpcast_link::time::Nanos;

/// Current activity of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderActivity {
    /// All data is acknowledged.
    #[default]
    Idle,
    /// Waiting for acknowledgements or the congestion window.
    Busy,
    /// Waiting for the receiver's window.
    ReceiverLimited,
    /// The application waits for space in the send buffer, and all data in it was sent.
    BufferLimited,
}

/// Durations as in `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActivityDurations {
    activity: SenderActivity,
    since: Nanos,
    busy_total: Nanos,
    receiver_limited_total: Nanos,
    buffer_limited_total: Nanos,
}

impl ActivityDurations {
    /// Changes the activity.
    #[inline(always)]
    pub fn change_activity(&mut self, now: Nanos, activity: SenderActivity) {
        if activity != self.activity {
            *self = Self {
                activity,
                since: now,
                busy_total: self.busy_time(now),
                receiver_limited_total: self.receiver_limited_time(now),
                buffer_limited_total: self.buffer_limited_time(now),
            };
        }
    }

    /// The send buffer has space again.
    pub fn end_limit_by_buffer(&mut self, now: Nanos) {
        if self.activity == SenderActivity::BufferLimited {
            self.change_activity(now, SenderActivity::Busy);
        }
    }

    /// Total time in any activity other than idle.
    #[must_use]
    pub fn busy_time(&self, now: Nanos) -> Nanos {
        let current = if self.activity == SenderActivity::Idle { 0 } else { now - self.since };
        self.busy_total + current
    }

    /// Total time limited by the receiver's window.
    #[must_use]
    pub fn receiver_limited_time(&self, now: Nanos) -> Nanos {
        let limited = self.activity == SenderActivity::ReceiverLimited;
        self.receiver_limited_total + if limited { now - self.since } else { 0 }
    }

    /// Total time limited by the send buffer.
    #[must_use]
    pub fn buffer_limited_time(&self, now: Nanos) -> Nanos {
        let limited = self.activity == SenderActivity::BufferLimited;
        self.buffer_limited_total + if limited { now - self.since } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_accumulate_per_activity() {
        let mut activity_durations = ActivityDurations::default();
        activity_durations.change_activity(10, SenderActivity::Busy);
        activity_durations.change_activity(10, SenderActivity::Busy);
        activity_durations.change_activity(30, SenderActivity::ReceiverLimited);
        assert_eq!(
            (activity_durations.busy_time(50), activity_durations.receiver_limited_time(50)),
            (40, 20)
        );
        activity_durations.change_activity(60, SenderActivity::BufferLimited);
        activity_durations.change_activity(75, SenderActivity::Idle);
        assert_eq!(
            (activity_durations.busy_time(99), activity_durations.receiver_limited_time(99)),
            (65, 30)
        );
        assert_eq!(activity_durations.buffer_limited_time(99), 15);
    }
}
