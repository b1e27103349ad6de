//! Propagation: a delay line with jitter, with or without reordering.

use crate::random::{RandomSource, RandomStream};
use crate::time::{NEVER, Nanos};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Distribution of the random delay in addition to the propagation delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// No jitter.
    None,
    /// Uniform between 0 and this maximum.
    Uniform(Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
    /// Normal with this mean and standard deviation; negative values are replaced by 0.
    Normal {
        /// The mean.
        mean: Nanos,
        /// The standard deviation.
        sd: Nanos,
    },
}

impl Jitter {
    fn draw_delay(self, draws: &mut impl RandomSource) -> Nanos {
        let extra = match self {
            Self::None => return 0,
            Self::Uniform(max) => (1.0 - draws.draw_unit()) * max as f64,
            Self::Exponential(mean) => -libm::log(draws.draw_unit()) * mean as f64,
            Self::Normal { mean, sd } => {
                // Box-Muller transform; the second number is not needed.
                let radius = libm::sqrt(-2.0 * libm::log(draws.draw_unit()));
                let angle = std::f64::consts::TAU * draws.draw_unit();
                mean as f64 + radius * libm::cos(angle) * sd as f64
            }
        };
        // The cast replaces negative numbers by 0.
        libm::round(extra) as Nanos
    }
}

/// Whether a packet may overtake another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOrder {
    /// No reordering: a packet waits for its predecessor if necessary.
    Kept,
    /// A packet overtakes earlier packets if its delay is sufficiently shorter.
    Free,
}

#[derive(Clone, Debug)]
struct TimedItem<I> {
    due: Nanos,
    number: u64,
    item: I,
}

// Reversed order because `BinaryHeap` is a max-heap: earliest due time first, then order of
// arrival.
impl<I> Ord for TimedItem<I> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<I> PartialOrd for TimedItem<I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I> PartialEq for TimedItem<I> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<I> Eq for TimedItem<I> {}

#[derive(Clone, Debug)]
enum DelayLineStorage<I> {
    InOrder(VecDeque<(Nanos, I)>),
    Overtaking(BinaryHeap<TimedItem<I>>),
}

/// Items in propagation, with their due times at the far end.
#[derive(Clone, Debug)]
pub struct DelayLine<I, D = RandomStream> {
    delay: Nanos,
    jitter: Jitter,
    draws: D,
    line: DelayLineStorage<I>,
    /// Due time of the last packet, if the order is kept.
    last_due: Nanos,
    number: u64,
}

impl<I, D: RandomSource> DelayLine<I, D> {
    /// Creates an empty line with propagation delay `delay` and jitter.
    #[must_use]
    pub fn new(delay: Nanos, jitter: Jitter, order: PacketOrder, draws: D) -> Self {
        let line = if order == PacketOrder::Kept || jitter == Jitter::None {
            DelayLineStorage::InOrder(VecDeque::new())
        } else {
            DelayLineStorage::Overtaking(BinaryHeap::new())
        };
        Self { delay, jitter, draws, line, last_due: 0, number: 0 }
    }

    /// Creates an empty line on which the caller specifies all due times, by
    /// [`DelayLine::push_with_due_time`].
    #[must_use]
    pub fn with_given_due_times(draws: D) -> Self {
        let line = DelayLineStorage::Overtaking(BinaryHeap::new());
        Self { delay: 0, jitter: Jitter::None, draws, line, last_due: 0, number: 0 }
    }

    /// Adds an item at `now`, which must not decrease between calls, and returns its due time.
    #[inline]
    pub fn push_after_delay(&mut self, now: Nanos, item: I) -> Nanos {
        let due = now + self.delay + self.jitter.draw_delay(&mut self.draws);
        self.push_with_due_time(due, item)
    }

    /// Adds an item with the given due time and returns the actual due time. On a line that keeps
    /// the order, the item is delayed until the preceding item is due.
    #[inline]
    pub fn push_with_due_time(&mut self, due: Nanos, item: I) -> Nanos {
        let mut due = due;
        match &mut self.line {
            DelayLineStorage::InOrder(line) => {
                due = due.max(self.last_due);
                self.last_due = due;
                line.push_back((due, item));
            }
            DelayLineStorage::Overtaking(line) => {
                self.number += 1;
                line.push(TimedItem { due, number: self.number, item });
            }
        }
        due
    }

    /// Due time of the next item; [`NEVER`] if the line is empty.
    #[inline]
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        match &self.line {
            DelayLineStorage::InOrder(line) => line.front().map_or(NEVER, |(due, _)| *due),
            DelayLineStorage::Overtaking(line) => line.peek().map_or(NEVER, |first| first.due),
        }
    }

    /// Removes the next item if it is due by `now`. Returns its due time and the item.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<(Nanos, I)> {
        if self.next_due() > now {
            return None;
        }
        match &mut self.line {
            DelayLineStorage::InOrder(line) => line.pop_front(),
            DelayLineStorage::Overtaking(line) => line.pop().map(|first| (first.due, first.item)),
        }
    }

    /// Number of items on the line.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.line {
            DelayLineStorage::InOrder(line) => line.len(),
            DelayLineStorage::Overtaking(line) => line.len(),
        }
    }

    /// Whether the line is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain<I>(line: &mut DelayLine<I>) -> Vec<(Nanos, I)> {
        std::iter::from_fn(|| line.pop(NEVER)).collect()
    }

    #[test]
    fn items_arrive_after_the_delay() {
        let mut line =
            DelayLine::new(100, Jitter::None, PacketOrder::Free, RandomStream::from_seed(1));
        assert_eq!(line.next_due(), NEVER);
        assert_eq!((line.push_after_delay(0, 'a'), line.push_after_delay(7, 'b')), (100, 107));
        assert_eq!((line.next_due(), line.pop(99)), (100, None));
        assert_eq!((line.pop(100), line.pop(106)), (Some((100, 'a')), None));
        assert_eq!((line.pop(200), line.is_empty()), (Some((107, 'b')), true));
    }

    #[test]
    fn scheduled_items_are_sorted_unless_order_is_kept() {
        let mut line = DelayLine::with_given_due_times(RandomStream::from_seed(1));
        assert_eq!((line.push_with_due_time(9, 'a'), line.push_with_due_time(3, 'b')), (9, 3));
        assert_eq!(line.push_with_due_time(9, 'c'), 9);
        assert_eq!(drain(&mut line), [(3, 'b'), (9, 'a'), (9, 'c')]);
        let mut kept =
            DelayLine::new(0, Jitter::None, PacketOrder::Kept, RandomStream::from_seed(1));
        assert_eq!((kept.push_with_due_time(9, 'a'), kept.push_with_due_time(3, 'b')), (9, 9));
    }

    fn mean_and_max(jitter: Jitter) -> (f64, Nanos) {
        let mut line = DelayLine::new(0, jitter, PacketOrder::Free, RandomStream::from_seed(3));
        let extra: Vec<Nanos> = (0..100_000).map(|_| line.push_after_delay(0, ())).collect();
        (extra.iter().sum::<u64>() as f64 / 1e5, extra.into_iter().max().unwrap())
    }

    #[test]
    fn jitter_has_its_mean_and_range() {
        let (mean, max) = mean_and_max(Jitter::Uniform(1000));
        assert!((mean - 500.0).abs() < 5.0 && max <= 1000, "{mean} {max}");
        let (mean, max) = mean_and_max(Jitter::Exponential(1000));
        assert!((mean - 1000.0).abs() < 15.0 && max > 8000, "{mean} {max}");
        let (mean, max) = mean_and_max(Jitter::Normal { mean: 1000, sd: 100 });
        assert!((mean - 1000.0).abs() < 2.0 && max < 1600, "{mean} {max}");
    }

    proptest! {
        #[test]
        fn items_leave_in_order_of_due_times_or_of_arrival(
            gaps in prop::collection::vec(0_u64..50, 1..200),
            name: u64,
            kept: bool,
        ) {
            let order = if kept { PacketOrder::Kept } else { PacketOrder::Free };
            let mut line = DelayLine::new(20, Jitter::Exponential(100), order, RandomStream::from_seed(name));
            let mut now = 0;
            let mut entered = Vec::new();
            for (number, gap) in gaps.iter().enumerate() {
                now += gap;
                entered.push((now, line.push_after_delay(now, number)));
            }
            let left = drain(&mut line);
            prop_assert_eq!(left.len(), gaps.len());
            prop_assert!(left.is_sorted_by_key(|(due, _)| *due));
            for (due, number) in &left {
                let (at, expected) = entered[*number];
                prop_assert!(*due == expected && *due >= at + 20);
            }
            if kept {
                prop_assert!(left.iter().map(|(_, number)| *number).eq(0..gaps.len()));
            }
        }
    }
}
