//! Selects the next packet to send: packets forced by a timer, lost packets, new data.

use super::activity_durations::SenderActivity;
use super::cc::TransmitStart;
use super::offload::{DeferralReason, max_packets_per_buffer};
use super::outstanding_packet::{OutstandingPacket, PacketMarks};
use super::recovery_phase::{RecoveryPhase, UnreportedRetransmissions};
use super::segment::{PacketToSend, SendReason};
use super::sender::{AllowedRetransmissions, PacketBeyondWindow, Sender, TailProbe};
use super::stack::{LossDetection, Stack};
use super::tick_clock::{TimerPurpose, TimerSpan};
use tcpcast_link::time::Nanos;

/// Minimum window for which the send buffer is sized, in packets: Linux's `TCP_INIT_CWND`.
pub(super) const MIN_BUFFERED_PACKETS: u32 = 10;

/// New data that can be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendableNewData {
    len: u32,
    fin: bool,
}

/// Reason why no new data is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoNewDataReason {
    /// No data is available.
    NoData,
    /// The receiver's window is full.
    ByReceiver,
    /// The packet is small, and another small packet is outstanding (Nagle).
    SmallPacket,
}

impl Sender {
    /// Returns the next packet to send now. Call until [`None`], which ends the burst and sets its
    /// timers.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        if self.forced.is_some() {
            if let Some(sent) = self.transmit_forced_packet(now, stack) {
                return Some(sent);
            }
        }
        let sent = self.transmit_allowed(now, stack);
        match sent {
            Some(_) => self.burst_open = true,
            None => self.end_send_burst(now, stack),
        }
        sent
    }

    #[inline(always)]
    fn transmit_allowed(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        self.pacer.set_packet_waiting(false);
        if self.flight.in_flight() >= self.window.cwnd {
            return if self.socket.is_some() { self.transmit_fin(now, stack) } else { None };
        }
        let repairs =
            self.repair == AllowedRetransmissions::Lost && self.is_retransmission_due(stack);
        if self.pacer.must_packet_wait(now) {
            self.set_waiting_for_pacer(repairs, stack);
            return None;
        }
        if repairs {
            if let Some(number) = self.flight.next_to_retransmit() {
                return Some(self.retransmit_lost_packet(now, number, stack));
            }
        }
        let sent = match self.new_data_to_send(stack) {
            Ok(new_data)
                if self.may_send_new_data(stack) && self.packets_left_in_chunk(now, stack) > 0 =>
            {
                let mut sent = self.transmit_new_data(now, new_data, stack);
                sent.push = self.count_chunk_and_check_push(1);
                Some(sent)
            }
            Ok(_) => None,
            Err(_) if may_retransmit_unmarked(stack) => self.retransmit_unmarked_packet(now, stack),
            Err(_) => None,
        };
        if sent.is_none() && self.repair == AllowedRetransmissions::UnlessNew && !self.burst_open {
            return self.retransmit_without_new_data(now, stack);
        }
        sent
    }

    /// Sends the packet with FIN, to which Linux's `tcp_cwnd_test` does not apply the congestion
    /// window.
    #[cold]
    fn transmit_fin(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        let new_data = self.new_data_to_send(stack).ok().filter(|new_data| new_data.fin)?;
        Some(self.transmit_new_data(now, new_data, stack))
    }

    /// Retransmits because no new data could be sent: RFC 5682, section 2.1, second half of step
    /// 2.b.
    #[cold]
    fn retransmit_without_new_data(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        if let RecoveryPhase::Loss { frto, .. } = &mut self.phase {
            *frto = false;
        }
        self.repair = AllowedRetransmissions::Lost;
        self.flight
            .next_to_retransmit()
            .map(|number| self.retransmit_lost_packet(now, number, stack))
    }

    /// Whether a lost packet was not yet retransmitted. RFC 6675 may retransmit packets that are
    /// not marked as lost, so the two counters cannot be compared there.
    #[inline(always)]
    pub(super) fn is_retransmission_due(&self, stack: &Stack) -> bool {
        self.flight.lost > self.flight.retransmitted
            || (self.flight.lost > 0 && matches!(stack.detection, LossDetection::Sack { .. }))
    }

    /// Whether the window allows new data. Without limited transmit (RFC 3042), SACKed packets
    /// count as in flight until a loss is detected. With SACKed data above a hole, more than a
    /// window can be outstanding, up to the size of the send buffer.
    #[inline(always)]
    pub(super) fn may_send_new_data(&self, stack: &Stack) -> bool {
        self.flight.packets_out() < self.window.cwnd
            || (stack.limited_transmit || self.phase != RecoveryPhase::Disorder)
                && (!stack.bounded_send_buffer
                    || self.flight.packets_out() < self.send_buffer_packets(stack))
    }

    /// Size of the send buffer in packets. Linux's `tcp_sendmsg_locked` checks for space once per
    /// buffer of segmentation offload, so the limit can be exceeded by that size.
    fn send_buffer_packets(&self, stack: &Stack) -> u32 {
        let widest = self.window.widest.max(self.window.cwnd).max(MIN_BUFFERED_PACKETS);
        self.buffered_windows() * widest + max_packets_per_buffer(stack)
    }

    /// Congestion windows that fit into the send buffer: Linux's `tcp_sndbuf_expand`, and
    /// `bbr_sndbuf_expand`, because BBR may also slow-start in recovery.
    pub(super) fn buffered_windows(&self) -> u32 {
        if self.control.sets_window_and_rate() { 3 } else { 2 }
    }

    /// Whether the application waits for send buffer space: Linux's `SOCK_NOSPACE`.
    fn is_send_buffer_full(&self, stack: &Stack) -> bool {
        if self.waits_for_space() {
            return true;
        }
        let buffer = u64::from(self.send_buffer_packets(stack)) * u64::from(stack.mss);
        stack.bounded_send_buffer && self.written - self.una > buffer
    }

    #[inline(always)]
    pub(super) fn new_data_to_send(
        &self,
        stack: &Stack,
    ) -> Result<SendableNewData, NoNewDataReason> {
        let len = self.next_new_len(stack);
        let last = u64::from(len) == self.unsent_bytes();
        let fin = self.closed && last && !self.fin_sent;
        if len == 0 && !fin {
            return Err(NoNewDataReason::NoData);
        }
        if self.flight.end_byte() + u64::from(len) > self.allowed {
            return Err(NoNewDataReason::ByReceiver);
        }
        if len < stack.mss && !fin && self.must_small_packet_wait(len, stack) {
            return Err(NoNewDataReason::SmallPacket);
        }
        Ok(SendableNewData { len, fin })
    }

    #[inline(always)]
    fn transmit_new_data(
        &mut self,
        now: Nanos,
        new_data: SendableNewData,
        stack: &Stack,
    ) -> PacketToSend {
        let start = self.flight.end_byte();
        let nothing_out = self.flight.packets_out() == 0;
        if nothing_out {
            self.notify_transmit_start(now);
        }
        let mut marks = PacketMarks::default();
        marks.set(PacketMarks::FIN, new_data.fin);
        let mut packet = OutstandingPacket::sent_at_time(now, marks);
        self.delivery.on_sent(now, nothing_out, &mut packet);
        let number = self.flight.push_packet(packet, new_data.len + u32::from(new_data.fin));
        self.record_flight_size(number);
        self.fin_sent |= new_data.fin;
        if new_data.len < stack.mss {
            self.small_end = self.flight.end_byte();
        }
        if nothing_out || matches!(self.timer, TimerPurpose::LossProbe(_)) {
            self.arm_retransmission_timer(now);
        }
        if let Some(prr) = self.phase.prr_mut() {
            prr.out += 1;
        }
        let cwr = stack.ecn && std::mem::take(&mut self.cwr_due);
        self.record_sent_packet(now, new_data.len, stack);
        let (len, fin, ect) = (new_data.len, new_data.fin, stack.ecn && new_data.len > 0);
        PacketToSend { number, start, len, sending: SendReason::New, fin, ect, cwr, push: false }
    }

    /// Notifies the congestion control that a packet is sent with nothing outstanding.
    pub(super) fn notify_transmit_start(&mut self, now: Nanos) {
        let idle = now - self.last_sent;
        let app_limited = self.delivery.is_app_limited();
        self.control.on_transmit_start(&mut self.window, now, TransmitStart { idle, app_limited });
        if self.control.sets_window_and_rate() {
            self.pacer.set_rate(self.control.pacing_rate());
        }
    }

    /// Records packets sent of a chunk; returns whether the last one is pushed. The last packet is
    /// pushed if it ends all written data or a chunk with several packets.
    #[inline(always)]
    pub(super) fn count_chunk_and_check_push(&mut self, packets: u32) -> bool {
        self.chunk.count_sent_and_check_push(packets) || self.unsent_bytes() == 0
    }

    /// Records the flight size and losses in a sent packet, if the congestion control needs them.
    #[inline(always)]
    pub(super) fn record_flight_size(&mut self, number: u32) {
        if self.control.has_loss_feedback() {
            let (in_flight, lost) = (self.flight.in_flight(), self.flight.lost_total as u32);
            self.flight.packet_mut(number).record_flight_at_send(in_flight, lost);
        }
    }

    #[inline(always)]
    fn record_sent_packet(&mut self, now: Nanos, len: u32, stack: &Stack) {
        self.last_sent = now;
        self.counters.sent += 1;
        self.pacer.on_sent(now, len, stack.mss);
    }

    /// Retransmits a lost packet, which counts for the current reduction and for undoing it.
    #[inline(never)]
    fn retransmit_lost_packet(&mut self, now: Nanos, number: u32, stack: &Stack) -> PacketToSend {
        self.flight.record_retransmission(now, number);
        if let Some(prr) = self.phase.prr_mut() {
            prr.out += 1;
        }
        let sent = self.record_and_retransmit(now, number, stack);
        // Linux's `tcp_retransmit_skb`: a chunk consists of adjacent lost packets.
        if self.pacer.is_pacing() && self.flight.next_to_retransmit() != Some(number + 1) {
            self.pacer.end_burst();
        }
        if number == self.flight.first_number()
            && !matches!(self.timer, TimerPurpose::Reordering(_))
        {
            self.timer = TimerPurpose::Retransmission(TimerSpan::new(now, self.rtt.rto()));
        }
        sent
    }

    fn record_and_retransmit(&mut self, now: Nanos, number: u32, stack: &Stack) -> PacketToSend {
        self.retransmitted_at.get_or_insert(now);
        if let Some(undo) = &mut self.undo {
            undo.unreported.count_retransmission();
        }
        self.build_retransmission(now, number, stack)
    }

    /// Builds a retransmission without bytes that are already acknowledged.
    fn build_retransmission(&mut self, now: Nanos, number: u32, stack: &Stack) -> PacketToSend {
        self.counters.retransmitted += 1;
        self.delivery.on_sent(now, false, self.flight.packet_mut(number));
        self.record_flight_size(number);
        let start = self.flight.first_byte_of(number).max(self.una);
        let fin = self.flight.packet(number).marks.contains_any(PacketMarks::FIN);
        let len = (self.flight.end_byte_of(number) - start) as u32 - u32::from(fin);
        self.record_sent_packet(now, len, stack);
        let sending = SendReason::Retransmission;
        let push = start + u64::from(len) == self.written;
        PacketToSend { number, start, len, sending, fin, ect: false, cwr: false, push }
    }

    #[cold]
    fn transmit_forced_packet(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        let forced = self.forced.take()?;
        self.pacer.end_burst();
        let sent = match forced {
            PacketBeyondWindow::First if self.flight.packets_out() > 0 => {
                let first = self.flight.first_number();
                self.flight.record_retransmission(now, first);
                Some(self.record_and_retransmit(now, first, stack))
            }
            PacketBeyondWindow::ProbeLast if self.flight.packets_out() > 0 => {
                let last = self.flight.next_number() - 1;
                self.flight.record_probe_retransmission(now, last);
                Some(self.build_retransmission(now, last, stack))
            }
            PacketBeyondWindow::New => self.transmit_tail_loss_probe(now, stack),
            PacketBeyondWindow::WindowProbe => Some(self.transmit_window_probe(now, stack)),
            PacketBeyondWindow::First | PacketBeyondWindow::ProbeLast => None,
        };
        self.pacer.end_burst();
        sent
    }

    /// A tail loss probe with new data.
    fn transmit_tail_loss_probe(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        let len = self.next_new_len(stack);
        let fin = self.closed && u64::from(len) == self.unsent_bytes() && !self.fin_sent;
        let sent = self.transmit_new_data(now, SendableNewData { len, fin }, stack);
        self.tail_probe = Some(TailProbe { high: self.next_byte(), retransmits: false });
        // The timeout starts now.
        self.timer = TimerPurpose::Retransmission(TimerSpan::new(now, self.rtt.rto()));
        Some(sent)
    }

    /// A window probe: data that the window allows, or an empty packet below it.
    fn transmit_window_probe(&mut self, now: Nanos, stack: &Stack) -> PacketToSend {
        let room = self.allowed.saturating_sub(self.flight.end_byte());
        let len = room.min(u64::from(self.next_new_len(stack))) as u32;
        if len > 0 {
            // The window is open: Linux's `tcp_send_probe0` no longer probes.
            self.backoff = 0;
            let new_data = SendableNewData { len, fin: false };
            return self.transmit_new_data(now, new_data, stack);
        }
        let (start, number) = (self.una.saturating_sub(1), self.flight.next_number());
        let sending = SendReason::WindowProbe;
        PacketToSend {
            number,
            start,
            len: 0,
            sending,
            fin: false,
            ect: false,
            cwr: false,
            push: false,
        }
    }

    /// RFC 6675, section 4, NextSeg rules (3) and (4), if nothing else can be sent: a packet below
    /// the highest SACKed one that is not marked as lost, or once per recovery the last packet.
    #[inline(never)]
    fn retransmit_unmarked_packet(&mut self, now: Nanos, stack: &Stack) -> Option<PacketToSend> {
        let (LossDetection::Sack { rescue }, RecoveryPhase::Recovery { high, .. }) =
            (stack.detection, self.phase)
        else {
            return None;
        };
        let known = PacketMarks::SACKED.union(PacketMarks::LOST).union(PacketMarks::RETRANSMITTED);
        let below = self.flight.first_number()..self.flight.number_after_highest_sacked();
        if let Some(number) =
            below.clone().find(|&n| !self.flight.packet(n).marks.contains_any(known))
        {
            return Some(self.retransmit_lost_packet(now, number, stack));
        }
        if !rescue || self.rescued {
            return None;
        }
        self.rescued = true;
        let last = self.flight.number_at_or_after(high, stack.mss).checked_sub(1)?;
        let valid = last >= self.flight.first_number()
            && !self.flight.packet(last).marks.contains_any(known);
        valid.then(|| self.retransmit_lost_packet(now, last, stack))
    }

    /// Ends a burst: nothing more can be sent now.
    #[inline(always)]
    pub(super) fn end_send_burst(&mut self, now: Nanos, stack: &Stack) {
        let sent = std::mem::take(&mut self.burst_open);
        let deferral = self.chunk.end_chunk_and_take_deferral();
        let in_flight = self.flight.in_flight() + self.pacer.packets_in_fq();
        let full = in_flight >= self.window.cwnd;
        let limited = full || deferral == DeferralReason::ByWindow;
        if sent || limited {
            self.validate_window(now, limited, stack);
        }
        if sent {
            self.arm_loss_probe_timer(now, false, stack);
        }
        if self.socket.is_some() {
            self.record_activity(now, limited, deferral, stack);
        }
        if self.flight.packets_out() == 0 && self.timer == TimerPurpose::Off {
            let held =
                self.current_activity(limited, deferral, stack) == SenderActivity::ReceiverLimited;
            // Linux's timer for zero windows also sends what a corked socket holds.
            let corked = self.socket.is_some()
                && self.new_data_to_send(stack).err() == Some(NoNewDataReason::SmallPacket);
            if (held || corked) && self.forced.is_none() {
                self.arm_persist_timer(now, stack);
            }
        }
    }

    #[cold]
    fn record_activity(
        &mut self,
        now: Nanos,
        limited: bool,
        deferral: DeferralReason,
        stack: &Stack,
    ) {
        let activity = self.current_activity(limited, deferral, stack);
        if let Some(socket) = &mut self.socket {
            socket.activity_durations.change_activity(now, activity);
        }
    }

    fn current_activity(
        &self,
        limited: bool,
        deferral: DeferralReason,
        stack: &Stack,
    ) -> SenderActivity {
        let held = || self.new_data_to_send(stack).err() == Some(NoNewDataReason::ByReceiver);
        if deferral == DeferralReason::ByReceiver || (!limited && held()) {
            SenderActivity::ReceiverLimited
        } else if !limited && self.unsent_bytes() == 0 && self.waits_for_space() {
            SenderActivity::BufferLimited
        } else if self.flight.packets_out() > 0 || self.unsent_bytes() > 0 {
            SenderActivity::Busy
        } else {
            SenderActivity::Idle
        }
    }

    /// Linux's `tcp_cwnd_validate`: the window may grow only if it is used within a round trip, and
    /// a window that is not used for a timeout shrinks (RFC 2861).
    #[inline(always)]
    fn validate_window(&mut self, now: Nanos, limited: bool, stack: &Stack) {
        let out = self.flight.packets_out();
        let usage = &mut self.usage;
        if self.una >= usage.round_end || limited || (!usage.limited && out > usage.max_out) {
            usage.limited = limited;
            usage.max_out = out;
            usage.round_end = self.flight.end_byte();
        }
        if self.is_cwnd_limited() {
            self.usage.used = 0;
            self.usage.since = now;
            return;
        }
        self.usage.used = self.usage.used.max(out);
        if stack.idle_restart
            && now - self.usage.since >= self.rtt.rto()
            && !self.control.sets_window_and_rate()
        {
            self.shrink_unused_window(now, stack);
        }
    }

    /// RFC 2861, section 3: reduces the window if the rate is limited by the application. As in
    /// Linux's `tcp_cwnd_application_limited`, a limit by the receiver changes nothing.
    fn shrink_unused_window(&mut self, now: Nanos, stack: &Stack) {
        if self.phase == RecoveryPhase::Open && !self.is_send_buffer_full(stack) {
            let used = self.usage.used.max(stack.initial_window);
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) / 2;
            }
            self.usage.used = 0;
        }
        self.usage.since = now;
    }

    /// Whether the rate is limited by the window. In slow start, using half of the window suffices.
    #[inline(always)]
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.usage.limited
            || (self.window.in_slow_start() && self.window.cwnd < 2 * self.usage.max_out)
    }
}

/// Whether packets not marked as lost may be retransmitted.
pub(super) fn may_retransmit_unmarked(stack: &Stack) -> bool {
    matches!(stack.detection, LossDetection::Sack { .. })
}

/// Number of retransmissions before a reduction begins, which is needed to undo the reduction; the
/// last of them may be a tail loss probe.
pub(super) fn unreported_retransmissions(
    retransmitted: u32,
    tail_probe: Option<TailProbe>,
) -> UnreportedRetransmissions {
    let probes = u32::from(tail_probe.is_some_and(|probe| probe.retransmits));
    match retransmitted + probes {
        0 => UnreportedRetransmissions::NoneSent,
        packets => UnreportedRetransmissions::Packets(packets),
    }
}
