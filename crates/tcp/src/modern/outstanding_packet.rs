//! State of an outstanding packet.

use std::num::NonZeroU32;

use tcpcast_link::time::Nanos;

/// State flags of an outstanding packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketMarks(u8);

impl PacketMarks {
    /// SACKed: the receiver holds the packet.
    pub const SACKED: Self = Self(1);
    /// Considered lost.
    pub const LOST: Self = Self(2);
    /// A retransmission is in flight.
    pub const RETRANSMITTED: Self = Self(4);
    /// Retransmitted at least once.
    pub const EVER_RETRANSMITTED: Self = Self(8);
    /// Sent while the rate was limited by the application.
    pub const APP_LIMITED: Self = Self(16);
    /// The packet ends the stream.
    pub const FIN: Self = Self(32);
    /// The packet is in the linked list of packets by time of their last transmission.
    pub(super) const LINKED: Self = Self(64);

    /// Whether any of `marks` is set.
    #[inline(always)]
    #[must_use]
    pub fn contains_any(self, marks: Self) -> bool {
        self.0 & marks.0 != 0
    }

    /// Whether the packet waits for retransmission: it is lost, and neither SACKed nor retransmitted.
    #[inline(always)]
    #[must_use]
    pub fn wait_for_retransmission(self) -> bool {
        self.0 & (Self::SACKED.0 | Self::LOST.0 | Self::RETRANSMITTED.0) == Self::LOST.0
    }

    /// Sets or clears `marks`.
    #[inline(always)]
    pub fn set(&mut self, marks: Self, on: bool) {
        self.0 = if on { self.0 | marks.0 } else { self.0 & !marks.0 };
    }

    /// Union of two sets of marks.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Packet number plus one, so that [`None`] takes no space.
pub(super) type LinkedPacketNumber = Option<NonZeroU32>;

pub(super) fn to_link(number: u32) -> LinkedPacketNumber {
    NonZeroU32::new(number + 1)
}

pub(super) fn from_link(link: LinkedPacketNumber) -> Option<u32> {
    link.map(|number| number.get() - 1)
}

/// Durations before the sending of a packet have units of 64 ns, up to 275 s.
const DURATION_SHIFT: u32 = 6;

/// Maximum recorded number of packets in flight.
const MAX_IN_FLIGHT: u32 = (1 << 24) - 1;

/// Converts a duration, rounded up so that no derived interval is too short.
#[inline(always)]
fn nanos_to_duration_units(nanos: Nanos) -> u32 {
    u32::try_from(nanos.div_ceil(1 << DURATION_SHIFT)).unwrap_or(u32::MAX)
}

/// An outstanding packet, 40 bytes in size.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutstandingPacket {
    /// Time of the last transmission.
    pub sent_at: Nanos,
    /// Lower 32 bits of its first byte.
    pub(super) start: u32,
    /// Total number of packets delivered when this packet was sent.
    pub delivered: u32,
    /// Time from the first transmission of the packet's flight to the transmission of the packet.
    first_sent_before: u32,
    /// Time from the last delivery to the transmission of the packet.
    delivered_before: u32,
    pub(super) earlier: LinkedPacketNumber,
    pub(super) later: LinkedPacketNumber,
    /// Total number of packets lost when this packet was sent, if recorded; wraps.
    pub lost: u32,
    /// Packets in flight, including this one, when it was sent, if recorded.
    in_flight: [u8; 3],
    /// Flags.
    pub marks: PacketMarks,
}

impl OutstandingPacket {
    /// Creates a packet sent now; its delivery data is set later.
    #[inline(always)]
    pub(super) fn sent_at_time(sent_at: Nanos, marks: PacketMarks) -> Self {
        Self { sent_at, marks, ..Self::default() }
    }

    /// Records the times for rate samples: see `delivery_rate.rs`.
    #[inline(always)]
    pub fn set_times(&mut self, first_sent_at: Nanos, delivered_at: Nanos) {
        self.first_sent_before =
            nanos_to_duration_units(self.sent_at.saturating_sub(first_sent_at));
        self.delivered_before = nanos_to_duration_units(self.sent_at.saturating_sub(delivered_at));
    }

    /// Records the numbers of packets in flight and lost at the time when this packet was sent.
    #[inline(always)]
    pub fn record_flight_at_send(&mut self, in_flight: u32, lost: u32) {
        let [_, bytes @ ..] = in_flight.min(MAX_IN_FLIGHT).to_be_bytes();
        (self.in_flight, self.lost) = (bytes, lost);
    }

    /// Packets in flight, including this one, when it was sent; 0 if not recorded.
    #[inline(always)]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let [high, middle, low] = self.in_flight;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// Send time of the first packet of its flight.
    #[inline(always)]
    #[must_use]
    pub fn first_sent_at(&self) -> Nanos {
        self.sent_at.saturating_sub(Nanos::from(self.first_sent_before) << DURATION_SHIFT)
    }

    /// Time of the last delivery before it was sent.
    #[inline(always)]
    #[must_use]
    pub fn delivered_at(&self) -> Nanos {
        self.sent_at.saturating_sub(Nanos::from(self.delivered_before) << DURATION_SHIFT)
    }

    /// Whether the packet was sent more than once.
    #[inline(always)]
    #[must_use]
    pub fn was_retransmitted(&self) -> bool {
        self.marks.contains_any(PacketMarks::RETRANSMITTED.union(PacketMarks::EVER_RETRANSMITTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_size_is_40_bytes() {
        assert_eq!(std::mem::size_of::<OutstandingPacket>(), 40);
    }
}
