//! Single transfers: start time, size and source of the next transfer.

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

/// Time from the end of a transfer to the start of the next one on an idle path, or to the next
/// check whether the path is idle.
pub(crate) const TRANSFER_GAP: Nanos = SECOND / 100;

/// Maximum number of concurrent transfers; more means that transfers arrive faster than they end.
pub(crate) const MAX_CONCURRENT: usize = 1_000_000;

/// Transfers of one class.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    /// Number of started transfers.
    pub started: u64,
    pub gaps: Stream,
    pub sizes: Stream,
    /// Sources without a transfer, longest idle first.
    pub idle: VecDeque<u32>,
}

impl Transfers {
    pub(crate) fn new(seed: u64, replication: u32, class: usize) -> Self {
        let stream = |purpose| Stream::named(seed, replication, class as u32, purpose);
        Self {
            started: 0,
            gaps: stream(Purpose::Arrival),
            sizes: stream(Purpose::ArrivalSize),
            idle: VecDeque::new(),
        }
    }
}

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Size of the transfer of class `class` that starts now; `None` if it cannot start yet.
    /// Schedules the next call.
    pub(crate) fn next_transfer(&mut self, class: usize) -> Option<FileSize> {
        let transfers = &mut self.transfers[class];
        match &self.traffic[class] {
            Traffic::Arrivals { gap, size, rounding } => {
                let gap = nanoseconds(gap.draw(&mut transfers.gaps));
                self.events.set_timer(Timer::Transfer, class as u32, self.now + gap);
                Some(rounding.file(size.draw(&mut transfers.sizes)))
            }
            Traffic::Transfers { sizes } => {
                let size = sizes[(transfers.started % sizes.len() as u64) as usize];
                if !self.is_idle() {
                    self.events.set_timer(Timer::Transfer, class as u32, self.now + TRANSFER_GAP);
                    return None;
                }
                self.transfers[class].started += 1;
                self.queue.restart();
                if HAS_HOP {
                    self.hops.restart();
                }
                self.access_loss.restart();
                self.loss.iter_mut().for_each(BottleneckLosses::restart);
                Some(size)
            }
            Traffic::OnOff { .. } | Traffic::Bulk { .. } => None,
        }
    }

    /// Whether the path is idle: a spurious retransmission may still be in flight after its
    /// transfer.
    fn is_idle(&mut self) -> bool {
        self.queue.advance_to(self.now, &mut self.probes);
        if HAS_HOP {
            self.hops.advance_to(self.now, &mut self.probes);
            if !self.hops.is_empty() {
                return false;
            }
        }
        let waiting = self.ingress_waiting.held() + self.egress_waiting.held();
        self.queue.held() == 0 && waiting + self.events.count(|_| true) == 0
    }

    /// Starts a transfer whose delivery time and losses are recorded.
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

    /// Records the end of a transfer; its source becomes idle.
    pub(crate) fn end_transfer<S: SendingEnd>(&mut self, source: &Source<S>, index: u32) {
        self.probes.single_transfer_finished(self.sender_now(), &source.record);
        self.transfers[source.record.class()].idle.push_back(index);
    }
}
