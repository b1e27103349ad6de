//! A queue of any discipline, selected at run time for each packet. Used where its speed does not
//! matter, to avoid a copy of the code per discipline.

use super::{
    DropTail, EnqueueOutcome, FairQueue, LinkLoad, ManagedQueue, PolicerQueue, QueueConfig,
    QueueDiscipline, QueueProbe, RedQueue, TransmittedPacketInfo,
};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::RandomStream;

/// Any discipline.
#[derive(Clone, Debug)]
pub enum AnyQueue {
    /// First in, first out.
    DropTail(DropTail),
    /// Random early detection.
    Red(Box<RedQueue>),
    /// Fair queueing.
    Fair(Box<FairQueue>),
    /// A discipline that may drop or mark packets that it holds.
    Managed(Box<ManagedQueue>),
    /// A policer.
    Policed(PolicerQueue),
}

macro_rules! each {
    ($discipline:expr, $queue:ident => $do:expr) => {
        match $discipline {
            AnyQueue::DropTail($queue) => $do,
            AnyQueue::Red($queue) => $do,
            AnyQueue::Fair($queue) => $do,
            AnyQueue::Managed($queue) => $do,
            AnyQueue::Policed($queue) => $do,
        }
    };
}

impl AnyQueue {
    /// Creates an empty queue with a buffer limit of `limit` packets. `early` decides early drops,
    /// `tie` selects among equally long queues.
    #[must_use]
    pub fn new(
        config: QueueConfig,
        limit: Option<u64>,
        early: RandomStream,
        tie: RandomStream,
    ) -> Self {
        match config {
            QueueConfig::DropTail => Self::DropTail(DropTail::new(limit)),
            QueueConfig::Red(red) => Self::Red(Box::new(RedQueue::new(red, limit, early))),
            QueueConfig::Fair(fair) if fair.is_random() => {
                Self::Fair(Box::new(FairQueue::with_random_selection(fair, limit, tie)))
            }
            QueueConfig::Fair(fair) => Self::Fair(Box::new(FairQueue::new(fair, limit))),
            QueueConfig::Managed(managed) => {
                Self::Managed(Box::new(ManagedQueue::new(managed, limit, early)))
            }
            QueueConfig::Policed(policed) => Self::Policed(PolicerQueue::new(policed)),
        }
    }

    /// Calls [`FairQueue::make_first_flows_heavy`] for fair queues.
    pub fn make_first_flows_heavy(&mut self, flows: u32, times: f64) {
        if let Self::Fair(fair) = self {
            fair.make_first_flows_heavy(flows, times);
        }
    }

    /// Whether the queue holds packets until the link is free.
    #[must_use]
    pub fn holds_packets_until_link_free(&self) -> bool {
        matches!(self, Self::Fair(_) | Self::Managed(_))
    }
}

impl QueueDiscipline for AnyQueue {
    const HOLDS_PACKETS: bool = true;
    const DROPS_HELD_PACKETS: bool = true;

    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        each!(self, queue => queue.enqueue(now, packet, link, probe))
    }

    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        each!(self, queue => queue.advance_to(now, probe));
    }

    fn reset_for_next_transfer(&mut self) {
        each!(self, queue => queue.reset_for_next_transfer());
    }

    fn held_packets(&self) -> usize {
        each!(self, queue => queue.held_packets())
    }

    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        each!(self, queue => queue.sum_of_remaining_times(now))
    }

    fn next_departure(&self) -> Nanos {
        each!(self, queue => queue.next_departure())
    }

    fn transmit_next_packet(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        each!(self, queue => queue.transmit_next_packet(link, probe))
    }

    fn waiting_packets(&self) -> u64 {
        each!(self, queue => queue.waiting_packets())
    }

    fn last_transmitted_packet(&self) -> Option<TransmittedPacketInfo> {
        each!(self, queue => queue.last_transmitted_packet())
    }

    fn link_load_until(&self, now: Nanos) -> Option<LinkLoad> {
        each!(self, queue => queue.link_load_until(now))
    }

    fn take_dropped_packets(
        &mut self,
        into: &mut Vec<(Nanos, Packet)>,
        probe: &mut impl QueueProbe,
    ) {
        each!(self, queue => queue.take_dropped_packets(into, probe));
    }

    fn prefetch_ahead(&self, turns: usize, visit: impl FnMut(u32)) {
        each!(self, queue => queue.prefetch_ahead(turns, visit));
    }
}
