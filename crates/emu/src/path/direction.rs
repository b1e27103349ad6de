//! One direction of a path: what a packet meets from one end to the other.
//!
//! ```text
//! enter -> policer -> loss before -> [queue | transmitter] -> loss behind -> jitter -> delay -> leave
//! ```
//!
//! Everything happens at exact times of the link, however late the caller comes: what was due is
//! done in its order before anything that is new.

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

/// A packet on the link: its cell, and the ports that it came by and goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InTransit {
    /// Its cell.
    pub cell: u32,
    /// Where it came in.
    pub from: u16,
    /// Where it goes.
    pub to: u16,
}

/// Random delay behind the transmitter.
pub struct Jitter {
    /// The delay of the next packet.
    pub delay: Box<dyn FnMut() -> Nanos + Send>,
    /// Whether a packet that is delayed less overtakes others; else it waits for those before it.
    pub reorder: bool,
}

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jitter").field("reorder", &self.reorder).finish_non_exhaustive()
    }
}

/// What a direction is made of.
#[derive(Debug)]
pub struct DirectionConfig {
    /// A rate above which packets are dropped on arrival, if there is one.
    pub policer: Option<TokenRate>,
    /// Random loss before the queue or behind the transmitter.
    pub loss: Option<LinkLosses>,
    /// The queue discipline.
    pub queue: QueueConfig,
    /// How much it holds; the packet in transmission counts as the limits say.
    pub limits: Limits,
    /// Draws early drops, ties, and what flows are hashed with.
    pub draws: Stream,
    /// What serialises packets, by their IP length.
    pub transmitter: AnyTransmitter,
    /// Whether the rate varies, so that a transmission takes no time of its own and all of the time
    /// to departure is waiting.
    pub varies: bool,
    /// Random delay.
    pub jitter: Option<Jitter>,
}

/// One direction at work.
#[derive(Debug)]
pub(super) struct Direction {
    policer: Option<Policer>,
    loss: Option<LinkLosses>,
    link: HeldLink<AnyQueue<InTransit>, AnyTransmitter>,
    varies: bool,
    jitter: Option<Jitter>,
    /// When the last packet went on behind the jitter, where the order is kept.
    went_on: Nanos,
    /// Propagation to or from each port of the near side, and the least of them.
    delays: Vec<Nanos>,
    least_delay: Nanos,
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
    /// It was transmitted and then lost, and is not handed over.
    pub lost: bool,
}

/// Collects what the queue drops.
struct Told<'a> {
    dropped: &'a mut Vec<(InTransit, Cause)>,
}

impl QueueProbe<InTransit> for Told<'_> {
    fn dropped(&mut self, _now: Nanos, packet: &Packet<InTransit>, reason: Reason) {
        let cause = match reason {
            Reason::Full => Cause::Full,
            Reason::Early => Cause::Early,
        };
        self.dropped.push((packet.token, cause));
    }
}

impl Direction {
    /// An idle direction; `delays` has the propagation for each near port.
    pub(super) fn new(config: DirectionConfig, delays: Vec<Nanos>) -> Self {
        let queue = AnyQueue::new(config.queue, config.limits, config.draws);
        let least_delay = delays.iter().copied().min().unwrap_or(0);
        let in_order = delays.iter().all(|delay| *delay == least_delay)
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
            went_on: 0,
            delays,
            least_delay,
            line,
            counters: Counters::default(),
            dropped: Vec::new(),
        }
    }

    /// A packet enters at `now`; `near` is the near port that it comes from or goes to.
    pub(super) fn enter(
        &mut self,
        now: Nanos,
        packet: InTransit,
        (flow, bytes, ecn): (u32, u32, Ecn),
    ) {
        self.catch_up(now);
        self.counters.entered.add(bytes);
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, bytes)) {
            return self.dropped.push((packet, Cause::Full));
        }
        if self.loses(LossPlace::Before) {
            return self.dropped.push((packet, Cause::Random));
        }
        let offered = Packet::new(packet, flow, bytes).with_ecn(ecn);
        let told = &mut Told { dropped: &mut self.dropped };
        match self.link.offer(now, offered, told) {
            Offered::Departs { leaves, marked, .. } => {
                let waited = if self.varies { leaves - now } else { 0 };
                self.depart(leaves, waited, marked, packet);
            }
            // The queue has told of a drop.
            Offered::Held { .. } | Offered::Dropped(_) => {}
        }
    }

    /// Returns true if the packet that passes this place now is lost at random.
    fn loses(&mut self, at: LossPlace) -> bool {
        self.loss.as_mut().is_some_and(|loss| loss.loses(at))
    }

    /// Does what was due by `now` on the link, in its order.
    pub(super) fn catch_up(&mut self, now: Nanos) {
        while self.link.leaves() <= now {
            let begins = self.link.leaves();
            self.meet_deadline(begins);
            let told = &mut Told { dropped: &mut self.dropped };
            let Some((leaves, served)) = self.link.serve(told) else { break };
            let until = if self.varies { leaves } else { begins };
            self.depart(leaves, until - served.entered, served.marked, served.token);
        }
        self.meet_deadline(now);
    }

    /// Nothing looks at the queue between two calls, so a deadline may be met late.
    fn meet_deadline(&mut self, now: Nanos) {
        if Link::<InTransit>::deadline(&self.link) <= now {
            Link::<InTransit>::on_deadline(&mut self.link, now);
        }
    }

    fn depart(&mut self, leaves: Nanos, waited: Nanos, marked: bool, packet: InTransit) {
        self.counters.waits.add(waited);
        self.counters.marked += u64::from(marked);
        let lost = self.loses(LossPlace::Behind);
        let mut goes_on = leaves;
        if let Some(jitter) = &mut self.jitter {
            goes_on += if lost { 0 } else { (jitter.delay)() };
            if !jitter.reorder {
                goes_on = goes_on.max(self.went_on);
                self.went_on = goes_on;
            }
        }
        let near = usize::from(packet.from.min(packet.to));
        let delay = self.delays.get(near).copied().unwrap_or(self.least_delay);
        self.line.schedule(goes_on + delay, Leaving { packet, waited, marked, lost });
    }

    /// The next packet that has left by `now`, and when it did.
    pub(super) fn leave(&mut self, now: Nanos) -> Option<(Nanos, Leaving)> {
        self.line.pop(now)
    }

    /// A packet that was dropped and not asked for yet.
    pub(super) fn take_dropped(&mut self) -> Option<(InTransit, Cause)> {
        self.dropped.pop()
    }

    /// A time before which nothing leaves; [`NEVER`] if nothing is in transit.
    pub(super) fn next(&self) -> Nanos {
        // What waits leaves behind what is in transmission.
        let serves = self.link.leaves();
        let waits = self.link.waiting::<InTransit>().packets > 0;
        let served = if waits { serves + self.least_delay } else { NEVER };
        self.line.next_due().min(served)
    }

    /// Packets in the queue, in transmission and on the delay line.
    pub(super) fn in_transit(&self) -> u64 {
        // What is in transmission is on the line already.
        self.link.waiting::<InTransit>().packets + self.line.len() as u64
    }

    /// Bytes that could have left by then, of a rate that varies.
    pub(super) fn capacity(&self, until: Nanos) -> Option<u64> {
        self.link.transmitter().capacity(until)
    }
}
