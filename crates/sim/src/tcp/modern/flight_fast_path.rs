//! Packets that are acknowledged in the order in which they were sent, as most are.

use super::flight::Flight;
use super::packet::Packet;
use crate::clock::Nanos;

/// Packets that were taken together.
#[derive(Clone, Copy, Debug)]
pub struct AckedPackets {
    /// How many.
    pub packets: u32,
    /// When the first one was sent, and the last one.
    pub sent: (Nanos, Nanos),
    /// Packets delivered when the last one was sent.
    pub delivered: u32,
    /// The byte after it.
    pub end: u64,
    /// Where it is, until another packet is sent.
    slot: usize,
}

impl Flight {
    /// Whether nothing is missing, and packets are in the order in which they were sent last.
    #[inline(always)]
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        (self.sacked | self.lost | self.retransmitted) == 0 && self.in_order_from <= self.first
    }

    /// The same as [`Flight::take_first`] for all packets that are acknowledged up to `una`, where
    /// they are in order; [`None`] if there is none, or one of them was sent twice.
    #[inline(always)]
    pub fn take_in_order(&mut self, una: u64) -> Option<AckedPackets> {
        let probed = self.once_from > self.first && una >= self.start_of(self.once_from);
        if probed || self.first == self.next || una <= self.first_byte {
            return None;
        }
        let first_sent = self.packet(self.first).sent_at;
        let (number, end) = if una == self.end { (self.next, una) } else { self.find_packet(una) };
        if number == self.first {
            return None;
        }
        let slot = self.slot(number - 1);
        let last = &self.slots[slot];
        let (sent, delivered) = ((first_sent, last.sent_at), last.delivered);
        let packets = number - self.first;
        (self.first, self.first_byte) = (number, end);
        Some(AckedPackets { packets, sent, delivered, end, slot })
    }

    /// Appends packets of the same length that are sent together, the first of which is `packet`.
    #[inline(always)]
    pub fn push_run(&mut self, packets: u32, mut packet: Packet, len: u32) {
        while (self.out() + packets) as usize > self.slots.len() {
            self.grow();
        }
        packet.start = self.end as u32;
        for number in self.next..self.next + packets {
            let slot = self.slot(number);
            self.slots[slot] = packet;
            packet.start = packet.start.wrapping_add(len);
        }
        self.next += packets;
        self.end += u64::from(packets) * u64::from(len);
    }

    /// The packet that byte `byte` lies in and its first byte, looked for from the first on; it is one
    /// that is out.
    #[inline(always)]
    fn find_packet(&self, byte: u64) -> (u32, u64) {
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

    /// The last one of packets that were just taken.
    #[inline(always)]
    pub fn last_packet(&self, acked: &AckedPackets) -> Packet {
        self.slots[acked.slot]
    }
}
