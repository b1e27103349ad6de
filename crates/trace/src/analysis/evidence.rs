//! EvidenceSums of the cause that single packets show: data that no acknowledgement triggered, even gaps between them, and
//! the delay of timestamps at a receiver.

use super::rounds::AWAY;
use crate::segment::Nanos;

/// A sender with data and an open window reacts to an acknowledgement within this time. Data that follow none were
/// triggered by the application, by pacing or by a timer.
const REACTION: Nanos = 1_500_000;
/// New data that follow within this time belong to one burst: a pacing timer releases several packets at once.
const BURST: Nanos = 500_000;
/// Tick of the timestamps of Linux, BSD and others.
const TICK: i64 = 1_000_000;
/// A clock whose rate differs by more has another tick.
const CLOCK_TOLERANCE: f64 = 0.01;
/// No queue grows by more than this share of the time.
const MAX_GROWN: f64 = 0.2;
/// The least delay is measured again after this time, as clocks drift.
const STRETCH: Nanos = 60_000_000_000;
/// Two clocks drift apart by at most 100 ppm: in a stretch by this time.
const DRIFT: i64 = 6_000_000;

/// Sums over the new data of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct EvidenceSums {
    unprompted_bytes: u64,
    short_segments: u64,
    /// Time of the last new data.
    last: Nanos,
    /// Time and first byte of the last burst, if no acknowledgement triggered it.
    burst: Option<(Nanos, u64)>,
    gaps: u64,
    pace_sum: f64,
    pace_squares: f64,
    /// Only if the tap is away from the sender.
    clock: Option<Box<Clock>>,
}

/// New data, as they were sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewSegment {
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

impl EvidenceSums {
    #[inline]
    pub(super) fn sent_new(&mut self, fresh: &NewSegment) {
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

    /// A data segment with the timestamp `value`; `near`: the least round trip between the tap and the sender.
    #[inline]
    pub(super) fn stamped(&mut self, time: Nanos, value: u32, near: Nanos) {
        if near > AWAY {
            self.clock.get_or_insert_with(|| Clock::new(time, value)).add(time, value);
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
            queue_s: self.clock.as_deref().and_then(|clock| clock.delay_s()),
        }
    }
}

/// Delay between the sender's clock, as timestamps show it, and the tap's.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    first: (Nanos, u32),
    last: (Nanos, u32),
    stretch: Stretch,
    /// Delay without a queue, as of the last stretch.
    base: Option<i64>,
    /// Delays above it.
    sum: f64,
    count: u64,
}

/// Delays within [`STRETCH`], not corrected for the drift of the clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    until: Nanos,
    least: i64,
    sum: f64,
    count: u64,
}

impl Clock {
    fn new(time: Nanos, value: u32) -> Box<Self> {
        Box::new(Self { first: (time, value), ..Self::default() })
    }

    fn add(&mut self, time: Nanos, value: u32) {
        let (since, from) = self.first;
        let ticks = i64::from(value.wrapping_sub(from) as i32);
        let delay = (time.wrapping_sub(since) as i64).saturating_sub(ticks * TICK);
        if time >= self.stretch.until {
            self.close();
            self.stretch =
                Stretch { until: time.saturating_add(STRETCH), least: delay, ..Stretch::default() };
        }
        let stretch = &mut self.stretch;
        stretch.least = stretch.least.min(delay);
        stretch.sum += delay as f64;
        stretch.count += 1;
        self.last = (time, value);
    }

    /// Ends a stretch. The least delay may be longer than before because the clocks drift, or because a queue stands:
    /// the drift is limited.
    fn close(&mut self) {
        let Stretch { least, sum, count, .. } = self.stretch;
        if count > 0 {
            let base = least.min(self.base.map_or(least, |base| base.saturating_add(DRIFT)));
            self.sum += sum - base as f64 * count as f64;
            self.count += count;
            self.base = Some(base);
        }
    }

    /// Mean delay above the least, s; `None` if the timestamps have another tick.
    fn delay_s(mut self) -> Option<f64> {
        self.close();
        let (since, from) = self.first;
        let elapsed = self.last.0.saturating_sub(since) as f64;
        let ticked = i64::from(self.last.1.wrapping_sub(from) as i32) * TICK;
        // Timestamps are rounded down, by half a tick on average.
        let mean = (self.sum / self.count.max(1) as f64 - TICK as f64 / 2.0).max(0.0);
        // A queue that grows to the end shifts the rate by twice its mean.
        let off = (ticked as f64 - elapsed).abs();
        let tick = off <= 2.0 * mean + CLOCK_TOLERANCE * elapsed && off <= MAX_GROWN * elapsed;
        (elapsed > 0.0 && tick).then_some(mean / 1e9)
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

    fn sent(signs: &mut EvidenceSums, time: Nanos, start: u64, bytes: u64, heard: Nanos) {
        let (end, near, short) = (start + bytes, 0, bytes < 1000);
        signs.sent_new(&NewSegment { time, start, end, heard, near, short });
    }

    #[test]
    fn even_gaps_have_no_variation() {
        let mut signs = EvidenceSums::default();
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
        let mut signs = EvidenceSums::default();
        for n in 1..10 {
            sent(&mut signs, n * 10_000_000, 1000 * n, 900, n * 10_000_000 - 1_000_000);
        }
        let found = signs.report();
        assert_eq!((found.unprompted_bytes, found.pacing_gaps, found.short_segments), (0, 0, 9));
    }

    #[test]
    fn timestamps_show_the_queue_before_a_receiver() {
        let mut signs = EvidenceSums::default();
        for n in 0..1000_u32 {
            let queued = if n < 500 { 0 } else { 20_000_000 };
            signs.stamped(u64::from(n) * 5_000_000 + queued, 5 * n, 40_000_000);
        }
        assert!(signs.report().queue_s.is_some_and(|queue| (queue - 0.0095).abs() < 1e-6));
        let mut coarse = EvidenceSums::default();
        (0..1000_u32).for_each(|n| coarse.stamped(u64::from(n) * 5_000_000, n / 2, 40_000_000));
        assert_eq!(coarse.report().queue_s, None);
        assert_eq!(EvidenceSums::default().report().queue_s, None);
    }

    #[test]
    fn clocks_that_drift_make_no_queue() {
        // 50 ppm in an hour are 180 ms.
        let mut drifting = EvidenceSums::default();
        let mut queued = EvidenceSums::default();
        for n in 0..36_000_u64 {
            let (value, time) = ((100 * n) as u32, n * 100_005_000);
            drifting.stamped(time, value, 40_000_000);
            queued.stamped(time + u64::from(n >= 100) * 300_000_000, value, 40_000_000);
        }
        assert!(drifting.report().queue_s.is_some_and(|queue| queue < 0.002));
        assert!(queued.report().queue_s.is_some_and(|queue| queue > 0.1));
    }
}
