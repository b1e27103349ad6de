//! Runs analyzers on threads. With two processors this saves 16 % of the time of the benchmark
//! "library, 50,000 connections" (0.64 instead of 0.76 s).
//!
//! A connection is always analysed by the same thread, which depends on its slot. Steps are sent
//! in batches, of which at most [`IN_PROGRESS`] are in progress per thread. Reports contain a
//! sequence number that gives the order in which connections ended.

use std::sync::mpsc::{Receiver, channel};

use super::analysis_batch::{AnalysisBatch, AnalysisStep, MAX_SEGMENTS};
use super::analyzer::Analyzer;
use super::connection_state::ConnectionBeginning;
use super::worker::{IN_PROGRESS, Worker, WorkerResult, WorkerState, reports_or_panic};
use crate::analysis::ConnectionReport;
use crate::segment::{Nanos, Segment};

/// Maximum number of events per segment: one for acknowledged data, two for retransmitted data.
const EVENTS: usize = 3;

/// A report and its sequence number among all reports.
type NumberedReport = (u64, ConnectionReport);

impl WorkerState for Analyzer {
    type Batch = AnalysisBatch;
    type Report = NumberedReport;

    fn process_batch(&mut self, batch: &mut AnalysisBatch) -> Vec<NumberedReport> {
        let results = self.run_batch(batch);
        batch.clear();
        results
    }
}

#[derive(Debug)]
struct PoolWorker {
    batch: AnalysisBatch,
    worker: Worker<Analyzer>,
}

impl PoolWorker {
    fn send_batch(&mut self) {
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
        let shares = local.split_by_slot(shift).into_iter().zip(workers);
        let workers = shares.map(|(share, worker)| {
            worker.send_state(share);
            PoolWorker { batch: AnalysisBatch::default(), worker }
        });
        Some(Self { workers: workers.collect(), shift, results })
    }

    /// Adds a step for a slot. Returns true if a batch was sent.
    #[inline]
    pub(super) fn push_step(&mut self, slot: usize, step: AnalysisStep) -> bool {
        self.append_to_batch(slot, |batch, index| batch.push_step(index, step))
    }

    /// Adds the start of a connection. Returns true if a batch was sent.
    pub(super) fn begin_connection(
        &mut self,
        slot: usize,
        beginning: &ConnectionBeginning,
    ) -> bool {
        self.append_to_batch(slot, |batch, index| batch.begin_connection(index, beginning))
    }

    /// Adds a log to be analysed. Returns true if a batch was sent.
    #[inline]
    pub(super) fn add_log(&mut self, slot: usize, log: &[u8]) -> bool {
        self.append_to_batch(slot, |batch, index| batch.add_log(index, log))
    }

    /// Adds a segment. `last`: latest time of the previous segments. Returns true if a batch was
    /// sent.
    #[inline]
    pub(super) fn push_segment(
        &mut self,
        slot: usize,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> bool {
        self.append_to_batch(slot, |batch, index| batch.push_segment(index, segment, from, last))
    }

    #[inline(always)]
    fn append_to_batch(
        &mut self,
        slot: usize,
        append: impl FnOnce(&mut AnalysisBatch, usize),
    ) -> bool {
        let worker = &mut self.workers[slot & ((1 << self.shift) - 1)];
        append(&mut worker.batch, slot >> self.shift);
        let full = worker.batch.is_full();
        if full {
            worker.send_batch();
        }
        full
    }

    /// Returns the reports received so far. `wait`: waits for at least one, unless none is pending.
    pub(super) fn receive_reports(&mut self, wait: bool) -> Vec<NumberedReport> {
        let mut first = None;
        if wait {
            self.workers.iter_mut().for_each(PoolWorker::send_batch);
            first = self.results.recv().ok();
        }
        first.into_iter().chain(self.results.try_iter()).flat_map(reports_or_panic).collect()
    }

    /// Ends the threads and returns their connections to `local`. Returns the remaining reports.
    pub(super) fn end_threads(mut self, local: &mut Analyzer) -> Vec<NumberedReport> {
        self.workers.iter_mut().for_each(PoolWorker::send_batch);
        let workers = std::mem::take(&mut self.workers);
        let parts = workers.into_iter().filter_map(|worker| worker.worker.end_thread()).collect();
        // Reports the panic of a thread before its missing connections cause another error.
        let results = self.receive_reports(false);
        local.join_parts(parts, self.shift);
        results
    }
}

/// Maximum number of events that batches in progress can add in a pool of `2^shift` workers.
pub(super) fn max_events_in_progress(shift: u32) -> usize {
    (IN_PROGRESS * MAX_SEGMENTS * EVENTS) << shift
}
