//! What a run asks of the two ends of a connection, whichever TCP they speak.

use super::cc::CongestionControl;
use super::{Arrival, Receiver, Sender, TcpConfig, Transmission};
use crate::clock::{NEVER, Nanos};
use crate::probe::TcpProbe;

/// The end that sends: times and acknowledgements go in, what to send comes out.
pub trait SendingEnd: Default {
    /// The end that answers it.
    type Receiver: ReceivingEnd;

    /// Whether it hears of each lost packet at the moment of the loss.
    const HEARS_LOSSES: bool = false;

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
        silence: Silence,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission;

    /// Whether everything has been acknowledged.
    fn finished(&self) -> bool;

    /// Whether the connection can go on with `more` packets: its numbers are not used up.
    fn has_numbers(&self, more: u32) -> bool;

    /// When its timer expires, [`NEVER`] if it is off.
    fn deadline(&self) -> Nanos;

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
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission;

    /// The timer expired.
    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) -> Transmission;

    /// A word of each of its cache lines, so that they are there when it is asked.
    #[inline(always)]
    fn fetch(&self) -> u64 {
        0
    }

    /// A word of what it keeps elsewhere.
    #[inline(always)]
    fn fetch_more(&self) -> u64 {
        0
    }

    /// Packet `number` was lost, if it is to hear of that.
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

/// How long a sender has been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Since its last acknowledgement.
    pub heard: Nanos,
    /// Since it sent its last packet.
    pub sent: Nanos,
}

/// The end that answers.
pub trait ReceivingEnd: Default {
    /// A new connection begins.
    fn start(&mut self);

    /// A data packet arrives.
    fn on_data(&mut self, now: Nanos, number: u32, tcp: &TcpConfig) -> Arrival;

    /// When a delayed acknowledgement is due, [`NEVER`] if none is.
    fn ack_deadline(&self) -> Nanos;

    /// It is due.
    fn on_timer(&mut self) -> Option<u32>;
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
        silence: Silence,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        self.go_on(now, more, silence, tcp, probe)
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

    #[inline(always)]
    fn on_ack(
        &mut self,
        now: Nanos,
        ack: u32,
        tcp: &TcpConfig,
        probe: &mut impl TcpProbe,
    ) -> Transmission {
        self.on_ack(now, ack, tcp, probe)
    }

    fn on_timer(&mut self, now: Nanos, tcp: &TcpConfig, probe: &mut impl TcpProbe) -> Transmission {
        self.on_timer(now, tcp, probe)
    }
}

impl ReceivingEnd for Receiver {
    #[inline(always)]
    fn start(&mut self) {
        self.start();
    }

    #[inline(always)]
    fn on_data(&mut self, now: Nanos, number: u32, tcp: &TcpConfig) -> Arrival {
        self.on_data(now, number, tcp)
    }

    #[inline(always)]
    fn ack_deadline(&self) -> Nanos {
        self.ack_deadline()
    }

    fn on_timer(&mut self) -> Option<u32> {
        self.on_timer()
    }
}

/// Answers each packet with its own number, for senders that count what is out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl ReceivingEnd for Echo {
    fn start(&mut self) {}

    #[inline]
    fn on_data(&mut self, _now: Nanos, number: u32, _tcp: &TcpConfig) -> Arrival {
        Arrival { distinct: true, ack: Some(number) }
    }

    fn ack_deadline(&self) -> Nanos {
        NEVER
    }

    fn on_timer(&mut self) -> Option<u32> {
        None
    }
}
