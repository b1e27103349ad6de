//! Sending end: sequence numbers, loss detection, retransmission and the timer.
//!
//! ```text
//!            threshold of duplicate acknowledgements, una > guard
//!        Open ------------------------------------------------> Recovery
//!         ^  ^                                                  |   |  ^
//!         |  |   Reno: any new ack; NewReno: ack > recover      |   |  | NewReno: partial ack,
//!         |  +--------------------------------------------------+   +--+ retransmit and deflate
//!         |                                                     |
//!         +------------- timeout: cwnd = 1, go back to una <----+--- also from Open
//! ```

use super::cc::CongestionControl;
use super::packets_to_send::PacketsToSend;
use super::rto::RtoEstimator;
use crate::tcp_event::{TcpEvent, TcpProbe, TimeoutState};
use crate::{
    BackoffEndEvent, IdleRestart, IdleTime, LimitedTransmit, LossRecovery, SendingEnd, TcpConfig,
    TimerRestartEvent,
};
use tcpcast_link::time::{NEVER, Nanos};

/// Maximum number of packets that limited transmit sends beyond cwnd (RFC 3042, section 2).
const MAX_LIMITED_TRANSMIT: u32 = 2;

/// Value of `timed` if no packet is being timed; no acknowledgement exceeds this number.
const NOT_TIMED: u32 = u32::MAX;

/// Value of `timed` if the next acknowledgement of new data ends the back-off and no packet is
/// timed before; every acknowledgement exceeds this number.
const BACK_OFF_PENDING: u32 = 0;

/// Value of `recover` if a recovery ended with the file and the window is still inflated.
const ENDED_WITH_FILE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryPhase {
    Open,
    Recovery,
}

/// Sender of one source. Packets are numbered from 1.
#[derive(Clone, Debug)]
pub struct Sender<C> {
    una: u32,
    next: u32,
    fresh: u32,
    size: u32,
    /// Last packet sent when recovery began; an acknowledgement beyond this packet ends recovery.
    recover: u32,
    /// Last packet sent before the last timeout. Duplicates of acknowledgements up to this packet result
    /// from packets sent twice, so they indicate no loss. 0 without a timeout, or after repeated ones.
    guard: u32,
    duplicates: u32,
    timed_out: u32,
    timed: u32,
    timed_at: Nanos,
    deadline: Nanos,
    rto: RtoEstimator,
    cc: C,
    phase: RecoveryPhase,
}

impl<C: CongestionControl + Default> Default for Sender<C> {
    fn default() -> Self {
        Self {
            una: 1,
            next: 1,
            fresh: 1,
            size: 0,
            recover: 0,
            guard: 0,
            duplicates: 0,
            timed_out: 0,
            timed: NOT_TIMED,
            timed_at: 0,
            deadline: NEVER,
            rto: RtoEstimator::default(),
            cc: C::default(),
            phase: RecoveryPhase::Open,
        }
    }
}

impl<C: CongestionControl + Default> SendingEnd for Sender<C> {
    fn start_file_on_new_connection(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        *self = Self { size, ..Self::default() };
        self.rto.start_without_sample(tcp);
        self.cc.start_connection(tcp);
        let sent = self.send_packets_in_window(now, tcp);
        self.report_window(now, tcp, probe);
        sent
    }

    /// Sends `more` packets on the same connection: window, round-trip estimate and numbers
    /// continue.
    fn send_file_on_open_connection(
        &mut self,
        now: Nanos,
        more: u32,
        idle: IdleTime,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        debug_assert!(self.is_finished(), "transfers of a connection do not overlap");
        if self.recover == ENDED_WITH_FILE {
            self.cc.on_recovered();
            self.recover = 0;
        }
        if tcp.idle_restart.is_restart_due(idle, self.rto.rto()) {
            match tcp.idle_restart {
                IdleRestart::AfterTimeout => self.cc.on_idle(tcp),
                IdleRestart::After(_) | IdleRestart::Never => self.cc.start_connection(tcp),
            }
            probe.on_tcp_event(now, TcpEvent::IdleRestart);
        }
        self.size += more;
        let sent = self.send_packets_in_window(now, tcp);
        self.report_window(now, tcp, probe);
        sent
    }

    fn has_packet_numbers_left(&self, more: u32) -> bool {
        more < u32::MAX - 1 - self.size
    }

    #[inline(always)]
    fn is_finished(&self) -> bool {
        self.una > self.size
    }

    #[inline(always)]
    fn timer_deadline(&self) -> Nanos {
        self.deadline
    }

    fn packets_in_flight(&self) -> u32 {
        self.fresh.saturating_sub(self.una)
    }

    fn acked_packets(&self) -> u64 {
        u64::from(self.una) - 1
    }

    fn abandon_connection(&mut self) {
        self.deadline = NEVER;
        self.fresh = self.una;
    }

    /// An acknowledgement arrives; `ack` is the next packet that the receiver expects.
    #[inline(always)]
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let sent = if ack > self.una {
            self.on_new_ack(now, ack, tcp, probe)
        } else if ack == self.una && self.next > self.una {
            self.on_duplicate_ack(now, tcp, probe)
        } else {
            return PacketsToSend::default();
        };
        self.report_window(now, tcp, probe);
        sent
    }

    /// The retransmission timer expired: go back to the first unacknowledged packet.
    fn on_timer(
        &mut self,
        now: Nanos,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let repeated = self.timed_out == self.una;
        probe.on_tcp_event(
            now,
            TcpEvent::Timeout {
                number: self.una,
                left: self.size - self.una,
                state: TimeoutState {
                    all_sent: self.fresh > self.size,
                    window: self.send_window(tcp),
                    slow_start: self.cc.in_slow_start(),
                    repeated,
                    in_recovery: self.phase == RecoveryPhase::Recovery,
                    rto: self.rto.rto(),
                },
            },
        );
        self.go_back_n(tcp, repeated);
        self.timed_out = self.una;
        self.timed = match tcp.backoff_until {
            BackoffEndEvent::Sample => NOT_TIMED,
            BackoffEndEvent::Ack => BACK_OFF_PENDING,
        };
        self.rto.double_timeout(tcp);
        self.deadline = now + self.rto.rto();
        let sent = self.send_packets_in_window(now, tcp);
        self.report_window(now, tcp, probe);
        sent
    }
}

impl<C: CongestionControl + Default> Sender<C> {
    /// Packets sent and not yet acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn outstanding_packets(&self) -> u32 {
        self.next - self.una
    }

    /// Flight size that a loss halves: the outstanding packets, at most one window.
    ///
    /// After a long recovery, more than a window can be outstanding, mostly packets that the
    /// receiver holds. During recovery, packets that have left the network inflate the window.
    /// Halving these would end the recovery with a burst of many windows; ns-2 uses the same limit.
    /// Packets of limited transmit do not count either (RFC 5681, section 3.2, step 2).
    fn flight_to_halve(&self, tcp: &TcpConfig) -> u32 {
        let window = match self.phase {
            RecoveryPhase::Open => self.send_window(tcp),
            RecoveryPhase::Recovery => self.send_window(tcp).min(self.cc.ssthresh()),
        };
        self.outstanding_packets().min(window)
    }

    /// The minimum of cwnd and the receiver window.
    #[inline(always)]
    #[must_use]
    pub fn send_window(&self, tcp: &TcpConfig) -> u32 {
        self.cc.cwnd().min(tcp.receiver_window)
    }

    #[inline(always)]
    fn on_new_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let acked = ack - self.una;
        self.una = ack;
        self.next = self.next.max(ack);
        self.duplicates = 0;
        probe.on_tcp_event(now, TcpEvent::Acked { packets: acked });
        if ack > self.timed {
            if self.timed == BACK_OFF_PENDING {
                self.rto.end_back_off(tcp);
            } else {
                self.rto.add_sample(now - self.timed_at, tcp);
                probe.on_tcp_event(now, TcpEvent::RttSample { rtt: now - self.timed_at });
            }
            self.timed = NOT_TIMED;
        }
        if self.is_finished() {
            self.deadline = NEVER;
            if self.phase == RecoveryPhase::Recovery {
                self.phase = RecoveryPhase::Open;
                self.recover = ENDED_WITH_FILE;
                probe.on_tcp_event(now, TcpEvent::Recovered { burst: 0 });
            }
            return PacketsToSend::default();
        }
        if self.phase == RecoveryPhase::Recovery {
            return self.on_ack_in_recovery(now, acked, tcp, probe);
        }
        self.cc.on_ack();
        if tcp.timer_restart == TimerRestartEvent::Ack {
            self.deadline = now + self.rto.rto();
        }
        self.send_packets_in_window(now, tcp)
    }

    fn on_ack_in_recovery(
        &mut self,
        now: Nanos,
        acked: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        match tcp.recovery {
            LossRecovery::NewReno { restart_timer } if self.una <= self.recover => {
                self.cc.on_partial_ack(acked);
                if restart_timer {
                    self.deadline = now + self.rto.rto();
                }
                probe.on_tcp_event(now, TcpEvent::PartialAck);
                // After a timeout the run of packets may start with the packet retransmitted here.
                self.next = self.next.max(self.una + 1);
                let sent = self.send_packets_in_window(now, tcp);
                PacketsToSend { retransmit: self.una, ..sent }
            }
            _ => {
                self.cc.on_recovered();
                self.phase = RecoveryPhase::Open;
                self.deadline = now + self.rto.rto();
                let sent = self.send_packets_in_window(now, tcp);
                probe.on_tcp_event(now, TcpEvent::Recovered { burst: sent.count });
                sent
            }
        }
    }

    // Out of line, which makes the event loop faster: few acknowledgements are duplicates.
    #[inline(never)]
    fn on_duplicate_ack(
        &mut self,
        now: Nanos,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.phase == RecoveryPhase::Recovery {
            self.cc.on_further_duplicate();
            return self.send_packets_in_window(now, tcp);
        }
        if self.una <= self.guard {
            return PacketsToSend::default();
        }
        let threshold = self.duplicate_threshold(tcp);
        if self.duplicates < threshold {
            return self.send_limited_transmit(now, tcp);
        }
        probe.on_tcp_event(now, TcpEvent::FastRetransmit { window: self.send_window(tcp) });
        if self.timed != BACK_OFF_PENDING {
            self.timed = NOT_TIMED;
        }
        self.deadline = now + self.rto.rto();
        if tcp.recovery == LossRecovery::Tahoe {
            self.go_back_n(tcp, false);
            return self.send_packets_in_window(now, tcp);
        }
        self.cc.on_loss(self.flight_to_halve(tcp), threshold);
        self.recover = self.fresh - 1;
        self.phase = RecoveryPhase::Recovery;
        // RFC 5681, section 3.2, step 5: the inflated window may already allow new packets, since
        // as many packets have left the network as duplicates arrived. ns-2 also sends them.
        let all_sent_once = self.next == self.fresh;
        let sent = if all_sent_once {
            self.send_packets_in_window(now, tcp)
        } else {
            PacketsToSend::default()
        };
        PacketsToSend { retransmit: self.una, ..sent }
    }

    /// Number of duplicates that indicate a loss of the first unacknowledged packet.
    fn duplicate_threshold(&self, tcp: &TcpConfig) -> u32 {
        // A bulk flow never reaches its end: its size is close to `u32::MAX`.
        if self.una > self.size.saturating_sub(tcp.duplicate_threshold) {
            tcp.last_packets_threshold
        } else {
            tcp.duplicate_threshold
        }
    }

    /// Packets sent for a duplicate below the threshold: RFC 3042, section 2. cwnd does not change.
    ///
    /// Sends only packets that were never sent, so nothing while packets are retransmitted after a
    /// timeout. Not called for duplicates up to `guard`, which do not indicate a loss.
    fn send_limited_transmit(&mut self, now: Nanos, tcp: &TcpConfig) -> PacketsToSend {
        let max = match (tcp.limited_transmit, self.duplicates) {
            (LimitedTransmit::EachDuplicate, 1 | 2) => 1,
            (LimitedTransmit::OnSecond, 2) => 2,
            _ => return PacketsToSend::default(),
        };
        if self.next < self.fresh {
            return PacketsToSend::default();
        }
        let filled = self.send_window(tcp).min(tcp.max_burst);
        debug_assert!(self.next > self.size || self.outstanding_packets() >= filled);
        let beyond = self.cc.cwnd().saturating_add(MAX_LIMITED_TRANSMIT).min(tcp.receiver_window);
        let limit = u64::from(self.una) + u64::from(beyond);
        self.send_packets_below(now, limit.min(u64::from(self.next) + max), tcp)
    }

    /// Goes back to the first unacknowledged packet, with a window of one packet.
    fn go_back_n(&mut self, tcp: &TcpConfig, repeated: bool) {
        self.cc.on_timeout(self.flight_to_halve(tcp), repeated);
        // RFC 6582, section 3.2, step 4: duplicates up to the last packet sent before are caused by
        // packets sent twice. The rule ends at the second timeout of the same packet (Engset
        // report, section 3.1).
        self.guard = if repeated { 0 } else { self.fresh };
        self.next = self.una;
        self.phase = RecoveryPhase::Open;
        self.duplicates = 0;
    }

    /// Sends all packets that the window allows.
    #[inline(always)]
    fn send_packets_in_window(&mut self, now: Nanos, tcp: &TcpConfig) -> PacketsToSend {
        self.send_packets_below(now, u64::from(self.una) + u64::from(self.send_window(tcp)), tcp)
    }

    /// Sends all packets below `limit`, up to the end of the file, at most `max_burst`.
    #[inline(always)]
    fn send_packets_below(&mut self, now: Nanos, limit: u64, tcp: &TcpConfig) -> PacketsToSend {
        let last = self.size.min(self.next.saturating_add(tcp.max_burst - 1));
        let end = limit.min(u64::from(last) + 1) as u32;
        if end <= self.next {
            return PacketsToSend::default();
        }
        let sent = PacketsToSend {
            retransmit: 0,
            from: self.next,
            count: end - self.next,
            fresh_from: self.fresh,
        };
        self.next = end;
        if self.phase == RecoveryPhase::Open {
            if self.timed == NOT_TIMED && end > self.fresh {
                // Karn's rule: only first transmissions are timed, one packet at a time.
                self.timed = self.fresh;
                self.timed_at = now;
            }
            if tcp.timer_restart == TimerRestartEvent::Send || self.deadline == NEVER {
                self.deadline = now + self.rto.rto();
            }
        }
        self.fresh = self.fresh.max(end);
        sent
    }

    #[inline(always)]
    fn report_window(&self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) {
        let event = TcpEvent::Window {
            cwnd: self.cc.cwnd(),
            ssthresh: self.cc.ssthresh(),
            flight: self.outstanding_packets(),
            window: self.send_window(tcp),
        };
        probe.on_tcp_event(now, event);
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
