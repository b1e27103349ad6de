//! Progress reports and stop requests of a run.

use std::sync::atomic::{AtomicBool, Ordering};

/// Number of events between progress reports.
const EVENTS_BETWEEN_REPORTS: u32 = 1 << 10;

static NEVER_STOPPED: AtomicBool = AtomicBool::new(false);

/// Stops a run from another thread and reports its progress. The stop flag is checked at each
/// event, because one event may take 100 ms and 200 MB: a sender may send a million packets.
pub struct RunWatch<'a> {
    stop: &'a AtomicBool,
    report: Option<&'a mut dyn FnMut(f64)>,
    events_left: u32,
}

impl<'a> RunWatch<'a> {
    /// Stops a run when `stop` is set, and calls `report` with the completed fraction from time to
    /// time.
    pub fn new(stop: &'a AtomicBool, report: &'a mut dyn FnMut(f64)) -> Self {
        Self { report: Some(report), stop, ..Self::without_control() }
    }

    /// Creates a watch that never stops the run and does not report progress.
    #[must_use]
    pub fn without_control() -> Self {
        Self { stop: &NEVER_STOPPED, report: None, events_left: EVENTS_BETWEEN_REPORTS }
    }

    /// Counts an event; returns false if the run should stop.
    #[inline(always)]
    pub fn should_continue(&mut self, share: impl FnOnce() -> f64) -> bool {
        self.events_left -= 1;
        if self.events_left == 0 {
            self.report_progress(share);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    #[inline(never)]
    fn report_progress(&mut self, share: impl FnOnce() -> f64) {
        self.events_left = EVENTS_BETWEEN_REPORTS;
        if let Some(report) = &mut self.report {
            report(share());
        }
    }
}
