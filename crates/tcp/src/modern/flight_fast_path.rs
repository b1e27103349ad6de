//! Bulk operations for packets that are sent and acknowledged in order, which is the common case.

use super::flight::Flight;
use super::outstanding_packet::OutstandingPacket;
use tcpcast_link::time::Nanos;

/// Packets removed by one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckedPackets {
    /// Number of packets.
    pub packets: u32,
    /// Send times of the first and the last packet.
    pub sent: (Nanos, Nanos),
    /// Packets delivered when the last one was sent.
    pub delivered: u32,
    /// Byte after the last packet.
    pub end: u64,
    /// Slot of the last packet, valid until another packet is sent.
    slot: usize,
}

impl Flight {
    /// Whether no packet is missing and all are in the order in which they were last sent.
    #[inline(always)]
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        (self.sacked | self.lost | self.retransmitted) == 0 && self.in_order_from <= self.first
    }

    /// Removes all packets acknowledged up to `una`, like repeated
    /// [`Flight::take_first_acked_packet`], if packets are in order; [`None`] if there are no such
    /// packets, or if one of them was sent twice.
    #[inline(always)]
    pub fn take_acked_in_order(&mut self, una: u64) -> Option<AckedPackets> {
        let probed = self.once_from > self.first && una >= self.first_byte_of(self.once_from);
        if probed || self.first == self.next || una <= self.first_byte {
            return None;
        }
        let first_sent = self.packet(self.first).sent_at;
        let (number, end) =
            if una == self.end { (self.next, una) } else { self.packet_containing_byte(una) };
        if number == self.first {
            return None;
        }
        let slot = self.slot_of(number - 1);
        let last = &self.slots[slot];
        let (sent, delivered) = ((first_sent, last.sent_at), last.delivered);
        let packets = number - self.first;
        (self.first, self.first_byte) = (number, end);
        Some(AckedPackets { packets, sent, delivered, end, slot })
    }

    /// Appends a run of packets of the same length, starting with `packet`.
    #[inline(always)]
    pub fn push_packet_run(&mut self, packets: u32, mut packet: OutstandingPacket, len: u32) {
        while (self.packets_out() + packets) as usize > self.slots.len() {
            self.grow_slots();
        }
        packet.start = self.end as u32;
        for number in self.next..self.next + packets {
            let slot = self.slot_of(number);
            self.slots[slot] = packet;
            packet.start = packet.start.wrapping_add(len);
        }
        self.next += packets;
        self.end += u64::from(packets) * u64::from(len);
    }

    /// Returns the outstanding packet that contains `byte`, and its first byte; searches from the
    /// first packet.
    #[inline(always)]
    fn packet_containing_byte(&self, byte: u64) -> (u32, u64) {
        let from = self.first_byte as u32;
        let ahead = (byte as u32).wrapping_sub(from);
        let (mut number, mut start) = (self.first, 0);
        for next in self.first + 1..self.next {
            let next_start = self.packet(next).start.wrapping_sub(from);
            if next_start > ahead {
                break;
            }
            (number, start) = (next, next_start);
            if start == ahead {
                break;
            }
        }
        (number, self.first_byte + u64::from(start))
    }

    /// Returns the last of the packets that were just removed.
    #[inline(always)]
    pub fn last_removed_packet(&self, acked: &AckedPackets) -> OutstandingPacket {
        self.slots[acked.slot]
    }
}
