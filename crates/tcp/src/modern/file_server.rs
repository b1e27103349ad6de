//! The application of a sending end: a server that writes files to its connection, after the flights
//! of TLS. The network numbers packets with data from 1; packets without data (SYN-ACK, and a FIN sent
//! separately) have number 0.

use super::connection::Connection;
use super::handshake::HandshakeKind;
use super::outgoing_packet::OutgoingPacket;
use super::packet_events::{PacketEventProbe, ReportedRecovery, window_event};
use super::segment::SendReason;
use super::stack_options::ModernTcpConfig;
use super::transmit_fast_path::FullPacketRun;
use super::wire_segment::Segment;
use crate::file_size::FileSize;
use crate::packet_kind::PacketKind;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

/// A server with its end of the connection.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct FileServer {
    /// Present until the file begins.
    opening: Option<Box<Opening>>,
    /// Packets written, and acknowledged packets of files.
    size: u32,
    acked: u32,
    recovery: ReportedRecovery,
    pub(super) connection: Connection,
}

/// What the server sends before and after the client's messages.
#[derive(Clone, Copy, Debug)]
struct Opening {
    file: FileSize,
    /// Flights of TLS sent.
    flights: usize,
}

impl FileServer {
    /// Starts a connection that sends a file; `seed` determines its random choices.
    pub fn start_connection(
        now: Nanos,
        file: FileSize,
        seed: u64,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Self {
        let mut server = Self {
            opening: None,
            size: 0,
            acked: 0,
            recovery: ReportedRecovery::None,
            connection: Connection::of_simulation(now, &tcp.stack, seed),
        };
        server.open_connection(now, file, tcp, probe);
        server
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
        let Self { opening, size, acked, recovery, connection } = self;
        (*opening, *size, *acked, *recovery) = (None, 0, 0, ReportedRecovery::None);
        connection.restart(now, &tcp.stack, seed);
        self.open_connection(now, file, tcp, probe);
    }

    fn open_connection(
        &mut self,
        now: Nanos,
        file: FileSize,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        if tcp.handshake != HandshakeKind::None {
            self.opening = Some(Box::new(Opening { file, flights: 0 }));
            return self.connection.listen();
        }
        self.connection.open(now, tcp.rtt);
        self.write_file(now, file, tcp, probe);
    }

    /// The application writes a file, and closes the connection if each connection is used for one
    /// file.
    pub fn write_file(
        &mut self,
        now: Nanos,
        file: FileSize,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        self.write_data(now, file, tcp, probe);
        if tcp.closes {
            self.connection.close_after_burst();
        }
    }

    fn write_data(
        &mut self,
        now: Nanos,
        data: FileSize,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        // An endless flow can also begin after flights of TLS.
        self.size = self.size.saturating_add(data.packets).min(u32::MAX - 1);
        let bytes = tcp.bytes_of_packets(data.packets) - u64::from(data.lacking);
        self.call_with_probe(probe, |connection, probe| {
            connection.write_unlimited(now, bytes, probe)
        });
    }

    /// Whether all data has been acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connection.sender().is_data_acknowledged() && !self.is_handshake_pending()
    }

    /// Whether no file has begun.
    #[inline(always)]
    #[must_use]
    pub fn is_handshake_pending(&self) -> bool {
        self.opening.is_some()
    }

    /// Numbers of data packets acknowledged and sent, including flights of TLS.
    #[inline(always)]
    fn acked_and_sent(&self) -> (u32, u32) {
        let flight = self.connection.sender().flight();
        (flight.first_number().min(self.size), flight.next_number().min(self.size))
    }

    /// Whether enough packet numbers are left to send `more` packets.
    #[must_use]
    pub fn has_packet_numbers_left(&self, more: u32) -> bool {
        more < u32::MAX - 1 - self.size
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

    /// End of the connection.
    #[inline(always)]
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A segment of the client arrives.
    #[inline]
    pub fn on_segment(
        &mut self,
        now: Nanos,
        segment: &Segment,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let (before, _) = self.acked_and_sent();
        self.call_with_probe(probe, |connection, probe| connection.on_segment(now, segment, probe));
        let packets = self.acked_and_sent().0 - before;
        if packets > 0 && !self.is_handshake_pending() {
            self.acked += packets;
            probe.on_tcp_event(now, TcpEvent::Acked { packets });
            if tcp.closes && self.is_finished() {
                self.connection.abandon();
            }
        }
        if self.recovery != ReportedRecovery::None {
            self.report_recovery(now, probe);
        }
        if self.is_handshake_pending() {
            self.on_client_messages(now, segment.messages, tcp, probe);
        }
    }

    /// The client has sent `messages` messages: sends the next flight, or the file.
    #[inline(never)]
    fn on_client_messages(
        &mut self,
        now: Nanos,
        messages: u8,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let Some(opening) = &mut self.opening else { return };
        if usize::from(messages) <= opening.flights {
            return;
        }
        if let Some(bytes) = tcp.handshake.flight_bytes(tcp.stack.certificate).nth(opening.flights)
        {
            opening.flights += 1;
            let packets = bytes.div_ceil(tcp.stack.mss);
            let lacking = packets * tcp.stack.mss - bytes;
            self.write_data(now, FileSize { packets, lacking }, tcp, probe);
        } else {
            let file = opening.file;
            self.opening = None;
            probe.on_tcp_event(now, TcpEvent::Opened { packets: file.packets });
            self.write_file(now, file, tcp, probe);
        }
    }

    /// Ends the reported recovery when the recovery phase ends, or when the file ends.
    fn report_recovery(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        let (is_finished, phase) = (self.is_finished(), self.connection.sender().phase());
        self.recovery.report_end(now, phase, is_finished, probe);
    }

    /// The timer expired.
    pub fn on_timer(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        self.call_with_probe(probe, |connection, probe| connection.on_deadline(now, probe));
        if self.recovery != ReportedRecovery::None {
            self.report_recovery(now, probe);
        }
    }

    /// Sends all packets allowed now.
    #[inline(always)]
    pub fn transmit(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
        send: impl FnMut(&OutgoingPacket),
    ) {
        if !self.connection.is_idle() {
            self.send_burst(now, tcp, probe, send);
        }
        self.report_window(now, tcp, probe);
    }

    /// Sends runs of full packets, and all other packets one by one.
    #[inline(never)]
    fn send_burst(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
        mut send: impl FnMut(&OutgoingPacket),
    ) {
        let mut segment = Segment::default();
        loop {
            while let Some(run) = self.connection.poll_run(now, &mut segment) {
                if run.packets > 0 {
                    send_run(&run, &mut segment, tcp, &mut send);
                } else if !run.ends {
                    break;
                }
                if run.ends {
                    return;
                }
            }
            let polled = self.next_packet(now, &mut segment, tcp, probe);
            let Some((number, kind, short)) = polled else { return };
            send(&OutgoingPacket { number, kind, short, segment: &segment });
        }
    }

    /// Fills in the next segment; returns the number, kind and, if it is short, length of its packet.
    #[inline(never)]
    fn next_packet(
        &mut self,
        now: Nanos,
        segment: &mut Segment,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Option<(u32, PacketKind, Option<u32>)> {
        // The sender publishes only windows here.
        let Some(sent) = self.connection.poll(now, segment, &mut ())? else {
            return Some((0, PacketKind::Data, Some(tcp.syn_bytes)));
        };
        // The receiver reads immediately, so its window is never closed while nothing is
        // outstanding.
        debug_assert!(sent.sending != SendReason::WindowProbe);
        let kind = match sent.sending {
            SendReason::New => PacketKind::Data,
            SendReason::Retransmission | SendReason::WindowProbe => PacketKind::Retransmission,
        };
        if kind == PacketKind::Retransmission {
            self.recovery.report_retransmission(now, probe);
        }
        let number = if sent.len > 0 { sent.number + 1 } else { 0 };
        let short = (sent.len < tcp.stack.mss).then(|| tcp.packet_length(sent.len));
        Some((number, kind, short))
    }

    #[inline(always)]
    fn report_window(&self, now: Nanos, tcp: &ModernTcpConfig, probe: &mut impl TcpProbe) {
        probe.on_tcp_event(now, window_event(self.connection.sender(), tcp));
    }

    /// Calls the connection with a probe that forwards the events of its sender.
    #[inline(always)]
    fn call_with_probe<P: TcpProbe, T>(
        &mut self,
        probe: &mut P,
        action: impl FnOnce(&mut Connection, &mut PacketEventProbe<'_, P>) -> T,
    ) -> T {
        let adapter = &mut PacketEventProbe {
            probe,
            size: self.size,
            is_opening: self.opening.is_some(),
            recovery: &mut self.recovery,
        };
        action(&mut self.connection, adapter)
    }
}

/// Sends a run of full packets, whose first one has this segment.
#[inline(always)]
fn send_run(
    run: &FullPacketRun,
    segment: &mut Segment,
    tcp: &ModernTcpConfig,
    send: &mut impl FnMut(&OutgoingPacket),
) {
    for packet in 0..run.packets {
        segment.flags.psh = run.push && packet + 1 == run.packets;
        let number = run.first.number + 1 + packet;
        send(&OutgoingPacket { number, kind: PacketKind::Data, short: None, segment });
        segment.seq += u64::from(tcp.stack.mss);
    }
}

#[cfg(test)]
#[path = "file_server_tests.rs"]
mod tests;
