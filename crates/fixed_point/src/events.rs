//! What happens next in a fixed point. Times are drawn, or behind links of each flow's own, so
//! there are no delay lines as in the packet engine: all events are in one [`Wheel`].

use tcpcast_sim::clock::{NEVER, Nanos};
use tcpcast_sim::random::scatter;
use tcpcast_sim::wheel::Wheel;

/// What an event is. Of those at the sender of a reference flow the time is that at which a packet
/// that it sends then gets to the shared router, or to the first of its own hops before that:
/// mostly there is one, and no event more is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Loss feedback reaches the sender of a reference flow, or of a cross flow that of a loss at a
    /// hop of its own.
    LossFeedback,
    /// A cross flow goes on at the first of its own hops before the shared router.
    Door,
    /// A packet of a reference flow reaches the shared router, or a cross flow goes on there.
    Arrival,
    /// An acknowledgement reaches the sender of a reference flow.
    Ack,
    /// The timer of a reference flow.
    Timer,
    /// The end of an OFF time.
    FileStart,
}

const EVENTS: [Event; 6] =
    [Event::LossFeedback, Event::Door, Event::Arrival, Event::Ack, Event::Timer, Event::FileStart];

impl Event {
    /// At equal times the order is by this, then by lot.
    fn rank(self) -> u64 {
        match self {
            Self::LossFeedback => 0,
            Self::Door => 1,
            Self::Arrival | Self::Ack => 2,
            Self::Timer => 3,
            Self::FileStart => 4,
        }
    }
}

/// Bits of the lot, and of what an event is behind it.
const LOT: u32 = 20;
const EVENT: u32 = 4;

/// The events to come.
///
/// Where all service times are multiples of one another, as on links of 10 and 100 Mbit/s, packets
/// of many flows arrive at one moment, and the first of them takes the only place in a full buffer.
/// So neither reference flows nor cross flows may always come first: ties are broken at random.
#[derive(Clone, Debug)]
pub(super) struct Events(Wheel);

impl Events {
    pub(super) fn new() -> Self {
        Self(Wheel::new())
    }

    pub(super) fn push(&mut self, due: Nanos, event: Event, flow: u32) {
        let lot = scatter(due ^ scatter(u64::from(flow))) >> (u64::BITS - LOT);
        let order = (event.rank() << LOT | lot) << EVENT | event as u64;
        self.0.add(due, order << u32::BITS | u64::from(flow));
    }

    pub(super) fn due(&mut self) -> Nanos {
        self.0.first().unwrap_or(NEVER)
    }

    pub(super) fn take(&mut self) -> Option<(Nanos, Event, u32)> {
        let (due, what) = self.0.take()?;
        let event = EVENTS[(what >> u32::BITS) as usize % (1 << EVENT)];
        Some((due, event, what as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_moment_each_of_two_flows_comes_first_as_often_as_the_other() {
        let mut first = 0;
        for due in 0..4000 {
            let mut events = Events::new();
            events.push(due, Event::Arrival, 0);
            events.push(due, Event::Ack, 99);
            events.push(due, Event::LossFeedback, 50);
            assert_eq!(events.take(), Some((due, Event::LossFeedback, 50)));
            first += u32::from(events.take() == Some((due, Event::Arrival, 0)));
        }
        assert!((1900..2100).contains(&first), "{first} of 4000");
    }
}
