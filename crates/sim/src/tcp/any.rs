//! Ends of any TCP variant, for runs that mix classic and modern TCP: the class of a source selects
//! its variant.

use super::burst::{Burst, store_and_label};
use super::cc::{Reno, RenoBytes};
use super::headers::Headers;
use super::modern::{AckHeader, DataHeader, PacketOut, PacketReceiver, PacketSender};
use super::{
    Arrival, Idle, Receiver, ReceivingEnd, Sender, SendingEnd, TcpConfig, Transmission, WindowUnit,
};
use crate::clock::{NEVER, Nanos};
use crate::packet::{Kind, Label};
use crate::probe::{CapturedHeader, TcpProbe};
use crate::random::{Draws, Named, Purpose, Stream};
use crate::traffic::FileSize;
use tcpcast_link::Ecn;

/// Sending end of one source, for any TCP variant. Fields that every packet needs come first: see
/// `Source`.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct AnySender {
    end: SenderKind,
    headers: Headers<DataHeader>,
    /// Time of the pacing event in the event queue.
    scheduled_pacing: Nanos,
    /// Cached lower bound of the timer's expiry.
    cached_deadline: Nanos,
    /// Storage for the header of a reordered packet.
    spare: DataHeader,
    /// Packets released by a classic sender and not yet sent.
    released: Transmission,
    seeds: Option<Stream>,
    opened_at: Option<Nanos>,
    /// Packets acknowledged when the application went away.
    acked: u64,
    /// Bytes by which the last packet of the next file is below full size.
    last_packet_padding: u32,
}

#[derive(Clone, Debug)]
enum SenderKind {
    /// Nothing was sent yet.
    None,
    Packets(Box<Sender<Reno>>),
    Bytes(Box<Sender<RenoBytes>>),
    Modern(Box<PacketSender>),
}

impl Default for AnySender {
    fn default() -> Self {
        Self {
            end: SenderKind::None,
            released: Transmission::default(),
            headers: Headers::default(),
            scheduled_pacing: NEVER,
            cached_deadline: 0,
            spare: DataHeader::default(),
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

    const POLLS: bool = true;

    fn of_source(seed: u64, replication: u32, index: u32) -> Self {
        let seeds = Stream::named(seed, replication, index, Purpose::Connection);
        Self { seeds: Some(seeds), ..Self::default() }
    }

    fn start(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        self.released = Transmission::default();
        if let Some(rules) = &tcp.modern {
            let seed = self.seed();
            self.opened_at = tcp.has_handshake().then_some(now);
            let file = self.take_file(size);
            match &mut self.end {
                SenderKind::Modern(before) => before.restart(now, file, seed, rules, probe),
                end => {
                    let sender = PacketSender::start(now, file, seed, rules, probe);
                    *end = SenderKind::Modern(Box::new(sender));
                }
            }
            return Transmission::default();
        }
        if matches!(self.end, SenderKind::None) {
            self.end = match tcp.window_unit {
                WindowUnit::Packets => SenderKind::Packets(Box::default()),
                WindowUnit::Bytes => SenderKind::Bytes(Box::default()),
            };
        }
        dispatch!(self, tcp, sender => sender.start(now, size, tcp, probe), (_sender, _rules) => ());
        Transmission::default()
    }

    fn resume(
        &mut self,
        now: Nanos,
        more: u32,
        idle: Idle,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        let file = self.take_file(more);
        dispatch!(
            self, tcp,
            sender => sender.resume(now, more, idle, tcp, probe),
            (sender, rules) => sender.write_file(now, file, rules, probe)
        );
        Transmission::default()
    }

    #[inline(always)]
    fn finished(&self) -> bool {
        match &self.end {
            SenderKind::Modern(sender) => sender.finished(),
            _ => self.classic_finished(),
        }
    }

    fn has_numbers(&self, more: u32) -> bool {
        each!(&self.end, sender => sender.has_numbers(more), true)
    }

    #[inline(always)]
    fn deadline(&self) -> Nanos {
        each!(&self.end, sender => sender.deadline(), NEVER)
    }

    #[inline(always)]
    fn cache_deadline(&mut self) -> Nanos {
        self.cached_deadline = match &self.end {
            SenderKind::Modern(sender) => sender.deadline_at_least(),
            _ => self.classic_deadline(),
        };
        self.cached_deadline
    }

    #[inline(always)]
    fn cached_deadline(&self) -> Nanos {
        self.cached_deadline
    }

    #[inline(always)]
    fn set_last_packet_padding(&mut self, bytes: u32) {
        self.last_packet_padding = bytes;
    }

    fn in_flight(&self) -> u32 {
        each!(&self.end, sender => sender.in_flight(), 0)
    }

    fn acked(&self) -> u64 {
        each!(&self.end, sender => sender.acked(), self.acked)
    }

    fn abandon(&mut self) {
        self.acked = self.acked();
        self.end = SenderKind::None;
    }

    #[inline(always)]
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        header: &AckHeader,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        if let (SenderKind::Modern(sender), Some(rules)) = (&mut self.end, &tcp.modern) {
            sender.on_ack(now, header, rules, probe);
        } else {
            self.on_classic_ack(now, ack, tcp, probe);
        }
        Transmission::default()
    }

    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) -> Transmission {
        dispatch!(
            self, tcp,
            sender => sender.on_timer(now, tcp, probe),
            (sender, rules) => sender.on_timer(now, rules, probe)
        );
        Transmission::default()
    }

    #[inline(always)]
    fn poll_transmit(
        &mut self,
        now: Nanos,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
        mut send: impl FnMut(u32, Label),
    ) {
        let Self { end, released, headers, .. } = self;
        if let (SenderKind::Modern(sender), Some(rules)) = (end, &tcp.modern) {
            if !sender.is_idle(now, rules, probe) {
                Burst { sender, headers, now, rules, probe, send }.send_all();
            }
            return;
        }
        while let Some((number, kind)) = released.take_first() {
            let packet = PacketOut { number, kind, header: DataHeader::default(), short: None };
            send(number, store_and_label(headers, &packet));
        }
    }

    #[inline(always)]
    fn is_opening(&self) -> bool {
        matches!(&self.end, SenderKind::Modern(sender) if sender.is_opening())
    }

    #[inline(always)]
    fn take_opened_at(&mut self) -> Option<Nanos> {
        self.opened_at.take()
    }

    fn seed(&mut self) -> u64 {
        self.seeds.as_mut().map_or(0, Stream::bits)
    }

    #[inline(always)]
    fn take_header(&mut self, label: Label) -> &DataHeader {
        let header = self.headers.take_any(label, &mut self.spare);
        header.arrive(label.ecn() == Ecn::Ce);
        header
    }

    #[inline(always)]
    fn drop_header(&mut self, label: Label) {
        self.headers.take_any(label, &mut self.spare);
    }

    fn captured_header(&self, label: Label) -> CapturedHeader {
        let header = self.headers.get(label);
        header.map_or_else(CapturedHeader::default, |header| header.captured_header(label.ecn()))
    }

    #[inline(always)]
    fn pace_at(&self) -> Nanos {
        match &self.end {
            SenderKind::Modern(sender) => sender.pace_at(),
            SenderKind::None | SenderKind::Packets(_) | SenderKind::Bytes(_) => NEVER,
        }
    }

    fn scheduled_pacing(&mut self) -> &mut Nanos {
        &mut self.scheduled_pacing
    }

    #[inline(always)]
    fn prefetch(&self) -> u64 {
        self.scheduled_pacing
    }

    #[inline(always)]
    fn prefetch_second(&self) -> u64 {
        self.headers.prefetch() ^ self.modern().map_or(0, PacketSender::prefetch)
    }

    #[inline(always)]
    fn prefetch_third(&self) -> u64 {
        self.modern().map_or(0, PacketSender::prefetch_second)
    }
}

/// Out-of-line calls of classic ends, so that calls of a modern end need a single comparison.
impl AnySender {
    #[inline(never)]
    fn classic_finished(&self) -> bool {
        each!(&self.end, sender => sender.finished(), true)
    }

    #[inline(never)]
    fn classic_deadline(&self) -> Nanos {
        each!(&self.end, sender => sender.deadline(), NEVER)
    }

    #[inline(never)]
    fn on_classic_ack(&mut self, now: Nanos, ack: u32, tcp: &TcpConfig, probe: &mut impl TcpProbe) {
        match &mut self.end {
            SenderKind::Packets(sender) => self.released = sender.on_ack(now, ack, tcp, probe),
            SenderKind::Bytes(sender) => self.released = sender.on_ack(now, ack, tcp, probe),
            SenderKind::Modern(_) | SenderKind::None => (),
        }
    }
}

impl AnySender {
    #[inline(always)]
    fn modern(&self) -> Option<&PacketSender> {
        match &self.end {
            SenderKind::Modern(sender) => Some(sender),
            _ => None,
        }
    }

    fn take_file(&mut self, packets: u32) -> FileSize {
        FileSize { packets, lacking: std::mem::take(&mut self.last_packet_padding) }
    }
}

/// Receiving end of one source, for any TCP variant.
#[derive(Clone, Debug, Default)]
pub struct AnyReceiver {
    end: ReceiverKind,
    headers: Headers<AckHeader>,
}

#[derive(Clone, Debug, Default)]
enum ReceiverKind {
    /// Nothing was received yet.
    #[default]
    None,
    Classic(Box<Receiver>),
    Modern(Box<PacketReceiver>),
}

impl AnyReceiver {
    #[inline(always)]
    fn modern(&self) -> Option<&PacketReceiver> {
        match &self.end {
            ReceiverKind::Modern(receiver) => Some(receiver),
            _ => None,
        }
    }
}

impl ReceivingEnd for AnyReceiver {
    type DataHeader = DataHeader;
    type AckHeader = AckHeader;

    fn start(&mut self, tcp: &TcpConfig) {
        match (&mut self.end, &tcp.modern) {
            (ReceiverKind::Classic(receiver), None) => receiver.start(),
            (ReceiverKind::Modern(receiver), Some(rules)) => {
                **receiver = PacketReceiver::start(rules);
            }
            (end, Some(rules)) => {
                *end = ReceiverKind::Modern(Box::new(PacketReceiver::start(rules)))
            }
            (end, None) => *end = ReceiverKind::Classic(Box::default()),
        }
    }

    fn connect(&mut self, now: Nanos, seed: u64, tcp: &TcpConfig) {
        if let (ReceiverKind::Modern(receiver), Some(rules)) = (&mut self.end, &tcp.modern) {
            receiver.connect(now, seed, rules);
        }
    }

    fn abandon(&mut self) {
        if let ReceiverKind::Modern(receiver) = &mut self.end {
            receiver.abandon();
        }
    }

    #[inline(always)]
    fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        header: &DataHeader,
        tcp: &TcpConfig,
        ack_header: &mut AckHeader,
    ) -> Arrival {
        match (&mut self.end, &tcp.modern) {
            (ReceiverKind::Modern(receiver), Some(rules)) => {
                let (distinct, ack) = receiver.on_data(now, number, header, rules, ack_header);
                Arrival { distinct, ack }
            }
            (ReceiverKind::Classic(receiver), _) => receiver.on_data(now, number, tcp),
            (ReceiverKind::Modern(_), None) | (ReceiverKind::None, _) => {
                Arrival { distinct: false, ack: None }
            }
        }
    }

    fn in_order(&self) -> u32 {
        match &self.end {
            ReceiverKind::None => 0,
            ReceiverKind::Classic(receiver) => receiver.in_order(),
            ReceiverKind::Modern(receiver) => receiver.in_order(),
        }
    }

    #[inline(always)]
    fn ack_deadline(&self) -> Nanos {
        match &self.end {
            ReceiverKind::None => NEVER,
            ReceiverKind::Classic(receiver) => receiver.ack_deadline(),
            ReceiverKind::Modern(receiver) => receiver.ack_deadline(),
        }
    }

    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, header: &mut AckHeader) -> Option<u32> {
        match (&mut self.end, &tcp.modern) {
            (ReceiverKind::Modern(receiver), Some(rules)) => receiver.on_timer(now, rules, header),
            (ReceiverKind::Classic(receiver), _) => receiver.on_timer(),
            (ReceiverKind::Modern(_), None) | (ReceiverKind::None, _) => None,
        }
    }

    #[inline(always)]
    fn poll_ack(&mut self, tcp: &TcpConfig) -> Option<(u32, AckHeader)> {
        let (ReceiverKind::Modern(receiver), Some(rules)) = (&mut self.end, &tcp.modern) else {
            return None;
        };
        if !receiver.is_ack_due() {
            return None;
        }
        let mut header = AckHeader::NONE;
        receiver.poll_ack(rules, &mut header).map(|number| (number, header))
    }

    #[inline(always)]
    fn store_header(&mut self, header: &AckHeader, _serial: u16) -> Label {
        Label::with_token(Kind::Ack, self.headers.push(*header))
    }

    #[inline(always)]
    fn take_header(&mut self, label: Label) -> &AckHeader {
        self.headers.take(label).unwrap_or(&AckHeader::NONE)
    }

    fn captured_header(&self, label: Label) -> CapturedHeader {
        self.headers.get(label).map_or_else(CapturedHeader::default, AckHeader::captured_header)
    }

    #[inline(always)]
    fn prefetch(&self) -> u64 {
        u64::from(self.modern().is_some())
    }

    #[inline(always)]
    fn prefetch_second(&self) -> u64 {
        self.modern().map_or(0, PacketReceiver::prefetch)
    }

    #[inline(always)]
    fn prefetch_third(&self) -> u64 {
        self.modern().map_or(0, PacketReceiver::prefetch_second)
    }
}
