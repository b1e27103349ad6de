//! Reno with instantaneous loss detection, as in the max-plus model of TCP (Baccelli and Hong 2000;
//! Baccelli, Hong and Liu, INRIA report 4154, sections 4 and 5).
//!
//! The sender is notified of each loss immediately, so there are no duplicate acknowledgements and
//! no recovery: a lost packet is no longer outstanding, and the window allows another packet
//! instead. A packet may be sent while fewer packets are outstanding than the window allows, which
//! is `x(0, n) = max(x(K+1, n - v(n-1)) + d, ...)` without losses. A file is complete when as many
//! packets are acknowledged as it has.
//!
//! The window grows as in Reno and is halved at a loss. Rules that the reports leave open are
//! options: [`InstantLossRules`]. The timeout follows RFC 6298, with a sample from every
//! acknowledgement; a restart after an idle time resets the samples together with the window.
//!
//! A timeout retransmits the packet that caused it: in Tables 3 to 6 of the report, 1 - goodput /
//! send rate equals losses plus timeouts. The original is still in flight, so the copy only uses
//! capacity: it is not delivered again, has no acknowledgement and no loss feedback.

use super::{IdleRestart, IdleTime, PacketsToSend, RtoEstimator, SendingEnd, TcpConfig};
use crate::tcp_event::{TcpEvent, TcpProbe, TimeoutState};
use serde::Deserialize;
use tcpcast_link::ring_buffer::RingBuffer;
use tcpcast_link::time::{NEVER, Nanos};

/// Acknowledgements that let the window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowGrowthCondition {
    /// All acknowledgements.
    EveryAck,
    /// Acknowledgements of packets sent after the last halving.
    AfterHalving,
}

/// Options of instantaneous loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstantLossRules {
    /// Acknowledgements that let the window grow.
    pub growth: WindowGrowthCondition,
    /// Whether half a window is rounded down to whole packets.
    pub whole_halves: bool,
    /// Whether the window is halved only for losses of packets sent after the last halving.
    pub halve_once: bool,
    /// Whether there is a timeout: when the oldest outstanding packet is older than the
    /// retransmission timeout, the window becomes one packet.
    pub timeout: bool,
    /// Whether a timeout retransmits this packet.
    pub retransmit: bool,
}

impl InstantLossRules {
    /// Simplest rules: growth at every acknowledgement, no timeout.
    pub const SIMPLEST: Self = Self {
        growth: WindowGrowthCondition::EveryAck,
        whole_halves: false,
        halve_once: false,
        timeout: false,
        retransmit: false,
    };

    /// Window and threshold after a halving. RFC 5681, equation (4), keeps the threshold at two
    /// packets or more; a window of one packet grows to two in slow start.
    #[must_use]
    pub fn halved_window_and_ssthresh(self, cwnd: f64) -> (f64, f64) {
        let half = if self.whole_halves { libm::floor(cwnd / 2.0) } else { cwnd / 2.0 };
        (half.max(1.0), half.max(2.0))
    }
}

/// Send time of a packet that is no longer outstanding.
const NOT_OUTSTANDING: Nanos = NEVER;

/// A sender with instantaneous loss feedback.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct InstantFeedbackSender {
    deadline: Nanos,
    /// Send times of packets from the oldest outstanding one to the newest, [`NOT_OUTSTANDING`] for
    /// packets that are no longer outstanding.
    sent_at: RingBuffer<Nanos>,
    cwnd: f64,
    ssthresh: f64,
    rto: RtoEstimator,
    size: u32,
    acked: u32,
    /// Number of the next packet; packets of each transfer count from 1.
    next: u32,
    out: u32,
    /// Packets with lower numbers were sent before the last halving.
    halved: u32,
    /// Packets with lower numbers are not timed: the timer has expired since they were sent.
    timed_out: u32,
}

impl Default for InstantFeedbackSender {
    fn default() -> Self {
        Self {
            size: 0,
            acked: 0,
            next: 1,
            out: 0,
            halved: 0,
            timed_out: 0,
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            sent_at: RingBuffer::default(),
            rto: RtoEstimator::default(),
            deadline: NEVER,
        }
    }
}

impl InstantFeedbackSender {
    /// Resets window and threshold for a new connection.
    fn reset_window(&mut self, tcp: &TcpConfig) {
        self.cwnd = f64::from(tcp.initial_window);
        self.ssthresh = f64::from(tcp.initial_ssthresh);
    }

    fn begin_file(&mut self, now: Nanos, size: u32, tcp: &TcpConfig) -> PacketsToSend {
        debug_assert!(self.out == 0, "no packet is outstanding when a transfer begins");
        (self.size, self.acked, self.next) = (size, 0, 1);
        (self.halved, self.timed_out) = (0, 0);
        while !self.sent_at.is_empty() {
            self.sent_at.pop_existing();
        }
        self.send_packets_in_window(now, tcp)
    }

    /// The window in whole packets.
    fn window_packets(&self, tcp: &TcpConfig) -> u32 {
        // The cast saturates.
        (self.cwnd as u32).min(tcp.receiver_window)
    }

    fn send_packets_in_window(&mut self, now: Nanos, tcp: &TcpConfig) -> PacketsToSend {
        let room = self.window_packets(tcp).saturating_sub(self.out);
        let count = room.min(self.size - self.acked - self.out);
        let from = self.next;
        (0..count).for_each(|_| self.sent_at.push(now));
        self.next += count;
        self.out += count;
        self.set_timer(now, tcp);
        PacketsToSend { retransmit: 0, from, count, fresh_from: from }
    }

    /// Removes a packet from the outstanding packets. Returns its send time, or [`None`] if the
    /// packet was not outstanding.
    fn remove_outstanding(&mut self, number: u32) -> Option<Nanos> {
        let index = number.checked_sub(self.oldest_outstanding_number())? as usize;
        let sent_at = self.sent_at.replace_at(index, NOT_OUTSTANDING)?;
        if sent_at == NOT_OUTSTANDING {
            return None;
        }
        while self.sent_at.first() == Some(&NOT_OUTSTANDING) {
            self.sent_at.pop_existing();
        }
        self.out -= 1;
        Some(sent_at)
    }

    /// Sets the timer for the oldest outstanding packet sent since the last expiry.
    fn set_timer(&mut self, now: Nanos, tcp: &TcpConfig) {
        let timed = tcp.instant.is_some_and(|rules| rules.timeout);
        let skipped = self.packets_before_last_timeout();
        let first = if skipped == 0 {
            self.sent_at.first()
        } else {
            self.sent_at.iter_from(skipped).find(|sent_at| **sent_at != NOT_OUTSTANDING)
        };
        self.deadline = match first {
            // If the timeout has become shorter, the expiry may lie in the past.
            Some(sent_at) if timed => now.max(sent_at + self.rto.rto()),
            _ => NEVER,
        };
    }

    fn oldest_outstanding_number(&self) -> u32 {
        self.next - self.sent_at.len() as u32
    }

    /// Entries of `sent_at` that were sent before the last expiry.
    fn packets_before_last_timeout(&self) -> usize {
        self.timed_out.saturating_sub(self.oldest_outstanding_number()) as usize
    }

    /// Number of the oldest outstanding packet sent since the last expiry.
    fn oldest_sent_after_timeout(&self) -> u32 {
        let skipped = self.packets_before_last_timeout();
        let gone = self
            .sent_at
            .iter_from(skipped)
            .take_while(|sent_at| **sent_at == NOT_OUTSTANDING)
            .count();
        self.oldest_outstanding_number() + (skipped + gone) as u32
    }

    fn grow_on_ack(&mut self, number: u32, tcp: &TcpConfig, rules: InstantLossRules) {
        if rules.growth == WindowGrowthCondition::AfterHalving && number < self.halved {
            return;
        }
        let more = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        self.cwnd = (self.cwnd + more).min(f64::from(tcp.receiver_window));
    }

    /// Halves the window, to at least one packet, with a threshold of at least two.
    fn halve_on_loss(&mut self, rules: InstantLossRules) {
        (self.cwnd, self.ssthresh) = rules.halved_window_and_ssthresh(self.cwnd);
        self.halved = self.next;
    }

    fn report_window(&self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) {
        let event = TcpEvent::Window {
            cwnd: self.cwnd as u32,
            ssthresh: self.ssthresh as u32,
            flight: self.out,
            window: self.window_packets(tcp),
        };
        probe.on_tcp_event(now, event);
    }
}

impl SendingEnd for InstantFeedbackSender {
    fn start_file_on_new_connection(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        self.rto.start_without_sample(tcp);
        self.reset_window(tcp);
        let sent = self.begin_file(now, size, tcp);
        self.report_window(now, tcp, probe);
        sent
    }

    fn send_file_on_open_connection(
        &mut self,
        now: Nanos,
        more: u32,
        idle: IdleTime,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        if tcp.idle_restart.is_restart_due(idle, self.rto.rto()) {
            match tcp.idle_restart {
                IdleRestart::AfterTimeout => {
                    self.cwnd = self.cwnd.min(f64::from(tcp.initial_window));
                }
                IdleRestart::After(_) | IdleRestart::Never => {
                    self.reset_window(tcp);
                    self.rto.start_without_sample(tcp);
                }
            }
            probe.on_tcp_event(now, TcpEvent::IdleRestart);
        }
        let sent = self.begin_file(now, more, tcp);
        self.report_window(now, tcp, probe);
        sent
    }

    fn is_finished(&self) -> bool {
        self.acked == self.size
    }

    /// Always true: the packets of each transfer are numbered from 1.
    fn has_packet_numbers_left(&self, _more: u32) -> bool {
        true
    }

    fn timer_deadline(&self) -> Nanos {
        self.deadline
    }

    fn abandon_connection(&mut self) {
        self.deadline = NEVER;
    }

    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let (Some(sent_at), Some(rules)) = (self.remove_outstanding(ack), tcp.instant) else {
            return PacketsToSend::default();
        };
        self.acked += 1;
        self.rto.add_sample(now - sent_at, tcp);
        probe.on_tcp_event(now, TcpEvent::RttSample { rtt: now - sent_at });
        self.grow_on_ack(ack, tcp, rules);
        let sent = self.send_packets_in_window(now, tcp);
        self.report_window(now, tcp, probe);
        sent
    }

    fn on_timer(
        &mut self,
        now: Nanos,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let Some(rules) = tcp.instant else { return PacketsToSend::default() };
        let number = self.oldest_sent_after_timeout();
        let timeout = TcpEvent::Timeout {
            number,
            left: self.size - self.acked - self.out,
            state: TimeoutState {
                all_sent: self.acked + self.out == self.size,
                window: self.window_packets(tcp),
                slow_start: self.cwnd < self.ssthresh,
                repeated: false,
                in_recovery: false,
                rto: self.rto.rto(),
            },
        };
        probe.on_tcp_event(now, timeout);
        self.halve_on_loss(rules);
        self.cwnd = 1.0;
        self.timed_out = self.next;
        let mut sent = self.send_packets_in_window(now, tcp);
        sent.retransmit = if rules.retransmit { number } else { 0 };
        self.report_window(now, tcp, probe);
        sent
    }

    fn on_loss(
        &mut self,
        now: Nanos,
        number: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let (Some(_), Some(rules)) = (self.remove_outstanding(number), tcp.instant) else {
            return PacketsToSend::default();
        };
        if !rules.halve_once || number >= self.halved {
            probe.on_tcp_event(now, TcpEvent::FastRetransmit { window: self.window_packets(tcp) });
            self.halve_on_loss(rules);
        }
        let sent = self.send_packets_in_window(now, tcp);
        self.report_window(now, tcp, probe);
        sent
    }
}

#[cfg(test)]
#[path = "max_plus_tests.rs"]
mod tests;
