//! SACK scoreboard: SACK blocks (RFC 2018), reported duplicates (RFC 2883), and reordering detected
//! from both.

use super::ack_context::{AckContext, extend_time_span};
use super::outstanding_packet::PacketMarks;
use super::segment::{ArrivingAck, SackBlock};
use super::sender::Sender;
use super::stack::Stack;

impl Sender {
    /// Processes the SACK blocks of an acknowledgement.
    pub(super) fn process_sacks(&mut self, ack: &ArrivingAck, ctx: &mut AckContext, stack: &Stack) {
        let blocks = ack.sacks.as_slice();
        let duplicate = self.record_if_duplicate_sack(ack.ack, blocks, ctx, stack);
        let mut order = [0_usize, 1, 2, 3];
        let order = &mut order[..blocks.len()];
        order.sort_unstable_by_key(|&index| blocks[index].start);
        let mut reordered_from = None;
        for &index in order.iter() {
            let block = blocks[index];
            if block.start >= block.end || block.end > self.flight.end_byte() {
                continue;
            }
            if duplicate && index == 0 {
                self.process_dsack(block, ctx, &mut reordered_from, stack);
            } else if block.end > self.una {
                self.process_sack_block(block, ctx, &mut reordered_from, stack);
            }
        }
        self.last_sacks = ack.sacks;
        if let Some(from) = reordered_from {
            let may_be_spurious = self.undo.is_some();
            if may_be_spurious
                || !matches!(self.phase, super::recovery_phase::RecoveryPhase::Loss { .. })
            {
                self.record_reordering(from, stack);
            }
        }
        if duplicate {
            // Packets delivered twice have also left the path.
            let block = blocks[0];
            if block.end <= ctx.prior_una {
                if let Some(undo) = self.undo.as_mut().filter(|undo| block.end > undo.marker) {
                    undo.unreported.subtract_reported(packets_in_block(block, stack));
                }
            }
        }
    }

    /// Whether the first block reports a duplicate (RFC 2883, section 4) caused by a
    /// retransmission.
    fn record_if_duplicate_sack(
        &mut self,
        ack: u64,
        blocks: &[SackBlock],
        ctx: &mut AckContext,
        stack: &Stack,
    ) -> bool {
        let Some(&first) = blocks.first() else { return false };
        let within_second = blocks.get(1).is_some_and(|second| second.contains(first));
        if first.start >= first.end || (first.start >= ack && !within_second) {
            return false;
        }
        let packets = packets_in_block(first, stack);
        let of_probe = packets == 1 && self.tail_probe.is_some_and(|probe| probe.high == first.end);
        self.counters.duplicates += packets;
        // More duplicates than retransmissions: the network duplicates packets.
        if self.counters.duplicates > self.counters.retransmitted {
            return false;
        }
        ctx.dsack = true;
        ctx.dsack_of_probe |= of_probe;
        if !of_probe {
            self.rack.on_dsack();
        }
        self.delivery.count_delivered(packets, ctx.ece);
        true
    }

    /// Processes a SACK block; parts that were reported before are skipped.
    fn process_sack_block(
        &mut self,
        block: SackBlock,
        ctx: &mut AckContext,
        reordered_from: &mut Option<u64>,
        stack: &Stack,
    ) {
        let before = self.last_sacks.as_slice();
        if block.start >= self.una && before.contains(&block) {
            return;
        }
        let known = before.iter().filter(|b| b.start < block.end && b.end > block.start);
        let Some(known) = known.max_by_key(|b| b.end - b.start).copied() else {
            self.mark_packets_in_block(block, ctx, reordered_from, stack);
            return;
        };
        // A duplicate reported by the previous acknowledgement may not have been marked.
        if known.start < self.una {
            self.mark_packets_in_block(block, ctx, reordered_from, stack);
            return;
        }
        let lower = SackBlock { start: block.start, end: known.start };
        let upper = SackBlock { start: known.end, end: block.end };
        for part in [lower, upper] {
            if part.start < part.end {
                self.mark_packets_in_block(part, ctx, reordered_from, stack);
            }
        }
    }

    fn mark_packets_in_block(
        &mut self,
        block: SackBlock,
        ctx: &mut AckContext,
        reordered_from: &mut Option<u64>,
        stack: &Stack,
    ) {
        let mut number = self.flight.number_at_or_after(block.start, stack.mss);
        while number < self.flight.next_number() && self.flight.end_byte_of(number) <= block.end {
            if !self.flight.packet(number).marks.contains_any(PacketMarks::SACKED) {
                self.mark_packet_sacked(number, ctx, reordered_from);
            }
            number += 1;
        }
    }

    /// Marks a packet that is SACKed for the first time.
    fn mark_packet_sacked(
        &mut self,
        number: u32,
        ctx: &mut AckContext,
        reordered_from: &mut Option<u64>,
    ) {
        let packet = *self.flight.packet(number);
        let (start, end) = (self.flight.first_byte_of(number), self.flight.end_byte_of(number));
        // With a gap, the echoed timestamp belongs to a packet before the gap, so it is not used.
        self.rack.on_delivered(ctx.now, &packet, end, self.rtt.min_rtt(), false);
        let marks = packet.marks;
        if marks.contains_any(PacketMarks::RETRANSMITTED) {
            // If the packet was not marked as lost, its retransmission is still in flight.
            if marks.contains_any(PacketMarks::LOST) {
                self.flight.clear_lost_mark(number);
                self.flight.clear_retransmitted_mark(number);
            }
        } else {
            if !marks.contains_any(PacketMarks::EVER_RETRANSMITTED) {
                if start < self.flight.byte_after_highest_sacked() {
                    let lowest = reordered_from.map_or(start, |from: u64| from.min(start));
                    *reordered_from = Some(lowest);
                }
                ctx.original_acked |= self.phase.end_of_phase().is_some_and(|high| end <= high);
                ctx.sacked_sent = extend_time_span(ctx.sacked_sent, packet.sent_at);
            }
            self.flight.clear_lost_mark(number);
        }
        ctx.sacked = true;
        self.flight.mark_sacked(number);
        self.delivery.count_delivered(1, ctx.ece);
        self.delivery.on_delivered(&packet, end);
    }

    /// Processes a DSACK block above `una`: retransmissions of these packets were unnecessary.
    fn process_dsack(
        &mut self,
        block: SackBlock,
        ctx: &mut AckContext,
        reordered_from: &mut Option<u64>,
        stack: &Stack,
    ) {
        if block.end <= self.una {
            return;
        }
        let mut number = self.flight.number_at_or_after(block.start, stack.mss);
        while number < self.flight.next_number() && self.flight.end_byte_of(number) <= block.end {
            let (start, end) = (self.flight.first_byte_of(number), self.flight.end_byte_of(number));
            let packet = *self.flight.packet(number);
            if packet.was_retransmitted() {
                if let Some(undo) = self.undo.as_mut().filter(|undo| end > undo.marker) {
                    undo.unreported.subtract_reported(1);
                }
                if packet.marks.contains_any(PacketMarks::SACKED) {
                    let lowest = reordered_from.map_or(start, |from: u64| from.min(start));
                    *reordered_from = Some(lowest);
                }
            }
            if !packet.marks.contains_any(PacketMarks::SACKED) {
                self.mark_packet_sacked(number, ctx, reordered_from);
            }
            self.flight.clear_retransmitted_mark(number);
            number += 1;
        }
    }

    /// Records reordering: a packet was delivered after a higher one. Raises the threshold.
    pub(super) fn record_reordering(&mut self, from: u64, stack: &Stack) {
        let highest = self.flight.byte_after_highest_sacked().max(self.una);
        if from >= highest {
            return;
        }
        let packets = u32::try_from((highest - from).div_ceil(u64::from(stack.mss)));
        let packets = packets.unwrap_or(u32::MAX).min(stack.reordering.max);
        self.reordering = self.reordering.max(packets);
        self.rack.reorderings += 1;
    }

    /// Without SACK, reordering is indicated by more duplicates than the outstanding packets can
    /// cause.
    fn limit_duplicate_count(&mut self, addend: u32, stack: &Stack) {
        let out = self.flight.packets_out();
        let holes = self.flight.lost.max(1).min(out);
        if self.flight.sacked + holes <= out {
            return;
        }
        self.flight.sacked = out - holes;
        self.reordering = (out + addend).min(stack.reordering.max);
        self.rack.reorderings += 1;
    }

    /// Without SACK: a duplicate acknowledgement means that some packet was delivered.
    pub(super) fn count_duplicate_ack(&mut self, ctx: &AckContext, stack: &Stack) {
        let duplicates = ctx.duplicate_ack_count();
        if duplicates == 0 {
            return;
        }
        let before = self.flight.sacked;
        self.flight.sacked += duplicates;
        self.limit_duplicate_count(0, stack);
        let delivered = self.flight.sacked.saturating_sub(before);
        self.delivery.count_delivered(delivered, ctx.ece);
    }

    /// Without SACK: one acknowledged packet filled the hole, and the other packets caused
    /// duplicates.
    pub(super) fn reduce_duplicates_by_acked(&mut self, ctx: &mut AckContext, stack: &Stack) {
        let acked = ctx.acked;
        let delivered = acked.saturating_sub(self.flight.sacked).max(1);
        self.delivery.count_delivered(delivered, ctx.ece);
        self.flight.sacked = self.flight.sacked.saturating_sub(acked - 1);
        self.limit_duplicate_count(acked, stack);
        if ctx.retransmission_acked {
            ctx.original_acked = false;
        }
    }
}

/// Number of packets in a reported duplicate.
fn packets_in_block(block: SackBlock, stack: &Stack) -> u32 {
    u32::try_from((block.end - block.start).div_ceil(u64::from(stack.mss))).unwrap_or(u32::MAX)
}
