//! The bottleneck: random loss, queue, and departures.

use super::Network;
use super::path::ClassPath;
use super::source::SimulatedSource;
use crate::clock::Nanos;
use crate::event_queue::PacketPlace;
use crate::loss::LossPlace;
use crate::packet::Packet;
use crate::probe::TapPlace;
use crate::queue::{EnqueueOutcome, QueueDiscipline, TransmittedPacketInfo};
use tcpcast_tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Processes a data packet at its first shared hop: the bottleneck, unless there is a shared
    /// hop before it.
    #[inline(always)]
    pub(crate) fn enter_bottleneck_or_shared_hop<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        packet: Packet,
    ) {
        let waiting = &mut source.ingress_waiting;
        if let Some((due, next)) = self.ingress_waiting.pop_if_previous_at(waiting, self.now) {
            self.events.schedule_packet(
                PacketPlace::BottleneckQueued,
                source.record.class(),
                due,
                next,
            );
        }
        if HAS_HOP && self.hops.has_shared_hop_before_bottleneck() {
            return self.enter_first_shared_hop(source, path, packet);
        }
        self.enter_bottleneck(source, path, packet);
    }

    /// Processes the arrival of a data packet at the bottleneck.
    #[inline(always)]
    pub(crate) fn enter_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        packet: Packet,
    ) {
        if source.seen_at_bottleneck != packet.connection() {
            source.seen_at_bottleneck = packet.connection();
            self.probes.population.record_source_start(self.now);
        }
        self.report_packet_at_tap(source, TapPlace::BottleneckIn, self.now, &packet);
        if self.is_lost_at_bottleneck(LossPlace::Before, &packet) {
            return self.on_bottleneck_drop(source, packet, true);
        }
        match self.enqueue_at_bottleneck::<S>(path, &packet) {
            EnqueueOutcome::Departs { leaves, backlog } => {
                self.totals.sojourns = self.totals.sojourns.wrapping_add(leaves - self.now);
                self.probes.count_bottleneck_arrival(&source.record, &packet, backlog);
                if (S::IS_POLLED || Q::DROPS_HELD_PACKETS) && self.records_waits {
                    let waited = (leaves - self.now).saturating_sub(path.service);
                    self.probes.count_transmitted(
                        &source.record,
                        TransmittedPacketInfo { waited, marked: false },
                    );
                }
                self.forward_after_bottleneck(source, path, leaves, packet);
            }
            EnqueueOutcome::Held { backlog, evicted } => {
                self.probes.count_bottleneck_arrival(&source.record, &packet, backlog);
                self.count_enqueued_or_store_evicted(evicted);
            }
            EnqueueOutcome::Dropped => self.on_bottleneck_drop(source, packet, false),
        }
        if Q::DROPS_HELD_PACKETS {
            self.collect_bottleneck_drops();
        }
    }

    /// Whether the bottleneck loses a packet at random at this place.
    #[inline(always)]
    fn is_lost_at_bottleneck(&mut self, at: LossPlace, packet: &Packet) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses_packet_at(at, packet.source()))
    }

    /// Enqueues a packet at the bottleneck. Only queues whose departures are known on arrival use
    /// the actual length of the packet.
    #[inline(always)]
    fn enqueue_at_bottleneck<S: SendingEnd>(
        &mut self,
        path: &ClassPath,
        packet: &Packet,
    ) -> EnqueueOutcome {
        let short = self.length_of_short_packet::<S>(packet);
        let Self { queue, link, probes, now, .. } = self;
        let is_other_length = Q::ANY_LENGTH && path.packet_bytes != link.cached_length();
        match short.or(is_other_length.then_some(path.packet_bytes)) {
            Some(bytes) => link.call_with_temporary_length(bytes, |link| {
                queue.enqueue(*now, packet, link, probes)
            }),
            None => queue.enqueue(*now, packet, link, probes),
        }
    }

    /// Counts a held packet, and stores the packet that it evicted.
    #[inline(always)]
    fn count_enqueued_or_store_evicted(&mut self, evicted: Option<Packet>) {
        if let Some(packet) = evicted {
            // In the sum of waiting times, the arrival time of the held packet and the departure
            // time of the evicted packet cancel.
            self.dropped_from_queue.push((self.now, packet));
        } else {
            self.totals.sojourns = self.totals.sojourns.wrapping_sub(self.now);
        }
    }

    /// Takes the packets that the queue dropped after accepting them; their sources are notified
    /// after the event.
    #[inline]
    pub(crate) fn collect_bottleneck_drops(&mut self) {
        let before = self.dropped_from_queue.len();
        self.queue.take_dropped_packets(&mut self.dropped_from_queue, &mut self.probes);
        for (at, _) in &self.dropped_from_queue[before..] {
            self.totals.sojourns = self.totals.sojourns.wrapping_add(*at);
        }
    }

    /// Starts the transmission of the next held packet. Returns its departure time and the packet.
    #[inline(always)]
    pub(crate) fn transmit_at_bottleneck(&mut self) -> Option<(Nanos, Packet)> {
        self.now = self.queue.next_departure();
        let (leaves, packet) = self.queue.transmit_next_packet(&mut self.link, &mut self.probes)?;
        self.totals.sojourns = self.totals.sojourns.wrapping_add(leaves);
        Some((leaves, packet))
    }

    /// Forwards the packet whose transmission has just started and ends at `leaves`.
    #[inline(always)]
    pub(crate) fn forward_served_at_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        leaves: Nanos,
        packet: Packet,
    ) {
        if Q::DROPS_HELD_PACKETS {
            if let Some(passed) = self.queue.last_transmitted_packet() {
                self.probes.count_transmitted(&source.record, passed);
            }
        }
        self.forward_after_bottleneck(source, path, leaves, packet);
    }

    /// Enqueues the next cross packet.
    pub(crate) fn enqueue_next_cross_packet(&mut self) {
        let Self { queue, link, probes, now, dropped_from_queue, .. } = self;
        *now = queue.next_cross_arrival();
        if let Some(packet) = queue.enqueue_next_cross_packet(link, probes) {
            dropped_from_queue.push((*now, packet));
        }
        if Q::DROPS_HELD_PACKETS {
            self.collect_bottleneck_drops();
        }
    }

    /// Forwards a packet that leaves the bottleneck at `leaves`.
    #[inline(always)]
    pub(crate) fn forward_after_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut SimulatedSource<S>,
        path: &ClassPath,
        leaves: Nanos,
        packet: Packet,
    ) {
        if HAS_HOP && self.is_lost_at_bottleneck(LossPlace::Behind, &packet) {
            return self.on_loss_after_bottleneck_entry(leaves, source, packet, true);
        }
        self.report_packet_at_tap(source, TapPlace::BottleneckOut, leaves, &packet);
        if HAS_HOP {
            let leaves_at =
                self.jitter.as_mut().map_or(leaves, |jitter| jitter.draw_departure_time(leaves));
            return self.forward_from_bottleneck(source, path, leaves_at + path.forward, packet);
        }
        self.enter_egress_link(source, path, leaves + path.forward, packet);
    }
}
