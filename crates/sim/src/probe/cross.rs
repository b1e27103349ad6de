//! The outcome of cross traffic: offered, carried, dropped.

pub use crate::queue::CrossEvent;

use crate::queue::RateCounters;

/// The packets of one stream since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamCounters {
    /// Arrived.
    pub offered: u64,
    /// Taken by the link.
    pub carried: u64,
    /// Dropped.
    pub dropped: u64,
    /// The rates of the bins, where the process has such.
    pub rates: RateCounters,
    /// Where it is a fluid.
    pub fluid: FluidSums,
}

/// A stream that is a fluid, at a hop of each source's own: of whole series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FluidSums {
    /// How many series.
    pub series: u64,
    /// Sum of their mean loads, as shares of the link's rate.
    pub load: f64,
    /// Sum of what they lose of it without the sources.
    pub lost: f64,
}

/// The counters of streams, by their places among all.
#[derive(Clone, Debug, Default)]
pub struct CrossCounters(Vec<StreamCounters>);

impl CrossCounters {
    /// All streams; the last may be left out where nothing was counted.
    #[must_use]
    pub fn streams(&self) -> &[StreamCounters] {
        &self.0
    }

    /// The counters of one stream.
    pub fn of(&mut self, stream: usize) -> &mut StreamCounters {
        if stream >= self.0.len() {
            self.0.resize(stream + 1, StreamCounters::default());
        }
        &mut self.0[stream]
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds others' counters.
    pub fn merge(&mut self, others: &Self) {
        for (stream, other) in others.0.iter().enumerate() {
            let mine = self.of(stream);
            mine.offered += other.offered;
            mine.carried += other.carried;
            mine.dropped += other.dropped;
            mine.rates.merge(&other.rates);
            mine.fluid.series += other.fluid.series;
            mine.fluid.load += other.fluid.load;
            mine.fluid.lost += other.fluid.lost;
        }
    }

    pub(super) fn count(&mut self, stream: usize, event: CrossEvent) {
        let counters = self.of(stream);
        match event {
            CrossEvent::Offered => counters.offered += 1,
            CrossEvent::Carried => counters.carried += 1,
            CrossEvent::Dropped => counters.dropped += 1,
        }
    }
}
