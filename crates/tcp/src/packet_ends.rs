//! Ends of connections whose sequence numbers count packets: classic TCP, in which one end
//! sends files and the other one acknowledges them.
//!
//! In a segment of data, `seq` is the number of the packet, from 1. In an acknowledgement, `ack` is
//! the next packet that the receiver expects, or with instantaneous loss feedback the packet that
//! has arrived.

use crate::cc::{FractionalReno, Reno};
use crate::modern::{Segment, SegmentSink};
use crate::tcp_event::TcpProbe;
use crate::{
    CwndUnit, IdleTime, InstantFeedbackSender, PacketKind, PacketsToSend, Receiver, Sender,
    SendingEnd, TcpConfig,
};
use std::collections::VecDeque;
use tcpcast_link::time::Nanos;

/// TCP of one end of a connection whose sequence numbers count packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketTcp {
    /// Rules of the connection.
    pub rules: TcpConfig,
    /// Bytes of a packet.
    pub packet_bytes: u32,
    /// Whether the end sends files; otherwise it receives them.
    pub sends: bool,
}

/// Calls the sender of either kind.
macro_rules! with_sender {
    ($algorithm:expr, $sender:ident => $call:expr) => {
        match $algorithm {
            Algorithm::Packets($sender) => $call,
            Algorithm::Bytes($sender) => $call,
            Algorithm::LossFeedback($sender) => $call,
        }
    };
}

#[derive(Clone, Debug)]
enum Algorithm {
    Packets(Sender<Reno>),
    Bytes(Sender<FractionalReno>),
    LossFeedback(InstantFeedbackSender),
}

/// The end that sends files.
#[derive(Clone, Debug)]
pub struct PacketSender {
    algorithm: Algorithm,
    /// Whether the connection has sent a file.
    is_open: bool,
    /// Packets that may be sent and have not been sent yet.
    released: PacketsToSend,
    last_ack: Nanos,
    last_sent: Nanos,
    /// Pending notifications of lost packets, with their times, earliest first.
    losses: VecDeque<(Nanos, u32)>,
}

impl PacketSender {
    /// Starts a connection.
    #[must_use]
    pub fn new(tcp: &TcpConfig) -> Self {
        let algorithm = match (tcp.instant, tcp.window_unit) {
            (Some(_), _) => Algorithm::LossFeedback(InstantFeedbackSender::default()),
            (None, CwndUnit::Packets) => Algorithm::Packets(Sender::default()),
            (None, CwndUnit::Bytes) => Algorithm::Bytes(Sender::default()),
        };
        Self {
            algorithm,
            is_open: false,
            released: PacketsToSend::default(),
            last_ack: 0,
            last_sent: 0,
            losses: VecDeque::new(),
        }
    }

    /// Starts a new connection in the same memory.
    pub fn restart(&mut self) {
        self.is_open = false;
        self.released = PacketsToSend::default();
        self.losses.clear();
    }

    /// Sends a file of `packets` packets; everything written before is acknowledged.
    pub fn write(&mut self, now: Nanos, packets: u32, tcp: &TcpConfig, probe: &mut impl TcpProbe) {
        let idle = IdleTime {
            since_ack: now.saturating_sub(self.last_ack),
            since_sent: now.saturating_sub(self.last_sent),
        };
        let is_open = std::mem::replace(&mut self.is_open, true);
        self.released = with_sender!(&mut self.algorithm, sender => if is_open {
            sender.send_file_on_open_connection(now, packets, idle, tcp, probe)
        } else {
            sender.start_file_on_new_connection(now, packets, tcp, probe)
        });
    }

    /// The application has exited: nothing more is sent.
    pub fn abandon(&mut self) {
        with_sender!(&mut self.algorithm, sender => sender.abandon_connection());
        self.losses.clear();
    }

    /// Whether all written data has been acknowledged.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        with_sender!(&self.algorithm, sender => sender.is_finished())
    }

    /// Whether enough packet numbers are left to send `more` packets.
    #[must_use]
    pub fn has_packet_numbers_left(&self, more: u32) -> bool {
        with_sender!(&self.algorithm, sender => sender.has_packet_numbers_left(more))
    }

    /// Outstanding packets; 0 with instantaneous loss feedback.
    #[must_use]
    pub fn packets_in_flight(&self) -> u32 {
        with_sender!(&self.algorithm, sender => sender.packets_in_flight())
    }

    /// Acknowledged packets of the connection; 0 with instantaneous loss feedback.
    #[must_use]
    pub fn acked_packets(&self) -> u64 {
        with_sender!(&self.algorithm, sender => sender.acked_packets())
    }

    /// An acknowledgement arrives.
    #[inline(always)]
    pub fn on_ack(
        &mut self,
        now: Nanos,
        segment: &Segment,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        self.last_ack = now;
        let ack = segment.ack as u32;
        self.released = with_sender!(&mut self.algorithm, sender => {
            sender.on_ack(now, ack, tcp, probe)
        });
    }

    /// Packet `number` was lost: the sender is notified at `due`.
    pub fn add_loss(&mut self, due: Nanos, number: u32) {
        let at = self.losses.partition_point(|loss| *loss <= (due, number));
        self.losses.insert(at, (due, number));
    }

    /// Expiry of the timer or time of the next notification; [`NEVER`] if there is none.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        let timer = with_sender!(&self.algorithm, sender => sender.timer_deadline());
        self.losses.front().map_or(timer, |(due, _)| timer.min(*due))
    }

    /// Handles one notification or the expiry of the timer, whichever is due first.
    pub fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) {
        if let Some((_, number)) = self.losses.front().copied().filter(|(due, _)| *due <= now) {
            self.losses.pop_front();
            self.released = with_sender!(&mut self.algorithm, sender => {
                sender.on_loss(now, number, tcp, probe)
            });
            return;
        }
        self.released = with_sender!(&mut self.algorithm, sender => {
            sender.on_timer(now, tcp, probe)
        });
    }

    /// Whether packets may be sent.
    #[inline(always)]
    #[must_use]
    pub fn may_transmit(&self) -> bool {
        self.released.count > 0 || self.released.retransmit != 0
    }

    /// Sends all packets that may be sent; `segment` is memory for them.
    #[inline(always)]
    pub fn transmit(
        &mut self,
        now: Nanos,
        packet_bytes: u32,
        segment: &mut Segment,
        sink: &mut impl SegmentSink,
    ) {
        let released = std::mem::take(&mut self.released);
        self.last_sent = now;
        segment.clear();
        segment.len = packet_bytes;
        for (number, kind) in released.packets() {
            segment.seq = u64::from(number);
            sink.send_segment(segment, number, kind);
        }
    }
}

/// The end that receives files.
#[derive(Clone, Debug, Default)]
pub struct PacketReceiver {
    receiver: Receiver,
    /// Acknowledgement that may be sent.
    answer: Option<u32>,
}

impl PacketReceiver {
    /// Starts a new connection in the same memory.
    pub fn restart(&mut self) {
        self.receiver.start_connection();
        self.answer = None;
    }

    /// Packets received in order.
    #[must_use]
    pub fn packets_in_order(&self) -> u32 {
        self.receiver.packets_in_order()
    }

    /// A packet arrives; returns whether it is new.
    #[inline(always)]
    pub fn on_data(&mut self, now: Nanos, segment: &Segment, tcp: &TcpConfig) -> bool {
        let number = segment.seq as u32;
        if tcp.instant.is_some() {
            self.answer = Some(number);
            return true;
        }
        let arrival = self.receiver.on_data(now, number, tcp);
        self.answer = arrival.ack;
        arrival.distinct
    }

    /// Deadline of the delayed acknowledgement; [`NEVER`] if none is pending.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.receiver.ack_deadline()
    }

    /// The delayed acknowledgement is due.
    pub fn on_timer(&mut self) {
        self.answer = Some(self.receiver.on_ack_timer());
    }

    /// Whether an acknowledgement may be sent.
    #[inline(always)]
    #[must_use]
    pub fn may_transmit(&self) -> bool {
        self.answer.is_some()
    }

    /// Sends the acknowledgement; `segment` is memory for it.
    #[inline(always)]
    pub fn transmit(
        &mut self,
        tcp: &TcpConfig,
        segment: &mut Segment,
        sink: &mut impl SegmentSink,
    ) {
        if let Some(number) = self.answer.take() {
            segment.clear();
            segment.ack = u64::from(number);
            // With instantaneous loss feedback, an acknowledgement covers only one packet.
            segment.flags.ack = tcp.instant.is_none();
            sink.send_segment(segment, 0, PacketKind::Ack);
        }
    }
}
