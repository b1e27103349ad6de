//! Shared hops other than the bottleneck.

use crate::clock::{Nanos, Transmitter, create_fixed_rate_transmitter};
use crate::config::{HopConfig, ReturnLinkConfig, RunConfig};
use crate::cross::CrossTrafficQueue;
use crate::loss::{LinkLossConfig, LinkLossState, LossPlace};
use crate::packet::Packet;
use crate::probe::HopCounters;
use crate::queue::{AnyQueue, EnqueueOutcome, QueueDiscipline, QueueProbe};
use crate::random::{NamedStream, RandomStream, StreamPurpose};

/// A queue with its link, and random loss before or behind them.
#[derive(Debug)]
pub(crate) struct SharedHop {
    queue: CrossTrafficQueue,
    link: Transmitter,
    loss: Option<LinkLossState>,
}

impl SharedHop {
    pub(super) fn new(hop: &HopConfig, run: &RunConfig, replication: u32, stage: usize) -> Self {
        let stream = |purpose| {
            RandomStream::for_entity_at_hop(run.seed, replication, 0, purpose, stage as u32)
        };
        let (early, tie) = (stream(StreamPurpose::HopEarlyDrop), stream(StreamPurpose::Tie));
        let queue = AnyQueue::new(hop.queue.clone(), hop.buffer, early, tie);
        let queue = CrossTrafficQueue::new(
            queue,
            &run.cross_streams_at_stage(stage),
            run.seed,
            replication,
        );
        Self {
            queue: queue.with_population_scale(run.max_population_scale()),
            link: create_fixed_rate_transmitter(hop.rate_bps, run.packet_bytes),
            loss: hop.loss.map(|loss| LinkLossState::new(loss, stream(StreamPurpose::HopLoss))),
        }
    }

    /// Creates the return link, which is the stage after the last stage of the forward path.
    pub(super) fn new_return_link(
        link: &ReturnLinkConfig,
        run: &RunConfig,
        replication: u32,
        stage: usize,
    ) -> Self {
        let stream = |purpose| RandomStream::for_entity(run.seed, replication, 0, purpose);
        let (early, tie) =
            (stream(StreamPurpose::ReturnEarlyDrop), stream(StreamPurpose::ReturnEarlyDrop));
        let queue = AnyQueue::new(link.queue.clone(), link.buffer, early, tie);
        let losses = |loss| {
            LinkLossState::new(LinkLossConfig::before_queue(loss), stream(StreamPurpose::AckLoss))
        };
        Self {
            queue: CrossTrafficQueue::new(
                queue,
                &run.cross_streams_at_stage(stage),
                run.seed,
                replication,
            ),
            link: create_fixed_rate_transmitter(link.rate_bps, run.packet_bytes),
            loss: link.loss.map(losses),
        }
    }

    /// Whether the hop has events of its sources: departures of held packets, or cross packets.
    pub(super) fn has_departure_or_cross_events(&self) -> bool {
        self.queue.holds_packets_until_link_free() || self.queue.has_streams()
    }

    /// Arrival time of the next cross packet.
    pub(crate) fn next_cross_arrival(&self) -> Nanos {
        self.queue.next_cross_arrival()
    }

    /// As [`QueueDiscipline::enqueue_next_cross_packet`].
    pub(super) fn enqueue_next_cross_packet(
        &mut self,
        counters: &mut HopCounters,
    ) -> Option<Packet> {
        self.queue.enqueue_next_cross_packet(&mut self.link, counters)
    }

    /// Whether the packet that passes this place is lost at random.
    pub(super) fn loses_packet_at(&mut self, at: LossPlace) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses_packet_at(at))
    }

    /// Enqueues a packet of `bytes`.
    pub(super) fn offer_packet(
        &mut self,
        now: Nanos,
        bytes: u32,
        packet: &Packet,
        counters: &mut HopCounters,
    ) -> EnqueueOutcome {
        if bytes == self.link.cached_length() {
            return self.queue.enqueue(now, packet, &mut self.link, counters);
        }
        self.offer_packet_of_bytes(bytes, now, packet, counters)
    }

    /// Enqueues a packet of `bytes`.
    pub(super) fn offer_packet_of_bytes(
        &mut self,
        bytes: u32,
        now: Nanos,
        packet: &Packet,
        counters: &mut HopCounters,
    ) -> EnqueueOutcome {
        let Self { queue, link, .. } = self;
        link.call_with_temporary_length(bytes, |link| queue.enqueue(now, packet, link, counters))
    }

    /// Transmission time of a packet of `bytes`.
    pub(super) fn transmission_time_of(&mut self, bytes: u32) -> Nanos {
        self.link.call_with_temporary_length(bytes, |link| link.cached_transmission_time())
    }

    /// Waiting time of the packet that was served last, if known.
    pub(super) fn last_waiting_time(&self) -> Option<Nanos> {
        self.queue.last_transmitted_packet().map(|passed| passed.waited)
    }

    /// Total time at the hop of packets of sources and streams up to `now`, modulo 2^64. `sojourns`
    /// is the sum for packets of sources that have left the queue.
    pub(super) fn total_time_at_hop(&self, now: Nanos, sojourns: u64) -> u64 {
        let waiting = self.queue.waiting_packets().wrapping_mul(now);
        let sources =
            sojourns.wrapping_add(waiting).wrapping_sub(self.queue.sum_of_remaining_times(now));
        sources.wrapping_add(self.queue.cross_waiting_time_sum(now))
    }

    /// As [`QueueDiscipline::transmit_next_packet`].
    pub(super) fn transmit_next_packet(
        &mut self,
        counters: &mut HopCounters,
    ) -> Option<(Nanos, Packet)> {
        self.queue.transmit_next_packet(&mut self.link, counters)
    }

    /// As [`QueueDiscipline::take_dropped_packets`].
    pub(super) fn take_dropped_packets(
        &mut self,
        counters: &mut HopCounters,
    ) -> Vec<(Nanos, Packet)> {
        let mut dropped = Vec::new();
        self.queue.take_dropped_packets(&mut dropped, counters);
        dropped
    }

    /// As [`QueueDiscipline::next_departure`].
    pub(crate) fn next_departure(&self) -> Nanos {
        self.queue.next_departure()
    }

    pub(super) fn waiting_packets(&self) -> u64 {
        self.queue.waiting_packets()
    }

    pub(super) fn held_packets(&self) -> usize {
        self.queue.held_packets()
    }

    pub(super) fn advance_to(&mut self, now: Nanos, counters: &mut HopCounters) {
        self.queue.advance_to(now, counters);
        counters.on_queue_length_interval(self.held_packets(), now);
        counters.load.set_total_since_start(self.queue.link_load_until(now));
    }

    pub(super) fn reset_for_next_transfer(&mut self) {
        self.queue.reset_for_next_transfer();
        self.loss.iter_mut().for_each(LinkLossState::restart_process);
    }
}
