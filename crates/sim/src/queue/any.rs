//! A queue of any discipline, selected at run time for each packet. Used where its speed does not
//! matter, to avoid a copy of the code per discipline.

use super::{
    Carried, DropTail, Fair, Managed, Passed, Policed, QueueConfig, QueueDiscipline, QueueProbe,
    Red, Verdict,
};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::Stream;

/// Any discipline.
#[derive(Clone, Debug)]
pub enum AnyQueue {
    /// First in, first out.
    DropTail(DropTail),
    /// Random early detection.
    Red(Box<Red>),
    /// Fair queueing.
    Fair(Box<Fair>),
    /// A discipline that may drop or mark packets that it holds.
    Managed(Box<Managed>),
    /// A policer.
    Policed(Policed),
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
    pub fn new(config: QueueConfig, limit: Option<u64>, early: Stream, tie: Stream) -> Self {
        match config {
            QueueConfig::DropTail => Self::DropTail(DropTail::new(limit)),
            QueueConfig::Red(red) => Self::Red(Box::new(Red::new(red, limit, early))),
            QueueConfig::Fair(fair) if fair.is_random() => {
                Self::Fair(Box::new(Fair::at_random(fair, limit, tie)))
            }
            QueueConfig::Fair(fair) => Self::Fair(Box::new(Fair::new(fair, limit))),
            QueueConfig::Managed(managed) => {
                Self::Managed(Box::new(Managed::new(managed, limit, early)))
            }
            QueueConfig::Policed(policed) => Self::Policed(Policed::new(policed)),
        }
    }

    /// Calls [`Fair::charge_first`] for fair queues.
    pub fn charge_first(&mut self, flows: u32, times: f64) {
        if let Self::Fair(fair) = self {
            fair.charge_first(flows, times);
        }
    }

    /// Whether the queue holds packets until the link is free.
    #[must_use]
    pub fn holds_packets(&self) -> bool {
        matches!(self, Self::Fair(_) | Self::Managed(_))
    }
}

impl QueueDiscipline for AnyQueue {
    const HOLDS_PACKETS: bool = true;
    const DROPS_HELD_PACKETS: bool = true;

    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        each!(self, queue => queue.offer(now, packet, link, probe))
    }

    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        each!(self, queue => queue.advance_to(now, probe));
    }

    fn restart(&mut self) {
        each!(self, queue => queue.restart());
    }

    fn held(&self) -> usize {
        each!(self, queue => queue.held())
    }

    fn ahead(&self, now: Nanos) -> Nanos {
        each!(self, queue => queue.ahead(now))
    }

    fn next_departure(&self) -> Nanos {
        each!(self, queue => queue.next_departure())
    }

    fn serve(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        each!(self, queue => queue.serve(link, probe))
    }

    fn waiting(&self) -> u64 {
        each!(self, queue => queue.waiting())
    }

    fn passed(&self) -> Option<Passed> {
        each!(self, queue => queue.passed())
    }

    fn carried(&self, now: Nanos) -> Option<Carried> {
        each!(self, queue => queue.carried(now))
    }

    fn take_dropped(&mut self, into: &mut Vec<(Nanos, Packet)>, probe: &mut impl QueueProbe) {
        each!(self, queue => queue.take_dropped(into, probe));
    }

    fn prefetch_ahead(&self, turns: usize, visit: impl FnMut(u32)) {
        each!(self, queue => queue.prefetch_ahead(turns, visit));
    }
}
