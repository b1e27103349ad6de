//! Points of a time-sequence plot, thinned as they become too many.

use super::recovery::Cause;
use crate::segment::Nanos;

/// What a point of a plot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Bytes sent for the first time, or captured out of order.
    Data,
    /// An acknowledgement: all before `end` has arrived. `start` is what the one before said.
    Ack,
    /// The receiver takes what lies before `end`; `start` is the acknowledgement.
    Window,
    /// The receiver holds these bytes (SACK).
    Sack,
    /// Retransmitted bytes, and why.
    Retransmission(Cause),
}

impl Mark {
    /// Marks of a kind are thinned together, apart from other kinds.
    fn kind(self) -> usize {
        match self {
            Self::Data => 0,
            Self::Ack => 1,
            Self::Window => 2,
            Self::Sack => 3,
            Self::Retransmission(_) => AGAIN,
        }
    }
}

const AGAIN: usize = 4;
const KINDS: usize = 5;
/// As long as more than this share of the points is of other kinds, retransmissions are not thinned.
const OTHERS: usize = 4;

/// A point of a plot. Bytes count from the first of the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When it was captured.
    pub time: Nanos,
    /// What it shows.
    pub mark: Mark,
    /// The first byte.
    pub start: u64,
    /// The first byte after it.
    pub end: u64,
}

/// The points of a direction so far. Of each kind every first, second, fourth, ... is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct SequencePlot {
    most: usize,
    points: Vec<Point>,
    /// How many of a kind were there, as powers of two one of how many is kept, and how many are.
    seen: [u64; KINDS],
    thinned: [u32; KINDS],
    kept: [usize; KINDS],
}

impl SequencePlot {
    /// A plot of at most `most` points, or one of each kind if that is more.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(KINDS), ..Self::default() }
    }

    #[inline]
    pub(super) fn add(&mut self, time: Nanos, mark: Mark, start: u64, end: u64) {
        let kind = mark.kind();
        let number = self.seen[kind];
        self.seen[kind] += 1;
        if number & ((1 << self.thinned[kind]) - 1) != 0 {
            return;
        }
        self.points.push(Point { time, mark, start, end });
        self.kept[kind] += 1;
        while self.points.len() > self.most {
            self.thin();
        }
    }

    /// Drops every second of what there is most of; retransmissions last.
    fn thin(&mut self) {
        let others = self.points.len() - self.kept[AGAIN];
        let most = (0..AGAIN).max_by_key(|kind| self.kept[*kind]).unwrap_or(0);
        // Of more points than kinds, there are two of one; a single one cannot be halved.
        let kind = if others > self.most / OTHERS && self.kept[most] > 1 { most } else { AGAIN };
        let mut place = 0;
        self.points.retain(|point| {
            let same = point.mark.kind() == kind;
            place += usize::from(same);
            !same || place % 2 == 1
        });
        self.kept[kind] = place.div_ceil(2);
        self.thinned[kind] = (self.thinned[kind] + 1).min(63);
    }

    /// The points, counted from the byte `origin`.
    pub(super) fn into_points(self, origin: u64) -> Vec<Point> {
        let from = |at: u64| at.saturating_sub(origin);
        let shift =
            |point: Point| Point { start: from(point.start), end: from(point.end), ..point };
        self.points.into_iter().map(shift).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn retransmissions_are_kept_when_others_are_thinned() {
        let mut plot = SequencePlot::new(100);
        for at in 0..10_000 {
            plot.add(at, Mark::Data, at, at + 1);
            plot.add(at, Mark::Ack, at, at + 1);
            if at % 250 == 0 {
                plot.add(at, Mark::Retransmission(Cause::Sack), at, at + 1);
            }
        }
        let points = plot.into_points(5);
        let count = |kind| points.iter().filter(|point| point.mark.kind() == kind).count();
        assert!(points.len() <= 100 && points.len() > 50, "{}", points.len());
        assert_eq!(count(AGAIN), 40);
        assert!(count(0) > 10 && count(1) > 10);
        assert_eq!((points[0].start, points[0].end), (0, 0));
    }

    proptest! {
        /// However many of each kind there are: in order, not too many, each kind evenly.
        #[test]
        fn what_is_left_is_every_so_manyth(most in 1_usize..60, kinds in prop::collection::vec(0_usize..5, 0..800)) {
            let marks = [Mark::Data, Mark::Ack, Mark::Window, Mark::Sack, Mark::Retransmission(Cause::Rack)];
            let mut plot = SequencePlot::new(most);
            let mut numbers = [0; KINDS];
            for kind in kinds {
                plot.add(0, marks[kind], numbers[kind], 0);
                numbers[kind] += 1;
            }
            let thinned = plot.thinned;
            let points = plot.into_points(0);
            prop_assert!(points.len() <= most.max(KINDS));
            for kind in 0..KINDS {
                let left: Vec<_> =
                    points.iter().filter(|point| point.mark.kind() == kind).map(|p| p.start).collect();
                let all: Vec<_> = (0..numbers[kind]).step_by(1 << thinned[kind]).collect();
                prop_assert_eq!(left, all);
            }
        }
    }
}
