//! Adds the events of the bottleneck's queue to the probes.

use super::{ClassCell, CrossEvent, LinkCell, Probes, SourceRecord};
use crate::clock::Nanos;
use crate::queue::{Passed, QueueProbe, RateCounters};

impl Probes {
    /// Counts a data packet that the bottleneck transmits.
    #[inline(always)]
    pub fn passed(&mut self, record: &SourceRecord, passed: Passed) {
        let cells = self.counters.class_mut(record.class());
        cells[ClassCell::Passed as usize] += 1;
        cells[ClassCell::Waited as usize] += passed.waited;
        cells[ClassCell::Marked as usize] += u64::from(passed.marked);
        // A signed integer converts to a double in one instruction.
        self.waits.add(passed.waited as i64 as f64 * 1e-9);
    }

    /// Copies the sums of the queue to the counters and closes the current slot, or the `last` one
    /// at the end of the run.
    pub fn snapshot(&mut self, now: Nanos, last: bool) {
        self.counters.set_link(LinkCell::QueueIntegral, self.occupancy.integral());
        self.counters.set_link(LinkCell::Busy, self.occupancy.busy());
        let carried = self.load.carried();
        self.counters.set_link(LinkCell::Carried, carried.bytes);
        self.counters.set_link(LinkCell::Capacity, carried.capacity);
        self.copy_return_sums();
        let merged = self.counters.snapshot(now, last);
        if !last {
            self.goodput.close();
        }
        if merged {
            self.goodput.merge_slots();
        }
    }
}

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

    fn cross_rates(&mut self, stream: usize, rates: &RateCounters) {
        self.cross.stream_mut(stream).rates.merge(rates);
    }
}
