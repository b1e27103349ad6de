//! Notifications of sent data, which an application reads with `MSG_ERRQUEUE`: that data sent without
//! copying may be changed (`MSG_ZEROCOPY`), and times of its transmission (`SO_TIMESTAMPING`).

use std::collections::VecDeque;

use super::system_call::{CallResult, SystemCall};
use super::{ScriptError, failed};
use tcpcast_link::time::Nanos;

/// A notification in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notification {
    /// Numbers of the first and the last call whose data may be changed.
    Reusable(u64, u64),
    /// Event, number of the byte, time.
    Time(&'static str, u64, Nanos),
}

/// Data of a call about which the application requests notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Awaited {
    /// Byte after the data.
    end: u64,
    was_sent: bool,
    /// Number of the call with `MSG_ZEROCOPY`, or number of the last byte.
    number: u64,
    is_zero_copy: bool,
}

/// The error queue of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorQueue {
    awaited: Vec<Awaited>,
    notifications: VecDeque<Notification>,
    zero_copy_calls: u64,
    /// Flags of `SO_TIMESTAMPING`, and the first byte that they concern.
    time_flags: Vec<String>,
    first_byte: u64,
}

impl ErrorQueue {
    /// `SO_TIMESTAMPING`.
    pub fn request_times(&mut self, flags: &str, first_byte: u64) {
        self.time_flags = flags.split('|').map(|flag| flag.trim().to_owned()).collect();
        self.first_byte = first_byte;
    }

    fn wants_time(&self, event: &str) -> bool {
        self.time_flags.iter().any(|flag| flag.strip_prefix("SOF_TIMESTAMPING_") == Some(event))
    }

    /// A call has written data up to byte `end`.
    pub fn add_written_data(&mut self, end: u64, is_zero_copy: bool) {
        if is_zero_copy {
            let number = self.zero_copy_calls;
            self.zero_copy_calls += 1;
            self.awaited.push(Awaited { end, was_sent: false, number, is_zero_copy });
        }
        if !self.time_flags.is_empty() {
            let number = if self.wants_time("OPT_ID") { end - 1 - self.first_byte } else { 0 };
            self.awaited.push(Awaited { end, was_sent: false, number, is_zero_copy: false });
        }
    }

    /// Data up to `next` was sent, and up to `una` acknowledged. Returns whether this causes a
    /// notification.
    pub fn update(&mut self, now: Nanos, next: u64, una: u64) -> bool {
        let mut added = Vec::new();
        let [scheduled, sent, acked] =
            ["TX_SCHED", "TX_SOFTWARE", "TX_ACK"].map(|event| self.wants_time(event));
        for data in &mut self.awaited {
            let is_first = next >= data.end && !std::mem::replace(&mut data.was_sent, true);
            data.was_sent = next >= data.end;
            if data.is_zero_copy && una >= data.end {
                added.push(Notification::Reusable(data.number, data.number));
            } else if !data.is_zero_copy {
                let mut add = |wanted: bool, event| {
                    added.extend(wanted.then_some(Notification::Time(event, data.number, now)));
                };
                add(is_first && scheduled, "SCM_TSTAMP_SCHED");
                add(is_first && sent, "SCM_TSTAMP_SND");
                add(una >= data.end && acked, "SCM_TSTAMP_ACK");
            }
        }
        self.awaited.retain(|data| una < data.end);
        for notification in &added {
            // Consecutive calls share a notification.
            match (self.notifications.back_mut(), notification) {
                (Some(Notification::Reusable(_, last)), Notification::Reusable(number, _))
                    if *last + 1 == *number =>
                {
                    *last = *number;
                }
                _ => self.notifications.push_back(*notification),
            }
        }
        !added.is_empty()
    }

    /// Whether there is no notification.
    pub fn is_empty(&self) -> bool {
        self.notifications.is_empty()
    }

    /// Reads a notification, and compares it with the expected one.
    pub fn receive(
        &mut self,
        call: &SystemCall,
        start: Nanos,
        tolerance: Nanos,
    ) -> Result<CallResult, ScriptError> {
        let Some(notification) = self.notifications.pop_front() else {
            return Ok(CallResult::Fails("EAGAIN"));
        };
        let value = |key| call.values_of(key).next().unwrap_or_default().to_owned();
        let number = |key| value(key).parse::<u64>().ok();
        let agrees = match notification {
            Notification::Reusable(first, last) => {
                (number("ee_info"), number("ee_data")) == (Some(first), Some(last))
            }
            Notification::Time(event, byte, at) => {
                let time = number("scm_sec").zip(number("scm_nsec"));
                let time = time.map(|(seconds, nanos)| {
                    seconds
                        .saturating_mul(1_000_000_000)
                        .saturating_add(start)
                        .saturating_add(nanos)
                });
                value("ee_info") == event
                    && number("ee_data") == Some(byte)
                    && time.is_some_and(|time| time.abs_diff(at) <= tolerance)
            }
        };
        if agrees {
            return Ok(CallResult::Returns(0));
        }
        let expected = format!("{} {}", value("ee_info"), value("ee_data"));
        failed(format!("expected the notification {expected}, got {notification:?}"))
    }
}
