//! A queue that also receives cross packets.
//!
//! Wraps any discipline. The packets of the streams are offered to the discipline like packets of
//! sources, in the order of time, and are discarded after the queue. The discipline treats each
//! stream as a source, so a fair queue treats it as a flow.

use super::{CrossArrivals, CrossConfig};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::queue::{
    AnyQueue, CrossPacketEvent, EnqueueOutcome, LinkLoad, QueueDiscipline, QueueProbe,
    TransmittedPacketInfo,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue with any number of streams of cross traffic, which the wrapped discipline does not
/// distinguish from sources.
#[derive(Clone, Debug)]
pub struct CrossTrafficQueue {
    queue: AnyQueue,
    streams: Vec<CrossArrivals>,
    /// Index of each stream among all streams of the run.
    indices: Vec<usize>,
    /// Arrival time of the next packet of each stream; empty before the first call of
    /// `enqueue_next_cross_packet`.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Earliest of these times.
    next_arrival: Nanos,
    /// Cross packets that wait in the queue.
    waiting: u64,
    /// Sum of the departure times of cross packets minus their arrival times, modulo 2^64, plus the
    /// times at which cross packets evicted packets of sources.
    sojourns: u64,
}

/// Reports the queue length only. The backlog found on arrival and the average of RED are reported
/// for packets of sources, not for cross packets.
struct LengthOnlyProbe<'a, P>(&'a mut P);

impl<P: QueueProbe> QueueProbe for LengthOnlyProbe<'_, P> {
    fn on_queue_length_interval(&mut self, packets: usize, until: Nanos) {
        self.0.on_queue_length_interval(packets, until);
    }
    fn on_arrival_queue_length(&mut self, _packets: usize) {}
}

impl CrossTrafficQueue {
    /// Creates the queue of a replication with `streams` (index among all streams, configuration).
    #[must_use]
    pub fn new(
        queue: AnyQueue,
        streams: &[(u32, &CrossConfig)],
        seed: u64,
        replication: u32,
    ) -> Self {
        let named = |(index, stream): &(u32, &CrossConfig)| {
            CrossArrivals::for_stream(&stream.process, seed, replication, *index)
        };
        Self {
            queue,
            indices: streams.iter().map(|(index, _)| *index as usize).collect(),
            streams: streams.iter().map(named).collect(),
            due: BinaryHeap::new(),
            next_arrival: if streams.is_empty() { NEVER } else { 0 },
            waiting: 0,
            sojourns: 0,
        }
    }

    /// Weights the flows for a scaled population: each source counts as `scale` flows, each stream
    /// as one.
    #[must_use]
    pub fn with_population_scale(mut self, scale: f64) -> Self {
        self.queue.make_first_flows_heavy(self.streams.len() as u32, scale);
        self
    }

    /// Whether the queue holds packets until the link is free.
    #[must_use]
    pub fn holds_packets_until_link_free(&self) -> bool {
        self.queue.holds_packets_until_link_free()
    }

    /// Whether the queue receives cross traffic.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Stream with this source index; `None` for a source of the scenario.
    fn stream_of_source(&self, source: u32) -> Option<usize> {
        let stream = source as usize;
        (stream < self.streams.len()).then_some(stream)
    }

    /// Maps the source index of a packet to the discipline, where streams precede sources.
    fn to_discipline_source_index(&self, packet: &Packet) -> Packet {
        packet.with_source(packet.source() + self.streams.len() as u32)
    }

    /// Maps the source index of a packet back.
    fn to_original_source_index(&self, packet: Packet) -> Packet {
        packet.with_source(packet.source() - self.streams.len() as u32)
    }

    /// Counts a dropped cross packet. Returns packets of sources without counting them.
    fn count_cross_drop(
        &mut self,
        now: Nanos,
        packet: Packet,
        probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        let Some(stream) = self.stream_of_source(packet.source()) else {
            return Some(self.to_original_source_index(packet));
        };
        self.waiting -= 1;
        self.sojourns = self.sojourns.wrapping_add(now);
        probe.on_cross_packet(self.indices[stream], CrossPacketEvent::Dropped);
        None
    }

    /// Draws the first arrival of each stream; deferred to the start of the run, because some
    /// streams draw long series.
    fn draw_first_arrivals(&mut self) {
        for (stream, arrivals) in (0..).zip(&mut self.streams) {
            self.due.push(Reverse((arrivals.next_arrival_time(), stream)));
        }
    }

    fn next_arrival_or_departure(&self) -> Nanos {
        self.due.peek().map_or(NEVER, |due| due.0.0)
    }
}

impl QueueDiscipline for CrossTrafficQueue {
    const HOLDS_PACKETS: bool = true;
    const HAS_CROSS_TRAFFIC: bool = true;
    const ANY_LENGTH: bool = true;
    const DROPS_HELD_PACKETS: bool = true;

    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        let packet = self.to_discipline_source_index(packet);
        match self.queue.enqueue(now, &packet, link, probe) {
            EnqueueOutcome::Held { backlog, evicted: Some(packet) } => {
                EnqueueOutcome::Held { backlog, evicted: self.count_cross_drop(now, packet, probe) }
            }
            verdict => verdict,
        }
    }

    fn advance_to(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.queue.advance_to(now, probe);
    }

    fn reset_for_next_transfer(&mut self) {
        self.queue.reset_for_next_transfer();
    }

    fn held_packets(&self) -> usize {
        self.queue.held_packets()
    }

    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        self.queue.sum_of_remaining_times(now)
    }

    fn cross_waiting_time_sum(&self, now: Nanos) -> u64 {
        self.sojourns.wrapping_add(self.waiting.wrapping_mul(now))
    }

    fn next_departure(&self) -> Nanos {
        self.queue.next_departure()
    }

    fn transmit_next_packet(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let (leaves, packet) = self.queue.transmit_next_packet(link, probe)?;
        let Some(stream) = self.stream_of_source(packet.source()) else {
            return Some((leaves, self.to_original_source_index(packet)));
        };
        self.waiting -= 1;
        self.sojourns = self.sojourns.wrapping_add(leaves);
        let waited = self.queue.last_transmitted_packet().map(|passed| passed.waited);
        probe.on_cross_packet(self.indices[stream], CrossPacketEvent::Carried { waited });
        None
    }

    fn waiting_packets(&self) -> u64 {
        self.queue.waiting_packets() - self.waiting
    }

    fn last_transmitted_packet(&self) -> Option<TransmittedPacketInfo> {
        self.queue.last_transmitted_packet()
    }

    fn link_load_until(&self, now: Nanos) -> Option<LinkLoad> {
        self.queue.link_load_until(now)
    }

    fn take_dropped_packets(
        &mut self,
        into: &mut Vec<(Nanos, Packet)>,
        probe: &mut impl QueueProbe,
    ) {
        let before = into.len();
        self.queue.take_dropped_packets(into, probe);
        if self.streams.is_empty() || into.len() == before {
            return;
        }
        for (at, packet) in into.split_off(before) {
            into.extend(self.count_cross_drop(at, packet, probe).map(|packet| (at, packet)));
        }
    }

    fn prefetch_ahead(&self, turns: usize, mut visit: impl FnMut(u32)) {
        let streams = self.streams.len() as u32;
        self.queue.prefetch_ahead(turns, |source| {
            if let Some(source) = source.checked_sub(streams) {
                visit(source);
            }
        });
    }

    fn next_cross_arrival(&self) -> Nanos {
        self.next_arrival
    }

    fn enqueue_next_cross_packet(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        let Some(Reverse((now, source))) = self.due.pop() else {
            self.draw_first_arrivals();
            self.next_arrival = self.next_arrival_or_departure();
            return None;
        };
        let stream = source as usize;
        let arrivals = &mut self.streams[stream];
        self.due.push(Reverse((arrivals.next_arrival_time(), source)));
        probe.on_cross_rates(self.indices[stream], &arrivals.take_rate_counters());
        self.next_arrival = self.next_arrival_or_departure();
        probe.on_cross_packet(self.indices[stream], CrossPacketEvent::Offered);
        let packet = Packet::new(source, 0, 0, crate::packet::PacketLabel::default());
        match self.queue.enqueue(now, &packet, link, &mut LengthOnlyProbe(probe)) {
            EnqueueOutcome::Departs { leaves, .. } => {
                self.sojourns = self.sojourns.wrapping_add(leaves - now);
                // Fair queues know a waiting time only if it is 0, which would bias the mean.
                let waited = (!matches!(self.queue, AnyQueue::Fair(_)))
                    .then(|| (leaves - now).saturating_sub(link.cached_transmission_time()));
                probe.on_cross_packet(self.indices[stream], CrossPacketEvent::Carried { waited });
            }
            EnqueueOutcome::Dropped => {
                probe.on_cross_packet(self.indices[stream], CrossPacketEvent::Dropped)
            }
            EnqueueOutcome::Held { evicted, .. } => {
                self.waiting += 1;
                self.sojourns = self.sojourns.wrapping_sub(now);
                let with_source = self.count_cross_drop(now, evicted?, probe);
                if with_source.is_some() {
                    self.sojourns = self.sojourns.wrapping_add(now);
                }
                return with_source;
            }
        }
        None
    }
}
