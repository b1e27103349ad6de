//! The way of an acknowledgement through the sender.

use super::ack_context::{Heard, widen};
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
    /// An acknowledgement arrives; [`Sender::poll_transmit`] has what it lets out.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack, stack: &Stack, probe: &mut impl Probe) {
        if ack.ack > self.flight.end() {
            return;
        }
        let plain = ack.sacks.is_empty() && self.hear_plain(now, &ack.cumulative(), stack, probe);
        if !plain {
            self.on_any_ack(now, ack, stack, probe);
        }
        self.publish_window(now, probe);
    }

    /// Any other, and the same for a plain one.
    #[inline(never)]
    pub(super) fn on_any_ack(
        &mut self,
        now: Nanos,
        ack: &Ack,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        let mut heard = Heard::begin(now, self);
        heard.echo = ack.timestamps.map(|stamps| stamps.echo);
        if ack.ack < self.una {
            self.on_old_ack(ack, &mut heard, stack, probe);
        } else {
            self.on_current_ack(ack, &mut heard, stack, probe);
        }
    }

    #[inline(always)]
    fn on_current_ack(
        &mut self,
        ack: &Ack,
        heard: &mut Heard,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        heard.advanced = ack.ack > self.una;
        heard.ece = ack.ece && stack.ecn;
        heard.no_duplicate = ack.carries_data;
        if heard.advanced {
            self.backoff = 0;
        }
        self.hear_window(&ack.cumulative(), heard);
        self.una = ack.ack;
        if stack.detection.uses_sack() && !ack.sacks.is_empty() {
            self.hear_sacks(ack, heard, stack);
        }
        if heard.prior_out == 0 {
            self.on_ack_of_nothing(heard, stack, probe);
            return;
        }
        self.take_acked(heard, stack, probe);
        if matches!(stack.detection, Detection::Rack { static_window: false, .. }) {
            self.rack.adapt(self.delivery.delivered, self.delivery.prior_delivered());
        }
        if self.tail_probe.is_some() {
            self.hear_tail_probe(heard, stack, probe);
        }
        self.repair = Repair::Nothing;
        let alert = heard.sacked || heard.ece || heard.dsack;
        let progresses = heard.no_duplicate || heard.acked > 0;
        if !progresses || alert || self.phase != Phase::Open {
            self.judge(heard, stack, probe);
        }
        if heard.set_timer {
            self.arm_after_ack(heard.now, stack);
        }
        self.control_window(heard, stack);
    }

    /// It acknowledges less than another one before; its blocks count all the same.
    #[cold]
    fn on_old_ack(&mut self, ack: &Ack, heard: &mut Heard, stack: &Stack, probe: &mut impl Probe) {
        if !stack.detection.uses_sack() || ack.sacks.is_empty() {
            return;
        }
        self.hear_sacks(ack, heard, stack);
        self.repair = Repair::Nothing;
        self.judge(heard, stack, probe);
        self.control_window(heard, stack);
    }

    /// Nothing was out.
    #[cold]
    fn on_ack_of_nothing(&mut self, heard: &mut Heard, stack: &Stack, probe: &mut impl Probe) {
        if heard.dsack {
            self.judge(heard, stack, probe);
        }
        let len = self.unsent().min(u64::from(stack.mss));
        if len == 0 && (self.fin_sent || !self.closed) {
            self.timer = Timer::Off;
        } else if self.flight.end() + len <= self.allowed {
            self.backoff = 0;
            self.timer = Timer::Off;
        } else if matches!(self.timer, Timer::Persist(_)) {
            self.arm_persist(heard.now, stack);
        }
        self.hear_tail_probe(heard, stack, probe);
    }

    /// RFC 9293, section 3.10.7.4: the window is what the newest packet says.
    #[inline(always)]
    pub(super) fn hear_window(&mut self, ack: &Cumulative, heard: &mut Heard) {
        let end = ack.ack + ack.window;
        let newer = heard.advanced || ack.seq > self.allowed_by;
        if newer || (ack.seq == self.allowed_by && end > self.allowed) {
            heard.no_duplicate |= !heard.advanced;
            self.allowed = end;
            self.allowed_by = ack.seq;
        }
    }

    /// Takes what is acknowledged cumulatively off the flight, with its round-trip time.
    #[inline(always)]
    fn take_acked(&mut self, heard: &mut Heard, stack: &Stack, probe: &mut impl Probe) {
        let uses_sack = stack.detection.uses_sack();
        let high = self.phase.high().unwrap_or(0);
        let mut reordered_from = None::<u64>;
        while let Some((packet, start, end)) = self.flight.take_first(self.una) {
            let marks = packet.marks;
            heard.acked += 1;
            if packet.was_retransmitted() {
                heard.retransmission_acked = true;
            } else if !marks.any(Marks::SACKED) {
                heard.acked_sent = widen(heard.acked_sent, packet.sent_at);
                // Packets are taken in the order of their bytes: the first is the lowest.
                reordered_from.get_or_insert(start);
                heard.original_acked |= end <= high;
            }
            if uses_sack && !marks.any(Marks::SACKED) {
                self.delivery.count(1, heard.ece);
                self.delivery.on_delivered(&packet, end);
                // The stamp of what is in order tells which copy of the packet it was.
                let spurious = heard.echo.is_some_and(|echo| echo < stamp(packet.sent_at));
                self.rack.on_delivered(heard.now, &packet, end, self.rtt.min(), spurious);
            } else if !uses_sack {
                self.delivery.on_delivered(&packet, end);
            }
        }
        if heard.acked > 0 || heard.sacked {
            self.after_taking(heard, reordered_from, stack, probe);
        }
    }

    #[inline(always)]
    fn after_taking(
        &mut self,
        heard: &mut Heard,
        reordered_from: Option<u64>,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        let first = self.flight.first();
        if self.flight.out() > 0 && stack.detection.uses_sack() {
            heard.reneged = self.flight.packet(first).marks.any(Marks::SACKED);
        }
        heard.maybe_delayed = self.may_be_delayed(heard, self.delivery.prior_delivered(), stack);
        let sampled = self.hear_rtt(heard, stack, probe);
        if heard.acked > 0 {
            heard.set_timer = true;
            if stack.detection.uses_sack() {
                if let Some(from) = reordered_from.filter(|&from| from < heard.prior_highest) {
                    self.note_reordering(from, stack);
                }
            } else {
                self.remove_duplicates(heard, stack);
            }
        } else if sampled && self.flight.out() > 0 {
            // The first packet was retransmitted after the one that is acknowledged now was sent.
            let newest = heard.sacked_sent.map(|(first, _)| first);
            let first_sent = self.flight.packet(first).sent_at;
            heard.set_timer = newest.is_some_and(|sent| sent < first_sent);
        }
        self.tell_control(heard, stack, probe);
    }

    /// Whether the acknowledgement of a single packet may have been delayed; `prior` packets had been
    /// delivered when it was sent.
    #[inline(always)]
    pub(super) fn may_be_delayed(&self, heard: &Heard, prior: Option<u32>, stack: &Stack) -> bool {
        let single = heard.acked == 1
            && heard.prior_sacked == 0
            && self.una - heard.prior_una < u64::from(stack.mss)
            && prior.map(|prior| prior.wrapping_add(1)) == Some(self.delivery.delivered);
        single && !heard.retransmission_acked && !(heard.sacked || heard.ece || heard.dsack)
    }

    /// The congestion control hears of the round-trip time before the phase is judged.
    #[inline(always)]
    pub(super) fn tell_control(&mut self, heard: &Heard, stack: &Stack, probe: &mut impl Probe) {
        if !self.control.wants_sample(&self.window, heard.rtt) {
            return;
        }
        let ssthresh = self.window.ssthresh;
        let sample = self.sample(heard, 0, RateSample::default(), stack);
        self.control.on_sample(&mut self.window, &sample);
        if self.window.ssthresh != ssthresh {
            probe.tcp(heard.now, Event::SlowStartExit { cwnd: self.window.cwnd });
        }
    }

    /// Karn's rule and RFC 7323, section 4: from packets that were sent once, else from the stamp.
    #[inline(always)]
    pub(super) fn hear_rtt(
        &mut self,
        heard: &mut Heard,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> bool {
        let since = |sent: Nanos| heard.now - sent;
        let acked = heard.acked_sent.filter(|_| !heard.retransmission_acked);
        let mut first = acked.map(|(first, _)| since(first));
        let mut last = acked.map(|(_, last)| since(last));
        if let Some((first_sacked, last_sacked)) = heard.sacked_sent {
            first = first.or(Some(since(first_sacked)));
            last = Some(since(last_sacked));
        }
        if let (None, true, Some(echo)) = (first, heard.acked > 0, heard.echo) {
            let ticks = stamp(heard.now).wrapping_sub(echo);
            let by_stamp = Nanos::from(ticks.max(1)) * TIMESTAMP_TICK;
            (first, last) = (Some(by_stamp), Some(by_stamp));
        }
        let (Some(rtt), Some(last)) = (first, last) else { return false };
        heard.rtt = Some(last);
        if !heard.maybe_delayed || self.rtt.min().is_none_or(|min| last <= min) {
            self.rtt.hear_min(heard.now, last);
        }
        self.rtt.sample(rtt, self.una, self.flight.end(), stack);
        probe.tcp(heard.now, Event::RttSample { rtt });
        true
    }

    /// Rate, congestion control, reduction: what the window is after the acknowledgement. The rate is
    /// asked for by those that govern.
    fn control_window(&mut self, heard: &Heard, stack: &Stack) {
        let newest = self.delivery.take_newest();
        if self.control.governs() {
            self.govern(heard, newest.as_ref(), stack);
        } else {
            self.grow_or_reduce(heard, newest.map(|newest| newest.sent_at), stack);
        }
    }

    /// The same of a control that governs, where the acknowledgement delivers `newest`.
    #[inline(always)]
    pub(super) fn govern(&mut self, heard: &Heard, newest: Option<&Packet>, stack: &Stack) {
        self.tell_losses(heard.now);
        let delivered = self.delivered_by(heard);
        let rate = self.delivery.sample(heard.now, delivered, newest, self.rtt.min());
        let sample = self.sample(heard, delivered, rate, stack);
        self.control.govern(&mut self.window, &sample);
        self.pacer.set_rate(self.control.pacing_rate());
        self.size_chunks(stack);
        self.limit_while_probing();
    }

    /// The same of one that does not; `newest` was sent then. There is a sample of its own for each
    /// that asks for one, so that nothing is gathered that none asks for.
    #[inline(always)]
    fn grow_or_reduce(&mut self, heard: &Heard, newest: Option<Nanos>, stack: &Stack) {
        self.tell_losses(heard.now);
        let delivered = self.pass_sample(heard, newest);
        let (lost, in_flight) = (self.newly_lost(heard), self.flight.in_flight());
        if let Some(prr) = self.phase.prr_mut() {
            if stack.reduction == Reduction::Proportional {
                let progress = Progress { delivered, lost, in_flight, advanced: heard.advanced };
                prr.on_ack(&mut self.window, progress);
            }
        } else if self.may_grow(heard, stack) {
            self.grow(heard, stack);
        }
        self.pace_by_window(heard, stack);
    }

    /// The delivery ends of which nobody asks for the rate: how many packets it was.
    #[inline(always)]
    pub(super) fn pass_sample(&mut self, heard: &Heard, newest: Option<Nanos>) -> u32 {
        let delivered = self.delivered_by(heard);
        self.delivery.pass(heard.now, delivered, newest);
        delivered
    }

    #[inline(always)]
    fn delivered_by(&self, heard: &Heard) -> u32 {
        self.delivery.delivered.wrapping_sub(heard.prior_delivered)
    }

    /// The window may grow.
    #[inline(always)]
    pub(super) fn grow(&mut self, heard: &Heard, stack: &Stack) {
        let sample = self.sample(heard, self.delivered_by(heard), RateSample::default(), stack);
        self.control.grow(&mut self.window, &sample);
    }

    /// Where all is paced, the window says how fast.
    #[inline(always)]
    pub(super) fn pace_by_window(&mut self, heard: &Heard, stack: &Stack) {
        if stack.pacing == Pacing::Always {
            let sample = self.sample(heard, self.delivered_by(heard), RateSample::default(), stack);
            self.pacer.set_rate(Some(sample.window_rate(&self.window)));
            self.size_chunks(stack);
        }
    }

    /// Packets found lost by this acknowledgement.
    #[inline(always)]
    fn newly_lost(&self, heard: &Heard) -> u32 {
        (self.flight.lost_total - heard.prior_lost) as u32
    }

    /// A congestion control that asks for it hears of each packet found lost.
    #[inline(always)]
    pub(super) fn tell_losses(&mut self, now: Nanos) {
        if self.flight.untold.as_ref().is_some_and(|untold| !untold.is_empty()) {
            self.tell_each_loss(now);
        }
    }

    #[cold]
    fn tell_each_loss(&mut self, now: Nanos) {
        let Some(mut untold) = self.flight.untold.take() else { return };
        for loss in untold.drain(..) {
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
        self.flight.untold = Some(untold);
    }

    /// Rates of a time in which BBR probes for the round-trip time say nothing of the path.
    fn limit_while_probing(&mut self) {
        if self.control.probes_rtt() {
            self.delivery.limited_by_application(self.flight.in_flight());
        }
    }

    /// Where reordering is usual, SACKs let the window grow, too; else only what is in order.
    #[inline(always)]
    fn may_grow(&self, heard: &Heard, stack: &Stack) -> bool {
        if self.reordering > stack.reordering.initial { heard.progress() } else { heard.acked > 0 }
    }

    /// What the congestion control hears; before the rate is known, an empty one.
    #[inline(always)]
    pub(super) fn sample(
        &self,
        heard: &Heard,
        delivered: u32,
        rate: RateSample,
        stack: &Stack,
    ) -> AckSample {
        let srtt = self.rtt.srtt();
        AckSample {
            now: heard.now,
            phase: self.phase.name(),
            delivered,
            lost: self.newly_lost(heard),
            total_lost: self.flight.lost_total as u32,
            pace_at: self.pacer.next_at(),
            acked: heard.acked,
            prior_in_flight: heard.prior_in_flight,
            in_flight: self.flight.in_flight(),
            rtt: heard.rtt,
            maybe_delayed: heard.maybe_delayed,
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

    /// Whether it is in recovery.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.phase.name() >= PhaseName::Recovery
    }
}
