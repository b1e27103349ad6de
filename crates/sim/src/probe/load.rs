//! Load of a link with a varying rate.

use crate::queue::Carried;

/// Transmitted bytes and capacity of a link since the warm-up; zero for links with a constant rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadCounters {
    total: Carried,
    before: Carried,
}

impl LoadCounters {
    /// Sets the sums since the start of the run.
    pub fn set_total(&mut self, total: Option<Carried>) {
        self.total = total.unwrap_or_default();
    }

    /// Ends the warm-up.
    pub fn begin(&mut self) {
        self.before = self.total;
    }

    /// Sums since the end of the warm-up.
    #[must_use]
    pub fn carried(&self) -> Carried {
        self.total.since(self.before)
    }
}
