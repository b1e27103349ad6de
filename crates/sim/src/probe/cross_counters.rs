//! Counters of cross traffic: offered, carried, dropped.

pub use crate::queue::CrossPacketEvent;

use crate::cross::FluidHop;
use crate::merge::{Merge, merge_fields};
use crate::queue::CrossRateCounters;

/// Packets of one stream since the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamCounters {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that the link transmitted.
    pub carried: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Carried packets whose waiting time is known.
    pub waits: u64,
    /// Sum of these waiting times in nanoseconds.
    pub waited: u64,
    /// Rates of bins, if the process has rates per bin.
    pub rates: CrossRateCounters,
    /// Sums of fluid series at per-source hops.
    pub fluid: FluidSums,
}

/// Sums of complete series of a fluid stream at a per-source hop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FluidSums {
    /// Number of series.
    pub series: u64,
    /// Sum of mean loads, as fractions of the link's rate.
    pub load: f64,
    /// Sum of lost loads without the sources.
    pub lost: f64,
}

/// Counters by stream index.
#[derive(Clone, Debug, Default)]
pub struct CrossCounters(Vec<StreamCounters>);

merge_fields!(StreamCounters { offered, carried, dropped, waits, waited, rates, fluid });
merge_fields!(FluidSums { series, load, lost });

impl Merge for CrossCounters {
    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

impl CrossCounters {
    /// Counters of all streams, up to the last stream with a count.
    #[must_use]
    pub fn streams(&self) -> &[StreamCounters] {
        &self.0
    }

    /// Counters of one stream.
    pub fn stream_mut(&mut self, stream: usize) -> &mut StreamCounters {
        if stream >= self.0.len() {
            self.0.resize(stream + 1, StreamCounters::default());
        }
        &mut self.0[stream]
    }

    /// Sets the sums of the streams of a fluid.
    pub fn set_fluid(&mut self, hop: &FluidHop) {
        for stream in hop.streams() {
            let lost = stream.load * hop.loss_ratio();
            let counters = self.stream_mut(stream.index);
            counters.rates = stream.rates;
            counters.fluid = FluidSums { series: 1, load: stream.load, lost };
        }
    }

    /// Discards all counters.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts an event of a packet of a stream.
    pub fn count_event(&mut self, stream: usize, event: CrossPacketEvent) {
        let counters = self.stream_mut(stream);
        match event {
            CrossPacketEvent::Offered => counters.offered += 1,
            CrossPacketEvent::Carried { waited } => {
                counters.carried += 1;
                counters.waits += u64::from(waited.is_some());
                counters.waited += waited.unwrap_or(0);
            }
            CrossPacketEvent::Dropped => counters.dropped += 1,
        }
    }
}
