//! Single transfers: start time, size and source of the next transfer.

use super::Network;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::seconds_to_nanos;
use crate::event_queue::TimerKind;
use crate::loss::BottleneckLosses;
use crate::queue::QueueDiscipline;
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use crate::traffic::{FileSize, TRANSFER_GAP, Traffic};
use std::collections::VecDeque;
use tcpcast_tcp::SendingEnd;

/// Maximum number of concurrent transfers; a larger number means that transfers arrive faster than
/// they end.
pub(crate) const MAX_CONCURRENT: usize = 1_000_000;

/// Transfers of one class.
#[derive(Clone, Debug)]
pub(crate) struct ClassTransfers {
    /// Number of started transfers.
    pub started: u64,
    pub gaps: RandomStream,
    pub sizes: RandomStream,
    /// Sources without a transfer, longest idle first.
    pub idle: VecDeque<u32>,
}

impl ClassTransfers {
    pub(crate) fn new(seed: u64, replication: u32, class: usize) -> Self {
        let stream = |purpose| RandomStream::for_entity(seed, replication, class as u32, purpose);
        Self {
            started: 0,
            gaps: stream(StreamPurpose::Arrival),
            sizes: stream(StreamPurpose::ArrivalSize),
            idle: VecDeque::new(),
        }
    }
}

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Size of the transfer of class `class` that starts now; `None` if the transfer cannot start
    /// yet. Schedules the next call.
    pub(crate) fn draw_size_and_schedule_next(&mut self, class: usize) -> Option<FileSize> {
        let transfers = &mut self.transfers[class];
        match &self.traffic[class] {
            Traffic::Arrivals { gap, size, rounding } => {
                let gap = seconds_to_nanos(gap.draw_value(&mut transfers.gaps));
                self.events.set_timer(TimerKind::Transfer, class as u32, self.now + gap);
                Some(rounding.round_to_file_size(size.draw_value(&mut transfers.sizes)))
            }
            Traffic::Transfers { sizes } => {
                let size = sizes[(transfers.started % sizes.len() as u64) as usize];
                if !self.is_path_idle() {
                    self.events.set_timer(
                        TimerKind::Transfer,
                        class as u32,
                        self.now + TRANSFER_GAP,
                    );
                    return None;
                }
                self.transfers[class].started += 1;
                self.queue.reset_for_next_transfer();
                if HAS_HOP {
                    self.hops.reset_for_next_transfer();
                }
                self.access_loss.restart_processes();
                self.loss.iter_mut().for_each(BottleneckLosses::restart_process);
                Some(size)
            }
            Traffic::OnOff { .. } | Traffic::Bulk { .. } => None,
        }
    }

    /// Whether the path is idle: a spurious retransmission may still be in flight after its
    /// transfer.
    fn is_path_idle(&mut self) -> bool {
        self.queue.advance_to(self.now, &mut self.probes);
        if HAS_HOP {
            self.hops.advance_to(self.now, &mut self.probes);
            if !self.hops.is_empty() {
                return false;
            }
        }
        let waiting =
            self.ingress_waiting.waiting_packets() + self.egress_waiting.waiting_packets();
        self.queue.held_packets() == 0 && waiting + self.events.count_pending_packets(|_| true) == 0
    }

    /// Starts a transfer whose delivery time and losses are recorded.
    pub(crate) fn begin_transfer<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        index: u32,
        size: FileSize,
    ) {
        source.record.reset_transfer_losses();
        self.begin_file_on_new_connection(source, path, index, size);
    }

    /// Records the end of a transfer; its source becomes idle.
    pub(crate) fn end_transfer<S: SendingEnd>(&mut self, source: &SimulatedSource<S>, index: u32) {
        self.probes.record_single_transfer_end(self.current_sender_time(), &source.record);
        self.transfers[source.record.class()].idle.push_back(index);
    }
}
