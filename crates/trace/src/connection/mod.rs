//! Connections: what finds them, and what follows them.

mod table_thread;
mod batch;
mod encoding;
mod analyzer;
mod analyzers;
mod state;
mod table;
mod worker_pool;
mod worker;

use std::thread::available_parallelism;

use table_thread::TableThread;
use table::{TOGETHER, Table};

use crate::analysis::ConnectionReport;
use crate::segment::Segment;

/// Segments after which a capture is large enough for threads: a megabyte or so.
const LARGE: u64 = 1 << 14;
/// More threads than this have nothing to do: one reads, one finds, one follows.
const MAX_THREADS: usize = 2;
/// Segments that go together to a table that is thread.
const BATCH: usize = 1024;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections alive at once; beyond, one that has been idle for long is reported as [`End::Evicted`](crate::End::Evicted).
    pub connections: usize,
    /// Loss indications and retransmissions kept one by one, each, of a direction; of all connections alive no more
    /// than a million. Those beyond are counted as omitted.
    pub events: usize,
    /// Points of a time-sequence plot kept of a direction; 0 for none.
    pub points: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1 << 16, events: 1 << 14, points: 0 }
    }
}

/// Follows all connections of a capture.
///
/// Segments go in by [`push`](Self::push), in the order of the capture; reports come out by [`finished`](Self::finished)
/// as connections end, and the rest by [`finish`](Self::finish). They are the same, in the same order, however many
/// threads there are.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    /// Unless it is thread.
    table: Option<Table>,
    table_thread: Option<TableThread>,
    /// Segments that the table has not seen.
    pending: Vec<Segment>,
    threads: usize,
    /// From so many segments on, threads are started.
    large: u64,
    pushed: u64,
    /// Reports that came back with the table.
    reports: Vec<ConnectionReport>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Connections {
    /// None yet. Where there is more than one processor, threads find and follow the connections of a large capture.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let others = available_parallelism().map_or(0, |all| all.get() - 1);
        Self::on_threads(limits, others.min(MAX_THREADS))
    }

    /// The same with so many threads beside the caller's; 0 for none.
    #[must_use]
    pub fn on_threads(limits: Limits, threads: usize) -> Self {
        Self {
            limits,
            table: Some(Table::new(limits)),
            table_thread: None,
            pending: Vec::new(),
            threads,
            large: LARGE,
            pushed: 0,
            reports: Vec::new(),
        }
    }

    /// The next segment of the capture.
    #[inline]
    pub fn push(&mut self, segment: &Segment) {
        match &mut self.table {
            Some(table) if table.is_small() => _ = table.push(segment),
            _ => self.buffer(segment),
        }
        self.pushed += 1;
        if self.pushed == self.large {
            self.start_threads();
        }
    }

    /// The same, and at once the number of its connection, which takes longer where there are many.
    #[inline]
    pub fn number(&mut self, segment: &Segment) -> u64 {
        self.pushed += 1;
        let large = self.pushed == self.large;
        let threads = self.threads;
        let table = self.table_mut();
        if large && table.is_small() {
            table.start_threads(threads);
        }
        table.push(segment)
    }

    /// Connections that were followed.
    pub fn count(&mut self) -> u64 {
        self.table_mut().count()
    }

    /// Takes the reports of connections that have ended since the last call; those that threads still work at come
    /// with a later one.
    pub fn finished(&mut self) -> Vec<ConnectionReport> {
        let mut reports = std::mem::take(&mut self.reports);
        reports.append(&mut match &mut self.table_thread {
            Some(thread) => thread.finished(),
            None => self.table_mut().finished(),
        });
        reports
    }

    /// The capture ends: the reports that nobody has taken yet, then those of all that are left, in the order of
    /// their first segments. Each connection goes as its report is made.
    pub fn finish(mut self) -> impl Iterator<Item = ConnectionReport> {
        self.table_mut();
        let threads = if self.pushed >= self.large { self.threads } else { 0 };
        self.reports
            .into_iter()
            .chain(self.table.into_iter().flat_map(move |table| table.finish(threads)))
    }

    /// Where connections are many, several segments go to the table together.
    #[inline]
    fn buffer(&mut self, segment: &Segment) {
        self.pending.push(*segment);
        if self.pending.len() >= if self.table_thread.is_some() { BATCH } else { TOGETHER } {
            self.flush();
        }
    }

    /// The table sees what was put off.
    #[inline(never)]
    fn flush(&mut self) {
        if let Some(thread) = &self.table_thread {
            self.pending = thread.push_all(std::mem::take(&mut self.pending));
        } else if let Some(table) = &mut self.table {
            table.push_all(&self.pending);
            self.pending.clear();
        }
    }

    /// The capture is large: from now on the table is on a thread of its own. If there is one more, that follows the
    /// connections where they are few; where they are many, to find them takes most of the time.
    #[cold]
    fn start_threads(&mut self) {
        let threads = self.threads;
        let table = self.table_mut();
        if threads == 0 {
            return;
        }
        if table.is_small() {
            table.start_threads(threads - 1);
        }
        self.table_thread = TableThread::take(&mut self.table);
    }

    /// The table, which comes back, and has seen all.
    #[inline]
    fn table_mut(&mut self) -> &mut Table {
        if !self.pending.is_empty() {
            self.flush();
        }
        if let Some(thread) = self.table_thread.take() {
            let (table, reports) = thread.dissolve();
            self.table = table;
            self.reports.extend(reports);
        }
        self.table.get_or_insert_with(|| Table::new(self.limits))
    }
}
