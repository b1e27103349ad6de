//! One end of a connection of any TCP, or of QUIC.

use crate::modern::{
    Endpoint, EndpointRole, ModernTcpConfig, Segment, SegmentOutcome, SegmentSink,
};
use crate::packet_ends::{PacketReceiver, PacketSender, PacketTcp};
use crate::quic::{Datagram, DatagramSink, QuicEndpoint};
use crate::tcp_event::TcpProbe;
use tcpcast_link::Ecn;
use tcpcast_link::time::{NEVER, Nanos};

/// TCP of one end of a connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "each class has two, and a box would be read for each packet"
)]
pub enum EndTcp {
    /// Modern TCP, whose sequence numbers count bytes, or QUIC.
    Modern(ModernTcpConfig),
    /// Classic TCP, whose sequence numbers count packets.
    Packets(PacketTcp),
}

/// What an end may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// Certainly nothing.
    Nothing,
    /// Segments of the open session.
    Segments,
    /// Segments of a session that is not open yet.
    Opening,
}

/// Deadlines of an end; [`NEVER`] for those that are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndDeadlines {
    /// A lower bound of [`End::sender_deadline`] that takes less time to compute.
    pub sender_lower_bound: Nanos,
    /// Deadline of the receiver's timer; [`NEVER`] if it is off.
    pub receiver: Nanos,
    /// Time at which the pacer allows the next packet, if one waits.
    pub pacer: Nanos,
}

/// Operations on an end for each packet; [`End`] selects the implementation once per packet.
pub trait ConnectionEnd {
    /// TCP of the end.
    type Tcp;

    /// A packet arrives: a segment of TCP, or a datagram of QUIC. Call [`ConnectionEnd::transmit`]
    /// for resulting packets.
    fn on_packet(
        &mut self,
        now: Nanos,
        segment: &Segment,
        datagram: Option<&Datagram>,
        tcp: &Self::Tcp,
        probe: &mut impl TcpProbe,
    ) -> SegmentOutcome;

    /// What [`ConnectionEnd::transmit`] may do.
    fn transmission(&self) -> Transmission;

    /// Sends all segments that may be sent now; `segment` is memory for them.
    fn transmit(
        &mut self,
        now: Nanos,
        tcp: &Self::Tcp,
        segment: &mut Segment,
        sink: &mut (impl SegmentSink + DatagramSink),
    );

    /// Whether space in a full send buffer has become free since the last call.
    fn take_writable(&mut self) -> bool {
        false
    }

    /// Whether all written data has been acknowledged.
    fn is_finished(&self) -> bool;

    /// Acknowledged packets; flights of TLS do not count.
    fn acked_packets(&self) -> u64 {
        0
    }

    /// Full-sized packets received in order that carry data of the other end's application.
    fn packets_in_order(&self, _tcp: &Self::Tcp) -> u32 {
        0
    }

    /// All deadlines.
    fn deadlines(&self) -> EndDeadlines;

    /// Deadline of the sender's timer; [`NEVER`] if it is off.
    #[inline(always)]
    fn sender_deadline(&self) -> Nanos {
        self.deadlines().sender_lower_bound
    }
}

/// Evaluates `$call` for the concrete type of an end, with or without its TCP.
#[macro_export]
macro_rules! with_kind_of_end {
    (($connection_end:expr, $rules:expr), ($end:ident, $tcp:ident) => $call:expr) => {
        match ($connection_end, $rules) {
            ($crate::End::Modern($end), $crate::EndTcp::Modern($tcp)) => $call,
            ($crate::End::Quic($end), $crate::EndTcp::Modern($tcp)) => $call,
            ($crate::End::Sender($end), $crate::EndTcp::Packets($tcp)) => $call,
            ($crate::End::Receiver($end), $crate::EndTcp::Packets($tcp)) => $call,
            _ => unreachable!("both ends of a connection have the same kind of TCP"),
        }
    };
    ($connection_end:expr, $end:ident => $call:expr) => {
        match $connection_end {
            $crate::End::Modern($end) => $call,
            $crate::End::Quic($end) => $call,
            $crate::End::Sender($end) => $call,
            $crate::End::Receiver($end) => $call,
        }
    };
}

fn transmission(may_send: bool, is_opening: bool) -> Transmission {
    match (may_send, is_opening) {
        (false, _) => Transmission::Nothing,
        (true, false) => Transmission::Segments,
        (true, true) => Transmission::Opening,
    }
}

impl ConnectionEnd for Endpoint {
    type Tcp = ModernTcpConfig;

    #[inline(always)]
    fn on_packet(
        &mut self,
        now: Nanos,
        segment: &Segment,
        _datagram: Option<&Datagram>,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> SegmentOutcome {
        self.on_segment(now, segment, tcp, probe)
    }

    #[inline(always)]
    fn transmission(&self) -> Transmission {
        transmission(self.may_transmit(), self.is_opening())
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        segment: &mut Segment,
        sink: &mut (impl SegmentSink + DatagramSink),
    ) {
        self.transmit(now, tcp, segment, sink);
    }

    fn take_writable(&mut self) -> bool {
        self.take_writable()
    }

    #[inline(always)]
    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    fn acked_packets(&self) -> u64 {
        self.acked_packets()
    }

    fn packets_in_order(&self, tcp: &ModernTcpConfig) -> u32 {
        self.packets_in_order(tcp)
    }

    #[inline(always)]
    fn deadlines(&self) -> EndDeadlines {
        let connection = self.connection();
        EndDeadlines {
            sender_lower_bound: connection.sender_deadline_lower_bound(),
            receiver: connection.receiver().deadline(),
            pacer: connection.sender().next_paced_time(),
        }
    }

    #[inline(always)]
    fn sender_deadline(&self) -> Nanos {
        self.connection().sender_deadline()
    }
}

impl ConnectionEnd for QuicEndpoint {
    type Tcp = ModernTcpConfig;

    #[inline(always)]
    fn on_packet(
        &mut self,
        now: Nanos,
        segment: &Segment,
        datagram: Option<&Datagram>,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> SegmentOutcome {
        datagram.map_or_else(SegmentOutcome::default, |datagram| {
            let is_marked = segment.ecn == Ecn::Ce;
            self.on_datagram(now, datagram, is_marked, tcp, probe)
        })
    }

    #[inline(always)]
    fn transmission(&self) -> Transmission {
        transmission(self.may_transmit(), self.is_opening())
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Nanos,
        _tcp: &ModernTcpConfig,
        _segment: &mut Segment,
        sink: &mut (impl SegmentSink + DatagramSink),
    ) {
        self.transmit(now, sink);
    }

    fn take_writable(&mut self) -> bool {
        self.take_writable()
    }

    #[inline(always)]
    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    fn acked_packets(&self) -> u64 {
        self.acked_packets()
    }

    fn packets_in_order(&self, tcp: &ModernTcpConfig) -> u32 {
        let packets = self.received_bytes() / u64::from(tcp.stack.mss);
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn deadlines(&self) -> EndDeadlines {
        EndDeadlines {
            sender_lower_bound: self.sender_deadline(),
            receiver: self.ack_deadline(),
            pacer: self.next_paced_time(),
        }
    }
}

impl ConnectionEnd for PacketSender {
    type Tcp = PacketTcp;

    #[inline(always)]
    fn on_packet(
        &mut self,
        now: Nanos,
        segment: &Segment,
        _datagram: Option<&Datagram>,
        tcp: &PacketTcp,
        probe: &mut impl TcpProbe,
    ) -> SegmentOutcome {
        self.on_ack(now, segment, &tcp.rules, probe);
        SegmentOutcome::default()
    }

    #[inline(always)]
    fn transmission(&self) -> Transmission {
        transmission(self.may_transmit(), false)
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Nanos,
        tcp: &PacketTcp,
        segment: &mut Segment,
        sink: &mut (impl SegmentSink + DatagramSink),
    ) {
        self.transmit(now, tcp.packet_bytes, segment, sink);
    }

    #[inline(always)]
    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    fn acked_packets(&self) -> u64 {
        self.acked_packets()
    }

    #[inline(always)]
    fn deadlines(&self) -> EndDeadlines {
        EndDeadlines { sender_lower_bound: self.deadline(), receiver: NEVER, pacer: NEVER }
    }
}

impl ConnectionEnd for PacketReceiver {
    type Tcp = PacketTcp;

    #[inline(always)]
    fn on_packet(
        &mut self,
        now: Nanos,
        segment: &Segment,
        _datagram: Option<&Datagram>,
        tcp: &PacketTcp,
        _probe: &mut impl TcpProbe,
    ) -> SegmentOutcome {
        SegmentOutcome { has_new_data: self.on_data(now, segment, &tcp.rules), opened: false }
    }

    #[inline(always)]
    fn transmission(&self) -> Transmission {
        transmission(self.may_transmit(), false)
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        _now: Nanos,
        tcp: &PacketTcp,
        segment: &mut Segment,
        sink: &mut (impl SegmentSink + DatagramSink),
    ) {
        self.transmit(&tcp.rules, segment, sink);
    }

    #[inline(always)]
    fn is_finished(&self) -> bool {
        true
    }

    fn packets_in_order(&self, _tcp: &PacketTcp) -> u32 {
        self.packets_in_order()
    }

    #[inline(always)]
    fn deadlines(&self) -> EndDeadlines {
        EndDeadlines { sender_lower_bound: NEVER, receiver: self.deadline(), pacer: NEVER }
    }
}

/// One end of a connection. Both ends have the same kind of TCP.
#[derive(Clone, Debug)]
pub enum End {
    /// An end with modern TCP.
    Modern(Box<Endpoint>),
    /// An end with QUIC.
    Quic(Box<QuicEndpoint>),
    /// An end that sends packets.
    Sender(Box<PacketSender>),
    /// An end that receives packets.
    Receiver(Box<PacketReceiver>),
}

impl End {
    /// Starts a connection; `seed` determines its random choices. Without a handshake, the
    /// connection is open.
    #[must_use]
    pub fn start(now: Nanos, role: EndpointRole, seed: u64, tcp: &EndTcp) -> Self {
        match tcp {
            EndTcp::Modern(tcp) => match &tcp.stack.quic {
                None => Self::Modern(Box::new(Endpoint::start(now, role, seed, tcp))),
                Some(rules) => {
                    Self::Quic(Box::new(QuicEndpoint::start(now, role, seed, tcp, rules)))
                }
            },
            EndTcp::Packets(tcp) if tcp.sends => {
                Self::Sender(Box::new(PacketSender::new(&tcp.rules)))
            }
            EndTcp::Packets(_) => Self::Receiver(Box::default()),
        }
    }

    /// Starts a new connection in the same memory.
    pub fn restart(&mut self, now: Nanos, seed: u64, tcp: &EndTcp) {
        match (self, tcp) {
            (Self::Modern(end), EndTcp::Modern(tcp)) => end.restart(now, seed, tcp),
            (Self::Quic(end), EndTcp::Modern(tcp)) => {
                if let Some(rules) = &tcp.stack.quic {
                    end.restart(now, seed, tcp, rules);
                }
            }
            (Self::Sender(end), _) => end.restart(),
            (Self::Receiver(end), _) => end.restart(),
            _ => (),
        }
    }

    /// Whether the session is not open yet.
    #[inline(always)]
    #[must_use]
    pub fn is_opening(&self) -> bool {
        match self {
            Self::Modern(end) => end.is_opening(),
            Self::Quic(end) => end.is_opening(),
            Self::Sender(_) | Self::Receiver(_) => false,
        }
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, now: Nanos, bytes: u64, tcp: &EndTcp, probe: &mut impl TcpProbe) {
        match (self, tcp) {
            (Self::Modern(end), EndTcp::Modern(tcp)) => end.write(now, bytes, tcp, probe),
            (Self::Quic(end), EndTcp::Modern(tcp)) => end.write(bytes, tcp),
            (Self::Sender(end), EndTcp::Packets(tcp)) => {
                let packets = bytes.div_ceil(u64::from(tcp.packet_bytes));
                let packets = u32::try_from(packets).unwrap_or(u32::MAX - 1);
                end.write(now, packets, &tcp.rules, probe);
            }
            _ => (),
        }
    }

    /// The application writes up to `bytes`; returns how many the send buffer accepts.
    pub fn write_to_buffer(
        &mut self,
        now: Nanos,
        bytes: u64,
        tcp: &EndTcp,
        probe: &mut impl TcpProbe,
    ) -> u64 {
        match (&mut *self, tcp) {
            (Self::Modern(end), EndTcp::Modern(tcp)) => end.write_to_buffer(now, bytes, tcp, probe),
            (Self::Quic(end), EndTcp::Modern(tcp)) => end.write_to_buffer(bytes, tcp),
            _ => {
                self.write(now, bytes, tcp, probe);
                bytes
            }
        }
    }

    /// The application reads up to `max` bytes; returns how many. With QUIC and classic TCP it
    /// reads all data on arrival.
    pub fn read(&mut self, now: Nanos, max: u64) -> u64 {
        if let Self::Modern(end) = self { end.read(now, max) } else { 0 }
    }

    /// Bytes of the other end's application that this end's application has read.
    #[must_use]
    pub fn read_bytes(&self, tcp: &EndTcp) -> u64 {
        match (self, tcp) {
            (Self::Modern(end), EndTcp::Modern(tcp)) => end.read_bytes(tcp),
            _ => self.received_bytes(tcp),
        }
    }

    /// The application closes the stream behind the data it has written. In QUIC the last data ends
    /// the stream without another packet.
    pub fn close_after_burst(&mut self) {
        if let Self::Modern(end) = self {
            end.close_after_burst();
        }
    }

    /// The application has exited: the end sends only acknowledgements.
    pub fn abandon(&mut self) {
        match self {
            Self::Modern(end) => end.abandon(),
            Self::Quic(end) => end.abandon(),
            Self::Sender(end) => end.abandon(),
            Self::Receiver(_) => (),
        }
    }

    /// Whether all written data has been acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        with_kind_of_end!(self, end => ConnectionEnd::is_finished(&**end))
    }

    /// Whether enough packet numbers are left to send `more` packets.
    #[must_use]
    pub fn has_packet_numbers_left(&self, more: u32) -> bool {
        match self {
            Self::Modern(end) => end.has_packet_numbers_left(more),
            Self::Quic(end) => end.has_packet_numbers_left(more),
            Self::Sender(end) => end.has_packet_numbers_left(more),
            Self::Receiver(_) => true,
        }
    }

    /// Outstanding data packets; flights of TLS do not count.
    #[must_use]
    pub fn packets_in_flight(&self) -> u32 {
        match self {
            Self::Modern(end) => end.packets_in_flight(),
            Self::Quic(end) => end.packets_in_flight(),
            Self::Sender(end) => end.packets_in_flight(),
            Self::Receiver(_) => 0,
        }
    }

    /// Acknowledged packets; flights of TLS do not count.
    #[must_use]
    pub fn acked_packets(&self) -> u64 {
        with_kind_of_end!(self, end => ConnectionEnd::acked_packets(&**end))
    }

    /// Bytes of the other end's application received in order.
    #[inline(always)]
    #[must_use]
    pub fn received_bytes(&self, tcp: &EndTcp) -> u64 {
        match (self, tcp) {
            (Self::Modern(end), EndTcp::Modern(tcp)) => end.received_bytes(tcp),
            (Self::Quic(end), _) => end.received_bytes(),
            (Self::Receiver(end), EndTcp::Packets(tcp)) => {
                u64::from(end.packets_in_order()) * u64::from(tcp.packet_bytes)
            }
            _ => 0,
        }
    }

    /// Received bytes of the other end's application between two positions. With QUIC, they need
    /// not be in order, because its streams do not wait for each other.
    #[must_use]
    pub fn received_between(&self, start: u64, end: u64, tcp: &EndTcp) -> u64 {
        match self {
            Self::Quic(quic) => quic.connection().received_between(start, end),
            _ => self.received_bytes(tcp).clamp(start, end) - start,
        }
    }

    /// Position after the last byte that [`End::received_between`] counts.
    #[must_use]
    pub fn received_end(&self, tcp: &EndTcp) -> u64 {
        match self {
            Self::Quic(quic) => quic.connection().received_end(),
            _ => self.received_bytes(tcp),
        }
    }

    /// The network lost packet `number` that this end sent. An end with instantaneous loss feedback
    /// reacts to it at `due`.
    pub fn add_loss(&mut self, due: Nanos, number: u32) {
        if let Self::Sender(end) = self {
            end.add_loss(due, number);
        }
    }

    /// A timer expired: call [`ConnectionEnd::transmit`] for resulting segments.
    pub fn on_timer(&mut self, now: Nanos, tcp: &EndTcp, probe: &mut impl TcpProbe) {
        match (self, tcp) {
            (Self::Modern(end), _) => end.on_timer(now, probe),
            (Self::Quic(end), _) => end.on_timer(now, probe),
            (Self::Sender(end), EndTcp::Packets(tcp)) => end.on_timer(now, &tcp.rules, probe),
            (Self::Receiver(end), _) => end.on_timer(),
            _ => (),
        }
    }

    /// Deadline of the sender's timer; [`NEVER`] if it is off.
    #[inline(always)]
    #[must_use]
    pub fn sender_deadline(&self) -> Nanos {
        with_kind_of_end!(self, end => ConnectionEnd::sender_deadline(&**end))
    }

    /// All deadlines.
    #[inline(always)]
    #[must_use]
    pub fn deadlines(&self) -> EndDeadlines {
        with_kind_of_end!(self, end => ConnectionEnd::deadlines(&**end))
    }
}
