//! The sending end of classic TCP, implemented by all of its variants.

use super::{PacketsToSend, TcpConfig};
use crate::tcp_event::TcpProbe;
use tcpcast_link::time::Nanos;

/// Sending end: takes times and acknowledgements and returns packets to send.
pub trait SendingEnd: Default {
    /// Starts a new connection that sends `size` packets.
    fn start_file_on_new_connection(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend;

    /// Sends `more` packets on an open connection on which everything is acknowledged.
    fn send_file_on_open_connection(
        &mut self,
        now: Nanos,
        more: u32,
        idle: IdleTime,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend;

    /// Whether everything has been acknowledged.
    fn is_finished(&self) -> bool;

    /// Whether the connection has enough unused packet numbers for `more` packets.
    fn has_packet_numbers_left(&self, more: u32) -> bool;

    /// Expiry of the timer, [`tcpcast_link::time::NEVER`] if it is off.
    fn timer_deadline(&self) -> Nanos;

    /// Packets sent at least once and not acknowledged; 0 for senders with loss feedback.
    fn packets_in_flight(&self) -> u32 {
        0
    }

    /// Packets of the connection acknowledged so far; 0 for senders with loss feedback.
    fn acked_packets(&self) -> u64 {
        0
    }

    /// An acknowledgement arrives; `ack` is the next packet that the receiver expects, or with
    /// instantaneous loss feedback the packet that has arrived.
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend;

    /// The timer expired.
    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe)
    -> PacketsToSend;

    /// The application has exited: nothing more is sent, and further packets are ignored.
    fn abandon_connection(&mut self) {}

    /// Packet `number` was lost; called only if the sender has loss feedback.
    fn on_loss(
        &mut self,
        _now: Nanos,
        _number: u32,
        _tcp: &TcpConfig,
        _probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        PacketsToSend::default()
    }
}

/// Idle time of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleTime {
    /// Time since the last acknowledgement.
    pub since_ack: Nanos,
    /// Time since the last packet was sent.
    pub since_sent: Nanos,
}
