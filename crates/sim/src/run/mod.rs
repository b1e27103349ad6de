//! A run: the event loop, its setup (`setup.rs`), the update of its counters (`counter_update.rs`),
//! and the selection of its type (`replications.rs`).
//!
//! The loop takes the next event from the network, finds the source that it concerns (`events.rs`),
//! and calls the network (`network/`) to process it.

mod counter_update;
mod events;
mod memory_estimate;
mod replications;
mod setup;

pub use memory_estimate::estimate_memory_bytes as run_bytes;

use crate::clock::Nanos;
use crate::conservation::ConservationError;
use crate::network::{ClassPath, Network, NextEvent, SimulatedSource};
use crate::probe::{Probes, SimulatedCapture, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::replication::{Replication, RunLimit, RunWatch, StopReason};
use tcpcast_tcp::SendingEnd;

/// A run. If `HAS_TAPS` is false, packets are not reported to taps, and taps cost nothing per
/// packet; without `HAS_HOP` (a further hop) the bottleneck is the only hop.
pub struct Simulation<S: SendingEnd, Q, const HAS_TAPS: bool, const HAS_HOP: bool> {
    pub(crate) network: Network<Q, HAS_TAPS, HAS_HOP>,
    pub(crate) sources: Vec<SimulatedSource<S>>,
    /// Class of each initial source, and index of the first source of each class.
    class_of: Vec<u16>,
    first_of_class: Vec<usize>,
    /// Packets acknowledged during the warm-up, per class of endless flows.
    acked_before: Vec<u64>,
    /// Whether all initial sources exist.
    has_all_sources: bool,
    /// Record that is reported for sources that do not exist yet.
    missing_record: SourceRecord,
    pub(crate) paths: Vec<ClassPath>,
    /// End of the warm-up.
    warmup: Nanos,
    boundary: Nanos,
    measuring: bool,
    too_many_transfers: bool,
    /// Countdown to the next prefetch of sources, in packets at the return bottleneck.
    until_prefetch: usize,
    /// Countdown to the next prefetch of sources, in packets at the link.
    until_prefetch_for_link: usize,
    max_sources: usize,
    /// Parameters of sources that are added during the run.
    seed: u64,
    replication: u32,
    traced: Vec<u32>,
}

impl<S, Q, const HAS_TAPS: bool, const HAS_HOP: bool> Replication
    for Simulation<S, Q, HAS_TAPS, HAS_HOP>
where
    S: SendingEnd + Send + Sync,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync,
{
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason {
        if !self.create_sources(watch) {
            return StopReason::Interrupted;
        }
        self.network.limit = self.boundary.min(limit.until);
        self.network.wanted = if self.measuring { limit.transfers } else { u64::MAX };
        if self.transfers_finished_after_warm_up() >= limit.transfers {
            return StopReason::Done;
        }
        if self.too_many_transfers {
            return StopReason::TooManyTransfers;
        }
        loop {
            match self.network.next_event() {
                NextEvent::AtHop => self.process_hop_event(),
                NextEvent::Departure => self.transmit_at_bottleneck(),
                NextEvent::CrossPacket => {
                    self.network.enqueue_next_cross_packet();
                    self.network.notify_sources_of_drops(&mut self.sources);
                }
                NextEvent::Event(queue, due) => self.process_queued_event(queue, due),
                NextEvent::Limit if self.too_many_transfers => return StopReason::TooManyTransfers,
                NextEvent::Limit if self.pass_boundary_or_end_run(limit) => {
                    return StopReason::Done;
                }
                NextEvent::Limit => {}
            }
            if !watch.should_continue(|| self.completed_fraction(limit)) {
                return StopReason::Interrupted;
            }
        }
    }

    fn update_and_check_probes(&mut self) -> Result<&Probes, ConservationError> {
        self.update_counters()
    }

    fn probes(&self) -> &Probes {
        &self.network.probes
    }

    fn now(&self) -> Nanos {
        self.network.now
    }

    fn is_measuring(&self) -> bool {
        self.measuring
    }

    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_> {
        let missing = self.class_of.len().saturating_sub(self.sources.len());
        let made = self.sources.iter().map(|source| &source.record);
        Box::new(made.chain(std::iter::repeat_n(&self.missing_record, missing)))
    }

    fn capture_mut(&mut self, index: usize) -> Option<&mut SimulatedCapture> {
        self.network.probes.captures.get_mut(index)
    }
}

impl<S: SendingEnd, Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool>
    Simulation<S, Q, HAS_TAPS, HAS_HOP>
{
    fn transfers_finished_after_warm_up(&self) -> u64 {
        if self.measuring { self.network.probes.transfers_finished_after_warm_up() } else { 0 }
    }

    /// Completed fraction of the run, from 0 to 1.
    #[inline(never)]
    fn completed_fraction(&self, limit: RunLimit) -> f64 {
        let by_time = self.network.now as f64 / limit.until as f64;
        by_time.max(self.transfers_finished_after_warm_up() as f64 / limit.transfers as f64)
    }

    /// End of the warm-up or of the current slot of the counters.
    fn next_slot_end(&self) -> Nanos {
        if self.measuring { self.network.probes.counters.slot_end() } else { self.warmup }
    }

    /// Handles the end of the run, of a slot, or of the warm-up, when no event is due before it.
    /// Returns true at the end of the run.
    #[inline(never)]
    fn pass_boundary_or_end_run(&mut self, limit: RunLimit) -> bool {
        if self.transfers_finished_after_warm_up() >= limit.transfers {
            return true;
        }
        if self.boundary > limit.until {
            self.network.now = limit.until;
            return true;
        }
        self.network.now = self.boundary;
        self.update_queue_counters();
        let now = self.network.now;
        if now == self.network.probes.time_series.slot_end() {
            self.network.probes.close_time_series(now, false);
        }
        if now == self.next_slot_end() {
            self.close_slot_or_end_warm_up(limit, now);
        }
        self.boundary = self.next_slot_end().min(self.network.probes.time_series.slot_end());
        self.network.limit = self.boundary.min(limit.until);
        false
    }

    /// Closes a slot of the counters, or ends the warm-up.
    fn close_slot_or_end_warm_up(&mut self, limit: RunLimit, now: Nanos) {
        if self.measuring {
            self.update_endless_flow_counters();
            self.network.probes.close_counter_slot(now, false);
        } else {
            self.measuring = true;
            self.network.wanted = limit.transfers;
            self.network.probes.begin_measurement(now);
            self.sources.iter_mut().for_each(|source| source.record.begin_measurement());
            self.start_endless_flow_counters();
        }
    }
}

#[cfg(test)]
mod tests;
