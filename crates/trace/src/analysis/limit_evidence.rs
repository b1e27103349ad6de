//! Evidence from single packets for the cause of the rate: data that no acknowledgement triggered,
//! even gaps between them, and timestamp delays at a receiver.

use crate::segment::Nanos;

/// Longest reaction time of a sender with data and an open window to an acknowledgement. Other data
/// were triggered by the application, pacing or a timer.
const MAX_REACTION_TIME: Nanos = 1_500_000;
/// New data within this time belong to one burst: a pacing timer releases several packets together.
const MAX_BURST_GAP: Nanos = 500_000;
/// Timestamp tick of Linux, BSD and others, ns.
const TIMESTAMP_TICK_NS: i64 = 1_000_000;
/// Maximum relative rate error of a clock with this tick.
const CLOCK_TOLERANCE: f64 = 0.01;
/// Maximum growth of a queue per time.
const MAX_QUEUE_GROWTH: f64 = 0.2;
/// The minimum delay is measured again after this time, because clocks drift.
const DELAY_WINDOW: Nanos = 60_000_000_000;
/// Maximum drift of two clocks during `DELAY_WINDOW`, at 100 ppm.
const MAX_CLOCK_DRIFT: i64 = 6_000_000;

/// Sums over the new data of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct EvidenceSums {
    unprompted_bytes: u64,
    short_segments: u64,
    /// Time of the last new data.
    last: Nanos,
    /// Time and first byte of the last burst, unless an acknowledgement triggered it.
    burst: Option<(Nanos, u64)>,
    gaps: u64,
    pace_sum: f64,
    pace_squares: f64,
    /// Only if the tap is remote from the sender.
    clock: Option<Box<SenderClockDelay>>,
}

/// New data being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDataSegment {
    pub(super) time: Nanos,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Time of the last segment from the receiver; 0 if there is none.
    pub(super) peer_time: Nanos,
    /// Round-trip time between the tap and the sender.
    pub(super) tap_rtt: Nanos,
    /// True if the segment is not full: the sender has no more data.
    pub(super) short: bool,
}

impl EvidenceSums {
    #[inline]
    pub(super) fn on_new_data(&mut self, fresh: &NewDataSegment) {
        let begins = fresh.time.saturating_sub(self.last) > MAX_BURST_GAP;
        self.last = fresh.time;
        self.short_segments += u64::from(fresh.short);
        if fresh.time.saturating_sub(fresh.peer_time)
            > fresh.tap_rtt.saturating_add(MAX_REACTION_TIME)
        {
            self.unprompted_bytes += fresh.end.saturating_sub(fresh.start);
            if begins {
                self.add_unprompted_burst(fresh.time, fresh.start);
            }
        } else if begins {
            self.burst = None;
        }
    }

    fn add_unprompted_burst(&mut self, time: Nanos, start: u64) {
        let Some((since, from)) = self.burst.replace((time, start)) else { return };
        if start > from {
            let pace = time.saturating_sub(since) as f64 / (start - from) as f64;
            self.gaps += 1;
            self.pace_sum += pace;
            self.pace_squares += pace * pace;
        }
    }

    /// Processes a data segment with the timestamp `value`. `may_be_queued`: a queue may precede the
    /// tap, which is not at the sender, or behind a shaper of the sender's interface.
    #[inline]
    pub(super) fn add_sender_timestamp(&mut self, time: Nanos, value: u32, may_be_queued: bool) {
        if may_be_queued {
            self.clock
                .get_or_insert_with(|| SenderClockDelay::new(time, value))
                .add_timestamp(time, value);
        }
    }

    pub(super) fn to_limit_evidence(&self) -> LimitEvidence {
        let mean = self.pace_sum / self.gaps.max(1) as f64;
        let variance = self.pace_squares / self.gaps.max(1) as f64 - mean * mean;
        LimitEvidence {
            unprompted_bytes: self.unprompted_bytes,
            short_segments: self.short_segments,
            pacing_gaps: self.gaps,
            pacing_variation: (mean > 0.0).then(|| variance.max(0.0).sqrt() / mean),
            queue_s: self.clock.as_deref().and_then(|clock| clock.mean_delay_s()),
        }
    }
}

/// Delay between the sender's timestamp clock and the tap's clock.
#[derive(Clone, Copy, Debug, Default)]
struct SenderClockDelay {
    first: (Nanos, u32),
    last: (Nanos, u32),
    stretch: DelayWindow,
    /// Delay without a queue, updated per stretch.
    base: Option<i64>,
    /// Delays above `base`.
    sum: f64,
    count: u64,
}

/// Delays within [`DELAY_WINDOW`], without drift correction.
#[derive(Clone, Copy, Debug, Default)]
struct DelayWindow {
    until: Nanos,
    min: i64,
    sum: f64,
    count: u64,
}

impl SenderClockDelay {
    fn new(time: Nanos, value: u32) -> Box<Self> {
        Box::new(Self { first: (time, value), ..Self::default() })
    }

    fn add_timestamp(&mut self, time: Nanos, value: u32) {
        let (since, from) = self.first;
        let ticks = i64::from(value.wrapping_sub(from) as i32);
        let delay = (time.wrapping_sub(since) as i64).saturating_sub(ticks * TIMESTAMP_TICK_NS);
        if time >= self.stretch.until {
            self.close_window();
            self.stretch = DelayWindow {
                until: time.saturating_add(DELAY_WINDOW),
                min: delay,
                ..DelayWindow::default()
            };
        }
        let stretch = &mut self.stretch;
        stretch.min = stretch.min.min(delay);
        stretch.sum += delay as f64;
        stretch.count += 1;
        self.last = (time, value);
    }

    /// Ends a stretch. The minimum delay may have grown by drift, which is limited, or by a
    /// standing queue.
    fn close_window(&mut self) {
        let DelayWindow { min, sum, count, .. } = self.stretch;
        if count > 0 {
            let base = min.min(self.base.map_or(min, |base| base.saturating_add(MAX_CLOCK_DRIFT)));
            self.sum += sum - base as f64 * count as f64;
            self.count += count;
            self.base = Some(base);
        }
    }

    /// Mean delay above the minimum, s; `None` if the timestamps have another tick.
    fn mean_delay_s(mut self) -> Option<f64> {
        self.close_window();
        let (since, from) = self.first;
        let elapsed = self.last.0.saturating_sub(since) as f64;
        let ticked = i64::from(self.last.1.wrapping_sub(from) as i32) * TIMESTAMP_TICK_NS;
        // Timestamps are rounded down, by half a tick on average.
        let mean = (self.sum / self.count.max(1) as f64 - TIMESTAMP_TICK_NS as f64 / 2.0).max(0.0);
        // A queue that grows until the end changes the rate by twice its mean.
        let off = (ticked as f64 - elapsed).abs();
        let tick =
            off <= 2.0 * mean + CLOCK_TOLERANCE * elapsed && off <= MAX_QUEUE_GROWTH * elapsed;
        (elapsed > 0.0 && tick).then_some(mean / 1e9)
    }
}

/// Evidence for the cause of a direction's rate, in addition to its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LimitEvidence {
    /// New data that followed no segment of the receiver within 1.5 ms.
    pub unprompted_bytes: u64,
    /// Short segments of new data, after which the sender had no more data.
    pub short_segments: u64,
    /// Number of gaps between consecutive bursts of unprompted data.
    pub pacing_gaps: u64,
    /// Coefficient of variation of gap per byte: near 0 if the sender paces.
    pub pacing_variation: Option<f64>,
    /// Mean delay from the sender to the tap, above its minimum, s: measured by timestamps, only if
    /// the tap is remote from the sender.
    pub queue_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sums: &mut EvidenceSums, time: Nanos, start: u64, bytes: u64, peer_time: Nanos) {
        let (end, tap_rtt, short) = (start + bytes, 0, bytes < 1000);
        sums.on_new_data(&NewDataSegment { time, start, end, peer_time, tap_rtt, short });
    }

    #[test]
    fn report_shows_no_variation_of_even_gaps() {
        let mut sums = EvidenceSums::default();
        for n in 1..=100 {
            sent(&mut sums, n * 6_000_000, 2000 * n, 1000, 0);
            sent(&mut sums, n * 6_000_000 + 10_000, 2000 * n + 1000, 1000, 0);
        }
        let report = sums.to_limit_evidence();
        assert_eq!((report.pacing_gaps, report.short_segments), (99, 0));
        assert!(report.pacing_variation.is_some_and(|variation| variation < 1e-6));
        assert_eq!(report.unprompted_bytes, 200_000);
    }

    #[test]
    fn report_excludes_data_after_acknowledgement() {
        let mut sums = EvidenceSums::default();
        for n in 1..10 {
            sent(&mut sums, n * 10_000_000, 1000 * n, 900, n * 10_000_000 - 1_000_000);
        }
        let report = sums.to_limit_evidence();
        assert_eq!((report.unprompted_bytes, report.pacing_gaps, report.short_segments), (0, 0, 9));
    }

    #[test]
    fn report_shows_queue_before_receiver() {
        let mut sums = EvidenceSums::default();
        for n in 0..1000_u32 {
            let queued = if n < 500 { 0 } else { 20_000_000 };
            sums.add_sender_timestamp(u64::from(n) * 5_000_000 + queued, 5 * n, true);
        }
        assert!(
            sums.to_limit_evidence().queue_s.is_some_and(|queue| (queue - 0.0095).abs() < 1e-6)
        );
        let mut coarse = EvidenceSums::default();
        (0..1000_u32)
            .for_each(|n| coarse.add_sender_timestamp(u64::from(n) * 5_000_000, n / 2, true));
        assert_eq!(coarse.to_limit_evidence().queue_s, None);
        assert_eq!(EvidenceSums::default().to_limit_evidence().queue_s, None);
    }

    #[test]
    fn report_ignores_clock_drift() {
        // 50 ppm in an hour are 180 ms.
        let mut drifting = EvidenceSums::default();
        let mut queued = EvidenceSums::default();
        for n in 0..36_000_u64 {
            let (value, time) = ((100 * n) as u32, n * 100_005_000);
            drifting.add_sender_timestamp(time, value, true);
            queued.add_sender_timestamp(time + u64::from(n >= 100) * 300_000_000, value, true);
        }
        assert!(drifting.to_limit_evidence().queue_s.is_some_and(|queue| queue < 0.002));
        assert!(queued.to_limit_evidence().queue_s.is_some_and(|queue| queue > 0.1));
    }
}
