//! Events of a sender, which counts bytes, as events of packets for the statistics of a simulation.

use super::recovery_phase::{PhaseName, RecoveryPhase};
use super::sender::Sender;
use super::stack_options::ModernTcpConfig;
use super::window::INFINITE_SSTHRESH;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

/// State of a fast recovery as reported to probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedRecovery {
    None,
    /// Recovery has begun; its first retransmission was not yet sent.
    Begun,
    Repairing,
}

impl ReportedRecovery {
    /// Reports a retransmission, except for the first retransmission of a recovery.
    #[inline]
    pub(super) fn report_retransmission(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        match self {
            Self::None => (),
            Self::Begun => *self = Self::Repairing,
            Self::Repairing => probe.on_tcp_event(now, TcpEvent::PartialAck),
        }
    }

    /// Ends the reported recovery when the recovery phase ends, or when all data is acknowledged.
    pub(super) fn report_end(
        &mut self,
        now: Nanos,
        phase: RecoveryPhase,
        is_finished: bool,
        probe: &mut impl TcpProbe,
    ) {
        match phase.name() {
            PhaseName::Recovery if !is_finished => return,
            PhaseName::Loss => (),
            _ => probe.on_tcp_event(now, TcpEvent::Recovered { burst: 0 }),
        }
        *self = Self::None;
    }
}

/// State of the window of a sender.
#[inline(always)]
pub(super) fn window_event(sender: &Sender, tcp: &ModernTcpConfig) -> TcpEvent {
    let (cwnd, ssthresh) = (sender.cwnd(), sender.ssthresh());
    let allowed = tcp.stack.receiving.buffer / u64::from(tcp.stack.mss);
    TcpEvent::Window {
        cwnd,
        ssthresh: if ssthresh == INFINITE_SSTHRESH { u32::MAX } else { ssthresh },
        flight: sender.in_flight(),
        window: u32::try_from(allowed).map_or(cwnd, |allowed| allowed.min(cwnd)),
    }
}

/// Forwards the events of a sender to the probe of its file. The sender does not know where a file
/// ends.
pub(super) struct PacketEventProbe<'a, P> {
    pub probe: &'a mut P,
    /// Packets written.
    pub size: u32,
    /// Whether the session is still being opened.
    pub is_opening: bool,
    pub recovery: &'a mut ReportedRecovery,
}

impl<P: TcpProbe> TcpProbe for PacketEventProbe<'_, P> {
    #[inline(always)]
    fn on_tcp_event(&mut self, now: Nanos, event: TcpEvent) {
        match event {
            TcpEvent::RttSample { .. } => self.probe.on_tcp_event(now, event),
            event => self.forward_rare_event(now, event),
        }
    }
}

impl<P: TcpProbe> PacketEventProbe<'_, P> {
    #[inline(never)]
    fn forward_rare_event(&mut self, now: Nanos, mut event: TcpEvent) {
        if self.is_opening {
            // Flights of TLS do not count as sent data, so their losses and timeouts do not either.
            return;
        }
        match &mut event {
            TcpEvent::FastRetransmit { .. } => *self.recovery = ReportedRecovery::Begun,
            TcpEvent::Timeout { number, left, .. } => *left = self.size.saturating_sub(*number),
            _ => (),
        }
        self.probe.on_tcp_event(now, event);
    }
}
