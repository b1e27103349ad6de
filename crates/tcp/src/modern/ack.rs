//! Processing of acknowledgements in the sender.

use super::accurate_ecn::NewlyDelivered;
use super::ack_context::{AckContext, extend_time_span};
use super::cc::{AckSample, LostPacket};
use super::delivery_rate::RateSample;
use super::outstanding_packet::{OutstandingPacket, PacketMarks};
use super::prr::PrrAckEffect;
use super::recovery_phase::{PhaseName, RecoveryPhase};
use super::segment::{ArrivingAck, CumulativeAck, TIMESTAMP_TICK, timestamp_at};
use super::sender::{AllowedRetransmissions, Sender};
use super::stack::{LossDetection, PacingCondition, Stack, WindowReduction};
use super::tick_clock::TimerPurpose;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

impl Sender {
    /// An acknowledgement arrives: call [`Sender::poll_transmit`] for resulting packets.
    pub fn on_ack(
        &mut self,
        now: Nanos,
        ack: &ArrivingAck,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        if ack.ack > self.flight.end_byte() {
            return;
        }
        if !(ack.sacks.is_empty()
            && self.on_ack_fast_path(now, &ack.cumulative_ack_part(), stack, probe))
        {
            self.on_ack_slow_path(now, ack, stack, probe);
        }
    }

    /// Processes any acknowledgement. If the fast path applies, its result is the same.
    #[inline(never)]
    pub(super) fn on_ack_slow_path(
        &mut self,
        now: Nanos,
        ack: &ArrivingAck,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        let mut ctx = AckContext::from_sender(now, self);
        ctx.echo = ack.timestamps.map(|stamps| stamps.echo);
        if ack.ack < self.una {
            self.on_old_ack(ack, &mut ctx, stack, probe);
        } else {
            self.on_ack_not_below_una(ack, &mut ctx, stack, probe);
        }
    }

    #[inline(always)]
    fn on_ack_not_below_una(
        &mut self,
        ack: &ArrivingAck,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        ctx.advanced = ack.ack > self.una;
        ctx.ece = ack.ece && stack.ecn && self.marks.is_none();
        ctx.not_duplicate = ack.carries_data;
        if ctx.advanced {
            self.backoff = 0;
        }
        self.update_peer_window(&ack.cumulative_ack_part(), ctx);
        self.una = ack.ack;
        if stack.detection.uses_sack() && !ack.sacks.is_empty() {
            self.process_sacks(ack, ctx, stack);
        }
        if ctx.prior_out == 0 {
            self.on_ack_without_flight(ctx, stack, probe);
            return;
        }
        self.remove_acked_packets(ctx, stack, probe);
        if self.marks.is_some() {
            self.count_reported_marks(ack, ctx, stack);
        }
        if matches!(stack.detection, LossDetection::Rack { static_window: false, .. }) {
            self.rack
                .adapt_reordering_window(self.delivery.delivered, self.delivery.prior_delivered());
        }
        if self.tail_probe.is_some() {
            self.check_tail_loss_probe(ctx, stack);
        }
        self.repair = AllowedRetransmissions::Nothing;
        let alert = ctx.sacked || ctx.ece || ctx.dsack;
        let progresses = ctx.not_duplicate || ctx.acked > 0;
        if !progresses || alert || self.phase != RecoveryPhase::Open {
            self.process_ack_in_phase(ctx, stack, probe);
        }
        if ctx.set_timer {
            self.arm_timer_after_ack(ctx.now, stack);
        }
        self.update_window(ctx, stack);
    }

    /// Accurate ECN: counts the packets that an acknowledgement reports as marked. As in Linux, one
    /// that delivers nothing may be an older one.
    fn count_reported_marks(&mut self, ack: &ArrivingAck, ctx: &mut AckContext, stack: &Stack) {
        let packets = self.packets_delivered_by(ctx);
        let Some(marks) = self.marks.as_mut().filter(|_| packets > 0) else { return };
        let new = NewlyDelivered { packets, mss: stack.mss };
        let marked = marks.on_ack(ack.ace, ack.accurate_ecn, new);
        self.delivery.count_marked(marked);
        ctx.ece = marked > 0;
    }

    /// An acknowledgement older than the last one: only its SACK blocks count.
    #[cold]
    fn on_old_ack(
        &mut self,
        ack: &ArrivingAck,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        if !stack.detection.uses_sack() || ack.sacks.is_empty() {
            return;
        }
        self.process_sacks(ack, ctx, stack);
        self.repair = AllowedRetransmissions::Nothing;
        self.process_ack_in_phase(ctx, stack, probe);
        self.update_window(ctx, stack);
    }

    /// An acknowledgement with nothing outstanding.
    #[cold]
    fn on_ack_without_flight(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        if ctx.dsack {
            self.process_ack_in_phase(ctx, stack, probe);
        }
        let len = u64::from(self.next_new_len(stack));
        if len == 0 && (self.fin_sent || !self.closed) {
            self.timer = TimerPurpose::Off;
        } else if self.flight.end_byte() + len <= self.allowed {
            self.backoff = 0;
            self.timer = TimerPurpose::Off;
        } else if matches!(self.timer, TimerPurpose::Persist(_)) {
            self.arm_persist_timer(ctx.now, stack);
        }
        self.check_tail_loss_probe(ctx, stack);
    }

    /// RFC 9293, section 3.10.7.4: the most recent packet determines the window.
    #[inline(always)]
    pub(super) fn update_peer_window(&mut self, ack: &CumulativeAck, ctx: &mut AckContext) {
        if self.take_peer_window(ack, ctx.advanced) {
            ctx.not_duplicate |= !ctx.advanced;
        }
    }

    /// Updates the window if the packet is the most recent one; returns whether it is.
    #[inline(always)]
    fn take_peer_window(&mut self, ack: &CumulativeAck, advanced: bool) -> bool {
        let end = ack.ack + ack.window.min(self.max_send_buffer);
        let newer = advanced
            || ack.seq > self.window_update_seq
            || (ack.seq == self.window_update_seq && end > self.allowed);
        if newer {
            self.allowed = end;
            self.window_update_seq = ack.seq;
        }
        newer
    }

    /// A packet with data arrives while [`Sender::has_nothing_to_do`].
    #[inline(always)]
    pub(super) fn update_window_without_flight(&mut self, ack: &CumulativeAck) {
        self.take_peer_window(ack, false);
    }

    /// Removes cumulatively acknowledged packets from the flight.
    #[inline(always)]
    fn remove_acked_packets(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        let uses_sack = stack.detection.uses_sack();
        let high = self.phase.end_of_phase().unwrap_or(0);
        let mut reordered_from = None::<u64>;
        while let Some((packet, start, end)) = self.flight.take_first_acked_packet(self.una) {
            let marks = packet.marks;
            ctx.acked += 1;
            if packet.was_retransmitted() {
                ctx.retransmission_acked = true;
            } else if !marks.contains_any(PacketMarks::SACKED) {
                ctx.acked_sent = extend_time_span(ctx.acked_sent, packet.sent_at);
                // Packets are removed in byte order, so the first removed packet has the lowest
                // number.
                reordered_from.get_or_insert(start);
                ctx.original_acked |= end <= high;
            }
            if uses_sack && !marks.contains_any(PacketMarks::SACKED) {
                self.delivery.count_delivered(1, ctx.ece);
                self.delivery.on_delivered(&packet, end);
                // The timestamp of in-order data shows which copy of the packet was received.
                let spurious = ctx.echo.is_some_and(|echo| echo < timestamp_at(packet.sent_at));
                self.rack.on_delivered(ctx.now, &packet, end, self.rtt.min_rtt(), spurious);
            } else if !uses_sack {
                self.delivery.on_delivered(&packet, end);
            }
        }
        if ctx.acked > 0 || ctx.sacked {
            self.update_state_after_removal(ctx, reordered_from, stack, probe);
        }
    }

    #[inline(always)]
    fn update_state_after_removal(
        &mut self,
        ctx: &mut AckContext,
        reordered_from: Option<u64>,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        let first = self.flight.first_number();
        if self.flight.packets_out() > 0 && stack.detection.uses_sack() {
            ctx.reneged = self.flight.packet(first).marks.contains_any(PacketMarks::SACKED);
        }
        ctx.maybe_delayed = self.may_be_delayed_ack(ctx, self.delivery.prior_delivered(), stack);
        let sampled = self.update_rtt(ctx, stack, probe);
        if ctx.acked > 0 {
            ctx.set_timer = true;
            if stack.detection.uses_sack() {
                if let Some(from) = reordered_from.filter(|&from| from < ctx.prior_highest) {
                    self.record_reordering(from, stack);
                }
            } else {
                self.reduce_duplicates_by_acked(ctx, stack);
            }
        } else if sampled && self.flight.packets_out() > 0 {
            // The first packet was retransmitted after the SACKed packet was sent.
            let newest = ctx.sacked_sent.map(|(first, _)| first);
            let first_sent = self.flight.packet(first).sent_at;
            ctx.set_timer = newest.is_some_and(|sent| sent < first_sent);
        }
        self.report_rtt(ctx, stack);
    }

    /// Whether the acknowledgement of a single packet may have been delayed. `prior` is the number
    /// of packets delivered when that packet was sent.
    #[inline(always)]
    pub(super) fn may_be_delayed_ack(
        &self,
        ctx: &AckContext,
        prior: Option<u32>,
        stack: &Stack,
    ) -> bool {
        let single = ctx.acked == 1
            && ctx.prior_sacked == 0
            && self.una - ctx.prior_una < u64::from(stack.mss)
            && prior.map(|prior| prior.wrapping_add(1)) == Some(self.delivery.delivered);
        single && !ctx.retransmission_acked && !(ctx.sacked || ctx.ece || ctx.dsack)
    }

    /// Passes the round-trip sample to the congestion control, before the phase changes.
    #[inline(always)]
    pub(super) fn report_rtt(&mut self, ctx: &AckContext, stack: &Stack) {
        if self.control.needs_rtt_sample(&self.window, ctx.rtt) {
            let sample = self.build_ack_sample(ctx, 0, RateSample::default(), stack);
            self.control.on_rtt_sample(&mut self.window, &sample);
        }
    }

    /// Takes a round-trip sample: from packets sent once (Karn's rule), otherwise from the
    /// timestamp (RFC 7323, section 4).
    #[inline(always)]
    pub(super) fn update_rtt(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> bool {
        let since = |sent: Nanos| ctx.now - sent;
        let acked = ctx.acked_sent.filter(|_| !ctx.retransmission_acked);
        let mut first = acked.map(|(first, _)| since(first));
        let mut last = acked.map(|(_, last)| since(last));
        if let Some((first_sacked, last_sacked)) = ctx.sacked_sent {
            first = first.or(Some(since(first_sacked)));
            last = Some(since(last_sacked));
        }
        if let (None, true, Some(echo)) = (first, ctx.acked > 0, ctx.echo) {
            let ticks = timestamp_at(ctx.now).wrapping_sub(echo);
            let by_stamp = Nanos::from(ticks.max(1)) * TIMESTAMP_TICK;
            (first, last) = (Some(by_stamp), Some(by_stamp));
        }
        let (Some(rtt), Some(last)) = (first, last) else { return false };
        ctx.rtt = Some(last);
        if !ctx.maybe_delayed || self.rtt.min_rtt().is_none_or(|min| last <= min) {
            self.rtt.update_min(ctx.now, last);
        }
        self.rtt.add_sample(rtt, self.una, self.flight.end_byte(), stack);
        probe.on_tcp_event(ctx.now, TcpEvent::RttSample { rtt });
        true
    }

    /// Updates the window: delivery rate, congestion control, reduction. Only congestion controls
    /// that set the window need the delivery rate.
    fn update_window(&mut self, ctx: &AckContext, stack: &Stack) {
        let newest = self.delivery.take_newest_delivered();
        if self.control.sets_window_and_rate() {
            self.run_congestion_control(ctx, newest.as_ref(), stack);
        } else {
            self.grow_or_reduce_window(ctx, newest.map(|newest| newest.sent_at), stack);
        }
    }

    /// Lets the congestion control set window and rate; `newest` is the last packet delivered.
    #[inline(always)]
    pub(super) fn run_congestion_control(
        &mut self,
        ctx: &AckContext,
        newest: Option<&OutstandingPacket>,
        stack: &Stack,
    ) {
        self.report_losses_to_control(ctx.now);
        let delivered = self.packets_delivered_by(ctx);
        let rate = self.delivery.finish_ack_with_rate_sample(
            ctx.now,
            delivered,
            newest,
            self.rtt.min_rtt(),
        );
        let sample = self.build_ack_sample(ctx, delivered, rate, stack);
        self.control.set_window(&mut self.window, &sample);
        self.pacer.set_rate(self.control.pacing_rate());
        self.set_pacing_chunk_size(stack);
        self.mark_app_limited_while_probing();
    }

    /// Grows or reduces the window. `newest` is the send time of the last packet delivered. Each
    /// step builds a separate sample, so that unused values are never computed.
    #[inline(always)]
    fn grow_or_reduce_window(&mut self, ctx: &AckContext, newest: Option<Nanos>, stack: &Stack) {
        self.report_losses_to_control(ctx.now);
        let delivered = self.finish_ack_without_rate_sample(ctx, newest);
        let (lost, in_flight) = (self.count_newly_lost(ctx), self.flight.in_flight());
        if let Some(prr) = self.phase.prr_mut() {
            if stack.reduction == WindowReduction::Proportional {
                let effect = PrrAckEffect {
                    delivered,
                    lost,
                    in_flight,
                    advanced: ctx.advanced,
                    retransmission_acked: ctx.retransmission_acked && !ctx.retransmission_lost,
                };
                prr.on_ack(&mut self.window, effect, stack.kernel.prr);
            }
        } else if self.may_grow_window(ctx, stack) {
            self.grow_window(ctx, stack);
        }
        self.set_pacing_rate_from_window(ctx, stack);
    }

    /// Ends the delivery without a rate sample; returns the number of packets delivered.
    #[inline(always)]
    pub(super) fn finish_ack_without_rate_sample(
        &mut self,
        ctx: &AckContext,
        newest: Option<Nanos>,
    ) -> u32 {
        let delivered = self.packets_delivered_by(ctx);
        self.delivery.finish_ack_without_rate_sample(ctx.now, delivered, newest);
        delivered
    }

    #[inline(always)]
    fn packets_delivered_by(&self, ctx: &AckContext) -> u32 {
        self.delivery.delivered.wrapping_sub(ctx.prior_delivered)
    }

    /// Lets the congestion control grow the window.
    #[inline(always)]
    pub(super) fn grow_window(&mut self, ctx: &AckContext, stack: &Stack) {
        let sample = self.build_ack_sample(
            ctx,
            self.packets_delivered_by(ctx),
            RateSample::default(),
            stack,
        );
        self.control.grow_window(&mut self.window, &sample);
    }

    /// Sets the pacing rate from the window, if all packets are paced.
    #[inline(always)]
    pub(super) fn set_pacing_rate_from_window(&mut self, ctx: &AckContext, stack: &Stack) {
        if stack.pacing.condition == PacingCondition::Always {
            let sample = self.build_ack_sample(
                ctx,
                self.packets_delivered_by(ctx),
                RateSample::default(),
                stack,
            );
            self.pacer.set_rate(Some(sample.pacing_rate_of_window(&self.window)));
            self.set_pacing_chunk_size(stack);
        }
    }

    /// Packets detected as lost by this acknowledgement.
    #[inline(always)]
    fn count_newly_lost(&self, ctx: &AckContext) -> u32 {
        (self.flight.lost_total - ctx.prior_lost) as u32
    }

    /// Reports each detected loss to the congestion control, if it has loss feedback.
    #[inline(always)]
    pub(super) fn report_losses_to_control(&mut self, now: Nanos) {
        if self.flight.unreported_losses.as_ref().is_some_and(|losses| !losses.is_empty()) {
            self.report_each_loss(now);
        }
    }

    #[cold]
    fn report_each_loss(&mut self, now: Nanos) {
        let Some(mut unreported_losses) = self.flight.unreported_losses.take() else { return };
        for loss in unreported_losses.drain(..) {
            let packet = self.flight.packet(loss.number);
            let lost = LostPacket {
                now,
                number: loss.number,
                in_flight: packet.in_flight(),
                lost_since: (loss.total as u32).wrapping_sub(packet.lost),
                app_limited: packet.marks.contains_any(PacketMarks::APP_LIMITED),
                total_delivered: self.delivery.delivered,
            };
            self.control.on_lost_packet(&mut self.window, &lost);
        }
        self.flight.unreported_losses = Some(unreported_losses);
    }

    /// Marks rate samples as application-limited while BBR probes for the minimum round-trip time.
    fn mark_app_limited_while_probing(&mut self) {
        if self.control.is_probing_rtt() {
            self.delivery.mark_app_limited(self.flight.in_flight());
        }
    }

    /// Whether the window may grow: SACKed packets count only if reordering was observed.
    #[inline(always)]
    fn may_grow_window(&self, ctx: &AckContext, stack: &Stack) -> bool {
        if self.reordering > stack.reordering.initial { ctx.has_delivery() } else { ctx.acked > 0 }
    }

    /// Builds the sample for the congestion control; `rate` is empty if not yet known.
    #[inline(always)]
    pub(super) fn build_ack_sample(
        &self,
        ctx: &AckContext,
        delivered: u32,
        rate: RateSample,
        stack: &Stack,
    ) -> AckSample {
        let srtt = self.rtt.srtt();
        AckSample {
            now: ctx.now,
            phase: self.phase.name(),
            delivered,
            lost: self.count_newly_lost(ctx),
            total_lost: self.flight.lost_total as u32,
            pace_at: self.pacer.next_send_time(),
            acked: ctx.acked,
            prior_in_flight: ctx.prior_in_flight,
            in_flight: self.flight.in_flight(),
            rtt: ctx.rtt,
            maybe_delayed: ctx.maybe_delayed,
            min_rtt: self.rtt.min_rtt(),
            srtt,
            rate,
            total_delivered: self.delivery.delivered,
            total_delivered_ce: self.delivery.delivered_ce,
            una: self.una,
            next: self.flight.end_byte(),
            cwnd_limited: self.is_cwnd_limited(),
            fills_window: self.usage.limited,
            mss: stack.mss,
            out: self.flight.packets_out(),
            paced: self.pacer.is_pacing(),
        }
    }

    /// Whether the sender is in fast recovery or recovers from a timeout.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.phase.name() >= PhaseName::Recovery
    }
}
