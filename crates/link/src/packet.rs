//! Packets: a length, a flow number, an ECN codepoint, and a token of the caller.

use crate::time::Nanos;
use serde::Deserialize;

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// 00: not ECN-capable.
    #[default]
    NotEct = 0,
    /// 01: ECN-capable, ECT(1).
    Ect1 = 1,
    /// 10: ECN-capable, ECT(0).
    Ect0 = 2,
    /// 11: congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Returns the codepoint in the two least significant bits of a DS field.
    #[must_use]
    pub fn from_bits(ds_field: u8) -> Self {
        match ds_field & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark the packet instead of dropping it.
    #[inline]
    #[must_use]
    pub fn is_ecn_capable(self) -> bool {
        self != Self::NotEct
    }
}

/// A packet on a link.
///
/// The token identifies the packet for the caller, for example as an index of a frame in a slab.
/// The token should be small, because it is copied with the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet<T = u32> {
    /// Arrival time at the current or last queue; set by the queue.
    pub entered: Nanos,
    /// Identifier used by the caller.
    pub token: T,
    /// Flow number: an arbitrary number, equal for all packets of a flow.
    pub flow: u32,
    /// Length on the link in bytes.
    pub bytes: u32,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Whether the current or last queue marked the packet; set by the queue.
    pub marked: bool,
}

impl<T> Packet<T> {
    /// Creates a packet that is not ECN-capable and has not entered a queue.
    #[must_use]
    pub fn new(token: T, flow: u32, bytes: u32) -> Self {
        Self { entered: 0, token, flow, bytes, ecn: Ecn::NotEct, marked: false }
    }

    /// Sets the ECN codepoint.
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// Marks the packet if it is ECN-capable (RFC 3168, section 5). Returns true if the packet is
    /// ECN-capable.
    ///
    /// A packet that already carries CE also counts as marked by this queue, because the receiver
    /// is notified of congestion without a drop.
    #[inline]
    pub fn mark_if_ecn_capable(&mut self) -> bool {
        let capable = self.ecn.is_ecn_capable();
        if capable {
            self.ecn = Ecn::Ce;
            self.marked = true;
        }
        capable
    }

    /// Records the arrival at a queue.
    #[inline]
    pub(crate) fn with_arrival_time(mut self, now: Nanos) -> Self {
        self.entered = now;
        self.marked = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3168_5_mark_sets_ce_only_on_capable_packets() {
        for bits in 0..4 {
            let ecn = Ecn::from_bits(bits);
            assert_eq!(ecn as u8, bits);
            let mut packet = Packet::new(7, 1, 1500).with_ecn(ecn);
            assert_eq!(packet.mark_if_ecn_capable(), bits != 0);
            assert_eq!(packet.ecn, if bits == 0 { Ecn::NotEct } else { Ecn::Ce });
            assert_eq!(packet.marked, bits != 0);
        }
    }

    #[test]
    fn packet_size_is_24_bytes_with_a_small_token() {
        assert_eq!(size_of::<Packet>(), 24);
        assert_eq!(size_of::<Packet<()>>(), 24);
        assert_eq!(size_of::<Packet<[u32; 3]>>(), 32);
    }
}
