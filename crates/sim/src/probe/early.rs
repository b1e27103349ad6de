//! What a queue that drops early went by.

/// Averages as arrivals found them, and drops while there was room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EarlyCounters {
    /// Arrivals at the queue.
    pub arrivals: u64,
    /// Sum of the averages, each after its arrival had moved it; packets.
    pub averages: f64,
    /// Packets dropped although there was room.
    pub drops: u64,
}

impl EarlyCounters {
    /// A packet moved the average to `packets`.
    pub fn averaged(&mut self, packets: f64) {
        self.arrivals += 1;
        self.averages += packets;
    }

    /// It was dropped although there was room.
    pub fn dropped(&mut self) {
        self.drops += 1;
    }

    /// Adds another replication's counts.
    pub fn merge(&mut self, other: &Self) {
        self.arrivals += other.arrivals;
        self.averages += other.averages;
        self.drops += other.drops;
    }
}
