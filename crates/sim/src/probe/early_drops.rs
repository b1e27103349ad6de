//! Early drops of a queue.

use crate::merge::merge_fields;

/// Average queue lengths at arrivals, and drops although the buffer was not full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EarlyDropCounters {
    /// Arrivals at the queue.
    pub arrivals: u64,
    /// Sum of the average lengths after each arrival, in packets.
    pub averages: f64,
    /// Packets dropped although the buffer was not full.
    pub drops: u64,
}

impl EarlyDropCounters {
    /// Counts an arrival after which the average length is `packets`.
    pub fn count_average(&mut self, packets: f64) {
        self.arrivals += 1;
        self.averages += packets;
    }

    /// Counts an early drop.
    pub fn count_drop(&mut self) {
        self.drops += 1;
    }
}

merge_fields!(EarlyDropCounters { arrivals, averages, drops });
