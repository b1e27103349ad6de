//! Packets in flight to the stages of the path.
//!
//! What leaves one queue gets to the next one in the order in which it left, so each stage has a
//! delay line, as each constant delay has in the event_queue. What would be out of order there, behind
//! paths of several lengths or random delays, goes to a heap beside the line.

use crate::clock::{NEVER, Nanos};
use crate::event_queue::{DelayLine, Heads, LAST};
use crate::packet::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The packets, in the order of time, then of stages, then of scheduling.
#[derive(Debug)]
pub(crate) struct Arrivals {
    stages: Vec<ToStage>,
    /// Of each stage, the head of the line and that of the heap.
    heads: Heads,
    scheduled: u64,
}

#[derive(Clone, Debug, Default)]
struct ToStage {
    line: DelayLine,
    /// What was scheduled when the line had gone beyond its time: so it is behind what the line has of
    /// the same moment.
    stragglers: BinaryHeap<Reverse<(Nanos, u64, Packet)>>,
}

impl ToStage {
    fn first_straggler(&self) -> Nanos {
        self.stragglers.peek().map_or(LAST, |first| first.0.0)
    }
}

impl Arrivals {
    /// None yet, to so many stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            stages: vec![ToStage::default(); stages],
            heads: Heads::new(2 * stages),
            scheduled: 0,
        }
    }

    /// A packet will get to `stage` at `at`; from [`LAST`] on never.
    pub(super) fn schedule(&mut self, at: Nanos, stage: usize, packet: Packet) {
        let at = at.min(LAST);
        let to = &mut self.stages[stage];
        if to.line.push(at, packet) {
            if to.line.len() == 1 {
                self.heads.set(2 * stage, at);
            }
            return;
        }
        self.scheduled += 1;
        to.stragglers.push(Reverse((at, self.scheduled, packet)));
        self.heads.set(2 * stage + 1, to.first_straggler());
    }

    /// When the first gets to its stage; [`NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Nanos {
        let (_, at) = self.heads.first();
        if at == LAST { NEVER } else { at }
    }

    /// Takes the first: to which stage it gets, and when; there must be one.
    pub(crate) fn take(&mut self) -> (Nanos, usize, Packet) {
        let (head, at) = self.heads.first();
        let stage = head / 2;
        let to = &mut self.stages[stage];
        let packet = if head % 2 == 0 {
            let packet = to.line.take();
            self.heads.set(head, to.line.first().unwrap_or(LAST));
            packet
        } else {
            let Reverse((_, _, packet)) = to.stragglers.pop().expect("the head was seen");
            self.heads.set(head, to.first_straggler());
            packet
        };
        (at, stage, packet)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.stages.iter().map(|to| to.line.len() + to.stragglers.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Label;
    use proptest::prelude::*;

    /// Behind a backlog of a century, say: it would be out of order if its time were cut.
    #[test]
    fn what_is_later_than_the_last_time_never_comes() {
        let packet = |number| Packet::new(0, 0, number, Label::default());
        for stages in [2, 7] {
            let mut arrivals = Arrivals::new(stages);
            arrivals.schedule(LAST + 1, 0, packet(0));
            arrivals.schedule(u64::MAX / 2, 0, packet(1));
            arrivals.schedule(LAST + 3, 0, packet(2));
            arrivals.schedule(7, 1, packet(3));
            assert_eq!(arrivals.next(), 7);
            assert_eq!(arrivals.take().2.number(), 3);
            assert_eq!((arrivals.next(), arrivals.len()), (NEVER, 3));
        }
    }

    proptest! {
        /// They come by time, then stage, then in the order of scheduling, as out of one heap.
        #[test]
        fn the_order_is_that_of_a_heap(
            stages in 1_usize..7,
            steps in prop::collection::vec((0_u64..9, 0_usize..7, any::<bool>()), 1..300),
        ) {
            let (mut arrivals, mut heap) = (Arrivals::new(stages), BinaryHeap::new());
            let mut now = 0;
            for (number, (after, stage, take)) in (0_u32..).zip(steps) {
                if take && !heap.is_empty() {
                    let Reverse((at, stage, packet)) = heap.pop().unwrap();
                    now = at;
                    prop_assert_eq!(arrivals.next(), at);
                    let taken = arrivals.take();
                    prop_assert_eq!((taken.0, taken.1, taken.2.number()), (at, stage, packet));
                } else {
                    let (at, stage) = (now + after, stage % stages);
                    arrivals.schedule(at, stage, Packet::new(0, 0, number, Label::default()));
                    heap.push(Reverse((at, stage, number)));
                }
                prop_assert_eq!(arrivals.len(), heap.len());
            }
            prop_assert_eq!(arrivals.next(), heap.peek().map_or(NEVER, |first| first.0.0));
        }
    }
}
