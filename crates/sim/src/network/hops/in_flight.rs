//! Packets in flight to the stages of the path.
//!
//! Packets that leave one queue usually reach the next one in the same order, so each stage has a
//! delay line, like constant delays in the event queue. Packets that overtake others because of
//! different path lengths or random delays are stored in a heap per stage.

use crate::clock::{NEVER, Nanos};
use crate::event_queue::{DelayLine, MAX_TIME, QueueHeads};
use crate::packet::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets in flight, ordered by time, then by stage, then by the order of scheduling.
#[derive(Debug)]
pub(crate) struct PacketsInFlight {
    stages: Vec<PacketsArrivingAtStage>,
    /// Heads of the line and the heap of each stage.
    heads: QueueHeads,
    scheduled: u64,
}

#[derive(Clone, Debug, Default)]
struct PacketsArrivingAtStage {
    line: DelayLine,
    /// Packets scheduled before the end of the line; at equal times, packets of the line come
    /// first.
    stragglers: BinaryHeap<Reverse<(Nanos, u64, Packet)>>,
}

impl PacketsArrivingAtStage {
    fn first_straggler_time(&self) -> Nanos {
        self.stragglers.peek().map_or(MAX_TIME, |first| first.0.0)
    }
}

impl PacketsInFlight {
    /// Creates empty queues for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            stages: vec![PacketsArrivingAtStage::default(); stages],
            heads: QueueHeads::new(2 * stages),
            scheduled: 0,
        }
    }

    /// Schedules the arrival of a packet at `stage` at time `at`; a packet scheduled at
    /// [`MAX_TIME`] or later never arrives.
    pub(super) fn schedule_arrival(&mut self, at: Nanos, stage: usize, packet: Packet) {
        let at = at.min(MAX_TIME);
        let queue = &mut self.stages[stage];
        if queue.line.push_in_order(at, packet) {
            if queue.line.len() == 1 {
                self.heads.set_head(2 * stage, at);
            }
            return;
        }
        self.scheduled += 1;
        queue.stragglers.push(Reverse((at, self.scheduled, packet)));
        self.heads.set_head(2 * stage + 1, queue.first_straggler_time());
    }

    /// Time of the first arrival; [`NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn next_arrival_time(&self) -> Nanos {
        let (_, at) = self.heads.earliest_head();
        if at == MAX_TIME { NEVER } else { at }
    }

    /// Takes the first arrival: time, stage and packet; there must be one.
    pub(crate) fn take_first_arrival(&mut self) -> (Nanos, usize, Packet) {
        let (head, at) = self.heads.earliest_head();
        let stage = head / 2;
        let queue = &mut self.stages[stage];
        let packet = if head % 2 == 0 {
            let packet = queue.line.take_first();
            self.heads.set_head(head, queue.line.first_time().unwrap_or(MAX_TIME));
            packet
        } else {
            let Reverse((_, _, packet)) = queue.stragglers.pop().expect("the head was seen");
            self.heads.set_head(head, queue.first_straggler_time());
            packet
        };
        (at, stage, packet)
    }

    /// Number of packets in flight.
    pub(super) fn len(&self) -> usize {
        self.stages.iter().map(|queue| queue.line.len() + queue.stragglers.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketLabel;
    use proptest::prelude::*;

    /// Such times occur behind a backlog of a century; clamping must not break the order.
    #[test]
    fn arrivals_after_the_last_time_never_occur() {
        let packet = |number| Packet::new(0, 0, number, PacketLabel::default());
        for stages in [2, 7] {
            let mut arrivals = PacketsInFlight::new(stages);
            arrivals.schedule_arrival(MAX_TIME + 1, 0, packet(0));
            arrivals.schedule_arrival(u64::MAX / 2, 0, packet(1));
            arrivals.schedule_arrival(MAX_TIME + 3, 0, packet(2));
            arrivals.schedule_arrival(7, 1, packet(3));
            assert_eq!(arrivals.next_arrival_time(), 7);
            assert_eq!(arrivals.take_first_arrival().2.number(), 3);
            assert_eq!((arrivals.next_arrival_time(), arrivals.len()), (NEVER, 3));
        }
    }

    proptest! {
        /// Arrivals are taken by time, then by stage, then in the order of scheduling.
        #[test]
        fn arrivals_have_the_order_of_a_heap(
            stages in 1_usize..7,
            steps in prop::collection::vec((0_u64..9, 0_usize..7, any::<bool>()), 1..300),
        ) {
            let (mut arrivals, mut heap) = (PacketsInFlight::new(stages), BinaryHeap::new());
            let mut now = 0;
            for (number, (after, stage, take)) in (0_u32..).zip(steps) {
                if take && !heap.is_empty() {
                    let Reverse((at, stage, packet)) = heap.pop().unwrap();
                    now = at;
                    prop_assert_eq!(arrivals.next_arrival_time(), at);
                    let taken = arrivals.take_first_arrival();
                    prop_assert_eq!((taken.0, taken.1, taken.2.number()), (at, stage, packet));
                } else {
                    let (at, stage) = (now + after, stage % stages);
                    arrivals.schedule_arrival(at, stage, Packet::new(0, 0, number, PacketLabel::default()));
                    heap.push(Reverse((at, stage, number)));
                }
                prop_assert_eq!(arrivals.len(), heap.len());
            }
            prop_assert_eq!(arrivals.next_arrival_time(), heap.peek().map_or(NEVER, |first| first.0.0));
        }
    }
}
