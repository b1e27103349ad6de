//! Traits of the two ends of a connection, implemented by all TCP variants.

use super::{ArrivalResult, PacketsToSend, TcpConfig};
use crate::modern::{OutgoingPacket, Segment};
use crate::tcp_event::TcpProbe;
use tcpcast_link::random::RandomStream;
use tcpcast_link::time::{NEVER, Nanos};

/// Sending end: takes times and acknowledgements and returns packets to send.
pub trait SendingEnd: Default {
    /// Receiving end of the connection.
    type Receiver: ReceivingEnd;

    /// Whether the sender has instantaneous loss feedback: `on_loss` is called for each lost
    /// packet.
    const HAS_LOSS_FEEDBACK: bool = false;

    /// Whether packets are fetched with `poll_transmit`, not returned by the event methods. Packets
    /// of polled senders carry segments and can be paced.
    const IS_POLLED: bool = false;

    /// Creates the end of a source; `seeds` determines the random choices of its connections.
    fn for_source(_seeds: RandomStream) -> Self {
        Self::default()
    }

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

    /// Sets how many bytes the last packet of the next file lacks to full size; polled senders
    /// only.
    #[inline(always)]
    fn set_last_packet_padding(&mut self, _bytes: u32) {}

    /// Whether everything has been acknowledged.
    fn is_finished(&self) -> bool;

    /// Whether the connection has enough unused packet numbers for `more` packets.
    fn has_packet_numbers_left(&self, more: u32) -> bool;

    /// Expiry of the timer, [`NEVER`] if it is off.
    fn timer_deadline(&self) -> Nanos;

    /// Computes and caches a lower bound of the deadline, which is cheaper than the exact value.
    #[inline(always)]
    fn cache_deadline_lower_bound(&mut self) -> Nanos {
        self.timer_deadline()
    }

    /// The cached lower bound; polled senders only. Reading the cached value avoids access to
    /// distant memory.
    #[inline(always)]
    fn cached_deadline_lower_bound(&self) -> Nanos {
        0
    }

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

    /// Sends all packets allowed now; polled senders only.
    #[inline(always)]
    fn poll_transmit(
        &mut self,
        _now: Nanos,
        _tcp: &TcpConfig,
        _probe: &mut impl TcpProbe,
        _send: impl FnMut(&OutgoingPacket),
    ) {
    }

    /// Whether the handshake is still in progress, so that no data was sent yet.
    #[inline(always)]
    fn is_handshake_pending(&self) -> bool {
        false
    }

    /// The application has gone: nothing more is sent, and further packets are ignored.
    fn abandon_connection(&mut self) {}

    /// Returns once when the connection was opened; [`None`] without a handshake.
    #[inline(always)]
    fn take_opening_time(&mut self) -> Option<Nanos> {
        None
    }

    /// Random seed for the connection at the receiving end, if that end opens the connection.
    fn draw_connection_seed(&mut self) -> u64 {
        0
    }

    /// Time at which the pacer allows the next packet, [`NEVER`] if none waits. Poll again then.
    #[inline(always)]
    fn next_paced_time(&self) -> Nanos {
        NEVER
    }

    /// Time of the pending pacing event, [`NEVER`] if there is none; polled senders only.
    fn scheduled_pacing_time_mut(&mut self) -> &mut Nanos {
        unreachable!("this sender does not pace")
    }

    /// Reads one word of each cache line of this object, to load it early.
    #[inline(always)]
    fn prefetch(&self) -> u64 {
        0
    }

    /// Reads one word of each cache line that is reached through one pointer.
    #[inline(always)]
    fn prefetch_second(&self) -> u64 {
        0
    }

    /// Reads one word of each cache line that is reached through two pointers.
    #[inline(always)]
    fn prefetch_third(&self) -> u64 {
        0
    }

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

    /// Opens the connection, if connections begin with a handshake; the timer is due immediately.
    fn open_connection(&mut self, _now: Nanos, _seed: u64, _tcp: &TcpConfig) {}

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

    /// Returns a further acknowledgement to send now, after the acknowledgement that was just
    /// returned.
    #[inline(always)]
    fn poll_ack(&mut self, _now: Nanos, _tcp: &TcpConfig, _answer: &mut Segment) -> Option<u32> {
        None
    }

    /// See [`SendingEnd::prefetch`].
    #[inline(always)]
    fn prefetch(&self) -> u64 {
        0
    }

    /// See [`SendingEnd::prefetch_second`].
    #[inline(always)]
    fn prefetch_second(&self) -> u64 {
        0
    }

    /// See [`SendingEnd::prefetch_third`].
    #[inline(always)]
    fn prefetch_third(&self) -> u64 {
        0
    }
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
