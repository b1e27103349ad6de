//! Shared hops other than the bottleneck.

use crate::clock::{Nanos, Transmitter, transmitter};
use crate::config::{HopConfig, ReturnConfig, RunConfig};
use crate::cross::CrossTrafficQueue;
use crate::loss::{LinkLoss, LinkLosses, LossPlace};
use crate::packet::Packet;
use crate::probe::HopCounters;
use crate::queue::{AnyQueue, QueueDiscipline, QueueProbe, Verdict};
use crate::random::{Named, Purpose, Stream};

/// A queue with its link, and random loss before or behind them.
#[derive(Debug)]
pub(crate) struct SharedHop {
    queue: CrossTrafficQueue,
    link: Transmitter,
    loss: Option<LinkLosses>,
}

impl SharedHop {
    pub(super) fn new(hop: &HopConfig, run: &RunConfig, replication: u32, stage: usize) -> Self {
        let stream = |purpose| Stream::at_hop(run.seed, replication, 0, purpose, stage as u32);
        let (early, tie) = (stream(Purpose::HopEarlyDrop), stream(Purpose::Tie));
        let queue = AnyQueue::new(hop.queue.clone(), hop.buffer, early, tie);
        let queue = CrossTrafficQueue::new(queue, &run.cross_at(stage), run.seed, replication);
        Self {
            queue: queue.with_scale(run.scale()),
            link: transmitter(hop.rate_bps, run.packet_bytes),
            loss: hop.loss.map(|loss| LinkLosses::new(loss, stream(Purpose::HopLoss))),
        }
    }

    /// Creates the return link, which is the stage after those of the forward path.
    pub(super) fn new_return_link(
        link: &ReturnConfig,
        run: &RunConfig,
        replication: u32,
        stage: usize,
    ) -> Self {
        let stream = |purpose| Stream::named(run.seed, replication, 0, purpose);
        let (early, tie) = (stream(Purpose::ReturnEarlyDrop), stream(Purpose::ReturnEarlyDrop));
        let queue = AnyQueue::new(link.queue.clone(), link.buffer, early, tie);
        let losses = |loss| LinkLosses::new(LinkLoss::before(loss), stream(Purpose::AckLoss));
        Self {
            queue: CrossTrafficQueue::new(queue, &run.cross_at(stage), run.seed, replication),
            link: transmitter(link.rate_bps, run.packet_bytes),
            loss: link.loss.map(losses),
        }
    }

    /// Whether the hop has events of its sources: departures of held packets, or cross packets.
    pub(super) fn has_events(&self) -> bool {
        self.queue.holds_packets() || self.queue.has_streams()
    }

    /// Arrival time of the next cross packet.
    pub(crate) fn next_cross_arrival(&self) -> Nanos {
        self.queue.next_cross_arrival()
    }

    /// As [`QueueDiscipline::on_cross_arrival`].
    pub(super) fn on_cross_arrival(&mut self, counters: &mut HopCounters) -> Option<Packet> {
        self.queue.on_cross_arrival(&mut self.link, counters)
    }

    /// Whether the packet that passes this place is lost at random.
    pub(super) fn loses(&mut self, at: LossPlace) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(at))
    }

    /// Enqueues a packet of a class whose full packets have `full_bytes`.
    pub(super) fn offer(
        &mut self,
        now: Nanos,
        full_bytes: u32,
        packet: &Packet,
        counters: &mut HopCounters,
    ) -> Verdict {
        let bytes = packet.label().short_bytes().unwrap_or(full_bytes);
        if bytes == self.link.length() {
            return self.queue.offer(now, packet, &mut self.link, counters);
        }
        self.offer_bytes(bytes, now, packet, counters)
    }

    /// Enqueues a packet of `bytes`.
    pub(super) fn offer_bytes(
        &mut self,
        bytes: u32,
        now: Nanos,
        packet: &Packet,
        counters: &mut HopCounters,
    ) -> Verdict {
        let Self { queue, link, .. } = self;
        link.with_length(bytes, |link| queue.offer(now, packet, link, counters))
    }

    /// Transmission time of a packet of `bytes`.
    pub(super) fn time_of(&mut self, bytes: u32) -> Nanos {
        self.link.with_length(bytes, |link| link.time_when_idle())
    }

    /// Waiting time of the packet that was served last, if known.
    pub(super) fn waited(&self) -> Option<Nanos> {
        self.queue.passed().map(|passed| passed.waited)
    }

    /// Total time at the hop of packets of sources and streams up to `now`, modulo 2^64. `sojourns`
    /// is the sum for packets of sources, without those still queued.
    pub(super) fn waits(&self, now: Nanos, sojourns: u64) -> u64 {
        let waiting = self.queue.waiting().wrapping_mul(now);
        let sources = sojourns.wrapping_add(waiting).wrapping_sub(self.queue.ahead(now));
        sources.wrapping_add(self.queue.cross_waited(now))
    }

    /// As [`QueueDiscipline::serve`].
    pub(super) fn serve(&mut self, counters: &mut HopCounters) -> Option<(Nanos, Packet)> {
        self.queue.serve(&mut self.link, counters)
    }

    /// As [`QueueDiscipline::take_dropped`].
    pub(super) fn take_dropped(&mut self, counters: &mut HopCounters) -> Vec<(Nanos, Packet)> {
        let mut dropped = Vec::new();
        self.queue.take_dropped(&mut dropped, counters);
        dropped
    }

    /// As [`QueueDiscipline::next_departure`].
    pub(crate) fn next_departure(&self) -> Nanos {
        self.queue.next_departure()
    }

    pub(super) fn waiting(&self) -> u64 {
        self.queue.waiting()
    }

    pub(super) fn held(&self) -> usize {
        self.queue.held()
    }

    pub(super) fn advance_to(&mut self, now: Nanos, counters: &mut HopCounters) {
        self.queue.advance_to(now, counters);
        counters.queue_held(self.held(), now);
        counters.load.set_total(self.queue.carried(now));
    }

    pub(super) fn restart(&mut self) {
        self.queue.restart();
        self.loss.iter_mut().for_each(LinkLosses::restart);
    }
}
