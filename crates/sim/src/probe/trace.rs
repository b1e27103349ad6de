//! Windows and sequence numbers of chosen flows, for plots: all of them, or those that show the
//! whole run when there are too many.

use std::collections::BTreeMap;

use crate::clock::Nanos;

/// What happened to a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Sent for the first time.
    Sent,
    /// Retransmitted.
    Retransmitted,
    /// Dropped on the way.
    Dropped,
    /// Its timer expired.
    Timeout,
}

/// A window at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// When.
    pub time: Nanos,
    /// Which source.
    pub source: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets outstanding.
    pub flight: u32,
}

/// What happened to a sequence number, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPoint {
    /// When.
    pub time: Nanos,
    /// Which source.
    pub source: u32,
    /// The sequence number.
    pub number: u32,
    /// What happened to it.
    pub mark: Mark,
}

/// The most points kept of each sort.
const MAX_POINTS: usize = 1_000_000;

/// Points kept of a series in a bin at the most: the lowest, the highest and the last.
const KEPT: u64 = 3;

/// A point of several series that are thinned together, each for itself.
pub trait Plotted: Copy {
    /// What tells series apart.
    type Series: Ord + Copy;

    /// When it was.
    fn time(&self) -> Nanos;
    /// The series that it belongs to.
    fn series(&self) -> Self::Series;
    /// Of which the lowest and the highest in a bin stay.
    fn height(&self) -> u32;
}

impl Plotted for TracePoint {
    type Series = u32;

    fn time(&self) -> Nanos {
        self.time
    }

    fn series(&self) -> u32 {
        self.source
    }

    fn height(&self) -> u32 {
        self.cwnd
    }
}

impl Plotted for MarkPoint {
    type Series = (u32, Mark);

    fn time(&self) -> Nanos {
        self.time
    }

    fn series(&self) -> (u32, Mark) {
        (self.source, self.mark)
    }

    fn height(&self) -> u32 {
        self.number
    }
}

/// Points over the whole of a run, never more than a limit. As they become too many, time is cut
/// into bins, of which each series keeps its lowest, its highest and its last point. Bins are as
/// wide as a power of two, so that those of one width fill those of the next: points that were
/// thinned twice are those that would have been left of all.
#[derive(Clone, Debug)]
pub struct Series<T> {
    points: Vec<T>,
    most: usize,
    bin: Nanos,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self::of(MAX_POINTS)
    }
}

impl<T> Series<T> {
    fn of(most: usize) -> Self {
        Self { points: Vec::new(), most, bin: 0 }
    }

    /// The points, in the order in which they were told of.
    #[must_use]
    pub fn points(&self) -> &[T] {
        &self.points
    }

    /// How wide the bins are in which points were thinned; 0 while every point is there.
    #[must_use]
    pub fn bin(&self) -> Nanos {
        self.bin
    }
}

impl<T: Plotted> Series<T> {
    fn add(&mut self, point: T) {
        if self.points.len() >= self.most {
            self.thin();
        }
        self.points.push(point);
    }

    /// Leaves at most about half of the limit, or what a bin for each series holds.
    fn thin(&mut self) {
        let series = self.series_count();
        let (first, last) = self.points.iter().fold((Nanos::MAX, 0), |(first, last), point| {
            (first.min(point.time()), last.max(point.time()))
        });
        let room = (self.most as u64 / (2 * KEPT * series)).max(1);
        let wanted = (last.saturating_sub(first) / room).max(1);
        self.bin = wanted.next_power_of_two().max(self.bin);
        let mut kept = self.kept().into_iter();
        self.points.retain(|_| kept.next().unwrap_or(false));
        if self.points.len() > self.most / 4 * 3 {
            // The series are so many that a bin of each fills the room.
            self.most = 2 * self.points.len();
        }
    }

    fn series_count(&self) -> u64 {
        let mut all: Vec<T::Series> = self.points.iter().map(T::series).collect();
        all.sort_unstable();
        all.dedup();
        all.len().max(1) as u64
    }

    /// For each point, whether it is the lowest, the highest or the last of its series and bin.
    fn kept(&self) -> Vec<bool> {
        let mut bins: BTreeMap<(Nanos, T::Series), [usize; KEPT as usize]> = BTreeMap::new();
        for (at, point) in self.points.iter().enumerate() {
            let bin = bins.entry((point.time() / self.bin, point.series())).or_insert([at; 3]);
            let [lowest, highest, last] = bin;
            if point.height() < self.points[*lowest].height() {
                *lowest = at;
            }
            if point.height() > self.points[*highest].height() {
                *highest = at;
            }
            if point.time() >= self.points[*last].time() {
                *last = at;
            }
        }
        let mut kept = vec![false; self.points.len()];
        bins.into_values().flatten().for_each(|at| kept[at] = true);
        kept
    }
}

/// The recorded points. Traces begin at time 0, before the warm-up is over.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Windows.
    pub windows: Series<TracePoint>,
    /// Sequence numbers.
    pub numbers: Series<MarkPoint>,
}

impl Trace {
    /// For so many points of each sort at the most.
    #[must_use]
    pub fn of(most: usize) -> Self {
        Self { windows: Series::of(most), numbers: Series::of(most) }
    }

    /// Records a window.
    pub fn window(&mut self, time: Nanos, source: u32, cwnd: u32, ssthresh: u32, flight: u32) {
        self.windows.add(TracePoint { time, source, cwnd, ssthresh, flight });
    }

    /// Records a sequence number.
    pub fn mark(&mut self, time: Nanos, source: u32, number: u32, mark: Mark) {
        self.numbers.add(MarkPoint { time, source, number, mark });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(time: Nanos, source: u32, cwnd: u32) -> TracePoint {
        TracePoint { time, source, cwnd, ssthresh: 0, flight: 0 }
    }

    #[test]
    fn few_points_are_all_kept() {
        let mut series = Series::of(100);
        (0..100).for_each(|at| series.add(window(at, 0, at as u32)));
        assert_eq!((series.points().len(), series.bin()), (100, 0));
    }

    #[test]
    fn the_whole_run_is_there_however_long_it_is() {
        let mut series = Series::of(200);
        for at in 0..100_000 {
            // A saw with teeth of 1000, and one flow that says something only now and then.
            series.add(window(at, 1, (at % 1000) as u32));
            if at % 20_000 == 7 {
                series.add(window(at, 2, 5));
            }
        }
        let points = series.points();
        assert!(points.len() <= 200 && points.len() > 50, "{}", points.len());
        assert!(series.bin().is_power_of_two());
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
    fn each_kind_of_mark_stays() {
        let mut series = Series::of(200);
        for at in 0..50_000 {
            series.add(MarkPoint { time: at, source: 0, number: at as u32, mark: Mark::Sent });
            if at == 30_000 {
                series.add(MarkPoint { time: at, source: 0, number: 3, mark: Mark::Dropped });
            }
        }
        let dropped = series.points().iter().filter(|point| point.mark == Mark::Dropped);
        assert_eq!(dropped.count(), 1);
    }

    #[test]
    fn more_series_than_room_keep_a_bin_each() {
        let mut series = Series::of(30);
        for at in 0..3000 {
            series.add(window(at, (at % 100) as u32, 1));
        }
        let mut sources: Vec<u32> = series.points().iter().map(|point| point.source).collect();
        sources.sort_unstable();
        sources.dedup();
        assert_eq!(sources.len(), 100);
        assert!(series.points().len() <= 800, "{}", series.points().len());
    }

    proptest! {
        /// Thinned again and again, what is left is what one look at all points would leave.
        #[test]
        fn thinned_at_last_as_if_at_once(
            steps in prop::collection::vec((0_u64..50, 0_u32..3, 0_u32..40), 1..600),
        ) {
            let (mut often, mut all) = (Series::of(40), Series::of(usize::MAX));
            let mut time = 0;
            for (step, source, cwnd) in steps {
                time += step;
                often.add(window(time, source, cwnd));
                all.add(window(time, source, cwnd));
            }
            if often.bin() > 0 {
                let width = often.bin();
                for series in [&mut often, &mut all] {
                    series.bin = width;
                    let mut kept = series.kept().into_iter();
                    series.points.retain(|_| kept.next().unwrap_or(false));
                }
            }
            prop_assert_eq!(often.points(), all.points());
        }
    }
}
