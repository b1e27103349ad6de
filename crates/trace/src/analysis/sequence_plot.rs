//! Points of a time-sequence plot, thinned if there are too many.

use super::retransmission_cause::RetransCause;
use crate::segment::Nanos;

/// Kind of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// Bytes sent for the first time, or reordered.
    Data,
    /// An acknowledgement of all bytes before `end`; `start` is the previous acknowledgement.
    Ack,
    /// Receive window up to `end`; `start` is the acknowledgement.
    Window,
    /// Bytes covered by SACK.
    Sack,
    /// Retransmitted bytes and the cause.
    Retransmission(RetransCause),
}

impl PointKind {
    /// Index of the kind; each kind is thinned separately.
    fn index(self) -> usize {
        match self {
            Self::Data => 0,
            Self::Ack => 1,
            Self::Window => 2,
            Self::Sack => 3,
            Self::Retransmission(_) => RETRANSMISSION_INDEX,
        }
    }
}

const RETRANSMISSION_INDEX: usize = 4;
const KIND_COUNT: usize = 5;
/// Retransmissions are not thinned while other kinds have more than this fraction (one quarter) of
/// the points.
const MAX_OTHER_KINDS_DIVISOR: usize = 4;

/// A point of the plot, with byte offsets in the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlotPoint {
    /// Capture time.
    pub time: Nanos,
    /// Kind.
    pub mark: PointKind,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

/// Points of a direction. For each kind, every first, second, fourth, ... point is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct SequencePlot {
    max: usize,
    points: Vec<PlotPoint>,
    /// Per kind: number of points, base-2 logarithm of the thinning, and number of stored points.
    seen: [u64; KIND_COUNT],
    thinned: [u32; KIND_COUNT],
    kept: [usize; KIND_COUNT],
}

impl SequencePlot {
    /// Creates a plot of at most `max` points, but at least one per kind.
    pub(super) fn new(max: usize) -> Self {
        Self { max: max.max(KIND_COUNT), ..Self::default() }
    }

    #[inline]
    pub(super) fn add_point(&mut self, time: Nanos, mark: PointKind, start: u64, end: u64) {
        let kind = mark.index();
        let number = self.seen[kind];
        self.seen[kind] += 1;
        if number & ((1 << self.thinned[kind]) - 1) != 0 {
            return;
        }
        self.points.push(PlotPoint { time, mark, start, end });
        self.kept[kind] += 1;
        while self.points.len() > self.max {
            self.thin_out_points();
        }
    }

    /// Removes every second point of the most frequent kind; retransmissions last.
    fn thin_out_points(&mut self) {
        let others = self.points.len() - self.kept[RETRANSMISSION_INDEX];
        let largest = (0..RETRANSMISSION_INDEX).max_by_key(|kind| self.kept[*kind]).unwrap_or(0);
        // With more points than kinds, one kind has at least two; a single point cannot be halved.
        let halve = others > self.max / MAX_OTHER_KINDS_DIVISOR && self.kept[largest] > 1;
        let kind = if halve { largest } else { RETRANSMISSION_INDEX };
        let mut index = 0;
        self.points.retain(|point| {
            let same = point.mark.index() == kind;
            index += usize::from(same);
            !same || index % 2 == 1
        });
        self.kept[kind] = index.div_ceil(2);
        self.thinned[kind] = (self.thinned[kind] + 1).min(63);
    }

    /// Returns the points with offsets relative to `origin`.
    pub(super) fn into_points(self, origin: u64) -> Vec<PlotPoint> {
        let from = |number: u64| number.saturating_sub(origin);
        let shift = |point: PlotPoint| PlotPoint {
            start: from(point.start),
            end: from(point.end),
            ..point
        };
        self.points.into_iter().map(shift).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn add_thins_retransmissions_last() {
        let mut plot = SequencePlot::new(100);
        for at in 0..10_000 {
            plot.add_point(at, PointKind::Data, at, at + 1);
            plot.add_point(at, PointKind::Ack, at, at + 1);
            if at % 250 == 0 {
                plot.add_point(at, PointKind::Retransmission(RetransCause::Sack), at, at + 1);
            }
        }
        let points = plot.into_points(5);
        let count = |kind| points.iter().filter(|point| point.mark.index() == kind).count();
        assert!(points.len() <= 100 && points.len() > 50, "{}", points.len());
        assert_eq!(count(RETRANSMISSION_INDEX), 40);
        assert!(count(0) > 10 && count(1) > 10);
        assert_eq!((points[0].start, points[0].end), (0, 0));
    }

    proptest! {
        /// Points are in order, limited in number, and evenly thinned per kind.
        #[test]
        fn add_keeps_every_nth_point_per_kind(max in 1_usize..60, kinds in prop::collection::vec(0_usize..5, 0..800)) {
            let marks = [PointKind::Data, PointKind::Ack, PointKind::Window, PointKind::Sack, PointKind::Retransmission(RetransCause::Rack)];
            let mut plot = SequencePlot::new(max);
            let mut numbers = [0; KIND_COUNT];
            for kind in kinds {
                plot.add_point(0, marks[kind], numbers[kind], 0);
                numbers[kind] += 1;
            }
            let thinned = plot.thinned;
            let points = plot.into_points(0);
            prop_assert!(points.len() <= max.max(KIND_COUNT));
            for kind in 0..KIND_COUNT {
                let left: Vec<_> =
                    points.iter().filter(|point| point.mark.index() == kind).map(|p| p.start).collect();
                let all: Vec<_> = (0..numbers[kind]).step_by(1 << thinned[kind]).collect();
                prop_assert_eq!(left, all);
            }
        }
    }
}
