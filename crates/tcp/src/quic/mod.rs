//! QUIC (RFC 9000, 9001, 9002): both ends of a connection without I/O or clock.
//!
//! ```text
//!  datagrams -> connection.rs -> ack_tracker.rs (what to acknowledge, and when)
//!                    |       \-> sent_packets.rs, recovery.rs -> congestion.rs (losses, window)
//!                    v
//!  endpoint.rs <- streams.rs, handshake.rs
//! ```
//!
//! The congestion controls are those of TCP (`modern/cc`). Each direction has one stream: an
//! application that needs several streams would see them in the order of their first bytes.

mod ack_tracker;
mod congestion;
mod connection;
mod datagram;
mod endpoint;
mod handshake;
mod pacer;
mod ranges;
mod recovery;
mod rules;
mod sent_packets;
mod slow_start;
mod streams;

pub use connection::QuicConnection;
pub use datagram::{Datagram, QuicPacket, Space};
pub use endpoint::{DatagramSink, QuicEndpoint};
pub use rules::{PacingBurst, QuicRules, SlowStartExit};
