//! Histograms and counts, summed over replications.

use super::{
    CrossCounters, EarlyDropCounters, LogHistogram, Probes, RecoveryCounters,
    SequenceNumberCounters, TransferCounters,
};
use crate::clock::Nanos;

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
        add_elementwise(&mut self.queue_time, probes.occupancy.time_by_length());
        add_elementwise(&mut self.queue_seen, probes.occupancy.arrivals_by_length());
        self.early.merge(&probes.early);
        self.cross.merge(&probes.cross);
        add_elementwise(&mut self.states_time, probes.states.time_by_active_count());
        add_elementwise(&mut self.births, probes.states.starts_by_active_count());
        add_elementwise(&mut self.deaths, probes.states.ends_by_active_count());
        self.recovery.merge(&probes.recovery);
        merge_histograms(&mut self.on_times, &probes.on_times);
        merge_histograms(&mut self.rates, &probes.rates);
        self.waits.merge(&probes.waits);
        merge_histograms(&mut self.goodputs_by_size, probes.goodput.file_goodputs_by_size());
        self.transfers.merge(&probes.transfers);
        if probes.by_number.len() > self.by_number.len() {
            self.by_number.resize(probes.by_number.len(), SequenceNumberCounters::default());
        }
        for (mine, theirs) in self.by_number.iter_mut().zip(probes.by_number.iter()) {
            mine.packets += theirs.packets;
            mine.drops += theirs.drops;
        }
    }
}

/// Adds each histogram of `theirs` to the one with the same index in `mine`, which grows if
/// necessary.
fn merge_histograms(mine: &mut Vec<LogHistogram>, theirs: &[LogHistogram]) {
    if theirs.len() > mine.len() {
        mine.resize(theirs.len(), LogHistogram::default());
    }
    mine.iter_mut().zip(theirs).for_each(|(sum, each)| sum.merge(each));
}

/// Adds `theirs` to `mine` element by element; `mine` grows if necessary.
pub(super) fn add_elementwise(mine: &mut Vec<u64>, theirs: &[u64]) {
    if theirs.len() > mine.len() {
        mine.resize(theirs.len(), 0);
    }
    for (sum, value) in mine.iter_mut().zip(theirs) {
        *sum += value;
    }
}
