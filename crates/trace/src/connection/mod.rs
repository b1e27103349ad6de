//! Tracks and analyses the connections of a capture.

mod connection_state;
mod segment_encoding;
mod table;
mod table_thread;

use std::thread::available_parallelism;

use table::{ConnectionTable, LOOKUP_BATCH};
use table_thread::TableThread;

use crate::analysis::ConnectionReport;
use crate::segment::Segment;

/// Number of segments from which a capture counts as large and a thread is started: about a
/// megabyte.
const MIN_LARGE_SEGMENTS: u64 = 1 << 14;
/// Number of segments per batch for the table thread.
const TABLE_BATCH: usize = 1024;

/// Memory limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Maximum number of live connections. If more connections are needed, a connection that has
    /// been idle for long is reported as [`ConnectionEnd::Evicted`](crate::ConnectionEnd::Evicted).
    pub connections: usize,
    /// Maximum number of loss indications, and of retransmissions, listed per direction, at most a
    /// million for all live connections. Further events are counted as omitted.
    pub events: usize,
    /// Maximum number of points of the time-sequence plot per direction; 0 for no plot.
    pub points: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { connections: 1 << 16, events: 1 << 14, points: 0 }
    }
}

/// Analyses all connections of a capture.
///
/// Add segments by [`push`](Self::push) in the order of the capture.
/// [`take_finished`](Self::take_finished) returns the reports of ended connections, and
/// [`finish`](Self::finish) the rest. The reports and their order do not depend on the thread.
#[derive(Debug)]
pub struct Connections {
    limits: MemoryLimits,
    /// `None` while the table is on its own thread.
    table: Option<ConnectionTable>,
    table_thread: Option<TableThread>,
    /// Segments not yet passed to the table.
    pending: Vec<Segment>,
    threaded: bool,
    /// Number of segments from which a thread is used.
    large: u64,
    pushed: u64,
    /// Reports returned together with the table.
    reports: Vec<ConnectionReport>,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

impl Connections {
    /// Creates an empty collection. With several processors, a large capture is processed on an
    /// additional thread.
    #[must_use]
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with_thread(limits, available_parallelism().is_ok_and(|all| all.get() > 1))
    }

    /// Like [`new`](Self::new); `threaded`: on an additional thread.
    #[must_use]
    pub fn with_thread(limits: MemoryLimits, threaded: bool) -> Self {
        Self {
            limits,
            table: Some(ConnectionTable::new(limits)),
            table_thread: None,
            pending: Vec::new(),
            threaded,
            large: MIN_LARGE_SEGMENTS,
            pushed: 0,
            reports: Vec::new(),
        }
    }

    /// Adds the next segment of the capture.
    #[inline]
    pub fn push_segment(&mut self, segment: &Segment) {
        match &mut self.table {
            Some(table) if table.fits_processor_cache() => _ = table.push_segment(segment),
            _ => self.buffer_segment(segment),
        }
        self.pushed += 1;
        if self.threaded && self.pushed == self.large {
            self.start_thread();
        }
    }

    /// Adds the next segment and returns the number of its connection. Slower than
    /// [`push`](Self::push) with many connections.
    #[inline]
    pub fn push_and_number(&mut self, segment: &Segment) -> u64 {
        self.pushed += 1;
        self.table_mut().push_segment(segment)
    }

    /// Number of connections so far.
    pub fn connection_count(&mut self) -> u64 {
        self.table_mut().connection_count()
    }

    /// Takes the reports of connections that have ended since the last call. A thread may deliver
    /// reports with delay.
    pub fn take_finished(&mut self) -> Vec<ConnectionReport> {
        let mut reports = std::mem::take(&mut self.reports);
        reports.append(&mut match &mut self.table_thread {
            Some(thread) => thread.take_finished(),
            None => self.table_mut().take_finished(),
        });
        reports
    }

    /// Ends the capture. Returns the remaining reports: first of ended connections, then of live
    /// ones in the order of their first segments. Each connection is freed when its report is
    /// created.
    pub fn into_remaining_reports(mut self) -> impl Iterator<Item = ConnectionReport> {
        self.table_mut();
        let reports = self.table.into_iter().flat_map(ConnectionTable::into_remaining_reports);
        self.reports.into_iter().chain(reports)
    }

    /// Buffers a segment: with many connections, the table processes several segments together.
    #[inline]
    fn buffer_segment(&mut self, segment: &Segment) {
        self.pending.push(*segment);
        if self.pending.len()
            >= if self.table_thread.is_some() { TABLE_BATCH } else { LOOKUP_BATCH }
        {
            self.flush_buffer();
        }
    }

    /// Passes the buffered segments to the table.
    #[inline(never)]
    fn flush_buffer(&mut self) {
        if let Some(thread) = &self.table_thread {
            match thread.push_all(std::mem::take(&mut self.pending)) {
                Some(empty) => self.pending = empty,
                None => _ = self.table_mut(), // resumes the panic of the thread
            }
        } else if let Some(table) = &mut self.table {
            table.push_all(&self.pending);
            self.pending.clear();
        }
    }

    /// Moves the table to a thread.
    #[cold]
    fn start_thread(&mut self) {
        self.table_mut();
        self.table_thread = TableThread::move_to_thread(&mut self.table);
    }

    /// Returns the table, after it has processed all segments, from its thread if necessary.
    #[inline]
    fn table_mut(&mut self) -> &mut ConnectionTable {
        if !self.pending.is_empty() {
            self.flush_buffer();
        }
        if let Some(thread) = self.table_thread.take() {
            let (table, reports) = thread.end_thread();
            self.table = table;
            self.reports.extend(reports);
        }
        self.table.get_or_insert_with(|| ConnectionTable::new(self.limits))
    }
}
