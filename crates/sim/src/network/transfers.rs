//! Single transfers: when the next one begins, how large it is, and on which source.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::clock::{Nanos, SECOND, nanoseconds};
use crate::event_queue::Timer;
use crate::loss::BottleneckLosses;
use crate::queue::QueueDiscipline;
use crate::random::{Named, Purpose, Stream};
use crate::tcp::SendingEnd;
use crate::traffic::{FileSize, Traffic};
use std::collections::VecDeque;

/// From the end of a transfer to the beginning of the next on an empty path, or to another look at
/// whether it is empty.
pub(crate) const GAP: Nanos = SECOND / 100;

/// No more transfers than this last at a time: then more come than go.
pub(crate) const MAX_CONCURRENT: usize = 1_000_000;

/// The transfers of one class.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    /// Those that have begun.
    pub begun: u64,
    pub gaps: Stream,
    pub sizes: Stream,
    /// Sources without a transfer; the one that has been idle longest is the next.
    pub idle: VecDeque<u32>,
}

impl Transfers {
    pub(crate) fn new(seed: u64, replication: u32, class: usize) -> Self {
        let stream = |purpose| Stream::named(seed, replication, class as u32, purpose);
        Self {
            begun: 0,
            gaps: stream(Purpose::Arrival),
            sizes: stream(Purpose::ArrivalSize),
            idle: VecDeque::new(),
        }
    }
}

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOPS: bool>
    Network<Q, HAS_TAPS, HAS_HOPS>
{
    /// The size of the transfer of class `class` that begins now, and when to ask for the next;
    /// `None` if it cannot begin yet.
    pub(crate) fn next_transfer(&mut self, class: usize) -> Option<FileSize> {
        let transfers = &mut self.transfers[class];
        match &self.traffic[class] {
            Traffic::Arrivals { gap, size, rounding } => {
                let gap = nanoseconds(gap.draw(&mut transfers.gaps));
                self.event_queue.set_timer(Timer::Transfer, class as u32, self.now + gap);
                Some(rounding.file(size.draw(&mut transfers.sizes)))
            }
            Traffic::Transfers { sizes } => {
                let size = sizes[(transfers.begun % sizes.len() as u64) as usize];
                if !self.is_empty() {
                    self.event_queue.set_timer(Timer::Transfer, class as u32, self.now + GAP);
                    return None;
                }
                self.transfers[class].begun += 1;
                self.queue.restart();
                if HAS_HOPS {
                    self.hop_chain.restart();
                }
                self.access_loss.restart();
                self.loss.iter_mut().for_each(BottleneckLosses::restart);
                Some(size)
            }
            Traffic::OnOff { .. } | Traffic::Bulk { .. } => None,
        }
    }

    /// Whether nothing is in flight: a retransmission for nothing may outlast its transfer.
    fn is_empty(&mut self) -> bool {
        self.queue.advance_to(self.now, &mut self.probes);
        if HAS_HOPS {
            self.hop_chain.advance_to(self.now, &mut self.probes);
            if !self.hop_chain.is_empty() {
                return false;
            }
        }
        let waiting = self.ingress_waiting.held() + self.egress_waiting.held();
        self.queue.held() == 0 && waiting + self.event_queue.count(|_| true) == 0
    }

    /// A transfer begins whose delivery and losses are told.
    pub(crate) fn begin_transfer<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        index: u32,
        size: FileSize,
    ) {
        source.record.reset_losses();
        self.begin(source, path, index, size);
    }

    /// A transfer is over; its source is idle.
    pub(crate) fn end_transfer<S: SendingEnd>(&mut self, source: &Source<S>, index: u32) {
        self.probes.single_transfer_finished(self.sender_now(), &source.record);
        self.transfers[source.record.class()].idle.push_back(index);
    }
}
