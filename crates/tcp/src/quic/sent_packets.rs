//! Packets of a space that were sent and neither acknowledged nor declared lost.

use super::datagram::{Chunk, QuicPacket};
use crate::modern::OutstandingPacket;
use std::collections::VecDeque;
use tcpcast_link::time::Nanos;

/// An ack-eliciting packet in flight, and what must be sent again if it is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    /// Time, and the state of the delivery at that time.
    pub outstanding: OutstandingPacket,
    /// Bytes of the packet that count as in flight.
    pub bytes: u32,
    /// Data of the stream, or of the handshake, by the space of the packet.
    pub data: Option<Chunk>,
    pub has_max_data: bool,
    pub has_handshake_done: bool,
    /// Number after the largest one that its ACK frame acknowledged; 0 without such a frame.
    pub acknowledges_below: u64,
}

impl SentPacket {
    pub fn new(packet: &QuicPacket, outstanding: OutstandingPacket, bytes: u32) -> Self {
        Self {
            outstanding,
            bytes,
            data: packet.data,
            has_max_data: packet.max_data.is_some(),
            has_handshake_done: packet.handshake_done,
            acknowledges_below: packet.acked.last().map_or(0, |range| range.end),
        }
    }

    #[inline(always)]
    pub fn sent_at(&self) -> Nanos {
        self.outstanding.sent_at
    }
}

/// Packets of a space, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct SentPackets {
    /// Number of the first slot.
    first: u64,
    slots: VecDeque<Option<SentPacket>>,
    in_flight: u32,
}

impl SentPackets {
    /// Forgets all packets, and keeps the memory.
    pub fn restart(&mut self) {
        self.slots.clear();
        (self.first, self.in_flight) = (0, 0);
    }

    /// Number of the next packet.
    #[inline(always)]
    pub fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Adds the next packet; [`None`] if it only acknowledges.
    #[inline]
    pub fn push(&mut self, packet: Option<SentPacket>) {
        if packet.is_none() && self.slots.is_empty() {
            self.first += 1;
            return;
        }
        self.in_flight += u32::from(packet.is_some());
        self.slots.push_back(packet);
    }

    /// Number of packets in flight.
    #[inline(always)]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Removes a packet, if it is in flight.
    #[inline]
    pub fn take(&mut self, number: u64) -> Option<SentPacket> {
        let index = number.checked_sub(self.first)?;
        let packet = self.slots.get_mut(index as usize)?.take()?;
        self.in_flight -= 1;
        if index == 0 {
            self.remove_empty_slots();
        }
        Some(packet)
    }

    #[inline]
    fn remove_empty_slots(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
    }

    /// Number of the first packet that may be in flight.
    #[inline(always)]
    pub fn first_number(&self) -> u64 {
        self.first
    }

    /// A packet in flight.
    #[inline(always)]
    pub fn get(&self, number: u64) -> Option<&SentPacket> {
        self.slots.get(number.checked_sub(self.first)? as usize)?.as_ref()
    }

    /// Packets in flight in the order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut SentPacket> {
        self.slots.iter_mut().flatten()
    }

    /// Removes all packets, and returns the bytes in flight: the keys of the space are discarded.
    pub fn discard(&mut self) -> u32 {
        let bytes = self.slots.iter().flatten().map(|packet| packet.bytes).sum();
        self.first = self.next_number();
        self.slots.clear();
        self.in_flight = 0;
        bytes
    }
}
