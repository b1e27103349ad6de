//! The router that all flows share: the real scheduler, and what it says of each packet.

use std::collections::VecDeque;
use tcpcast_sim::Packet;
use tcpcast_sim::clock::{NEVER, Nanos, Transmitter};
use tcpcast_sim::queue::{QueueDiscipline, QueueProbe, Verdict};

/// The outcome of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// The link has taken it, and it will have left at that time.
    Leaves(Nanos),
    /// It waits; [`Shared::take`] tells of it. Another packet may have had to go.
    Waits(Option<Packet>),
    /// It was dropped.
    Dropped,
}

/// A queue discipline in front of a link, of either kind: one that holds its packets tells of each
/// when the link takes it, one that does not when it has left.
#[derive(Clone, Debug)]
pub(super) struct Shared<Q> {
    pub queue: Q,
    pub link: Transmitter,
    leaving: VecDeque<(Nanos, Packet)>,
}

impl<Q: QueueDiscipline> Shared<Q> {
    pub(super) fn new(queue: Q, link: Transmitter) -> Self {
        Self { queue, link, leaving: VecDeque::new() }
    }

    /// When the next packet is to be taken, [`NEVER`] if none waits.
    pub(super) fn next(&self) -> Nanos {
        if Q::HOLDS_PACKETS {
            self.queue.next_departure()
        } else {
            self.leaving.front().map_or(NEVER, |(leaves, _)| *leaves)
        }
    }

    /// That time has come: which packet, and when it will have left.
    pub(super) fn take(&mut self, probe: &mut impl QueueProbe) -> Option<(Nanos, Packet)> {
        if Q::HOLDS_PACKETS {
            self.queue.serve(&mut self.link, probe)
        } else {
            self.leaving.pop_front()
        }
    }

    pub(super) fn offer(
        &mut self,
        now: Nanos,
        packet: Packet,
        probe: &mut impl QueueProbe,
    ) -> Offered {
        match self.queue.offer(now, &packet, &mut self.link, probe) {
            Verdict::Departs { leaves, .. } if Q::HOLDS_PACKETS => Offered::Leaves(leaves),
            Verdict::Departs { leaves, .. } => {
                self.leaving.push_back((leaves, packet));
                Offered::Waits(None)
            }
            Verdict::Held { evicted, .. } => Offered::Waits(evicted),
            Verdict::Dropped => Offered::Dropped,
        }
    }

    /// Packets in it that have not been told of.
    pub(super) fn waiting(&self) -> u64 {
        if Q::HOLDS_PACKETS { self.queue.waiting() } else { self.leaving.len() as u64 }
    }
}
