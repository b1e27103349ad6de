//! Propagation: a delay line, with jitter that keeps the order of packets or does not.

use crate::random::{Draws, Stream};
use crate::time::{NEVER, Nanos};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// How much longer than the least a packet takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// Uniformly, from nothing to this.
    Uniform(Nanos),
    /// Exponentially, with this mean.
    Exponential(Nanos),
    /// Normally with this mean and standard deviation, cut off at nothing.
    Normal {
        /// The mean.
        mean: Nanos,
        /// The standard deviation.
        sd: Nanos,
    },
}

impl Jitter {
    fn draw(self, draws: &mut impl Draws) -> Nanos {
        let longer = match self {
            Self::None => return 0,
            Self::Uniform(most) => (1.0 - draws.unit()) * most as f64,
            Self::Exponential(mean) => -libm::log(draws.unit()) * mean as f64,
            Self::Normal { mean, sd } => {
                // Box and Muller; the second of the two numbers is not needed.
                let radius = libm::sqrt(-2.0 * libm::log(draws.unit()));
                let angle = std::f64::consts::TAU * draws.unit();
                mean as f64 + radius * libm::cos(angle) * sd as f64
            }
        };
        // A cast cuts negative numbers off.
        libm::round(longer) as Nanos
    }
}

/// Whether a packet may overtake another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// None does: one that would waits for the one before it.
    Kept,
    /// It does, where its delay is so much shorter.
    Free,
}

#[derive(Clone, Debug)]
struct InTransit<I> {
    due: Nanos,
    number: u64,
    item: I,
}

// The heap yields the greatest: that is what is due first, of several the first that came.
impl<I> Ord for InTransit<I> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<I> PartialOrd for InTransit<I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I> PartialEq for InTransit<I> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<I> Eq for InTransit<I> {}

#[derive(Clone, Debug)]
enum Line<I> {
    InOrder(VecDeque<(Nanos, I)>),
    Overtaking(BinaryHeap<InTransit<I>>),
}

/// What is under propagation, and when it is due at the far end.
#[derive(Clone, Debug)]
pub struct DelayLine<I, D = Stream> {
    delay: Nanos,
    jitter: Jitter,
    draws: D,
    line: Line<I>,
    /// When the last packet is due, where the order is kept.
    last_due: Nanos,
    number: u64,
}

impl<I, D: Draws> DelayLine<I, D> {
    /// An empty line; packets take `delay` and the jitter.
    #[must_use]
    pub fn new(delay: Nanos, jitter: Jitter, order: Order, draws: D) -> Self {
        let line = if order == Order::Kept || jitter == Jitter::None {
            Line::InOrder(VecDeque::new())
        } else {
            Line::Overtaking(BinaryHeap::new())
        };
        Self { delay, jitter, draws, line, last_due: 0, number: 0 }
    }

    /// An empty line whose caller says when each thing is due, in any order.
    #[must_use]
    pub fn scheduled(draws: D) -> Self {
        let line = Line::Overtaking(BinaryHeap::new());
        Self { delay: 0, jitter: Jitter::None, draws, line, last_due: 0, number: 0 }
    }

    /// Something enters at `now`, which is not before the last time; when it is due.
    #[inline]
    pub fn push(&mut self, now: Nanos, item: I) -> Nanos {
        let due = now + self.delay + self.jitter.draw(&mut self.draws);
        self.schedule(due, item)
    }

    /// Something is due at `due`, or on a line that keeps the order, with the last before it if that
    /// is later; when that is.
    #[inline]
    pub fn schedule(&mut self, due: Nanos, item: I) -> Nanos {
        let mut due = due;
        match &mut self.line {
            Line::InOrder(line) => {
                due = due.max(self.last_due);
                self.last_due = due;
                line.push_back((due, item));
            }
            Line::Overtaking(line) => {
                self.number += 1;
                line.push(InTransit { due, number: self.number, item });
            }
        }
        due
    }

    /// When the next is due; [`NEVER`] if there is none.
    #[inline]
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        match &self.line {
            Line::InOrder(line) => line.front().map_or(NEVER, |(due, _)| *due),
            Line::Overtaking(line) => line.peek().map_or(NEVER, |first| first.due),
        }
    }

    /// Takes the next if it is due by `now`, with the time at which it is.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<(Nanos, I)> {
        if self.next_due() > now {
            return None;
        }
        match &mut self.line {
            Line::InOrder(line) => line.pop_front(),
            Line::Overtaking(line) => line.pop().map(|first| (first.due, first.item)),
        }
    }

    /// How many are on the line.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.line {
            Line::InOrder(line) => line.len(),
            Line::Overtaking(line) => line.len(),
        }
    }

    /// Whether nothing is on the line.
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
    fn packets_come_after_the_delay_and_not_before() {
        let mut line = DelayLine::new(100, Jitter::None, Order::Free, Stream::of(1));
        assert_eq!(line.next_due(), NEVER);
        assert_eq!((line.push(0, 'a'), line.push(7, 'b')), (100, 107));
        assert_eq!((line.next_due(), line.pop(99)), (100, None));
        assert_eq!((line.pop(100), line.pop(106)), (Some((100, 'a')), None));
        assert_eq!((line.pop(200), line.is_empty()), (Some((107, 'b')), true));
    }

    #[test]
    fn what_is_scheduled_comes_when_it_is_due() {
        let mut line = DelayLine::scheduled(Stream::of(1));
        assert_eq!((line.schedule(9, 'a'), line.schedule(3, 'b')), (9, 3));
        assert_eq!(line.schedule(9, 'c'), 9);
        assert_eq!(drain(&mut line), [(3, 'b'), (9, 'a'), (9, 'c')]);
        let mut kept = DelayLine::new(0, Jitter::None, Order::Kept, Stream::of(1));
        assert_eq!((kept.schedule(9, 'a'), kept.schedule(3, 'b')), (9, 9));
    }

    fn mean_and_most(jitter: Jitter) -> (f64, Nanos) {
        let mut line = DelayLine::new(0, jitter, Order::Free, Stream::of(3));
        let longer: Vec<Nanos> = (0..100_000).map(|_| line.push(0, ())).collect();
        (longer.iter().sum::<u64>() as f64 / 1e5, longer.into_iter().max().unwrap())
    }

    #[test]
    fn jitter_has_its_mean() {
        let (mean, most) = mean_and_most(Jitter::Uniform(1000));
        assert!((mean - 500.0).abs() < 5.0 && most <= 1000, "{mean} {most}");
        let (mean, most) = mean_and_most(Jitter::Exponential(1000));
        assert!((mean - 1000.0).abs() < 15.0 && most > 8000, "{mean} {most}");
        let (mean, most) = mean_and_most(Jitter::Normal { mean: 1000, sd: 100 });
        assert!((mean - 1000.0).abs() < 2.0 && most < 1600, "{mean} {most}");
    }

    proptest! {
        #[test]
        fn order_is_kept_or_is_that_of_due_times(
            gaps in prop::collection::vec(0_u64..50, 1..200),
            name: u64,
            kept: bool,
        ) {
            let order = if kept { Order::Kept } else { Order::Free };
            let mut line = DelayLine::new(20, Jitter::Exponential(100), order, Stream::of(name));
            let mut now = 0;
            let mut entered = Vec::new();
            for (number, gap) in gaps.iter().enumerate() {
                now += gap;
                entered.push((now, line.push(now, number)));
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
