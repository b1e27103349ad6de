//! Sending end for networks of numbered packets. The network counts packets with data from 1, the
//! ends count bytes from 1, and this module converts between them. Packets without data (SYN-ACK,
//! and a FIN sent separately) have number 0.

mod server_handshake;

use self::server_handshake::ServerHandshake;
use super::handshake::HandshakeKind;
use super::outgoing_packet::{OutgoingPacket, OutgoingRun};
use super::packet_header::{AckHeader, DataHeader};
use super::recovery_phase::PhaseName;
use super::segment::{PacketToSend, SendReason, Timestamps, timestamp_at};
use super::sender::Sender;
use super::sender_event::{SenderEvent, SenderProbe};
use super::stack_options::ModernTcpConfig;
use super::transmit_fast_path::FullPacketRun;
use super::window::INFINITE_SSTHRESH;
use crate::file_size::FileSize;
use crate::packet_label::PacketKind;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

/// Sending end of a source.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct PacketSender {
    /// State of the handshake until the file begins.
    handshake: Option<Box<ServerHandshake>>,
    /// Packets written by the application, and acknowledged packets of files.
    size: u32,
    acked: u32,
    /// Most recent timestamp of the receiver.
    echo: u32,
    /// The application closes the connection after writing.
    closing: bool,
    recovery: ReportedRecovery,
    pub(super) sender: Sender,
}

/// State of a fast recovery as reported to probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportedRecovery {
    None,
    /// Recovery has begun; its first retransmission was not yet sent.
    Begun,
    Repairing,
}

impl PacketSender {
    /// Starts a connection that sends a file; `seed` determines its random choices.
    pub fn start_connection(
        now: Nanos,
        file: FileSize,
        seed: u64,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Self {
        let mut end = Self {
            sender: Sender::new(now, 1, seed, &tcp.stack),
            size: 0,
            acked: 0,
            closing: false,
            echo: 0,
            recovery: ReportedRecovery::None,
            handshake: None,
        };
        end.open_connection(now, file, seed, tcp, probe);
        end
    }

    /// Starts a new connection in the same memory.
    pub fn restart_connection(
        &mut self,
        now: Nanos,
        file: FileSize,
        seed: u64,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let Self { sender, size, acked, closing, echo, recovery, handshake } = self;
        sender.restart_connection(now, seed, &tcp.stack);
        (*size, *acked, *closing, *echo) = (0, 0, false, 0);
        (*recovery, *handshake) = (ReportedRecovery::None, None);
        self.open_connection(now, file, seed, tcp, probe);
    }

    fn open_connection(
        &mut self,
        now: Nanos,
        file: FileSize,
        seed: u64,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        if tcp.handshake != HandshakeKind::None {
            return self.listen(file, seed);
        }
        establish_connection(&mut self.sender, now, Some(tcp.rtt), tcp);
        self.write_file(now, file, tcp, probe);
    }

    /// The application writes a file, and closes the connection if each connection is used for one
    /// file.
    ///
    /// As in Linux, FIN is set on the last packet if this packet has not been sent yet; otherwise
    /// FIN is sent separately.
    pub fn write_file(
        &mut self,
        now: Nanos,
        file: FileSize,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        self.write_data(now, file, tcp, probe);
        self.closing = tcp.closes;
    }

    /// The application writes data.
    pub(super) fn write_data(
        &mut self,
        now: Nanos,
        data: FileSize,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        // An endless flow can also begin after flights of TLS.
        self.size = self.size.saturating_add(data.packets).min(u32::MAX - 1);
        let bytes = tcp.bytes_of_packets(data.packets) - u64::from(data.lacking);
        self.call_sender_with_probe(probe, |sender, probe| {
            sender.write_bytes(now, bytes, &tcp.stack, probe)
        });
    }

    /// Whether all data has been acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.sender.is_data_acknowledged() && !self.is_handshake_pending()
    }

    /// Numbers of data packets acknowledged and sent, including flights of TLS.
    #[inline(always)]
    fn acked_and_sent(&self) -> (u32, u32) {
        let flight = self.sender.flight();
        (flight.first_number().min(self.size), flight.next_number().min(self.size))
    }

    /// Whether enough packet numbers are left to send `more` packets.
    #[must_use]
    pub fn has_packet_numbers_left(&self, more: u32) -> bool {
        more < u32::MAX - 1 - self.size
    }

    /// Expiry of the timer, `NEVER` if it is off.
    #[inline(always)]
    #[must_use]
    pub fn timer_deadline(&self) -> Nanos {
        let opening = self.handshake.as_ref().and_then(|handshake| handshake.deadline());
        opening.unwrap_or_else(|| self.sender.deadline())
    }

    /// Lower bound of the deadline, which is cheaper to compute.
    #[inline(always)]
    #[must_use]
    pub fn deadline_lower_bound(&self) -> Nanos {
        let opening = self.handshake.as_ref().and_then(|handshake| handshake.deadline());
        opening.unwrap_or_else(|| self.sender.deadline_lower_bound())
    }

    /// Time at which the pacer allows the next packet, `NEVER` if none waits.
    #[inline(always)]
    #[must_use]
    pub fn next_paced_time(&self) -> Nanos {
        self.sender.next_paced_time()
    }

    /// Outstanding data packets; flights of TLS do not count.
    #[must_use]
    pub fn packets_in_flight(&self) -> u32 {
        if self.is_handshake_pending() {
            return 0;
        }
        let (acked, sent) = self.acked_and_sent();
        sent - acked
    }

    /// Acknowledged packets of files.
    #[must_use]
    pub fn acked_packets(&self) -> u64 {
        u64::from(self.acked)
    }

    /// An acknowledgement arrives.
    #[inline]
    pub fn on_ack(
        &mut self,
        now: Nanos,
        header: &AckHeader,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        self.echo = header.timestamps().map_or(0, |stamps| stamps.value);
        if (header.syn || self.is_handshake_pending())
            && self.on_handshake_packet(now, header, tcp, probe)
        {
            return;
        }
        let (before, _) = self.acked_and_sent();
        let ack = header.cumulative_ack_part(self.sender.una());
        let is_handled = !header.has_sack_blocks()
            && self.call_sender_with_probe(probe, |sender, probe| {
                sender.on_ack_fast_path(now, &ack, &tcp.stack, probe)
            });
        if !is_handled {
            self.on_ack_slow_path(now, header, tcp, probe);
        }
        let packets = self.acked_and_sent().0 - before;
        if packets > 0 && !self.is_handshake_pending() {
            self.acked += packets;
            probe.on_tcp_event(now, TcpEvent::Acked { packets });
            if tcp.closes && self.is_finished() {
                self.sender.abandon_connection();
            }
        }
        if self.recovery != ReportedRecovery::None {
            self.report_recovery(now, probe);
        }
        if self.is_handshake_pending() {
            self.on_client_messages(now, header.messages, tcp, probe);
        }
    }

    #[inline(never)]
    fn on_ack_slow_path(
        &mut self,
        now: Nanos,
        header: &AckHeader,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let ack = header.ack_for_sender(self.sender.una());
        if ack.ack <= self.sender.next_byte() {
            self.call_sender_with_probe(probe, |sender, probe| {
                sender.on_ack_slow_path(now, &ack, &tcp.stack, probe)
            });
        }
    }

    /// Ends the reported recovery when the recovery phase ends, or when the file ends.
    fn report_recovery(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        match self.sender.phase().name() {
            PhaseName::Recovery if !self.is_finished() => return,
            PhaseName::Loss => (),
            _ => probe.on_tcp_event(now, TcpEvent::Recovered { burst: 0 }),
        }
        self.recovery = ReportedRecovery::None;
    }

    /// The timer expired.
    pub fn on_timer(&mut self, now: Nanos, tcp: &ModernTcpConfig, probe: &mut impl TcpProbe) {
        if self.is_handshake_pending() && self.on_handshake_timer(tcp) {
            return;
        }
        self.call_sender_with_probe(probe, |sender, probe| {
            sender.on_deadline(now, &tcp.stack, probe)
        });
        if self.recovery != ReportedRecovery::None {
            self.report_recovery(now, probe);
        }
    }

    /// Returns the next packet to send now; call until [`None`].
    #[inline(always)]
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Option<OutgoingPacket> {
        if self.is_handshake_pending() {
            if let Some(header) = self.poll_syn_ack(now, tcp) {
                let short = Some(tcp.syn_bytes);
                return Some(OutgoingPacket { number: 0, kind: PacketKind::Data, header, short });
            }
        }
        // The sender publishes only windows here.
        let sent = self.sender.poll_transmit(now, &tcp.stack, &mut ());
        let Some(sent) = sent.or_else(|| self.close_and_send_fin(now, tcp)) else {
            self.report_window(now, tcp, probe);
            return None;
        };
        Some(self.outgoing_packet(now, &sent, tcp, probe))
    }

    /// Whether there is certainly nothing to send.
    #[inline(always)]
    pub(crate) fn report_window_if_idle(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> bool {
        let is_idle = !self.is_handshake_pending()
            && !self.closing
            && self.sender.stop_waiting_if_idle(&tcp.stack);
        if is_idle {
            self.report_window(now, tcp, probe);
        }
        is_idle
    }

    /// Returns a run of packets with consecutive numbers, possibly empty, instead of repeated calls
    /// of [`PacketSender::poll_transmit`]. Unless the run ends the burst, and after [`None`], call
    /// that method next.
    #[inline(always)]
    pub(crate) fn poll_packet_run(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Option<OutgoingRun> {
        if self.is_handshake_pending() {
            return None;
        }
        let FullPacketRun { first, packets, push, ends } =
            self.sender.transmit_full_packet_run(now, &mut self.closing, &tcp.stack)?;
        if ends {
            self.report_window(now, tcp, probe);
        }
        let stamps = Timestamps { value: timestamp_at(now), echo: self.echo };
        let header = DataHeader::new(&first, stamps, tcp);
        let number = first.number + 1;
        let first = OutgoingPacket { number, kind: PacketKind::Data, header, short: None };
        Some(OutgoingRun { first, packets, push, ends })
    }

    /// Sends FIN if the application has closed the connection and all data allowed was sent.
    #[inline(always)]
    fn close_and_send_fin(&mut self, now: Nanos, tcp: &ModernTcpConfig) -> Option<PacketToSend> {
        if self.closing { self.poll_fin(now, tcp) } else { None }
    }

    #[inline(never)]
    fn poll_fin(&mut self, now: Nanos, tcp: &ModernTcpConfig) -> Option<PacketToSend> {
        self.closing = false;
        self.sender.close_stream();
        self.sender.poll_transmit(now, &tcp.stack, &mut ())
    }

    /// Converts a packet for the network.
    #[inline(always)]
    fn outgoing_packet(
        &mut self,
        now: Nanos,
        sent: &PacketToSend,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> OutgoingPacket {
        // The receiver reads immediately, so its window is never closed while nothing is
        // outstanding.
        debug_assert!(sent.sending != SendReason::WindowProbe);
        let kind = match sent.sending {
            SendReason::New => PacketKind::Data,
            SendReason::Retransmission | SendReason::WindowProbe => PacketKind::Retransmission,
        };
        if kind == PacketKind::Retransmission {
            self.report_retransmission(now, probe);
        }
        let stamps = Timestamps { value: timestamp_at(now), echo: self.echo };
        let header = DataHeader::new(sent, stamps, tcp);
        let number = if sent.len > 0 { sent.number + 1 } else { 0 };
        let short = header.is_short().then(|| tcp.packet_length(sent.len));
        OutgoingPacket { number, kind, header, short }
    }

    /// Reports a retransmission, except for the first retransmission of a recovery.
    #[inline]
    fn report_retransmission(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        match self.recovery {
            ReportedRecovery::None => (),
            ReportedRecovery::Begun => self.recovery = ReportedRecovery::Repairing,
            ReportedRecovery::Repairing => probe.on_tcp_event(now, TcpEvent::PartialAck),
        }
    }

    #[inline(always)]
    fn report_window(&self, now: Nanos, tcp: &ModernTcpConfig, probe: &mut impl TcpProbe) {
        let (cwnd, ssthresh) = (self.sender.cwnd(), self.sender.ssthresh());
        let allowed = tcp.stack.receiving.buffer / u64::from(tcp.stack.mss);
        let event = TcpEvent::Window {
            cwnd,
            ssthresh: if ssthresh == INFINITE_SSTHRESH { u32::MAX } else { ssthresh },
            flight: self.sender.in_flight(),
            window: u32::try_from(allowed).map_or(cwnd, |allowed| allowed.min(cwnd)),
        };
        probe.on_tcp_event(now, event);
    }

    /// Calls the sender with a probe that forwards its events.
    #[inline(always)]
    fn call_sender_with_probe<P: TcpProbe, T>(
        &mut self,
        probe: &mut P,
        action: impl FnOnce(&mut Sender, &mut PacketProbeAdapter<'_, P>) -> T,
    ) -> T {
        let adapter = &mut PacketProbeAdapter {
            probe,
            size: self.size,
            handshake: self.handshake.as_deref(),
            recovery: &mut self.recovery,
        };
        action(&mut self.sender, adapter)
    }
}

/// Forwards the events of a sender, converted to packets.
struct PacketProbeAdapter<'a, P> {
    probe: &'a mut P,
    size: u32,
    handshake: Option<&'a ServerHandshake>,
    recovery: &'a mut ReportedRecovery,
}

impl<P: TcpProbe> SenderProbe for PacketProbeAdapter<'_, P> {
    #[inline(always)]
    fn on_sender_event(&mut self, now: Nanos, event: SenderEvent) {
        match event {
            SenderEvent::RttSample { rtt } => {
                self.probe.on_tcp_event(now, TcpEvent::RttSample { rtt })
            }
            // The window is published at the end of a burst.
            SenderEvent::Window { .. } => (),
            event => self.forward_rare_event(now, event),
        }
    }
}

impl<P: TcpProbe> PacketProbeAdapter<'_, P> {
    #[inline(never)]
    fn forward_rare_event(&mut self, now: Nanos, event: SenderEvent) {
        if self.handshake.is_some() {
            // Flights of TLS do not count as sent data, so their losses and timeouts do not either.
            return;
        }
        match event {
            SenderEvent::Recovery { window } => {
                *self.recovery = ReportedRecovery::Begun;
                self.probe.on_tcp_event(now, TcpEvent::FastRetransmit { window });
            }
            SenderEvent::Timeout { first, state } => {
                let number = first + 1;
                let left = self.size.saturating_sub(number);
                self.probe.on_tcp_event(now, TcpEvent::Timeout { number, left, state });
            }
            SenderEvent::IdleRestart => self.probe.on_tcp_event(now, TcpEvent::IdleRestart),
            SenderEvent::LossProbe { retransmits } => {
                self.probe.on_tcp_event(now, TcpEvent::TailLossProbe { retransmits });
            }
            SenderEvent::Undone { after_timeout, .. } => {
                self.probe.on_tcp_event(now, TcpEvent::Undone { after_timeout });
            }
            // The end of a recovery is derived from phases.
            SenderEvent::Recovered
            | SenderEvent::CongestionEcho { .. }
            | SenderEvent::ProbeRepaired
            | SenderEvent::ReorderTimeout
            | SenderEvent::Lost { .. }
            | SenderEvent::SlowStartExit { .. }
            | SenderEvent::RttSample { .. }
            | SenderEvent::Window { .. } => (),
        }
    }
}

/// Establishes the connection with the receiver's window and, if measured, a round-trip time.
fn establish_connection(
    sender: &mut Sender,
    now: Nanos,
    rtt: Option<Nanos>,
    tcp: &ModernTcpConfig,
) {
    sender.on_established(now, rtt, tcp.stack.receiving.buffer, &tcp.stack);
    sender.init_window_update_seq(AckHeader::ACK_SEQUENCE);
}

#[cfg(test)]
#[path = "packet_sender_tests.rs"]
mod tests;
