//! Traits of the two ends of a connection, implemented by all TCP variants.

use super::{ArrivalResult, PacketsToSend, TcpConfig};
use crate::modern::Segment;
use crate::tcp_event::TcpProbe;
use tcpcast_link::time::{NEVER, Nanos};

/// Sending end: takes times and acknowledgements and returns packets to send.
pub trait SendingEnd: Default {
    /// Receiving end of the connection.
    type Receiver: ReceivingEnd;

    /// Whether the sender has instantaneous loss feedback: `on_loss` is called for each lost
    /// packet.
    const HAS_LOSS_FEEDBACK: bool = false;

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

    /// Expiry of the timer, [`NEVER`] if it is off.
    fn timer_deadline(&self) -> Nanos;

    /// Packets sent at least once and not acknowledged; 0 for senders with loss feedback.
    fn packets_in_flight(&self) -> u32 {
        0
    }

    /// Packets of the connection acknowledged so far; 0 for senders with loss feedback.
    fn acked_packets(&self) -> u64 {
        0
    }

    /// An acknowledgement arrives; `ack` is the next packet that the receiver expects, and `segment`
    /// is empty unless the receiver is modern.
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        segment: &Segment,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend;

    /// The timer expired.
    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe)
    -> PacketsToSend;

    /// The application has gone: nothing more is sent, and further packets are ignored.
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

/// Receiving end.
pub trait ReceivingEnd: Default {
    /// Starts a new connection.
    fn start_connection(&mut self, tcp: &TcpConfig);

    /// The application has gone: the connection is not opened.
    fn abandon_connection(&mut self) {}

    /// A data packet arrives. Modern receivers read its segment, and replace `answer` if an
    /// acknowledgement is due now.
    fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        segment: &Segment,
        tcp: &TcpConfig,
        answer: &mut Segment,
    ) -> ArrivalResult;

    /// Data packets received in order.
    fn packets_in_order(&self) -> u32 {
        0
    }

    /// Deadline of the delayed acknowledgement, [`NEVER`] if none is pending.
    fn ack_deadline(&self) -> Nanos;

    /// The delayed acknowledgement is due.
    fn on_ack_timer(&mut self, now: Nanos, tcp: &TcpConfig, answer: &mut Segment) -> Option<u32>;
}

/// Acknowledges each packet by its own number, for senders that count packets in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerPacketAckReceiver;

impl ReceivingEnd for PerPacketAckReceiver {
    fn start_connection(&mut self, _tcp: &TcpConfig) {}

    #[inline]
    fn on_data(
        &mut self,
        _now: Nanos,
        number: u32,
        _segment: &Segment,
        _tcp: &TcpConfig,
        _answer: &mut Segment,
    ) -> ArrivalResult {
        ArrivalResult { distinct: true, ack: Some(number) }
    }

    fn ack_deadline(&self) -> Nanos {
        NEVER
    }

    fn on_ack_timer(
        &mut self,
        _now: Nanos,
        _tcp: &TcpConfig,
        _answer: &mut Segment,
    ) -> Option<u32> {
        None
    }
}
