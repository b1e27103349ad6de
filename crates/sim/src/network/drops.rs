//! Lost packets: counters, and feedback to senders with instantaneous loss feedback.

use super::Network;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::packet::{Packet, PacketKind, PacketLabel};
use crate::queue::QueueDiscipline;
use tcpcast_tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Counts a lost data packet, except for packets of earlier connections and packets without
    /// data.
    #[inline(always)]
    fn remove_lost_packet<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        packet: &Packet,
    ) {
        let counts = packet.connection() == source.connection && packet.number() != 0;
        source.record.losses += u32::from(counts);
        if S::IS_POLLED {
            self.segments.remove(packet.label());
        }
    }

    #[inline(never)]
    pub(crate) fn on_access_drop<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &mut SimulatedSource<S>,
        packet: Packet,
    ) {
        self.totals.dropped += 1;
        self.remove_lost_packet(source, &packet);
        self.probes.count_access_drop(at, &source.record, &packet);
        self.schedule_loss_feedback(at, source, packet);
    }

    #[inline(never)]
    pub(crate) fn on_bottleneck_drop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        packet: Packet,
        random: bool,
    ) {
        self.remove_lost_packet(source, &packet);
        self.queue.advance_to(self.now, &mut self.probes);
        self.probes.count_bottleneck_arrival(&source.record, &packet, self.queue.held_packets());
        self.totals.dropped += 1;
        self.probes.count_bottleneck_drop(self.now, &source.record, &packet, random);
        self.schedule_loss_feedback(self.now, source, packet);
    }

    /// Handles the loss of a packet at a hop other than the bottleneck.
    pub(crate) fn on_hop_drop<S: SendingEnd>(
        &mut self,
        stage: usize,
        at: Nanos,
        source: &mut SimulatedSource<S>,
        packet: Packet,
        random: bool,
    ) {
        self.totals.dropped += 1;
        self.remove_lost_packet(source, &packet);
        self.probes.count_hop_drop(stage, at, &source.record, &packet, random);
        self.schedule_loss_feedback(at, source, packet);
    }

    /// Handles the loss at `at` of a packet whose arrival at the bottleneck has been counted:
    /// dropped from the queue, or lost at random behind the link.
    #[inline(never)]
    pub(crate) fn on_loss_after_bottleneck_entry<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &mut SimulatedSource<S>,
        packet: Packet,
        random: bool,
    ) {
        self.remove_lost_packet(source, &packet);
        self.totals.dropped += 1;
        self.probes.count_bottleneck_drop(at, &source.record, &packet, random);
        self.schedule_loss_feedback(at, source, packet);
    }

    /// Schedules the loss feedback, which reaches the sender with `sender_lookahead`, like an
    /// acknowledgement.
    ///
    /// If a packet is lost at the time of its transmission, a sender in front of a full buffer
    /// would send indefinitely at that time. So the feedback is delayed by the transmission time of
    /// a packet at the bottleneck.
    fn schedule_loss_feedback<S: SendingEnd>(
        &mut self,
        at: Nanos,
        source: &SimulatedSource<S>,
        packet: Packet,
    ) {
        if !S::HAS_LOSS_FEEDBACK || packet.kind() == PacketKind::Retransmission {
            return;
        }
        let is_immediate = at <= self.current_sender_time();
        let late = self.sender_lookahead
            + if is_immediate { self.link.cached_transmission_time().max(1) } else { 0 };
        let feedback = packet.with_label(PacketLabel::new(PacketKind::Loss, 0));
        self.events.schedule_packet(
            PacketPlace::Sender,
            source.record.class(),
            at + late,
            feedback,
        );
    }

    /// Processes loss feedback at its sender.
    pub(crate) fn process_loss_feedback<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        feedback: Packet,
    ) {
        if source.connection != feedback.connection() {
            return;
        }
        let sent = self.call_sender_with_listener(
            source,
            path,
            feedback.source(),
            |sender, now, tcp, listener| sender.on_loss(now, feedback.number(), tcp, listener),
        );
        self.send_packets_and_set_timer(source, path, feedback, sent);
    }

    /// Notifies sources of packets that queues dropped after accepting them.
    #[inline(always)]
    pub(crate) fn notify_sources_of_drops<S: SendingEnd>(
        &mut self,
        sources: &mut [SimulatedSource<S>],
    ) {
        if Q::HOLDS_PACKETS && !self.dropped_from_queue.is_empty() {
            self.notify_sources_of_bottleneck_drops(sources);
        }
        if HAS_HOP && self.hops.has_unreported_drops() {
            self.notify_sources_of_hop_drops(sources);
        }
    }

    fn notify_sources_of_bottleneck_drops<S: SendingEnd>(
        &mut self,
        sources: &mut [SimulatedSource<S>],
    ) {
        let mut dropped = std::mem::take(&mut self.dropped_from_queue);
        for (at, packet) in dropped.drain(..) {
            let source = &mut sources[packet.source() as usize];
            self.on_loss_after_bottleneck_entry(at, source, packet, false);
        }
        self.dropped_from_queue = dropped;
    }
}
