//! The shared router of all flows: a queue of crate `link` with any discipline, and cross traffic.

use std::num::NonZeroU64;
use tcpcast_link::link::{OfferOutcome, QueueingLink};
use tcpcast_link::queue::{
    AnyQueue, BufferLimits, DropReason, QueueConfig, QueueDiscipline, QueueProbe,
};
use tcpcast_link::transmit::ConstantRate;
use tcpcast_sim::clock::{NEVER, Nanos};
use tcpcast_sim::cross::CrossArrivals;
use tcpcast_sim::probe::{CrossPacketEvent, Probes};
use tcpcast_sim::random::RandomStream;
use tcpcast_sim::{Merge, Packet};

type QueuedPacket = tcpcast_link::Packet<Packet>;

/// The outcome of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouterOutcome {
    /// The link transmits the packet, which leaves at this time.
    Leaves(Nanos),
    /// The packet waits for [`SharedRouter::take_next_departure`]. Contains the packet that was
    /// evicted, if any.
    Waits(Option<Packet>),
    /// The packet was dropped.
    Dropped,
}

/// A stream of cross traffic, whose packets are discarded behind the router.
#[derive(Debug)]
pub(super) struct RouterStream {
    /// Index among all streams of the run.
    pub index: usize,
    pub arrivals: CrossArrivals,
}

/// The queue and the link behind it. A packet leaves the queue at the start of its transmission.
#[derive(Debug)]
pub(super) struct SharedRouter {
    link: QueueingLink<AnyQueue<Packet>, ConstantRate>,
    packet_bytes: u32,
    streams: Vec<RouterStream>,
    /// Arrival time of the next packet of each stream; empty before the first one is drawn.
    due: Vec<Nanos>,
    /// Packets of streams in the queue.
    waiting_cross: u64,
    /// Packets that the queue dropped during one call.
    dropped: Vec<Packet>,
}

/// Packets of streams have the sources and flow numbers from here to the largest number.
const FIRST_STREAM_SOURCE: u32 = u32::MAX - 0xffff;

/// Adds the events of the queue to the probes.
struct RouterProbe<'a> {
    probes: &'a mut Probes,
    dropped: &'a mut Vec<Packet>,
    /// Whether a packet of a stream arrives; what it finds in the queue is not recorded.
    is_cross: bool,
}

impl QueueProbe<Packet> for RouterProbe<'_> {
    fn on_drop(&mut self, _now: Nanos, packet: &QueuedPacket, reason: DropReason) {
        if reason == DropReason::Early && !self.is_cross {
            self.probes.early.count_drop();
        }
        self.dropped.push(packet.token);
    }

    fn on_arrival_queue_length(&mut self, packets: u64) {
        if !self.is_cross {
            self.probes.occupancy.record_arrival(packets as usize);
        }
    }

    fn on_queue_length_interval(&mut self, packets: u64, until: Nanos) {
        self.probes.occupancy.record_length_until(packets as usize, until);
    }

    fn on_average_updated(&mut self, average: f64) {
        if !self.is_cross {
            self.probes.early.count_average(average);
        }
    }
}

fn stream_of(packet: &Packet) -> Option<usize> {
    packet.source.checked_sub(FIRST_STREAM_SOURCE).map(|stream| stream as usize)
}

impl SharedRouter {
    /// Creates an empty router for packets of `packet_bytes`. `limit` is the buffer limit in
    /// packets, including the packet in transmission.
    pub(super) fn new(
        queue: QueueConfig,
        limit: Option<u64>,
        rate_bps: Option<u64>,
        packet_bytes: u32,
        draws: RandomStream,
        streams: Vec<RouterStream>,
    ) -> Self {
        let limits = BufferLimits { packets: limit, ..BufferLimits::default() };
        let transmitter = ConstantRate::new(rate_bps.and_then(NonZeroU64::new));
        Self {
            link: QueueingLink::new(AnyQueue::new(queue, limits, draws), transmitter),
            packet_bytes,
            streams,
            due: Vec::new(),
            waiting_cross: 0,
            dropped: Vec::new(),
        }
    }

    /// Time of the next [`SharedRouter::take_next_departure`]; [`NEVER`] if no packet waits.
    pub(super) fn next_departure(&self) -> Nanos {
        self.link.next_departure()
    }

    /// Removes the next packet at [`SharedRouter::next_departure`], and returns its departure time
    /// and the packet; `None` if no packet of a flow follows.
    pub(super) fn take_next_departure(&mut self, probes: &mut Probes) -> Option<(Nanos, Packet)> {
        let now = self.link.next_departure();
        let dropped = &mut self.dropped;
        let probe = &mut RouterProbe { probes, dropped, is_cross: false };
        let (leaves, packet) = self.link.transmit_next_packet(probe)?;
        let Some(stream) = stream_of(&packet.token) else { return Some((leaves, packet.token)) };
        self.waiting_cross -= 1;
        let event = CrossPacketEvent::Carried { waited: Some(now - packet.entered) };
        probes.cross.count_event(self.streams[stream].index, event);
        None
    }

    pub(super) fn offer_packet(
        &mut self,
        now: Nanos,
        packet: Packet,
        probes: &mut Probes,
    ) -> RouterOutcome {
        match self.offer(now, packet, probes) {
            OfferOutcome::Departs { leaves, .. } => RouterOutcome::Leaves(leaves),
            OfferOutcome::Held => RouterOutcome::Waits(self.take_evicted(probes)),
            OfferOutcome::Dropped(_) => RouterOutcome::Dropped,
        }
    }

    fn offer(&mut self, now: Nanos, packet: Packet, probes: &mut Probes) -> OfferOutcome {
        self.dropped.clear();
        let arriving = QueuedPacket::new(packet, packet.source, self.packet_bytes);
        let is_cross = stream_of(&packet).is_some();
        let probe = &mut RouterProbe { probes, dropped: &mut self.dropped, is_cross };
        self.link.offer(now, arriving, probe)
    }

    /// Takes the packet of a flow that the last arrival evicted, and counts a packet of a stream.
    fn take_evicted(&mut self, probes: &mut Probes) -> Option<Packet> {
        let packet = self.dropped.pop()?;
        let Some(stream) = stream_of(&packet) else { return Some(packet) };
        self.waiting_cross -= 1;
        probes.cross.count_event(self.streams[stream].index, CrossPacketEvent::Dropped);
        None
    }

    /// Arrival time of the next packet of a stream; [`NEVER`] without streams.
    pub(super) fn next_cross_arrival(&self) -> Nanos {
        let first = if self.streams.is_empty() { NEVER } else { 0 };
        self.due.iter().min().copied().unwrap_or(first)
    }

    /// Enqueues the next packet of a stream. Returns the packet of a flow that it evicted, if any.
    pub(super) fn enqueue_next_cross_packet(&mut self, probes: &mut Probes) -> Option<Packet> {
        let next = (0..).zip(&self.due).min_by_key(|(_, due)| **due);
        let Some((stream, now)) = next.map(|(stream, due): (usize, &Nanos)| (stream, *due)) else {
            // Some streams draw long series, so they start on the thread of the replication.
            let streams = self.streams.iter_mut();
            self.due = streams.map(|stream| stream.arrivals.next_arrival_time()).collect();
            return None;
        };
        let RouterStream { index, arrivals } = &mut self.streams[stream];
        let index = *index;
        self.due[stream] = arrivals.next_arrival_time();
        let rates = arrivals.take_rate_counters();
        probes.cross.stream_mut(index).rates.merge(&rates);
        probes.cross.count_event(index, CrossPacketEvent::Offered);
        let source = FIRST_STREAM_SOURCE + stream as u32;
        let packet = Packet { source, ..Packet::default() };
        let event = match self.offer(now, packet, probes) {
            OfferOutcome::Departs { .. } => CrossPacketEvent::Carried { waited: Some(0) },
            OfferOutcome::Dropped(_) => CrossPacketEvent::Dropped,
            OfferOutcome::Held => {
                self.waiting_cross += 1;
                return self.take_evicted(probes);
            }
        };
        probes.cross.count_event(index, event);
        None
    }

    /// Packets in the queue and in transmission.
    pub(super) fn held_packets(&self) -> usize {
        self.link.queue().held_backlog().packets as usize
    }

    /// Packets of flows that [`SharedRouter::take_next_departure`] has not returned yet.
    pub(super) fn waiting_packets(&self) -> u64 {
        self.link.queue().waiting_backlog().packets - self.waiting_cross
    }
}
