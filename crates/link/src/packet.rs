//! What travels: a length, a flow, an ECN codepoint, and the caller's own name for it.

use crate::time::Nanos;

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// 00: the transport does not understand marks.
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
    /// The codepoint in the two lowest bits of a DS field.
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
    pub fn is_capable(self) -> bool {
        self != Self::NotEct
    }
}

/// A packet as a link sees it.
///
/// The token is what the caller knows the packet by: the index of a frame in its slab, or whatever
/// else is small enough to be copied with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet<T = u32> {
    /// When it came to the queue that it is in, or was in last; queues set it.
    pub entered: Nanos,
    /// The caller's name for it.
    pub token: T,
    /// Which flow it belongs to: the same number for all packets of one, any number otherwise.
    pub flow: u32,
    /// Its length in bytes, as the link counts them.
    pub bytes: u32,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Whether the queue that it is in, or was in last, marked it; queues set it.
    pub marked: bool,
}

impl<T> Packet<T> {
    /// A packet that is not ECN-capable and has not been in a queue.
    #[must_use]
    pub fn new(token: T, flow: u32, bytes: u32) -> Self {
        Self { entered: 0, token, flow, bytes, ecn: Ecn::NotEct, marked: false }
    }

    /// The same packet with that codepoint.
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// Marks it if it is ECN-capable (RFC 3168, section 5); whether it is.
    ///
    /// A packet that was marked before counts as marked here too: the queue has said what it would
    /// say by a drop.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let capable = self.ecn.is_capable();
        if capable {
            self.ecn = Ecn::Ce;
            self.marked = true;
        }
        capable
    }

    /// It comes to a queue now.
    #[inline]
    pub(crate) fn enter(mut self, now: Nanos) -> Self {
        self.entered = now;
        self.marked = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3168_5_only_capable_packets_are_marked() {
        for bits in 0..4 {
            let ecn = Ecn::from_bits(bits);
            assert_eq!(ecn as u8, bits);
            let mut packet = Packet::new(7, 1, 1500).with_ecn(ecn);
            assert_eq!(packet.mark(), bits != 0);
            assert_eq!(packet.ecn, if bits == 0 { Ecn::NotEct } else { Ecn::Ce });
            assert_eq!(packet.marked, bits != 0);
        }
    }

    #[test]
    fn a_packet_is_small() {
        assert_eq!(size_of::<Packet>(), 24);
        assert_eq!(size_of::<Packet<()>>(), 24);
        assert_eq!(size_of::<Packet<[u32; 3]>>(), 32);
    }
}
