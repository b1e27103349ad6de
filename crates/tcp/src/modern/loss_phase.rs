//! Recovery from timeouts, and detection of spurious ones (F-RTO, RFC 5682).

use super::ack_context::AckContext;
use super::outstanding_packet::PacketMarks;
use super::recovery::AckProcessing;
use super::recovery_phase::{PhaseName, RecoveryPhase};
use super::sender::{AllowedRetransmissions, Sender};
use super::stack::{LossDetection, Stack};
use super::tick_clock::{TimerPurpose, TimerSpan};
use crate::tcp_event::TcpProbe;
use tcpcast_link::time::{MILLISECOND, Nanos};

impl Sender {
    /// RFC 5681, section 3.1: slow start from one packet after a timeout. The threshold is reduced
    /// once for all timeouts of a window.
    pub(super) fn enter_loss_phase(&mut self, now: Nanos, stack: &Stack) {
        self.mark_losses_after_timeout(now, stack);
        self.report_losses_to_control(now);
        let phase = self.phase.name();
        let first_of_window = phase <= PhaseName::Disorder
            || self.phase.end_of_phase().is_none_or(|high| high <= self.una)
            || (phase == PhaseName::Loss && self.backoff == 0);
        if first_of_window {
            self.prior_ssthresh = stack.undo.then(|| self.current_ssthresh());
            self.window.save_before_reduction();
            self.window.ssthresh = self.control.ssthresh(&self.window);
            self.save_undo_state(true, stack);
        }
        self.window.cwnd = self.flight.in_flight() + 1;
        self.window.credit = 0;
        self.usage.since = now;
        // Many duplicates did not reveal the loss, so the reordering threshold was too high.
        if phase <= PhaseName::Disorder && self.flight.sacked >= stack.reordering.initial {
            self.reordering = self.reordering.min(stack.reordering.initial);
        }
        let frto = stack.frto && (first_of_window || self.backoff > 0);
        self.enter_phase(RecoveryPhase::Loss { high: self.flight.end_byte(), frto }, now);
        self.tail_probe = None;
        self.rescued = false;
        self.cwr_due = true;
        self.repair = AllowedRetransmissions::Lost;
    }

    /// Marks all packets as lost, except for SACKed packets and, with RACK, packets that were sent
    /// too recently.
    fn mark_losses_after_timeout(&mut self, now: Nanos, stack: &Stack) {
        let first = self.flight.first_number();
        let reneged = self.flight.packet(first).marks.contains_any(PacketMarks::SACKED);
        if reneged {
            self.flight.clear_all_sacked();
        } else if !stack.detection.uses_sack() {
            self.flight.sacked = 0;
        }
        let by_time = matches!(stack.detection, LossDetection::Rack { .. }) && !reneged;
        for number in first..self.flight.next_number() {
            let late = by_time
                && number != first
                && self.rack.time_until_lost(now, self.flight.packet(number), 0).is_some();
            if !late {
                self.flight.mark_lost(number);
            }
        }
        self.flight.restart_retransmit_search();
    }

    /// The receiver has discarded SACKed data (RFC 2018, section 8): all packets are retransmitted
    /// after half a round-trip time.
    pub(super) fn on_sack_reneging(&mut self, ctx: &mut AckContext) {
        let wait = (self.rtt.srtt().unwrap_or(0) / 2).max(10 * MILLISECOND);
        self.timer = TimerPurpose::Retransmission(TimerSpan::new(ctx.now, wait));
        ctx.set_timer = false;
    }

    /// Processes an acknowledgement after a timeout.
    pub(super) fn continue_loss_phase(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        self.process_ack_in_loss_phase(ctx, stack, probe);
        self.mark_detected_losses(ctx, stack);
        if self.phase == RecoveryPhase::Open || ctx.retransmission_lost {
            self.process_ack_outside_recovery(ctx, stack, probe)
        } else {
            AckProcessing::Done
        }
    }

    fn process_ack_in_loss_phase(
        &mut self,
        ctx: &mut AckContext,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        let RecoveryPhase::Loss { high, frto } = self.phase else { return };
        let recovered = self.una >= high;
        if ctx.advanced && self.may_undo(ctx, stack) {
            return self.undo_loss_phase(ctx, false, stack, probe);
        }
        if frto
            && self.process_ack_by_frto(ctx, high, recovered, stack, probe) == AckProcessing::Done
        {
            return;
        }
        if recovered {
            if self.try_undo_recovery(ctx, stack, probe) == AckProcessing::Continue {
                self.enter_phase(RecoveryPhase::Open, ctx.now);
            }
            return;
        }
        if !stack.detection.uses_sack() {
            if self.flight.end_byte() > high && ctx.duplicate_ack_count() > 0 {
                self.count_duplicate_ack(ctx, stack);
            } else if ctx.advanced {
                self.flight.sacked = 0;
            }
        }
        self.repair = AllowedRetransmissions::Lost;
    }

    /// RFC 5682, sections 2.1 and 3.1.
    fn process_ack_by_frto(
        &mut self,
        ctx: &mut AckContext,
        high: u64,
        recovered: bool,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) -> AckProcessing {
        // Step 3.b: data that was not retransmitted is acknowledged.
        if ctx.original_acked {
            self.undo_loss_phase(ctx, true, stack, probe);
            return AckProcessing::Done;
        }
        let mut frto = true;
        let mut new_high = high;
        let mut step = AckProcessing::Continue;
        if self.flight.end_byte() > high {
            // Step 3.a: a duplicate, so the loss was real.
            frto = !(ctx.sacked || ctx.duplicate_ack_count() > 0);
        } else if ctx.advanced && !recovered {
            new_high = self.flight.end_byte();
            // Step 2.b: send new data, if available.
            if self.unsent_bytes() > 0 && self.allowed > self.flight.end_byte() {
                self.repair = AllowedRetransmissions::UnlessNew;
                step = AckProcessing::Done;
            } else {
                frto = false;
            }
        }
        self.phase = RecoveryPhase::Loss { high: new_high, frto };
        step
    }

    /// Undoes the reduction of a spurious timeout; `by_frto` if new data shows that it was one.
    fn undo_loss_phase(
        &mut self,
        ctx: &AckContext,
        by_frto: bool,
        stack: &Stack,
        probe: &mut impl TcpProbe,
    ) {
        self.undo_reduction(ctx.now, true, probe);
        self.backoff = 0;
        if self.stays_in_phase_without_sack(stack) {
            return;
        }
        if by_frto || stack.detection.uses_sack() {
            self.enter_phase(RecoveryPhase::Open, ctx.now);
        }
    }
}
