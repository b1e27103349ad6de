//! Processing of acknowledgements in the sender.

use super::ack_context::{AckContext, widen};
use super::cc::{AckSample, LostPacket};
use super::delivery_rate::RateSample;
use super::event::{Event, Probe};
use super::packet::{Marks, Packet};
use super::phase::{Phase, PhaseName};
use super::prr::Progress;
use super::segment::{Ack, Cumulative, TIMESTAMP_TICK, stamp};
use super::sender::{Repair, Sender};
use super::stack::{Detection, Pacing, Reduction, Stack};
use super::timers::Timer;
use crate::clock::Nanos;

impl Sender {
    /// An acknowledgement arrives: call [`Sender::poll_transmit`] for resulting packets.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack, stack: &Stack, probe: &mut impl Probe) {
        if ack.ack > self.flight.end() {
            return;
        }
        if !(ack.sacks.is_empty() && self.on_ack_fast_path(now, &ack.cumulative(), stack, probe)) {
            self.on_ack_slow_path(now, ack, stack, probe);
        }
        self.publish_window(now, probe);
    }

    /// Processes any acknowledgement; gives the same result as the fast path if that applies.
    #[inline(never)]
    pub(super) fn on_ack_slow_path(
        &mut self,
        now: Nanos,
        ack: &Ack,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        let mut ctx = AckContext::begin(now, self);
        ctx.echo = ack.timestamps.map(|stamps| stamps.echo);
        if ack.ack < self.una {
            self.on_old_ack(ack, &mut ctx, stack, probe);
        } else {
            self.on_current_ack(ack, &mut ctx, stack, probe);
        }
    }

    #[inline(always)]
    fn on_current_ack(
        &mut self,
        ack: &Ack,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        ctx.advanced = ack.ack > self.una;
        ctx.ece = ack.ece && stack.ecn;
        ctx.not_duplicate = ack.carries_data;
        if ctx.advanced {
            self.backoff = 0;
        }
        self.update_peer_window(&ack.cumulative(), ctx);
        self.una = ack.ack;
        if stack.detection.uses_sack() && !ack.sacks.is_empty() {
            self.process_sacks(ack, ctx, stack);
        }
        if ctx.prior_out == 0 {
            self.on_idle_ack(ctx, stack, probe);
            return;
        }
        self.remove_acked(ctx, stack, probe);
        if matches!(stack.detection, Detection::Rack { static_window: false, .. }) {
            self.rack.adapt(self.delivery.delivered, self.delivery.prior_delivered());
        }
        if self.tail_probe.is_some() {
            self.check_tlp(ctx, stack, probe);
        }
        self.repair = Repair::Nothing;
        let alert = ctx.sacked || ctx.ece || ctx.dsack;
        let progresses = ctx.not_duplicate || ctx.acked > 0;
        if !progresses || alert || self.phase != Phase::Open {
            self.update_phase(ctx, stack, probe);
        }
        if ctx.set_timer {
            self.arm_after_ack(ctx.now, stack);
        }
        self.update_window(ctx, stack);
    }

    /// An acknowledgement older than the last one: only its SACK blocks count.
    #[cold]
    fn on_old_ack(
        &mut self,
        ack: &Ack,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        if !stack.detection.uses_sack() || ack.sacks.is_empty() {
            return;
        }
        self.process_sacks(ack, ctx, stack);
        self.repair = Repair::Nothing;
        self.update_phase(ctx, stack, probe);
        self.update_window(ctx, stack);
    }

    /// An acknowledgement with nothing outstanding.
    #[cold]
    fn on_idle_ack(&mut self, ctx: &mut AckContext, stack: &Stack, probe: &mut impl Probe) {
        if ctx.dsack {
            self.update_phase(ctx, stack, probe);
        }
        let len = self.unsent().min(u64::from(stack.mss));
        if len == 0 && (self.fin_sent || !self.closed) {
            self.timer = Timer::Off;
        } else if self.flight.end() + len <= self.allowed {
            self.backoff = 0;
            self.timer = Timer::Off;
        } else if matches!(self.timer, Timer::Persist(_)) {
            self.arm_persist(ctx.now, stack);
        }
        self.check_tlp(ctx, stack, probe);
    }

    /// RFC 9293, section 3.10.7.4: the most recent packet determines the window.
    #[inline(always)]
    pub(super) fn update_peer_window(&mut self, ack: &Cumulative, ctx: &mut AckContext) {
        let end = ack.ack + ack.window;
        let newer = ctx.advanced || ack.seq > self.window_seq;
        if newer || (ack.seq == self.window_seq && end > self.allowed) {
            ctx.not_duplicate |= !ctx.advanced;
            self.allowed = end;
            self.window_seq = ack.seq;
        }
    }

    /// Removes cumulatively acknowledged packets from the flight.
    #[inline(always)]
    fn remove_acked(&mut self, ctx: &mut AckContext, stack: &Stack, probe: &mut impl Probe) {
        let uses_sack = stack.detection.uses_sack();
        let high = self.phase.high().unwrap_or(0);
        let mut reordered_from = None::<u64>;
        while let Some((packet, start, end)) = self.flight.take_first(self.una) {
            let marks = packet.marks;
            ctx.acked += 1;
            if packet.was_retransmitted() {
                ctx.retransmission_acked = true;
            } else if !marks.any(Marks::SACKED) {
                ctx.acked_sent = widen(ctx.acked_sent, packet.sent_at);
                // Packets are removed in byte order, so the first one is the lowest.
                reordered_from.get_or_insert(start);
                ctx.original_acked |= end <= high;
            }
            if uses_sack && !marks.any(Marks::SACKED) {
                self.delivery.count(1, ctx.ece);
                self.delivery.on_delivered(&packet, end);
                // The timestamp of in-order data shows which copy of the packet was received.
                let spurious = ctx.echo.is_some_and(|echo| echo < stamp(packet.sent_at));
                self.rack.on_delivered(ctx.now, &packet, end, self.rtt.min(), spurious);
            } else if !uses_sack {
                self.delivery.on_delivered(&packet, end);
            }
        }
        if ctx.acked > 0 || ctx.sacked {
            self.after_removal(ctx, reordered_from, stack, probe);
        }
    }

    #[inline(always)]
    fn after_removal(
        &mut self,
        ctx: &mut AckContext,
        reordered_from: Option<u64>,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        let first = self.flight.first();
        if self.flight.out() > 0 && stack.detection.uses_sack() {
            ctx.reneged = self.flight.packet(first).marks.any(Marks::SACKED);
        }
        ctx.maybe_delayed = self.may_be_late(ctx, self.delivery.prior_delivered(), stack);
        let sampled = self.update_rtt(ctx, stack, probe);
        if ctx.acked > 0 {
            ctx.set_timer = true;
            if stack.detection.uses_sack() {
                if let Some(from) = reordered_from.filter(|&from| from < ctx.prior_highest) {
                    self.record_reordering(from, stack);
                }
            } else {
                self.remove_duplicates(ctx, stack);
            }
        } else if sampled && self.flight.out() > 0 {
            // The first packet was retransmitted after the SACKed packet was sent.
            let newest = ctx.sacked_sent.map(|(first, _)| first);
            let first_sent = self.flight.packet(first).sent_at;
            ctx.set_timer = newest.is_some_and(|sent| sent < first_sent);
        }
        self.report_rtt(ctx, stack, probe);
    }

    /// Whether the acknowledgement of a single packet may have been delayed. `prior` is the number
    /// of packets delivered when that packet was sent.
    #[inline(always)]
    pub(super) fn may_be_late(&self, ctx: &AckContext, prior: Option<u32>, stack: &Stack) -> bool {
        let single = ctx.acked == 1
            && ctx.prior_sacked == 0
            && self.una - ctx.prior_una < u64::from(stack.mss)
            && prior.map(|prior| prior.wrapping_add(1)) == Some(self.delivery.delivered);
        single && !ctx.retransmission_acked && !(ctx.sacked || ctx.ece || ctx.dsack)
    }

    /// Passes the round-trip sample to the congestion control, before the phase changes.
    #[inline(always)]
    pub(super) fn report_rtt(&mut self, ctx: &AckContext, stack: &Stack, probe: &mut impl Probe) {
        if !self.control.needs_sample(&self.window, ctx.rtt) {
            return;
        }
        let ssthresh = self.window.ssthresh;
        let sample = self.sample(ctx, 0, RateSample::default(), stack);
        self.control.on_sample(&mut self.window, &sample);
        if self.window.ssthresh != ssthresh {
            probe.tcp(ctx.now, Event::SlowStartExit { cwnd: self.window.cwnd });
        }
    }

    /// Takes a round-trip sample: from packets sent once (Karn's rule), otherwise from the
    /// timestamp (RFC 7323, section 4).
    #[inline(always)]
    pub(super) fn update_rtt(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
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
            let ticks = stamp(ctx.now).wrapping_sub(echo);
            let by_stamp = Nanos::from(ticks.max(1)) * TIMESTAMP_TICK;
            (first, last) = (Some(by_stamp), Some(by_stamp));
        }
        let (Some(rtt), Some(last)) = (first, last) else { return false };
        ctx.rtt = Some(last);
        if !ctx.maybe_delayed || self.rtt.min().is_none_or(|min| last <= min) {
            self.rtt.update_min(ctx.now, last);
        }
        self.rtt.sample(rtt, self.una, self.flight.end(), stack);
        probe.tcp(ctx.now, Event::RttSample { rtt });
        true
    }

    /// Updates the window: delivery rate, congestion control, reduction. Only congestion controls
    /// that set the window need the delivery rate.
    fn update_window(&mut self, ctx: &AckContext, stack: &Stack) {
        let newest = self.delivery.take_newest();
        if self.control.controls_window() {
            self.run_control(ctx, newest.as_ref(), stack);
        } else {
            self.grow_or_reduce(ctx, newest.map(|newest| newest.sent_at), stack);
        }
    }

    /// Lets the congestion control set window and rate; `newest` is the last packet delivered.
    #[inline(always)]
    pub(super) fn run_control(&mut self, ctx: &AckContext, newest: Option<&Packet>, stack: &Stack) {
        self.report_losses(ctx.now);
        let delivered = self.delivered_by(ctx);
        let rate = self.delivery.sample(ctx.now, delivered, newest, self.rtt.min());
        let sample = self.sample(ctx, delivered, rate, stack);
        self.control.set_window(&mut self.window, &sample);
        self.pacer.set_rate(self.control.pacing_rate());
        self.size_chunks(stack);
        self.limit_while_probing();
    }

    /// Grows or reduces the window. `newest` is the send time of the last packet delivered. Each
    /// step builds its own sample, so unused values are never computed.
    #[inline(always)]
    fn grow_or_reduce(&mut self, ctx: &AckContext, newest: Option<Nanos>, stack: &Stack) {
        self.report_losses(ctx.now);
        let delivered = self.end_without_sample(ctx, newest);
        let (lost, in_flight) = (self.newly_lost(ctx), self.flight.in_flight());
        if let Some(prr) = self.phase.prr_mut() {
            if stack.reduction == Reduction::Proportional {
                let has_delivery = Progress { delivered, lost, in_flight, advanced: ctx.advanced };
                prr.on_ack(&mut self.window, has_delivery);
            }
        } else if self.may_grow(ctx, stack) {
            self.grow(ctx, stack);
        }
        self.pace_by_window(ctx, stack);
    }

    /// Ends the delivery without a rate sample; returns the number of packets delivered.
    #[inline(always)]
    pub(super) fn end_without_sample(&mut self, ctx: &AckContext, newest: Option<Nanos>) -> u32 {
        let delivered = self.delivered_by(ctx);
        self.delivery.end_without_sample(ctx.now, delivered, newest);
        delivered
    }

    #[inline(always)]
    fn delivered_by(&self, ctx: &AckContext) -> u32 {
        self.delivery.delivered.wrapping_sub(ctx.prior_delivered)
    }

    /// Lets the congestion control grow the window.
    #[inline(always)]
    pub(super) fn grow(&mut self, ctx: &AckContext, stack: &Stack) {
        let sample = self.sample(ctx, self.delivered_by(ctx), RateSample::default(), stack);
        self.control.grow(&mut self.window, &sample);
    }

    /// Sets the pacing rate from the window, if all packets are paced.
    #[inline(always)]
    pub(super) fn pace_by_window(&mut self, ctx: &AckContext, stack: &Stack) {
        if stack.pacing == Pacing::Always {
            let sample = self.sample(ctx, self.delivered_by(ctx), RateSample::default(), stack);
            self.pacer.set_rate(Some(sample.window_rate(&self.window)));
            self.size_chunks(stack);
        }
    }

    /// Packets detected as lost by this acknowledgement.
    #[inline(always)]
    fn newly_lost(&self, ctx: &AckContext) -> u32 {
        (self.flight.lost_total - ctx.prior_lost) as u32
    }

    /// Reports each detected loss to the congestion control, if it has loss feedback.
    #[inline(always)]
    pub(super) fn report_losses(&mut self, now: Nanos) {
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
                app_limited: packet.marks.any(Marks::APP_LIMITED),
                total_delivered: self.delivery.delivered,
            };
            self.control.on_lost(&mut self.window, &lost);
        }
        self.flight.unreported_losses = Some(unreported_losses);
    }

    /// Marks rate samples as application-limited while BBR probes for the minimum round-trip time.
    fn limit_while_probing(&mut self) {
        if self.control.is_probing_rtt() {
            self.delivery.mark_app_limited(self.flight.in_flight());
        }
    }

    /// Whether the window may grow: SACKed packets count only if reordering was observed.
    #[inline(always)]
    fn may_grow(&self, ctx: &AckContext, stack: &Stack) -> bool {
        if self.reordering > stack.reordering.initial { ctx.has_delivery() } else { ctx.acked > 0 }
    }

    /// Builds the sample for the congestion control; `rate` is empty if not yet known.
    #[inline(always)]
    pub(super) fn sample(
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
            lost: self.newly_lost(ctx),
            total_lost: self.flight.lost_total as u32,
            pace_at: self.pacer.next_at(),
            acked: ctx.acked,
            prior_in_flight: ctx.prior_in_flight,
            in_flight: self.flight.in_flight(),
            rtt: ctx.rtt,
            maybe_delayed: ctx.maybe_delayed,
            min_rtt: self.rtt.min(),
            srtt,
            rate,
            total_delivered: self.delivery.delivered,
            total_delivered_ce: self.delivery.delivered_ce,
            una: self.una,
            next: self.flight.end(),
            cwnd_limited: self.is_cwnd_limited(),
            fills_window: self.usage.limited,
            mss: stack.mss,
            out: self.flight.out(),
            paced: self.pacer.is_on(),
        }
    }

    /// Whether the sender is in fast recovery or recovers from a timeout.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.phase.name() >= PhaseName::Recovery
    }
}
