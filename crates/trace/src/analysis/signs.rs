//! Signs of the cause that single packets show: data that no acknowledgement triggered, even gaps between them, and
//! the delay of timestamps at a receiver.

use crate::segment::Nanos;

/// A sender with data and an open window reacts to an acknowledgement within this time. Data that follow none were
/// triggered by the application, by pacing or by a timer.
const REACTION: Nanos = 1_500_000;
/// New data that follow within this time belong to one burst: a pacing timer releases several packets at once.
const BURST: Nanos = 500_000;
/// The tap is away from the sender from this round trip on, so that timestamps show the delay in between.
const AWAY: Nanos = 1_000_000;
/// Tick of the timestamps of Linux, BSD and others.
const TICK: i64 = 1_000_000;
/// A clock whose rate differs by more has another tick.
const CLOCK_TOLERANCE: f64 = 0.01;

/// Sums over the new data of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Signs {
    unprompted_bytes: u64,
    short_segments: u64,
    /// Time of the last new data.
    last: Nanos,
    /// Time and first byte of the last burst, if no acknowledgement triggered it.
    burst: Option<(Nanos, u64)>,
    gaps: u64,
    pace_sum: f64,
    pace_squares: f64,
    clock: Clock,
}

/// New data, as they were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) time: Nanos,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Time of the last segment from the receiver; 0 if there is none.
    pub(super) heard: Nanos,
    /// Round trip between the tap and the sender.
    pub(super) near: Nanos,
    /// The segment is not full: the sender has no more data.
    pub(super) short: bool,
}

impl Signs {
    #[inline]
    pub(super) fn sent_new(&mut self, fresh: &Fresh) {
        let begins = fresh.time.saturating_sub(self.last) > BURST;
        self.last = fresh.time;
        self.short_segments += u64::from(fresh.short);
        if fresh.time.saturating_sub(fresh.heard) > REACTION + fresh.near {
            self.unprompted_bytes += fresh.end.saturating_sub(fresh.start);
            if begins {
                self.burst_begins(fresh.time, fresh.start);
            }
        } else if begins {
            self.burst = None;
        }
    }

    fn burst_begins(&mut self, time: Nanos, start: u64) {
        let Some((since, from)) = self.burst.replace((time, start)) else { return };
        if start > from {
            let pace = time.saturating_sub(since) as f64 / (start - from) as f64;
            self.gaps += 1;
            self.pace_sum += pace;
            self.pace_squares += pace * pace;
        }
    }

    /// A data segment with the timestamp `value`; `near`: the round trip between the tap and the sender.
    #[inline]
    pub(super) fn stamped(&mut self, time: Nanos, value: u32, near: Nanos) {
        if near > AWAY {
            self.clock.add(time, value);
        }
    }

    /// The signs in the end.
    pub(super) fn report(&self) -> Evidence {
        let mean = self.pace_sum / self.gaps.max(1) as f64;
        let variance = self.pace_squares / self.gaps.max(1) as f64 - mean * mean;
        Evidence {
            unprompted_bytes: self.unprompted_bytes,
            short_segments: self.short_segments,
            pacing_gaps: self.gaps,
            pacing_variation: (mean > 0.0).then(|| variance.max(0.0).sqrt() / mean),
            queue_s: self.clock.delay_s(),
        }
    }
}

/// Delay between the sender's clock, as timestamps show it, and the tap's.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    first: Option<(Nanos, u32)>,
    last: (Nanos, u32),
    least: i64,
    sum: f64,
    count: u64,
}

impl Clock {
    fn add(&mut self, time: Nanos, value: u32) {
        let (since, from) = *self.first.get_or_insert((time, value));
        let ticks = i64::from(value.wrapping_sub(from) as i32);
        let delay = (time.wrapping_sub(since) as i64).saturating_sub(ticks * TICK);
        self.least = self.least.min(delay);
        self.sum += delay as f64;
        self.count += 1;
        self.last = (time, value);
    }

    /// Mean delay above the least, s; `None` if the timestamps have another tick.
    fn delay_s(&self) -> Option<f64> {
        let (since, from) = self.first?;
        let elapsed = self.last.0.saturating_sub(since) as f64;
        let ticked = i64::from(self.last.1.wrapping_sub(from) as i32) * TICK;
        let mean = self.sum / self.count.max(1) as f64 - self.least as f64;
        // A queue at the end shifts the rate, too.
        let off = (ticked as f64 - elapsed).abs() - mean;
        (elapsed > 0.0 && off <= CLOCK_TOLERANCE * elapsed).then_some(mean / 1e9)
    }
}

/// Evidence for the cause of a direction's rate, in addition to its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// New data that followed no segment of the receiver within 1.5 ms.
    pub unprompted_bytes: u64,
    /// Segments of new data that were not full, after which the sender had no more.
    pub short_segments: u64,
    /// Gaps between bursts of such data that follow each other.
    pub pacing_gaps: u64,
    /// Standard deviation of gap by bytes over its mean: near 0 if the sender is paced.
    pub pacing_variation: Option<f64>,
    /// Mean delay between sender and tap above its least, s, by timestamps; only away from the sender.
    pub queue_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(signs: &mut Signs, time: Nanos, start: u64, bytes: u64, heard: Nanos) {
        let (end, near, short) = (start + bytes, 0, bytes < 1000);
        signs.sent_new(&Fresh { time, start, end, heard, near, short });
    }

    #[test]
    fn even_gaps_have_no_variation() {
        let mut signs = Signs::default();
        for n in 1..=100 {
            sent(&mut signs, n * 6_000_000, 2000 * n, 1000, 0);
            sent(&mut signs, n * 6_000_000 + 10_000, 2000 * n + 1000, 1000, 0);
        }
        let found = signs.report();
        assert_eq!((found.pacing_gaps, found.short_segments), (99, 0));
        assert!(found.pacing_variation.is_some_and(|variation| variation < 1e-6));
        assert_eq!(found.unprompted_bytes, 200_000);
    }

    #[test]
    fn data_after_an_acknowledgement_are_prompted() {
        let mut signs = Signs::default();
        for n in 1..10 {
            sent(&mut signs, n * 10_000_000, 1000 * n, 900, n * 10_000_000 - 1_000_000);
        }
        let found = signs.report();
        assert_eq!((found.unprompted_bytes, found.pacing_gaps, found.short_segments), (0, 0, 9));
    }

    #[test]
    fn timestamps_show_the_queue_before_a_receiver() {
        let mut signs = Signs::default();
        for n in 0..1000_u32 {
            let queued = if n < 500 { 0 } else { 20_000_000 };
            signs.stamped(u64::from(n) * 5_000_000 + queued, 5 * n, 40_000_000);
        }
        assert!(signs.report().queue_s.is_some_and(|queue| (queue - 0.01).abs() < 1e-6));
        let mut coarse = Signs::default();
        (0..1000_u32).for_each(|n| coarse.stamped(u64::from(n) * 5_000_000, n / 2, 40_000_000));
        assert_eq!(coarse.report().queue_s, None);
        assert_eq!(Signs::default().report().queue_s, None);
    }
}
