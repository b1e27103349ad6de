//! Segments of packets in flight.
//!
//! A packet holds only a number, a kind and the index of its segment here, so packets stay small.
//! Whoever delivers or drops a packet removes its segment. An acknowledgement that reaches its sender
//! before any other event needs no stored segment.

use crate::packet::{Packet, PacketKind, PacketLabel};
use crate::probe::CapturedHeader;
use tcpcast_link::Ecn;
use tcpcast_tcp::modern::{EcnCodepoint, OutgoingPacket, Segment};

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentInFlight {
    segment: Segment,
    /// Length of a short packet.
    bytes: u32,
    /// IP identification: counts the packets of an end.
    serial: u16,
}

/// Segments of all packets in flight between polled ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentsInFlight {
    slots: Vec<SegmentInFlight>,
    free: Vec<u32>,
}

impl SegmentsInFlight {
    /// Stores the segment of a packet to send, and returns the label of the packet.
    #[inline(always)]
    pub(crate) fn store_packet(&mut self, packet: &OutgoingPacket, serial: u16) -> PacketLabel {
        let index = self.store_segment(packet.segment, packet.short.unwrap_or(0), serial);
        let label = PacketLabel::with_index(packet.kind, index, packet.short.is_some());
        if packet.segment.ecn == EcnCodepoint::NotCapable {
            label
        } else {
            label.with_ecn_capable()
        }
    }

    /// Stores the segment of an acknowledgement, and returns the label of its packet.
    #[inline(always)]
    pub(crate) fn store_ack(&mut self, segment: &Segment, serial: u16) -> PacketLabel {
        let index = self.store_segment(segment, 0, serial);
        PacketLabel::with_index(PacketKind::Ack, index, false)
    }

    #[inline(always)]
    fn store_segment(&mut self, segment: &Segment, bytes: u32, serial: u16) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| self.add_slot());
        let slot = &mut self.slots[index as usize];
        slot.segment = *segment;
        (slot.bytes, slot.serial) = (bytes, serial);
        index
    }

    #[cold]
    fn add_slot(&mut self) -> u32 {
        self.slots.push(SegmentInFlight::default());
        (self.slots.len() - 1) as u32
    }

    /// Segment of a packet in flight.
    #[inline(always)]
    pub(crate) fn segment(&self, label: PacketLabel) -> &Segment {
        &self.slots[label.index()].segment
    }

    /// Removes the segment of a packet that is delivered or dropped. It is valid until the next one
    /// is stored. A mark of a queue is copied from the label.
    #[inline(always)]
    pub(crate) fn remove(&mut self, label: PacketLabel) -> &Segment {
        self.free.push(label.index() as u32);
        let segment = &mut self.slots[label.index()].segment;
        if label.ecn() == Ecn::Ce {
            segment.ecn = EcnCodepoint::Marked;
        }
        segment
    }

    /// Length of a packet of a polled end; [`None`] for a full packet.
    #[inline(always)]
    pub(crate) fn length_of_short_packet(&self, label: PacketLabel) -> Option<u32> {
        label.is_short().then(|| self.slots[label.index()].bytes)
    }

    /// Header of a packet in flight, as captures show it.
    pub(crate) fn captured_header(&self, packet: &Packet) -> CapturedHeader {
        let SegmentInFlight { segment, serial, .. } = &self.slots[packet.label().index()];
        CapturedHeader::new(segment, packet.label().ecn() as u8, *serial)
    }

    /// Number of segments in flight.
    pub(crate) fn len(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_label_in_any_order() {
        let mut segments = SegmentsInFlight::default();
        let labels = [(1, None), (2, Some(60)), (3, None)].map(|(seq, short)| {
            let segment = &Segment { seq, ..Segment::default() };
            let packet = OutgoingPacket { number: 0, kind: PacketKind::Data, short, segment };
            segments.store_packet(&packet, 0)
        });
        let lengths = labels.map(|label| segments.length_of_short_packet(label));
        assert_eq!(lengths, [None, Some(60), None]);
        assert_eq!((segments.remove(labels[1]).seq, segments.len()), (2, 2));
        let ack = segments.store_ack(&Segment { ack: 9, ..Segment::default() }, 0);
        assert_eq!((segments.segment(ack).ack, ack.kind()), (9, PacketKind::Ack));
        let rest = [labels[2], ack, labels[0]].map(|label| segments.remove(label).seq);
        assert_eq!((rest, segments.len(), segments.slots.len()), ([3, 0, 1], 0, 3));
    }

    #[test]
    fn mark_of_a_queue_reaches_the_segment_of_a_capable_packet() {
        let mut segments = SegmentsInFlight::default();
        let segment = &Segment { ecn: EcnCodepoint::Capable, ..Segment::default() };
        let packet = OutgoingPacket { number: 1, kind: PacketKind::Data, short: None, segment };
        let label = segments.store_packet(&packet, 0);
        assert_eq!(label.ecn(), Ecn::Ect0);
        assert_eq!(segments.remove(label.with_ecn_mark()).ecn, EcnCodepoint::Marked);
    }
}
