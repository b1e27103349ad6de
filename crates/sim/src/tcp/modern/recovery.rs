//! Transitions between recovery phases: begin, continuation, end and undo of a recovery.

use super::ack_context::AckContext;
use super::cc::{PhaseChange, Totals};
use super::event::{Event, Probe, UndoReason};
use super::packet::Marks;
use super::phase::{Phase, PhaseName, Undo, Unreported};
use super::prr::Prr;
use super::segment::stamp;
use super::sender::{Repair, Sender};
use super::stack::{Detection, Reduction, Stack};
use super::transmit::unreported;
use super::window::INFINITE_SSTHRESH;
use crate::clock::Nanos;

/// Whether processing of an acknowledgement continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Continue,
    Done,
}

impl Sender {
    pub(super) fn set_phase(&mut self, phase: Phase, now: Nanos) {
        let (before, after) = (self.phase.name(), phase.name());
        self.phase = phase;
        // As in Linux, each timeout is reported.
        if before != after || after == PhaseName::Loss {
            let (next, totals) = (self.flight.end(), self.totals());
            let change = PhaseChange { phase: after, now, next, totals };
            self.control.on_phase(&mut self.window, &change);
        }
    }

    fn totals(&self) -> Totals {
        let (at, delivered) = (self.delivery.delivered_at(), self.delivery.delivered);
        Totals { at, delivered, lost: self.flight.lost_total as u32 }
    }

    /// Processes an acknowledgement that may change the phase.
    #[inline(never)]
    pub(super) fn update_phase(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        if ctx.ece {
            self.prior_ssthresh = None;
        }
        if ctx.reneged && ctx.advanced {
            self.on_reneging(ctx);
            return;
        }
        if self.phase == Phase::Open {
            self.retransmitted_at = None;
        } else if self.leave_phase(ctx, stack, probe) == Step::Done {
            return;
        }
        let step = match self.phase.name() {
            PhaseName::Recovery => self.continue_recovery(ctx, stack, probe),
            PhaseName::Loss => self.continue_loss(ctx, stack, probe),
            _ => self.open_or_recover(ctx, stack, probe),
        };
        if step == Step::Continue {
            self.repair = Repair::Lost;
        }
    }

    /// Ends the phase when data outstanding at its beginning is acknowledged.
    fn leave_phase(&mut self, ctx: &AckContext, stack: &Stack, probe: &mut impl Probe) -> Step {
        match self.phase {
            // Data beyond `high` is acknowledged, so the receiver has seen CWR.
            Phase::Cwr { high, .. } if self.una > high => {
                self.end_reduction(stack);
                self.set_phase(Phase::Open, ctx.now);
            }
            Phase::Recovery { high, .. } if self.una >= high => {
                if !stack.detection.uses_sack() {
                    self.flight.sacked = 0;
                }
                if self.try_undo_recovery(ctx, stack, probe) == Step::Done {
                    return Step::Done;
                }
                self.end_reduction(stack);
                self.set_phase(Phase::Open, ctx.now);
                self.rescued = false;
                probe.tcp(ctx.now, Event::Recovered);
            }
            _ => (),
        }
        Step::Continue
    }

    fn continue_recovery(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Step {
        if !ctx.advanced {
            if !stack.detection.uses_sack() {
                self.add_duplicates(ctx, stack);
            }
        } else if self.undo_partial(ctx, stack, probe) == Step::Done {
            return Step::Done;
        }
        if self.try_undo_by_duplicates(ctx.now, probe) {
            self.try_to_open(ctx, stack, probe);
        }
        self.find_losses(ctx, stack, probe);
        if !matches!(self.phase, Phase::Recovery { .. }) {
            if self.flight.lost == 0 {
                return Step::Done;
            }
            self.enter_recovery(ctx.now, ctx.ece, stack, probe);
        }
        Step::Continue
    }

    /// Processes acknowledgements in Open, Disorder and Cwr, and after a timeout if a
    /// retransmission is lost.
    pub(super) fn open_or_recover(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Step {
        if !stack.detection.uses_sack() {
            if ctx.advanced {
                self.flight.sacked = 0;
            }
            self.add_duplicates(ctx, stack);
        }
        if self.phase.name() <= PhaseName::Disorder {
            self.try_undo_by_duplicates(ctx.now, probe);
        }
        self.find_losses(ctx, stack, probe);
        if self.flight.lost == 0 {
            if !matches!(self.phase, Phase::Loss { .. }) {
                self.try_to_open(ctx, stack, probe);
            }
            return Step::Done;
        }
        self.enter_recovery(ctx.now, ctx.ece, stack, probe);
        Step::Continue
    }

    /// Marks lost packets by the rule of the stack.
    pub(super) fn find_losses(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        if self.flight.out() == 0 {
            return;
        }
        let now = ctx.now;
        match stack.detection {
            Detection::DuplicateAcks => self.find_first_lost(now, ctx.advanced, probe),
            Detection::Sack { .. } => self.find_lost_below_sacked(now, probe),
            Detection::Rack { .. } => {
                let window = self.reordering_window(stack);
                let report = self.rack.detect_new(now, window, &mut self.flight, |start| {
                    probe.tcp(now, Event::Lost { start });
                });
                ctx.retransmission_lost |= report.retransmission_lost;
                if let Some(wait) = report.wait {
                    ctx.set_timer = false;
                    self.arm_reordering(now, wait);
                }
            }
        }
    }

    /// Reordering window of RACK: 0 if duplicates or a recovery make a loss evident.
    pub(super) fn reordering_window(&self, stack: &Stack) -> Nanos {
        let waits = matches!(stack.detection, Detection::Rack { no_dupthresh: true, .. });
        let enough = self.flight.sacked >= self.reordering && !waits;
        self.rack.reordering_window(self.in_recovery() || enough, &self.rtt)
    }

    /// RFC 6582: marks the first packet after three duplicates and after each partial
    /// acknowledgement.
    fn find_first_lost(&mut self, now: Nanos, advanced: bool, probe: &mut impl Probe) {
        let due = match self.phase.name() {
            PhaseName::Recovery => advanced,
            PhaseName::Loss => false,
            _ => self.flight.sacked >= self.reordering,
        };
        let first = self.flight.first();
        if due && !self.flight.packet(first).marks.any(Marks::LOST) {
            self.flight.mark_lost(first);
            probe.tcp(now, Event::Lost { start: self.una });
        }
    }

    /// RFC 6675, section 4, IsLost: three higher packets are SACKed.
    fn find_lost_below_sacked(&mut self, now: Nanos, probe: &mut impl Probe) {
        let mut above = 0;
        let mut number = self.flight.beyond_sacked();
        while above < self.reordering && number > self.flight.first() {
            number -= 1;
            above += u32::from(self.flight.packet(number).marks.any(Marks::SACKED));
        }
        if above < self.reordering {
            return;
        }
        let known = Marks::SACKED.union(Marks::LOST);
        // Lower packets were checked by an earlier acknowledgement.
        for lost in self.loss_checked.max(self.flight.first())..number {
            if !self.flight.packet(lost).marks.any(known) {
                self.flight.mark_lost(lost);
                probe.tcp(now, Event::Lost { start: self.flight.start_of(lost) });
            }
        }
        self.loss_checked = number;
    }

    /// Begins fast recovery.
    pub(super) fn enter_recovery(
        &mut self,
        now: Nanos,
        ece: bool,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        probe.tcp(now, Event::Recovery { window: self.window.cwnd });
        self.prior_ssthresh = None;
        self.remember_undo(false, stack);
        let (prr, high) = match self.phase {
            Phase::Cwr { prr, high } | Phase::Recovery { prr, high } => (prr, high),
            _ => {
                if !ece && stack.undo {
                    self.prior_ssthresh = Some(self.current_ssthresh());
                }
                self.begin_reduction(stack)
            }
        };
        self.rescued = false;
        self.set_phase(Phase::Recovery { prr, high }, now);
    }

    pub(super) fn remember_undo(&mut self, after_timeout: bool, stack: &Stack) {
        let unreported = unreported(self.flight.retransmitted, self.tail_probe);
        let undo = Undo { marker: self.una, unreported, after_timeout };
        self.undo = stack.undo.then_some(undo);
    }

    /// Begins a reduction of the window to the threshold given by the congestion control.
    pub(super) fn begin_reduction(&mut self, stack: &Stack) -> (Prr, u64) {
        self.tail_probe = None;
        self.window.credit = 0;
        self.window.save_before_reduction();
        self.window.ssthresh = self.control.ssthresh(&self.window);
        self.cwr_due = true;
        if stack.reduction == Reduction::Immediate && !self.control.controls_window() {
            self.window.cwnd = self.window.ssthresh;
        }
        (Prr::default(), self.flight.end())
    }

    /// Ends a reduction: the window becomes the threshold.
    pub(super) fn end_reduction(&mut self, stack: &Stack) {
        if self.control.controls_window() || self.window.ssthresh >= INFINITE_SSTHRESH {
            return;
        }
        let applies = matches!(self.phase, Phase::Cwr { .. }) || self.undo.is_some() || !stack.undo;
        if applies {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Reduces the window for an ECN echo, at most once per window: RFC 3168, section 6.1.2.
    fn enter_cwr(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        self.prior_ssthresh = None;
        if self.phase.name() >= PhaseName::Cwr {
            return;
        }
        probe.tcp(now, Event::CongestionEcho { window: self.window.cwnd });
        self.undo = None;
        let (prr, high) = self.begin_reduction(stack);
        self.set_phase(Phase::Cwr { prr, high }, now);
    }

    fn any_retransmitted(&self) -> bool {
        self.flight.retransmitted > 0
            || (self.flight.out() > 0
                && self.flight.packet(self.flight.first()).was_retransmitted())
    }

    pub(super) fn keep_open(&mut self, now: Nanos) {
        let missing = self.flight.left_out() > 0 || self.any_retransmitted();
        self.set_phase(if missing { Phase::Disorder } else { Phase::Open }, now);
    }

    fn try_to_open(&mut self, ctx: &AckContext, stack: &Stack, probe: &mut impl Probe) {
        if !self.any_retransmitted() {
            self.retransmitted_at = None;
        }
        if ctx.ece {
            self.enter_cwr(ctx.now, stack, probe);
        }
        if !matches!(self.phase, Phase::Cwr { .. }) {
            self.keep_open(ctx.now);
        }
    }

    /// RFC 8985, section 7.4: evaluates a tail loss probe.
    pub(super) fn check_tlp(&mut self, ctx: &AckContext, stack: &Stack, probe: &mut impl Probe) {
        let Some(sent) = self.tail_probe.filter(|sent| self.una >= sent.high) else { return };
        if !sent.retransmits || ctx.dsack_of_probe {
            self.tail_probe = None;
        } else if self.una > sent.high {
            // No duplicate was reported, so there was a loss, which the probe repaired.
            probe.tcp(ctx.now, Event::ProbeRepaired);
            let (prr, high) = self.begin_reduction(stack);
            self.set_phase(Phase::Cwr { prr, high }, ctx.now);
            self.end_reduction(stack);
            self.keep_open(ctx.now);
        } else if !ctx.advanced && !ctx.not_duplicate && ctx.acked == 0 && !ctx.sacked {
            self.tail_probe = None;
        }
    }

    /// Whether the acknowledged packet was sent before the first retransmission: RFC 3522.
    pub(super) fn original_was_late(&self, ctx: &AckContext) -> bool {
        match (self.retransmitted_at, ctx.echo) {
            // Cleared once all data is acknowledged; then it only matters whether any was
            // retransmitted.
            (None, _) => self.undo.is_some_and(|undo| undo.unreported == Unreported::NoneSent),
            (Some(at), Some(echo)) => echo < stamp(at),
            (Some(_), None) => false,
        }
    }

    pub(super) fn may_undo(&self, ctx: &AckContext) -> Option<UndoReason> {
        let undo = self.undo?;
        if undo.unreported == Unreported::Packets(0) {
            Some(UndoReason::Duplicates)
        } else if self.original_was_late(ctx) {
            Some(UndoReason::Timestamps)
        } else {
            None
        }
    }

    /// Restores the window and threshold before the reduction.
    pub(super) fn undo_reduction(
        &mut self,
        now: Nanos,
        reason: UndoReason,
        clears_lost: bool,
        probe: &mut impl Probe,
    ) {
        if clears_lost {
            self.flight.forget_lost();
        }
        if let Some(prior) = self.prior_ssthresh {
            self.window.cwnd = self.control.undo_cwnd(&self.window);
            if prior > self.window.ssthresh {
                self.window.ssthresh = prior;
                self.cwr_due = false;
            }
        }
        self.usage.since = now;
        let after_timeout = self.undo.is_some_and(|undo| undo.after_timeout);
        self.undo = None;
        self.rack.request_judgement();
        probe.tcp(now, Event::Undone { reason, after_timeout });
    }

    /// All data outstanding at the beginning is acknowledged. Without SACK the phase is kept until
    /// data beyond it is acknowledged, so earlier duplicates start no new recovery: RFC 6582,
    /// section 3.2.
    pub(super) fn try_undo_recovery(
        &mut self,
        ctx: &AckContext,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Step {
        match self.may_undo(ctx) {
            Some(reason) => {
                self.undo_reduction(ctx.now, reason, false, probe);
            }
            None => self.rack.on_recovered(false),
        }
        if self.holds_phase(stack) {
            return Step::Done;
        }
        Step::Continue
    }

    pub(super) fn holds_phase(&mut self, stack: &Stack) -> bool {
        if stack.detection.uses_sack() || self.phase.high() != Some(self.una) {
            return false;
        }
        if !self.any_retransmitted() {
            self.retransmitted_at = None;
        }
        true
    }

    fn try_undo_by_duplicates(&mut self, now: Nanos, probe: &mut impl Probe) -> bool {
        let all = self.undo.is_some_and(|undo| undo.unreported == Unreported::Packets(0));
        if all {
            self.rack.on_recovered(true);
            self.undo_reduction(now, UndoReason::Duplicates, false, probe);
        }
        all
    }

    /// A partial acknowledgement of a delayed original: packets in flight may also be delayed.
    fn undo_partial(&mut self, ctx: &AckContext, stack: &Stack, probe: &mut impl Probe) -> Step {
        if self.undo.is_none() || !self.original_was_late(ctx) {
            return Step::Continue;
        }
        self.record_reordering(ctx.prior_una, stack);
        if self.flight.retransmitted > 0 {
            return Step::Done;
        }
        if !self.any_retransmitted() {
            self.retransmitted_at = None;
        }
        self.undo_reduction(ctx.now, UndoReason::Timestamps, true, probe);
        self.keep_open(ctx.now);
        Step::Continue
    }
}
