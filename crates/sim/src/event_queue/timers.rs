//! Timers in the order of expiry. Most timers are retransmission timeouts, which fit into the
//! wheel; most ends of OFF times are more distant.

use super::queue_heads::MAX_TIME;
use super::timer_wheel::TimerWheel;
use crate::clock::Nanos;

/// Kind of a timer. At equal times, timers are ordered by kind, then by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// Delayed acknowledgement of a receiver.
    DelayedAck,
    /// Retransmission timer of a sender.
    Retransmission,
    /// End of an OFF time.
    Start,
    /// Start of a transfer; belongs to a class, not to a source.
    Transfer,
    /// Step of a scaled population; belongs to a class, not to a source.
    Population,
    /// Next packet of a paced sender.
    Pacing,
}

/// Timers by their number. The length is a power of two, so that the remainder is a mask.
const TIMER_KINDS: [TimerKind; 8] = [
    TimerKind::DelayedAck,
    TimerKind::Retransmission,
    TimerKind::Start,
    TimerKind::Transfer,
    TimerKind::Population,
    TimerKind::Pacing,
    TimerKind::Pacing,
    TimerKind::Pacing,
];

/// Pending timers.
#[derive(Clone, Debug)]
pub(crate) struct PendingTimers(TimerWheel);

impl PendingTimers {
    pub(crate) fn new() -> Self {
        Self(TimerWheel::new())
    }

    /// Sets a timer.
    pub(crate) fn set_timer(&mut self, timer: TimerKind, source: u32, time: Nanos) {
        self.0.add_item(time, (timer as u64) << u32::BITS | u64::from(source));
    }

    /// Takes the first timer. Also returns the expiry of the next one; [`MAX_TIME`] if there is
    /// none.
    #[inline(always)]
    pub(crate) fn take_first(&mut self) -> (TimerKind, u32, Nanos) {
        let (_, first) = self.0.take_first().expect("the first was seen");
        let next = self.0.first_time().unwrap_or(MAX_TIME);
        (unpack_timer(first), first as u32, next)
    }
}

#[inline(always)]
fn unpack_timer(key: u64) -> TimerKind {
    TIMER_KINDS[(key >> u32::BITS) as usize % TIMER_KINDS.len()]
}
