//! Timers in the order of expiry. Most timers are retransmission timeouts, which fit into the
//! wheel; most ends of OFF times are more distant.

use super::heads::LAST;
use super::wheel::Wheel;
use crate::clock::Nanos;

/// Kind of a timer. At equal times, timers are ordered by kind, then by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
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
const TIMERS: [Timer; 8] = [
    Timer::DelayedAck,
    Timer::Retransmission,
    Timer::Start,
    Timer::Transfer,
    Timer::Population,
    Timer::Pacing,
    Timer::Pacing,
    Timer::Pacing,
];

/// Pending timers.
#[derive(Clone, Debug)]
pub(crate) struct Timers(Wheel);

impl Timers {
    pub(crate) fn new() -> Self {
        Self(Wheel::new())
    }

    /// Sets a timer.
    pub(crate) fn set(&mut self, timer: Timer, source: u32, time: Nanos) {
        self.0.add(time, (timer as u64) << u32::BITS | u64::from(source));
    }

    /// Takes the first timer. Also returns the expiry of the next one; [`LAST`] if there is none.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (Timer, u32, Nanos) {
        let (_, first) = self.0.take().expect("the first was seen");
        let next = self.0.first().unwrap_or(LAST);
        (timer_of(first), first as u32, next)
    }
}

#[inline(always)]
fn timer_of(key: u64) -> Timer {
    TIMERS[(key >> u32::BITS) as usize % TIMERS.len()]
}
