//! Packets that a sender transmits after an event.

use crate::packet_kind::PacketKind;

/// Packets to send: an optional retransmission, then `count` packets starting with `from`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketsToSend {
    /// Packet to retransmit first; 0 if none.
    pub retransmit: u32,
    /// First packet of the run.
    pub from: u32,
    /// Number of packets in the run.
    pub count: u32,
    /// Packets of the run with lower numbers were sent before.
    pub fresh_from: u32,
}

impl PacketsToSend {
    /// Packets in sending order.
    pub fn packets(&self) -> impl Iterator<Item = (u32, PacketKind)> + use<> {
        use PacketKind::{Data, Retransmission};
        let fresh_from = self.fresh_from;
        let retransmit = (self.retransmit != 0).then_some((self.retransmit, Retransmission));
        retransmit.into_iter().chain(
            (self.from..self.from + self.count).map(move |number| {
                (number, if number < fresh_from { Retransmission } else { Data })
            }),
        )
    }
}
