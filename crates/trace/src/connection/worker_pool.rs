//! Runs analyzers on threads.
//!
//! A connection is always analysed by the same thread, which depends on its slot. Steps are sent in
//! batches, few of which are in progress; reports come back with a sequence number that gives the
//! order in which connections ended.

use std::sync::mpsc::{Receiver, channel};

use super::analyzer::Analyzer;
use super::batch::{Batch, MAX_SEGMENTS, Step};
use super::state::Beginning;
use super::worker::{IN_PROGRESS, Work, Worker, WorkerResult, reports};
use crate::analysis::ConnectionReport;
use crate::segment::{Nanos, Segment};

/// Maximum number of events per segment: one for acknowledged data, two for retransmitted data.
const EVENTS: usize = 3;

/// A report and its sequence number among all reports.
type NumberedReport = (u64, ConnectionReport);

impl Work for Analyzer {
    type Batch = Batch;
    type Report = NumberedReport;

    fn work(&mut self, batch: &mut Batch) -> Vec<NumberedReport> {
        let results = self.run(batch);
        batch.clear();
        results
    }
}

#[derive(Debug)]
struct PoolWorker {
    batch: Batch,
    worker: Worker<Analyzer>,
}

impl PoolWorker {
    fn send(&mut self) {
        if !self.batch.steps.is_empty() {
            self.batch = self.worker.submit(std::mem::take(&mut self.batch));
        }
    }
}

/// Analyzers on threads.
#[derive(Debug)]
pub(super) struct WorkerPool {
    workers: Vec<PoolWorker>,
    /// Base-2 logarithm of the number of workers.
    pub(super) shift: u32,
    results: Receiver<WorkerResult<NumberedReport>>,
}

impl WorkerPool {
    /// Splits the connections of `local` among `2^shift` threads; `None` if threads cannot be
    /// started.
    pub(super) fn new(local: &mut Analyzer, shift: u32) -> Option<Self> {
        let (sender, results) = channel();
        let start = |_| Worker::start("connections", sender.clone());
        let workers = (0..1 << shift).map(start).collect::<Option<Vec<_>>>()?;
        let shares = local.split(shift).into_iter().zip(workers);
        let workers = shares.map(|(share, worker)| {
            worker.set_state(share);
            PoolWorker { batch: Batch::default(), worker }
        });
        Some(Self { workers: workers.collect(), shift, results })
    }

    /// Adds a step for a slot. Returns true if a batch was sent.
    #[inline]
    pub(super) fn push_step(&mut self, slot: usize, step: Step) -> bool {
        self.add(slot, |batch, index| batch.push_step(index, step))
    }

    /// Adds the start of a connection. Returns true if a batch was sent.
    pub(super) fn begin(&mut self, slot: usize, beginning: &Beginning) -> bool {
        self.add(slot, |batch, index| batch.begin(index, beginning))
    }

    /// Adds a log to be analysed. Returns true if a batch was sent.
    #[inline]
    pub(super) fn add_log(&mut self, slot: usize, log: &[u8]) -> bool {
        self.add(slot, |batch, index| batch.add_log(index, log))
    }

    /// Adds a segment. `last`: latest time of the previous segments. Returns true if a batch was
    /// sent.
    #[inline]
    pub(super) fn push(
        &mut self,
        slot: usize,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> bool {
        self.add(slot, |batch, index| batch.push(index, segment, from, last))
    }

    #[inline(always)]
    fn add(&mut self, slot: usize, append: impl FnOnce(&mut Batch, usize)) -> bool {
        let worker = &mut self.workers[slot & ((1 << self.shift) - 1)];
        append(&mut worker.batch, slot >> self.shift);
        let full = worker.batch.is_full();
        if full {
            worker.send();
        }
        full
    }

    /// Returns the reports received so far. `wait`: waits for at least one, unless none is pending.
    pub(super) fn receive(&mut self, wait: bool) -> Vec<NumberedReport> {
        let mut first = None;
        if wait {
            self.workers.iter_mut().for_each(PoolWorker::send);
            first = self.results.recv().ok();
        }
        first.into_iter().chain(self.results.try_iter()).flat_map(reports).collect()
    }

    /// Ends the threads and returns their connections to `local`. Returns the remaining reports.
    pub(super) fn dissolve(mut self, local: &mut Analyzer) -> Vec<NumberedReport> {
        self.workers.iter_mut().for_each(PoolWorker::send);
        let workers = std::mem::take(&mut self.workers);
        let parts = workers.into_iter().filter_map(|worker| worker.worker.end()).collect();
        // Reports the panic of a thread before its missing connections cause another error.
        let results = self.receive(false);
        local.join(parts, self.shift);
        results
    }
}

/// Maximum number of events that batches in progress can add in a pool of `2^shift` workers.
pub(super) fn max_events(shift: u32) -> usize {
    (IN_PROGRESS * MAX_SEGMENTS * EVENTS) << shift
}
