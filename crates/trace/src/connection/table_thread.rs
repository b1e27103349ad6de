//! The table of connections on a thread of its own, beside the one that reads.

use std::sync::mpsc::{Receiver, channel};

use super::table::Table;
use super::worker::{WorkerResult, Work, Worker, reports};
use crate::analysis::ConnectionReport;
use crate::segment::Segment;

impl Work for Table {
    type Batch = Vec<Segment>;
    type Report = ConnectionReport;

    fn work(&mut self, batch: &mut Vec<Segment>) -> Vec<ConnectionReport> {
        self.push_all(batch);
        batch.clear();
        self.finished()
    }
}

/// A table that is not here.
#[derive(Debug)]
pub(super) struct TableThread {
    worker: Worker<Table>,
    results: Receiver<WorkerResult<ConnectionReport>>,
}

impl TableThread {
    /// A thread, if there is one to be had, for the table that it takes from here.
    pub(super) fn take(table: &mut Option<Table>) -> Option<Self> {
        let (sender, results) = channel();
        let worker = Worker::start("table", sender)?;
        worker.set_state(table.take()?);
        Some(Self { worker, results })
    }

    /// The next segments of the capture; room for more.
    #[inline]
    pub(super) fn push_all(&self, segments: Vec<Segment>) -> Vec<Segment> {
        self.worker.submit(segments)
    }

    /// Reports that have come.
    pub(super) fn finished(&mut self) -> Vec<ConnectionReport> {
        self.results.try_iter().flat_map(reports).collect()
    }

    /// The thread ends; the table, and the reports that are left.
    pub(super) fn dissolve(self) -> (Option<Table>, Vec<ConnectionReport>) {
        let table = self.worker.end();
        (table, self.results.try_iter().flat_map(reports).collect())
    }
}
