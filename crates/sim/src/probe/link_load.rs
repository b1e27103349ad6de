//! Load of a link with a varying rate.

use crate::queue::LinkLoad;

/// Transmitted bytes and capacity of a link since the warm-up; zero for links with a constant rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkLoadCounters {
    total: LinkLoad,
    before: LinkLoad,
}

impl LinkLoadCounters {
    /// Sets the sums since the start of the run.
    pub fn set_total_since_start(&mut self, total: Option<LinkLoad>) {
        self.total = total.unwrap_or_default();
    }

    /// Ends the warm-up.
    pub fn begin_measurement(&mut self) {
        self.before = self.total;
    }

    /// Sums since the end of the warm-up.
    #[must_use]
    pub fn load_since_warm_up(&self) -> LinkLoad {
        self.total.difference_from(self.before)
    }
}
