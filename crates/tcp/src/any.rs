//! Sender and receiver of any TCP variant, for runs that mix classic and modern TCP. The class of
//! a source selects its variant.

use super::cc::{FractionalReno, Reno};
use super::modern::{Connection, FileClient, FileServer, OutgoingPacket, Segment};
use super::{
    ArrivalResult, CwndUnit, IdleTime, PacketsToSend, Receiver, ReceivingEnd, Sender, SendingEnd,
    TcpConfig,
};
use crate::file_size::FileSize;
use crate::tcp_event::TcpProbe;
use tcpcast_link::random::{RandomSource, RandomStream};
use tcpcast_link::time::{NEVER, Nanos};

/// Sending end of one source, for any TCP variant. Fields that every packet needs come first: see
/// `Source`.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct AnySender {
    end: SenderKind,
    /// Time of the pacing event in the event queue.
    scheduled_pacing: Nanos,
    /// Cached lower bound of the timer's expiry.
    cached_deadline_lower_bound: Nanos,
    /// Packets released by a classic sender and not yet sent.
    released: PacketsToSend,
    seeds: Option<RandomStream>,
    opened_at: Option<Nanos>,
    /// Number of packets that were acknowledged when the connection was abandoned.
    acked: u64,
    /// Bytes by which the last packet of the next file is below full size.
    last_packet_padding: u32,
}

#[derive(Clone, Debug)]
enum SenderKind {
    /// Nothing was sent yet.
    None,
    Packets(Box<Sender<Reno>>),
    Bytes(Box<Sender<FractionalReno>>),
    Modern(Box<FileServer>),
}

impl Default for AnySender {
    fn default() -> Self {
        Self {
            end: SenderKind::None,
            released: PacketsToSend::default(),
            scheduled_pacing: NEVER,
            cached_deadline_lower_bound: 0,
            seeds: None,
            opened_at: None,
            acked: 0,
            last_packet_padding: 0,
        }
    }
}

/// Calls the active variant; `$none` is the value if there is none yet.
macro_rules! each {
    ($end:expr, $sender:ident => $do:expr, $none:expr) => {
        match $end {
            SenderKind::None => $none,
            SenderKind::Packets($sender) => $do,
            SenderKind::Bytes($sender) => $do,
            SenderKind::Modern($sender) => $do,
        }
    };
}

/// Calls the active variant; stores packets released by a classic sender.
macro_rules! dispatch {
    ($any:expr, $tcp:expr, $classic:ident => $call:expr, ($modern:ident, $rules:ident) => $do:expr) => {
        match (&mut $any.end, &$tcp.modern) {
            (SenderKind::Packets($classic), _) => $any.released = $call,
            (SenderKind::Bytes($classic), _) => $any.released = $call,
            (SenderKind::Modern($modern), Some($rules)) => $do,
            (SenderKind::Modern(_), None) | (SenderKind::None, _) => (),
        }
    };
}

impl SendingEnd for AnySender {
    type Receiver = AnyReceiver;

    const IS_POLLED: bool = true;

    fn for_source(seeds: RandomStream) -> Self {
        Self { seeds: Some(seeds), ..Self::default() }
    }

    fn start_file_on_new_connection(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        self.released = PacketsToSend::default();
        if let Some(rules) = &tcp.modern {
            let seed = self.draw_connection_seed();
            self.opened_at = tcp.has_handshake().then_some(now);
            let file = self.take_file_size(size);
            match &mut self.end {
                SenderKind::Modern(before) => {
                    before.restart_connection(now, file, seed, rules, probe)
                }
                end => {
                    let sender = FileServer::start_connection(now, file, seed, rules, probe);
                    *end = SenderKind::Modern(Box::new(sender));
                }
            }
            return PacketsToSend::default();
        }
        if matches!(self.end, SenderKind::None) {
            self.end = match tcp.window_unit {
                CwndUnit::Packets => SenderKind::Packets(Box::default()),
                CwndUnit::Bytes => SenderKind::Bytes(Box::default()),
            };
        }
        dispatch!(self, tcp, sender => sender.start_file_on_new_connection(now, size, tcp, probe), (_sender, _rules) => ());
        PacketsToSend::default()
    }

    fn send_file_on_open_connection(
        &mut self,
        now: Nanos,
        more: u32,
        idle: IdleTime,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        let file = self.take_file_size(more);
        dispatch!(
            self, tcp,
            sender => sender.send_file_on_open_connection(now, more, idle, tcp, probe),
            (sender, rules) => sender.write_file(now, file, rules, probe)
        );
        PacketsToSend::default()
    }

    #[inline(always)]
    fn is_finished(&self) -> bool {
        match &self.end {
            SenderKind::Modern(sender) => sender.is_finished(),
            _ => self.is_classic_sender_finished(),
        }
    }

    fn has_packet_numbers_left(&self, more: u32) -> bool {
        each!(&self.end, sender => sender.has_packet_numbers_left(more), true)
    }

    #[inline(always)]
    fn timer_deadline(&self) -> Nanos {
        self.modern_end().map_or_else(|| self.classic_deadline(), Connection::sender_deadline)
    }

    #[inline(always)]
    fn cache_deadline_lower_bound(&mut self) -> Nanos {
        self.cached_deadline_lower_bound = match self.modern_end() {
            Some(connection) => connection.sender_deadline_lower_bound(),
            None => self.classic_deadline(),
        };
        self.cached_deadline_lower_bound
    }

    #[inline(always)]
    fn cached_deadline_lower_bound(&self) -> Nanos {
        self.cached_deadline_lower_bound
    }

    #[inline(always)]
    fn set_last_packet_padding(&mut self, bytes: u32) {
        self.last_packet_padding = bytes;
    }

    fn packets_in_flight(&self) -> u32 {
        each!(&self.end, sender => sender.packets_in_flight(), 0)
    }

    fn acked_packets(&self) -> u64 {
        each!(&self.end, sender => sender.acked_packets(), self.acked)
    }

    fn abandon_connection(&mut self) {
        self.acked = self.acked_packets();
        self.end = SenderKind::None;
    }

    #[inline(always)]
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        segment: &Segment,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        if let (SenderKind::Modern(sender), Some(rules)) = (&mut self.end, &tcp.modern) {
            sender.on_segment(now, segment, rules, probe);
        } else {
            self.on_classic_ack(now, ack, segment, tcp, probe);
        }
        PacketsToSend::default()
    }

    fn on_timer(
        &mut self,
        now: Nanos,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> PacketsToSend {
        dispatch!(
            self, tcp,
            sender => sender.on_timer(now, tcp, probe),
            (sender, _rules) => sender.on_timer(now, probe)
        );
        PacketsToSend::default()
    }

    #[inline(always)]
    fn poll_transmit(
        &mut self,
        now: Nanos,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
        mut send: impl FnMut(&OutgoingPacket),
    ) {
        if let (SenderKind::Modern(sender), Some(rules)) = (&mut self.end, &tcp.modern) {
            return sender.transmit(now, rules, probe, send);
        }
        while let Some((number, kind)) = self.released.take_first() {
            send(&OutgoingPacket { number, kind, short: None, segment: &Segment::default() });
        }
    }

    #[inline(always)]
    fn is_handshake_pending(&self) -> bool {
        matches!(&self.end, SenderKind::Modern(sender) if sender.is_handshake_pending())
    }

    #[inline(always)]
    fn take_opening_time(&mut self) -> Option<Nanos> {
        self.opened_at.take()
    }

    fn draw_connection_seed(&mut self) -> u64 {
        self.seeds.as_mut().map_or(0, RandomStream::next_bits)
    }

    #[inline(always)]
    fn next_paced_time(&self) -> Nanos {
        self.modern_end().map_or(NEVER, |connection| connection.sender().next_paced_time())
    }

    fn scheduled_pacing_time_mut(&mut self) -> &mut Nanos {
        &mut self.scheduled_pacing
    }

    #[inline(always)]
    fn prefetch(&self) -> u64 {
        self.scheduled_pacing
    }

    #[inline(always)]
    fn prefetch_second(&self) -> u64 {
        self.modern_end().map_or(0, Connection::prefetch_sender)
    }

    #[inline(always)]
    fn prefetch_third(&self) -> u64 {
        self.modern_end().map_or(0, Connection::prefetch_sender_second)
    }
}

/// Out-of-line calls of classic ends, so that calls of a modern end need a single comparison.
impl AnySender {
    #[inline(never)]
    fn is_classic_sender_finished(&self) -> bool {
        each!(&self.end, sender => sender.is_finished(), true)
    }

    #[inline(never)]
    fn classic_deadline(&self) -> Nanos {
        match &self.end {
            SenderKind::Packets(sender) => sender.timer_deadline(),
            SenderKind::Bytes(sender) => sender.timer_deadline(),
            SenderKind::Modern(_) | SenderKind::None => NEVER,
        }
    }

    #[inline(never)]
    fn on_classic_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        segment: &Segment,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) {
        match &mut self.end {
            SenderKind::Packets(sender) => {
                self.released = sender.on_ack(now, ack, segment, tcp, probe)
            }
            SenderKind::Bytes(sender) => {
                self.released = sender.on_ack(now, ack, segment, tcp, probe)
            }
            SenderKind::Modern(_) | SenderKind::None => (),
        }
    }
}

impl AnySender {
    #[inline(always)]
    fn modern_end(&self) -> Option<&Connection> {
        match &self.end {
            SenderKind::Modern(sender) => Some(sender.connection()),
            _ => None,
        }
    }

    fn take_file_size(&mut self, packets: u32) -> FileSize {
        FileSize { packets, lacking: std::mem::take(&mut self.last_packet_padding) }
    }
}

/// Receiving end of one source, for any TCP variant.
#[derive(Clone, Debug, Default)]
pub enum AnyReceiver {
    /// Nothing was received yet.
    #[default]
    None,
    /// A classic receiver.
    Classic(Box<Receiver>),
    /// A client with its connection.
    Modern(Box<FileClient>),
}

impl AnyReceiver {
    #[inline(always)]
    fn modern_end(&self) -> Option<&FileClient> {
        match self {
            Self::Modern(receiver) => Some(receiver),
            _ => None,
        }
    }
}

impl ReceivingEnd for AnyReceiver {
    fn start_connection(&mut self, tcp: &TcpConfig) {
        match (&mut *self, &tcp.modern) {
            (Self::Classic(receiver), None) => receiver.start_connection(tcp),
            (Self::Modern(receiver), Some(rules)) => {
                **receiver = FileClient::new_connection(rules);
            }
            (end, Some(rules)) => *end = Self::Modern(Box::new(FileClient::new_connection(rules))),
            (end, None) => *end = Self::Classic(Box::default()),
        }
    }

    fn open_connection(&mut self, now: Nanos, seed: u64, tcp: &TcpConfig) {
        if let (Self::Modern(receiver), Some(rules)) = (self, &tcp.modern) {
            receiver.connect(now, seed, rules);
        }
    }

    fn abandon_connection(&mut self) {
        if let Self::Modern(receiver) = self {
            receiver.abandon_connection();
        }
    }

    #[inline(always)]
    fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        segment: &Segment,
        tcp: &TcpConfig,
        answer: &mut Segment,
    ) -> ArrivalResult {
        match (&mut *self, &tcp.modern) {
            (Self::Modern(receiver), Some(rules)) => {
                let (distinct, ack) = receiver.on_segment(now, segment, rules, answer);
                ArrivalResult { distinct, ack }
            }
            (Self::Classic(receiver), _) => receiver.on_data(now, number, segment, tcp, answer),
            (Self::Modern(_), None) | (Self::None, _) => {
                ArrivalResult { distinct: false, ack: None }
            }
        }
    }

    fn packets_in_order(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Classic(receiver) => receiver.packets_in_order(),
            Self::Modern(receiver) => receiver.packets_in_order(),
        }
    }

    #[inline(always)]
    fn ack_deadline(&self) -> Nanos {
        match self {
            Self::None => NEVER,
            Self::Classic(receiver) => receiver.ack_deadline(),
            Self::Modern(receiver) => receiver.deadline(),
        }
    }

    fn on_ack_timer(&mut self, now: Nanos, tcp: &TcpConfig, answer: &mut Segment) -> Option<u32> {
        match (&mut *self, &tcp.modern) {
            (Self::Modern(receiver), Some(rules)) => receiver.on_timer(now, rules, answer),
            (Self::Classic(receiver), _) => receiver.on_ack_timer(now, tcp, answer),
            (Self::Modern(_), None) | (Self::None, _) => None,
        }
    }

    #[inline(always)]
    fn poll_ack(&mut self, now: Nanos, tcp: &TcpConfig, answer: &mut Segment) -> Option<u32> {
        match (self, &tcp.modern) {
            (Self::Modern(receiver), Some(rules)) => receiver.poll_answer(now, rules, answer),
            _ => None,
        }
    }

    #[inline(always)]
    fn prefetch(&self) -> u64 {
        u64::from(self.modern_end().is_some())
    }

    #[inline(always)]
    fn prefetch_second(&self) -> u64 {
        self.modern_end().map_or(0, FileClient::prefetch)
    }

    #[inline(always)]
    fn prefetch_third(&self) -> u64 {
        self.modern_end().map_or(0, FileClient::prefetch_second)
    }
}
