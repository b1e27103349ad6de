//! What a run asks of the two ends of a connection, whichever TCP they speak.

use super::cc::CongestionControl;
use super::{Arrival, Receiver, Sender, TcpConfig, Transmission};
use crate::clock::{NEVER, Nanos};
use crate::packet::{Kind, Label};
use crate::probe::{CapturedHeader, TcpProbe};

/// The end that sends: times and acknowledgements go in, what to send comes out.
pub trait SendingEnd: Default {
    /// The end that answers it.
    type Receiver: ReceivingEnd;

    /// Whether it has instantaneous loss feedback: it is told of each lost packet at the loss.
    const LOSS_FEEDBACK: bool = false;

    /// Whether it is polled for what to send in place of saying it when it is asked; its packets
    /// carry headers, and it may pace them.
    const POLLS: bool = false;

    /// The end of source `index` of a replication.
    fn of_source(_seed: u64, _replication: u32, _index: u32) -> Self {
        Self::default()
    }

    /// Begins a connection of `size` packets from fresh state.
    fn start(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission;

    /// Goes on with `more` packets on the connection of which everything is acknowledged.
    fn go_on(
        &mut self,
        now: Nanos,
        more: u32,
        idle: Idle,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission;

    /// The last packet of what comes next lacks so many bytes of a full one, if it is polled.
    #[inline(always)]
    fn lack(&mut self, _bytes: u32) {}

    /// Whether everything has been acknowledged.
    fn finished(&self) -> bool;

    /// Whether the connection can go on with `more` packets: its numbers are not used up.
    fn has_numbers(&self, more: u32) -> bool;

    /// When its timer expires, [`NEVER`] if it is off.
    fn deadline(&self) -> Nanos;

    /// A time that is no later, where that takes less to know; [`SendingEnd::noted`] has it from now
    /// on.
    #[inline(always)]
    fn note_deadline(&mut self) -> Nanos {
        self.deadline()
    }

    /// The time that was noted last, if it is polled: what it follows from may be far away in memory.
    #[inline(always)]
    fn noted(&self) -> Nanos {
        0
    }

    /// Packets sent at least once and not acknowledged, if it finds losses by acknowledgements.
    fn in_flight(&self) -> u32 {
        0
    }

    /// Packets of its connection that are acknowledged, likewise.
    fn acked(&self) -> u64 {
        0
    }

    /// An acknowledgement arrives.
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        header: &AckHeaderOf<Self>,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission;

    /// The timer expired.
    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) -> Transmission;

    /// Sends all packets that it may send now, if it is polled.
    #[inline(always)]
    fn poll_transmit(
        &mut self,
        _now: Nanos,
        _tcp: &TcpConfig,
        _probe: &mut impl TcpProbe,
        _send: impl FnMut(u32, Label),
    ) {
    }

    /// Whether the data that it was given is still to begin: packets of a handshake come before it.
    #[inline(always)]
    fn is_opening(&self) -> bool {
        false
    }

    /// The application is gone: it sends nothing any more and hears nothing.
    fn abandon(&mut self) {}

    /// When the connection was opened, if that took a handshake and has not been asked before.
    #[inline(always)]
    fn take_opened_at(&mut self) -> Option<Nanos> {
        None
    }

    /// What the chances of the other end's connection follow from, where it opens that.
    fn seed(&mut self) -> u64 {
        0
    }

    /// What a data packet carries that arrives with this label.
    fn take_header(&mut self, label: Label) -> &DataHeaderOf<Self>;

    /// The data packet with this label does not arrive.
    #[inline(always)]
    fn lose_header(&mut self, _label: Label) {}

    /// What captures show of a data packet with this label, which is on its way.
    fn shown(&self, _label: Label) -> CapturedHeader {
        CapturedHeader::default()
    }

    /// When a packet that is paced may be sent, [`NEVER`] if none waits: then it is to be polled.
    #[inline(always)]
    fn pace_at(&self) -> Nanos {
        NEVER
    }

    /// When the event queue looks at that, [`NEVER`] if it does not; of one that is polled.
    fn looked_at(&mut self) -> &mut Nanos {
        unreachable!("it paces nothing")
    }

    /// A word of each of its cache lines, so that they are there when it is asked.
    #[inline(always)]
    fn fetch(&self) -> u64 {
        0
    }

    /// A word of each line of what it keeps elsewhere.
    #[inline(always)]
    fn fetch_more(&self) -> u64 {
        0
    }

    /// The same of what is kept elsewhere from there.
    #[inline(always)]
    fn fetch_last(&self) -> u64 {
        0
    }

    /// Packet `number` was lost, if it has loss feedback.
    fn on_loss(
        &mut self,
        _now: Nanos,
        _number: u32,
        _tcp: &TcpConfig,
        _probe: &mut impl TcpProbe,
    ) -> Transmission {
        Transmission::default()
    }
}

/// What data packets to the receiver of `S` carry.
pub type DataHeaderOf<S> = <<S as SendingEnd>::Receiver as ReceivingEnd>::DataHeader;

/// What acknowledgements to `S` carry.
pub type AckHeaderOf<S> = <<S as SendingEnd>::Receiver as ReceivingEnd>::AckHeader;

/// How long a sender has been idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Since its last acknowledgement.
    pub heard: Nanos,
    /// Since it sent its last packet.
    pub sent: Nanos,
}

/// The end that answers.
pub trait ReceivingEnd: Default {
    /// What data packets carry beside their number; nothing to the classic ends.
    type DataHeader;
    /// What acknowledgements carry beside the number that they expect.
    type AckHeader: Default;

    /// A new connection begins.
    fn start(&mut self, tcp: &TcpConfig);

    /// Opens the connection that has just begun, where that takes a handshake: its timer is due
    /// now.
    fn connect(&mut self, _now: Nanos, _seed: u64, _tcp: &TcpConfig) {}

    /// The application is gone: it opens the connection no more.
    fn abandon(&mut self) {}

    /// A data packet arrives. If it is acknowledged now, what that carries becomes `told`, which is
    /// empty.
    fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        header: &Self::DataHeader,
        tcp: &TcpConfig,
        told: &mut Self::AckHeader,
    ) -> Arrival;

    /// Packets of the data that it has got in order.
    fn in_order(&self) -> u32 {
        0
    }

    /// When a delayed acknowledgement is due, [`NEVER`] if none is.
    fn ack_deadline(&self) -> Nanos;

    /// It is due.
    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, told: &mut Self::AckHeader) -> Option<u32>;

    /// Another acknowledgement to send now, beside the one that was just told of.
    #[inline(always)]
    fn poll_ack(&mut self, _tcp: &TcpConfig) -> Option<(u32, Self::AckHeader)> {
        None
    }

    /// Keeps what an acknowledgement carries until it arrives, and labels it; `serial` is that of
    /// the packet that led to it.
    #[inline(always)]
    fn keep(&mut self, _told: &Self::AckHeader, serial: u16) -> Label {
        Label::new(Kind::Ack, serial)
    }

    /// What an acknowledgement carries that arrives with this label.
    fn take_header(&mut self, label: Label) -> &Self::AckHeader;

    /// What captures show of an acknowledgement with this label, which is on its way.
    fn shown(&self, _label: Label) -> CapturedHeader {
        CapturedHeader::default()
    }

    /// As [`SendingEnd::fetch`].
    #[inline(always)]
    fn fetch(&self) -> u64 {
        0
    }

    /// As [`SendingEnd::fetch_more`].
    #[inline(always)]
    fn fetch_more(&self) -> u64 {
        0
    }

    /// As [`SendingEnd::fetch_last`].
    #[inline(always)]
    fn fetch_last(&self) -> u64 {
        0
    }
}

impl<C: CongestionControl + Default> SendingEnd for Sender<C> {
    type Receiver = Receiver;

    #[inline(always)]
    fn start(
        &mut self,
        now: Nanos,
        size: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        self.start(now, size, tcp, probe)
    }

    fn go_on(
        &mut self,
        now: Nanos,
        more: u32,
        idle: Idle,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        self.go_on(now, more, idle, tcp, probe)
    }

    #[inline(always)]
    fn finished(&self) -> bool {
        self.finished()
    }

    fn has_numbers(&self, more: u32) -> bool {
        self.has_numbers(more)
    }

    #[inline(always)]
    fn deadline(&self) -> Nanos {
        self.deadline()
    }

    fn in_flight(&self) -> u32 {
        self.in_flight()
    }

    fn acked(&self) -> u64 {
        self.acked()
    }

    fn abandon(&mut self) {
        self.abandon();
    }

    #[inline(always)]
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        _header: &(),
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        self.on_ack(now, ack, tcp, probe)
    }

    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) -> Transmission {
        self.on_timer(now, tcp, probe)
    }

    #[inline(always)]
    fn take_header(&mut self, _label: Label) -> &() {
        &()
    }

    #[inline(always)]
    fn fetch(&self) -> u64 {
        self.deadline() ^ u64::from(self.in_flight())
    }
}

impl ReceivingEnd for Receiver {
    type DataHeader = ();
    type AckHeader = ();

    #[inline(always)]
    fn start(&mut self, _tcp: &TcpConfig) {
        self.start();
    }

    #[inline(always)]
    fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        _header: &(),
        tcp: &TcpConfig,
        _told: &mut (),
    ) -> Arrival {
        self.on_data(now, number, tcp)
    }

    fn in_order(&self) -> u32 {
        self.in_order()
    }

    #[inline(always)]
    fn ack_deadline(&self) -> Nanos {
        self.ack_deadline()
    }

    fn on_timer(&mut self, _now: Nanos, _tcp: &TcpConfig, _told: &mut ()) -> Option<u32> {
        self.on_timer()
    }

    #[inline(always)]
    fn take_header(&mut self, _label: Label) -> &() {
        &()
    }

    #[inline(always)]
    fn fetch(&self) -> u64 {
        self.ack_deadline() ^ u64::from(self.in_order())
    }
}

/// Answers each packet with its own number, for senders that count packets in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl ReceivingEnd for Echo {
    type DataHeader = ();
    type AckHeader = ();

    fn start(&mut self, _tcp: &TcpConfig) {}

    #[inline]
    fn on_data(
        &mut self,
        _now: Nanos,
        number: u32,
        _header: &(),
        _tcp: &TcpConfig,
        _told: &mut (),
    ) -> Arrival {
        Arrival { distinct: true, ack: Some(number) }
    }

    fn ack_deadline(&self) -> Nanos {
        NEVER
    }

    fn on_timer(&mut self, _now: Nanos, _tcp: &TcpConfig, _told: &mut ()) -> Option<u32> {
        None
    }

    #[inline(always)]
    fn take_header(&mut self, _label: Label) -> &() {
        &()
    }
}
