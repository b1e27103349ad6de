//! Counters of each direction.

use super::TimeHistogram;

/// Reason for the loss of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
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
pub struct PacketAndByteCount {
    /// Number of packets.
    pub packets: u64,
    /// Bytes including the IP header.
    pub bytes: u64,
}

impl PacketAndByteCount {
    #[inline]
    pub(super) fn count_packet(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Counters of one direction.
///
/// entered = delivered + dropped (except misaddressed) + in transit
#[derive(Clone, Debug, Default)]
pub struct DirectionCounters {
    /// Packets that entered the link.
    pub entered: PacketAndByteCount,
    /// Packets delivered to the other end.
    pub delivered: PacketAndByteCount,
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
    pub waits: TimeHistogram,
    /// Lateness of deliveries.
    pub lateness: TimeHistogram,
}

impl DirectionCounters {
    pub(super) fn count_drop(&mut self, cause: DropCause) {
        match cause {
            DropCause::Full => self.full_drops += 1,
            DropCause::Early => self.early_drops += 1,
            DropCause::Random => self.random_drops += 1,
            DropCause::Host => self.host_drops += 1,
            DropCause::Misaddressed => self.misaddressed += 1,
        }
    }

    /// Number of packets that entered and were dropped.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.full_drops + self.early_drops + self.random_drops + self.host_drops
    }
}
