//! What happens next in a fixed point. Most of it is a cross flow's next packet, at a time that is
//! drawn, so there are no delay lines as in [`crate::agenda`]: all events are in one heap.

use crate::clock::{NEVER, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an event is; at equal times the order is this one, then that of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An acknowledgement reaches the sender of a reference flow.
    Ack,
    /// A packet of a reference flow reaches the shared router.
    Arrival,
    /// A cross flow goes on.
    Cross,
    /// The timer of a reference flow.
    Timer,
    /// The end of a silence.
    Click,
}

const EVENTS: [Event; 5] = [Event::Ack, Event::Arrival, Event::Cross, Event::Timer, Event::Click];

/// The events to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Events(BinaryHeap<Reverse<u128>>);

impl Events {
    pub(super) fn push(&mut self, due: Nanos, event: Event, flow: u32) {
        self.0.push(Reverse(u128::from(due) << 64 | (event as u128) << 32 | u128::from(flow)));
    }

    pub(super) fn due(&self) -> Nanos {
        self.0.peek().map_or(NEVER, |first| (first.0 >> 64) as Nanos)
    }

    pub(super) fn take(&mut self) -> Option<(Nanos, Event, u32)> {
        let Reverse(first) = self.0.pop()?;
        let event = EVENTS[(first >> 32) as u32 as usize % EVENTS.len()];
        Some(((first >> 64) as Nanos, event, first as u32))
    }
}
