//! What a sender keeps of a packet that is out.

use std::num::NonZeroU32;

use crate::clock::Nanos;

/// What is known of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// The receiver holds it.
    pub const SACKED: Self = Self(1);
    /// It is taken for lost.
    pub const LOST: Self = Self(2);
    /// A retransmission of it is in flight.
    pub const RETRANSMITTED: Self = Self(4);
    /// It was retransmitted at some time.
    pub const EVER_RETRANSMITTED: Self = Self(8);
    /// It was sent while the application limited.
    pub const APP_LIMITED: Self = Self(16);
    /// It ends the stream.
    pub const FIN: Self = Self(32);
    /// It is in the order of sending.
    pub(super) const LINKED: Self = Self(64);

    /// Whether any of `marks` is set.
    #[inline(always)]
    #[must_use]
    pub fn any(self, marks: Self) -> bool {
        self.0 & marks.0 != 0
    }

    /// Sets or clears `marks`.
    #[inline(always)]
    pub fn set(&mut self, marks: Self, on: bool) {
        self.0 = if on { self.0 | marks.0 } else { self.0 & !marks.0 };
    }

    /// Both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A packet's number as a link: one more than the number, so that none takes no space.
pub(super) type Link = Option<NonZeroU32>;

pub(super) fn link(number: u32) -> Link {
    NonZeroU32::new(number + 1)
}

pub(super) fn linked(link: Link) -> Option<u32> {
    link.map(|number| number.get() - 1)
}

/// Spans before the sending of a packet are kept in units of 64 ns, up to 275 s.
const SPAN_SHIFT: u32 = 6;

/// More packets in flight are noted as so many.
const MAX_IN_FLIGHT: u32 = (1 << 24) - 1;

/// Rounded up, so that no interval that follows is shorter than it was.
#[inline(always)]
fn span(nanos: Nanos) -> u32 {
    u32::try_from(nanos.div_ceil(1 << SPAN_SHIFT)).unwrap_or(u32::MAX)
}

/// A packet, 40 bytes of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// When it was sent last.
    pub sent_at: Nanos,
    /// The low half of the number of its first byte.
    pub(super) start: u32,
    /// Packets delivered when it was sent.
    pub delivered: u32,
    /// How long before it the first packet of its flight was sent.
    first_sent_before: u32,
    /// How long before it the last delivery was.
    delivered_before: u32,
    pub(super) earlier: Link,
    pub(super) later: Link,
    /// Packets found lost when it was sent, where that is noted; wraps.
    pub lost: u32,
    /// Packets in flight with it when it was sent, where that is noted.
    in_flight: [u8; 3],
    /// What is known of it.
    pub marks: Marks,
}

impl Packet {
    /// One that is sent now; its delivery is noted later.
    #[inline(always)]
    pub(super) fn sent(sent_at: Nanos, marks: Marks) -> Self {
        Self { sent_at, marks, ..Self::default() }
    }

    /// Where delivery stood when it was sent: see `delivery_rate.rs`.
    #[inline(always)]
    pub fn set_times(&mut self, first_sent_at: Nanos, delivered_at: Nanos) {
        self.first_sent_before = span(self.sent_at.saturating_sub(first_sent_at));
        self.delivered_before = span(self.sent_at.saturating_sub(delivered_at));
    }

    /// What was in flight with it when it was sent, and how many were found lost.
    #[inline(always)]
    pub fn record_flight(&mut self, in_flight: u32, lost: u32) {
        let [_, bytes @ ..] = in_flight.min(MAX_IN_FLIGHT).to_be_bytes();
        (self.in_flight, self.lost) = (bytes, lost);
    }

    /// Packets in flight with it when it was sent; 0 where that is not noted.
    #[inline(always)]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let [high, middle, low] = self.in_flight;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// When the first packet of its flight was sent.
    #[inline(always)]
    #[must_use]
    pub fn first_sent_at(&self) -> Nanos {
        self.sent_at.saturating_sub(Nanos::from(self.first_sent_before) << SPAN_SHIFT)
    }

    /// When, at its sending, the last delivery had been.
    #[inline(always)]
    #[must_use]
    pub fn delivered_at(&self) -> Nanos {
        self.sent_at.saturating_sub(Nanos::from(self.delivered_before) << SPAN_SHIFT)
    }

    /// Whether it was sent more than once.
    #[inline(always)]
    #[must_use]
    pub fn was_retransmitted(&self) -> bool {
        self.marks.any(Marks::RETRANSMITTED.union(Marks::EVER_RETRANSMITTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_40_bytes() {
        assert_eq!(std::mem::size_of::<Packet>(), 40);
    }
}
