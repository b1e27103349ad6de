//! The TLS 1.3 handshake in QUIC: RFC 9001, section 4, and RFC 9000, section 8.1.
//!
//! ```text
//!  client                              server, which sends the file
//!    Initial: ClientHello ----------->                       0-RTT: request, and the file follows
//!        <---- Initial: ServerHello, Handshake: certificates, Finished     at most 3 times the bytes
//!    Handshake: Finished, request --->                                     that have arrived
//!        <------- HANDSHAKE_DONE, file
//! ```

use crate::modern::{EndpointRole, HandshakeKind};

/// ClientHello with the transport parameters, and with a session to resume.
const CLIENT_HELLO: u32 = 300;
const CLIENT_HELLO_RESUMED: u32 = 480;
/// ServerHello.
const SERVER_HELLO: u32 = 123;
/// EncryptedExtensions with the transport parameters, and Finished.
const SERVER_RESUMED: u32 = 141;
/// CertificateVerify, and the frame of the certificates.
const SERVER_VERIFY: u32 = 336;
/// Finished of the client.
const CLIENT_FINISHED: u32 = 36;
/// Bytes that a server may send per byte received, before the address of the client is validated.
const AMPLIFICATION: u64 = 3;

/// Bytes of the messages of a handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeBytes {
    pub client_hello: u32,
    pub server_hello: u32,
    pub server_rest: u32,
    pub finished: u32,
}

impl HandshakeBytes {
    pub fn new(kind: HandshakeKind, certificate: u32) -> Self {
        let is_resumed = kind.is_resumed();
        Self {
            client_hello: if is_resumed { CLIENT_HELLO_RESUMED } else { CLIENT_HELLO },
            server_hello: SERVER_HELLO,
            server_rest: SERVER_RESUMED + if is_resumed { 0 } else { SERVER_VERIFY + certificate },
            finished: CLIENT_FINISHED,
        }
    }
}

/// Progress of the handshake at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeState {
    pub role: EndpointRole,
    /// Whether keys of Handshake packets exist; below, keys to send and to read 1-RTT packets.
    pub has_handshake_keys: bool,
    pub sends_application: bool,
    pub reads_application: bool,
    pub is_confirmed: bool,
    /// Keys of Initial and Handshake packets are discarded.
    pub discarded: [bool; 2],
    /// The server has validated the address of the client, as far as this end knows.
    pub is_validated: bool,
    /// UDP payload received and sent, until the address is validated.
    received: u64,
    sent: u64,
}

impl HandshakeState {
    pub fn new(role: EndpointRole, kind: HandshakeKind) -> Self {
        let is_open = kind == HandshakeKind::None;
        Self {
            role,
            has_handshake_keys: is_open,
            sends_application: is_open
                || (role == EndpointRole::Client && kind == HandshakeKind::Tls13ZeroRtt),
            reads_application: is_open,
            is_confirmed: is_open,
            discarded: [is_open; 2],
            is_validated: is_open,
            received: 0,
            sent: 0,
        }
    }

    pub fn on_received(&mut self, bytes: u32) {
        self.received += u64::from(bytes);
    }

    pub fn on_sent(&mut self, bytes: u32) {
        self.sent += u64::from(bytes);
    }

    /// Bytes that may be sent before the address of the client is validated: RFC 9000, section 8.1.
    #[inline]
    pub fn budget(&self) -> u32 {
        if self.role == EndpointRole::Client || self.is_validated {
            return u32::MAX;
        }
        let left = (AMPLIFICATION * self.received).saturating_sub(self.sent);
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}
