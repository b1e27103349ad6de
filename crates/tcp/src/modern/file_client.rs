//! The application of a receiving end: a client that reads files from its connection, after its
//! messages of TLS. See `file_server.rs`.

use super::connection::{Connection, ConnectionState};
use super::handshake::HandshakeKind;
use super::outgoing_packet::PacketNumberCursor;
use super::stack_options::ModernTcpConfig;
use super::wire_segment::Segment;
use tcpcast_link::time::Nanos;

/// A client with its end of the connection.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct FileClient {
    pub(super) connection: Connection,
    /// Bytes of data per packet, and bytes of TLS before the file.
    mss: u32,
    tls_bytes: u32,
    /// Flights of the server before the file.
    flights: u8,
    /// Packet expected by the last acknowledgement.
    expected: PacketNumberCursor,
}

impl FileClient {
    /// Starts a new connection; with a handshake, [`FileClient::connect`] follows.
    #[must_use]
    pub fn new_connection(tcp: &ModernTcpConfig) -> Self {
        let mut connection = Connection::of_simulation(0, &tcp.stack, 0);
        if tcp.handshake == HandshakeKind::None {
            connection.open(0, tcp.rtt);
        }
        let flights = tcp.handshake.flight_bytes(tcp.stack.certificate).count();
        Self {
            connection,
            mss: tcp.stack.mss,
            tls_bytes: tcp.handshake.bytes_of_first_flights(tcp.stack.certificate, flights),
            flights: flights as u8,
            expected: PacketNumberCursor::default(),
        }
    }

    /// The application connects; the timer, which is due immediately, sends the SYN.
    pub fn connect(&mut self, now: Nanos, seed: u64, tcp: &ModernTcpConfig) {
        // The client is a different host, so it has a different clock.
        let seed = seed.rotate_left(u64::BITS / 2);
        self.connection = Connection::of_simulation(now, &tcp.stack, seed);
        self.connection.connect(now);
    }

    /// The application has gone: no SYN is sent.
    pub fn abandon_connection(&mut self) {
        self.connection.abandon();
    }

    /// Packets of the file received in order.
    #[must_use]
    pub fn packets_in_order(&self) -> u32 {
        let next = self.connection.receiver().next_expected();
        let bytes = next.saturating_sub(1 + u64::from(self.tls_bytes));
        u32::try_from(bytes / u64::from(self.mss)).unwrap_or(u32::MAX)
    }

    /// Time at which [`FileClient::on_timer`] must be called, `NEVER` if no timer runs.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.connection.receiver_deadline()
    }

    /// A segment of the server arrives. Returns whether it contains new data of a file. If an
    /// answer must be sent now, also returns the packet that it expects, and stores it in `answer`.
    #[inline(always)]
    pub fn on_segment(
        &mut self,
        now: Nanos,
        segment: &Segment,
        tcp: &ModernTcpConfig,
        answer: &mut Segment,
    ) -> (bool, Option<u32>) {
        let distinct = self.connection.on_segment(now, segment, &mut ()) && segment.len > 0;
        if segment.flags.syn {
            self.begin_tls();
        } else if self.awaits_tls_flight() {
            return (false, self.on_tls_flight_packet(now, tcp, answer));
        }
        (distinct, self.poll_answer(now, tcp, answer))
    }

    /// The timer expired. Returns the answer to send now, as [`Self::on_segment`].
    pub fn on_timer(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        answer: &mut Segment,
    ) -> Option<u32> {
        self.connection.on_deadline(now, &mut ());
        self.poll_answer(now, tcp, answer)
    }

    /// Returns the packet expected by the next segment to send now, and stores it in `answer`; 0 for
    /// a SYN.
    #[inline(always)]
    pub fn poll_answer(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        answer: &mut Segment,
    ) -> Option<u32> {
        if !self.connection.is_answer_due() {
            return None;
        }
        self.connection.poll(now, answer, &mut ())?;
        Some(self.expected_packet(answer, tcp))
    }

    #[inline(always)]
    fn expected_packet(&mut self, answer: &Segment, tcp: &ModernTcpConfig) -> u32 {
        if answer.flags.syn { 0 } else { self.expected.packet_number_of_byte(answer.ack, tcp) }
    }

    /// The connection is open: its next acknowledgement carries the first message.
    #[inline(never)]
    fn begin_tls(&mut self) {
        if self.connection.state() != ConnectionState::SynSent {
            self.connection.messages = self.connection.messages.max(1);
        }
    }

    /// Whether further TLS flights are expected before the file.
    #[inline(always)]
    fn awaits_tls_flight(&self) -> bool {
        self.connection.messages <= self.flights
    }

    /// A packet of a TLS flight arrives: answers immediately if the flight is complete. The packet
    /// is not part of the file.
    #[inline(never)]
    fn on_tls_flight_packet(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        answer: &mut Segment,
    ) -> Option<u32> {
        let messages = usize::from(self.connection.messages);
        let bytes = tcp.handshake.bytes_of_first_flights(tcp.stack.certificate, messages);
        if self.connection.receiver().next_expected() > u64::from(bytes) {
            *answer = self.connection.send_message(now);
            return Some(self.expected_packet(answer, tcp));
        }
        self.poll_answer(now, tcp, answer)
    }
}
