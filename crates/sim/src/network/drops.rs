//! Lost packets: counters, and feedback to senders with instantaneous loss feedback.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::clock::Nanos;
use crate::event_queue::Place;
use crate::packet::{Kind, Label, Packet};
use crate::queue::QueueDiscipline;
use crate::tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    #[inline(never)]
    pub(crate) fn dropped_on_access<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &mut Source<S>,
        packet: Packet,
    ) {
        self.totals.dropped += 1;
        source.count_loss(&packet);
        self.probes.dropped_on_access(at, &source.record, &packet);
        self.send_loss_feedback(at, source, packet);
    }

    #[inline(never)]
    pub(crate) fn dropped_at_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        packet: Packet,
        random: bool,
    ) {
        source.count_loss(&packet);
        self.queue.advance_to(self.now, &mut self.probes);
        self.probes.arrived(&source.record, &packet, self.queue.held());
        self.totals.dropped += 1;
        self.probes.dropped(self.now, &source.record, &packet, random);
        self.send_loss_feedback(self.now, source, packet);
    }

    /// Handles the loss of a packet at a hop other than the bottleneck.
    pub(crate) fn dropped_at_hop<S: SendingEnd>(
        &mut self,
        stage: usize,
        at: Nanos,
        source: &mut Source<S>,
        packet: Packet,
        random: bool,
    ) {
        self.totals.dropped += 1;
        source.count_loss(&packet);
        self.probes.dropped_at_hop(stage, at, &source.record, &packet, random);
        self.send_loss_feedback(at, source, packet);
    }

    /// Handles the loss at `at` of a packet whose arrival at the bottleneck has been counted:
    /// dropped from the queue, or lost at random behind the link.
    #[inline(never)]
    pub(crate) fn dropped_after_arrival<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &mut Source<S>,
        packet: Packet,
        random: bool,
    ) {
        source.count_loss(&packet);
        self.totals.dropped += 1;
        self.probes.dropped(at, &source.record, &packet, random);
        self.send_loss_feedback(at, source, packet);
    }

    /// Schedules the loss feedback, which reaches the sender with `sender_lookahead`, like an
    /// acknowledgement.
    ///
    /// If a packet is lost at the time of its transmission, a sender in front of a full buffer
    /// would send indefinitely at that time. So the feedback is delayed by the transmission time of
    /// a packet at the bottleneck.
    fn send_loss_feedback<S: SendingEnd>(&mut self, at: Nanos, source: &Source<S>, packet: Packet) {
        if !S::LOSS_FEEDBACK {
            return;
        }
        let is_immediate = at <= self.sender_now();
        let late = self.sender_lookahead
            + if is_immediate { self.link.time_when_idle().max(1) } else { 0 };
        let feedback = packet.with_label(Label::new(Kind::Loss, 0));
        self.events.schedule(Place::Sender, source.record.class(), at + late, feedback);
    }

    /// Processes loss feedback at its sender.
    pub(crate) fn on_loss_feedback<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        feedback: Packet,
    ) {
        if source.connection != feedback.connection() {
            return;
        }
        let sent =
            self.call_sender(source, path, feedback.source(), |sender, now, tcp, listener| {
                sender.on_loss(now, feedback.number(), tcp, listener)
            });
        self.send(source, path, feedback, sent);
    }

    /// Notifies sources of packets that queues dropped after accepting them.
    #[inline(always)]
    pub(crate) fn notify_drops<S: SendingEnd>(&mut self, sources: &mut [Source<S>]) {
        if Q::HOLDS_PACKETS && !self.dropped_from_queue.is_empty() {
            self.notify_bottleneck_drops(sources);
        }
        if HAS_HOP && self.hops.has_dropped() {
            self.notify_hop_drops(sources);
        }
    }

    fn notify_bottleneck_drops<S: SendingEnd>(&mut self, sources: &mut [Source<S>]) {
        let mut dropped = std::mem::take(&mut self.dropped_from_queue);
        for (at, packet) in dropped.drain(..) {
            let source = &mut sources[packet.source() as usize];
            self.dropped_after_arrival(at, source, packet, false);
        }
        self.dropped_from_queue = dropped;
    }
}
