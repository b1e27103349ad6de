//! Outstanding packets, from the first unacknowledged to the last sent, with their state.
//!
//! ```text
//!   number   first                                   next
//!              |  A  A  S  L  S  R  S  S  A  A  A  A  |        A sent, S sacked, L lost,
//!                       ^           ^                          R retransmitted
//!               repair_from     beyond_sacked
//! ```
//!
//! Packets are numbered from 0 in the order of their bytes. For RACK there is a second order, by
//! time of sending: a retransmission moves a packet to the end of this order. The second order is a
//! linked list, except for its tail, in which both orders are equal: without losses no packet is
//! linked.

use super::outstanding_packet::{
    LinkedPacketNumber, OutstandingPacket, PacketMarks, from_link, to_link,
};
use tcpcast_link::time::Nanos;

/// Maximum number of packet slots that are reused for the next connection.
const MAX_REUSED_SLOTS: usize = 64;

/// All outstanding packets. Fields that each acknowledgement needs come first: see
/// [`super::sender::Sender`].
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Flight {
    pub(super) slots: Vec<OutstandingPacket>,
    /// First byte of packet `first`.
    pub(super) first_byte: u64,
    /// Byte after the last packet.
    pub(super) end: u64,
    mask: u32,
    pub(super) first: u32,
    pub(super) next: u32,
    /// Packets from this number on follow `newest` in the order of sending, without links.
    pub(super) in_order_from: u32,
    /// Packets from this number on were sent once; the preceding packet may have been sent twice,
    /// as a probe.
    pub(super) once_from: u32,
    /// SACKed packets; without SACK, the number of duplicate acknowledgements.
    pub sacked: u32,
    /// Packets marked as lost.
    pub lost: u32,
    /// Retransmissions in flight.
    pub retransmitted: u32,
    /// Total number of losses so far, including lost retransmissions.
    pub lost_total: u64,
    oldest: LinkedPacketNumber,
    newest: LinkedPacketNumber,
    /// Number after the highest SACKed packet.
    beyond_sacked: u32,
    /// No packet with a lower number waits for retransmission.
    repair_from: u32,
    /// Number of packets that wait for retransmission: lost, and neither SACKed nor retransmitted.
    waiting: u32,
    /// Losses not yet reported to the congestion control, if it has loss feedback.
    pub(super) unreported_losses: Option<Vec<DetectedLoss>>,
}

/// A detected loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectedLoss {
    /// Packet number.
    pub number: u32,
    /// Total number of losses, including this one.
    pub total: u64,
}

impl Flight {
    /// Creates an empty flight; the first packet will begin with byte `start`.
    #[must_use]
    pub fn new(start: u64) -> Self {
        Self {
            slots: Vec::new(),
            mask: 0,
            first: 0,
            next: 0,
            first_byte: start,
            end: start,
            oldest: None,
            newest: None,
            in_order_from: 0,
            once_from: 0,
            sacked: 0,
            lost: 0,
            retransmitted: 0,
            lost_total: 0,
            beyond_sacked: 0,
            repair_from: 0,
            waiting: 0,
            unreported_losses: None,
        }
    }

    /// Number of the first unacknowledged packet.
    #[inline(always)]
    #[must_use]
    pub fn first_number(&self) -> u32 {
        self.first
    }

    /// Number of the next new packet.
    #[inline(always)]
    #[must_use]
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// Number of outstanding packets.
    #[inline(always)]
    #[must_use]
    pub fn packets_out(&self) -> u32 {
        self.next - self.first
    }

    /// Packets that have left the network: SACKed or lost.
    #[inline(always)]
    #[must_use]
    pub fn packets_left_network(&self) -> u32 {
        self.sacked + self.lost
    }

    /// Packets in flight: `pipe` of RFC 6675.
    #[inline(always)]
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retransmitted).saturating_sub(self.packets_left_network())
    }

    /// The byte after the last one sent.
    #[inline(always)]
    #[must_use]
    pub fn end_byte(&self) -> u64 {
        self.end
    }

    #[inline(always)]
    pub(super) fn slot_of(&self, number: u32) -> usize {
        (number & self.mask) as usize
    }

    /// Packet `number`, which must be outstanding.
    #[inline(always)]
    #[must_use]
    pub fn packet(&self, number: u32) -> &OutstandingPacket {
        debug_assert!((self.first..self.next).contains(&number));
        &self.slots[self.slot_of(number)]
    }

    /// Packet `number`, which must be outstanding, for modification.
    #[inline(always)]
    pub fn packet_mut(&mut self, number: u32) -> &mut OutstandingPacket {
        debug_assert!((self.first..self.next).contains(&number));
        let slot = self.slot_of(number);
        &mut self.slots[slot]
    }

    /// First byte of packet `number`, which may be the next new packet.
    #[inline(always)]
    #[must_use]
    pub fn first_byte_of(&self, number: u32) -> u64 {
        if number == self.next {
            return self.end;
        }
        let low = self.packet(number).start.wrapping_sub(self.first_byte as u32);
        self.first_byte + u64::from(low)
    }

    /// Byte after packet `number`.
    #[inline(always)]
    #[must_use]
    pub fn end_byte_of(&self, number: u32) -> u64 {
        self.first_byte_of(number + 1)
    }

    /// First packet that begins with `byte` or later; packets have at most `mss` bytes.
    #[must_use]
    pub fn number_at_or_after(&self, byte: u64, mss: u32) -> u32 {
        if byte <= self.first_byte {
            return self.first;
        }
        if byte > self.end {
            return self.next;
        }
        // No packet is longer than `mss`, so the result is this packet or a later one.
        let guess = self.first + ((byte - self.first_byte) / u64::from(mss + 1)) as u32;
        let exact = self.first + ((byte - self.first_byte) / u64::from(mss)) as u32;
        if exact <= self.next && self.first_byte_of(exact) == byte {
            return exact;
        }
        let (mut low, mut high) = (guess.min(self.next), self.next);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.first_byte_of(middle) < byte {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Number after the highest SACKed packet.
    #[inline(always)]
    #[must_use]
    pub fn number_after_highest_sacked(&self) -> u32 {
        self.beyond_sacked.max(self.first)
    }

    /// Byte after the highest SACKed packet; the first unacknowledged byte if there is none.
    #[must_use]
    pub fn byte_after_highest_sacked(&self) -> u64 {
        if self.sacked == 0 {
            self.first_byte
        } else {
            self.first_byte_of(self.number_after_highest_sacked())
        }
    }

    /// Appends a new packet and returns its number.
    #[inline(always)]
    pub fn push_packet(&mut self, packet: OutstandingPacket, len: u32) -> u32 {
        if self.packets_out() as usize == self.slots.len() {
            self.grow_slots();
        }
        let number = self.next;
        let slot = self.slot_of(number);
        let new = &mut self.slots[slot];
        *new = packet;
        new.start = self.end as u32;
        self.next += 1;
        self.end += u64::from(len);
        number
    }

    /// Takes the memory of the slots, for reuse by another connection.
    pub(super) fn take_slot_memory(&mut self) -> Vec<OutstandingPacket> {
        std::mem::take(&mut self.slots)
    }

    /// Reuses the slots of another flight if this flight is empty and the slots are not too many.
    pub(super) fn reuse_slot_memory(&mut self, slots: Vec<OutstandingPacket>) {
        if self.slots.is_empty() && (1..=MAX_REUSED_SLOTS).contains(&slots.len()) {
            self.mask = slots.len() as u32 - 1;
            self.slots = slots;
        }
    }

    #[cold]
    pub(super) fn grow_slots(&mut self) {
        let mut slots = vec![OutstandingPacket::default(); (self.slots.len() * 2).max(16)];
        let mask = slots.len() as u32 - 1;
        for number in self.first..self.next {
            slots[(number & mask) as usize] = self.slots[self.slot_of(number)];
        }
        self.slots = slots;
        self.mask = mask;
    }

    /// Removes the first packet if it is completely acknowledged by `una`; returns the packet, its
    /// first byte and the byte after its last byte. Updates the counters.
    #[inline(always)]
    pub fn take_first_acked_packet(&mut self, una: u64) -> Option<(OutstandingPacket, u64, u64)> {
        if self.first == self.next {
            return None;
        }
        let number = self.first;
        let (start, end) = (self.first_byte, self.end_byte_of(number));
        if end > una {
            return None;
        }
        if number < self.in_order_from {
            self.unlink_from_send_order(number);
        }
        let packet = *self.packet(number);
        if packet.marks.contains_any(
            PacketMarks::SACKED.union(PacketMarks::LOST).union(PacketMarks::RETRANSMITTED),
        ) {
            self.subtract_from_counts(packet.marks);
        }
        self.first_byte = end;
        self.first += 1;
        Some((packet, start, end))
    }

    fn subtract_from_counts(&mut self, marks: PacketMarks) {
        self.sacked -= u32::from(marks.contains_any(PacketMarks::SACKED));
        self.lost -= u32::from(marks.contains_any(PacketMarks::LOST));
        self.retransmitted -= u32::from(marks.contains_any(PacketMarks::RETRANSMITTED));
        self.waiting -= u32::from(marks.wait_for_retransmission());
    }

    /// Sets or clears marks of a packet; returns its earlier marks.
    #[inline]
    fn set_marks(&mut self, number: u32, marks: PacketMarks, on: bool) -> PacketMarks {
        let before = self.packet(number).marks;
        let mut after = before;
        after.set(marks, on);
        self.packet_mut(number).marks = after;
        self.waiting += u32::from(after.wait_for_retransmission());
        self.waiting -= u32::from(before.wait_for_retransmission());
        before
    }

    /// Links the packets before `number` that are not yet linked.
    #[inline]
    fn link_packets_before(&mut self, number: u32) {
        for packet in self.in_order_from.max(self.first)..number {
            self.append_to_send_order(packet);
        }
        self.in_order_from = self.in_order_from.max(number);
    }

    /// Appends the packet to the list of packets by time of transmission.
    #[inline]
    fn append_to_send_order(&mut self, number: u32) {
        let last = self.newest;
        let packet = self.packet_mut(number);
        packet.earlier = last;
        packet.later = None;
        packet.marks.set(PacketMarks::LINKED, true);
        match from_link(last) {
            Some(last) => self.packet_mut(last).later = to_link(number),
            None => self.oldest = to_link(number),
        }
        self.newest = to_link(number);
    }

    /// Removes the packet from the list of packets by time of transmission.
    #[inline]
    pub fn unlink_from_send_order(&mut self, number: u32) {
        if number >= self.in_order_from {
            self.link_packets_before(number);
            self.in_order_from = number + 1;
            return;
        }
        let packet = self.packet_mut(number);
        if !packet.marks.contains_any(PacketMarks::LINKED) {
            return;
        }
        packet.marks.set(PacketMarks::LINKED, false);
        let (earlier, later) = (packet.earlier, packet.later);
        match from_link(earlier) {
            Some(earlier) => self.packet_mut(earlier).later = later,
            None => self.oldest = later,
        }
        match from_link(later) {
            Some(later) => self.packet_mut(later).earlier = earlier,
            None => self.newest = earlier,
        }
    }

    /// First packet in the order of sending.
    #[inline(always)]
    #[must_use]
    pub fn first_in_send_order(&self) -> Option<u32> {
        from_link(self.oldest).or_else(|| self.first_unlinked_packet())
    }

    /// First packet after the list.
    #[inline(always)]
    fn first_unlinked_packet(&self) -> Option<u32> {
        let first = self.in_order_from.max(self.first);
        (first < self.next).then_some(first)
    }

    /// Next packet in the order of sending.
    #[inline(always)]
    #[must_use]
    pub fn next_in_send_order(&self, number: u32) -> Option<u32> {
        if number >= self.in_order_from {
            return (number + 1 < self.next).then_some(number + 1);
        }
        from_link(self.packet(number).later).or_else(|| self.first_unlinked_packet())
    }

    /// Marks the packet as SACKed.
    #[inline]
    pub fn mark_sacked(&mut self, number: u32) {
        self.set_marks(number, PacketMarks::SACKED, true);
        self.sacked += 1;
        self.beyond_sacked = self.beyond_sacked.max(number + 1);
        self.unlink_from_send_order(number);
    }

    /// Clears the loss mark.
    pub fn clear_lost_mark(&mut self, number: u32) {
        let before = self.set_marks(number, PacketMarks::LOST, false);
        self.lost -= u32::from(before.contains_any(PacketMarks::LOST));
    }

    /// Records that no retransmission of the packet is in flight.
    pub fn clear_retransmitted_mark(&mut self, number: u32) {
        let before = self.set_marks(number, PacketMarks::RETRANSMITTED, false);
        self.retransmitted -= u32::from(before.contains_any(PacketMarks::RETRANSMITTED));
    }

    /// Marks the packet, or its retransmission, as lost; returns false if the packet was already
    /// marked.
    pub fn mark_lost(&mut self, number: u32) -> bool {
        let marks = self.packet(number).marks;
        if marks.contains_any(PacketMarks::SACKED) {
            return false;
        }
        let retransmitted = marks.contains_any(PacketMarks::RETRANSMITTED);
        if marks.contains_any(PacketMarks::LOST) && !retransmitted {
            return false;
        }
        let first_time = !marks.contains_any(PacketMarks::LOST);
        self.set_marks(number, PacketMarks::LOST, true);
        // A retransmission of a packet not marked as lost, such as a probe, stays in flight.
        if retransmitted && !first_time {
            self.clear_retransmitted_mark(number);
        }
        self.lost += u32::from(first_time);
        self.lost_total += 1;
        if let Some(unreported_losses) = &mut self.unreported_losses {
            unreported_losses.push(DetectedLoss { number, total: self.lost_total });
        }
        self.repair_from = self.repair_from.min(number);
        true
    }

    /// Clears all SACK marks: the receiver has discarded its data.
    pub fn clear_all_sacked(&mut self) {
        for number in self.first..self.next {
            self.set_marks(number, PacketMarks::SACKED, false);
        }
        self.sacked = 0;
        self.beyond_sacked = self.first;
    }

    /// Clears all loss marks.
    pub fn clear_all_lost(&mut self) {
        for number in self.first..self.next {
            self.set_marks(number, PacketMarks::LOST, false);
        }
        self.lost = 0;
        self.repair_from = self.next;
    }

    /// Restarts the search for lost packets at the first packet.
    pub fn restart_retransmit_search(&mut self) {
        self.repair_from = self.first;
    }

    /// First packet that is lost and not yet retransmitted.
    #[inline]
    pub fn next_to_retransmit(&mut self) -> Option<u32> {
        if self.waiting == 0 {
            self.repair_from = self.next;
            return None;
        }
        let mut number = self.repair_from.max(self.first);
        while number < self.next {
            if self.packet(number).marks.wait_for_retransmission() {
                self.repair_from = number;
                return Some(number);
            }
            number += 1;
        }
        self.repair_from = number;
        None
    }

    /// Records a retransmission.
    pub fn record_retransmission(&mut self, now: Nanos, number: u32) {
        self.unlink_from_send_order(number);
        self.packet_mut(number).sent_at = now;
        let marks = PacketMarks::RETRANSMITTED.union(PacketMarks::EVER_RETRANSMITTED);
        let before = self.set_marks(number, marks, true);
        self.retransmitted += u32::from(!before.contains_any(PacketMarks::RETRANSMITTED));
        self.link_packets_before(self.next);
        self.append_to_send_order(number);
    }

    /// Records a retransmission as a probe, which does not count as a retransmission in flight.
    pub fn record_probe_retransmission(&mut self, now: Nanos, number: u32) {
        let stays_last = number >= self.in_order_from
            && number + 1 == self.next
            && self.once_from <= self.first
            && !self.packet(number).marks.contains_any(PacketMarks::SACKED);
        if !stays_last {
            self.unlink_from_send_order(number);
        }
        let packet = self.packet_mut(number);
        packet.sent_at = now;
        packet.marks.set(PacketMarks::EVER_RETRANSMITTED, true);
        if stays_last {
            self.once_from = self.next;
        } else if !packet.marks.contains_any(PacketMarks::SACKED) {
            self.link_packets_before(self.next);
            self.append_to_send_order(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flight(lengths: &[u32]) -> Flight {
        let mut flight = Flight::new(u64::from(u32::MAX) - 500);
        for (index, &len) in lengths.iter().enumerate() {
            flight.push_packet(
                OutstandingPacket::sent_at_time(index as Nanos, PacketMarks::default()),
                len,
            );
        }
        flight
    }

    #[test]
    fn packets_are_found_by_byte_across_wrap() {
        let lengths = [100, 100, 30, 100, 100, 1, 100, 100, 100];
        let flight = flight(&lengths);
        let mut start = u64::from(u32::MAX) - 500;
        for (index, len) in lengths.into_iter().enumerate() {
            let number = index as u32;
            assert_eq!(flight.first_byte_of(number), start);
            assert_eq!(flight.number_at_or_after(start, 100), number);
            if len > 1 {
                assert_eq!(flight.number_at_or_after(start + 1, 100), number + 1);
            }
            start += u64::from(len);
            assert_eq!(flight.end_byte_of(number), start);
        }
        assert_eq!(flight.number_at_or_after(start, 100), 9);
        assert_eq!(flight.number_at_or_after(start + 5, 100), 9);
        assert_eq!(flight.number_at_or_after(0, 100), 0);
    }

    #[test]
    fn retransmission_moves_packet_to_end_of_sending_order() {
        let mut flight = flight(&[10; 6]);
        flight.mark_sacked(2);
        assert!(flight.mark_lost(1));
        assert!(!flight.mark_lost(1) && !flight.mark_lost(2));
        assert_eq!(flight.next_to_retransmit(), Some(1));
        flight.record_retransmission(9, 1);
        assert_eq!(flight.next_to_retransmit(), None);
        assert_eq!(order(&flight), [0, 3, 4, 5, 1]);
        assert_eq!((flight.packets_out(), flight.in_flight()), (6, 5));
        assert!(flight.mark_lost(1), "the retransmission is also lost");
        assert_eq!((flight.in_flight(), flight.lost_total), (4, 2));
        for _ in 0..6 {
            flight.take_first_acked_packet(u64::MAX);
        }
        assert_eq!(
            (flight.first_in_send_order(), flight.in_flight(), flight.packets_left_network()),
            (None, 0, 0)
        );
    }

    fn order(flight: &Flight) -> Vec<u32> {
        std::iter::successors(flight.first_in_send_order(), |&number| {
            flight.next_in_send_order(number)
        })
        .collect()
    }

    proptest! {
        /// The order of sending equals that of a list, for linked and unlinked packets.
        #[test]
        fn sending_order_behaves_like_a_list(
            steps in prop::collection::vec((0_u8..7, 0_u32..50), 1..300),
        ) {
            let (mut flight, mut list) = (Flight::new(1), Vec::new());
            for (step, draw) in steps {
                let number = flight.first_number() + draw % flight.packets_out().max(1);
                match step {
                    0..=2 => list.push(flight.push_packet(OutstandingPacket::default(), 10)),
                    _ if flight.packets_out() == 0 => (),
                    3 => {
                        list.retain(|&n| n != flight.first_number());
                        flight.take_first_acked_packet(u64::MAX);
                    }
                    _ => {
                        list.retain(|&n| n != number);
                        match step {
                            4 => flight.unlink_from_send_order(number),
                            5 => flight.record_retransmission(0, number),
                            _ => flight.record_probe_retransmission(0, number),
                        }
                        list.extend((step != 4).then_some(number));
                    }
                }
                prop_assert_eq!(order(&flight), list.clone());
            }
        }
    }

    #[test]
    fn slots_grow_with_outstanding_packets() {
        let mut flight = Flight::new(1);
        for number in 0..100 {
            let packet = OutstandingPacket::sent_at_time(u64::from(number), PacketMarks::default());
            assert_eq!(flight.push_packet(packet, 7), number);
            if number % 3 == 0 {
                flight.take_first_acked_packet(u64::MAX);
            }
        }
        assert_eq!(flight.first_number(), 34);
        assert_eq!(flight.first_byte_of(34), 1 + 34 * 7);
        assert_eq!(flight.packet(99).sent_at, 99);
    }
}
