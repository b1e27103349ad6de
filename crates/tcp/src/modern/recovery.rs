//! Transitions between recovery phases: begin, continuation, end and undo of a recovery.

use super::ack_context::AckContext;
use super::cc::{DeliveryTotals, RecoveryPhaseChange};
use super::outstanding_packet::PacketMarks;
use super::prr::ProportionalRateReduction;
use super::recovery_phase::{PhaseName, RecoveryPhase, UndoState, UnreportedRetransmissions};
use super::segment::timestamp_at;
use super::sender::{AllowedRetransmissions, Sender};
use super::stack::{LossDetection, Stack, WindowReduction};
use super::transmit::unreported_retransmissions;
use super::window::INFINITE_SSTHRESH;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

/// Whether processing of an acknowledgement continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckProcessing {
    Continue,
    Done,
}

impl Sender {
    pub(super) fn enter_phase(&mut self, phase: RecoveryPhase, now: Nanos) {
        let (before, after) = (self.phase.name(), phase.name());
        self.phase = phase;
        // As in Linux, each timeout is reported.
        if before != after || after == PhaseName::Loss {
            let (next, totals) = (self.flight.end_byte(), self.delivery_totals());
            let change = RecoveryPhaseChange { phase: after, now, next, totals };
            self.control.on_recovery_phase_change(&mut self.window, &change);
        }
    }

    fn delivery_totals(&self) -> DeliveryTotals {
        let (at, delivered) = (self.delivery.delivered_at(), self.delivery.delivered);
        DeliveryTotals { at, delivered, lost: self.flight.lost_total as u32 }
    }

    /// Processes an acknowledgement that may change the phase.
    #[inline(never)]
    pub(super) fn process_ack_in_phase(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        if ctx.ece {
            self.prior_ssthresh = None;
        }
        if ctx.reneged && ctx.advanced {
            self.on_sack_reneging(ctx);
            return;
        }
        if self.phase == RecoveryPhase::Open {
            self.retransmitted_at = None;
        } else if self.end_phase_if_acked(ctx, stack, probe) == AckProcessing::Done {
            return;
        }
        let step = match self.phase.name() {
            PhaseName::Recovery => self.continue_recovery(ctx, stack, probe),
            PhaseName::Loss => self.continue_loss_phase(ctx, stack, probe),
            _ => self.process_ack_outside_recovery(ctx, stack, probe),
        };
        if step == AckProcessing::Continue {
            self.repair = AllowedRetransmissions::Lost;
        }
    }

    /// Ends the phase when data outstanding at its beginning is acknowledged.
    fn end_phase_if_acked(
        &mut self,
        ctx: &AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        match self.phase {
            // Data beyond `high` is acknowledged, so the receiver has seen CWR.
            RecoveryPhase::Cwr { high, .. } if self.una > high => {
                self.end_window_reduction(stack);
                self.enter_phase(RecoveryPhase::Open, ctx.now);
            }
            RecoveryPhase::Recovery { high, .. } if self.una >= high => {
                if !stack.detection.uses_sack() {
                    self.flight.sacked = 0;
                }
                if self.try_undo_recovery(ctx, stack, probe) == AckProcessing::Done {
                    return AckProcessing::Done;
                }
                self.end_window_reduction(stack);
                self.enter_phase(RecoveryPhase::Open, ctx.now);
                self.rescued = false;
            }
            _ => (),
        }
        AckProcessing::Continue
    }

    fn continue_recovery(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        if !ctx.advanced {
            if !stack.detection.uses_sack() {
                self.count_duplicate_ack(ctx, stack);
            }
        } else if self.undo_on_partial_ack(ctx, stack, probe) == AckProcessing::Done {
            return AckProcessing::Done;
        }
        if self.try_undo_by_duplicates(ctx.now, probe) {
            self.try_to_return_to_open(ctx, stack);
        }
        self.mark_detected_losses(ctx, stack);
        if !matches!(self.phase, RecoveryPhase::Recovery { .. }) {
            if self.flight.lost == 0 {
                return AckProcessing::Done;
            }
            self.enter_recovery(ctx.now, ctx.ece, stack, probe);
        }
        AckProcessing::Continue
    }

    /// Processes acknowledgements in Open, Disorder and Cwr, and after a timeout if a
    /// retransmission is lost.
    pub(super) fn process_ack_outside_recovery(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        if !stack.detection.uses_sack() {
            if ctx.advanced {
                self.flight.sacked = 0;
            }
            self.count_duplicate_ack(ctx, stack);
        }
        if self.phase.name() <= PhaseName::Disorder {
            self.try_undo_by_duplicates(ctx.now, probe);
        }
        self.mark_detected_losses(ctx, stack);
        if self.flight.lost == 0 {
            if !matches!(self.phase, RecoveryPhase::Loss { .. }) {
                self.try_to_return_to_open(ctx, stack);
            }
            return AckProcessing::Done;
        }
        self.enter_recovery(ctx.now, ctx.ece, stack, probe);
        AckProcessing::Continue
    }

    /// Marks lost packets by the rule of the stack.
    pub(super) fn mark_detected_losses(&mut self, ctx: &mut AckContext, stack: &Stack) {
        if self.flight.packets_out() == 0 {
            return;
        }
        let now = ctx.now;
        match stack.detection {
            LossDetection::DuplicateAcks => self.mark_losses_by_sack_count(ctx.advanced),
            LossDetection::Sack { .. } => self.mark_lost_below_sacked(),
            LossDetection::Rack { .. } => {
                let window = self.reordering_window(stack);
                let report = self.rack.detect_losses_if_delivered(now, window, &mut self.flight);
                ctx.retransmission_lost |= report.retransmission_lost;
                if let Some(wait) = report.wait {
                    ctx.set_timer = false;
                    self.arm_reordering_timer(now, wait);
                }
            }
        }
    }

    /// Reordering window of RACK: 0 if duplicates or a recovery make a loss evident.
    pub(super) fn reordering_window(&self, stack: &Stack) -> Nanos {
        let waits = matches!(stack.detection, LossDetection::Rack { no_dupthresh: true, .. });
        let enough = self.flight.sacked >= self.reordering && !waits;
        self.rack.reordering_window(self.in_recovery() || enough, &self.rtt)
    }

    /// RFC 6582: marks the first packet after three duplicates and after each partial
    /// acknowledgement.
    fn mark_losses_by_sack_count(&mut self, advanced: bool) {
        let due = match self.phase.name() {
            PhaseName::Recovery => advanced,
            PhaseName::Loss => false,
            _ => self.flight.sacked >= self.reordering,
        };
        let first = self.flight.first_number();
        if due && !self.flight.packet(first).marks.contains_any(PacketMarks::LOST) {
            self.flight.mark_lost(first);
        }
    }

    /// RFC 6675, section 4, IsLost: three higher packets are SACKed.
    fn mark_lost_below_sacked(&mut self) {
        let mut above = 0;
        let mut number = self.flight.number_after_highest_sacked();
        while above < self.reordering && number > self.flight.first_number() {
            number -= 1;
            above += u32::from(self.flight.packet(number).marks.contains_any(PacketMarks::SACKED));
        }
        if above < self.reordering {
            return;
        }
        let known = PacketMarks::SACKED.union(PacketMarks::LOST);
        // Lower packets were checked by an earlier acknowledgement.
        for lost in self.loss_checked.max(self.flight.first_number())..number {
            if !self.flight.packet(lost).marks.contains_any(known) {
                self.flight.mark_lost(lost);
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
        probe: &mut impl TcpProbe,
    ) {
        probe.on_tcp_event(now, TcpEvent::FastRetransmit { window: self.window.cwnd });
        self.prior_ssthresh = None;
        self.save_undo_state(false, stack);
        let (prr, high) = match self.phase {
            RecoveryPhase::Cwr { prr, high } | RecoveryPhase::Recovery { prr, high } => (prr, high),
            _ => {
                if !ece && stack.undo {
                    self.prior_ssthresh = Some(self.current_ssthresh());
                }
                self.begin_window_reduction(stack)
            }
        };
        self.rescued = false;
        self.enter_phase(RecoveryPhase::Recovery { prr, high }, now);
    }

    pub(super) fn save_undo_state(&mut self, after_timeout: bool, stack: &Stack) {
        let probe = self.tail_probe.filter(|_| stack.kernel.counts_loss_probe);
        let unreported = unreported_retransmissions(self.flight.retransmitted, probe);
        let undo = UndoState { marker: self.una, unreported, after_timeout };
        self.undo = stack.undo.then_some(undo);
    }

    /// Begins a reduction of the window to the threshold given by the congestion control.
    pub(super) fn begin_window_reduction(
        &mut self,
        stack: &Stack,
    ) -> (ProportionalRateReduction, u64) {
        self.tail_probe = None;
        self.window.credit = 0;
        self.window.save_before_reduction();
        self.window.ssthresh = self.control.ssthresh(&self.window);
        self.cwr_due = true;
        if stack.reduction == WindowReduction::Immediate && !self.control.sets_window_and_rate() {
            self.window.cwnd = self.window.ssthresh;
        }
        (ProportionalRateReduction::default(), self.flight.end_byte())
    }

    /// Ends a reduction: the window becomes the threshold.
    pub(super) fn end_window_reduction(&mut self, stack: &Stack) {
        if self.control.sets_window_and_rate() || self.window.ssthresh >= INFINITE_SSTHRESH {
            return;
        }
        let applies =
            matches!(self.phase, RecoveryPhase::Cwr { .. }) || self.undo.is_some() || !stack.undo;
        if applies {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Reduces the window for an ECN echo, at most once per window: RFC 3168, section 6.1.2.
    fn enter_cwr(&mut self, now: Nanos, stack: &Stack) {
        self.prior_ssthresh = None;
        if self.phase.name() >= PhaseName::Cwr {
            return;
        }
        self.undo = None;
        let (prr, high) = self.begin_window_reduction(stack);
        self.enter_phase(RecoveryPhase::Cwr { prr, high }, now);
    }

    fn has_retransmissions_in_flight(&self) -> bool {
        self.flight.retransmitted > 0
            || (self.flight.packets_out() > 0
                && self.flight.packet(self.flight.first_number()).was_retransmitted())
    }

    pub(super) fn set_open_or_disorder(&mut self, now: Nanos) {
        let missing =
            self.flight.packets_left_network() > 0 || self.has_retransmissions_in_flight();
        self.enter_phase(if missing { RecoveryPhase::Disorder } else { RecoveryPhase::Open }, now);
    }

    fn try_to_return_to_open(&mut self, ctx: &AckContext, stack: &Stack) {
        if !self.has_retransmissions_in_flight() {
            self.retransmitted_at = None;
        }
        if ctx.ece {
            self.enter_cwr(ctx.now, stack);
        }
        if !matches!(self.phase, RecoveryPhase::Cwr { .. }) {
            self.set_open_or_disorder(ctx.now);
        }
    }

    /// RFC 8985, section 7.4: evaluates a tail loss probe.
    pub(super) fn check_tail_loss_probe(&mut self, ctx: &AckContext, stack: &Stack) {
        let Some(sent) = self.tail_probe.filter(|sent| self.una >= sent.high) else { return };
        if !sent.retransmits || ctx.dsack_of_probe {
            self.tail_probe = None;
        } else if self.una > sent.high {
            // No duplicate was reported, so the probe repaired a loss.
            let (prr, high) = self.begin_window_reduction(stack);
            self.enter_phase(RecoveryPhase::Cwr { prr, high }, ctx.now);
            self.end_window_reduction(stack);
            self.set_open_or_disorder(ctx.now);
        } else if !ctx.advanced && !ctx.not_duplicate && ctx.acked == 0 && !ctx.sacked {
            self.tail_probe = None;
        }
    }

    /// Whether the acknowledged packet was sent before the first retransmission: RFC 3522.
    pub(super) fn is_ack_of_original_packet(&self, ctx: &AckContext, stack: &Stack) -> bool {
        match (self.retransmitted_at, ctx.echo) {
            // This time is cleared when all data is acknowledged; then the result only depends on
            // whether any packet was retransmitted.
            (None, _) => {
                stack.kernel.undoes_without_retransmission
                    && self
                        .undo
                        .is_some_and(|undo| undo.unreported == UnreportedRetransmissions::NoneSent)
            }
            (Some(at), Some(echo)) => echo < timestamp_at(at),
            (Some(_), None) => false,
        }
    }

    /// Whether the reduction was unnecessary: the receiver reported each retransmission as a
    /// duplicate (RFC 3708), or the timestamp shows that the original packet was acknowledged (RFC
    /// 3522).
    pub(super) fn may_undo(&self, ctx: &AckContext, stack: &Stack) -> bool {
        self.undo.is_some()
            && (self.are_all_retransmissions_duplicates()
                || self.is_ack_of_original_packet(ctx, stack))
    }

    fn are_all_retransmissions_duplicates(&self) -> bool {
        self.undo.is_some_and(|undo| undo.unreported == UnreportedRetransmissions::Packets(0))
    }

    /// Restores the window and threshold before the reduction.
    pub(super) fn undo_reduction(
        &mut self,
        now: Nanos,
        clears_lost: bool,
        probe: &mut impl TcpProbe,
    ) {
        if clears_lost {
            self.flight.clear_all_lost();
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
        self.rack.request_loss_detection();
        probe.on_tcp_event(now, TcpEvent::Undone { after_timeout });
    }

    /// All data outstanding at the beginning is acknowledged. Without SACK the phase lasts until
    /// data sent after its start is acknowledged, so that earlier duplicates start no new recovery:
    /// RFC 6582, section 3.2.
    pub(super) fn try_undo_recovery(
        &mut self,
        ctx: &AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        if self.may_undo(ctx, stack) {
            self.undo_reduction(ctx.now, false, probe);
        } else {
            self.rack.on_recovered(false);
        }
        if self.stays_in_phase_without_sack(stack) {
            return AckProcessing::Done;
        }
        AckProcessing::Continue
    }

    pub(super) fn stays_in_phase_without_sack(&mut self, stack: &Stack) -> bool {
        if stack.detection.uses_sack() || self.phase.end_of_phase() != Some(self.una) {
            return false;
        }
        if !self.has_retransmissions_in_flight() {
            self.retransmitted_at = None;
        }
        true
    }

    fn try_undo_by_duplicates(&mut self, now: Nanos, probe: &mut impl TcpProbe) -> bool {
        let all = self.are_all_retransmissions_duplicates();
        if all {
            self.rack.on_recovered(true);
            self.undo_reduction(now, false, probe);
        }
        all
    }

    /// A partial acknowledgement of a delayed original: packets in flight may also be delayed.
    fn undo_on_partial_ack(
        &mut self,
        ctx: &AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        if self.undo.is_none() || !self.is_ack_of_original_packet(ctx, stack) {
            return AckProcessing::Continue;
        }
        self.record_reordering(ctx.prior_una, stack);
        if self.flight.retransmitted > 0 {
            return AckProcessing::Done;
        }
        if !self.has_retransmissions_in_flight() {
            self.retransmitted_at = None;
        }
        self.undo_reduction(ctx.now, true, probe);
        self.set_open_or_disorder(ctx.now);
        AckProcessing::Continue
    }
}
