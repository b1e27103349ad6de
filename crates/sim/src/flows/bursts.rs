//! Bursts of segmentation offload: a sender hands several full packets to the network as one unit,
//! and the receiving host merges them again (GRO) or receives them one by one.
//!
//! A burst is one packet for links: one transmission, one place in the queue, one random loss. Probes
//! count its packets. A link whose queue splits bursts replaces it by its packets.

use super::hosts::FlowSink;
use super::parcel::{Parcel, Parcels};
use super::wire::Wire;
use tcpcast_link::{Ecn, Packet};
use tcpcast_tcp::modern::Segment;

/// Largest burst, in bytes of data: `GSO_LEGACY_MAX_SIZE` without headers.
const MAX_BURST_BYTES: u32 = 65_536 - 320;

impl FlowSink<'_> {
    /// Adds a segment with data to the burst that is being filled; sends the burst if it must not
    /// grow further. Returns whether the segment was added.
    #[cold]
    #[inline(never)]
    pub(super) fn extend_burst(&mut self, segment: &Segment, number: u32, bytes: u32) -> bool {
        let Some(burst) = &mut self.burst else { return false };
        let parcel = self.wire.parcels.get_mut(burst.token);
        let filled = &mut parcel.segment;
        let extends = segment.seq == filled.seq + u64::from(filled.len)
            && number == parcel.number + parcel.packets
            && filled.len % self.class.payload_bytes == 0
            && filled.len + segment.len <= MAX_BURST_BYTES
            && segment.len > 0
            && segment.flags.cwr == filled.flags.cwr;
        if !extends {
            self.send_burst();
            return false;
        }
        filled.len += segment.len;
        filled.flags = segment.flags;
        parcel.packets += 1;
        burst.bytes += bytes;
        if segment.flags.psh || segment.flags.fin {
            self.send_burst();
        }
        true
    }

    /// Begins a burst with a packet.
    pub(super) fn begin_burst(&mut self, packet: Packet<u32>) {
        self.burst = Some(packet);
        let segment = &self.wire.parcels.get(packet.token).segment;
        if segment.flags.psh || segment.flags.fin || segment.len < self.class.payload_bytes {
            self.send_burst();
        }
    }

    /// Sends the burst that is being filled.
    pub(super) fn send_burst(&mut self) {
        if let Some(packet) = self.burst.take() {
            self.send_packet(packet);
        }
    }
}

impl Wire {
    /// Delivers the packets of a burst one by one, as a host without GRO.
    #[inline(never)]
    pub(super) fn deliver_parts(&mut self, burst: &Parcel, payload: u32) {
        for part in burst.split(payload) {
            let (index, parcel) = self.parcels.add();
            *parcel = part;
            self.delivered_parts.push_back((index, part.segment.ecn));
        }
    }
}

impl Parcels {
    /// Replaces a burst of `bytes` by its packets; appends the index and the length of each to
    /// `parts`. `payload`: bytes of data of a full packet.
    #[inline(never)]
    pub fn split_burst(
        &mut self,
        index: u32,
        bytes: u32,
        payload: u32,
        parts: &mut Vec<(u32, u32)>,
    ) {
        let burst = *self.get(index);
        self.remove(index, Ecn::NotEct);
        let header = (bytes - burst.segment.len) / burst.packets;
        for part in burst.split(payload) {
            let (index, parcel) = self.add();
            *parcel = part;
            parts.push((index, header + part.segment.len));
        }
    }
}

impl Parcel {
    /// The packets of a burst as parcels of their own, in order.
    pub(super) fn split(&self, payload: u32) -> impl Iterator<Item = Self> + use<> {
        let (whole, packets) = (*self, self.packets);
        (0..packets).map(move |at| {
            let mut part = Self { packets: 1, ..whole };
            let offset = at * payload;
            part.segment.seq += u64::from(offset);
            part.segment.len = (whole.segment.len - offset).min(payload);
            let is_last = at + 1 == packets;
            part.segment.flags.psh &= is_last;
            part.segment.flags.fin &= is_last;
            part.number += if whole.number == 0 { 0 } else { at };
            part
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpcast_tcp::modern::Segment;

    #[test]
    fn burst_becomes_packets_with_its_data_in_order() {
        let mut parcels = Parcels::default();
        let mut segment = Segment { seq: 5000, len: 2500, ..Segment::default() };
        segment.flags.psh = true;
        let (burst, parcel) = parcels.add();
        *parcel = Parcel { segment, number: 6, packets: 3, flow: 4, ..*parcel };
        let mut parts = Vec::new();
        parcels.split_burst(burst, 2500 + 3 * 52, 1000, &mut parts);
        let packets: Vec<_> = parts
            .iter()
            .map(|(index, bytes)| {
                let Parcel { segment, number, packets, flow, .. } = *parcels.get(*index);
                assert_eq!((packets, flow), (1, 4));
                (number, segment.seq, segment.len, segment.flags.psh, *bytes)
            })
            .collect();
        let expected =
            [(6, 5000, 1000, false, 1052), (7, 6000, 1000, false, 1052), (8, 7000, 500, true, 552)];
        assert_eq!((packets, parcels.len()), (expected.to_vec(), 3));
    }
}
