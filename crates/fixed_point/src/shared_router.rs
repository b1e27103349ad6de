//! The shared router of all flows, with an exact scheduler.

use std::collections::VecDeque;
use tcpcast_sim::Packet;
use tcpcast_sim::clock::{NEVER, Nanos, Transmitter};
use tcpcast_sim::queue::{EnqueueOutcome, QueueDiscipline, QueueProbe};

/// The outcome of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouterOutcome {
    /// The link transmits the packet, which leaves at this time.
    Leaves(Nanos),
    /// The packet waits for [`SharedRouter::take_next_departure`]. Contains the packet that was
    /// evicted, if any.
    Waits(Option<Packet>),
    /// The packet was dropped.
    Dropped,
}

/// A queue discipline in front of a link.
///
/// Disciplines that hold packets return each packet from [`SharedRouter::take_next_departure`] at
/// the start of its transmission, other disciplines at its departure.
#[derive(Clone, Debug)]
pub(super) struct SharedRouter<Q> {
    pub queue: Q,
    pub link: Transmitter,
    leaving: VecDeque<(Nanos, Packet)>,
}

impl<Q: QueueDiscipline> SharedRouter<Q> {
    pub(super) fn new(queue: Q, link: Transmitter) -> Self {
        Self { queue, link, leaving: VecDeque::new() }
    }

    /// Time of the next [`SharedRouter::take_next_departure`]; [`NEVER`] if no packet waits.
    pub(super) fn next_departure(&self) -> Nanos {
        if Q::HOLDS_PACKETS {
            self.queue.next_departure()
        } else {
            self.leaving.front().map_or(NEVER, |(leaves, _)| *leaves)
        }
    }

    /// Removes the next packet at [`SharedRouter::next_departure`], and returns its departure time
    /// and the packet.
    pub(super) fn take_next_departure(
        &mut self,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        if Q::HOLDS_PACKETS {
            self.queue.transmit_next_packet(&mut self.link, probe)
        } else {
            self.leaving.pop_front()
        }
    }

    pub(super) fn offer_packet(
        &mut self,
        now: Nanos,
        packet: Packet,
        probe: &mut impl QueueProbe,
    ) -> RouterOutcome {
        match self.queue.enqueue(now, &packet, &mut self.link, probe) {
            EnqueueOutcome::Departs { leaves, .. } if Q::HOLDS_PACKETS => {
                RouterOutcome::Leaves(leaves)
            }
            EnqueueOutcome::Departs { leaves, .. } => {
                self.leaving.push_back((leaves, packet));
                RouterOutcome::Waits(None)
            }
            EnqueueOutcome::Held { evicted, .. } => RouterOutcome::Waits(evicted),
            EnqueueOutcome::Dropped => RouterOutcome::Dropped,
        }
    }

    /// Number of packets that [`SharedRouter::take_next_departure`] has not returned yet.
    pub(super) fn waiting_packets(&self) -> u64 {
        if Q::HOLDS_PACKETS { self.queue.waiting_packets() } else { self.leaving.len() as u64 }
    }
}
