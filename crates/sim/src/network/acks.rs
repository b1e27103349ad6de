//! The return path: an acknowledgement from its receiver to its sender.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::clock::Nanos;
use crate::event_queue::Place;
use crate::packet::Packet;
use crate::probe::{Listener, SourceRecord, Tap};
use crate::queue::QueueDiscipline;
use crate::tcp::{AckHeaderOf, ReceivingEnd, SendingEnd, Transmission};

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Sends an acknowledgement, which reached the return bottleneck `return_lookahead` ago unless
    /// the egress link was still busy with the previous one.
    #[inline(always)]
    pub(crate) fn acknowledge<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
        header: &AckHeaderOf<S>,
    ) {
        let reached = self.now - self.return_lookahead;
        source.return_free = reached.max(source.return_free + path.egress.ack_time);
        if source.return_free == reached {
            if HAS_TAPS || HAS_HOP || !S::POLLS {
                let ack = store_header(source, ack, header);
                self.send_ack(source, path, reached, ack, false);
            } else {
                self.send_ack_directly(source, path, reached, ack, header);
            }
        } else {
            let ack = store_header(source, ack, header);
            self.schedule_ack(source, path, reached, ack);
        }
    }

    /// Sends two acknowledgements. Neither is processed before both are sent.
    #[cold]
    pub(super) fn acknowledge_twice<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        acks: [(Packet, AckHeaderOf<S>); 2],
    ) {
        let reached = self.now - self.return_lookahead;
        let acks = acks.map(|(ack, header)| store_header(source, ack, &header));
        for ack in acks {
            source.return_free = reached.max(source.return_free + path.egress.ack_time);
            self.schedule_ack(source, path, reached, ack);
        }
    }

    /// Schedules an acknowledgement that waits for its access link.
    #[inline(always)]
    fn schedule_ack<S: SendingEnd>(
        &mut self,
        source: &Source<S>,
        path: &Path,
        reached: Nanos,
        ack: Packet,
    ) {
        self.report_passage(source, Tap::Receiver, reached - path.to_return, &ack);
        let due = source.return_free + self.return_lookahead;
        self.events.schedule(Place::Return, source.record.class(), due, ack);
    }

    /// Sends an acknowledgement over the return path without taps. Usually it reaches its sender
    /// before any other event; then its header need not be stored.
    #[inline(always)]
    fn send_ack_directly<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        reached: Nanos,
        ack: Packet,
        header: &AckHeaderOf<S>,
    ) {
        let leaves = self.return_link.transmit_next(reached);
        let due = self.sender_time(source, path, leaves);
        if self.is_next(due) {
            self.now = due;
            if source.connection == ack.connection() {
                let Source { sender, record, .. } = source;
                let sent = self.on_ack(sender, record, path, &ack, header);
                self.finish_or_send(source, path, ack, sent);
            }
        } else {
            let ack = store_header(source, ack, header);
            self.events.schedule(Place::Sender, source.record.class(), due, ack);
        }
    }

    /// Sends an acknowledgement whose header is stored; `waited` is true if it waited for its
    /// access link.
    #[inline(always)]
    fn send_ack<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        reached: Nanos,
        ack: Packet,
        waited: bool,
    ) {
        if HAS_HOP && self.hops.has_return() {
            return self.enter_return_link(source, path, ack, waited);
        }
        let leaves = self.return_link.transmit_next(reached);
        if HAS_TAPS && self.capturing {
            let shown = source.receiver.captured_header(ack.label());
            if !waited {
                self.capture(Tap::Receiver, &source.record, reached - path.to_return, &ack, shown);
            }
            self.capture(Tap::BottleneckOut, &source.record, reached, &ack, shown);
            self.capture(Tap::BottleneckIn, &source.record, leaves, &ack, shown);
        }
        let due = self.sender_time(source, path, leaves);
        if self.is_next(due) {
            self.now = due;
            self.process_ack(source, path, ack);
        } else {
            self.events.schedule(Place::Sender, source.record.class(), due, ack);
        }
    }

    /// Time at which the sender processes an acknowledgement that leaves the return bottleneck at
    /// `leaves`.
    #[inline(always)]
    fn sender_time<S: SendingEnd>(
        &self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
    ) -> Nanos {
        source.ack_free = source.ack_free.max(leaves + path.back) + path.ingress.ack_time;
        source.ack_free + self.sender_lookahead
    }

    #[inline(never)]
    pub(super) fn send_waiting_ack<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
    ) {
        self.send_ack(source, path, self.now - self.return_lookahead, ack, true);
    }

    /// Processes an acknowledgement that reaches its sender.
    #[inline(always)]
    pub(crate) fn process_ack<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        ack: Packet,
    ) {
        self.report_passage(source, Tap::Sender, self.sender_now(), &ack);
        let Source { receiver, sender, record, connection, .. } = source;
        let header = receiver.take_header(ack.label());
        if *connection != ack.connection() {
            return;
        }
        let sent = if S::POLLS {
            self.on_late_ack(sender, record, path, &ack, header)
        } else {
            self.on_ack(sender, record, path, &ack, header)
        };
        self.finish_or_send(source, path, ack, sent);
    }

    /// Passes an acknowledgement with a stored header, which is rare, to a polled sender.
    #[inline(never)]
    fn on_late_ack<S: SendingEnd>(
        &mut self,
        sender: &mut S,
        record: &mut SourceRecord,
        path: &Path,
        ack: &Packet,
        header: &AckHeaderOf<S>,
    ) -> Transmission {
        self.on_ack(sender, record, path, ack, header)
    }

    /// Passes an acknowledgement of the current connection to its sender.
    #[inline(always)]
    fn on_ack<S: SendingEnd>(
        &mut self,
        sender: &mut S,
        record: &mut SourceRecord,
        path: &Path,
        ack: &Packet,
        header: &AckHeaderOf<S>,
    ) -> Transmission {
        let now = self.sender_now();
        let listener = &mut Listener::new(&mut self.probes, record, ack.source());
        sender.on_ack(now, ack.number(), header, &path.tcp, listener)
    }

    /// Ends the transfer if the sender has finished; otherwise sends the next packets.
    #[inline(always)]
    fn finish_or_send<S: SendingEnd>(
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

/// Stores the header of an acknowledgement at its receiver until it arrives.
#[inline(always)]
fn store_header<S: SendingEnd>(
    source: &mut Source<S>,
    ack: Packet,
    header: &AckHeaderOf<S>,
) -> Packet {
    ack.with_label(source.receiver.store_header(header, ack.label().serial()))
}
