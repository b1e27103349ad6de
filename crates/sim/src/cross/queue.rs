//! A queue in which packets of others are, too.
//!
//! It wraps any discipline. The packets of the streams are offered to it like those of sources, in
//! their order of time among all events; what became of them is counted and goes no further. For the
//! discipline each stream is a source, so for a fair queue it is a flow.

use super::{Arrivals, CrossLaw};
use crate::clock::{NEVER, Nanos, Transmitter};
use crate::packet::Packet;
use crate::probe::CrossEvent;
use crate::queue::{DropTail, Fair, QueueConfig, QueueDiscipline, QueueProbe, Red, Verdict};
use crate::random::Stream;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A discipline with the streams of others before it.
///
/// Which one is chosen for each packet: so there is one queue with cross traffic for the compiler to
/// make code for, and the queues without it are left as they are.
#[derive(Clone, Debug)]
pub struct Crossed {
    queue: AnyQueue,
    streams: Vec<Arrivals>,
    /// The next packet of each stream; empty until the first is asked for.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When the first of these comes.
    comes: Nanos,
    /// Packets of streams that are held and have not been served.
    waiting: u64,
}

#[derive(Clone, Debug)]
enum AnyQueue {
    DropTail(DropTail),
    Red(Box<Red>),
    Fair(Box<Fair>),
}

/// What others do to a queue shows in its length, but neither their finding it nor RED's average of
/// their arrivals is told: those are of the sources' packets.
struct LengthOnly<'a, P>(&'a mut P);

impl<P: QueueProbe> QueueProbe for LengthOnly<'_, P> {
    fn queue_held(&mut self, packets: usize, until: Nanos) {
        self.0.queue_held(packets, until);
    }
    fn queue_seen(&mut self, _packets: usize) {}
}

impl Crossed {
    /// An empty queue of a replication; `early` is for RED's drops.
    #[must_use]
    pub fn new(
        queue: QueueConfig,
        most: Option<u64>,
        laws: &[CrossLaw],
        name: (u64, u32),
        early: Stream,
    ) -> Self {
        let (seed, replication) = name;
        let named = |(entity, law)| Arrivals::named(law, seed, replication, entity);
        Self {
            queue: match queue {
                QueueConfig::DropTail => AnyQueue::DropTail(DropTail::new(most)),
                QueueConfig::Red(red) => AnyQueue::Red(Box::new(Red::new(red, most, early))),
                QueueConfig::Fair(fair) => AnyQueue::Fair(Box::new(Fair::new(fair, most))),
            },
            streams: (0..).zip(laws).map(named).collect(),
            due: BinaryHeap::new(),
            comes: 0,
            waiting: 0,
        }
    }

    /// The stream that sends as this source; `None` for a source of the scenario.
    fn stream_of(&self, source: u32) -> Option<usize> {
        let stream = source as usize;
        (stream < self.streams.len()).then_some(stream)
    }

    /// Streams come before sources.
    fn moved_up(&self, packet: &Packet) -> Packet {
        Packet { source: packet.source + self.streams.len() as u32, ..*packet }
    }

    fn moved_down(&self, packet: Packet) -> Packet {
        Packet { source: packet.source - self.streams.len() as u32, ..packet }
    }

    /// A packet had to leave: it, if a source is to be told.
    fn pushed_out(&mut self, packet: Packet, probe: &mut impl QueueProbe) -> Option<Packet> {
        let Some(stream) = self.stream_of(packet.source) else {
            return Some(self.moved_down(packet));
        };
        self.waiting -= 1;
        probe.cross(stream, CrossEvent::Dropped);
        None
    }

    /// The streams begin: the first of their series are drawn when the run does.
    fn begin(&mut self) {
        for (stream, arrivals) in (0..).zip(&mut self.streams) {
            self.due.push(Reverse((arrivals.next_time(), stream)));
        }
    }

    fn next_due(&self) -> Nanos {
        self.due.peek().map_or(NEVER, |due| due.0.0)
    }
}

impl QueueDiscipline for Crossed {
    const HOLDS: bool = true;
    const CROSSED: bool = true;

    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        let packet = self.moved_up(packet);
        match self.queue.offer(now, &packet, link, probe) {
            Verdict::Held { found, pushed_out: Some(packet) } => {
                Verdict::Held { found, pushed_out: self.pushed_out(packet, probe) }
            }
            verdict => verdict,
        }
    }

    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        self.queue.settle(now, probe);
    }

    fn restart(&mut self) {
        self.queue.restart();
    }

    fn held(&self) -> usize {
        self.queue.held()
    }

    fn link_leaves(&self) -> Nanos {
        self.queue.link_leaves()
    }

    fn serve(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        let (leaves, packet) = self.queue.serve(link, probe)?;
        let Some(stream) = self.stream_of(packet.source) else {
            return Some((leaves, self.moved_down(packet)));
        };
        self.waiting -= 1;
        probe.cross(stream, CrossEvent::Carried);
        None
    }

    fn waiting(&self) -> u64 {
        self.queue.waiting() - self.waiting
    }

    fn cross_comes(&self) -> Nanos {
        self.comes
    }

    fn cross_arrives(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<Packet> {
        let Some(Reverse((now, source))) = self.due.pop() else {
            self.begin();
            self.comes = self.next_due();
            return None;
        };
        let stream = source as usize;
        let arrivals = &mut self.streams[stream];
        self.due.push(Reverse((arrivals.next_time(), source)));
        probe.cross_rates(stream, &arrivals.take_rates());
        self.comes = self.next_due();
        probe.cross(stream, CrossEvent::Offered);
        let packet = Packet { source, ..Packet::default() };
        match self.queue.offer(now, &packet, link, &mut LengthOnly(probe)) {
            Verdict::Departs { .. } => probe.cross(stream, CrossEvent::Carried),
            Verdict::Dropped => probe.cross(stream, CrossEvent::Dropped),
            Verdict::Held { pushed_out, .. } => {
                self.waiting += 1;
                return self.pushed_out(pushed_out?, probe);
            }
        }
        None
    }
}

impl AnyQueue {
    fn offer(
        &mut self,
        now: Nanos,
        packet: &Packet,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Verdict {
        match self {
            Self::DropTail(queue) => queue.offer(now, packet, link, probe),
            Self::Red(queue) => queue.offer(now, packet, link, probe),
            Self::Fair(queue) => queue.offer(now, packet, link, probe),
        }
    }

    fn settle(&mut self, now: Nanos, probe: &mut impl QueueProbe) {
        match self {
            Self::DropTail(queue) => queue.settle(now, probe),
            Self::Red(queue) => queue.settle(now, probe),
            Self::Fair(queue) => queue.settle(now, probe),
        }
    }

    fn restart(&mut self) {
        match self {
            Self::DropTail(queue) => queue.restart(),
            Self::Red(queue) => queue.restart(),
            Self::Fair(queue) => queue.restart(),
        }
    }

    fn held(&self) -> usize {
        match self {
            Self::DropTail(queue) => queue.held(),
            Self::Red(queue) => queue.held(),
            Self::Fair(queue) => queue.held(),
        }
    }

    fn link_leaves(&self) -> Nanos {
        match self {
            Self::DropTail(_) | Self::Red(_) => NEVER,
            Self::Fair(queue) => queue.link_leaves(),
        }
    }

    fn serve(
        &mut self,
        link: &mut Transmitter,
        probe: &mut impl QueueProbe,
    ) -> Option<(Nanos, Packet)> {
        match self {
            Self::DropTail(_) | Self::Red(_) => None,
            Self::Fair(queue) => queue.serve(link, probe),
        }
    }

    fn waiting(&self) -> u64 {
        match self {
            Self::DropTail(_) | Self::Red(_) => 0,
            Self::Fair(queue) => queue.waiting(),
        }
    }
}
