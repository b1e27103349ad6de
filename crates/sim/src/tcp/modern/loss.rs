//! After a timeout: what is lost, and whether it was (F-RTO, RFC 5682).

use super::ack_context::Heard;
use super::event::{Event, Probe, UndoReason};
use super::packet::Marks;
use super::phase::{Phase, PhaseName};
use super::recovery::Then;
use super::sender::{Repair, Sender};
use super::stack::{Detection, MILLISECOND, Stack};
use super::ticks::Span;
use super::timers::Timer;
use crate::clock::Nanos;

impl Sender {
    /// RFC 5681, section 3.1, after a timeout: slow start from one packet, the threshold reduced
    /// once for all timeouts of a window.
    pub(super) fn enter_loss(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        self.mark_all_lost(now, stack, probe);
        self.tell_losses(now);
        let phase = self.phase.name();
        let first_of_window = phase <= PhaseName::Disorder
            || self.phase.high().is_none_or(|high| high <= self.una)
            || (phase == PhaseName::Loss && self.backoff == 0);
        if first_of_window {
            self.prior_ssthresh = stack.undo.then(|| self.current_ssthresh());
            self.window.remember();
            self.window.ssthresh = self.control.ssthresh(&self.window);
            self.remember_undo(true, stack);
        }
        self.window.cwnd = self.flight.in_flight() + 1;
        self.window.credit = 0;
        self.usage.since = now;
        // Many duplicates did not tell of the loss: reordering is less than was thought.
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

    /// Everything but what the receiver holds, and for RACK what was sent too late to be missed.
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
        self.flight.repair_from_first();
    }

    /// The receiver has discarded what it held (RFC 2018, section 8): after half a round-trip time
    /// everything is retransmitted.
    pub(super) fn hear_reneging(&mut self, heard: &mut Heard) {
        let wait = (self.rtt.srtt().unwrap_or(0) / 2).max(10 * MILLISECOND);
        self.timer = Timer::Retransmission(Span::new(heard.now, wait));
        heard.set_timer = false;
    }

    /// An acknowledgement after a timeout.
    pub(super) fn go_on_with_loss(
        &mut self,
        heard: &mut Heard,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Then {
        self.process_loss(heard, stack, probe);
        self.find_losses(heard, stack, probe);
        if self.phase == Phase::Open || heard.retransmission_lost {
            self.open_or_recover(heard, stack, probe)
        } else {
            Then::Done
        }
    }

    fn process_loss(&mut self, heard: &mut Heard, stack: &Stack, probe: &mut impl Probe) {
        let Phase::Loss { high, frto } = self.phase else { return };
        let recovered = self.una >= high;
        if heard.advanced {
            if let Some(reason) = self.may_undo(heard) {
                self.undo_loss(heard, reason, stack, probe);
                return;
            }
        }
        if frto && self.process_frto(heard, high, recovered, stack, probe) == Then::Done {
            return;
        }
        if recovered {
            if self.try_undo_recovery(heard, stack, probe) == Then::GoOn {
                self.set_phase(Phase::Open, heard.now);
            }
            return;
        }
        if !stack.detection.uses_sack() {
            if self.flight.end() > high && heard.duplicates() > 0 {
                self.add_duplicates(heard, stack);
            } else if heard.advanced {
                self.flight.sacked = 0;
            }
        }
        self.repair = Repair::Lost;
    }

    /// RFC 5682, sections 2.1 and 3.1.
    fn process_frto(
        &mut self,
        heard: &mut Heard,
        high: u64,
        recovered: bool,
        stack: &Stack,
        probe: &mut impl Probe,
    ) -> Then {
        // Step 3.b: something that was not retransmitted is acknowledged.
        if heard.original_acked {
            self.undo_loss(heard, UndoReason::Forward, stack, probe);
            return Then::Done;
        }
        let mut frto = true;
        let mut new_high = high;
        let mut then = Then::GoOn;
        if self.flight.end() > high {
            // Step 3.a: a duplicate; the loss was real.
            frto = !(heard.sacked || heard.duplicates() > 0);
        } else if heard.advanced && !recovered {
            new_high = self.flight.end();
            // Step 2.b: new data, if there is any.
            if self.unsent() > 0 && self.allowed > self.flight.end() {
                self.repair = Repair::UnlessNew;
                then = Then::Done;
            } else {
                frto = false;
            }
        }
        self.phase = Phase::Loss { high: new_high, frto };
        then
    }

    /// The timeout was spurious.
    fn undo_loss(
        &mut self,
        heard: &Heard,
        reason: UndoReason,
        stack: &Stack,
        probe: &mut impl Probe,
    ) {
        self.undo_reduction(heard.now, reason, true, probe);
        self.backoff = 0;
        if self.holds_phase(stack) {
            return;
        }
        if reason == UndoReason::Forward || stack.detection.uses_sack() {
            self.set_phase(Phase::Open, heard.now);
        }
    }
}
