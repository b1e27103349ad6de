//! The return path: an acknowledgement from its receiver to its sender.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::agenda::Place;
use crate::clock::Nanos;
use crate::packet::Packet;
use crate::probe::{Listener, SourceRecord, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{AckHeaderOf, ReceivingEnd, SendingEnd, Transmission};

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    /// A receiver's answer, sent so that it has reached the return bottleneck `return_lookahead`
    /// ago unless its own link was still busy with the answer before.
    #[inline(always)]
    pub(crate) fn acknowledge<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
        told: &AckHeaderOf<S>,
    ) {
        let reached = self.now - self.return_lookahead;
        source.return_free = reached.max(source.return_free + path.egress.ack_time);
        if source.return_free == reached {
            if TAPS || HOPS || !S::POLLS {
                let ack = keep(source, ack, told);
                self.send_back(source, path, reached, ack, false);
            } else {
                self.send_back_at_once(source, path, reached, ack, told);
            }
        } else {
            let ack = keep(source, ack, told);
            self.wait_for_return(source, path, reached, ack);
        }
    }

    /// Two answers at a time. Neither is looked at before both are on their way.
    #[cold]
    pub(super) fn acknowledge_twice<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        acks: [(Packet, AckHeaderOf<S>); 2],
    ) {
        let reached = self.now - self.return_lookahead;
        let acks = acks.map(|(ack, told)| keep(source, ack, &told));
        for ack in acks {
            source.return_free = reached.max(source.return_free + path.egress.ack_time);
            self.wait_for_return(source, path, reached, ack);
        }
    }

    /// An answer is sent whose own link is free later than it would have to be.
    #[inline(always)]
    fn wait_for_return<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        path: &Path,
        reached: Nanos,
        ack: Packet,
    ) {
        self.pass(source, Tap::Receiver, reached - path.to_return, &ack);
        let due = source.return_free + self.return_lookahead;
        self.agenda.packet(Place::Return, source.record.class(), due, ack);
    }

    /// Over the return path, where nothing looks at what it carries on its way. Mostly it is at its
    /// sender before anything else happens; then what it carries need not be kept.
    #[inline(always)]
    fn send_back_at_once<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        reached: Nanos,
        ack: Packet,
        told: &AckHeaderOf<S>,
    ) {
        let leaves = self.return_link.transmit_next(reached);
        let due = self.gets_back(source, path, leaves);
        if self.comes_next(due) {
            self.now = due;
            if source.connection == ack.connection() {
                let Source { sender, record, .. } = source;
                let sent = self.hear(sender, record, path, &ack, told);
                self.go_on_after(source, path, ack, sent);
            }
        } else {
            let ack = keep(source, ack, told);
            self.agenda.packet(Place::Sender, source.record.class(), due, ack);
        }
    }

    /// The same for one that is kept; `waited` says whether its receiver's own link was busy.
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
            let shown = source.receiver.captured_header(ack.label());
            if !waited {
                self.capture(Tap::Receiver, &source.record, reached - path.to_return, &ack, shown);
            }
            self.capture(Tap::BottleneckOut, &source.record, reached, &ack, shown);
            self.capture(Tap::BottleneckIn, &source.record, leaves, &ack, shown);
        }
        let due = self.gets_back(source, path, leaves);
        if self.comes_next(due) {
            self.now = due;
            self.at_sender(source, path, ack);
        } else {
            self.agenda.packet(Place::Sender, source.record.class(), due, ack);
        }
    }

    /// When an acknowledgement that leaves the return bottleneck is looked at by its sender.
    #[inline(always)]
    fn gets_back<S: SendingEnd>(
        &self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
    ) -> Nanos {
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        source.ack_free + self.sender_lookahead
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
        self.pass(source, Tap::Sender, self.sender_now(), &ack);
        let Source { receiver, sender, record, connection, .. } = source;
        let told = receiver.take_header(ack.label());
        if *connection != ack.connection() {
            return;
        }
        let sent = if S::POLLS {
            self.hear_late(sender, record, path, &ack, told)
        } else {
            self.hear(sender, record, path, &ack, told)
        };
        self.go_on_after(source, path, ack, sent);
    }

    /// A sender that is polled hears one that was kept on its way, as few are.
    #[inline(never)]
    fn hear_late<S: SendingEnd>(
        &mut self,
        sender: &mut S,
        record: &mut SourceRecord,
        path: &Path,
        ack: &Packet,
        told: &AckHeaderOf<S>,
    ) -> Transmission {
        self.hear(sender, record, path, ack, told)
    }

    /// A sender hears an acknowledgement of its connection.
    #[inline(always)]
    fn hear<S: SendingEnd>(
        &mut self,
        sender: &mut S,
        record: &mut SourceRecord,
        path: &Path,
        ack: &Packet,
        told: &AckHeaderOf<S>,
    ) -> Transmission {
        let now = self.sender_now();
        let listener = &mut Listener::new(&mut self.probes, record, ack.source());
        sender.on_ack(now, ack.number(), told, &path.tcp, listener)
    }

    /// The sender has heard it: its file is over, or it goes on.
    #[inline(always)]
    fn go_on_after<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
        sent: Transmission,
    ) {
        if source.sender.finished() {
            self.finish(source, ack.source());
        } else {
            self.send(source, path, ack, sent);
        }
    }
}

/// Keeps at its receiver what an acknowledgement carries, until it arrives.
#[inline(always)]
fn keep<S: SendingEnd>(source: &mut Source<S>, ack: Packet, told: &AckHeaderOf<S>) -> Packet {
    ack.with_label(source.receiver.store_header(told, ack.label().serial()))
}
