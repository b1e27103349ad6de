//! One end of a connection of a simulated application: both ends can send data, after the opening of
//! the session (see `handshake.rs`). The end counts packets for statistics.
//!
//! ```text
//!  Client: connect -> messages -> opened          Server: listen -> flights of TLS -> opened
//! ```

use super::connection::{Connection, ConnectionState};
use super::handshake::HandshakeKind;
use super::packet_events::{PacketEventProbe, ReportedRecovery, window_event};
use super::segment::SendReason;
use super::stack_options::ModernTcpConfig;
use super::wire_segment::Segment;
use crate::packet_kind::PacketKind;
use crate::tcp_event::{TcpEvent, TcpProbe};
use tcpcast_link::time::Nanos;

/// Role of an end in the opening of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointRole {
    /// Waits for the client, and sends the flights of TLS.
    Server,
    /// Opens the connection.
    Client,
}

/// What a segment caused at the end that received it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOutcome {
    /// Whether the segment contained new data, flights of TLS excluded.
    pub has_new_data: bool,
    /// Whether the segment completed the opening: the application can write.
    pub opened: bool,
}

/// Receives the segments that an end sends, and its events.
pub trait SegmentSink: TcpProbe {
    /// Sends a segment. `number` is the number of its packet, from 1; 0 without data. `kind` is
    /// [`PacketKind::Ack`] for a segment that only acknowledges.
    fn send_segment(&mut self, segment: &Segment, number: u32, kind: PacketKind);
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    connection: Connection,
    role: EndpointRole,
    is_opening: bool,
    /// Flights of TLS sent by the server.
    flights: u8,
    /// Whether the client must send its next message.
    is_message_due: bool,
    /// Packets written, and acknowledged packets without flights of TLS.
    size: u32,
    acked: u64,
    recovery: ReportedRecovery,
}

impl Endpoint {
    /// Starts a connection; `seed` determines its random choices. Without a handshake, the
    /// connection is open.
    #[must_use]
    pub fn start(now: Nanos, role: EndpointRole, seed: u64, tcp: &ModernTcpConfig) -> Self {
        let mut end = Self {
            connection: Connection::of_simulation(now, &tcp.stack, seed),
            role,
            is_opening: false,
            flights: 0,
            is_message_due: false,
            size: 0,
            acked: 0,
            recovery: ReportedRecovery::None,
        };
        end.open(now, tcp);
        end
    }

    /// Starts a new connection in the same memory; the number of acknowledged packets continues.
    pub fn restart(&mut self, now: Nanos, seed: u64, tcp: &ModernTcpConfig) {
        self.connection.restart(now, &tcp.stack, seed);
        (self.flights, self.is_message_due, self.size) = (0, false, 0);
        self.recovery = ReportedRecovery::None;
        self.open(now, tcp);
    }

    fn open(&mut self, now: Nanos, tcp: &ModernTcpConfig) {
        self.is_opening = tcp.handshake != HandshakeKind::None;
        match self.role {
            _ if !self.is_opening => self.connection.open(now, tcp.rtt),
            EndpointRole::Server => self.connection.listen(),
            EndpointRole::Client => {
                self.connection.connect(now);
                // The SYN of TCP Fast Open carries the first message, or the first data of the
                // application if no flight of TLS precedes it.
                let mut flights = tcp.handshake.flight_bytes(tcp.stack.certificate);
                self.is_opening = !tcp.stack.fast_open || flights.next().is_some();
            }
        }
    }

    /// Whether the session is not open yet.
    #[inline(always)]
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.is_opening
    }

    /// The connection.
    #[inline(always)]
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The application writes `bytes`.
    pub fn write(
        &mut self,
        now: Nanos,
        bytes: u64,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let packets = bytes.div_ceil(u64::from(tcp.stack.mss));
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.size = self.size.saturating_add(packets).min(u32::MAX - 1);
        self.call_with_probe(probe, |connection, probe| {
            connection.write_unlimited(now, bytes, probe)
        });
    }

    /// The application writes up to `bytes`; returns how many the send buffer accepts.
    pub fn write_to_buffer(
        &mut self,
        now: Nanos,
        bytes: u64,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> u64 {
        let accepted = self.call_with_probe(probe, |connection, probe| {
            connection.write_to_buffer(now, bytes, probe)
        });
        // This is an upper bound, because a later write may fill the last packet of this write.
        let packets = u32::try_from(accepted.div_ceil(u64::from(tcp.stack.mss)));
        self.size = self.size.saturating_add(packets.unwrap_or(u32::MAX)).min(u32::MAX - 1);
        accepted
    }

    /// Whether space in a full send buffer has become free since the last call.
    pub fn take_writable(&mut self) -> bool {
        self.connection.take_wakeups().writable
    }

    /// The application reads up to `max` bytes; returns how many.
    pub fn read(&mut self, now: Nanos, max: u64) -> u64 {
        self.connection.read_available(now, max)
    }

    /// Bytes of the other end's application that this end's application has read.
    #[must_use]
    pub fn read_bytes(&self, tcp: &ModernTcpConfig) -> u64 {
        self.received_bytes(tcp).saturating_sub(self.connection.receiver().readable_bytes())
    }

    /// The application closes the stream behind the data it has written.
    pub fn close_after_burst(&mut self) {
        self.connection.close_after_burst();
    }

    /// The application has exited: the end sends only acknowledgements.
    pub fn abandon(&mut self) {
        self.connection.abandon();
    }

    /// Whether all written data has been acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connection.sender().is_data_acknowledged() && !self.is_opening
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
        let (acked, sent) = self.acked_and_sent();
        if self.is_opening { 0 } else { sent - acked }
    }

    /// Acknowledged packets of all connections; flights of TLS do not count.
    #[must_use]
    pub fn acked_packets(&self) -> u64 {
        self.acked
    }

    /// Bytes of the other end's application received in order.
    #[inline(always)]
    #[must_use]
    pub fn received_bytes(&self, tcp: &ModernTcpConfig) -> u64 {
        let flights = match self.role {
            EndpointRole::Server => 0,
            EndpointRole::Client => {
                tcp.handshake.bytes_of_first_flights(tcp.stack.certificate, usize::MAX)
            }
        };
        self.connection.receiver().next_expected().saturating_sub(1 + u64::from(flights))
    }

    /// Full packets of the other end's application received in order.
    #[must_use]
    pub fn packets_in_order(&self, tcp: &ModernTcpConfig) -> u32 {
        let packets = self.received_bytes(tcp) / u64::from(tcp.stack.mss);
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// A segment arrives: call [`Endpoint::transmit`] for resulting segments.
    #[inline(always)]
    pub fn on_segment(
        &mut self,
        now: Nanos,
        segment: &Segment,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> SegmentOutcome {
        let (before, _) = self.acked_and_sent();
        let is_new = self.pass_to_connection(now, segment, probe);
        let packets = self.acked_and_sent().0 - before;
        if packets > 0 && !self.is_opening {
            self.acked += u64::from(packets);
            probe.on_tcp_event(now, TcpEvent::Acked { packets });
            if tcp.closes && self.is_finished() {
                self.connection.abandon();
            }
        }
        if self.recovery != ReportedRecovery::None {
            self.report_recovery(now, probe);
        }
        let mut outcome = SegmentOutcome { has_new_data: is_new && segment.len > 0, opened: false };
        if self.is_opening {
            self.on_opening_segment(now, segment, tcp, probe, &mut outcome);
            // The library of the session reads its messages at once.
            self.connection.read_available(now, u64::MAX);
        }
        outcome
    }

    /// Passes a segment to the connection; returns whether it contains new data. Not inlined,
    /// because the event loop of a simulation would then lack registers.
    #[inline(never)]
    fn pass_to_connection(
        &mut self,
        now: Nanos,
        segment: &Segment,
        probe: &mut impl TcpProbe,
    ) -> bool {
        let adapter = &mut PacketEventProbe {
            probe,
            size: self.size,
            is_opening: self.is_opening,
            recovery: &mut self.recovery,
        };
        self.connection.on_segment(now, segment, adapter)
    }

    #[inline(never)]
    fn on_opening_segment(
        &mut self,
        now: Nanos,
        segment: &Segment,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
        outcome: &mut SegmentOutcome,
    ) {
        outcome.opened = match self.role {
            EndpointRole::Server => self.on_client_messages(now, segment.messages, tcp, probe),
            EndpointRole::Client => {
                outcome.has_new_data = false;
                self.on_server_segment(segment.flags.syn, tcp)
            }
        };
        self.is_opening = !outcome.opened;
    }

    /// The client has sent `messages` messages: sends the next flight, or completes the opening.
    fn on_client_messages(
        &mut self,
        now: Nanos,
        messages: u8,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> bool {
        if messages <= self.flights {
            return false;
        }
        let mut flights = tcp.handshake.flight_bytes(tcp.stack.certificate);
        let Some(bytes) = flights.nth(usize::from(self.flights)) else { return true };
        self.flights += 1;
        self.write(now, u64::from(bytes), tcp, probe);
        false
    }

    /// The SYN-ACK or a packet of a flight has arrived at the client: sends the next message if the
    /// flight is complete. The last message completes the opening.
    fn on_server_segment(&mut self, syn: bool, tcp: &ModernTcpConfig) -> bool {
        let connection = &mut self.connection;
        let certificate = tcp.stack.certificate;
        let flights = tcp.handshake.flight_bytes(certificate).count();
        if syn {
            if connection.state() != ConnectionState::SynSent {
                // The next acknowledgement carries the first message.
                connection.messages = connection.messages.max(1);
            }
        } else if usize::from(connection.messages) <= flights {
            let messages = usize::from(connection.messages);
            let bytes = tcp.handshake.bytes_of_first_flights(certificate, messages);
            self.is_message_due = connection.receiver().next_expected() > u64::from(bytes);
        }
        usize::from(connection.messages) + usize::from(self.is_message_due) > flights
    }

    /// Ends the reported recovery when the recovery phase ends, or when all data is acknowledged.
    fn report_recovery(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        let (is_finished, phase) = (self.is_finished(), self.connection.sender().phase());
        self.recovery.report_end(now, phase, is_finished, probe);
    }

    /// A timer expired: call [`Endpoint::transmit`] for resulting segments.
    pub fn on_timer(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        self.call_with_probe(probe, |connection, probe| connection.on_deadline(now, probe));
        if self.recovery != ReportedRecovery::None {
            self.report_recovery(now, probe);
        }
    }

    /// Whether [`Endpoint::transmit`] may do anything.
    #[inline(always)]
    #[must_use]
    pub fn may_transmit(&self) -> bool {
        self.is_message_due
            || self.connection.is_answer_due()
            || !self.connection.sender().has_nothing_to_do()
    }

    /// Sends all segments that may be sent now; `segment` is memory for them.
    #[inline(always)]
    pub fn transmit(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        segment: &mut Segment,
        sink: &mut impl SegmentSink,
    ) {
        if self.is_message_due {
            self.send_message(now, sink);
        }
        if self.connection.sender().has_nothing_to_do() {
            if self.connection.is_answer_due() {
                self.send_answers(now, segment, sink);
            }
            return;
        }
        if !self.connection.is_idle() {
            self.send_burst(now, tcp, segment, sink);
        }
        if sink.records_windows() {
            let sender = self.connection.sender();
            sink.on_tcp_event(now, window_event(sender, tcp));
            if let Some(state) = sender.bbr_state() {
                sink.on_bbr_state(now, state, tcp.stack.mss);
            }
        }
    }

    /// Sends the next message of the client, unless data will carry it.
    #[cold]
    fn send_message(&mut self, now: Nanos, sink: &mut impl SegmentSink) {
        self.is_message_due = false;
        if self.connection.sender().has_nothing_to_do() {
            let segment = self.connection.send_message(now);
            sink.send_segment(&segment, 0, PacketKind::Ack);
        } else {
            self.connection.messages += 1;
        }
    }

    /// Sends acknowledgements, and segments of the handshake.
    #[inline(always)]
    fn send_answers(&mut self, now: Nanos, segment: &mut Segment, sink: &mut impl SegmentSink) {
        segment.clear();
        while self.connection.poll_without_data(now, segment) {
            let kind = if segment.flags.syn { PacketKind::Data } else { PacketKind::Ack };
            sink.send_segment(segment, 0, kind);
            if !self.connection.is_answer_due() {
                return;
            }
        }
    }

    /// Sends runs of full packets, and all other packets one by one.
    #[inline(never)]
    fn send_burst(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        segment: &mut Segment,
        sink: &mut impl SegmentSink,
    ) {
        segment.clear();
        loop {
            while let Some(run) = self.connection.poll_run(now, segment) {
                for packet in 0..run.packets {
                    segment.flags.psh = run.push && packet + 1 == run.packets;
                    let number = run.first.number + 1 + packet;
                    sink.send_segment(segment, number, PacketKind::Data);
                    segment.seq += u64::from(tcp.stack.mss);
                }
                if run.ends {
                    return;
                }
                if run.packets == 0 {
                    break;
                }
            }
            let Some(sent) = self.connection.poll(now, segment) else { return };
            let (number, kind) = match sent {
                None if segment.flags.syn => {
                    (self.count_syn_data(segment.len, tcp), PacketKind::Data)
                }
                None => (0, PacketKind::Ack),
                Some(sent) => {
                    let number = if sent.len > 0 { sent.number + 1 } else { 0 };
                    (number, packet_kind(sent.sending))
                }
            };
            if sent.is_some_and(|sent| self.connection.splits_packet(&sent)) {
                self.size = self.size.saturating_add(1).min(u32::MAX - 1);
            }
            if kind == PacketKind::Retransmission {
                self.recovery.report_retransmission(now, sink);
            }
            sink.send_segment(segment, number, kind);
            if sent.is_none() {
                // Data may follow a SYN of TCP Fast Open, or an earlier acknowledgement.
                segment.clear();
            }
        }
    }

    /// Number of the packet with the data of a SYN, which is shorter than other packets, so that one
    /// more may be needed; 0 without data.
    fn count_syn_data(&mut self, bytes: u32, tcp: &ModernTcpConfig) -> u32 {
        if bytes == 0 {
            return 0;
        }
        let packets = |bytes: u64| bytes.div_ceil(u64::from(tcp.stack.mss));
        let unsent = self.connection.sender().unsent_bytes();
        let is_more = 1 + packets(unsent) > packets(unsent + u64::from(bytes));
        self.size = self.size.saturating_add(u32::from(is_more)).min(u32::MAX - 1);
        1
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
            is_opening: self.is_opening,
            recovery: &mut self.recovery,
        };
        action(&mut self.connection, adapter)
    }
}

fn packet_kind(reason: SendReason) -> PacketKind {
    match reason {
        SendReason::New => PacketKind::Data,
        SendReason::Retransmission | SendReason::WindowProbe => PacketKind::Retransmission,
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
