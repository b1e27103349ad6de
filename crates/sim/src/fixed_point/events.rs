//! What happens next in a fixed point. Most of it is a cross flow's next packet, at a time that is
//! drawn, so there are no delay lines as in [`crate::agenda`]: all events are in one heap.

use crate::clock::{NEVER, Nanos};
use crate::random::mix;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an event is; at equal times the order is this one, then one by lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An acknowledgement reaches the sender of a reference flow.
    Ack,
    /// News of a loss at a hop of a flow's own reaches its sender.
    News,
    /// A cross flow goes on at the first of its own hops before the shared router.
    Door,
    /// A packet of a reference flow reaches the shared router, or a cross flow goes on there.
    Arrival,
    /// The timer of a reference flow.
    Timer,
    /// The end of a silence.
    Click,
}

const EVENTS: [Event; 6] =
    [Event::Ack, Event::News, Event::Door, Event::Arrival, Event::Timer, Event::Click];

/// Bits of the lot.
const LOT: u32 = 24;

/// The events to come.
///
/// Where all service times are multiples of one another, as on links of 10 and 100 Mbit/s, packets of
/// many flows arrive at one moment, and the first of them takes the only place in a full buffer. So
/// neither reference flows nor cross flows may always come first: a lot decides.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(BinaryHeap<Reverse<u128>>);

impl Events {
    pub(super) fn push(&mut self, due: Nanos, event: Event, flow: u32) {
        let lot = mix(due ^ mix(u64::from(flow))) >> (u64::BITS - LOT);
        let order = (event as u128) << LOT | u128::from(lot);
        self.0.push(Reverse(u128::from(due) << 64 | order << 32 | u128::from(flow)));
    }

    pub(super) fn due(&self) -> Nanos {
        self.0.peek().map_or(NEVER, |first| (first.0 >> 64) as Nanos)
    }

    pub(super) fn take(&mut self) -> Option<(Nanos, Event, u32)> {
        let Reverse(first) = self.0.pop()?;
        let event = EVENTS[usize::from((first >> (32 + LOT)) as u8)];
        Some(((first >> 64) as Nanos, event, first as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_moment_each_of_two_flows_comes_first_as_often_as_the_other() {
        let mut first = 0;
        for due in 0..4000 {
            let mut events = Events::default();
            events.push(due, Event::Arrival, 0);
            events.push(due, Event::Arrival, 99);
            events.push(due, Event::Ack, 50);
            assert_eq!(events.take(), Some((due, Event::Ack, 50)));
            first += u32::from(events.take() == Some((due, Event::Arrival, 0)));
        }
        assert!((1900..2100).contains(&first), "{first} of 4000");
    }
}
