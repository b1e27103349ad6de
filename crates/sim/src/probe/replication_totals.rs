//! Histograms and counts, summed over replications.

use super::{
    CrossCounters, EarlyDropCounters, LogHistogram, Probes, RecoveryCounters,
    SequenceNumberCounters, TransferCounters,
};
use crate::clock::Nanos;
use crate::merge::{Merge, merge_by_index};

/// Sums of the probes of several replications.
#[derive(Clone, Debug, Default)]
pub struct ReplicationTotals {
    /// Time by queue length.
    pub queue_time: Vec<Nanos>,
    /// Arrivals by the queue length that they found.
    pub queue_seen: Vec<u64>,
    /// Early drops of the queue.
    pub early: EarlyDropCounters,
    /// Cross traffic per stream.
    pub cross: CrossCounters,
    /// Time by number of active sources.
    pub states_time: Vec<Nanos>,
    /// Births by state.
    pub births: Vec<u64>,
    /// Deaths by state.
    pub deaths: Vec<u64>,
    /// Timeouts and recoveries.
    pub recovery: RecoveryCounters,
    /// Arrivals and drops by sequence number.
    pub by_number: Vec<SequenceNumberCounters>,
    /// ON times of the transfers of each class in seconds.
    pub on_times: Vec<LogHistogram>,
    /// Rates of the transfers of each class in packets per second.
    pub rates: Vec<LogHistogram>,
    /// Waiting times at the bottleneck in seconds.
    pub waits: LogHistogram,
    /// Goodputs of files by size interval, in bit/s.
    pub goodputs_by_size: Vec<LogHistogram>,
    /// Single transfers by size and losses.
    pub transfers: TransferCounters,
}

impl ReplicationTotals {
    /// Sums the probes of all replications.
    #[must_use]
    pub fn sum_replications(replications: &[&Probes]) -> Self {
        let mut totals = Self::default();
        for probes in replications {
            totals.add_probes(probes);
        }
        totals
    }

    fn add_probes(&mut self, probes: &Probes) {
        merge_by_index(&mut self.queue_time, probes.occupancy.time_by_length());
        merge_by_index(&mut self.queue_seen, probes.occupancy.arrivals_by_length());
        self.early.merge(&probes.early);
        self.cross.merge(&probes.cross);
        merge_by_index(&mut self.states_time, probes.states.time_by_active_count());
        merge_by_index(&mut self.births, probes.states.starts_by_active_count());
        merge_by_index(&mut self.deaths, probes.states.ends_by_active_count());
        self.recovery.merge(&probes.recovery);
        self.on_times.merge(&probes.on_times);
        self.rates.merge(&probes.rates);
        self.waits.merge(&probes.waits);
        merge_by_index(&mut self.goodputs_by_size, probes.goodput.file_goodputs_by_size());
        self.transfers.merge(&probes.transfers);
        merge_by_index(&mut self.by_number, &probes.by_number[..]);
    }
}
