//! What became of the traffic of others.

use crate::cross::RateBook;

/// What a queue did with a packet of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossEvent {
    /// It arrived.
    Offered,
    /// The link has taken it, or will.
    Carried,
    /// It was dropped, on arrival or later.
    Dropped,
}

/// The packets of one stream since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossBook {
    /// Arrived.
    pub offered: u64,
    /// Taken by the link.
    pub carried: u64,
    /// Dropped.
    pub dropped: u64,
    /// The rates of the bins, where the law has such.
    pub rates: RateBook,
}

impl CrossBook {
    pub(super) fn count(&mut self, event: CrossEvent) {
        match event {
            CrossEvent::Offered => self.offered += 1,
            CrossEvent::Carried => self.carried += 1,
            CrossEvent::Dropped => self.dropped += 1,
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.carried += other.carried;
        self.dropped += other.dropped;
        self.rates.merge(&other.rates);
    }
}
