//! Analyzers on threads of their local, where there are processors for them.
//!
//! A connection is always followed by the same one, by its slot. What they are told goes out in batches, of which a
//! few at most are in progress; reports come back with the turn in which their connections ended.

use std::sync::mpsc::{Receiver, channel};

use super::batch::{Batch, MAX_SEGMENTS, Step};
use super::analyzer::Analyzer;
use super::state::Beginning;
use super::worker::{WorkerResult, IN_PROGRESS, Work, Worker, reports};
use crate::analysis::ConnectionReport;
use crate::segment::{Nanos, Segment};

/// Events that a segment can bring: one by what it acknowledges, two by what it retransmits.
const EVENTS: usize = 3;

/// A report, and owners turn it is among all.
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
    /// A power of two.
    shift: u32,
    results: Receiver<WorkerResult<NumberedReport>>,
}

impl WorkerPool {
    /// Two to the power of `shift` share what a analyzer knows; `None` if there are no threads to be had.
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

    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// What is to be done at a slot. Whether a batch has gone out.
    #[inline]
    pub(super) fn push_step(&mut self, slot: usize, step: Step) -> bool {
        self.add(slot, |batch, local| batch.push_step(local, step))
    }

    /// The same: how the connection of a slot begins.
    pub(super) fn begin(&mut self, slot: usize, beginning: &Beginning) -> bool {
        self.add(slot, |batch, local| batch.begin(local, beginning))
    }

    /// A log that a slot is to follow. Whether a batch has gone out.
    #[inline]
    pub(super) fn add_log(&mut self, slot: usize, log: &[u8]) -> bool {
        self.add(slot, |batch, local| batch.add_log(local, log))
    }

    /// The same of one segment; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn push(
        &mut self,
        slot: usize,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) -> bool {
        self.add(slot, |batch, local| batch.push(local, segment, from, last))
    }

    #[inline(always)]
    fn add(&mut self, slot: usize, what: impl FnOnce(&mut Batch, usize)) -> bool {
        let worker = &mut self.workers[slot & ((1 << self.shift) - 1)];
        what(&mut worker.batch, slot >> self.shift);
        let full = worker.batch.is_full();
        if full {
            worker.send();
        }
        full
    }

    /// Reports that have come, by their lifecycle; `wait`: for at least one, unless none is to come.
    pub(super) fn receive(&mut self, wait: bool) -> Vec<NumberedReport> {
        let mut first = None;
        if wait {
            self.workers.iter_mut().for_each(PoolWorker::send);
            first = self.results.recv().ok();
        }
        first.into_iter().chain(self.results.try_iter()).flat_map(reports).collect()
    }

    /// The threads end; `local` takes back what they know. The reports that are left.
    pub(super) fn dissolve(mut self, local: &mut Analyzer) -> Vec<NumberedReport> {
        self.workers.iter_mut().for_each(PoolWorker::send);
        let workers = std::mem::take(&mut self.workers);
        let parts = workers.into_iter().filter_map(|worker| worker.worker.end()).collect();
        // Before what is missing is missed: of one that panicked, this says so.
        let results = self.receive(false);
        local.join(parts, self.shift);
        results
    }
}

/// Events that may come of what is in progress in a pool of two to the power of `shift`.
pub(super) fn max_events(shift: u32) -> usize {
    (IN_PROGRESS * MAX_SEGMENTS * EVENTS) << shift
}
