//! One direction of a path.
//!
//! ```text
//! enter -> policer -> loss before -> [queue | transmitter] -> loss after -> jitter -> delay -> leave
//! ```
//!
//! All events have exact link times, independent of when the caller runs: overdue events are
//! processed in order before new ones.

use super::counters::{Cause, Counters};
use std::fmt;
use tcpcast_link::delay::{DelayLine, Jitter as NoJitter, Order};
use tcpcast_link::link::{HeldLink, Link, Offered};
use tcpcast_link::loss::{LinkLosses, LossPlace};
use tcpcast_link::queue::{AnyQueue, Limits, QueueConfig, QueueProbe, Reason};
use tcpcast_link::random::Stream;
use tcpcast_link::time::{NEVER, Nanos};
use tcpcast_link::transmit::{AnyTransmitter, Policer, TokenRate, Transmitter};
use tcpcast_link::{Ecn, Packet};

/// A packet on the link: its cell and its ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InTransit {
    /// Cell of the packet.
    pub cell: u32,
    /// Port through which the packet entered.
    pub from: u16,
    /// Destination port.
    pub to: u16,
}

/// Random delay after the transmitter.
pub struct Jitter {
    /// Returns the delay of the next packet.
    pub delay: Box<dyn FnMut() -> Nanos + Send>,
    /// Whether packets with a shorter delay overtake others; otherwise they wait for the preceding
    /// packets.
    pub reorder: bool,
}

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jitter").field("reorder", &self.reorder).finish_non_exhaustive()
    }
}

/// Configuration of a direction.
#[derive(Debug)]
pub struct DirectionConfig {
    /// Rate above which packets are dropped on arrival.
    pub policer: Option<TokenRate>,
    /// Random loss before the queue or after the transmitter.
    pub loss: Option<LinkLosses>,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// Queue limits; they define whether the packet in transmission counts.
    pub limits: Limits,
    /// Random numbers for early drops, ties and flow hashes.
    pub draws: Stream,
    /// Transmitter, which serialises packets by their IP length.
    pub transmitter: AnyTransmitter,
    /// Whether the rate varies. Transmission then takes no time, and all time until departure
    /// counts as queueing delay.
    pub varies: bool,
    /// Random delay.
    pub jitter: Option<Jitter>,
}

/// State of a direction.
#[derive(Debug)]
pub(super) struct Direction {
    policer: Option<Policer>,
    loss: Option<LinkLosses>,
    link: HeldLink<AnyQueue<InTransit>, AnyTransmitter>,
    varies: bool,
    jitter: Option<Jitter>,
    /// Departure of the last packet after the jitter, if the order is kept.
    last_departure: Nanos,
    /// Propagation delay to or from each near port, and their minimum.
    delays: Vec<Nanos>,
    min_delay: Nanos,
    line: DelayLine<Leaving>,
    pub(super) counters: Counters,
    dropped: Vec<(InTransit, Cause)>,
}

/// A packet on the delay line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub packet: InTransit,
    pub waited: Nanos,
    pub marked: bool,
    /// True if the packet was lost after transmission.
    pub lost: bool,
}

/// Collects packets dropped by the queue.
struct DropCollector<'a> {
    dropped: &'a mut Vec<(InTransit, Cause)>,
}

impl QueueProbe<InTransit> for DropCollector<'_> {
    fn dropped(&mut self, _now: Nanos, packet: &Packet<InTransit>, reason: Reason) {
        let cause = match reason {
            Reason::Full => Cause::Full,
            Reason::Early => Cause::Early,
        };
        self.dropped.push((packet.token, cause));
    }
}

impl Direction {
    /// Creates an idle direction. `delays`: propagation delay of each near port.
    pub(super) fn new(config: DirectionConfig, delays: Vec<Nanos>) -> Self {
        let queue = AnyQueue::new(config.queue, config.limits, config.draws);
        let min_delay = delays.iter().copied().min().unwrap_or(0);
        let in_order = delays.iter().all(|delay| *delay == min_delay)
            && config.jitter.as_ref().is_none_or(|jitter| !jitter.reorder);
        let line = if in_order {
            DelayLine::new(0, NoJitter::None, Order::Kept, Stream::of(0))
        } else {
            DelayLine::scheduled(Stream::of(0))
        };
        Self {
            policer: config.policer.map(Policer::new),
            loss: config.loss,
            link: HeldLink::new(queue, config.transmitter),
            varies: config.varies,
            jitter: config.jitter,
            last_departure: 0,
            delays,
            min_delay,
            line,
            counters: Counters::default(),
            dropped: Vec::new(),
        }
    }

    /// Processes a packet that enters at `now`. `flow`, `bytes` and `ecn` are fields of its header.
    pub(super) fn enter(
        &mut self,
        now: Nanos,
        packet: InTransit,
        (flow, bytes, ecn): (u32, u32, Ecn),
    ) {
        self.advance_to(now);
        self.counters.entered.add(bytes);
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, bytes)) {
            return self.dropped.push((packet, Cause::Full));
        }
        if self.loses(LossPlace::Before) {
            return self.dropped.push((packet, Cause::Random));
        }
        let offered = Packet::new(packet, flow, bytes).with_ecn(ecn);
        let collector = &mut DropCollector { dropped: &mut self.dropped };
        match self.link.offer(now, offered, collector) {
            Offered::Departs { leaves, marked, .. } => {
                let waited = if self.varies { leaves - now } else { 0 };
                self.schedule_departure(leaves, waited, marked, packet);
            }
            // The collector contains dropped packets.
            Offered::Held { .. } | Offered::Dropped(_) => {}
        }
    }

    /// Returns true if a packet is lost at random at this place.
    fn loses(&mut self, place: LossPlace) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(place))
    }

    /// Processes all events up to `now` in order.
    pub(super) fn advance_to(&mut self, now: Nanos) {
        while self.link.leaves() <= now {
            let begins = self.link.leaves();
            self.meet_deadline(begins);
            let collector = &mut DropCollector { dropped: &mut self.dropped };
            let Some((leaves, served)) = self.link.serve(collector) else { break };
            let until = if self.varies { leaves } else { begins };
            self.schedule_departure(leaves, until - served.entered, served.marked, served.token);
        }
        self.meet_deadline(now);
    }

    /// Runs the queue's deadline if it is due, possibly late: the queue is idle between calls.
    fn meet_deadline(&mut self, now: Nanos) {
        if Link::<InTransit>::deadline(&self.link) <= now {
            Link::<InTransit>::on_deadline(&mut self.link, now);
        }
    }

    fn schedule_departure(
        &mut self,
        leaves: Nanos,
        waited: Nanos,
        marked: bool,
        packet: InTransit,
    ) {
        self.counters.waits.add(waited);
        self.counters.marked += u64::from(marked);
        let lost = self.loses(LossPlace::Behind);
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
        self.line.schedule(leaves_at + delay, Leaving { packet, waited, marked, lost });
    }

    /// Returns the next packet that left by `now`, and its departure time.
    pub(super) fn leave(&mut self, now: Nanos) -> Option<(Nanos, Leaving)> {
        self.line.pop(now)
    }

    /// Returns a dropped packet that was not processed yet.
    pub(super) fn take_dropped(&mut self) -> Option<(InTransit, Cause)> {
        self.dropped.pop()
    }

    /// Lower bound of the next departure; [`NEVER`] if nothing is in transit.
    pub(super) fn next(&self) -> Nanos {
        // Queued packets leave after the packet in transmission.
        let serves = self.link.leaves();
        let waits = self.link.waiting::<InTransit>().packets > 0;
        let served = if waits { serves + self.min_delay } else { NEVER };
        self.line.next_due().min(served)
    }

    /// Number of packets in the queue, in transmission and on the delay line.
    pub(super) fn in_transit(&self) -> u64 {
        // The packet in transmission is already on the delay line.
        self.link.waiting::<InTransit>().packets + self.line.len() as u64
    }

    /// Bytes that could have been sent by then, if the rate varies.
    pub(super) fn capacity(&self, until: Nanos) -> Option<u64> {
        self.link.transmitter().capacity(until)
    }
}
