//! Windows and sequence numbers of selected flows, for plots. If there are too many points, they
//! are thinned evenly over the whole run.

use std::collections::BTreeMap;

use crate::clock::Nanos;
use tcpcast_tcp::modern::cc::path_model::{BbrPhase, BbrState};

/// Event of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SequenceEvent {
    /// First transmission.
    Sent,
    /// Retransmission.
    Retransmitted,
    /// Drop anywhere on the path.
    Dropped,
    /// Retransmission timeout.
    Timeout,
}

/// Window of a source at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPoint {
    /// Time.
    pub time: Nanos,
    /// Source index.
    pub source: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets outstanding.
    pub flight: u32,
}

/// State of BBR of a source at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrPoint {
    /// Time.
    pub time: Nanos,
    /// Source index.
    pub source: u32,
    /// State.
    pub state: BbrState,
    /// Bytes of payload of the packets that the state counts.
    pub mss: u32,
}

/// Event of a sequence number at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePoint {
    /// Time.
    pub time: Nanos,
    /// Source index.
    pub source: u32,
    /// Sequence number.
    pub number: u32,
    /// Event.
    pub mark: SequenceEvent,
}

/// Default maximum number of points per kind.
const MAX_POINTS: usize = 1_000_000;

/// Maximum number of points per series and bin: the lowest, the highest and the last.
const MAX_KEPT_PER_BIN: u64 = 3;

/// A point of a series; several series are thinned with the same bins.
pub trait SeriesPoint: Copy {
    /// Key of a series.
    type Series: Ord + Copy;

    /// Time of the point.
    fn time(&self) -> Nanos;
    /// Series of the point.
    fn series_key(&self) -> Self::Series;
    /// Value of the point, whose minimum and maximum per bin are kept.
    fn plotted_value(&self) -> u32;
}

impl SeriesPoint for WindowPoint {
    type Series = u32;

    fn time(&self) -> Nanos {
        self.time
    }

    fn series_key(&self) -> u32 {
        self.source
    }

    fn plotted_value(&self) -> u32 {
        self.cwnd
    }
}

impl SeriesPoint for BbrPoint {
    type Series = (u32, BbrPhase);

    fn time(&self) -> Nanos {
        self.time
    }

    fn series_key(&self) -> (u32, BbrPhase) {
        (self.source, self.state.phase)
    }

    fn plotted_value(&self) -> u32 {
        u32::try_from(self.state.pacing_rate).unwrap_or(u32::MAX)
    }
}

impl SeriesPoint for SequencePoint {
    type Series = (u32, SequenceEvent);

    fn time(&self) -> Nanos {
        self.time
    }

    fn series_key(&self) -> (u32, SequenceEvent) {
        (self.source, self.mark)
    }

    fn plotted_value(&self) -> u32 {
        self.number
    }
}

/// Points of a whole run, up to a maximum number. If there are too many points, time is divided
/// into bins, and each series keeps its lowest, highest and last point per bin. Bin widths are
/// powers of two, so narrower bins subdivide wider ones, and repeated thinning yields the same
/// points as thinning all points once.
#[derive(Clone, Debug)]
pub struct ThinnedSeries<T> {
    points: Vec<T>,
    limit: usize,
    bin: Nanos,
}

impl<T> Default for ThinnedSeries<T> {
    fn default() -> Self {
        Self::with_limit(MAX_POINTS)
    }
}

impl<T> ThinnedSeries<T> {
    fn with_limit(limit: usize) -> Self {
        Self { points: Vec::new(), limit, bin: 0 }
    }

    /// Points in the order in which they were recorded.
    #[must_use]
    pub fn points(&self) -> &[T] {
        &self.points
    }

    /// Width of the bins of the thinned points; 0 if all points are kept.
    #[must_use]
    pub fn bin_width(&self) -> Nanos {
        self.bin
    }
}

impl<T: SeriesPoint> ThinnedSeries<T> {
    fn add_point(&mut self, point: T) {
        if self.points.len() >= self.limit {
            self.thin_out_points();
        }
        self.points.push(point);
    }

    /// Reduces the points to about half of the limit, or to one bin per series if there are many
    /// series.
    fn thin_out_points(&mut self) {
        let series = self.series_count();
        let (first, last) = self.points.iter().fold((Nanos::MAX, 0), |(first, last), point| {
            (first.min(point.time()), last.max(point.time()))
        });
        let room = (self.limit as u64 / (2 * MAX_KEPT_PER_BIN * series)).max(1);
        let wanted = (last.saturating_sub(first) / room).max(1);
        self.bin = wanted.next_power_of_two().max(self.bin);
        let mut kept = self.flag_kept_points().into_iter();
        self.points.retain(|_| kept.next().unwrap_or(false));
        if self.points.len() > self.limit / 4 * 3 {
            // One bin per series already fills most of the limit: raise it.
            self.limit = 2 * self.points.len();
        }
    }

    fn series_count(&self) -> u64 {
        let mut all: Vec<T::Series> = self.points.iter().map(T::series_key).collect();
        all.sort_unstable();
        all.dedup();
        all.len().max(1) as u64
    }

    /// Flag per point: true if it is the lowest, highest or last of its series and bin.
    fn flag_kept_points(&self) -> Vec<bool> {
        let mut bins: BTreeMap<(Nanos, T::Series), [usize; MAX_KEPT_PER_BIN as usize]> =
            BTreeMap::new();
        for (index, point) in self.points.iter().enumerate() {
            let bin =
                bins.entry((point.time() / self.bin, point.series_key())).or_insert([index; 3]);
            let [lowest, highest, last] = bin;
            if point.plotted_value() < self.points[*lowest].plotted_value() {
                *lowest = index;
            }
            if point.plotted_value() > self.points[*highest].plotted_value() {
                *highest = index;
            }
            if point.time() >= self.points[*last].time() {
                *last = index;
            }
        }
        let mut kept = vec![false; self.points.len()];
        bins.into_values().flatten().for_each(|index| kept[index] = true);
        kept
    }
}

/// Recorded points, from time 0 and so including the warm-up.
#[derive(Clone, Debug, Default)]
pub struct SourceTraces {
    /// Windows.
    pub windows: ThinnedSeries<WindowPoint>,
    /// States of BBR, without repetitions.
    pub bbr: ThinnedSeries<BbrPoint>,
    /// Sequence numbers.
    pub numbers: ThinnedSeries<SequencePoint>,
}

impl SourceTraces {
    /// Creates empty series with a maximum number of points per kind.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            windows: ThinnedSeries::with_limit(limit),
            bbr: ThinnedSeries::with_limit(limit),
            numbers: ThinnedSeries::with_limit(limit),
        }
    }

    /// Records a window.
    pub fn record_window(
        &mut self,
        time: Nanos,
        source: u32,
        cwnd: u32,
        ssthresh: u32,
        flight: u32,
    ) {
        self.windows.add_point(WindowPoint { time, source, cwnd, ssthresh, flight });
    }

    /// Records a state of BBR, unless it is that of the previous point.
    pub fn record_bbr(&mut self, time: Nanos, source: u32, state: BbrState, mss: u32) {
        let last = self.bbr.points.last();
        if last.is_none_or(|last| (last.source, &last.state) != (source, &state)) {
            self.bbr.add_point(BbrPoint { time, source, state, mss });
        }
    }

    /// Records a sequence number.
    pub fn record_event(&mut self, time: Nanos, source: u32, number: u32, mark: SequenceEvent) {
        self.numbers.add_point(SequencePoint { time, source, number, mark });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(time: Nanos, source: u32, cwnd: u32) -> WindowPoint {
        WindowPoint { time, source, cwnd, ssthresh: 0, flight: 0 }
    }

    #[test]
    fn points_below_the_limit_are_all_kept() {
        let mut series = ThinnedSeries::with_limit(100);
        (0..100).for_each(|at| series.add_point(window(at, 0, at as u32)));
        assert_eq!((series.points().len(), series.bin_width()), (100, 0));
    }

    #[test]
    fn thinned_points_cover_the_whole_run() {
        let mut series = ThinnedSeries::with_limit(200);
        for at in 0..100_000 {
            // A sawtooth with a period of 1000, and a flow with rare points.
            series.add_point(window(at, 1, (at % 1000) as u32));
            if at % 20_000 == 7 {
                series.add_point(window(at, 2, 5));
            }
        }
        let points = series.points();
        assert!(points.len() <= 200 && points.len() > 50, "{}", points.len());
        assert!(series.bin_width().is_power_of_two());
        for quarter in 0..4 {
            let heights: Vec<u32> = points
                .iter()
                .filter(|point| point.source == 1 && point.time / 25_000 == quarter)
                .map(|point| point.cwnd)
                .collect();
            assert_eq!(heights.iter().max(), Some(&999), "quarter {quarter}");
            assert_eq!(heights.iter().min(), Some(&0), "quarter {quarter}");
        }
        assert_eq!(points.last().map(|point| point.time), Some(99_999));
        assert_eq!(points.iter().filter(|point| point.source == 2).count(), 5);
    }

    #[test]
    fn rare_marks_survive_thinning() {
        let mut series = ThinnedSeries::with_limit(200);
        for at in 0..50_000 {
            series.add_point(SequencePoint {
                time: at,
                source: 0,
                number: at as u32,
                mark: SequenceEvent::Sent,
            });
            if at == 30_000 {
                series.add_point(SequencePoint {
                    time: at,
                    source: 0,
                    number: 3,
                    mark: SequenceEvent::Dropped,
                });
            }
        }
        let dropped = series.points().iter().filter(|point| point.mark == SequenceEvent::Dropped);
        assert_eq!(dropped.count(), 1);
    }

    #[test]
    fn many_series_keep_one_bin_each() {
        let mut series = ThinnedSeries::with_limit(30);
        for at in 0..3000 {
            series.add_point(window(at, (at % 100) as u32, 1));
        }
        let mut sources: Vec<u32> = series.points().iter().map(|point| point.source).collect();
        sources.sort_unstable();
        sources.dedup();
        assert_eq!(sources.len(), 100);
        assert!(series.points().len() <= 800, "{}", series.points().len());
    }

    proptest! {
        /// Repeated thinning yields the same points as thinning all points once.
        #[test]
        fn repeated_thinning_equals_single_thinning(
            steps in prop::collection::vec((0_u64..50, 0_u32..3, 0_u32..40), 1..600),
        ) {
            let (mut often, mut all) = (ThinnedSeries::with_limit(40), ThinnedSeries::with_limit(usize::MAX));
            let mut time = 0;
            for (step, source, cwnd) in steps {
                time += step;
                often.add_point(window(time, source, cwnd));
                all.add_point(window(time, source, cwnd));
            }
            if often.bin_width() > 0 {
                let width = often.bin_width();
                for series in [&mut often, &mut all] {
                    series.bin = width;
                    let mut kept = series.flag_kept_points().into_iter();
                    series.points.retain(|_| kept.next().unwrap_or(false));
                }
            }
            prop_assert_eq!(often.points(), all.points());
        }
    }
}
