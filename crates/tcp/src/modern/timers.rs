//! Timer of a sender: retransmission (RFC 6298), tail loss probe and reordering (RFC 8985), closed
//! window (RFC 9293). Only one of these timers runs at a time.

use super::prr::PrrAckEffect;
use super::recovery_phase::{PhaseName, RecoveryPhase};
use super::sender::{AllowedRetransmissions, PacketBeyondWindow, Sender, TailProbe};
use super::stack::{LossDetection, Stack};
use super::tick_clock::{TimerPurpose, TimerSpan};
use crate::tcp_event::TimeoutState;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// Added to waiting times, so that packets have time to arrive.
const TIMER_MARGIN: Nanos = 2 * MILLISECOND;

impl Sender {
    /// Expiry of the timer, [`NEVER`] if it is off.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.timer.timer_span().map_or(NEVER, |span| self.clock.expiry_of(span))
    }

    /// Lower bound of the deadline, which is cheaper to compute.
    #[inline(always)]
    #[must_use]
    pub fn deadline_lower_bound(&self) -> Nanos {
        self.timer.timer_span().map_or(NEVER, TimerSpan::earliest_expiry)
    }

    /// Time at which the first outstanding packet times out.
    fn timeout_of_first_packet(&self) -> Nanos {
        self.flight.packet(self.flight.first_number()).sent_at + self.rtt.rto()
    }

    /// RFC 6298 (5.1), (5.3). If the timer had another purpose since the first packet was sent, the
    /// elapsed time counts.
    #[inline(always)]
    pub(super) fn arm_retransmission_timer(&mut self, now: Nanos) {
        if self.flight.packets_out() == 0 {
            self.timer = TimerPurpose::Off;
            return;
        }
        let span = match self.timer {
            TimerPurpose::Reordering(_) | TimerPurpose::LossProbe(_) => {
                TimerSpan::new(now, self.timeout_of_first_packet().saturating_sub(now).max(1))
            }
            _ => TimerSpan::new(now, self.rtt.rto()),
        };
        self.timer = TimerPurpose::Retransmission(span);
    }

    /// Sets the timer after an acknowledgement: tail loss probe or retransmission timeout.
    #[inline(always)]
    pub(super) fn arm_timer_after_ack(&mut self, now: Nanos, stack: &Stack) {
        if !self.arm_loss_probe_timer(now, true, stack) {
            self.arm_retransmission_timer(now);
        }
    }

    /// Starts the timer of a tail loss probe, if one may be sent; returns whether it was started.
    /// RFC 8985, section 7.2: the timer is two round-trip times, plus the maximum delay of an
    /// acknowledgement if one packet is outstanding. `restart`: whether the retransmission timeout
    /// would start now.
    #[inline(always)]
    pub(super) fn arm_loss_probe_timer(
        &mut self,
        now: Nanos,
        restart: bool,
        stack: &Stack,
    ) -> bool {
        let probes = matches!(stack.detection, LossDetection::Rack { tail_loss_probe: true, .. });
        let out = self.flight.packets_out();
        if !probes
            || out == 0
            || !matches!(self.phase, RecoveryPhase::Open | RecoveryPhase::Cwr { .. })
        {
            return false;
        }
        let mut wait = match self.rtt.srtt() {
            Some(srtt) => 2 * srtt + if out == 1 { stack.min_rto } else { TIMER_MARGIN },
            None => stack.initial_rto,
        };
        let rto = if restart {
            self.rtt.rto()
        } else {
            self.timeout_of_first_packet().saturating_sub(now)
        };
        if rto > 0 {
            wait = wait.min(rto);
        }
        self.timer = TimerPurpose::LossProbe(TimerSpan::new(now, wait));
        true
    }

    /// Starts the reordering timer: a missing packet may still be reordered rather than lost for
    /// `wait`.
    pub(super) fn arm_reordering_timer(&mut self, now: Nanos, wait: Nanos) {
        self.timer = TimerPurpose::Reordering(TimerSpan::new(
            now,
            (wait + TIMER_MARGIN).min(self.rtt.rto()),
        ));
    }

    /// Starts the persist timer, when nothing is outstanding and the window is closed: RFC 9293,
    /// section 3.8.6.1.
    pub(super) fn arm_persist_timer(&mut self, now: Nanos, stack: &Stack) {
        let base = self.rtt.rto().max(stack.min_rto);
        let wait = base.saturating_mul(1 << self.backoff.min(16)).min(stack.max_rto);
        self.timer = TimerPurpose::Persist(TimerSpan::new(now, wait));
    }

    /// Handles the expiry of the timer. Call [`Sender::poll_transmit`] afterwards to send the
    /// resulting packets.
    pub fn on_deadline(&mut self, now: Nanos, stack: &Stack, probe: &mut impl TcpProbe) {
        match self.timer {
            TimerPurpose::Off => (),
            TimerPurpose::Retransmission(_) => self.on_retransmission_timeout(now, stack, probe),
            TimerPurpose::LossProbe(_) => self.on_loss_probe_timer(now, stack, probe),
            TimerPurpose::Reordering(_) => self.on_reordering_timer(now, stack, probe),
            TimerPurpose::Persist(_) => self.on_persist_timer(now, stack),
        }
    }

    fn on_retransmission_timeout(&mut self, now: Nanos, stack: &Stack, probe: &mut impl TcpProbe) {
        if self.flight.packets_out() == 0 {
            self.timer = TimerPurpose::Off;
            return;
        }
        let state = TimeoutState {
            all_sent: self.unsent_bytes() == 0,
            window: self.window.cwnd,
            slow_start: self.window.in_slow_start(),
            repeated: self.backoff > 0,
            in_recovery: matches!(self.phase, RecoveryPhase::Recovery { .. }),
            rto: self.rtt.rto(),
        };
        let number = self.flight.first_number() + 1;
        probe.on_tcp_event(now, TcpEvent::Timeout { number, left: 0, state });
        self.enter_loss_phase(now, stack);
        self.backoff += 1;
        self.rtt.double_timeout(stack);
        self.timer = TimerPurpose::Retransmission(TimerSpan::new(now, self.rtt.rto()));
        self.forced = Some(PacketBeyondWindow::First);
    }

    /// Requests a tail loss probe: RFC 8985, section 7.3.
    fn on_loss_probe_timer(&mut self, now: Nanos, stack: &Stack, probe: &mut impl TcpProbe) {
        if self.tail_probe.is_none() && self.flight.packets_out() > 0 {
            let len = u64::from(self.next_new_len(stack));
            let sends_new = (len > 0 || (self.closed && !self.fin_sent))
                && self.flight.end_byte()
                    + len
                    + u64::from(self.closed && len == self.unsent_bytes())
                    <= self.allowed;
            self.forced = Some(if sends_new {
                PacketBeyondWindow::New
            } else {
                PacketBeyondWindow::ProbeLast
            });
            // `high` is updated when the probe is sent.
            self.tail_probe = Some(TailProbe { high: self.next_byte(), retransmits: !sends_new });
            probe.on_tcp_event(now, TcpEvent::TailLossProbe { retransmits: !sends_new });
            // The timeout starts now, not at the sending of the first packet.
            self.timer = TimerPurpose::Off;
        }
        self.arm_retransmission_timer(now);
    }

    /// Marks the packets that RACK now detects as lost: RFC 8985, section 6.3.
    fn on_reordering_timer(&mut self, now: Nanos, stack: &Stack, probe: &mut impl TcpProbe) {
        let before = self.flight.in_flight();
        let lost_before = self.flight.lost_total;
        let window = self.reordering_window(stack);
        let report = self.rack.detect_losses(now, window, &mut self.flight);
        if self.flight.in_flight() != before {
            if self.phase.name() != PhaseName::Recovery {
                self.enter_recovery(now, false, stack, probe);
                if !self.control.sets_window_and_rate() {
                    let in_flight = self.flight.in_flight();
                    let lost = (self.flight.lost_total - lost_before) as u32;
                    let effect = PrrAckEffect {
                        delivered: 1,
                        lost,
                        in_flight,
                        advanced: false,
                        retransmission_acked: false,
                    };
                    if let Some(prr) = self.phase.prr_mut() {
                        prr.on_ack(&mut self.window, effect, stack.kernel.prr);
                    }
                }
            }
            self.report_losses_to_control(now);
            self.repair = AllowedRetransmissions::Lost;
        }
        match report.wait {
            Some(wait) => self.arm_reordering_timer(now, wait),
            None => self.arm_retransmission_timer(now),
        }
    }

    fn on_persist_timer(&mut self, now: Nanos, stack: &Stack) {
        if self.flight.packets_out() > 0 || self.unsent_bytes() == 0 {
            self.timer = TimerPurpose::Off;
            return;
        }
        self.forced = Some(PacketBeyondWindow::WindowProbe);
        if let Some(socket) = self.socket.as_mut().filter(|_| self.backoff == 0) {
            socket.probing_since = now;
        }
        self.backoff += 1;
        self.arm_persist_timer(now, stack);
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets::Preset;
    use super::*;

    #[test]
    fn linux_tcp_timeout_min_extends_reordering_timer_up_to_rto() {
        let stack = Preset::LinuxCubic.stack();
        let mut sender = Sender::new(0, 1, 1, &stack);
        sender.on_established(0, Some(80 * MILLISECOND), 1 << 40, &stack);
        let mut deadline = |wait| {
            sender.arm_reordering_timer(0, wait);
            sender.deadline_lower_bound()
        };
        assert_eq!(deadline(20 * MILLISECOND), 22 * MILLISECOND);
        assert_eq!(deadline(279 * MILLISECOND), 280 * MILLISECOND, "srtt + 200 ms");
    }
}
