//! The return path: an acknowledgement from its receiver to its sender.

use super::Network;
use super::path::Way;
use super::source::Source;
use crate::agenda::Place;
use crate::clock::Nanos;
use crate::packet::Packet;
use crate::probe::{Listener, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// A receiver's answer, sent so that it has reached the return bottleneck `lead` ago unless
    /// its own link was still busy with the answer before.
    #[inline(always)]
    pub(crate) fn acknowledge<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        ack: Packet,
    ) {
        let reached = self.now - self.lead;
        source.return_free = reached.max(source.return_free + way.egress.ack_time);
        if source.return_free == reached {
            self.send_back(source, way, reached, ack, false);
        } else {
            self.pass(source, Tap::Receiver, reached - way.to_return, &ack);
            let due = source.return_free + self.lead;
            self.agenda.packet(Place::Return, source.record.class(), due, ack);
        }
    }

    /// Two answers at a time. Neither is looked at before both are on their way.
    #[cold]
    pub(super) fn acknowledge_twice<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        acks: [Packet; 2],
    ) {
        let reached = self.now - self.lead;
        for ack in acks {
            source.return_free = reached.max(source.return_free + way.egress.ack_time);
            self.pass(source, Tap::Receiver, reached - way.to_return, &ack);
            let due = source.return_free + self.lead;
            self.agenda.packet(Place::Return, source.record.class(), due, ack);
        }
    }

    #[inline(always)]
    fn send_back<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        reached: Nanos,
        ack: Packet,
        waited: bool,
    ) {
        if HOPS && self.tandem.has_return() {
            return self.enter_return(source, way, ack, waited);
        }
        let leaves = self.return_link.transmit(reached);
        if TAPS && self.capturing {
            let shown = source.receiver.shown(ack.label);
            if !waited {
                self.capture(Tap::Receiver, reached - way.to_return, &ack, shown);
            }
            self.capture(Tap::BottleneckOut, reached, &ack, shown);
            self.capture(Tap::BottleneckIn, leaves, &ack, shown);
        }
        source.ack_free = source.ack_free.max(leaves + way.back) + way.ingress.ack_time;
        let due = source.ack_free + self.lead_in;
        if self.comes_next(due) {
            self.now = due;
            self.at_sender(source, way, ack);
        } else {
            self.agenda.packet(Place::Sender, source.record.class(), due, ack);
        }
    }

    #[inline(never)]
    pub(super) fn waited_for_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        ack: Packet,
    ) {
        self.send_back(source, way, self.now - self.lead, ack, true);
    }

    /// An acknowledgement reaches its sender.
    #[inline(always)]
    pub(crate) fn at_sender<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        way: &Way,
        ack: Packet,
    ) {
        let now = self.sender_now();
        self.pass(source, Tap::Sender, now, &ack);
        if source.connection != ack.connection {
            return;
        }
        let header = source.receiver.take_header(ack.label);
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, ack.source);
        let sent = source.sender.on_ack(now, ack.number, header, &way.tcp, listener);
        if source.sender.finished() {
            self.finish(source, ack.source);
        } else {
            self.send(source, way, ack.source, sent);
        }
    }
}
