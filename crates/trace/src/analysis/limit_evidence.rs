//! Evidence from single packets for the cause of the rate: data that no acknowledgement triggered,
//! even gaps between them, and timestamp delays at a receiver.

use super::histogram::Histogram;
use crate::segment::Nanos;

/// Longest reaction time of a sender with data and an open window to an acknowledgement. Other data
/// were triggered by the application, pacing or a timer.
const MAX_REACTION_TIME: Nanos = 1_500_000;
/// New data within this time belong to one burst: a pacing timer releases several packets together.
const MAX_BURST_GAP: Nanos = 500_000;
/// Unit of gaps per byte, ns: a picosecond.
const PACE_UNIT_NS: f64 = 1e-3;
/// The spread of gaps per byte is the distance of these quantiles, because a busy host delays some
/// bursts. Without outliers, this is the number of standard deviations between them.
const PACE_QUANTILES: [f64; 3] = [0.1, 0.5, 0.9];
const QUANTILE_DISTANCE: f64 = 2.563;
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
/// Fewer echoed timestamps do not show a mean.
const MIN_ECHOES: u64 = 10;
/// After a pause of this length, the time until an echo contains the pause.
const MAX_PAUSE_BEFORE_ECHO: Nanos = 1_000_000_000;
/// Clocks are unsteady if delays between them exceed delays by echoed timestamps by at least this
/// time.
const MIN_CLOCK_ERROR_S: f64 = 0.01;
/// Minimum ratio of these delays for unsteady clocks.
const MIN_CLOCK_ERROR_RATIO: f64 = 2.0;

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
    /// Gaps per byte between these bursts, in units of [`PACE_UNIT_NS`], and their sum.
    paces: Option<Box<Histogram>>,
    pace_sum: f64,
    /// `None` unless the tap is remote from the sender.
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

    /// Spread of gaps per byte. A late burst of a busy host is followed by an early one, so the mean
    /// still equals the median. It exceeds the median if the sender also waits for something else.
    fn pacing_variation(&self) -> Option<f64> {
        let [low, median, high] = self.paces.clone()?.quantiles(PACE_QUANTILES)?;
        let mean = self.pace_sum / self.gaps.max(1) as f64;
        let spread = (high - low) / (QUANTILE_DISTANCE * median);
        (median > 0.0).then(|| spread.max((mean / median - 1.0).abs()))
    }

    fn add_unprompted_burst(&mut self, time: Nanos, start: u64) {
        let Some((since, from)) = self.burst.replace((time, start)) else { return };
        if start > from {
            let pace = time.saturating_sub(since) as f64 / (start - from) as f64;
            self.gaps += 1;
            self.pace_sum += pace / PACE_UNIT_NS;
            self.paces.get_or_insert_default().add_value((pace / PACE_UNIT_NS) as u64);
        }
    }

    /// Processes a data segment with the timestamp `value`. `may_be_queued`: a queue may precede the
    /// tap, which is not at the sender, or behind a shaper of the sender's interface. `echo`: time
    /// since the timestamp that this segment echoes passed the tap.
    #[inline]
    pub(super) fn add_sender_timestamp(
        &mut self,
        time: Nanos,
        value: u32,
        may_be_queued: bool,
        echo: Option<Nanos>,
    ) {
        if may_be_queued {
            let clock = self.clock.get_or_insert_with(|| SenderClockDelay::new(time, value));
            clock.echoes.add_segment(time, echo);
            clock.add_timestamp(time, value);
        }
    }

    /// Returns the evidence. `tap_rtt`: minimum round-trip time between the tap and the sender.
    pub(super) fn to_limit_evidence(&self, tap_rtt: Option<Nanos>) -> LimitEvidence {
        let delay = self.clock.as_deref().map(|clock| clock.mean_delay(tap_rtt));
        let QueueDelay { queue_s, clock_error_s } = delay.unwrap_or_default();
        LimitEvidence {
            unprompted_bytes: self.unprompted_bytes,
            short_segments: self.short_segments,
            pacing_gaps: self.gaps,
            pacing_variation: self.pacing_variation(),
            queue_s,
            clock_error_s,
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
    echoes: EchoTimes,
}

/// Round-trip times between the tap and the sender, by timestamps of the receiver that the sender
/// echoes. They need only the clock of the tap. They exceed the queueing delay by the time for
/// which the sender had nothing to send.
#[derive(Clone, Copy, Debug, Default)]
struct EchoTimes {
    /// Time of the last data segment.
    last: Nanos,
    /// Data segments since the last echo. The next echo stands for them, so that the mean counts
    /// segments, as the mean delay does.
    segments: u64,
    echoes: u64,
    sum: f64,
    count: u64,
}

impl EchoTimes {
    fn add_segment(&mut self, time: Nanos, echo: Option<Nanos>) {
        let paused = time.saturating_sub(self.last) > MAX_PAUSE_BEFORE_ECHO;
        self.last = time;
        self.segments += 1;
        if let Some(echo) = echo.filter(|_| !paused) {
            self.sum += echo as f64 * self.segments as f64;
            self.count += std::mem::take(&mut self.segments);
            self.echoes += 1;
        }
    }

    /// Mean time above the minimum `tap_rtt`, s.
    fn mean_excess_s(&self, tap_rtt: Option<Nanos>) -> Option<f64> {
        let mean = self.sum / self.count.max(1) as f64;
        tap_rtt
            .filter(|_| self.echoes >= MIN_ECHOES)
            .map(|least| (mean - least as f64).max(0.0) / 1e9)
    }
}

/// Mean delay of a queue, and the error of the clocks that hides it.
#[derive(Clone, Copy, Debug, Default)]
struct QueueDelay {
    queue_s: Option<f64>,
    clock_error_s: Option<f64>,
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

    /// Mean delay above the minimum. Echoed timestamps limit it, because clocks may differ by any
    /// amount: clocks of virtual machines and of emulated links pause with their hosts.
    fn mean_delay(self, tap_rtt: Option<Nanos>) -> QueueDelay {
        let Some(delay) = self.mean_one_way_delay_s() else { return QueueDelay::default() };
        let Some(echoed) = self.echoes.mean_excess_s(tap_rtt).filter(|echoed| *echoed < delay)
        else {
            return QueueDelay { queue_s: Some(delay), clock_error_s: None };
        };
        let contradicts =
            delay > echoed + MIN_CLOCK_ERROR_S && delay > MIN_CLOCK_ERROR_RATIO * echoed;
        QueueDelay { queue_s: Some(echoed), clock_error_s: contradicts.then_some(delay - echoed) }
    }

    /// Mean delay above the minimum, s, by both clocks; `None` if the timestamps have another tick.
    fn mean_one_way_delay_s(mut self) -> Option<f64> {
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
    /// Variation of gap per byte without outliers: near 0 if the sender paces.
    pub pacing_variation: Option<f64>,
    /// Mean delay from the sender to the tap, above its minimum, s: measured by timestamps, only if
    /// the tap is remote from the sender.
    pub queue_s: Option<f64>,
    /// Mean error of delays between the clocks of the sender and the tap, s, if echoed timestamps
    /// contradict them.
    pub clock_error_s: Option<f64>,
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
        let report = sums.to_limit_evidence(None);
        assert_eq!((report.pacing_gaps, report.short_segments), (99, 0));
        assert!(report.pacing_variation.is_some_and(|variation| variation < 0.02));
        assert_eq!(report.unprompted_bytes, 200_000);
    }

    #[test]
    fn late_bursts_of_a_busy_host_do_not_hide_even_gaps() {
        let mut even = EvidenceSums::default();
        for n in 1..=200 {
            let late = if n % 14 == 0 { 1_900_000 } else { 0 };
            sent(&mut even, n * 3_000_000 + late, 3000 * n, 2900, 0);
        }
        let spread = |sums: &EvidenceSums| sums.to_limit_evidence(None).pacing_variation;
        assert!(spread(&even).is_some_and(|variation| variation < 0.03));
        // A send buffer that is full at times.
        let mut waiting = EvidenceSums::default();
        let mut time = 0;
        for n in 1..=400 {
            time += if n % 14 == 0 { 8_000_000 } else { 3_000_000 };
            sent(&mut waiting, time, 3000 * n as u64, 2900, 0);
        }
        assert!(spread(&waiting).is_some_and(|variation| variation > 0.1));
        // BBR sends faster in one of eight round trips, and slower in the next.
        let mut probing = EvidenceSums::default();
        let mut time = 0;
        for n in 1..=400 {
            time += [2_400_000, 4_000_000, 3_000_000][(n / 10 % 8).min(2)];
            sent(&mut probing, time, 3000 * n as u64, 2900, 0);
        }
        assert!(spread(&probing).is_some_and(|variation| variation > 0.1));
    }

    #[test]
    fn report_excludes_data_after_acknowledgement() {
        let mut sums = EvidenceSums::default();
        for n in 1..10 {
            sent(&mut sums, n * 10_000_000, 1000 * n, 900, n * 10_000_000 - 1_000_000);
        }
        let report = sums.to_limit_evidence(None);
        assert_eq!((report.unprompted_bytes, report.pacing_gaps, report.short_segments), (0, 0, 9));
    }

    #[test]
    fn report_shows_queue_before_receiver() {
        let mut sums = EvidenceSums::default();
        for n in 0..1000_u32 {
            let queued = if n < 500 { 0 } else { 20_000_000 };
            sums.add_sender_timestamp(u64::from(n) * 5_000_000 + queued, 5 * n, true, None);
        }
        assert!(
            sums.to_limit_evidence(None).queue_s.is_some_and(|queue| (queue - 0.0095).abs() < 1e-6)
        );
        let mut coarse = EvidenceSums::default();
        (0..1000_u32)
            .for_each(|n| coarse.add_sender_timestamp(u64::from(n) * 5_000_000, n / 2, true, None));
        assert_eq!(coarse.to_limit_evidence(None).queue_s, None);
        assert_eq!(EvidenceSums::default().to_limit_evidence(None).queue_s, None);
    }

    #[test]
    fn report_ignores_clock_drift() {
        // 50 ppm in an hour are 180 ms.
        let mut drifting = EvidenceSums::default();
        let mut queued = EvidenceSums::default();
        for n in 0..36_000_u64 {
            let (value, time) = ((100 * n) as u32, n * 100_005_000);
            drifting.add_sender_timestamp(time, value, true, None);
            queued.add_sender_timestamp(
                time + u64::from(n >= 100) * 300_000_000,
                value,
                true,
                None,
            );
        }
        assert!(drifting.to_limit_evidence(None).queue_s.is_some_and(|queue| queue < 0.002));
        assert!(queued.to_limit_evidence(None).queue_s.is_some_and(|queue| queue > 0.1));
    }

    /// Sends for 8 s to a tap 50 ms away, with a pause of `hold(n)` ns at the sender or a queue of
    /// `queue(n)` ns. The clock of the tap runs at the ratio `rate`.
    fn observe(rate: f64, queue: impl Fn(u64) -> u64, hold: impl Fn(u64) -> u64) -> LimitEvidence {
        let mut sums = EvidenceSums::default();
        for n in 0..1600_u64 {
            let sent = 1_000_000_000 + n * 5_000_000;
            let time = ((sent + queue(n)) as f64 * rate) as Nanos;
            let took = ((50_000_000 + queue(n) + hold(n)) as f64 * rate) as Nanos;
            let echo = (n % 10 == 0).then_some(took);
            sums.add_sender_timestamp(time, (sent / 1_000_000) as u32, true, echo);
        }
        sums.to_limit_evidence(Some((50_000_000.0 * rate) as Nanos))
    }

    #[test]
    fn echoes_limit_the_queue_if_a_clock_is_unsteady() {
        for rate in [0.984, 0.9, 1.016, 1.1] {
            let found = observe(rate, |_| 0, |_| 0);
            assert!(found.queue_s.is_some_and(|queue| queue < 0.001), "{rate} {found:?}");
            assert!(found.clock_error_s.is_some_and(|error| error > 0.05), "{rate} {found:?}");
        }
        // A queue of 30 ms in half of the time.
        let found = observe(0.984, |n| if n < 800 { 0 } else { 30_000_000 }, |_| 0);
        assert!(found.queue_s.is_some_and(|queue| (queue - 0.015).abs() < 0.002), "{found:?}");
    }

    #[test]
    fn times_without_data_do_not_count_as_queue_if_clocks_are_steady() {
        let found = observe(1.0, |_| 0, |n| (n % 7) * 20_000_000);
        assert!(found.queue_s.is_some_and(|queue| queue < 0.001), "{found:?}");
        assert_eq!(found.clock_error_s, None);
        let found = observe(1.0, |n| (n % 7) * 20_000_000, |_| 0);
        assert!(found.queue_s.is_some_and(|queue| (queue - 0.0595).abs() < 0.001), "{found:?}");
        assert_eq!(found.clock_error_s, None);
    }
}
