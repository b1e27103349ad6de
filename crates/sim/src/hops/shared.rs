//! A hop where packets of different sources meet, apart from the measured one.

use crate::clock::{NEVER, Nanos, Transmitter};
use crate::config::{HopConfig, RunConfig};
use crate::loss::LossProcess;
use crate::packet::Packet;
use crate::probe::HopBook;
use crate::queue::{DropTail, Fair, QueueConfig, QueueDiscipline, Red, Verdict};
use crate::random::{Purpose, Stream};

/// Any discipline: the bottleneck's is chosen once for the run, that of a hop with every packet.
#[derive(Debug)]
enum Discipline {
    DropTail(DropTail),
    Red(Red),
    Fair(Fair),
}

macro_rules! each {
    ($discipline:expr, $queue:ident => $do:expr) => {
        match $discipline {
            Discipline::DropTail($queue) => $do,
            Discipline::Red($queue) => $do,
            Discipline::Fair($queue) => $do,
        }
    };
}

/// A queue in front of a link, with the random loss before it.
#[derive(Debug)]
pub(super) struct SharedHop {
    queue: Discipline,
    link: Transmitter,
    loss: Option<LossProcess>,
}

impl SharedHop {
    pub(super) fn new(hop: &HopConfig, run: &RunConfig, replication: u32, stage: usize) -> Self {
        let stream = |purpose| Stream::at_hop(run.seed, replication, 0, purpose, stage as u32);
        Self {
            queue: match hop.queue {
                QueueConfig::DropTail => Discipline::DropTail(DropTail::new(hop.buffer)),
                QueueConfig::Red(red) => {
                    let stream = stream(Purpose::HopEarlyDrop);
                    Discipline::Red(Red::new(red, hop.buffer, stream))
                }
                QueueConfig::Fair(fair) => Discipline::Fair(Fair::new(fair, hop.buffer)),
            },
            link: Transmitter::new(hop.rate_bps, run.packet_bytes),
            loss: hop.loss.map(|law| LossProcess::new(law, stream(Purpose::HopLoss))),
        }
    }

    /// Whether packets wait until the link is free to take them.
    pub(super) fn holds_packets(&self) -> bool {
        matches!(self.queue, Discipline::Fair(_))
    }

    /// Whether the packet that comes now is lost at random.
    pub(super) fn loses(&mut self) -> bool {
        self.loss.as_mut().is_some_and(LossProcess::loses)
    }

    pub(super) fn offer(&mut self, now: Nanos, packet: &Packet, book: &mut HopBook) -> Verdict {
        each!(&mut self.queue, queue => queue.offer(now, packet, &mut self.link, book))
    }

    /// As [`QueueDiscipline::serve`].
    pub(super) fn serve(&mut self, book: &mut HopBook) -> Option<(Nanos, Packet)> {
        each!(&mut self.queue, queue => queue.serve(&mut self.link, book))
    }

    /// As [`QueueDiscipline::link_leaves`].
    pub(super) fn link_leaves(&self) -> Nanos {
        match &self.queue {
            Discipline::Fair(queue) => queue.link_leaves(),
            Discipline::DropTail(_) | Discipline::Red(_) => NEVER,
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        each!(&self.queue, queue => queue.waiting())
    }

    pub(super) fn held(&self) -> usize {
        each!(&self.queue, queue => queue.held())
    }

    pub(super) fn settle(&mut self, now: Nanos, book: &mut HopBook) {
        each!(&mut self.queue, queue => queue.settle(now, book));
        book.occupancy.held(self.held(), now);
    }

    pub(super) fn restart(&mut self) {
        each!(&mut self.queue, queue => queue.restart());
        self.loss.iter_mut().for_each(LossProcess::restart);
    }
}
