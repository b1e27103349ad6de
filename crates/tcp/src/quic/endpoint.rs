//! One end of a connection of a simulated application; it counts packets for statistics.

use super::connection::{Expired, QuicConnection};
use super::datagram::Datagram;
use super::rules::QuicRules;
use crate::modern::{
    EndpointRole, HandshakeKind, INFINITE_SSTHRESH, ModernTcpConfig, SegmentOutcome,
};
use crate::packet_kind::PacketKind;
use crate::tcp_event::{TcpEvent, TcpProbe, TimeoutState};
use tcpcast_link::time::Nanos;

/// Receives the datagrams that an end sends, and its events.
pub trait DatagramSink: TcpProbe {
    /// Sends a datagram. `number` is the number of its packet of stream data, from 1; 0 without
    /// stream data. `kind` is [`PacketKind::Ack`] for a datagram that only acknowledges.
    fn send_datagram(&mut self, datagram: &Datagram, number: u32, kind: PacketKind);
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct QuicEndpoint {
    connection: QuicConnection,
    is_opening: bool,
    /// Whether a recovery is reported.
    is_recovering: bool,
    /// Acknowledged packets of all connections.
    acked: u64,
    size: u32,
    /// Whether the application waits until it may write more.
    waits_for_space: bool,
    datagram: Datagram,
}

impl QuicEndpoint {
    /// Starts a connection; `seed` determines its random choices. Without a handshake, the
    /// connection is open.
    #[must_use]
    pub fn start(
        now: Nanos,
        role: EndpointRole,
        seed: u64,
        tcp: &ModernTcpConfig,
        rules: &QuicRules,
    ) -> Self {
        let connection = QuicConnection::new(now, role, seed, tcp.handshake, &tcp.stack, rules);
        let mut end = Self {
            connection,
            is_opening: false,
            is_recovering: false,
            acked: 0,
            size: 0,
            waits_for_space: false,
            datagram: Datagram::default(),
        };
        end.open(now, tcp);
        end
    }

    /// Starts a new connection in the same memory; the number of acknowledged packets continues.
    pub fn restart(&mut self, now: Nanos, seed: u64, tcp: &ModernTcpConfig, rules: &QuicRules) {
        self.connection.restart(now, seed, tcp.handshake, &tcp.stack, rules);
        (self.is_recovering, self.size, self.waits_for_space) = (false, 0, false);
        self.open(now, tcp);
    }

    fn open(&mut self, now: Nanos, tcp: &ModernTcpConfig) {
        // A client with 0-RTT keys writes at once.
        self.is_opening = !self.connection.is_open();
        if tcp.handshake == HandshakeKind::None {
            self.connection.open(now, tcp.rtt);
        }
    }

    /// The connection.
    #[must_use]
    pub fn connection(&self) -> &QuicConnection {
        &self.connection
    }

    /// Whether the application may not write yet.
    #[inline]
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.is_opening
    }

    /// Completes the opening if the application may write now; returns whether it did.
    pub fn take_opened(&mut self) -> bool {
        let opened = self.is_opening && self.connection.is_open();
        self.is_opening &= !opened;
        opened
    }

    /// The application writes `bytes`.
    pub fn write(&mut self, bytes: u64, tcp: &ModernTcpConfig) {
        let packets = bytes.div_ceil(u64::from(tcp.stack.mss));
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.size = self.size.saturating_add(packets).min(u32::MAX - 1);
        self.connection.stream.write(bytes);
    }

    /// The application writes up to `bytes`, and waits if not all are accepted. Two datagrams of
    /// unsent data are enough: implementations select a stream when they build a packet.
    pub fn write_to_buffer(&mut self, bytes: u64, tcp: &ModernTcpConfig) -> u64 {
        let stream = &mut self.connection.stream;
        let datagram = u64::from(tcp.stack.mss);
        let accepted = bytes.min((2 * datagram).saturating_sub(stream.unsent_bytes()));
        self.waits_for_space = accepted < bytes;
        stream.expect_more(if self.waits_for_space { datagram } else { 0 });
        self.write(accepted, tcp);
        accepted
    }

    /// Whether an application that waits may write again.
    pub fn take_writable(&mut self) -> bool {
        let is_writable = self.waits_for_space && !self.connection.stream.has_full_chunk();
        self.waits_for_space &= !is_writable;
        is_writable
    }

    /// The application has exited: the end sends only acknowledgements.
    pub fn abandon(&mut self) {
        self.connection.abandon();
    }

    /// Whether all written data has been acknowledged.
    #[inline]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connection.stream.is_acknowledged() && !self.is_opening
    }

    /// Whether enough packet numbers are left to send `more` packets.
    #[must_use]
    pub fn has_packet_numbers_left(&self, more: u32) -> bool {
        more < u32::MAX - 1 - self.size
    }

    /// Packets of stream data that were sent, with all bytes before them, and not acknowledged.
    #[must_use]
    pub fn packets_in_flight(&self) -> u32 {
        let (acked, sent) = self.connection.stream.acked_and_sent_packets();
        sent - acked
    }

    /// Acknowledged packets of all connections.
    #[must_use]
    pub fn acked_packets(&self) -> u64 {
        self.acked
    }

    /// Bytes of the other end's application received in order.
    #[inline]
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.connection.received_bytes()
    }

    /// A datagram arrives: call [`QuicEndpoint::transmit`] for resulting datagrams.
    #[inline]
    pub fn on_datagram(
        &mut self,
        now: Nanos,
        datagram: &Datagram,
        is_marked: bool,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> SegmentOutcome {
        let received = self.connection.on_datagram(now, datagram, is_marked);
        if let Some(rtt) = received.rtt {
            probe.on_tcp_event(now, TcpEvent::RttSample { rtt });
        }
        if received.acked_packets > 0 {
            self.acked += u64::from(received.acked_packets);
            probe.on_tcp_event(now, TcpEvent::Acked { packets: received.acked_packets });
            if tcp.closes && self.is_finished() {
                self.connection.abandon();
            }
        }
        if self.is_recovering && (received.recovered || self.is_finished()) {
            self.is_recovering = false;
            probe.on_tcp_event(now, TcpEvent::Recovered { burst: 0 });
        }
        self.report_reduction(now, received.reduced_from, probe);
        if received.is_persistent {
            self.report_persistent_congestion(now, probe);
        }
        SegmentOutcome { has_new_data: received.has_new_data, opened: self.take_opened() }
    }

    fn report_reduction(&mut self, now: Nanos, from: Option<u32>, probe: &mut impl TcpProbe) {
        if let Some(window) = from.filter(|_| !self.is_opening) {
            self.is_recovering = true;
            probe.on_tcp_event(now, TcpEvent::FastRetransmit { window });
        }
    }

    /// Persistent congestion has the effect of a timeout of TCP: the smallest window.
    #[cold]
    fn report_persistent_congestion(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        let (acked, sent) = self.connection.stream.acked_and_sent_packets();
        let state = TimeoutState {
            all_sent: !self.connection.stream.has_new_data(),
            window: self.connection.window().before_reduction,
            slow_start: self.connection.window().in_slow_start(),
            repeated: false,
            in_recovery: std::mem::take(&mut self.is_recovering),
            rto: 0,
        };
        let number = acked + 1;
        probe.on_tcp_event(
            now,
            TcpEvent::Timeout { number, left: self.size.max(sent) - number.min(sent), state },
        );
    }

    /// Time at which packets are lost or a probe is due.
    #[inline]
    #[must_use]
    pub fn sender_deadline(&self) -> Nanos {
        self.connection.loss_deadline()
    }

    /// Time at which an acknowledgement is due.
    #[inline]
    #[must_use]
    pub fn ack_deadline(&self) -> Nanos {
        self.connection.ack_deadline()
    }

    /// Time at which the pacer allows a waiting packet.
    #[inline]
    #[must_use]
    pub fn next_paced_time(&self) -> Nanos {
        self.connection.next_paced_time()
    }

    /// A timer expired: call [`QuicEndpoint::transmit`] for resulting datagrams.
    pub fn on_timer(&mut self, now: Nanos, probe: &mut impl TcpProbe) {
        match self.connection.on_timer(now) {
            Expired::Nothing => (),
            Expired::Loss { reduced_from } => self.report_reduction(now, reduced_from, probe),
            Expired::Probe if self.is_opening => (),
            Expired::Probe => {
                let retransmits = !self.connection.stream.has_new_data();
                probe.on_tcp_event(now, TcpEvent::TailLossProbe { retransmits });
            }
        }
    }

    /// Whether [`QuicEndpoint::transmit`] may do anything.
    #[inline]
    #[must_use]
    pub fn may_transmit(&self) -> bool {
        self.connection.may_send()
    }

    /// Sends all datagrams that may be sent now.
    #[inline]
    pub fn transmit(&mut self, now: Nanos, sink: &mut impl DatagramSink) {
        while let Some(sent) = self.connection.poll(now, &mut self.datagram) {
            let kind = match (sent.is_eliciting, sent.is_retransmission) {
                (false, _) => PacketKind::Ack,
                (true, true) => PacketKind::Retransmission,
                (true, false) => PacketKind::Data,
            };
            sink.send_datagram(&self.datagram, sent.number, kind);
        }
        if !sink.records_windows() {
            return;
        }
        let window = self.connection.window();
        let ssthresh =
            if window.ssthresh == INFINITE_SSTHRESH { u32::MAX } else { window.ssthresh };
        sink.on_tcp_event(
            now,
            TcpEvent::Window {
                cwnd: window.cwnd,
                ssthresh,
                flight: self.connection.packets_in_flight(),
                window: window.cwnd,
            },
        );
        if let Some((state, mss)) = self.connection.bbr_state() {
            sink.on_bbr_state(now, state, mss);
        }
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
