//! Timer of a sender: retransmission (RFC 6298), tail loss probe and reordering (RFC 8985), closed
//! window (RFC 9293). Only one of them runs at a time.

use super::event::{Event, Probe};
use super::phase::{Phase, PhaseName};
use super::prr::Progress;
use super::sender::{Forced, Repair, Sender, TailProbe};
use super::stack::{Detection, MILLISECOND, Stack};
use super::ticks::Span;
use crate::clock::{NEVER, Nanos};

/// Added to waiting times, so that packets can arrive.
const SLACK: Nanos = 2 * MILLISECOND;

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Not running.
    Off,
    /// The retransmission timeout.
    Retransmission(Span),
    /// A tail loss probe.
    LossProbe(Span),
    /// Packets that may be reordered rather than lost.
    Reordering(Span),
    /// The opening of a closed window.
    Persist(Span),
}

impl Timer {
    /// Start and duration; [`None`] if the timer is off.
    #[inline(always)]
    #[must_use]
    pub fn span(self) -> Option<Span> {
        match self {
            Self::Off => None,
            Self::Retransmission(span)
            | Self::LossProbe(span)
            | Self::Reordering(span)
            | Self::Persist(span) => Some(span),
        }
    }
}

impl Sender {
    /// Expiry of the timer, [`NEVER`] if it is off.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.timer.span().map_or(NEVER, |span| self.clock.expiry(span))
    }

    /// Lower bound of the deadline, which is cheaper to compute.
    #[inline(always)]
    #[must_use]
    pub fn deadline_at_least(&self) -> Nanos {
        self.timer.span().map_or(NEVER, Span::end)
    }

    /// Time at which the first outstanding packet times out.
    fn first_due(&self) -> Nanos {
        self.flight.packet(self.flight.first()).sent_at + self.rtt.rto()
    }

    /// RFC 6298 (5.1), (5.3). If the timer had another purpose since the first packet was sent, the
    /// elapsed time counts.
    #[inline(always)]
    pub(super) fn arm_retransmission(&mut self, now: Nanos) {
        if self.flight.out() == 0 {
            self.timer = Timer::Off;
            return;
        }
        let span = match self.timer {
            Timer::Reordering(_) | Timer::LossProbe(_) => {
                Span::new(now, self.first_due().saturating_sub(now).max(1))
            }
            _ => Span::new(now, self.rtt.rto()),
        };
        self.timer = Timer::Retransmission(span);
    }

    /// Sets the timer after an acknowledgement: tail loss probe or retransmission timeout.
    #[inline(always)]
    pub(super) fn arm_after_ack(&mut self, now: Nanos, stack: &Stack) {
        if !self.arm_loss_probe(now, true, stack) {
            self.arm_retransmission(now);
        }
    }

    /// RFC 8985, section 7.2: two round-trip times, plus the maximum delay of an acknowledgement if
    /// one packet is outstanding. `restart` if the retransmission timeout would start now.
    #[inline(always)]
    pub(super) fn arm_loss_probe(&mut self, now: Nanos, restart: bool, stack: &Stack) -> bool {
        let probes = matches!(stack.detection, Detection::Rack { tail_loss_probe: true, .. });
        let out = self.flight.out();
        if !probes || out == 0 || !matches!(self.phase, Phase::Open | Phase::Cwr { .. }) {
            return false;
        }
        let mut wait = match self.rtt.srtt() {
            Some(srtt) => 2 * srtt + if out == 1 { stack.min_rto } else { SLACK },
            None => stack.initial_rto,
        };
        let rto = if restart { self.rtt.rto() } else { self.first_due().saturating_sub(now) };
        if rto > 0 {
            wait = wait.min(rto);
        }
        self.timer = Timer::LossProbe(Span::new(now, wait));
        true
    }

    /// Packets may still be reordered for `wait`.
    pub(super) fn arm_reordering(&mut self, now: Nanos, wait: Nanos) {
        self.timer = Timer::Reordering(Span::new(now, (wait + SLACK).min(self.rtt.rto())));
    }

    /// Nothing is outstanding and the window is closed: RFC 9293, section 3.8.6.1.
    pub(super) fn arm_persist(&mut self, now: Nanos, stack: &Stack) {
        let base = self.rtt.rto().max(stack.min_rto);
        let wait = base.saturating_mul(1 << self.backoff.min(16)).min(stack.max_rto);
        self.timer = Timer::Persist(Span::new(now, wait));
    }

    /// The timer expired: call [`Sender::poll_transmit`] for resulting packets.
    pub fn on_deadline(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        match self.timer {
            Timer::Off => return,
            Timer::Retransmission(_) => self.on_timeout(now, stack, probe),
            Timer::LossProbe(_) => self.on_loss_probe(now, stack, probe),
            Timer::Reordering(_) => self.on_reordering(now, stack, probe),
            Timer::Persist(_) => self.on_persist(now, stack),
        }
        self.publish_window(now, probe);
    }

    fn on_timeout(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        if self.flight.out() == 0 {
            self.timer = Timer::Off;
            return;
        }
        let event = Event::Timeout {
            una: self.una,
            first: self.flight.first(),
            all_sent: self.unsent() == 0,
            window: self.window.cwnd,
            slow_start: self.window.in_slow_start(),
            repeated: self.backoff > 0,
            in_recovery: matches!(self.phase, Phase::Recovery { .. }),
            rto: self.rtt.rto(),
        };
        probe.tcp(now, event);
        self.enter_loss(now, stack, probe);
        self.backoff += 1;
        self.rtt.back_off(stack);
        self.timer = Timer::Retransmission(Span::new(now, self.rtt.rto()));
        self.forced = Some(Forced::First);
    }

    /// RFC 8985, section 7.3.
    fn on_loss_probe(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        if self.tail_probe.is_none() && self.flight.out() > 0 {
            let len = self.unsent().min(u64::from(stack.mss));
            let sends_new = (len > 0 || (self.closed && !self.fin_sent))
                && self.flight.end() + len + u64::from(self.closed && len == self.unsent())
                    <= self.allowed;
            self.forced = Some(if sends_new { Forced::New } else { Forced::ProbeLast });
            // `high` is updated when the probe is sent.
            self.tail_probe = Some(TailProbe { high: self.next(), retransmits: !sends_new });
            probe.tcp(now, Event::LossProbe { retransmits: !sends_new });
            // The timeout starts now, not at the sending of the first packet.
            self.timer = Timer::Off;
        }
        self.arm_retransmission(now);
    }

    /// RFC 8985, section 6.3.
    fn on_reordering(&mut self, now: Nanos, stack: &Stack, probe: &mut impl Probe) {
        let before = self.flight.in_flight();
        let lost_before = self.flight.lost_total;
        let window = self.reordering_window(stack);
        let report = self.rack.detect(now, window, &mut self.flight, |start| {
            probe.tcp(now, Event::Lost { start });
        });
        if self.flight.in_flight() != before {
            probe.tcp(now, Event::ReorderTimeout);
            if self.phase.name() != PhaseName::Recovery {
                self.enter_recovery(now, false, stack, probe);
                if !self.control.controls_window() {
                    let in_flight = self.flight.in_flight();
                    let lost = (self.flight.lost_total - lost_before) as u32;
                    let has_delivery = Progress { delivered: 1, lost, in_flight, advanced: false };
                    if let Some(prr) = self.phase.prr_mut() {
                        prr.on_ack(&mut self.window, has_delivery);
                    }
                }
            }
            self.report_losses(now);
            self.repair = Repair::Lost;
        }
        match report.wait {
            Some(wait) => self.arm_reordering(now, wait),
            None => self.arm_retransmission(now),
        }
    }

    fn on_persist(&mut self, now: Nanos, stack: &Stack) {
        if self.flight.out() > 0 || self.unsent() == 0 {
            self.timer = Timer::Off;
            return;
        }
        self.forced = Some(Forced::WindowProbe);
        self.backoff += 1;
        self.arm_persist(now, stack);
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::Preset;
    use super::*;

    #[test]
    fn linux_tcp_timeout_min_extends_reordering_timer_up_to_rto() {
        let stack = Preset::LinuxCubic.stack();
        let mut sender = Sender::new(0, 1, 1, &stack);
        sender.establish(0, Some(80 * MILLISECOND), 1 << 40, &stack);
        let mut deadline = |wait| {
            sender.arm_reordering(0, wait);
            sender.deadline_at_least()
        };
        assert_eq!(deadline(20 * MILLISECOND), 22 * MILLISECOND);
        assert_eq!(deadline(279 * MILLISECOND), 280 * MILLISECOND, "srtt + 200 ms");
    }
}
