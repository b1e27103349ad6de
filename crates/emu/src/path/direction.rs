//! One direction of a path.
//!
//! ```text
//! enter -> policer -> loss before -> [queue | transmitter] -> loss after -> jitter -> delay -> leave
//! ```
//!
//! All events have exact link times, independent of when the caller runs: overdue events are
//! processed in order before new events.

use super::counters::{DirectionCounters, DropCause};
use std::fmt;
use tcpcast_link::delay::{DelayLine, Jitter as NoJitter, PacketOrder};
use tcpcast_link::link::{Link, OfferOutcome, QueueingLink};
use tcpcast_link::loss::{LinkLossState, LossPlace};
use tcpcast_link::queue::{AnyQueue, BufferLimits, DropReason, QueueConfig, QueueProbe};
use tcpcast_link::random::RandomStream;
use tcpcast_link::time::{NEVER, Nanos};
use tcpcast_link::transmit::{AnyTransmitter, Policer, TokenBucketConfig, Transmitter};
use tcpcast_link::{Ecn, Packet};

/// A packet on the link: its cell and its ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInTransit {
    /// Cell of the packet.
    pub cell: u32,
    /// Port through which the packet entered.
    pub from: u16,
    /// Destination port.
    pub to: u16,
}

/// Random delay after the transmitter.
pub struct RandomDelay {
    /// Returns the delay of the next packet.
    pub delay: Box<dyn FnMut() -> Nanos + Send>,
    /// Whether packets with a shorter delay overtake other packets; otherwise each packet waits for
    /// the preceding packets.
    pub reorder: bool,
}

impl fmt::Debug for RandomDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jitter").field("reorder", &self.reorder).finish_non_exhaustive()
    }
}

/// Configuration of a direction.
#[derive(Debug)]
pub struct DirectionConfig {
    /// Rate above which packets are dropped on arrival.
    pub policer: Option<TokenBucketConfig>,
    /// Random loss before the queue or after the transmitter.
    pub loss: Option<LinkLossState>,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// Queue limits; they define whether the packet in transmission counts.
    pub limits: BufferLimits,
    /// Random numbers for early drops, ties and flow hashes.
    pub draws: RandomStream,
    /// Transmitter, which serialises packets by their IP length.
    pub transmitter: AnyTransmitter,
    /// Whether the rate varies. Transmission then takes no time, and all time until departure
    /// counts as queueing delay.
    pub varies: bool,
    /// Random delay.
    pub jitter: Option<RandomDelay>,
}

/// State of a direction.
#[derive(Debug)]
pub(super) struct LinkDirection {
    policer: Option<Policer>,
    loss: Option<LinkLossState>,
    link: QueueingLink<AnyQueue<PacketInTransit>, AnyTransmitter>,
    varies: bool,
    jitter: Option<RandomDelay>,
    /// Departure of the last packet after the jitter, if the order is kept.
    last_departure: Nanos,
    /// Propagation delay to or from each near port, and their minimum.
    delays: Vec<Nanos>,
    min_delay: Nanos,
    line: DelayLine<PacketInPropagation>,
    pub(super) counters: DirectionCounters,
    dropped: Vec<(PacketInTransit, DropCause)>,
}

/// A packet on the delay line.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketInPropagation {
    pub packet: PacketInTransit,
    pub waited: Nanos,
    pub marked: bool,
    /// True if the packet was lost after transmission.
    pub lost: bool,
}

/// Collects packets dropped by the queue.
struct DropCollector<'a> {
    dropped: &'a mut Vec<(PacketInTransit, DropCause)>,
}

impl QueueProbe<PacketInTransit> for DropCollector<'_> {
    fn on_drop(&mut self, _now: Nanos, packet: &Packet<PacketInTransit>, reason: DropReason) {
        let cause = match reason {
            DropReason::Full => DropCause::Full,
            DropReason::Early => DropCause::Early,
        };
        self.dropped.push((packet.token, cause));
    }
}

impl LinkDirection {
    /// Creates an idle direction. `delays`: propagation delay of each near port.
    pub(super) fn new(config: DirectionConfig, delays: Vec<Nanos>) -> Self {
        let queue = AnyQueue::new(config.queue, config.limits, config.draws);
        let min_delay = delays.iter().copied().min().unwrap_or(0);
        let in_order = delays.iter().all(|delay| *delay == min_delay)
            && config.jitter.as_ref().is_none_or(|jitter| !jitter.reorder);
        let line = if in_order {
            DelayLine::new(0, NoJitter::None, PacketOrder::Kept, RandomStream::from_seed(0))
        } else {
            DelayLine::with_given_due_times(RandomStream::from_seed(0))
        };
        Self {
            policer: config.policer.map(Policer::new),
            loss: config.loss,
            link: QueueingLink::new(queue, config.transmitter),
            varies: config.varies,
            jitter: config.jitter,
            last_departure: 0,
            delays,
            min_delay,
            line,
            counters: DirectionCounters::default(),
            dropped: Vec::new(),
        }
    }

    /// Processes a packet that enters at `now`. `flow`, `bytes` and `ecn` are fields of its header.
    pub(super) fn enter_packet(
        &mut self,
        now: Nanos,
        packet: PacketInTransit,
        (flow, bytes, ecn): (u32, u32, Ecn),
    ) {
        self.advance_to(now);
        self.counters.entered.count_packet(bytes);
        if self.policer.as_mut().is_some_and(|policer| !policer.allows_packet(now, bytes)) {
            return self.dropped.push((packet, DropCause::Full));
        }
        if self.loses_packet_at(LossPlace::Before) {
            return self.dropped.push((packet, DropCause::Random));
        }
        let offered = Packet::new(packet, flow, bytes).with_ecn(ecn);
        let collector = &mut DropCollector { dropped: &mut self.dropped };
        match self.link.offer(now, offered, collector) {
            OfferOutcome::Departs { leaves, marked, .. } => {
                let waited = if self.varies { leaves - now } else { 0 };
                self.schedule_departure(leaves, waited, marked, packet);
            }
            // The collector contains dropped packets.
            OfferOutcome::Held { .. } | OfferOutcome::Dropped(_) => {}
        }
    }

    /// Returns true if a packet is lost at random at this place.
    fn loses_packet_at(&mut self, place: LossPlace) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses_packet_at(place))
    }

    /// Processes all events up to `now` in order.
    pub(super) fn advance_to(&mut self, now: Nanos) {
        while self.link.next_departure() <= now {
            let begins = self.link.next_departure();
            self.run_expired_queue_timer(begins);
            let collector = &mut DropCollector { dropped: &mut self.dropped };
            let Some((leaves, served)) = self.link.transmit_next_packet(collector) else { break };
            let until = if self.varies { leaves } else { begins };
            self.schedule_departure(leaves, until - served.entered, served.marked, served.token);
        }
        self.run_expired_queue_timer(now);
    }

    /// Runs the queue's timer if the deadline has passed. The call may be late, because the state
    /// of the queue is not used between calls.
    fn run_expired_queue_timer(&mut self, now: Nanos) {
        if Link::<PacketInTransit>::deadline(&self.link) <= now {
            Link::<PacketInTransit>::on_deadline(&mut self.link, now);
        }
    }

    fn schedule_departure(
        &mut self,
        leaves: Nanos,
        waited: Nanos,
        marked: bool,
        packet: PacketInTransit,
    ) {
        self.counters.waits.add_time(waited);
        self.counters.marked += u64::from(marked);
        let lost = self.loses_packet_at(LossPlace::Behind);
        let mut leaves_at = leaves;
        if let Some(jitter) = &mut self.jitter {
            leaves_at += if lost { 0 } else { (jitter.delay)() };
            if !jitter.reorder {
                leaves_at = leaves_at.max(self.last_departure);
                self.last_departure = leaves_at;
            }
        }
        let near = usize::from(packet.from.min(packet.to));
        let delay = self.delays.get(near).copied().unwrap_or(self.min_delay);
        self.line.push_with_due_time(
            leaves_at + delay,
            PacketInPropagation { packet, waited, marked, lost },
        );
    }

    /// Returns the next packet that left by `now`, and its departure time.
    pub(super) fn take_departed_packet(
        &mut self,
        now: Nanos,
    ) -> Option<(Nanos, PacketInPropagation)> {
        self.line.pop(now)
    }

    /// Returns a dropped packet that was not processed yet.
    pub(super) fn take_dropped_packet(&mut self) -> Option<(PacketInTransit, DropCause)> {
        self.dropped.pop()
    }

    /// Lower bound of the next departure; [`NEVER`] if nothing is in transit.
    pub(super) fn next_departure_bound(&self) -> Nanos {
        // Queued packets leave after the packet in transmission.
        let serves = self.link.next_departure();
        let waits = self.link.waiting_backlog::<PacketInTransit>().packets > 0;
        let served = if waits { serves + self.min_delay } else { NEVER };
        self.line.next_due().min(served)
    }

    /// Number of packets in the queue, in transmission and on the delay line.
    pub(super) fn packets_in_transit(&self) -> u64 {
        // The packet in transmission is already on the delay line.
        self.link.waiting_backlog::<PacketInTransit>().packets + self.line.len() as u64
    }

    /// Bytes that could have been sent by then, if the rate varies.
    pub(super) fn capacity_bytes_until(&self, until: Nanos) -> Option<u64> {
        self.link.transmitter().capacity_bytes_until(until)
    }
}
