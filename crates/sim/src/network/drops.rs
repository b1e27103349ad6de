//! What becomes of a lost packet: it is counted, and its sender told where it has loss feedback.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::clock::Nanos;
use crate::event_queue::Place;
use crate::packet::{Kind, Label, Packet};
use crate::queue::QueueDiscipline;
use crate::tcp::SendingEnd;

impl<Q: QueueDiscipline, const TAPS: bool, const HOPS: bool> Network<Q, TAPS, HOPS> {
    #[inline(never)]
    pub(crate) fn dropped_on_access<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &mut Source<S>,
        packet: Packet,
    ) {
        self.lifetime.dropped += 1;
        source.lose(&packet);
        self.probes.dropped_on_access(at, &source.record, &packet);
        self.tell_of_loss(at, source, packet);
    }

    #[inline(never)]
    pub(crate) fn dropped_at_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        packet: Packet,
        random: bool,
    ) {
        source.lose(&packet);
        self.queue.settle(self.now, &mut self.probes);
        self.probes.arrived(&source.record, &packet, self.queue.held());
        self.lifetime.dropped += 1;
        self.probes.dropped(self.now, &source.record, &packet, random);
        self.tell_of_loss(self.now, source, packet);
    }

    /// A packet is lost at a hop that is not the bottleneck.
    pub(crate) fn dropped_at_hop<S: SendingEnd>(
        &mut self,
        stage: usize,
        at: Nanos,
        source: &mut Source<S>,
        packet: Packet,
        random: bool,
    ) {
        self.lifetime.dropped += 1;
        source.lose(&packet);
        self.probes.dropped_at_hop(stage, at, &source.record, &packet, random);
        self.tell_of_loss(at, source, packet);
    }

    /// A packet that was counted on its arrival at the bottleneck is dropped there at `at`: it had
    /// to leave the queue, or it was lost at random behind the link.
    #[inline(never)]
    pub(crate) fn dropped_after_arrival<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &mut Source<S>,
        packet: Packet,
        random: bool,
    ) {
        source.lose(&packet);
        self.lifetime.dropped += 1;
        self.probes.dropped(at, &source.record, &packet, random);
        self.tell_of_loss(at, source, packet);
    }

    /// Losses reach senders with `sender_lookahead`, as acknowledgements do.
    ///
    /// Where a packet is lost at the moment at which it was sent, a sender with a full buffer
    /// before it would send for ever at that moment, so the feedback comes when the bottleneck
    /// could have sent a packet more.
    fn tell_of_loss<S: SendingEnd>(&mut self, at: Nanos, source: &Source<S>, packet: Packet) {
        if !S::LOSS_FEEDBACK {
            return;
        }
        let at_once = at <= self.sender_now();
        let late =
            self.sender_lookahead + if at_once { self.link.time_when_idle().max(1) } else { 0 };
        let feedback = packet.with_label(Label::new(Kind::Loss, 0));
        self.event_queue.schedule(Place::Sender, source.record.class(), at + late, feedback);
    }

    /// Loss feedback reaches its sender.
    pub(crate) fn at_sender_of_lost<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        feedback: Packet,
    ) {
        if source.connection != feedback.connection() {
            return;
        }
        let sent = self.ask(source, path, feedback.source(), |sender, now, tcp, listener| {
            sender.on_loss(now, feedback.number(), tcp, listener)
        });
        self.send(source, path, feedback, sent);
    }

    /// Tells sources of their packets that a queue held and then dropped.
    #[inline(always)]
    pub(crate) fn tell_of_losses<S: SendingEnd>(&mut self, sources: &mut [Source<S>]) {
        if Q::HOLDS && !self.pushed_out.is_empty() {
            self.tell_of_pushed_out(sources);
        }
        if HOPS && self.tandem.has_dropped() {
            self.tell_of_hops(sources);
        }
    }

    fn tell_of_pushed_out<S: SendingEnd>(&mut self, sources: &mut [Source<S>]) {
        let mut pushed_out = std::mem::take(&mut self.pushed_out);
        for (at, packet) in pushed_out.drain(..) {
            let source = &mut sources[packet.source() as usize];
            self.dropped_after_arrival(at, source, packet, false);
        }
        self.pushed_out = pushed_out;
    }
}
