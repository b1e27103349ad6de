//! What the bottleneck's queue publishes, and who hears it.

use super::{CrossEvent, Probes};
use crate::clock::Nanos;
use crate::queue::{QueueProbe, RateBook};

impl QueueProbe for Probes {
    #[inline(always)]
    fn queue_held(&mut self, packets: usize, until: Nanos) {
        self.occupancy.held(packets, until);
    }

    #[inline(always)]
    fn queue_seen(&mut self, packets: usize) {
        self.occupancy.seen(packets);
    }

    fn queue_averaged(&mut self, packets: f64) {
        self.early.averaged(packets);
    }

    fn dropped_early(&mut self) {
        self.early.dropped();
    }

    fn cross(&mut self, stream: usize, event: CrossEvent) {
        self.cross.count(stream, event);
    }

    fn cross_rates(&mut self, stream: usize, rates: &RateBook) {
        self.cross.of(stream).rates.merge(rates);
    }
}
