//! The return path: an acknowledgement from its receiver to its sender.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::agenda::Place;
use crate::clock::Nanos;
use crate::packet::Packet;
use crate::probe::{Listener, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{ReceivingEnd, SendingEnd};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// A receiver's answer, sent so that it has reached the return bottleneck `return_lookahead`
    /// ago unless its own link was still busy with the answer before.
    #[inline(always)]
    pub(crate) fn acknowledge<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
    ) {
        let reached = self.now - self.return_lookahead;
        source.return_free = reached.max(source.return_free + path.egress.ack_time);
        if source.return_free == reached {
            self.send_back(source, path, reached, ack, false);
        } else {
            self.pass(source, Tap::Receiver, reached - path.to_return, &ack);
            let due = source.return_free + self.return_lookahead;
            self.agenda.packet(Place::Return, source.record.class(), due, ack);
        }
    }

    /// Two answers at a time. Neither is looked at before both are on their way.
    #[cold]
    pub(super) fn acknowledge_twice<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        acks: [Packet; 2],
    ) {
        let reached = self.now - self.return_lookahead;
        for ack in acks {
            source.return_free = reached.max(source.return_free + path.egress.ack_time);
            self.pass(source, Tap::Receiver, reached - path.to_return, &ack);
            let due = source.return_free + self.return_lookahead;
            self.agenda.packet(Place::Return, source.record.class(), due, ack);
        }
    }

    #[inline(always)]
    fn send_back<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        reached: Nanos,
        ack: Packet,
        waited: bool,
    ) {
        if HOPS && self.tandem.has_return() {
            return self.enter_return(source, path, ack, waited);
        }
        let leaves = self.return_link.transmit_next(reached);
        if TAPS && self.capturing {
            let shown = source.receiver.shown(ack.label);
            if !waited {
                self.capture(Tap::Receiver, reached - path.to_return, &ack, shown);
            }
            self.capture(Tap::BottleneckOut, reached, &ack, shown);
            self.capture(Tap::BottleneckIn, leaves, &ack, shown);
        }
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        let due = source.ack_free + self.sender_lookahead;
        if self.comes_next(due) {
            self.now = due;
            self.at_sender(source, path, ack);
        } else {
            self.agenda.packet(Place::Sender, source.record.class(), due, ack);
        }
    }

    #[inline(never)]
    pub(super) fn waited_for_return<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
    ) {
        self.send_back(source, path, self.now - self.return_lookahead, ack, true);
    }

    /// An acknowledgement reaches its sender.
    #[inline(always)]
    pub(crate) fn at_sender<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
    ) {
        let now = self.sender_now();
        self.pass(source, Tap::Sender, now, &ack);
        if source.connection != ack.connection {
            return;
        }
        let header = source.receiver.take_header(ack.label);
        let listener = &mut Listener::new(&mut self.probes, &mut source.record, ack.source);
        let sent = source.sender.on_ack(now, ack.number, header, &path.tcp, listener);
        if source.sender.finished() {
            self.finish(source, ack.source);
        } else {
            self.send(source, path, ack.source, sent);
        }
    }
}
