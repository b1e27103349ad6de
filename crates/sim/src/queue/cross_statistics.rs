//! Events of cross traffic at a queue.

use crate::clock::Nanos;
use crate::merge::{Merge, merge_fields};

/// Event of a cross packet at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossPacketEvent {
    /// The packet arrived.
    Offered,
    /// The link transmits the packet now or later.
    Carried {
        /// Time from arrival to the start of transmission; `None` if the queue does not know it.
        waited: Option<Nanos>,
    },
    /// The packet was dropped, on arrival or later.
    Dropped,
}

/// Statistics of the rates of a process with rates per bin, in packets per bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossRateCounters {
    /// Number of bins.
    pub bins: u64,
    /// Bins with a negative rate, which was set to 0.
    pub cut: u64,
    /// Sum of the rates.
    pub sum: f64,
    /// Sum of the squared rates.
    pub squares: f64,
}

impl CrossRateCounters {
    /// Adds a bin with `rate`. Returns the rate, or 0 if the rate is negative.
    pub(crate) fn add_bin(&mut self, rate: f64) -> f64 {
        let kept = rate.max(0.0);
        let cut = u64::from(rate < 0.0);
        self.merge(&Self { bins: 1, cut, sum: kept, squares: kept * kept });
        kept
    }
}

merge_fields!(CrossRateCounters { bins, cut, sum, squares });
