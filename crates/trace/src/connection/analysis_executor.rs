//! Analyses connections locally or in a worker pool, with identical reports.

use std::collections::VecDeque;
use std::sync::Arc;

use super::analysis_batch::AnalysisStep;
use super::analyzer::Analyzer;
use super::connection_state::ConnectionBeginning;
use super::worker_pool::{WorkerPool, max_events_in_progress};
use crate::analysis::{ConnectionReport, EventQuota, ObservedEnd};
use crate::segment::{Nanos, Segment};

/// Number of reports that a pool prepares in advance.
const READ_AHEAD: usize = 256;

/// The local analyzer or worker pool, and its reports in the order in which connections ended.
#[derive(Debug)]
pub(super) struct AnalysisExecutor {
    local: Analyzer,
    pool: Option<WorkerPool>,
    quota: Arc<EventQuota>,
    /// Reports not yet taken (`None` while a report is pending), and the sequence number of the
    /// first report.
    reports: VecDeque<Option<ConnectionReport>>,
    first: u64,
}

impl AnalysisExecutor {
    /// Creates a local analyzer, which lists up to `events` events per direction, within the quota.
    pub(super) fn new(events: usize, quota: EventQuota) -> Self {
        let quota = Arc::new(quota);
        let local = Analyzer::new(events, Arc::clone(&quota));
        Self { local, pool: None, quota, reports: VecDeque::new(), first: 0 }
    }

    /// Moves the connections to a pool of `2^shift` threads, if the threads can be started.
    pub(super) fn start_threads(&mut self, shift: u32) {
        if self.quota.events_left() >= max_events_in_progress(shift) {
            self.pool = WorkerPool::new(&mut self.local, shift);
        }
    }

    /// Replaces the current pool, if any, by a pool of `2^shift` threads.
    pub(super) fn restart_threads(&mut self, shift: u32) {
        self.return_to_local();
        self.start_threads(shift);
    }

    /// Adds the connection of a slot.
    pub(super) fn begin_connection(&mut self, slot: usize, beginning: &ConnectionBeginning) {
        let Some(pool) = &mut self.pool else {
            return self.local.begin_connection(slot, beginning);
        };
        let submitted = pool.begin_connection(slot, beginning);
        self.collect_after_push(submitted);
    }

    /// Processes the next segment of a slot. `last`: latest time of the previous segments.
    #[inline]
    pub(super) fn push_segment(
        &mut self,
        slot: usize,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) {
        let Some(pool) = &mut self.pool else {
            return self.local.push_segment(slot, segment);
        };
        let submitted = pool.push_segment(slot, segment, from, last);
        self.collect_after_push(submitted);
    }

    /// Processes the log of a slot.
    #[inline]
    pub(super) fn analyze_log(&mut self, slot: usize, log: &[u8]) {
        let Some(pool) = &mut self.pool else {
            return self.local.analyze_log(slot, log);
        };
        let submitted = pool.add_log(slot, log);
        self.collect_after_push(submitted);
    }

    /// Ends the connection of a slot. `copies`: number of duplicate frames sent by each end.
    pub(super) fn end_connection(&mut self, slot: usize, end: ObservedEnd, copies: [u64; 2]) {
        let Some(pool) = &mut self.pool else {
            return self.reports.extend(self.local.end_connection(slot, end, copies).map(Some));
        };
        let number = self.first + self.reports.len() as u64;
        self.reports.push_back(None);
        let submitted = pool.push_step(slot, AnalysisStep::End { number, end, copies });
        self.collect_after_push(submitted);
    }

    /// Returns the next report, if available. `wait`: block until a report arrives; only if one is
    /// certain to come.
    pub(super) fn next_report(&mut self, wait: bool) -> Option<ConnectionReport> {
        loop {
            if let Some(report) = self.reports.front_mut()?.take() {
                self.reports.pop_front();
                self.first += 1;
                return Some(report);
            }
            let results = self.pool.as_mut()?.receive_reports(wait);
            if results.is_empty() {
                return None;
            }
            self.store_reports(results);
        }
    }

    /// Whether more connections should be ended: a pool prepares reports in advance, a local report
    /// is best taken immediately.
    pub(super) fn wants_reports(&self) -> bool {
        self.reports.len() < if self.pool.is_some() { READ_AHEAD } else { 1 }
    }

    fn store_reports(&mut self, results: Vec<(u64, ConnectionReport)>) {
        for (number, report) in results {
            let index = (number - self.first) as usize;
            if let Some(entry) = self.reports.get_mut(index) {
                *entry = Some(report);
            }
        }
    }

    /// Called after each step; `submitted`: a batch was sent. If the quota of listed events is
    /// nearly used up, which events are listed depends on the order in which connections are
    /// analysed. All connections are then analysed locally, in the order of the capture, as without
    /// a pool.
    #[inline]
    fn collect_after_push(&mut self, submitted: bool) {
        let scarce =
            |pool: &WorkerPool| self.quota.events_left() < max_events_in_progress(pool.shift);
        if submitted && self.pool.as_ref().is_some_and(scarce) {
            self.return_to_local();
        }
    }

    fn return_to_local(&mut self) {
        if let Some(pool) = self.pool.take() {
            let results = pool.end_threads(&mut self.local);
            self.store_reports(results);
        }
    }
}
