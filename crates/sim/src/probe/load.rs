//! The load of a link whose rate is not constant.

use crate::queue::Carried;

/// What such a link has carried since the warm-up, and what it could have; of any other, nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadCounters {
    total: Carried,
    before: Carried,
}

impl LoadCounters {
    /// The sums since the run began.
    pub fn set_total(&mut self, total: Option<Carried>) {
        self.total = total.unwrap_or_default();
    }

    /// The warm-up is over.
    pub fn begin(&mut self) {
        self.before = self.total;
    }

    /// The sums since then.
    #[must_use]
    pub fn carried(&self) -> Carried {
        self.total.since(self.before)
    }
}
