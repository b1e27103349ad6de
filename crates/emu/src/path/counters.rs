//! What is counted in each direction.

use super::histogram::Histogram;

/// Why a packet did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The buffer was full, or the policer had no tokens.
    Full,
    /// The queue dropped it while there was room, to signal congestion.
    Early,
    /// Random loss.
    Random,
    /// It goes to an address that no port has, or is no IP packet.
    Misaddressed,
    /// The machinery lost it: no memory, or a device that did not take it.
    Machinery,
}

/// Packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many packets.
    pub packets: u64,
    /// Their bytes, with the IP header.
    pub bytes: u64,
}

impl Traffic {
    #[inline]
    pub(super) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Counters of one direction.
///
/// Entered = delivered + dropped for any cause but being misaddressed + in transit.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// What came to the link.
    pub entered: Traffic,
    /// What was handed to the other end.
    pub delivered: Traffic,
    /// Dropped because the buffer was full.
    pub full_drops: u64,
    /// Dropped early by the queue.
    pub early_drops: u64,
    /// Lost at random.
    pub random_drops: u64,
    /// Lost by the machinery, which spoils the run.
    pub machinery_drops: u64,
    /// What no port wanted; it did not enter.
    pub misaddressed: u64,
    /// Marked by the queue.
    pub marked: u64,
    /// How long packets that got through waited for their transmission.
    pub waits: Histogram,
    /// How much later than due packets were handed over.
    pub lateness: Histogram,
}

impl Counters {
    pub(super) fn drop(&mut self, cause: Cause) {
        match cause {
            Cause::Full => self.full_drops += 1,
            Cause::Early => self.early_drops += 1,
            Cause::Random => self.random_drops += 1,
            Cause::Machinery => self.machinery_drops += 1,
            Cause::Misaddressed => self.misaddressed += 1,
        }
    }

    /// Packets that entered and were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.full_drops + self.early_drops + self.random_drops + self.machinery_drops
    }
}
