//! Clock of a host's timers, which expire at clock ticks.

use super::stack::Stack;
use tcpcast_link::time::Nanos;

/// Clock of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TickClock {
    tick: Nanos,
    /// Timers use a wheel: Linux's `kernel/time/timer.c`.
    wheel: bool,
    /// Offset of the clock relative to `now`.
    phase: Nanos,
}

/// A timer that was set. Its expiry is computed on demand, since most timers are set again before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerSpan {
    /// Time at which the timer was set.
    pub since: Nanos,
    /// Duration.
    pub length: Nanos,
}

impl TimerSpan {
    /// A timer that is set now.
    #[inline(always)]
    pub(super) fn new(now: Nanos, length: Nanos) -> Self {
        Self { since: now, length }
    }

    /// Lower bound of the expiry.
    #[inline(always)]
    pub(super) fn earliest_expiry(self) -> Nanos {
        self.since + self.length
    }
}

/// Purpose of a sender's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerPurpose {
    /// Not running.
    Off,
    /// The retransmission timeout.
    Retransmission(TimerSpan),
    /// A tail loss probe.
    LossProbe(TimerSpan),
    /// Packets that may be reordered rather than lost.
    Reordering(TimerSpan),
    /// The opening of a closed window.
    Persist(TimerSpan),
}

impl TimerPurpose {
    /// Start and duration; [`None`] if the timer is off.
    #[inline(always)]
    #[must_use]
    pub fn timer_span(self) -> Option<TimerSpan> {
        match self {
            Self::Off => None,
            Self::Retransmission(span)
            | Self::LossProbe(span)
            | Self::Reordering(span)
            | Self::Persist(span) => Some(span),
        }
    }
}

impl TickClock {
    /// Creates a clock; its phase at the start of a connection is random.
    pub fn new(seed: u64, stack: &Stack) -> Self {
        let phase = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (stack.tick << 9);
        Self { tick: stack.tick, wheel: stack.timer_wheel, phase }
    }

    /// Returns the expiry of a timer.
    #[must_use]
    pub fn expiry_of(&self, timer: TimerSpan) -> Nanos {
        let TimerSpan { since, length } = timer;
        let ticks = length.div_ceil(self.tick);
        if !self.wheel {
            return since + ticks * self.tick;
        }
        let shift = match ticks {
            0..63 => 0,
            63..504 => 3,
            504..4032 => 6,
            _ => 9,
        };
        let due = (((since + self.phase) / self.tick + ticks) >> shift) + 1;
        (due << shift) * self.tick - self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets::Preset;
    use super::*;
    use tcpcast_link::time::MILLISECOND;

    #[test]
    fn linux_timers_expire_at_multiples_of_wheel_granularity() {
        let stack = Preset::LinuxCubic.stack();
        for phase in [0, 1, 3_999_999, 4_000_001, 77_777_777] {
            let clock = TickClock { phase, ..TickClock::new(0, &stack) };
            for (span_ms, at_most) in [(17, 24), (200, 204), (252, 284), (264, 296), (3000, 3256)] {
                let length = span_ms * MILLISECOND;
                let timers = (0..300).map(|n| TimerSpan { since: n * 1_234_567, length });
                let waits: Vec<_> =
                    timers.map(|timer| clock.expiry_of(timer) - timer.since).collect();
                let (min, max) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
                assert!(*min >= length && *max <= at_most * MILLISECOND, "{min} {max}");
            }
        }
        let exact = TickClock { wheel: false, ..TickClock::new(5, &stack) };
        let timer = TimerSpan { since: 7, length: 263 * MILLISECOND };
        assert_eq!(exact.expiry_of(timer), 264 * MILLISECOND + 7);
    }
}
