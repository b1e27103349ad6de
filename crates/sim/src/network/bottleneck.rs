//! The bottleneck: its random loss, its queue, and what leaves it.

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

impl<Q: QueueDiscipline, const HAS_TAPS: bool, const HAS_HOPS: bool>
    Network<Q, HAS_TAPS, HAS_HOPS>
{
    /// A data packet reaches the place where it first meets others: the bottleneck, unless there is
    /// a hop before.
    #[inline(always)]
    pub(crate) fn arrive_at_first_shared<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        let waiting = &mut source.ingress_waiting;
        if let Some((due, next)) = self.ingress_waiting.pop_after(waiting, self.now) {
            self.event_queue.schedule(Place::BottleneckQueued, source.record.class(), due, next);
        }
        if HAS_HOPS && self.hop_chain.is_shared_before_bottleneck() {
            return self.enter_first_shared_hop(source, path, packet);
        }
        self.at_bottleneck(source, path, packet);
    }

    /// A data packet reaches the bottleneck.
    #[inline(always)]
    pub(crate) fn at_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        packet: Packet,
    ) {
        if source.seen_at_bottleneck != packet.connection() {
            source.seen_at_bottleneck = packet.connection();
            self.probes.population.birth(self.now);
        }
        self.pass(source, Tap::BottleneckIn, self.now, &packet);
        if self.loses_at(LossPlace::Before, &packet) {
            return self.dropped_at_bottleneck(source, packet, true);
        }
        match self.offer::<S>(path, &packet) {
            Verdict::Departs { leaves, backlog } => {
                self.lifetime.sojourns = self.lifetime.sojourns.wrapping_add(leaves - self.now);
                self.probes.arrived(&source.record, &packet, backlog);
                if (S::POLLS || Q::DROPS_HELD_PACKETS) && self.records_waits {
                    let waited = (leaves - self.now).saturating_sub(path.service);
                    self.probes.passed(&source.record, Passed { waited, marked: false });
                }
                self.leave_bottleneck(source, path, leaves, packet);
            }
            Verdict::Held { backlog, evicted } => {
                self.probes.arrived(&source.record, &packet, backlog);
                self.held(evicted);
            }
            Verdict::Dropped => self.dropped_at_bottleneck(source, packet, false),
        }
        if Q::DROPS_HELD_PACKETS {
            self.take_dropped();
        }
    }

    /// Returns true if the bottleneck loses a packet at random, at this place.
    #[inline(always)]
    fn loses_at(&mut self, at: LossPlace, packet: &Packet) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(at, packet.source()))
    }

    /// Offers a packet to the bottleneck's queue. There, only what leaves as soon as its turn is
    /// known takes the time of its own length.
    #[inline(always)]
    fn offer<S: SendingEnd>(&mut self, path: &Path, packet: &Packet) -> Verdict {
        let Self { queue, link, probes, now, .. } = self;
        let short = if S::POLLS { packet.label().short_bytes() } else { None };
        let has_own = Q::ANY_LENGTH && path.packet_bytes != link.length();
        match short.or(has_own.then_some(path.packet_bytes)) {
            Some(bytes) => link.with_length(bytes, |link| queue.offer(*now, packet, link, probes)),
            None => queue.offer(*now, packet, link, probes),
        }
    }

    /// A packet waits in the queue until the link takes it.
    #[inline(always)]
    fn held(&mut self, evicted: Option<Packet>) {
        if let Some(packet) = evicted {
            // One enters the queue as another leaves it.
            self.dropped_from_queue.push((self.now, packet));
        } else {
            self.lifetime.sojourns = self.lifetime.sojourns.wrapping_sub(self.now);
        }
    }

    /// Packets that the queue held and dropped leave it; their sources are told behind the event.
    #[inline]
    pub(crate) fn take_dropped(&mut self) {
        let known = self.dropped_from_queue.len();
        self.queue.take_dropped(&mut self.dropped_from_queue, &mut self.probes);
        for (at, _) in &self.dropped_from_queue[known..] {
            self.lifetime.sojourns = self.lifetime.sojourns.wrapping_add(*at);
        }
    }

    /// The link takes the next of the packets that the queue holds, now, and will have sent it at
    /// the time that is told.
    #[inline(always)]
    pub(crate) fn serve(&mut self) -> Option<(Nanos, Packet)> {
        self.now = self.queue.next_departure();
        let (leaves, packet) = self.queue.serve(&mut self.link, &mut self.probes)?;
        self.lifetime.sojourns = self.lifetime.sojourns.wrapping_add(leaves);
        Some((leaves, packet))
    }

    /// The packet that the link has just taken will have left at `leaves`.
    #[inline(always)]
    pub(crate) fn served<S: SendingEnd>(
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

    /// A cross packet arrives.
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

    /// On from the bottleneck, which the packet will have left at `leaves`.
    #[inline(always)]
    pub(crate) fn leave_bottleneck<S: SendingEnd>(
        &mut self,
        source: &mut Source<S>,
        path: &Path,
        leaves: Nanos,
        packet: Packet,
    ) {
        if HAS_HOPS && self.loses_at(LossPlace::Behind, &packet) {
            return self.dropped_after_arrival(leaves, source, packet, true);
        }
        self.pass(source, Tap::BottleneckOut, leaves, &packet);
        if HAS_HOPS {
            let leaves_at = self.jitter.as_mut().map_or(leaves, |jitter| jitter.leaves_at(leaves));
            return self.forward_from_bottleneck(source, path, leaves_at + path.forward, packet);
        }
        self.reach_egress(source, path, leaves + path.forward, packet);
    }
}
