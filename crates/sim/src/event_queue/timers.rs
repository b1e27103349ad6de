//! Timers in the order in which they expire. Most are a retransmission timeout away, less than a
//! wheel is long; ends of OFF times mostly are farther away.

use super::heads::LAST;
use super::wheel::Wheel;
use crate::clock::Nanos;

/// What a timer is for. At equal times the order is this one, then that of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A receiver's delayed acknowledgement.
    DelayedAck,
    /// A sender's retransmission timer.
    Retransmission,
    /// The end of an OFF time.
    Start,
    /// The beginning of a transfer of a class; this one is a class's, not a source's.
    Transfer,
    /// A step of a class whose OFF times end together; this one, too, is a class's.
    Population,
    /// The next packet that a sender paces.
    Pacing,
}

/// By their numbers; a power of two of them, so that a remainder is a mask.
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

/// Timers that are set.
#[derive(Clone, Debug)]
pub(crate) struct Timers(Wheel);

impl Timers {
    pub(crate) fn new() -> Self {
        Self(Wheel::new())
    }

    /// Sets one.
    pub(crate) fn set(&mut self, timer: Timer, source: u32, time: Nanos) {
        self.0.add(time, (timer as u64) << u32::BITS | u64::from(source));
    }

    /// Takes the first, and says when the next one expires, [`LAST`] if there is none.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (Timer, u32, Nanos) {
        let (_, first) = self.0.take().expect("the first was seen");
        let next = self.0.first().unwrap_or(LAST);
        (timer_of(first), first as u32, next)
    }
}

#[inline(always)]
fn timer_of(what: u64) -> Timer {
    TIMERS[(what >> u32::BITS) as usize % TIMERS.len()]
}
