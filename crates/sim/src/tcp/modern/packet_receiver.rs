//! The receiving end as a network of numbered packets drives it: see `ends.rs`.

use super::handshake::{Connecting, Handshake};
use super::options::ModernTcp;
use super::packet_header::{AckHeader, DataHeader};
use super::packet_out::Place;
use super::receiver::Receiver;
use super::segment::{Cumulative, Outgoing, stamp};
use crate::clock::Nanos;

/// The receiving end of a source.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct PacketReceiver {
    pub(super) receiver: Receiver,
    /// The stamp of what it sends now.
    stamp: u32,
    /// Bytes of data in a packet, and those of the handshake's flights before the data.
    mss: u32,
    before: u32,
    /// The handshake, until SYN is answered.
    pub(super) connecting: Option<Box<Connecting>>,
    /// Messages of the handshake that it has sent, and flights of it before the data.
    pub(super) messages: u8,
    pub(super) flights: u8,
    /// The packet that was expected when it acknowledged last.
    expected: Place,
}

impl PacketReceiver {
    /// A new connection begins.
    #[must_use]
    pub fn start(tcp: &ModernTcp) -> Self {
        let mut receiver = Receiver::new(1, &tcp.stack);
        receiver.establish(Some(tcp.rtt), None);
        let messages = u8::from(tcp.handshake == Handshake::None);
        let mss = tcp.stack.mss;
        let flights = tcp.handshake.flights().len();
        let before = tcp.handshake.bytes(flights);
        let expected = Place::default();
        let (connecting, flights) = (None, flights as u8);
        Self { receiver, stamp: 0, mss, before, connecting, messages, flights, expected }
    }

    /// Packets of the data that it has got in order.
    #[must_use]
    pub fn in_order(&self) -> u32 {
        let bytes = self.receiver.next().saturating_sub(1 + u64::from(self.before));
        u32::try_from(bytes / u64::from(self.mss)).unwrap_or(u32::MAX)
    }

    /// When a delayed acknowledgement is due, `NEVER` if none is.
    #[inline(always)]
    #[must_use]
    pub fn ack_deadline(&self) -> Nanos {
        let connecting = self.connecting.as_ref().map(|connecting| connecting.deadline());
        connecting.unwrap_or_else(|| self.receiver.deadline())
    }

    /// Packet `number` arrives: whether it brings data that had not come before, and the packet that
    /// an acknowledgement to send now expects; what else that says is `told`.
    #[inline(always)]
    pub fn on_data(
        &mut self,
        now: Nanos,
        number: u32,
        header: &DataHeader,
        tcp: &ModernTcp,
        told: &mut AckHeader,
    ) -> (bool, Option<u32>) {
        self.stamp = stamp(now);
        if number == 0 && !header.is_fin() {
            self.hear_syn_ack(now, header);
            return (false, self.poll_ack(tcp, told));
        }
        let data = header.data(self.receiver.next());
        let distinct = self.receiver.on_data(now, &data, &tcp.stack) && data.len > 0;
        if self.awaits_flight() {
            return (false, self.hear_flight(now, tcp, told));
        }
        (distinct, self.poll_ack(tcp, told))
    }

    /// The timer expired: the acknowledgement to send now, likewise.
    pub fn on_timer(&mut self, now: Nanos, tcp: &ModernTcp, told: &mut AckHeader) -> Option<u32> {
        self.stamp = stamp(now);
        if self.connecting.is_some() {
            return self.send_syn(now, tcp, told);
        }
        self.receiver.on_deadline(now, &tcp.stack);
        self.poll_ack(tcp, told)
    }

    /// The next acknowledgement to send now: the packet that it expects; what else it says is `told`.
    #[inline(always)]
    pub fn poll_ack(&mut self, tcp: &ModernTcp, told: &mut AckHeader) -> Option<u32> {
        if !self.is_ack_due() {
            return None;
        }
        match self.receiver.poll_cumulative(&tcp.stack) {
            Some(next) => Some(self.tell(&next, tcp, told)),
            None => self.tell_next(tcp, told),
        }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(crate) fn is_ack_due(&self) -> bool {
        self.receiver.is_ack_due()
    }

    #[inline(never)]
    fn tell_next(&mut self, tcp: &ModernTcp, told: &mut AckHeader) -> Option<u32> {
        let outgoing = self.receiver.poll_ack(&tcp.stack)?;
        Some(self.tell_all(&outgoing, tcp, told))
    }

    /// An acknowledgement as the network knows it, with its blocks.
    pub(super) fn tell_all(
        &mut self,
        outgoing: &Outgoing,
        tcp: &ModernTcp,
        told: &mut AckHeader,
    ) -> u32 {
        let number = self.tell(&outgoing.cumulative(), tcp, told);
        told.set_blocks(&outgoing.sacks);
        number
    }

    #[inline(always)]
    fn tell(&mut self, next: &Cumulative, tcp: &ModernTcp, told: &mut AckHeader) -> u32 {
        told.become_that_of(next, self.stamp, self.messages);
        self.expected.find(next.ack, tcp)
    }
}
