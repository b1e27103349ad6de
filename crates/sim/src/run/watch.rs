//! How a run is watched from another thread: how far it is, and whether it should stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// Events between two checks. One event may take 100 ms, because a sender may send a million packets
/// in it; few such events follow each other.
const EVENTS_BETWEEN_CHECKS: u32 = 1 << 4;

/// Checks between two reports of progress.
const CHECKS_BETWEEN_REPORTS: u32 = 1 << 6;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Stops a run from another thread, and reports its progress.
pub struct Watch<'a> {
    stop: &'a AtomicBool,
    report: Option<&'a mut dyn FnMut(f64)>,
    events_left: u32,
    checks_left: u32,
}

impl<'a> Watch<'a> {
    /// Stops a run when `stop` is set; `report` gets the share done now and then.
    pub fn new(stop: &'a AtomicBool, report: &'a mut dyn FnMut(f64)) -> Self {
        Self { report: Some(report), stop, ..Self::none() }
    }

    /// Lets a run go on to its goal.
    #[must_use]
    pub fn none() -> Self {
        Self {
            stop: &NEVER,
            report: None,
            events_left: EVENTS_BETWEEN_CHECKS,
            checks_left: CHECKS_BETWEEN_REPORTS,
        }
    }

    /// Counts an event; returns false if the run should stop.
    #[inline(always)]
    pub fn goes_on(&mut self, share: impl FnOnce() -> f64) -> bool {
        self.events_left -= 1;
        self.events_left > 0 || self.check(share)
    }

    #[inline(never)]
    fn check(&mut self, share: impl FnOnce() -> f64) -> bool {
        self.events_left = EVENTS_BETWEEN_CHECKS;
        self.checks_left -= 1;
        if self.checks_left == 0 {
            self.checks_left = CHECKS_BETWEEN_REPORTS;
            if let Some(report) = &mut self.report {
                report(share());
            }
        }
        !self.stop.load(Ordering::Relaxed)
    }
}
