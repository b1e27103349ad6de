//! Fast path for the common case: bursts that are empty or consist of full packets of new data. All
//! other packets are sent one by one: see `transmit.rs`. Saves 11 % of the instructions of the
//! benchmark with a path of 10 Gbit/s.

use super::outstanding_packet::{OutstandingPacket, PacketMarks};
use super::segment::{PacketToSend, SendReason};
use super::sender::{AllowedRetransmissions, Sender};
use super::stack::Stack;
use super::tick_clock::TimerPurpose;
use super::transmit::may_retransmit_unmarked;
use tcpcast_link::time::Nanos;

/// Full packets of new data to send back to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullPacketRun {
    /// First packet.
    pub first: PacketToSend,
    /// Number of packets.
    pub packets: u32,
    /// Whether the last packet is pushed.
    pub push: bool,
    /// Whether the burst ends with this run.
    pub ends: bool,
}

impl Sender {
    /// Sends a run of full packets of new data, possibly empty, with the same result as repeated
    /// calls of [`Sender::poll_transmit`], but with one check per run for most conditions. Unless
    /// the run ends the burst, and after [`None`], call that method next. A `closing` application
    /// closes the stream when nothing more can be sent.
    #[inline(always)]
    pub(super) fn transmit_full_packet_run(
        &mut self,
        now: Nanos,
        closing: &mut bool,
        stack: &Stack,
    ) -> Option<FullPacketRun> {
        if self.forced.is_some() {
            return None;
        }
        self.pacer.set_packet_waiting(false);
        let full = self.flight.in_flight() >= self.window.cwnd;
        let (number, start) = (self.flight.next_number(), self.flight.end_byte());
        let (packets, all) = if full {
            (0, true)
        } else if self.pacer.must_packet_wait(now) {
            let repairs =
                self.repair == AllowedRetransmissions::Lost && self.is_retransmission_due(stack);
            self.set_waiting_for_pacer(repairs, stack);
            (0, true)
        } else if self.may_send_runs(stack) {
            self.send_full_packet_run(now, stack)
        } else {
            return None;
        };
        let push = packets > 0 && self.count_chunk_and_check_push(packets);
        if all {
            self.end_send_burst(now, stack);
        }
        let closes = all && std::mem::take(closing);
        if closes {
            self.close_stream();
        }
        // FIN may follow if the window allows it.
        let ends = all && (!closes || self.flight.in_flight() >= self.window.cwnd);
        let (sending, len, ect) = (SendReason::New, stack.mss, stack.ecn);
        let (fin, cwr) = (false, false);
        let first = PacketToSend { number, start, len, sending, fin, ect, cwr, push: false };
        Some(FullPacketRun { first, packets, push, ends })
    }

    /// Whether there is nothing to send and no timer to set.
    #[inline(always)]
    pub(super) fn stop_waiting_if_idle(&mut self, stack: &Stack) -> bool {
        let is_idle = self.has_sent_everything()
            && self.forced.is_none()
            && !self.burst_open
            && self.flight.packets_out() > 0
            && self.flight.in_flight() < self.window.cwnd
            && !self.must_retransmit_first(stack)
            && !may_retransmit_unmarked(stack)
            && self.socket.is_none();
        if is_idle {
            self.pacer.set_packet_waiting(false);
        }
        is_idle
    }

    /// Whether all written data, and FIN after a close, has been sent.
    #[inline(always)]
    fn has_sent_everything(&self) -> bool {
        self.unsent_bytes() == 0 && (self.fin_sent || !self.closed)
    }

    /// Whether a retransmission must be sent before new data, or will be sent if there is no new
    /// data.
    #[inline(always)]
    fn must_retransmit_first(&self, stack: &Stack) -> bool {
        match self.repair {
            AllowedRetransmissions::Nothing => false,
            AllowedRetransmissions::Lost => self.is_retransmission_due(stack),
            AllowedRetransmissions::UnlessNew => true,
        }
    }

    /// Whether only new data can be sent, and full packets differ only in their numbers.
    #[inline(always)]
    fn may_send_runs(&self, stack: &Stack) -> bool {
        let needs_cwr = stack.ecn && self.cwr_due;
        !self.must_retransmit_first(stack) && !needs_cwr
    }

    /// The pacer allows no packet now: records whether a packet waits.
    #[inline(always)]
    pub(super) fn set_waiting_for_pacer(&mut self, repairs: bool, stack: &Stack) {
        let waits = repairs || self.new_data_to_send(stack).is_ok();
        self.pacer.set_packet_waiting(waits);
    }

    /// Sends the full packets of the current chunk that the window allows; returns their number and
    /// whether nothing else can be sent.
    #[inline(always)]
    fn send_full_packet_run(&mut self, now: Nanos, stack: &Stack) -> (u32, bool) {
        let mss = u64::from(stack.mss);
        // The last packet of a stream carries FIN.
        let end = (self.written - u64::from(self.closed)).min(self.allowed);
        let full = self.flight.end_byte() + mss <= end;
        let chunk = if full { self.packets_left_in_chunk(now, stack) } else { 0 };
        if full && chunk == 0 {
            return (0, true);
        }
        let begins = full && self.flight.packets_out() == 0;
        if begins {
            self.notify_transmit_start(now);
        }
        let unpaced = self.pacer.unpaced_packets_left(stack.mss);
        let paced = unpaced == 0;
        let max = if paced { chunk } else { chunk.min(unpaced) };
        let mut packet = OutstandingPacket::sent_at_time(now, PacketMarks::default());
        self.delivery.on_sent(now, begins, &mut packet);
        let fits = self.flight.end_byte() + u64::from(max) * mss <= end
            && self.flight.packets_out() + max <= self.window.cwnd;
        let packets = if fits && !paced && !self.control.has_loss_feedback() {
            self.flight.push_packet_run(max, packet, stack.mss);
            max
        } else {
            self.send_packets_one_by_one(now, max, packet, end, stack)
        };
        if packets > 0 {
            self.record_sent_run(now, packets, begins, paced);
        }
        // A congestion control that sets the window may have changed it when the flight began.
        if self.flight.in_flight() >= self.window.cwnd {
            return (packets, true);
        }
        if paced && packets > 0 && self.pacer.must_packet_wait(now) {
            self.set_waiting_for_pacer(false, stack);
            return (packets, true);
        }
        (packets, self.has_sent_everything() && !may_retransmit_unmarked(stack))
    }

    /// Sends up to `max` packets before byte `end` one by one, because any packet may be the last
    /// that the window or the pacer allows.
    fn send_packets_one_by_one(
        &mut self,
        now: Nanos,
        max: u32,
        packet: OutstandingPacket,
        end: u64,
        stack: &Stack,
    ) -> u32 {
        let (mss, paced) = (stack.mss, self.pacer.unpaced_packets_left(stack.mss) == 0);
        let mut packets = 0;
        while packets < max
            && self.flight.end_byte() + u64::from(mss) <= end
            && self.may_send_new_data(stack)
        {
            let number = self.flight.push_packet(packet, mss);
            self.record_flight_size(number);
            packets += 1;
            if paced {
                self.pacer.on_sent(now, mss, mss);
                if self.pacer.must_packet_wait(now) {
                    break;
                }
            }
        }
        packets
    }

    /// Updates timers and counters, once for the whole run.
    #[inline(always)]
    fn record_sent_run(&mut self, now: Nanos, packets: u32, begins: bool, paced: bool) {
        if begins || matches!(self.timer, TimerPurpose::LossProbe(_)) {
            self.arm_retransmission_timer(now);
        }
        if let Some(prr) = self.phase.prr_mut() {
            prr.out += packets;
        }
        self.last_sent = now;
        self.counters.sent += packets;
        if !paced {
            self.pacer.on_sent_unpaced(packets);
        }
        self.burst_open = true;
    }
}
