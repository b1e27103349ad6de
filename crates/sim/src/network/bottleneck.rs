//! The bottleneck: random loss, queue, and departures.

use super::Network;
use super::path::Path;
use super::source::Source;
use crate::clock::Nanos;
use crate::event_queue::Place;
use crate::loss::LossPlace;
use crate::packet::Packet;
use crate::probe::Tap;
use crate::queue::{Passed, QueueDiscipline, Verdict};
use crate::tcp::SendingEnd;

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOP: bool> Network<Q, HAS_TAPS, HAS_HOP> {
    /// Processes a data packet at its first shared hop: the bottleneck, unless there is a shared
    /// hop before it.
    #[inline(always)]
    pub(crate) fn arrive_at_first_shared<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        let waiting = &mut source.ingress_waiting;
        if let Some((due, next)) = self.ingress_waiting.pop_after(waiting, self.now) {
            self.events.schedule(Place::BottleneckQueued, source.record.class(), due, next);
        }
        if HAS_HOP && self.hops.is_shared_before_bottleneck() {
            return self.enter_first_shared_hop(source, path, packet);
        }
        self.enter_bottleneck(source, path, packet);
    }

    /// Processes the arrival of a data packet at the bottleneck.
    #[inline(always)]
    pub(crate) fn enter_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        if source.seen_at_bottleneck != packet.connection() {
            source.seen_at_bottleneck = packet.connection();
            self.probes.population.birth(self.now);
        }
        self.report_passage(source, Tap::BottleneckIn, self.now, &packet);
        if self.loses_at(LossPlace::Before, &packet) {
            return self.dropped_at_bottleneck(source, packet, true);
        }
        match self.offer::<S>(path, &packet) {
            Verdict::Departs { leaves, backlog } => {
                self.totals.sojourns = self.totals.sojourns.wrapping_add(leaves - self.now);
                self.probes.arrived(&source.record, &packet, backlog);
                if (S::POLLS || Q::DROPS_HELD_PACKETS) && self.records_waits {
                    let waited = (leaves - self.now).saturating_sub(path.service);
                    self.probes.passed(&source.record, Passed { waited, marked: false });
                }
                self.leave_bottleneck(source, path, leaves, packet);
            }
            Verdict::Held { backlog, evicted } => {
                self.probes.arrived(&source.record, &packet, backlog);
                self.count_held(evicted);
            }
            Verdict::Dropped => self.dropped_at_bottleneck(source, packet, false),
        }
        if Q::DROPS_HELD_PACKETS {
            self.take_dropped();
        }
    }

    /// Whether the bottleneck loses a packet at random at this place.
    #[inline(always)]
    fn loses_at(&mut self, at: LossPlace, packet: &Packet) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(at, packet.source()))
    }

    /// Enqueues a packet at the bottleneck. Only queues whose departures are known on arrival use
    /// the actual length of the packet.
    #[inline(always)]
    fn offer<S: SendingEnd>(&mut self, path: &Path, packet: &Packet) -> Verdict {
        let Self { queue, link, probes, now, .. } = self;
        let short = if S::POLLS { packet.label().short_bytes() } else { None };
        let is_other_length = Q::ANY_LENGTH && path.packet_bytes != link.length();
        match short.or(is_other_length.then_some(path.packet_bytes)) {
            Some(bytes) => link.with_length(bytes, |link| queue.offer(*now, packet, link, probes)),
            None => queue.offer(*now, packet, link, probes),
        }
    }

    /// Counts a held packet, and stores the packet that it evicted.
    #[inline(always)]
    fn count_held(&mut self, evicted: Option<Packet>) {
        if let Some(packet) = evicted {
            // The arrival time of the one and the departure time of the other cancel.
            self.dropped_from_queue.push((self.now, packet));
        } else {
            self.totals.sojourns = self.totals.sojourns.wrapping_sub(self.now);
        }
    }

    /// Takes the packets that the queue dropped after accepting them; their sources are notified
    /// after the event.
    #[inline]
    pub(crate) fn take_dropped(&mut self) {
        let before = self.dropped_from_queue.len();
        self.queue.take_dropped(&mut self.dropped_from_queue, &mut self.probes);
        for (at, _) in &self.dropped_from_queue[before..] {
            self.totals.sojourns = self.totals.sojourns.wrapping_add(*at);
        }
    }

    /// Starts the transmission of the next held packet. Returns its departure time and the packet.
    #[inline(always)]
    pub(crate) fn serve(&mut self) -> Option<(Nanos, Packet)> {
        self.now = self.queue.next_departure();
        let (leaves, packet) = self.queue.serve(&mut self.link, &mut self.probes)?;
        self.totals.sojourns = self.totals.sojourns.wrapping_add(leaves);
        Some((leaves, packet))
    }

    /// Forwards the packet whose transmission has just started and ends at `leaves`.
    #[inline(always)]
    pub(crate) fn forward_served<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
        packet: Packet,
    ) {
        if Q::DROPS_HELD_PACKETS {
            if let Some(passed) = self.queue.passed() {
                self.probes.passed(&source.record, passed);
            }
        }
        self.leave_bottleneck(source, path, leaves, packet);
    }

    /// Enqueues the next cross packet.
    pub(crate) fn on_cross_arrival(&mut self) {
        let Self { queue, link, probes, now, dropped_from_queue, .. } = self;
        *now = queue.next_cross_arrival();
        if let Some(packet) = queue.on_cross_arrival(link, probes) {
            dropped_from_queue.push((*now, packet));
        }
        if Q::DROPS_HELD_PACKETS {
            self.take_dropped();
        }
    }

    /// Forwards a packet that leaves the bottleneck at `leaves`.
    #[inline(always)]
    pub(crate) fn leave_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
        packet: Packet,
    ) {
        if HAS_HOP && self.loses_at(LossPlace::Behind, &packet) {
            return self.dropped_after_arrival(leaves, source, packet, true);
        }
        self.report_passage(source, Tap::BottleneckOut, leaves, &packet);
        if HAS_HOP {
            let leaves_at = self.jitter.as_mut().map_or(leaves, |jitter| jitter.leaves_at(leaves));
            return self.forward_from_bottleneck(source, path, leaves_at + path.forward, packet);
        }
        self.reach_egress(source, path, leaves + path.forward, packet);
    }
}
