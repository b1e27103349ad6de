//! Receiving end for networks of numbered packets: see `packet_sender.rs`.

mod client_handshake;

use self::client_handshake::ClientHandshake;
use super::handshake::HandshakeKind;
use super::outgoing_packet::PacketNumberCursor;
use super::packet_header::{AckHeader, DataHeader};
use super::receiver::Receiver;
use super::segment::{CumulativeAck, OutgoingAck, timestamp_at};
use super::stack_options::ModernTcpConfig;
use tcpcast_link::time::Nanos;

/// Receiving end of a source.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct PacketReceiver {
    pub(super) receiver: Receiver,
    /// Timestamp of packets sent now.
    stamp: u32,
    /// Bytes of data per packet, and bytes of the handshake before the file.
    mss: u32,
    tls_bytes: u32,
    /// State of the handshake until the SYN is answered.
    handshake: Option<Box<ClientHandshake>>,
    /// Handshake messages sent, and flights of the server before the file.
    pub(super) messages: u8,
    flights: u8,
    /// Packet expected by the last acknowledgement.
    expected: PacketNumberCursor,
}

impl PacketReceiver {
    /// Starts a new connection.
    #[must_use]
    pub fn new_connection(tcp: &ModernTcpConfig) -> Self {
        let mut receiver = Receiver::new(1, &tcp.stack);
        receiver.on_established(Some(tcp.rtt), None);
        let messages = u8::from(tcp.handshake == HandshakeKind::None);
        let mss = tcp.stack.mss;
        let flights = tcp.handshake.flight_bytes().len();
        let tls_bytes = tcp.handshake.bytes_of_first_flights(flights);
        let expected = PacketNumberCursor::default();
        let (handshake, flights) = (None, flights as u8);
        Self { receiver, stamp: 0, mss, tls_bytes, handshake, messages, flights, expected }
    }

    /// Packets of the file received in order.
    #[must_use]
    pub fn packets_in_order(&self) -> u32 {
        let bytes = self.receiver.next_expected().saturating_sub(1 + u64::from(self.tls_bytes));
        u32::try_from(bytes / u64::from(self.mss)).unwrap_or(u32::MAX)
    }

    /// Deadline of the delayed acknowledgement, `NEVER` if none is pending.
    #[inline(always)]
    #[must_use]
    pub fn ack_deadline(&self) -> Nanos {
        let handshake = self.handshake.as_ref().map(|handshake| handshake.deadline());
        handshake.unwrap_or_else(|| self.receiver.deadline())
    }

    /// Packet `number` arrives. Returns whether the packet contains new data. If an acknowledgement
    /// must be sent now, also returns the packet that it expects, and stores its header in
    /// `ack_header`.
    #[inline(always)]
    pub fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        header: &DataHeader,
        tcp: &ModernTcpConfig,
        ack_header: &mut AckHeader,
    ) -> (bool, Option<u32>) {
        self.stamp = timestamp_at(now);
        if number == 0 && !header.is_fin() {
            self.on_syn_ack(now, header);
            return (false, self.poll_ack(tcp, ack_header));
        }
        let data = header.data_for_receiver(self.receiver.next_expected());
        let distinct = self.receiver.on_data(now, &data, &tcp.stack) && data.len > 0;
        if self.awaits_tls_flight() {
            return (false, self.on_tls_flight_packet(now, tcp, ack_header));
        }
        (distinct, self.poll_ack(tcp, ack_header))
    }

    /// The timer expired. Returns the acknowledgement to send now, as [`Self::on_data`].
    pub fn on_timer(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> Option<u32> {
        self.stamp = timestamp_at(now);
        if self.handshake.is_some() {
            return self.send_syn(now, tcp, header);
        }
        self.receiver.on_deadline(now);
        self.poll_ack(tcp, header)
    }

    /// Returns the packet expected by the next acknowledgement to send now; fills in its header.
    #[inline(always)]
    pub fn poll_ack(&mut self, tcp: &ModernTcpConfig, header: &mut AckHeader) -> Option<u32> {
        if !self.is_ack_due() {
            return None;
        }
        match self.receiver.poll_cumulative_ack(&tcp.stack) {
            Some(next) => Some(self.fill_header(&next, tcp, header)),
            None => self.poll_ack_with_blocks(tcp, header),
        }
    }

    /// Whether an acknowledgement is due now.
    #[inline(always)]
    pub(crate) fn is_ack_due(&self) -> bool {
        self.receiver.is_ack_due()
    }

    #[inline(never)]
    fn poll_ack_with_blocks(
        &mut self,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> Option<u32> {
        let outgoing = self.receiver.poll_ack(&tcp.stack)?;
        Some(self.fill_header_with_blocks(&outgoing, tcp, header))
    }

    /// Converts an acknowledgement with its SACK blocks for the network.
    fn fill_header_with_blocks(
        &mut self,
        outgoing: &OutgoingAck,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> u32 {
        let number = self.fill_header(&outgoing.cumulative_ack_part(), tcp, header);
        header.add_sack_blocks(&outgoing.sacks);
        number
    }

    #[inline(always)]
    fn fill_header(
        &mut self,
        next: &CumulativeAck,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> u32 {
        header.set_cumulative_ack(next, self.stamp, self.messages);
        self.expected.packet_number_of_byte(next.ack, tcp)
    }
}
