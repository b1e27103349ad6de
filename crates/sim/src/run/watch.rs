//! How a run is watched from another thread: how far it is, and whether it should stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// Events between two reports of progress.
const EVENTS_BETWEEN_REPORTS: u32 = 1 << 10;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Stops a run from another thread, and reports its progress. Each event checks whether to stop: an
/// event may take 100 ms and 200 MB, because a sender may send a million packets in it.
pub struct Watch<'a> {
    stop: &'a AtomicBool,
    report: Option<&'a mut dyn FnMut(f64)>,
    events_left: u32,
}

impl<'a> Watch<'a> {
    /// Stops a run when `stop` is set; `report` gets the share done now and then.
    pub fn new(stop: &'a AtomicBool, report: &'a mut dyn FnMut(f64)) -> Self {
        Self { report: Some(report), stop, ..Self::none() }
    }

    /// Lets a run go on to its run_limit.
    #[must_use]
    pub fn none() -> Self {
        Self { stop: &NEVER, report: None, events_left: EVENTS_BETWEEN_REPORTS }
    }

    /// Counts an event; returns false if the run should stop.
    #[inline(always)]
    pub fn should_continue(&mut self, share: impl FnOnce() -> f64) -> bool {
        self.events_left -= 1;
        if self.events_left == 0 {
            self.report(share);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    #[inline(never)]
    fn report(&mut self, share: impl FnOnce() -> f64) {
        self.events_left = EVENTS_BETWEEN_REPORTS;
        if let Some(report) = &mut self.report {
            report(share());
        }
    }
}
