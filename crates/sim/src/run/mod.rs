//! A run: the loop over events, how it begins (`setup.rs`), how its counters are brought up to date
//! (`settle.rs`), and its replications on threads.
//!
//! The loop asks the network what happens next and finds the source that is concerned
//! (`events.rs`); what then happens is the network's (`network/`).

mod events;
mod flush;
mod memory;
mod replications;
mod setup;
mod watch;

pub use memory::bytes as run_bytes;
pub use replications::{Control, Replication, Replications};
pub use watch::Watch;

use crate::clock::Nanos;
use crate::network::{Network, Next, Path, Source};
use crate::probe::{Capture, Probes, SourceRecord};
use crate::queue::QueueDiscipline;
use crate::tcp::SendingEnd;

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimit {
    /// Finished transfers after the warm-up; `u64::MAX` for no such run_limit.
    pub transfers: u64,
    /// Virtual time.
    pub until: Nanos,
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The run_limit was reached.
    Done,
    /// It was told to stop.
    Interrupted,
    /// More transfers have begun than can be held: more come than go.
    TooManyTransfers,
}

/// A run. Without `HAS_TAPS` nothing can be told of packets that pass, and none of them costs a
/// look at whether anything is; without `HAS_HOPS` there is no hop beside the bottleneck.
pub struct Simulation<S: SendingEnd, Q, const HAS_TAPS: bool, const HAS_HOPS: bool> {
    pub(crate) network: Network<Q, HAS_TAPS, HAS_HOPS>,
    pub(crate) sources: Vec<Source<S>>,
    /// The class of each source that the run begins with, and the first source of each class.
    class_of: Vec<u16>,
    first_of_class: Vec<usize>,
    /// Of each class of endless flows, the packets acknowledged when the warm-up was over.
    acked_before: Vec<u64>,
    /// Whether all of them are made.
    begun: bool,
    /// What is told of one that is not.
    nothing: SourceRecord,
    pub(crate) paths: Vec<Path>,
    /// When the warm-up is over.
    warmup: Nanos,
    boundary: Nanos,
    measuring: bool,
    too_many_transfers: bool,
    /// Packets at the return bottleneck, and at the link, until sources are fetched again.
    until_prefetch: usize,
    until_prefetch_for_link: usize,
    max_sources: usize,
    /// What a source that joins on the way is made with.
    seed: u64,
    replication: u32,
    traced: Vec<u32>,
}

impl<S: SendingEnd, Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOPS: bool>
    Simulation<S, Q, HAS_TAPS, HAS_HOPS>
{
    /// Goes on until the run_limit is reached or the watcher stops it.
    pub fn advance(&mut self, run_limit: RunLimit, watch: &mut Watch<'_>) -> StopReason {
        if !self.make_sources(watch) {
            return StopReason::Interrupted;
        }
        self.network.limit = self.boundary.min(run_limit.until);
        self.network.wanted = if self.measuring { run_limit.transfers } else { u64::MAX };
        if self.transfers() >= run_limit.transfers {
            return StopReason::Done;
        }
        if self.too_many_transfers {
            return StopReason::TooManyTransfers;
        }
        loop {
            match self.network.next() {
                Next::AtHop => self.hop_event(),
                Next::Departure => self.serve_next(),
                Next::CrossPacket => {
                    self.network.on_cross_arrival();
                    self.network.notify_drops(&mut self.sources);
                }
                Next::Event(queue, due) => self.event(queue, due),
                Next::Limit if self.too_many_transfers => return StopReason::TooManyTransfers,
                Next::Limit if self.reach_limit(run_limit) => return StopReason::Done,
                Next::Limit => {}
            }
            if !watch.should_continue(|| self.share(run_limit)) {
                return StopReason::Interrupted;
            }
        }
    }

    /// The probes as they stand.
    #[must_use]
    pub fn probes(&self) -> &Probes {
        &self.network.probes
    }

    /// Virtual time now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.network.now
    }

    /// Whether the warm-up is over.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Each source's packets and ON time since the warm-up.
    pub fn records(&self) -> impl Iterator<Item = &SourceRecord> {
        let missing = self.class_of.len().saturating_sub(self.sources.len());
        let made = self.sources.iter().map(|source| &source.record);
        made.chain(std::iter::repeat_n(&self.nothing, missing))
    }

    /// A capture.
    pub fn capture_mut(&mut self, index: usize) -> Option<&mut Capture> {
        self.network.probes.captures.get_mut(index)
    }

    fn transfers(&self) -> u64 {
        if self.measuring { self.network.probes.finished() } else { 0 }
    }

    /// The share done, from 0 to 1.
    #[inline(never)]
    fn share(&self, run_limit: RunLimit) -> f64 {
        let by_time = self.network.now as f64 / run_limit.until as f64;
        by_time.max(self.transfers() as f64 / run_limit.transfers as f64)
    }

    /// When the counters are looked at next: the warm-up is over, or one of their slots.
    fn counted_until(&self) -> Nanos {
        if self.measuring { self.network.probes.counters.slot_ends() } else { self.warmup }
    }

    /// Nothing is due before the limit: the run_limit is reached, or a slot or the warm-up is over.
    #[inline(never)]
    fn reach_limit(&mut self, run_limit: RunLimit) -> bool {
        if self.transfers() >= run_limit.transfers {
            return true;
        }
        if self.boundary > run_limit.until {
            self.network.now = run_limit.until;
            return true;
        }
        self.network.now = self.boundary;
        self.flush_queue();
        let now = self.network.now;
        if now == self.network.probes.time_series.slot_ends() {
            self.network.probes.close_time_series(now, false);
        }
        if now == self.counted_until() {
            self.count(run_limit, now);
        }
        self.boundary = self.counted_until().min(self.network.probes.time_series.slot_ends());
        self.network.limit = self.boundary.min(run_limit.until);
        false
    }

    /// A slot of the counters or the warm-up is over.
    fn count(&mut self, run_limit: RunLimit, now: Nanos) {
        if self.measuring {
            self.flush_flows();
            self.network.probes.snapshot(now, false);
        } else {
            self.measuring = true;
            self.network.wanted = run_limit.transfers;
            self.network.probes.begin_measurement(now);
            self.sources.iter_mut().for_each(|source| source.record.begin_measurement());
            self.begin_flows();
        }
    }
}

#[cfg(test)]
mod tests;
