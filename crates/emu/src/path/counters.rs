//! Counters of each direction.

use super::histogram::Histogram;

/// Reason for the loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The buffer was full, or the policer had no tokens.
    Full,
    /// Dropped by the queue before it was full, to signal congestion.
    Early,
    /// Random loss.
    Random,
    /// Not an IP packet, or no port has the destination address.
    Misaddressed,
    /// Lost by the emulator: no memory, or rejected by a device.
    Host,
}

/// Number of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of packets.
    pub packets: u64,
    /// Bytes including the IP header.
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
/// entered = delivered + dropped (except misaddressed) + in transit
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Packets that entered the link.
    pub entered: Traffic,
    /// Packets delivered to the other end.
    pub delivered: Traffic,
    /// Packets dropped because the buffer was full.
    pub full_drops: u64,
    /// Packets dropped early by the queue.
    pub early_drops: u64,
    /// Packets lost at random.
    pub random_drops: u64,
    /// Packets lost by the emulator, which make the run invalid.
    pub host_drops: u64,
    /// Packets without a destination port, which did not enter.
    pub misaddressed: u64,
    /// Packets marked by the queue.
    pub marked: u64,
    /// Queueing delay of transmitted packets.
    pub waits: Histogram,
    /// Lateness of deliveries.
    pub lateness: Histogram,
}

impl Counters {
    pub(super) fn drop(&mut self, cause: Cause) {
        match cause {
            Cause::Full => self.full_drops += 1,
            Cause::Early => self.early_drops += 1,
            Cause::Random => self.random_drops += 1,
            Cause::Host => self.host_drops += 1,
            Cause::Misaddressed => self.misaddressed += 1,
        }
    }

    /// Number of packets that entered and were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.full_drops + self.early_drops + self.random_drops + self.host_drops
    }
}
