//! Event queue of a fixed point: one [`TimingWheel`] for all events.

use tcpcast_link::timing_wheel::TimingWheel;
use tcpcast_sim::clock::Nanos;
use tcpcast_sim::random::mix_bits;

/// Kind of an event.
///
/// Events at the sender of a reference flow are scheduled with the upstream delay: at the time at
/// which a packet that is sent at the event would arrive at the shared router or at the first
/// per-source hop. Most of these events send a packet, whose arrival then needs no extra event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowEvent {
    /// Loss feedback reaches the sender of a reference flow, or the sender of a cross flow after a
    /// loss at a per-source hop.
    LossFeedback,
    /// The scheduled event of a cross flow at the first per-source hop before the shared router.
    Entry,
    /// A packet arrives at the shared router, or the scheduled event of a cross flow there.
    Arrival,
    /// An ACK reaches the sender of a reference flow.
    Ack,
    /// The retransmission timer of a reference flow.
    RetransmissionTimer,
    /// The end of an OFF time.
    FileStart,
}

const FLOW_EVENTS: [FlowEvent; 6] = [
    FlowEvent::LossFeedback,
    FlowEvent::Entry,
    FlowEvent::Arrival,
    FlowEvent::Ack,
    FlowEvent::RetransmissionTimer,
    FlowEvent::FileStart,
];

impl FlowEvent {
    /// Rank by which simultaneous events of different kinds are ordered.
    fn rank_at_equal_times(self) -> u64 {
        match self {
            Self::LossFeedback => 0,
            Self::Entry => 1,
            Self::Arrival | Self::Ack => 2,
            Self::RetransmissionTimer => 3,
            Self::FileStart => 4,
        }
    }
}

/// Bits of the random tie-breaker, and of the kind of the event.
const TIE_BITS: u32 = 20;
const EVENT_BITS: u32 = 4;

/// The event queue.
///
/// If the service times are multiples of each other, as on links of 10 and 100 Mbit/s, packets of
/// many flows arrive simultaneously, and the first one takes the last place in the buffer. Ties are
/// broken at random so that neither reference flows nor cross flows have an advantage.
#[derive(Clone, Debug)]
pub(super) struct FlowEventQueue(TimingWheel<Nanos>);

impl FlowEventQueue {
    pub(super) fn new() -> Self {
        Self(TimingWheel::default())
    }

    pub(super) fn push(&mut self, due: Nanos, event: FlowEvent, flow: u32) {
        let tie = mix_bits(due ^ mix_bits(u64::from(flow))) >> (u64::BITS - TIE_BITS);
        let order = (event.rank_at_equal_times() << TIE_BITS | tie) << EVENT_BITS | event as u64;
        self.0.push(order << u32::BITS | u64::from(flow), &due);
    }

    pub(super) fn next_time(&self) -> Nanos {
        self.0.next_time()
    }

    pub(super) fn take_next_event(&mut self) -> Option<(Nanos, FlowEvent, u32)> {
        let (bits, due) = self.0.pop().map(|(bits, due)| (bits, *due))?;
        let event = FLOW_EVENTS[(bits >> u32::BITS) as usize % (1 << EVENT_BITS)];
        Some((due, event, bits as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_between_flows_are_broken_uniformly() {
        let mut first = 0;
        for due in 0..4000 {
            let mut events = FlowEventQueue::new();
            events.push(due, FlowEvent::Arrival, 0);
            events.push(due, FlowEvent::Ack, 99);
            events.push(due, FlowEvent::LossFeedback, 50);
            assert_eq!(events.take_next_event(), Some((due, FlowEvent::LossFeedback, 50)));
            first += u32::from(events.take_next_event() == Some((due, FlowEvent::Arrival, 0)));
        }
        assert!((1900..2100).contains(&first), "{first} of 4000");
    }
}
