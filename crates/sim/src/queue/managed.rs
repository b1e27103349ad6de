//! Disciplines of the crate `link` that drop or mark packets that they hold (CoDel, FQ-CoDel, PIE,
//! head-drop, and RED with ECN marks), and all disciplines in front of a link with a varying rate.
//!
//! A packet is dropped on arrival, when another packet needs its room, or when the link is about to
//! transmit the packet. The caller takes dropped packets other than the arriving one with
//! [`QueueDiscipline::take_dropped_packets`] after each call.

use super::{
    EnqueueOutcome, LinkLoad, LinkRate, QueueDiscipline, QueueProbe, TransmittedPacketInfo,
};
use crate::clock::{Nanos, Transmitter};
use crate::packet::Packet;
use crate::random::{RandomSource, RandomStream};
use serde::Deserialize;
use tcpcast_link::link::{Link, OfferOutcome, QueueingLink};
use tcpcast_link::queue as disciplines;
use tcpcast_link::queue::{BufferLimits, DropReason};

use tcpcast_link::transmit::{AnyTransmitter, Transmitter as _};

/// A discipline and its link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedConfig {
    /// Discipline with its parameters.
    pub discipline: disciplines::QueueConfig,
    /// Rate of the link.
    pub rate: LinkRate,
    /// Buffer limit in bytes, including the packet in transmission; `None` is unlimited.
    pub limit_bytes: Option<u64>,
}

/// A discipline that may drop or mark packets that it holds. Each source is a flow.
#[derive(Clone, Debug)]
pub struct ManagedQueue {
    link: QueueingLink<disciplines::AnyQueue<Packet>, AnyTransmitter>,
    /// Whether the rate of the link varies. Such links transmit packets in no time, so the waiting
    /// time ends at the departure.
    shaped: bool,
    /// Bytes that the link has transmitted.
    bytes: u64,
    /// Dropped packets other than the arriving one, with times, until the caller takes them.
    dropped: Vec<(Nanos, Packet)>,
    /// Waiting time and mark of the packet that was served last.
    passed: Option<TransmittedPacketInfo>,
    /// Time of the last call.
    now: Nanos,
}

/// Forwards the events of a discipline to a probe and collects dropped packets.
struct DropCollector<'a, P> {
    probe: &'a mut P,
    dropped: &'a mut Vec<(Nanos, Packet)>,
}

impl<P: QueueProbe> disciplines::QueueProbe<Packet> for DropCollector<'_, P> {
    fn on_drop(&mut self, now: Nanos, packet: &tcpcast_link::Packet<Packet>, reason: DropReason) {
        if reason == DropReason::Early {
            self.probe.on_early_drop();
        }
        self.dropped.push((now, packet.token));
    }

    fn on_arrival_queue_length(&mut self, packets: u64) {
        self.probe.on_arrival_queue_length(packets as usize);
    }

    fn on_queue_length_interval(&mut self, packets: u64, until: Nanos) {
        self.probe.on_queue_length_interval(packets as usize, until);
    }

    fn on_average_updated(&mut self, average: f64) {
        self.probe.on_average_updated(average);
    }
}

impl ManagedQueue {
    /// Creates an empty queue with a limit of `limit` packets, including the packet in
    /// transmission; `None` is unlimited. `early` decides early drops and provides the hash key of
    /// the flows.
    #[must_use]
    pub fn new(config: ManagedConfig, limit: Option<u64>, mut early: RandomStream) -> Self {
        use disciplines::{AnyQueue, FqCodelConfig, QueueConfig};
        let discipline = match config.discipline {
            QueueConfig::FqCodel(fq_codel) => {
                QueueConfig::FqCodel(FqCodelConfig { perturbation: early.next_bits(), ..fq_codel })
            }
            other => other,
        };
        let limits =
            BufferLimits { packets: limit, bytes: config.limit_bytes, ..BufferLimits::default() };
        let transmitter = config.rate.create_transmitter();
        let queue = AnyQueue::new(discipline, limits, RandomStream::from_seed(early.next_bits()));
        Self {
            link: QueueingLink::new(queue, transmitter),
            shaped: !matches!(config.rate, LinkRate::Constant(_)),
            bytes: 0,
            dropped: Vec::new(),
            passed: None,
            now: 0,
        }
    }

    /// Runs the timers of the discipline up to `now`. Nothing reads the queue between two calls, so
    /// the timers may run late.
    #[inline]
    fn run_timers_until(&mut self, now: Nanos) {
        self.now = now;
        if self.link.deadline() <= now {
            self.link.on_deadline(now);
        }
    }
}

impl QueueDiscipline for ManagedQueue {
    const HOLDS_PACKETS: bool = true;
    const DROPS_HELD_PACKETS: bool = true;

    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> EnqueueOutcome {
        self.run_timers_until(now);
        let bytes = link.cached_length();
        let arriving = tcpcast_link::Packet::new(*packet, packet.source(), bytes)
            .with_ecn(packet.label().ecn());
        let collector = &mut DropCollector { probe, dropped: &mut self.dropped };
        match self.link.offer(now, arriving, collector) {
            OfferOutcome::Departs { leaves, found, marked } => {
                debug_assert!(!marked, "a packet that did not wait was marked");
                self.bytes += u64::from(bytes);
                EnqueueOutcome::Departs { leaves, backlog: found as usize }
            }
            OfferOutcome::Held { found, .. } => {
                EnqueueOutcome::Held { backlog: found as usize, evicted: None }
            }
            OfferOutcome::Dropped(_) => {
                // The arriving packet was collected last; the caller receives this drop as the
                // outcome of the enqueue.
                self.dropped.pop();
                EnqueueOutcome::Dropped
            }
        }
    }

    fn advance_to(&mut self, _now: Nanos, _probe: &mut impl QueueProbe) {}

    fn reset_for_next_transfer(&mut self) {
        self.link.reset_when_empty(self.now);
    }

    #[inline]
    fn held_packets(&self) -> usize {
        self.link.held_backlog().packets as usize
    }

    fn sum_of_remaining_times(&self, now: Nanos) -> Nanos {
        if self.held_packets() == 0 || self.link.is_held_by_shaper() {
            0
        } else {
            self.link.next_departure() - now
        }
    }

    fn waiting_packets(&self) -> u64 {
        self.link.waiting_backlog().packets
    }

    fn prefetch_ahead(&self, turns: usize, visit: impl FnMut(u32)) {
        self.link.prefetch_ahead(turns, visit);
    }

    #[inline]
    fn next_departure(&self) -> Nanos {
        self.link.next_departure()
    }

    #[inline]
    fn transmit_next_packet(
        &mut self,
        _link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let now = self.link.next_departure();
        self.run_timers_until(now);
        let collector = &mut DropCollector { probe, dropped: &mut self.dropped };
        let (leaves, served) = self.link.transmit_next_packet(collector)?;
        self.bytes += u64::from(served.bytes);
        let begins = if self.shaped { leaves } else { now };
        self.passed =
            Some(TransmittedPacketInfo { waited: begins - served.entered, marked: served.marked });
        let mut packet = served.token;
        if served.marked {
            packet = packet.with_label(packet.label().with_ecn_mark());
        }
        Some((leaves, packet))
    }

    fn link_load_until(&self, now: Nanos) -> Option<LinkLoad> {
        let capacity = self.link.transmitter().capacity_bytes_until(now)?;
        Some(LinkLoad { bytes: self.bytes, capacity })
    }

    #[inline]
    fn last_transmitted_packet(&self) -> Option<TransmittedPacketInfo> {
        self.passed
    }

    #[inline]
    fn take_dropped_packets(
        &mut self,
        into: &mut Vec<(Nanos, Packet)>,
        _probe: &mut impl QueueProbe,
    ) {
        if !self.dropped.is_empty() {
            into.append(&mut self.dropped);
        }
    }
}

#[cfg(test)]
#[path = "managed_tests.rs"]
mod tests;
