//! Adds the events of the bottleneck's queue to the probes.

use super::{ClassCell, LinkCell, Probes};
use crate::clock::Nanos;
use tcpcast_net::Service;

impl Probes {
    /// Counts a data packet of a class that the bottleneck transmits.
    #[inline(always)]
    pub fn count_transmitted_of_class(&mut self, class: usize, passed: &Service) {
        let cells = self.counters.class_cells_mut(class);
        cells[ClassCell::Passed as usize] += 1;
        cells[ClassCell::Waited as usize] += passed.waited;
        cells[ClassCell::Marked as usize] += u64::from(passed.marked);
        // A signed integer converts to a double in one instruction.
        self.waits.add_value(passed.waited as i64 as f64 * 1e-9);
    }

    /// Copies the sums of the queue to the counters and closes the current slot, or the `last` one
    /// at the end of the run.
    pub fn close_counter_slot(&mut self, now: Nanos, last: bool) {
        self.counters
            .set_link_cell(LinkCell::QueueIntegral, self.occupancy.queue_length_integral());
        self.counters.set_link_cell(LinkCell::Busy, self.occupancy.busy_time());
        let carried = self.load.load_since_warm_up();
        self.counters.set_link_cell(LinkCell::Carried, carried.bytes);
        self.counters.set_link_cell(LinkCell::Capacity, carried.capacity);
        let merged = self.counters.snapshot_and_merge_if_full(now, last);
        self.goodput.counts.advance_slot(last, merged);
        self.class_times.advance_slot(last, merged);
        self.link_waits.advance_slot(last, merged);
    }
}
