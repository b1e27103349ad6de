//! What a queue publishes of cross traffic.

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

/// Rates in bins, of laws that have such, in packets a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateCounters {
    /// How many bins.
    pub bins: u64,
    /// Of these, such as had a rate below 0, which was cut.
    pub cut: u64,
    /// Sum of the rates.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}

impl RateCounters {
    /// A bin with that rate, which may be below 0: the rate after the cut.
    pub(crate) fn add(&mut self, rate: f64) -> f64 {
        let kept = rate.max(0.0);
        let cut = u64::from(rate < 0.0);
        self.merge(&Self { bins: 1, cut, sum: kept, squares: kept * kept });
        kept
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.bins += other.bins;
        self.cut += other.cut;
        self.sum += other.sum;
        self.squares += other.squares;
    }
}
