//! Connection setup: three segments (RFC 9293, section 3.5), and TLS.
//!
//! ```text
//!  client                             server, which sends the file
//!    SYN ---------------------------->
//!        <--------------------- SYN-ACK     subject to queues and random loss
//!    message 1 ---------------------->      acknowledgement; with TLS it carries ClientHello
//!        <-------------------- flight 1     only with TLS; ordinary packets of the connection
//!    message 2 ---------------------->
//!        <------------------------ file     after the client's reply to the last flight
//! ```
//!
//! Each acknowledgement contains the number of messages sent by the client, so a lost one is
//! replaced by the next.

use super::packet_header::{AckHeader, DataHeader};
use super::packet_receiver::PacketReceiver;
use super::packet_sender::{PacketSender, establish_connection};
use super::segment::{TIMESTAMP_TICK, Timestamps, timestamp_at};
use super::stack::Stack;
use super::stack_options::ModernTcpConfig;
use super::tick_clock::{TickClock, TimerSpan};
use crate::clock::{NEVER, Nanos};
use crate::probe::{TcpEvent, TcpProbe};
use crate::traffic::FileSize;
use serde::Deserialize;

/// Handshake before the data of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeKind {
    /// No handshake: the connection starts with one round-trip sample, the base RTT.
    #[default]
    None,
    /// SYN, SYN-ACK and acknowledgement; the server sends after accepting.
    Tcp,
    /// TCP handshake and full TLS 1.3 handshake: one more round trip (RFC 8446, section 2).
    Tls13,
    /// TCP handshake and full TLS 1.2 handshake: two more round trips (RFC 5246, section 7.3).
    Tls12,
}

/// Bytes of the server's certificates: a leaf and one intermediate, as most sites send them.
const CERTIFICATE_BYTES: u32 = 3000;
/// Bytes of ServerHello, EncryptedExtensions, CertificateVerify and Finished, including record
/// headers and tags: RFC 8446, sections 4 and 5.
const TLS13_OTHER_BYTES: u32 = 600;
/// Bytes of ServerHello, ServerKeyExchange and ServerHelloDone: RFC 5246, section 7.4.
const TLS12_OTHER_BYTES: u32 = 450;
/// Bytes of NewSessionTicket (RFC 5077), ChangeCipherSpec and Finished.
const TLS12_FINISHED_BYTES: u32 = 260;

impl HandshakeKind {
    /// Bytes of each flight that the server sends before the file.
    #[must_use]
    pub fn flight_bytes(self) -> &'static [u32] {
        match self {
            Self::None | Self::Tcp => &[],
            Self::Tls13 => &[CERTIFICATE_BYTES + TLS13_OTHER_BYTES],
            Self::Tls12 => &[CERTIFICATE_BYTES + TLS12_OTHER_BYTES, TLS12_FINISHED_BYTES],
        }
    }

    /// Total bytes of the first `flights` flights.
    pub(super) fn bytes_of_first_flights(self, flights: usize) -> u32 {
        self.flight_bytes().iter().take(flights).sum()
    }
}

/// Transmissions and timer of an unanswered SYN or SYN-ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct SynAttempts {
    /// Number of transmissions, caused by the timer or by repeated SYNs.
    pub sends: u32,
    timeouts: u32,
    first_stamp: u32,
    /// Time of the last transmission.
    sent_at: Nanos,
    rto: Nanos,
    pub deadline: Nanos,
}

impl SynAttempts {
    pub fn new(deadline: Nanos, stack: &Stack) -> Self {
        let rto = stack.initial_rto;
        Self { sends: 0, timeouts: 0, first_stamp: 0, sent_at: 0, rto, deadline }
    }

    /// Records a transmission; returns the timeout.
    pub fn record_transmission(&mut self, now: Nanos) -> Nanos {
        if self.sends == 0 {
            self.first_stamp = timestamp_at(now);
        }
        self.sends += 1;
        self.sent_at = now;
        self.rto
    }

    /// A SYN timed out. Linux doubles the timeout only after several SYNs:
    /// `tcp_syn_linear_timeouts` of its `ip-sysctl`.
    pub fn on_syn_timeout(&mut self, stack: &Stack) {
        self.timeouts += 1;
        if self.sends > stack.linear_syns {
            self.double_timeout(stack);
        }
    }

    /// A SYN-ACK timed out.
    pub fn on_syn_ack_timeout(&mut self, stack: &Stack) {
        self.timeouts += 1;
        self.double_timeout(stack);
    }

    /// RFC 6298 (5.5).
    fn double_timeout(&mut self, stack: &Stack) {
        self.rto = (self.rto * 2).min(stack.max_rto);
    }

    /// Whether data begins with a window of one packet (RFC 5681, section 3.1): true after two
    /// retransmissions, because the first timeout is 1 s (RFC 6298, appendix A). As in Linux,
    /// retransmissions in answer to repeated SYNs count, but at least one must be caused by a
    /// timeout that was not spurious: the reply does not echo the first timestamp (RFC 7323,
    /// section 3).
    pub fn starts_with_one_packet(&self, stamps: Option<Timestamps>) -> bool {
        let echoes_first = stamps.is_some_and(|stamps| stamps.echo == self.first_stamp);
        self.sends > 2 && self.timeouts > 0 && !echoes_first
    }

    /// Round-trip time. For retransmitted segments the time is known only from a timestamp (RFC
    /// 7323, section 4).
    pub fn handshake_rtt(&self, now: Nanos, stamps: Option<Timestamps>) -> Option<Nanos> {
        if self.sends == 1 {
            return Some(now - self.sent_at);
        }
        let ticks = stamps.map(|stamps| timestamp_at(now).wrapping_sub(stamps.echo).max(1));
        ticks.map(|ticks| Nanos::from(ticks) * TIMESTAMP_TICK)
    }
}

/// Server side of a handshake in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerHandshake {
    seed: u64,
    file: FileSize,
    state: ServerState,
}

#[derive(Clone, Copy, Debug)]
enum ServerState {
    /// Waiting for a SYN.
    Listen,
    /// SYN-ACK is due or was sent.
    SynReceived { attempts: SynAttempts, due: bool },
    /// TLS handshake: number of flights sent.
    TlsFlights { flights: usize },
}

impl ServerHandshake {
    pub(super) fn new(file: FileSize, seed: u64) -> Self {
        Self { seed, file, state: ServerState::Listen }
    }

    /// Deadline for retransmitting SYN-ACK; [`None`] if the sender's own timer is used.
    #[inline]
    pub(super) fn deadline(&self) -> Option<Nanos> {
        match self.state {
            ServerState::Listen => Some(NEVER),
            ServerState::SynReceived { attempts, .. } => Some(attempts.deadline),
            ServerState::TlsFlights { .. } => None,
        }
    }
}

impl PacketSender {
    /// Waits for the SYN of a connection that will send `file`.
    pub(super) fn listen(&mut self, file: FileSize, seed: u64) {
        self.handshake = Some(Box::new(ServerHandshake::new(file, seed)));
    }

    /// Whether the handshake is in progress.
    #[inline(always)]
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.handshake.is_some()
    }

    /// Processes a SYN or a later packet of the handshake; returns true if the packet was consumed,
    /// so that the sender ignores it.
    #[inline(never)]
    pub(super) fn on_opening_packet(
        &mut self,
        now: Nanos,
        header: &AckHeader,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) -> bool {
        let Some(handshake) = &mut self.handshake else { return header.syn };
        if header.syn {
            let attempts = SynAttempts::new(NEVER, &tcp.stack);
            let new = ServerState::SynReceived { attempts, due: true };
            match &mut handshake.state {
                ServerState::Listen => handshake.state = new,
                // The client has not received the SYN-ACK.
                ServerState::SynReceived { due, .. } => *due = true,
                ServerState::TlsFlights { .. } => (),
            }
            return true;
        }
        if let ServerState::SynReceived { attempts, .. } = handshake.state {
            let stack = &tcp.stack;
            let stamps = header.timestamps().filter(|_| stack.timestamps);
            let rtt = attempts.handshake_rtt(now, stamps);
            self.sender.restart_connection(now, handshake.seed, stack);
            establish_connection(&mut self.sender, now, rtt, tcp);
            if attempts.starts_with_one_packet(stamps) {
                self.sender.start_with_one_packet();
            }
            handshake.state = ServerState::TlsFlights { flights: 0 };
            self.on_client_messages(now, header.messages, tcp, probe);
            return true;
        }
        false
    }

    /// The client has sent `messages` messages: sends the next flight, or the file.
    pub(super) fn on_client_messages(
        &mut self,
        now: Nanos,
        messages: u8,
        tcp: &ModernTcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        let Some(handshake) = &mut self.handshake else { return };
        let ServerState::TlsFlights { flights } = &mut handshake.state else { return };
        if usize::from(messages) <= *flights {
            return;
        }
        if let Some(bytes) = tcp.handshake.flight_bytes().get(*flights) {
            *flights += 1;
            let packets = bytes.div_ceil(tcp.stack.mss);
            let lacking = packets * tcp.stack.mss - bytes;
            self.write(now, FileSize { packets, lacking }, tcp, probe);
        } else {
            let file = handshake.file;
            self.handshake = None;
            probe.on_tcp_event(now, TcpEvent::Opened { packets: file.packets });
            self.write_file(now, file, tcp, probe);
        }
    }

    /// Returns the header of a SYN-ACK (packet 0) if it is due.
    #[inline(never)]
    pub(super) fn poll_syn_ack(&mut self, now: Nanos, tcp: &ModernTcpConfig) -> Option<DataHeader> {
        let ServerState::SynReceived { attempts, due, .. } = &mut self.handshake.as_mut()?.state
        else {
            return None;
        };
        if !std::mem::take(due) {
            return None;
        }
        let wait = attempts.record_transmission(now);
        attempts.deadline = self.sender.clock.expiry_of(TimerSpan::new(now, wait));
        Some(DataHeader::new_syn_ack(Timestamps { value: timestamp_at(now), echo: self.echo }, tcp))
    }

    /// A SYN-ACK timed out.
    pub(super) fn on_opening_timer(&mut self, tcp: &ModernTcpConfig) -> bool {
        let Some(handshake) = &mut self.handshake else { return false };
        let ServerState::SynReceived { attempts, due } = &mut handshake.state else { return false };
        attempts.on_syn_ack_timeout(&tcp.stack);
        *due = true;
        true
    }
}

/// Client side of a handshake, until its SYN is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientHandshake {
    attempts: SynAttempts,
    clock: TickClock,
}

impl ClientHandshake {
    #[inline]
    pub(super) fn deadline(&self) -> Nanos {
        self.attempts.deadline
    }
}

impl PacketReceiver {
    /// The application connects; the timer, which is due immediately, sends the SYN.
    pub fn connect(&mut self, now: Nanos, seed: u64, tcp: &ModernTcpConfig) {
        // The client is a different host.
        let clock = TickClock::new(seed.rotate_left(u64::BITS / 2), &tcp.stack);
        let attempts = SynAttempts::new(now, &tcp.stack);
        self.handshake = Some(Box::new(ClientHandshake { attempts, clock }));
    }

    /// The application has gone: no SYN is sent.
    pub fn abandon(&mut self) {
        self.handshake = None;
    }

    /// Sends a SYN, or retransmits it.
    #[inline(never)]
    pub(super) fn send_syn(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> Option<u32> {
        let ClientHandshake { attempts, clock } = self.handshake.as_deref_mut()?;
        if attempts.sends > 0 {
            attempts.on_syn_timeout(&tcp.stack);
        }
        let wait = attempts.record_transmission(now);
        attempts.deadline = clock.expiry_of(TimerSpan::new(now, wait));
        *header = AckHeader::new_syn(timestamp_at(now), attempts.sends == 1, tcp);
        Some(0)
    }

    /// A SYN-ACK arrives; the acknowledgement is due immediately.
    #[inline(never)]
    pub(super) fn on_syn_ack(&mut self, now: Nanos, header: &DataHeader) {
        if let Some(handshake) = self.handshake.take() {
            let stamps = header.timestamps();
            let rtt = handshake.attempts.handshake_rtt(now, stamps);
            self.receiver.on_established(rtt, stamps.map(|stamps| stamps.value));
            self.messages = 1;
        }
        self.receiver.make_ack_due();
    }

    /// Whether further TLS flights are expected before the file.
    #[inline(always)]
    pub(super) fn awaits_tls_flight(&self) -> bool {
        self.messages <= self.flights
    }

    /// A packet of a TLS flight arrives: answers immediately if the flight is complete. The packet
    /// is not part of the file.
    #[inline(never)]
    pub(super) fn on_tls_flight_packet(
        &mut self,
        now: Nanos,
        tcp: &ModernTcpConfig,
        header: &mut AckHeader,
    ) -> Option<u32> {
        let bytes = tcp.handshake.bytes_of_first_flights(usize::from(self.messages));
        if self.receiver.next_expected() > u64::from(bytes) {
            self.messages += 1;
            let outgoing = self.receiver.on_data_sent(now, &tcp.stack);
            return Some(self.fill_header_with_blocks(&outgoing, tcp, header));
        }
        self.poll_ack(tcp, header)
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::{Connection, Segment};
    use super::super::sender_event::{SenderEvent, SenderProbe};
    use super::super::stack::Preset;
    use super::*;
    use crate::clock::SECOND;

    struct NoProbe;

    impl SenderProbe for NoProbe {
        fn on_sender_event(&mut self, _now: Nanos, _event: SenderEvent) {}
    }

    /// Times in seconds at which a socket sends its unanswered SYNs.
    fn syns(preset: Preset) -> Vec<f64> {
        let mut socket = Connection::new(preset.stack(), 1460, 7, 1);
        socket.connect();
        let mut now = 0;
        let mut next = || {
            let sent: Option<Segment> = socket.poll_transmit(now, &mut NoProbe);
            assert!(sent.is_some_and(|segment| segment.flags.syn));
            let sent_at = now as f64 / SECOND as f64;
            now = socket.deadline();
            socket.on_deadline(now, &mut NoProbe);
            sent_at
        };
        (0..8).map(|_| next()).collect()
    }

    #[test]
    fn linux_tcp_syn_linear_timeouts_apply_to_sockets() {
        let round = |at: &f64| at.round();
        let linux: Vec<f64> = syns(Preset::LinuxCubic).iter().map(round).collect();
        assert_eq!(linux, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0]);
        let rfc: Vec<f64> = syns(Preset::RfcSack).iter().map(round).collect();
        assert_eq!(rfc[..6], [0.0, 1.0, 3.0, 7.0, 15.0, 31.0]);
    }
}
