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

use super::segment::{TIMESTAMP_TICK, Timestamps, timestamp_at};
use super::stack::Stack;
use serde::Deserialize;
use tcpcast_link::time::Nanos;

/// TCP and TLS handshakes before the data of a connection.
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
    /// TLS 1.3 with the keys of an earlier session instead of certificates (RFC 8446, section 2.2).
    Tls13Resumption,
    /// As with resumption; the request arrives with the first message of TLS (RFC 8446, section
    /// 2.3).
    #[serde(rename = "tls13-0rtt")]
    Tls13ZeroRtt,
}

/// Bytes of the server's certificates: a leaf and one intermediate, as most sites send them.
pub(super) const CERTIFICATE_BYTES: u32 = 3000;
/// Bytes of ServerHello, EncryptedExtensions, CertificateVerify and Finished, including record
/// headers and tags: RFC 8446, sections 4 and 5.
const TLS13_OTHER_BYTES: u32 = 600;
/// Bytes of ServerHello, EncryptedExtensions and Finished.
const TLS13_RESUMED_BYTES: u32 = 280;
/// Bytes of ServerHello, ServerKeyExchange and ServerHelloDone: RFC 5246, section 7.4.
const TLS12_OTHER_BYTES: u32 = 450;
/// Bytes of NewSessionTicket (RFC 5077), ChangeCipherSpec and Finished.
const TLS12_FINISHED_BYTES: u32 = 260;

impl HandshakeKind {
    /// Bytes of each flight that the server sends before the file, with certificates of this size.
    pub fn flight_bytes(self, certificate: u32) -> impl Iterator<Item = u32> {
        let flights = match self {
            // The flight of 0-RTT is sent together with the response.
            Self::None | Self::Tcp | Self::Tls13ZeroRtt => [None, None],
            Self::Tls13Resumption => [Some(TLS13_RESUMED_BYTES), None],
            Self::Tls13 => [Some(certificate + TLS13_OTHER_BYTES), None],
            Self::Tls12 => [Some(certificate + TLS12_OTHER_BYTES), Some(TLS12_FINISHED_BYTES)],
        };
        flights.into_iter().flatten()
    }

    /// Whether keys of an earlier session replace the certificates.
    pub(crate) fn is_resumed(self) -> bool {
        matches!(self, Self::Tls13Resumption | Self::Tls13ZeroRtt)
    }

    /// Total bytes of the first `flights` flights.
    pub(super) fn bytes_of_first_flights(self, certificate: u32, flights: usize) -> u32 {
        self.flight_bytes(certificate).take(flights).sum()
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
        if self.sends == 0 {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::super::connection::Connection;
    use super::super::presets::Preset;
    use tcpcast_link::time::SECOND;

    /// Times in seconds at which a socket sends its unanswered SYNs.
    fn syns(preset: Preset) -> Vec<f64> {
        let mut socket = Connection::new(preset.stack(), 1460, 7, 1);
        socket.connect(0);
        let mut now = 0;
        let mut next = || {
            let sent = socket.poll_transmit(now);
            assert!(sent.is_some_and(|segment| segment.flags.syn));
            let sent_at = now as f64 / SECOND as f64;
            now = socket.deadline();
            socket.on_deadline(now, &mut ());
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
