//! Recovery from timeouts, and detection of spurious ones (F-RTO, RFC 5682).

use super::ack_context::AckContext;
use super::event::{Event, Probe, UndoReason};
use super::packet::Marks;
use super::phase::{Phase, PhaseName};
use super::recovery::Step;
use super::sender::{Repair, Sender};
use super::stack::{Detection, MILLISECOND, Stack};
use super::ticks::Span;
use super::timers::Timer;
use crate::clock::Nanos;

impl Sender {
    /// RFC 5681, section 3.1: slow start from one packet after a timeout. The threshold is reduced
    /// once for all timeouts of a window.
    pub(super) fn enter_loss(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        self.mark_all_lost(now, stack, probe);
        self.report_losses(now);
        let phase = self.phase.name();
        let first_of_window = phase <= PhaseName::Disorder
            || self.phase.high().is_none_or(|high| high <= self.una)
            || (phase == PhaseName::Loss && self.backoff == 0);
        if first_of_window {
            self.prior_ssthresh = stack.undo.then(|| self.current_ssthresh());
            self.window.save_before_reduction();
            self.window.ssthresh = self.control.ssthresh(&self.window);
            self.remember_undo(true, stack);
        }
        self.window.cwnd = self.flight.in_flight() + 1;
        self.window.credit = 0;
        self.usage.since = now;
        // Many duplicates did not reveal the loss, so the reordering threshold was too high.
        if phase <= PhaseName::Disorder && self.flight.sacked >= stack.reordering.initial {
            self.reordering = self.reordering.min(stack.reordering.initial);
        }
        let frto = stack.frto && (first_of_window || self.backoff > 0);
        self.set_phase(Phase::Loss { high: self.flight.end(), frto }, now);
        self.tail_probe = None;
        self.rescued = false;
        self.cwr_due = true;
        self.repair = Repair::Lost;
    }

    /// Marks all packets as lost, except SACKed ones and, with RACK, those sent too recently.
    fn mark_all_lost(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        let first = self.flight.first();
        let reneged = self.flight.packet(first).marks.any(Marks::SACKED);
        if reneged {
            self.flight.forget_sacked();
        } else if !stack.detection.uses_sack() {
            self.flight.sacked = 0;
        }
        let by_time = matches!(stack.detection, Detection::Rack { .. }) && !reneged;
        for number in first..self.flight.next() {
            let late = by_time
                && number != first
                && self.rack.remaining(now, self.flight.packet(number), 0).is_some();
            if !late && self.flight.mark_lost(number) {
                probe.tcp(now, Event::Lost { start: self.flight.start_of(number) });
            }
        }
        self.flight.restart_repair();
    }

    /// The receiver has discarded SACKed data (RFC 2018, section 8): all packets are retransmitted
    /// after half a round-trip time.
    pub(super) fn on_reneging(&mut self, ctx: &mut AckContext) {
        let wait = (self.rtt.srtt().unwrap_or(0) / 2).max(10 * MILLISECOND);
        self.timer = Timer::Retransmission(Span::new(ctx.now, wait));
        ctx.set_timer = false;
    }

    /// Processes an acknowledgement after a timeout.
    pub(super) fn continue_loss(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Step {
        self.process_loss(ctx, stack, probe);
        self.find_losses(ctx, stack, probe);
        if self.phase == Phase::Open || ctx.retransmission_lost {
            self.open_or_recover(ctx, stack, probe)
        } else {
            Step::Done
        }
    }

    fn process_loss(&mut self, ctx: &mut AckContext, stack: &Stack, probe: &mut impl Probe) {
        let Phase::Loss { high, frto } = self.phase else { return };
        let recovered = self.una >= high;
        if ctx.advanced {
            if let Some(reason) = self.may_undo(ctx) {
                self.undo_loss(ctx, reason, stack, probe);
                return;
            }
        }
        if frto && self.process_frto(ctx, high, recovered, stack, probe) == Step::Done {
            return;
        }
        if recovered {
            if self.try_undo_recovery(ctx, stack, probe) == Step::Continue {
                self.set_phase(Phase::Open, ctx.now);
            }
            return;
        }
        if !stack.detection.uses_sack() {
            if self.flight.end() > high && ctx.duplicates() > 0 {
                self.add_duplicates(ctx, stack);
            } else if ctx.advanced {
                self.flight.sacked = 0;
            }
        }
        self.repair = Repair::Lost;
    }

    /// RFC 5682, sections 2.1 and 3.1.
    fn process_frto(
        &mut self,
        ctx: &mut AckContext,
        high: u64,
        recovered: bool,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Step {
        // Step 3.b: data that was not retransmitted is acknowledged.
        if ctx.original_acked {
            self.undo_loss(ctx, UndoReason::Forward, stack, probe);
            return Step::Done;
        }
        let mut frto = true;
        let mut new_high = high;
        let mut step = Step::Continue;
        if self.flight.end() > high {
            // Step 3.a: a duplicate, so the loss was real.
            frto = !(ctx.sacked || ctx.duplicates() > 0);
        } else if ctx.advanced && !recovered {
            new_high = self.flight.end();
            // Step 2.b: send new data, if available.
            if self.unsent() > 0 && self.allowed > self.flight.end() {
                self.repair = Repair::UnlessNew;
                step = Step::Done;
            } else {
                frto = false;
            }
        }
        self.phase = Phase::Loss { high: new_high, frto };
        step
    }

    /// Undoes the reduction of a spurious timeout.
    fn undo_loss(
        &mut self,
        ctx: &AckContext,
        reason: UndoReason,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        self.undo_reduction(ctx.now, reason, true, probe);
        self.backoff = 0;
        if self.holds_phase(stack) {
            return;
        }
        if reason == UndoReason::Forward || stack.detection.uses_sack() {
            self.set_phase(Phase::Open, ctx.now);
        }
    }
}
