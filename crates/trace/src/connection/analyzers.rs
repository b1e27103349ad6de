//! Connections are followed at local, or by a pool; what is told is the same, and so are the reports.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Step;
use super::analyzer::Analyzer;
use super::state::Beginning;
use super::worker_pool::{WorkerPool, max_events};
use crate::analysis::{EventQuota, ConnectionReport, End};
use crate::segment::{Nanos, Segment};

/// Reports that a pool is asked for ahead.
const READ_AHEAD: usize = 256;

/// Who follows, and the reports that come of it, in the order in which their connections ended.
#[derive(Debug)]
pub(super) struct Analyzers {
    local: Analyzer,
    pool: Option<WorkerPool>,
    quota: Arc<EventQuota>,
    /// Reports that nobody has taken, some of which are still to come, and the turn of the first.
    reports: VecDeque<Option<ConnectionReport>>,
    first: u64,
}

impl Analyzers {
    /// One, at local: of a direction so many `events` are kept, of all as many as the quota grants.
    pub(super) fn new(events: usize, quota: EventQuota) -> Self {
        let quota = Arc::new(quota);
        let local = Analyzer::new(events, Arc::clone(&quota));
        Self { local, pool: None, quota, reports: VecDeque::new(), first: 0 }
    }

    /// From now on two to the power of `shift` follow, on threads of their own, if there are any to be had.
    pub(super) fn start_threads(&mut self, shift: u32) {
        if self.quota.left() >= max_events(shift) {
            self.pool = WorkerPool::new(&mut self.local, shift);
        }
    }

    /// The same, if others follow by now.
    pub(super) fn restart_threads(&mut self, shift: u32) {
        self.return_to_local();
        self.start_threads(shift);
    }

    /// Begins to follow the connection of a slot.
    pub(super) fn begin(&mut self, slot: usize, beginning: &Beginning) {
        let Some(pool) = &mut self.pool else {
            return self.local.begin(slot, beginning);
        };
        let submitted = pool.begin(slot, beginning);
        self.after_push(submitted);
    }

    /// The next segment of a slot; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn push(&mut self, slot: usize, segment: &Segment, from: usize, last: Nanos) {
        let Some(pool) = &mut self.pool else {
            return self.local.push(slot, segment);
        };
        let submitted = pool.push(slot, segment, from, last);
        self.after_push(submitted);
    }

    /// Follows what a log of a slot says.
    #[inline]
    pub(super) fn analyze_log(&mut self, slot: usize, log: &[u8]) {
        let Some(pool) = &mut self.pool else {
            return self.local.analyze_log(slot, log);
        };
        let submitted = pool.add_log(slot, log);
        self.after_push(submitted);
    }

    /// The connection of a slot is over; of `copies` frames from each end, each was captured twice.
    pub(super) fn end(&mut self, slot: usize, end: End, copies: [u64; 2]) {
        let Some(pool) = &mut self.pool else {
            return self.reports.extend(self.local.end(slot, end, copies).map(Some));
        };
        let turn = self.first + self.reports.len() as u64;
        self.reports.push_back(None);
        let submitted = pool.push_step(slot, Step::End { turn, end, copies });
        self.after_push(submitted);
    }

    /// Fetches from memory what will change at these slots.
    pub(super) fn prefetch(&self, slots: &[usize]) {
        if self.pool.is_none() {
            self.local.prefetch(slots.iter().copied());
        }
    }

    /// The next report, if it is there; `wait`: it is known to come.
    pub(super) fn report(&mut self, wait: bool) -> Option<ConnectionReport> {
        loop {
            if let Some(report) = self.reports.front_mut()?.take() {
                self.reports.pop_front();
                self.first += 1;
                return Some(report);
            }
            let results = self.pool.as_mut()?.receive(wait);
            if results.is_empty() {
                return None;
            }
            self.store(results);
        }
    }

    /// There is time to ask for more reports: a pool makes some ahead, while at local what is made is best taken at once.
    pub(super) fn wants_reports(&self) -> bool {
        self.reports.len() < if self.pool.is_some() { READ_AHEAD } else { 1 }
    }

    fn store(&mut self, results: Vec<(u64, ConnectionReport)>) {
        for (turn, report) in results {
            let slot = (turn - self.first) as usize;
            if let Some(slot) = self.reports.get_mut(slot) {
                *slot = Some(report);
            }
        }
    }

    /// A batch has submitted out, or not. Which events are kept when few may be depends on the order among connections, so
    /// then one follows all, in the order in which it is told, as if there had been no pool.
    #[inline]
    fn after_push(&mut self, submitted: bool) {
        if submitted {
            self.return_if_scarce();
        }
    }

    fn return_if_scarce(&mut self) {
        if self.pool.as_ref().is_some_and(|pool| self.quota.left() < max_events(pool.shift())) {
            self.return_to_local();
        }
    }

    fn return_to_local(&mut self) {
        if let Some(pool) = self.pool.take() {
            let results = pool.dissolve(&mut self.local);
            self.store(results);
        }
    }
}
