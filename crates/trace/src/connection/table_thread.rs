//! Runs the table of connections on its own thread.

use std::sync::mpsc::{Receiver, channel};

use super::table::ConnectionTable;
use super::worker::{Worker, WorkerResult, WorkerState, reports_or_panic};
use crate::analysis::ConnectionReport;
use crate::segment::Segment;

impl WorkerState for ConnectionTable {
    type Batch = Vec<Segment>;
    type Report = ConnectionReport;

    fn process_batch(&mut self, batch: &mut Vec<Segment>) -> Vec<ConnectionReport> {
        self.push_all(batch);
        batch.clear();
        self.take_finished()
    }
}

/// A table that is owned by another thread.
#[derive(Debug)]
pub(super) struct TableThread {
    worker: Worker<ConnectionTable>,
    results: Receiver<WorkerResult<ConnectionReport>>,
}

impl TableThread {
    /// Moves the table to a new thread. Returns `None` and keeps the table if no thread can be
    /// started.
    pub(super) fn move_to_thread(table: &mut Option<ConnectionTable>) -> Option<Self> {
        let (sender, results) = channel();
        let worker = Worker::start("table", sender)?;
        worker.send_state(table.take()?);
        Some(Self { worker, results })
    }

    /// Passes the next segments to the thread and returns an empty buffer.
    #[inline]
    pub(super) fn push_all(&self, segments: Vec<Segment>) -> Vec<Segment> {
        self.worker.submit(segments)
    }

    /// Returns the reports received so far.
    pub(super) fn take_finished(&mut self) -> Vec<ConnectionReport> {
        self.results.try_iter().flat_map(reports_or_panic).collect()
    }

    /// Ends the thread. Returns the table and the remaining reports.
    pub(super) fn end_thread(self) -> (Option<ConnectionTable>, Vec<ConnectionReport>) {
        let table = self.worker.end_thread();
        (table, self.results.try_iter().flat_map(reports_or_panic).collect())
    }
}
